// What reductions share: which dimensions a call names, and how results get them back.
// What it is not: the rows (reduce.cc, extremum.cc).
#pragma once

#include "ops/lowering.h"

namespace tpu::ops {

struct Reduction {
  Dims from;  // the sizes before
  Dims dims;  // the reduced dimensions, ascending
  bool keepdim = false;

  int64_t count() const;  // elements that become one
  // A reduced value in the result's shape.
  hlo::Value Shaped(hlo::Value reduced) const;
  // A reduced value beside the unreduced one.
  hlo::Value Spread(hlo::Value reduced) const;
  // A monoid over the dimensions, which are removed.
  hlo::Value Over(hlo::Value a, hlo::Monoid monoid) const;
};

// Reads `dim` (int, int[], None; absent, None and the empty list mean all) and `keepdim`.
Reduction ReductionOf(Lowering& lw, std::string_view tensor = "self");
// One dimension of a softmax-like op. Rank 0 counts as rank 1.
int64_t DimOf(const Lowering& lw, int64_t rank, std::string_view name = "dim");
// The highest or lowest value of a type, a scalar: an infinity for floats.
hlo::Value Bound(hlo::Function& fn, DType dtype, bool highest);
// A tensor of rank 0 as a list of one element.
hlo::Value AtLeast1d(hlo::Value a);

}  // namespace tpu::ops
