// Pointwise operators of one tensor. Activations are in activation.cc.
#include <cmath>
#include <numbers>

#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/quotient.h"
#include "ops/rows.h"
#include "ops/transcendental.h"

namespace tpu::ops {
namespace {

using hlo::UnaryOp;
using hlo::Value;
using hlo::Values;

// torch.abs, neg, ceil ... of integers and bool are the identity or plain integer work, which the
// half types' detour over float32 must not touch.
template <UnaryOp op>
Values IdentityOnIntegers(Lowering& lw) {
  const Value a = lw.Tensor("self");
  return {IsIntegral(a.dtype()) ? a : lw.fn().Unary(op, a)};
}

Values AbsOp(Lowering& lw) {
  const Value a = lw.Tensor("self");
  return {IsUnsigned(a.dtype()) || IsBool(a.dtype()) ? a : lw.fn().Unary(UnaryOp::kAbs, a)};
}

Values SignOp(Lowering& lw) {
  const Value a = lw.Tensor("self");
  if (IsBool(a.dtype())) return {a};
  if (IsUnsigned(a.dtype())) return {lw.fn().Select(Ne(a, 0.0), Like(a, int64_t{1}), a)};
  if (IsComplex(a.dtype()) || IsInteger(a.dtype())) return {lw.fn().Unary(UnaryOp::kSign, a)};
  // torch.sign(NaN) is 0 and sign(-0.0) is 0.
  return {lw.fn().Convert(Gt(a, 0.0), a.dtype()) - lw.fn().Convert(Lt(a, 0.0), a.dtype())};
}

Values SgnOp(Lowering& lw) {
  const Value a = lw.Tensor("self");
  if (!IsComplex(a.dtype())) return SignOp(lw);
  const Value size = lw.fn().Unary(UnaryOp::kAbs, a);
  const Value quotient = a / Cast(size, a.dtype());
  return {lw.fn().Select(Eq(size, 0.0), Like(a, 0.0), quotient)};
}

Values Reciprocal(Lowering& lw) {
  const Value a = lw.Tensor("self");
  return {Like(a, 1.0) / a};
}

Values BitwiseNot(Lowering& lw) { return {~lw.Tensor("self")}; }

// A pole at both zeros, where chlo.digamma has one sign or NaN, by plugin.
Values Digamma(Lowering& lw) {
  const Value a = lw.Tensor("self");
  const Value pole = Like(a, -1.0) / a;
  return {lw.fn().Select(Eq(a, 0.0), pole, lw.fn().Unary(UnaryOp::kDigamma, a))};
}

Values LogicalNot(Lowering& lw) {
  const Value a = lw.Tensor("self");
  return {Eq(a, Like(a, int64_t{0}))};
}

// By way of atan2 with both operands varying: the CPU plugin of API 0.115 computes chlo.atan, and
// atan2 with a constant 1, wrongly in arrays of 64 elements and more (off by 10, not by an ulp).
Values Atan(Lowering& lw) {
  const Value a = lw.Tensor("self");
  if (IsComplex(a.dtype())) return {lw.fn().Unary(UnaryOp::kAtan, a)};
  const Value size = Abs(a), one = Like(a, 1.0);
  const Value angle = lw.fn().Binary(hlo::BinaryOp::kAtan2, Min(size, one), Max(size, one));
  const Value folded = lw.fn().Select(Gt(size, 1.0), std::numbers::pi / 2 - angle, angle);
  return {lw.fn().Select(Lt(a, 0.0), -folded, lw.fn().Select(Eq(a, 0.0), a, folded))};
}

template <int base>
Values LogBase(Lowering& lw) {
  const Value a = Log(lw.Tensor("self"));
  return {a * (1.0 / std::log(static_cast<double>(base)))};
}

Values Exp2(Lowering& lw) {
  const Value a = lw.Tensor("self");
  if (IsComplex(a.dtype())) return {Exp(a * std::numbers::ln2)};
  return {lw.fn().Binary(hlo::BinaryOp::kPower, Like(a, 2.0), a)};
}

Values Frac(Lowering& lw) {
  const Value a = lw.Tensor("self");
  const Value whole = lw.fn().Select(Lt(a, 0.0), lw.fn().Unary(UnaryOp::kCeil, a), Floor(a));
  return {a - whole};
}

Values Trunc(Lowering& lw) {
  const Value a = lw.Tensor("self");
  if (IsIntegral(a.dtype())) return {a};
  return {lw.fn().Select(Lt(a, 0.0), lw.fn().Unary(UnaryOp::kCeil, a), Floor(a))};
}

// 10^decimals in and out again, ties to even.
Values RoundDecimals(Lowering& lw) {
  const Value a = lw.Tensor("self");
  if (IsIntegral(a.dtype())) return {a};
  const int64_t decimals = lw.Int("decimals");
  const double ten = std::pow(10.0, static_cast<double>(std::abs(decimals)));
  const auto round = [&](Value v) { return lw.fn().Unary(UnaryOp::kRoundNearestEven, v); };
  if (decimals == 0) return {round(a)};
  const Value by = Like(a, ten);
  return {decimals > 0 ? ExactQuotient(round(a * by), by) : round(ExactQuotient(a, by)) * by};
}

Values IsNanOp(Lowering& lw) {
  const Value a = lw.Tensor("self");
  if (IsIntegral(a.dtype())) return {lw.fn().Constant({DType::kBool, a.dims()}, false)};
  return {Ne(a, a)};
}

template <bool positive>
Values IsInfOf(Lowering& lw) {
  const Value a = lw.Tensor("self");
  if (IsIntegral(a.dtype())) return {lw.fn().Constant({DType::kBool, a.dims()}, false)};
  return {Eq(a, positive ? INFINITY : -INFINITY)};
}

Values IsInf(Lowering& lw) {
  const Value a = lw.Tensor("self");
  if (IsIntegral(a.dtype())) return {lw.fn().Constant({DType::kBool, a.dims()}, false)};
  if (!IsComplex(a.dtype())) return {Eq(Abs(a), INFINITY)};
  const Value re = lw.fn().Unary(UnaryOp::kReal, a), im = lw.fn().Unary(UnaryOp::kImag, a);
  return {Eq(Abs(re), INFINITY) | Eq(Abs(im), INFINITY)};
}

Values SignBit(Lowering& lw) {
  const Value a = lw.Tensor("self");
  if (IsUnsigned(a.dtype()) || IsBool(a.dtype())) {
    return {lw.fn().Constant({DType::kBool, a.dims()}, false)};
  }
  if (IsInteger(a.dtype())) return {Lt(a, 0.0)};
  // -0.0 and negative NaN count: look at the bit itself.
  const DType bits = ItemSize(a.dtype()) == 8 ? DType::kI64 : DType::kI32;
  return {Lt(lw.fn().BitcastConvert(a, bits), 0.0)};
}

Values Angle(Lowering& lw) {
  const Value a = lw.Tensor("self");
  if (IsComplex(a.dtype())) {
    return {lw.fn().Binary(hlo::BinaryOp::kAtan2, lw.fn().Unary(UnaryOp::kImag, a),
                           lw.fn().Unary(UnaryOp::kReal, a))};
  }
  const Value out = lw.fn().Select(Lt(a, 0.0), Like(a, std::numbers::pi), Like(a, 0.0));
  return {lw.fn().Select(IsNan(a), a, out)};
}

Values Conj(Lowering& lw) {
  const Value a = lw.Tensor("self");
  if (!IsComplex(a.dtype())) return {a};
  return {lw.fn().Binary(hlo::BinaryOp::kComplex, lw.fn().Unary(UnaryOp::kReal, a),
                         -lw.fn().Unary(UnaryOp::kImag, a))};
}

Values NanToNum(Lowering& lw) {
  const Value a = lw.Tensor("self");
  if (IsIntegral(a.dtype())) return {a};
  const DType t = lw.Promoted();  // the limits are those of the tensor's own type
  const double top = t == DType::kF64    ? 1.7976931348623157e308
                     : t == DType::kF16  ? 65504.0
                     : t == DType::kBF16 ? 3.3895313892515355e38
                                         : 3.4028234663852886e38;
  const auto number = [&](const char* name, double otherwise) {
    return lw.Has(name) ? lw.Number(name, a.dtype()) : Like(a, otherwise);
  };
  Value out = lw.fn().Select(IsNan(a), number("nan", 0.0), a);
  out = lw.fn().Select(Eq(a, INFINITY), number("posinf", top), out);
  return {lw.fn().Select(Eq(a, -INFINITY), number("neginf", -top), out)};
}

Values Sinc(Lowering& lw) {
  const Value a = lw.Tensor("self"), x = a * std::numbers::pi;
  const Value zero = Eq(a, Like(a, 0.0));
  return {lw.fn().Select(zero, Like(a, 1.0), lw.fn().Unary(UnaryOp::kSine, x) / x)};
}

Values Logit(Lowering& lw) {
  Value a = lw.Tensor("self");
  if (lw.Has("eps")) {
    const Value eps = lw.Number("eps", a.dtype());
    // Comparisons keep NaN.
    a = lw.fn().Select(Lt(a, eps), eps, lw.fn().Select(Gt(a, 1.0 - eps), 1.0 - eps, a));
  }
  return {Log(a / (1.0 - a))};
}

template <Value (*function)(Value)>
Values Of(Lowering& lw) {
  return {function(lw.Tensor("self"))};
}

constexpr OpDef kRows[] = {
    Pointwise("aten::abs", AbsOp, In::kPromote, Out::kReal),
    Unary("aten::acos", UnaryOp::kAcos, In::kToFloat),
    Unary("aten::acosh", UnaryOp::kAcosh, In::kToFloat),
    Pointwise("aten::angle", Angle, In::kToFloat, Out::kReal),
    Unary("aten::asin", UnaryOp::kAsin, In::kToFloat),
    Unary("aten::asinh", UnaryOp::kAsinh, In::kToFloat),
    Pointwise("aten::atan", Atan, In::kToFloat),
    Unary("aten::atanh", UnaryOp::kAtanh, In::kToFloat),
    Pointwise("aten::bitwise_not", BitwiseNot),
    Pointwise("aten::ceil", IdentityOnIntegers<UnaryOp::kCeil>),
    Pointwise("aten::_conj_physical", Conj),
    Unary("aten::cos", UnaryOp::kCosine, In::kToFloat),
    Pointwise("aten::cosh", Of<accurate::Cosh>, In::kToFloat),
    Pointwise("aten::digamma", Digamma, In::kToFloat),
    Pointwise("aten::erf", Of<accurate::Erf>, In::kToFloat),
    Pointwise("aten::erfc", Of<accurate::Erfc>, In::kToFloat),
    Pointwise("aten::erfinv", Of<accurate::Erfinv>, In::kToFloat),
    Unary("aten::exp", UnaryOp::kExp, In::kToFloat),
    Pointwise("aten::exp2", Exp2, In::kToFloat),
    Pointwise("aten::expm1", Of<accurate::Expm1>, In::kToFloat),
    Pointwise("aten::floor", IdentityOnIntegers<UnaryOp::kFloor>),
    Pointwise("aten::frac", Frac),
    Pointwise("aten::isinf", IsInf, In::kPromote, Out::kBool),
    Pointwise("aten::isnan", IsNanOp, In::kPromote, Out::kBool),
    Pointwise("aten::isneginf", IsInfOf<false>, In::kPromote, Out::kBool),
    Pointwise("aten::isposinf", IsInfOf<true>, In::kPromote, Out::kBool),
    Pointwise("aten::lgamma", Of<accurate::Lgamma>, In::kToFloat),
    Unary("aten::log", UnaryOp::kLog, In::kToFloat),
    Pointwise("aten::log10", LogBase<10>, In::kToFloat),
    Unary("aten::log1p", UnaryOp::kLog1p, In::kToFloat),
    Pointwise("aten::log2", LogBase<2>, In::kToFloat),
    Pointwise("aten::logical_not", LogicalNot, In::kPromote, Out::kBool),
    Pointwise("aten::logit", Logit, In::kToFloat),
    Pointwise("aten::nan_to_num", NanToNum),
    Unary("aten::neg", UnaryOp::kNegate),
    Pointwise("aten::reciprocal", Reciprocal, In::kToFloat),
    Pointwise("aten::round", IdentityOnIntegers<UnaryOp::kRoundNearestEven>),
    Pointwise("aten::round.decimals", RoundDecimals),
    Unary("aten::rsqrt", UnaryOp::kRsqrt, In::kToFloat),
    Pointwise("aten::sgn", SgnOp),
    Pointwise("aten::sign", SignOp),
    Pointwise("aten::signbit", SignBit, In::kPromote, Out::kBool),
    Unary("aten::sin", UnaryOp::kSine, In::kToFloat),
    Pointwise("aten::sinc", Sinc, In::kToFloat),
    Pointwise("aten::sinh", Of<accurate::Sinh>, In::kToFloat),
    Unary("aten::special_i1e", UnaryOp::kBesselI1e, In::kToFloat),
    Unary("aten::sqrt", UnaryOp::kSqrt, In::kToFloat),
    Unary("aten::tan", UnaryOp::kTan, In::kToFloat),
    Pointwise("aten::tanh", Of<accurate::Tanh>, In::kToFloat),
    Pointwise("aten::trunc", Trunc),
};

}  // namespace

std::span<const OpDef> UnaryOps() { return kRows; }

}  // namespace tpu::ops
