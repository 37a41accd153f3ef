// Reduction.
#include "ops/reduction.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tpu::ops {

using hlo::Value;

int64_t Reduction::count() const {
  int64_t n = 1;
  for (int64_t d : dims) n *= from[static_cast<size_t>(d)];
  return n;
}

Value Reduction::Spread(Value reduced) const {
  if (!reduced.valid()) return reduced;
  Dims kept = from;
  for (int64_t d : dims) kept[static_cast<size_t>(d)] = 1;
  return reduced.function()->BroadcastTo(reduced.function()->Reshape(reduced, kept), from);
}

Value Reduction::Shaped(Value reduced) const {
  if (!reduced.valid() || !keepdim) return reduced;
  Dims kept = from;
  for (int64_t d : dims) kept[static_cast<size_t>(d)] = 1;
  return reduced.function()->Reshape(reduced, kept);
}

Value Reduction::Over(Value a, hlo::Monoid monoid) const {
  if (!a.valid() || dims.empty()) return a;
  return a.function()->Reduce(a, monoid, dims);
}

Reduction ReductionOf(Lowering& lw, std::string_view tensor) {
  Reduction r;
  r.from = lw.TensorDims(tensor);
  r.keepdim = lw.BoolOr("keepdim", false);
  const auto rank = static_cast<int64_t>(r.from.size());
  if (lw.Has("dim")) r.dims = lw.Ints("dim");
  for (int64_t& d : r.dims) d = WrapDim(d, rank);
  if (r.dims.empty()) r.dims = Iota(rank);
  if (rank == 0) r.dims.clear();
  std::sort(r.dims.begin(), r.dims.end());
  return r;
}

int64_t DimOf(const Lowering& lw, int64_t rank, std::string_view name) {
  return WrapDim(lw.Int(name), std::max<int64_t>(rank, 1));
}

Value Bound(hlo::Function& fn, DType dtype, bool highest) {
  if (IsFloat(dtype)) return fn.Scalar(dtype, highest ? INFINITY : -INFINITY);
  if (IsBool(dtype)) return fn.Scalar(dtype, highest);
  if (IsUnsigned(dtype)) return fn.Scalar(dtype, highest ? int64_t{-1} : int64_t{0});  // wraps
  const auto shift = 64 - 8 * ItemSize(dtype);
  return fn.Scalar(dtype, (highest ? INT64_MAX : INT64_MIN) >> shift);
}

Value AtLeast1d(Value a) {
  return a.valid() && a.rank() == 0 ? a.function()->Reshape(a, Dims{1}) : a;
}

}  // namespace tpu::ops
