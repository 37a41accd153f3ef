// Where the entries of index tensors lie in an operand, for reads (indexing.cc) and writes
// (scatter.cc).
// What it is not: the check itself, which is Lowering::CheckIndex.
#pragma once

#include <string_view>

#include "hlo/hlo.h"
#include "ops/lowering.h"

namespace tpu::ops {

// `index` checked against `bound`, wrapped, and in 32 bits where the bound allows. Entries out of
// range stay out of range, so that a scatter drops them.
hlo::Value CheckedIndex(Lowering& lw, hlo::Value index, int64_t bound, std::string_view argument,
                        int64_t dim, bool wrap = true);

// Places in an operand: the dimension numbers of both a gather and a scatter, and the shape of what
// is read or written there.
struct Places {
  hlo::Value indices;
  Dims window_dims;  // dimensions of the values that lie within a window
  Dims inserted;     // operand dimensions that the values don't have
  Dims batching;     // operand dimensions that go along with those of the indices
  Dims index_map;
  int64_t vector_dim = 0;
  Dims window_sizes;  // of a window, for all operand dimensions
  Dims value_dims;    // the shape of the values
};

// Advanced indexing: `indices` (invalid: the whole dimension) broadcast together. The dimensions of
// the values are ordered as in PyTorch and NumPy.
Places AtIndices(Lowering& lw, const Dims& operand, const hlo::Values& indices,
                 std::string_view argument);
// One index of rank 1 for dimension `dim`.
Places AtRows(Lowering& lw, const Dims& operand, hlo::Value index, int64_t dim,
              std::string_view argument);
// As torch.gather: values[i][j] is at operand[index[i][j]][j] for dim 0. Ranks are equal and not 0;
// sizes of `index` are at most those of the operand, but for `dim`.
Places AlongDim(Lowering& lw, const Dims& operand, hlo::Value index, int64_t dim,
                std::string_view argument);

hlo::Value ReadAt(Lowering& lw, hlo::Value operand, const Places& places);
// The operand with body(old, value) at the places, in the order of the values. Values may be of
// size 0: then nothing changes.
hlo::Value WriteAt(Lowering& lw, hlo::Value operand, const Places& places, hlo::Value values,
                   const hlo::Body& body);
hlo::Value StoreAt(Lowering& lw, hlo::Value operand, const Places& places, hlo::Value values);
// Sums in AccumulateType: float32 for half types. bool: or.
hlo::Value AddAt(Lowering& lw, hlo::Value operand, const Places& places, hlo::Value values);

}  // namespace tpu::ops
