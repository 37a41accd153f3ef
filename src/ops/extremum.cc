// Maxima and minima: of all, along dimensions, with their places.
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
  return InvalidArgument(op, "(): Expected reduction dim to be specified for input.numel() == 0. "
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

// The extremum along one dimension and its first place; a NaN beats everything.
Place ExtremumAt(Value a, bool maximum, int64_t dim) {
  if (!a.valid()) return {};
  if (IsBool(a.dtype())) {
    const Place p = ExtremumAt(Cast(a, DType::kU8), maximum, dim);
    return {Cast(p.value, DType::kBool), p.index};
  }
  Function& fn = *a.function();
  const bool is_long = a.dim(dim) > INT32_MAX;
  const DType index_type = is_long ? DType::kI64 : DType::kI32;
  const Value at = fn.Iota({index_type, a.dims()}, dim);
  // The initial value loses even to its equals: its index is the largest.
  const Value worst = Bound(fn, a.dtype(), !maximum);
  const Value last = fn.Scalar(index_type, is_long ? INT64_MAX : INT32_MAX);
  const bool is_float = IsFloat(a.dtype());
  const Values best =
      fn.Reduce({a, at}, {worst, last}, Dims{dim}, [&](Function& f, const Values& v) {
        Value better = maximum ? Gt(v[0], v[2]) : Lt(v[0], v[2]);
        Value equal = Eq(v[0], v[2]);
        if (is_float) {
          const Value left_nan = IsNan(v[0]), right_nan = IsNan(v[2]);
          better = better | (left_nan & ~right_nan);
          equal = equal | (left_nan & right_nan);
        }
        const Value left = better | (equal & Lt(v[1], v[3]));
        return Values{f.Select(left, v[0], v[2]), f.Select(left, v[1], v[3])};
      });
  return {best[0], best[1]};
}

template <bool maximum>
Values ExtremumAlong(Lowering& lw) {
  const Reduction r = ReductionOf(lw);
  const Value a = AtLeast1d(lw.Tensor("self"));
  const bool flat = r.from.empty();
  const Place p = ExtremumAt(a, maximum, flat ? 0 : r.dims[0]);
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
    Reduce("aten::_aminmax", MinAndMax),
    Reduce("aten::_aminmax.dim", MinAndMax),
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
