// Maxima and minima: of all, along dimensions, with their places.
#include <cstdint>

#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/reduction.h"

namespace tpu::ops {
namespace {

using hlo::Function;
using hlo::Monoid;
using hlo::Value;
using hlo::Values;

template <Monoid monoid>
Values Extremum(Lowering& lw) {
  const Reduction r = ReductionOf(lw);
  return {r.Shaped(r.Over(lw.Tensor("self"), monoid))};
}

Status NoElements(const char* op) {
  return InvalidArgument(op,
                         "(): Expected reduction dim to be specified for input.numel() == 0. "
                         "Specify the reduction dim with the 'dim' argument.");
}

template <Monoid monoid>
Values ExtremumOfAll(Lowering& lw) {
  const Value a = lw.Tensor("self");
  if (a.numel() == 0) return {lw.Fail(NoElements(monoid == Monoid::kMax ? "max" : "min"))};
  return Extremum<monoid>(lw);
}

Values MinAndMax(Lowering& lw) {
  const Reduction r = ReductionOf(lw);
  const Value a = lw.Tensor("self");
  if (r.count() == 0) return {lw.Fail(NoElements("aminmax")), {}};
  return {r.Shaped(r.Over(a, Monoid::kMin)), r.Shaped(r.Over(a, Monoid::kMax))};
}

struct Place {
  Value value, index;  // the index is int32, or int64 for very long dimensions
};

// The extremum along one dimension and its first place; a NaN beats everything. Two plain
// reductions: one over pairs doesn't vectorise, and took ten times as long on the CPU plugin.
Place ExtremumAt(Value a, bool maximum, int64_t dim) {
  if (!a.valid()) return {};
  Function& fn = *a.function();
  const Reduction r{a.dims(), {dim}, true};
  const Value best = r.Over(a, maximum ? Monoid::kMax : Monoid::kMin), spread = r.Spread(best);
  Value hit = Eq(a, spread);
  if (IsFloat(a.dtype())) hit = hit | (IsNan(a) & IsNan(spread));
  const bool is_long = a.dim(dim) > INT32_MAX;
  const Value at = fn.Iota({is_long ? DType::kI64 : DType::kI32, a.dims()}, dim);
  const Value none = Like(at, is_long ? INT64_MAX : INT32_MAX);
  return {best, r.Over(fn.Select(hit, at, none), Monoid::kMin)};
}

template <bool maximum>
Values ExtremumAlong(Lowering& lw) {
  const Reduction r = ReductionOf(lw);
  const Value a = AtLeast1d(lw.Tensor("self"));
  const int64_t dim = r.from.empty() ? 0 : r.dims[0];
  if (a.valid() && a.dim(dim) == 0) {
    return {lw.Fail(OutOfRange(maximum ? "max" : "min", "(): Expected reduction dim ", dim,
                               " to have non-zero size.")),
            {}};
  }
  const Place p = ExtremumAt(a, maximum, dim);
  return {r.Shaped(p.value), r.Shaped(Cast(p.index, DType::kI64))};
}

template <bool maximum>
Values ArgExtremum(Lowering& lw) {
  const Reduction r = ReductionOf(lw);
  Value a = lw.Tensor("self");
  int64_t dim = 0;
  if (r.dims.size() == 1) {
    dim = r.dims[0];
  } else {
    a = lw.fn().Reshape(a, Dims{a.numel()});
  }
  return {r.Shaped(Cast(ExtremumAt(a, maximum, dim).index, DType::kI64))};
}

constexpr OpDef Reduce(std::string_view name, LowerFn lower) {
  return {.name = name, .kind = Kind::kReduce, .lower = lower};
}

constexpr OpDef kRows[] = {
    // Older names without meta kernels.
    {.name = "aten::_aminmax", .kind = Kind::kReduce, .lower = MinAndMax, .meta = Meta::kInfer},
    {.name = "aten::_aminmax.dim", .kind = Kind::kReduce, .lower = MinAndMax, .meta = Meta::kInfer},
    Reduce("aten::amax", Extremum<Monoid::kMax>),
    Reduce("aten::amin", Extremum<Monoid::kMin>),
    Reduce("aten::aminmax", MinAndMax),
    Reduce("aten::argmax", ArgExtremum<true>),
    Reduce("aten::argmin", ArgExtremum<false>),
    Reduce("aten::max", ExtremumOfAll<Monoid::kMax>),
    Reduce("aten::max.dim", ExtremumAlong<true>),
    Reduce("aten::min", ExtremumOfAll<Monoid::kMin>),
    Reduce("aten::min.dim", ExtremumAlong<false>),
};

}  // namespace

std::span<const OpDef> ExtremumOps() { return kRows; }

}  // namespace tpu::ops
