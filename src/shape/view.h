// Strided views as data: how to read a (sizes, strides, offset) view out of a dense row-major base
// with reshape, transpose, slice and broadcast, and how to write one back. Pure functions.
// What it is not: StableHLO. src/exec/view_emit.cc turns these plans into program text.
//
// Slice starts are values of the call, not of the plan: two views that differ in their starts only
// have equal plans but for `starts`, so they share one program.
#pragma once

#include <variant>
#include <vector>

#include "base/status.h"
#include "shape/dims.h"

namespace tpu::shape {

// A strided window on linear memory, in elements of one dtype. Strides are never negative.
struct View {
  Dims sizes;
  Dims strides;
  int64_t offset = 0;
  friend bool operator==(const View&, const View&) = default;
};

// Steps of a read, applied left to right; the input of the first is the base.
struct ReshapeStep {
  Dims dims;
  friend bool operator==(const ReshapeStep&, const ReshapeStep&) = default;
};
struct TransposeStep {
  Dims perm;  // result dimension i is operand dimension perm[i]
  friend bool operator==(const TransposeStep&, const TransposeStep&) = default;
};
// Takes, in each dimension d, sizes[d] elements that lie steps[d] apart. Where `dynamic[d]` is true
// the first one is at a run-time start (consumed from ReadPlan::starts in order of d); else at 0.
struct SliceStep {
  Dims sizes;
  Dims steps;
  std::vector<bool> dynamic;
  friend bool operator==(const SliceStep&, const SliceStep&) = default;
};
// stablehlo.broadcast_in_dim: operand dimension i becomes result dimension mapping[i] (increasing).
struct BroadcastStep {
  Dims dims;
  Dims mapping;
  friend bool operator==(const BroadcastStep&, const BroadcastStep&) = default;
};
// What nothing else can express: element [i...] of the result is flat[start + sum i*strides] of the
// rank-1 operand; the start is run-time and consumes one entry of ReadPlan::starts.
struct GatherStep {
  Dims sizes;
  Dims strides;
  friend bool operator==(const GatherStep&, const GatherStep&) = default;
};
using ReadStep = std::variant<ReshapeStep, TransposeStep, SliceStep, BroadcastStep, GatherStep>;

struct ReadPlan {
  std::vector<ReadStep> steps;  // empty: the base as it is
  Dims starts;                  // run-time values, in the order in which the steps consume them
  // Which of the alternative decompositions was taken. Sizes, strides, base shape and variant
  // determine `steps` completely: this is what goes into a program's key.
  int variant = 0;
  bool identity() const { return steps.empty(); }
};

// How to read `view` out of a dense row-major base of shape `base`. The base has the view's dtype.
// Views with a zero size give a plan too (a slice or broadcast of zero size).
// Fails with invalid_argument if an element of the view lies outside the base.
Result<ReadPlan> Decompose(const View& view, DimsView base);

// How to write a dense value of shape view.sizes into the base:
//   1. value  -> transposed by `value_perm`, then reshaped to `update_dims`
//   2. base   -> reshaped to `base_dims`
//   3. by kind:
//      kFull     the update, reshaped to the base's shape, is the new base; the old one isn't read
//      kSlice    dynamic_update_slice at the run-time starts (0 where !dynamic[d])
//      kMasked   as kSlice, but in dimension d the elements lie steps[d] apart: what lies between
//                keeps its value (read the region, interior-pad the update, select, write back)
//      kScatter  element [i...] of the update goes to flat[start + sum i*strides]
//   4. reshaped to the base's shape.
struct WritePlan {
  enum class Kind { kNothing, kFull, kSlice, kMasked, kScatter };
  Kind kind = Kind::kNothing;  // kNothing: the view has no elements
  Dims value_perm;
  Dims update_dims;
  Dims base_dims;
  Dims steps;                 // kMasked
  std::vector<bool> dynamic;  // kSlice, kMasked
  Dims scatter_strides;       // kScatter: one for each update dimension
  Dims starts;  // run-time values: one for each dynamic dimension, or kScatter's start
  int variant = 0;
};

// Fails with invalid_argument if the view overlaps itself or leaves the base.
Result<WritePlan> Invert(const View& view, DimsView base);

// True if two index tuples of the view reach one element (sizes > 1 with stride 0 included).
// Exact, unlike at::has_internal_overlap, which may answer "too hard".
bool OverlapsItself(const View& view);

// True if the view reaches every element of linear memory [0, numel) exactly once.
bool CoversDensely(const View& view, int64_t numel);

// The order of dimensions by decreasing stride (ties and size-1 dimensions stay in place): the
// physical order of a dense view. A channels_last tensor gives 0, 2, 3, 1.
Dims PhysicalOrder(const View& view);

}  // namespace tpu::shape
