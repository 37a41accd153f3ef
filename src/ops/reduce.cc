// Sums, products, means, norms, variances, truth of all or any, and other reductions to one number.
// Maxima and minima are in extremum.cc.
#include <cmath>

#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/reduction.h"

namespace tpu::ops {
namespace {

using hlo::Monoid;
using hlo::Value;
using hlo::Values;

// The type PyTorch sums in: `dtype`, else that of `out`, else int64 for integers, else the
// tensor's.
DType SumType(const Lowering& lw, bool widen = true) {
  if (lw.Has("dtype")) return *lw.Type("dtype");
  if (lw.Has("out")) return lw.TensorType("out");
  const DType t = lw.TensorType("self");
  return widen && IsIntegral(t) ? DType::kI64 : t;
}

// `self` in the type of the call, then in that of its accumulator.
Value Summand(Lowering& lw, bool widen = true) {
  const DType t = SumType(lw, widen);
  return Cast(lw.TensorAs("self", t), OpMathType(t));
}

template <Monoid monoid>
Values Accumulate(Lowering& lw) {
  const Reduction r = ReductionOf(lw);
  return {r.Shaped(r.Over(Summand(lw), monoid))};
}

Value MeanOf(Value a, const Reduction& r) {
  return r.Over(a, Monoid::kAdd) / static_cast<double>(r.count());
}

Values Mean(Lowering& lw) {
  const Reduction r = ReductionOf(lw);
  return {r.Shaped(MeanOf(Summand(lw, false), r))};
}

Values NanSum(Lowering& lw) {
  const Reduction r = ReductionOf(lw);
  Value a = lw.Tensor("self");
  if (IsFloat(a.dtype())) a = lw.fn().Select(IsNan(a), Like(a, 0.0), a);
  const DType t = SumType(lw);
  return {r.Shaped(r.Over(Cast(Cast(a, t), OpMathType(t)), Monoid::kAdd))};
}

// PyTorch gives uint8 for uint8.
Values Truth(Lowering& lw, Monoid monoid, const Reduction& r) {
  const DType t = lw.TensorType("self") == DType::kU8 ? DType::kU8 : DType::kBool;
  return {Cast(r.Shaped(r.Over(lw.TensorAs("self", DType::kBool), monoid)), t)};
}

template <Monoid monoid>
Values AnyAll(Lowering& lw) {
  return Truth(lw, monoid, ReductionOf(lw));
}

// An empty list of dimensions reduces nothing here, None everything.
template <Monoid monoid>
Values AnyAllDims(Lowering& lw) {
  Reduction r = ReductionOf(lw);
  if (lw.Has("dim") && lw.Ints("dim").empty()) r.dims.clear();
  return Truth(lw, monoid, r);
}

Values CountNonzero(Lowering& lw) {
  const Reduction r = ReductionOf(lw);
  const Value set = lw.TensorAs("self", DType::kBool);
  return {r.Over(Cast(set, DType::kI64), Monoid::kAdd)};
}

// --- Norms.

Value Magnitude(Value a) {
  return IsComplex(a.dtype()) ? a.function()->Unary(hlo::UnaryOp::kAbs, a) : Abs(a);
}

Value NormOf(Value a, double p, const Reduction& r) {
  if (p == 0) {
    return r.Over(Cast(Ne(a, Like(a, int64_t{0})), RealOf(a.dtype())), Monoid::kAdd);
  }
  if (r.count() == 1) return r.Over(Magnitude(a), Monoid::kAdd);
  if (p == 2) {
    if (!IsComplex(a.dtype())) return Sqrt(r.Over(a * a, Monoid::kAdd));
    hlo::Function& fn = *a.function();
    const Value re = fn.Unary(hlo::UnaryOp::kReal, a), im = fn.Unary(hlo::UnaryOp::kImag, a);
    return Sqrt(r.Over(re * re + im * im, Monoid::kAdd));
  }
  const Value size = Magnitude(a);
  if (p == 1) return r.Over(size, Monoid::kAdd);
  if (p == INFINITY) return r.Over(size, Monoid::kMax);
  if (p == -INFINITY) return r.Over(size, Monoid::kMin);
  const Value sum = r.Over(Pow(size, Like(size, p)), Monoid::kAdd);
  return Pow(sum, Like(sum, 1 / p));
}

Values Norm(Lowering& lw, std::string_view order) {
  const Reduction r = ReductionOf(lw);
  const double p = lw.NumberType(order) == DType::kInvalid ? 2 : lw.StaticNumber(order);
  DType t = lw.TensorType("self");
  if (lw.Has("dtype")) t = IsComplex(t) ? ComplexOf(*lw.Type("dtype")) : *lw.Type("dtype");
  const Value a = Cast(lw.TensorAs("self", t), OpMathType(t));
  return {r.Shaped(NormOf(a, p, r))};
}
Values VectorNorm(Lowering& lw) { return Norm(lw, "ord"); }
Values PNorm(Lowering& lw) { return Norm(lw, "p"); }

// --- Variances, in two passes.

struct Moments {
  Value var, mean;
};

Moments MomentsOf(Lowering& lw) {
  const Reduction r = ReductionOf(lw);
  const double correction =
      lw.NumberType("correction") == DType::kInvalid ? 1 : lw.StaticNumber("correction");
  Value a = lw.Tensor("self");
  if (IsIntegral(a.dtype())) {
    lw.Fail(InvalidArgument("std and var only support floating point and complex dtypes"));
  }
  a = Cast(a, OpMathType(a.dtype()));
  const Value mean = MeanOf(a, r), off = a - r.Spread(mean);
  Value square = off * off;
  if (IsComplex(a.dtype())) {
    const Value re = lw.fn().Unary(hlo::UnaryOp::kReal, off);
    const Value im = lw.fn().Unary(hlo::UnaryOp::kImag, off);
    square = re * re + im * im;
  }
  const double freedom = std::max(0.0, static_cast<double>(r.count()) - correction);
  return {r.Shaped(r.Over(square, Monoid::kAdd) / freedom), r.Shaped(mean)};
}

Values Var(Lowering& lw) { return {MomentsOf(lw).var}; }
Values Std(Lowering& lw) { return {Sqrt(MomentsOf(lw).var)}; }
Values VarMean(Lowering& lw) {
  const Moments m = MomentsOf(lw);
  return {m.var, m.mean};
}
Values StdMean(Lowering& lw) {
  const Moments m = MomentsOf(lw);
  return {Sqrt(m.var), m.mean};
}

// One program here, five calls as PyTorch composes it.
Values LogSumExp(Lowering& lw) {
  Reduction r = ReductionOf(lw);
  Value a = lw.Tensor("self");
  a = Cast(a, IsIntegral(a.dtype()) ? DType::kF32 : OpMathType(a.dtype()));
  const bool is_complex = IsComplex(a.dtype());
  const Value real = is_complex ? lw.fn().Unary(hlo::UnaryOp::kReal, a) : a;
  Value peak = r.Over(real, Monoid::kMax);
  peak = lw.fn().Select(Eq(Abs(peak), INFINITY), Like(peak, 0.0), peak);
  const Value shift = Cast(peak, a.dtype());
  return {r.Shaped(Log(r.Over(Exp(a - r.Spread(shift)), Monoid::kAdd)) + shift)};
}

Values Trace(Lowering& lw) {
  const DType t = SumType(lw);
  const Value a = Cast(lw.TensorAs("self", t), OpMathType(t));
  if (a.rank() != 2) {
    return {
        lw.Fail(InvalidArgument("trace: expected a matrix, but got tensor with dim ", a.rank()))};
  }
  const hlo::Type index{DType::kI32, a.dims()};
  const Value diagonal = Eq(lw.fn().Iota(index, 0), lw.fn().Iota(index, 1));
  const Value kept = lw.fn().Select(diagonal, a, Like(a, int64_t{0}));
  return {lw.fn().Reduce(kept, Monoid::kAdd, Dims{0, 1})};
}

constexpr OpDef Reduce(std::string_view name, LowerFn lower, std::string_view statics = "") {
  return {.name = name, .kind = Kind::kReduce, .lower = lower, .statics = statics};
}

constexpr OpDef kRows[] = {
    Reduce("aten::all", AnyAll<Monoid::kAnd>),
    Reduce("aten::all.dim", AnyAll<Monoid::kAnd>),
    Reduce("aten::all.dims", AnyAllDims<Monoid::kAnd>),
    Reduce("aten::any", AnyAll<Monoid::kOr>),
    Reduce("aten::any.dim", AnyAll<Monoid::kOr>),
    Reduce("aten::any.dims", AnyAllDims<Monoid::kOr>),
    Reduce("aten::count_nonzero.dim_IntList", CountNonzero),
    Reduce("aten::linalg_vector_norm", VectorNorm, "ord"),
    Reduce("aten::logsumexp", LogSumExp),
    Reduce("aten::mean.dim", Mean),
    Reduce("aten::nansum", NanSum),
    Reduce("aten::norm.ScalarOpt_dim", PNorm, "p"),
    Reduce("aten::norm.ScalarOpt_dim_dtype", PNorm, "p"),
    Reduce("aten::prod", Accumulate<Monoid::kMul>),
    Reduce("aten::prod.dim_int", Accumulate<Monoid::kMul>),
    Reduce("aten::std.correction", Std, "correction"),
    Reduce("aten::std_mean.correction", StdMean, "correction"),
    Reduce("aten::sum.dim_IntList", Accumulate<Monoid::kAdd>),
    Reduce("aten::trace", Trace),
    Reduce("aten::var.correction", Var, "correction"),
    Reduce("aten::var_mean.correction", VarMean, "correction"),
};

}  // namespace

std::span<const OpDef> ReduceOps() { return kRows; }

}  // namespace tpu::ops
