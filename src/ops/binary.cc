// Pointwise operators of two tensors or a tensor and a number, and of three.
#include <cmath>

#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/quotient.h"
#include "ops/rows.h"

namespace tpu::ops {
namespace {

using hlo::BinaryOp;
using hlo::UnaryOp;
using hlo::Value;
using hlo::Values;

// self + alpha * other. Bool addition is a logical or, as in PyTorch.
template <int sign>
Values AddScaled(Lowering& lw) {
  const Value a = lw.Tensor("self"), b = lw.Tensor("other");
  const Value scaled = b * lw.Number("alpha", a.dtype());
  return {sign > 0 ? a + scaled : a - scaled};
}

Values RsubScaled(Lowering& lw) {
  const Value a = lw.Tensor("self"), b = lw.Tensor("other");
  return {b - a * lw.Number("alpha", a.dtype())};
}

// C's remainder has the dividend's sign; PyTorch's and Python's have the divisor's.
Value FloorRemainder(Value a, Value b) {
  hlo::Function& fn = *a.function();
  const Value r = fn.Binary(BinaryOp::kRemainder, a, b);
  if (IsUnsigned(a.dtype())) return r;
  const Value wrong = Ne(r, 0.0) & Ne(Lt(r, 0.0), Lt(b, 0.0));
  return fn.Select(wrong, r + b, r);
}

Value TruncDivide(Value a, Value b) {
  if (IsIntegral(a.dtype())) return a / b;
  const Value q = ExactQuotient(a, b);
  hlo::Function& fn = *a.function();
  return fn.Select(Lt(q, 0.0), fn.Unary(UnaryOp::kCeil, q), Floor(q));
}

Value FloorDivide(Value a, Value b) {
  hlo::Function& fn = *a.function();
  if (IsUnsigned(a.dtype())) return a / b;
  if (IsIntegral(a.dtype())) {
    const Value q = a / b, r = fn.Binary(BinaryOp::kRemainder, a, b);
    return fn.Select(Ne(r, 0.0) & Ne(Lt(r, 0.0), Lt(b, 0.0)), q - 1.0, q);
  }
  // As c10::div_floor_floating, so that inf, -0.0 and rounding agree.
  const Value mod = fn.Binary(BinaryOp::kRemainder, a, b);
  Value div = (a - mod) / b;
  div = fn.Select(Ne(mod, 0.0) & Ne(Lt(b, 0.0), Lt(mod, 0.0)), div - 1.0, div);
  const Value down = Floor(div);
  Value out = fn.Select(Gt(div - down, 0.5), down + 1.0, down);
  const Value signed_zero = fn.Select(Lt(a / b, 0.0), Like(a, -0.0), Like(a, 0.0));
  out = fn.Select(Eq(div, 0.0), signed_zero, out);
  return fn.Select(Eq(b, 0.0), a / b, out);
}

// The operands of a division that stays in integers, where PyTorch's CPU has no bools and raises
// for 0. Numbers were looked at on the host: see OpDef::divisor.
struct Division {
  Value a, b;
};
Division OperandsOfDivision(Lowering& lw) {
  const Division d{lw.Tensor("self"), lw.Tensor("other")};
  if (IsBool(d.a.dtype())) lw.Fail(Unimplemented("division of bools"));
  if (IsInteger(d.a.dtype()) && lw.NumberType("other") == DType::kInvalid) {
    lw.CheckValue(Eq(d.b, 0.0), d.b, "other", "ZeroDivisionError");
  }
  return d;
}

Values DivMode(Lowering& lw) {
  const std::string_view mode = lw.String("rounding_mode");
  if (!mode.empty()) {
    const auto [a, b] = OperandsOfDivision(lw);
    return {mode == "floor" ? FloorDivide(a, b) : TruncDivide(a, b)};
  }
  const Value a = lw.Tensor("self"), b = lw.Tensor("other");
  const DType t = IsIntegral(a.dtype()) ? DType::kF32 : a.dtype();
  return {Cast(a, t) / Cast(b, t)};
}

template <Value (*divide)(Value, Value)>
Values Divided(Lowering& lw) {
  const auto [a, b] = OperandsOfDivision(lw);
  return {divide(a, b)};
}

Value TruncRemainder(Value a, Value b) { return a.function()->Binary(BinaryOp::kRemainder, a, b); }

// Python's pow on integers: a negative exponent gives 0, 1 or -1. XLA looks at the low 6 bits of an
// exponent; greater ones are squared and multiplied in a loop that most calls leave at once
// (written out, the chain of squares takes XLA for ever in some layouts). All of it modulo 2 to the
// width, as PyTorch wraps.
Value IntegerPower(Value a, Value b) {
  if (IsBool(a.dtype())) return a | ~b;
  hlo::Function& fn = *a.function();
  const Value zero = Like(b, int64_t{0}), one = Like(b, int64_t{1});
  const Value large = Gt(b, Like(b, int64_t{63}));
  const Values out = fn.While(
      {a, Select(large, b, zero), one},
      [](hlo::Function& f, const Values& v) {
        return Values{f.Reduce(Ne(v[1], 0.0), hlo::Monoid::kOr, Iota(v[1].rank()))};
      },
      [&](hlo::Function& f, const Values& v) {
        const Value odd = Ne(v[1] & one, 0.0);
        return Values{v[0] * v[0], f.Binary(BinaryOp::kShiftRightLogical, v[1], one),
                      f.Select(odd, v[2] * v[0], v[2])};
      });
  if (out.size() != 3) return {};
  return Select(large, out[2], fn.Binary(BinaryOp::kPower, a, b));
}

Value Power(Value a, Value b) {
  return IsIntegral(a.dtype()) ? IntegerPower(a, b) : a.function()->Binary(BinaryOp::kPower, a, b);
}

Values PowOp(Lowering& lw) {
  const Values in = lw.Operands();
  return {Power(in[0], in[1])};
}

// Small exponents are products, as in PyTorch's CPU kernels: exact and cheap.
Values PowNumber(Lowering& lw) {
  const Value a = lw.Tensor("self");
  const double e = lw.StaticNumber("exponent");
  if (IsIntegral(a.dtype()) && e < 0) {
    return {lw.Fail(InvalidArgument("Integers to negative integer powers are not allowed."))};
  }
  if (lw.NumberType("exponent") == DType::kC128) {
    return {Power(a, lw.Number("exponent", a.dtype()))};
  }
  if (e == 0) return {Like(a, int64_t{1})};
  if (e == 1) return {a};
  if (e == 2) return {a * a};
  if (e == 3) return {a * a * a};
  if (!IsIntegral(a.dtype())) {
    if (e == 0.5) return {Sqrt(a)};
    if (e == -1) return {1.0 / a};
    if (e == -2) return {1.0 / (a * a)};
    if (e == -0.5) return {Rsqrt(a)};
  }
  return {Power(a, lw.Number("exponent", a.dtype()))};
}

template <BinaryOp op>
Values Logical(Lowering& lw) {
  const Values in = lw.Operands();
  return {lw.fn().Binary(op, Cast(in[0], DType::kBool), Cast(in[1], DType::kBool))};
}

// Shifts past the width: 0 (left), all sign bits (right). C leaves them open, PyTorch does not.
template <bool left>
Values Shifted(Lowering& lw, Value a, Value by) {
  const int64_t width = 8 * ItemSize(a.dtype());
  Value out_of_range = Ge(by, static_cast<double>(width));
  if (!IsUnsigned(a.dtype())) out_of_range = out_of_range | Lt(by, 0.0);
  if (left) {
    const Value shifted = lw.fn().Binary(BinaryOp::kShiftLeft, a, by);
    return {lw.fn().Select(out_of_range, Like(a, int64_t{0}), shifted)};
  }
  if (IsUnsigned(a.dtype())) {
    const Value shifted = lw.fn().Binary(BinaryOp::kShiftRightLogical, a, by);
    return {lw.fn().Select(out_of_range, Like(a, int64_t{0}), shifted)};
  }
  const Value clamped = lw.fn().Select(out_of_range, Like(by, width - 1), by);
  return {lw.fn().Binary(BinaryOp::kShiftRightArithmetic, a, clamped)};
}
template <bool left>
Values Shift(Lowering& lw) {
  const Values in = lw.Operands();
  return Shifted<left>(lw, in[0], in[1]);
}
// Python's operators have overloads of their own.
template <bool left>
Values ShiftByNumber(Lowering& lw) {
  const Value a = lw.Tensor("self");
  if (!IsInteger(a.dtype())) {
    return {lw.Fail(Unimplemented("shifts are not implemented for ", TorchName(a.dtype())))};
  }
  return Shifted<left>(lw, a, lw.fn().BroadcastTo(lw.Number("other", a.dtype()), a.dims()));
}

template <bool maximum>
Values FMinMax(Lowering& lw) {  // NaN loses
  const Value a = lw.Tensor("self"), b = lw.Tensor("other");
  const Value m = maximum ? Max(a, b) : Min(a, b);
  if (IsIntegral(a.dtype())) return {m};
  return {lw.fn().Select(IsNan(a), b, lw.fn().Select(IsNan(b), a, m))};
}

template <bool maximum>
Values MinMax(Lowering& lw) {
  const Value a = lw.Tensor("self"), b = lw.Tensor("other");
  return {maximum ? Max(a, b) : Min(a, b)};
}

// log(exp(a) + exp(b)) of complex numbers, whose larger one is that with the larger real part.
Value ComplexLogAddExp(hlo::Function& fn, Value a, Value b) {
  const Value ra = fn.Unary(UnaryOp::kReal, a), rb = fn.Unary(UnaryOp::kReal, b);
  const Value first = Ge(ra, rb);
  const Value big = Select(first, a, b), small = Select(first, b, a);
  const Value out = big + Log(Exp(small - big) + Like(a, 1.0));
  const Value lost = Eq(ra, rb) & Eq(Abs(ra), INFINITY);
  return Select(lost, Select(Lt(ra, 0.0), small, Log(Exp(a) + Exp(b))), out);
}

Values LogAddExp(Lowering& lw) {
  const Value a = lw.Tensor("self"), b = lw.Tensor("other");
  if (IsComplex(a.dtype())) return {ComplexLogAddExp(lw.fn(), a, b)};
  const Value m = Max(a, b);
  const Value out = m + Log1p(Exp(-Abs(a - b)));
  return {lw.fn().Select(Eq(Abs(m), INFINITY) & Eq(a, b), m, out)};
}

Values LogAddExp2(Lowering& lw) {
  const double ln2 = std::log(2.0);
  const Value a = lw.Tensor("self"), b = lw.Tensor("other");
  const Value m = Max(a, b);
  const Value out = m + Log1p(Exp(-Abs(a - b) * ln2)) / ln2;
  return {lw.fn().Select(Eq(Abs(m), INFINITY) & Eq(a, b), m, out)};
}

Values Hypot(Lowering& lw) {
  const Value a = Abs(lw.Tensor("self")), b = Abs(lw.Tensor("other"));
  const Value big = Max(a, b), small = Min(a, b);
  const Value ratio = small / lw.fn().Select(Eq(big, 0.0), Like(big, 1.0), big);
  const Value out = big * Sqrt(1.0 + ratio * ratio);
  const Value inf = Eq(a, INFINITY) | Eq(b, INFINITY);
  return {lw.fn().Select(inf, Like(a, INFINITY), out)};
}

Values CopySign(Lowering& lw) {
  const Value a = lw.Tensor("self"), b = lw.Tensor("other");
  const DType bits = ItemSize(a.dtype()) == 8 ? DType::kI64 : DType::kI32;
  const Value negative = Lt(lw.fn().BitcastConvert(b, bits), 0.0);
  return {lw.fn().Select(negative, -Abs(a), Abs(a))};
}

// Of NaN 0, as PyTorch's kernels have it.
Values Heaviside(Lowering& lw) {
  const Value a = lw.Tensor("self"), v = lw.Tensor("values");
  const Value zero = Like(a, int64_t{0}), one = Like(a, int64_t{1});
  return {lw.fn().Select(Eq(a, zero), v, lw.fn().Select(Gt(a, zero), one, zero))};
}

Values XLogY(Lowering& lw) {
  const Values in = lw.Operands();
  const Value product = in[0] * Log(in[1]);
  const Value out = lw.fn().Select(Eq(in[0], 0.0), Like(product, 0.0), product);
  return {lw.fn().Select(IsNan(in[1]), in[1], out)};
}

Values NextAfter(Lowering& lw) {
  // In the operands' own width: in float32 the neighbour would be too near.
  const DType t = lw.Promoted();
  const Value a = Cast(lw.Tensor("self"), t), b = Cast(lw.Tensor("other"), t);
  return {lw.fn().Binary(BinaryOp::kNextAfter, a, b)};
}

template <BinaryOp op>
Values Gcd(Lowering& lw) {
  const hlo::Type type = lw.Tensor("self").type();
  const Value a = IsUnsigned(type.dtype) ? lw.Tensor("self") : Abs(lw.Tensor("self"));
  const Value b = IsUnsigned(type.dtype) ? lw.Tensor("other") : Abs(lw.Tensor("other"));
  const Values out = lw.fn().While(
      {a, b},
      [](hlo::Function& fn, const Values& v) {
        Dims all = Iota(v[1].rank());
        return Values{fn.Reduce(Ne(v[1], 0.0), hlo::Monoid::kOr, all)};
      },
      [](hlo::Function& fn, const Values& v) {
        const Value done = Eq(v[1], 0.0);
        const Value safe = fn.Select(done, Like(v[1], int64_t{1}), v[1]);
        const Value r = fn.Binary(BinaryOp::kRemainder, v[0], safe);
        return Values{fn.Select(done, v[0], v[1]), fn.Select(done, v[1], r)};
      });
  if (op == BinaryOp::kRemainder) return {out[0]};
  const Value safe = lw.fn().Select(Eq(out[0], 0.0), Like(out[0], int64_t{1}), out[0]);
  return {a / safe * b};
}

Values Where(Lowering& lw) {
  const DType t = lw.Expected(0) ? lw.Expected(0)->dtype : lw.Promoted();
  return {lw.fn().Select(lw.TensorAs("condition", DType::kBool), lw.TensorAs("self", t),
                         lw.TensorAs("other", t))};
}

Values AddCMul(Lowering& lw) {
  const Value a = lw.Tensor("self");
  return {a + lw.Number("value", a.dtype()) * lw.Tensor("tensor1") * lw.Tensor("tensor2")};
}

Values AddCDiv(Lowering& lw) {
  const Value a = lw.Tensor("self");
  return {a + lw.Number("value", a.dtype()) * lw.Tensor("tensor1") / lw.Tensor("tensor2")};
}

// The form of aten/native/Lerp.h: exact at both ends.
Value LerpOf(Value a, Value b, Value w) {
  hlo::Function& fn = *a.function();
  const Value size = IsComplex(w.dtype()) ? fn.Unary(UnaryOp::kAbs, w) : Abs(w);
  return fn.Select(Lt(size, 0.5), a + w * (b - a), b - (b - a) * (1.0 - w));
}
Values LerpNumber(Lowering& lw) {
  const Value a = lw.Tensor("self");
  return {LerpOf(a, lw.Tensor("end"), lw.Number("weight", a.dtype()))};
}
Values LerpTensor(Lowering& lw) {
  return {LerpOf(lw.Tensor("self"), lw.Tensor("end"), lw.Tensor("weight"))};
}

// Comparisons keep NaN in `self`; a NaN bound gives NaN.
Values Clamp(Lowering& lw) {
  Value a = lw.Tensor("self");
  const auto bound = [&](const char* name) {
    return lw.TensorDims(name).empty() && lw.NumberType(name) != DType::kInvalid
               ? lw.Number(name, a.dtype())
               : lw.Tensor(name);
  };
  if (lw.Has("min")) a = Max(a, bound("min"));
  if (lw.Has("max")) a = Min(a, bound("max"));
  return {a};
}

Values Complex(Lowering& lw) {
  const DType t = lw.TensorType("real");
  const DType part = t == DType::kF16 ? DType::kF32 : t;
  return {lw.fn().Binary(BinaryOp::kComplex, lw.TensorAs("real", part), lw.TensorAs("imag", part))};
}

Values Polar(Lowering& lw) {
  const Value r = lw.Tensor("abs"), phi = lw.Tensor("angle");
  return {lw.fn().Binary(BinaryOp::kComplex, r * lw.fn().Unary(UnaryOp::kCosine, phi),
                         r * lw.fn().Unary(UnaryOp::kSine, phi))};
}

constexpr OpDef Divides(std::string_view name, LowerFn lower) {
  OpDef row = Pointwise(name, lower);
  row.divisor = "other";
  return row;
}

constexpr OpDef kRows[] = {
    Pointwise("aten::__ilshift__.Scalar", ShiftByNumber<true>),
    Pointwise("aten::__ilshift__.Tensor", Shift<true>),
    Pointwise("aten::__irshift__.Scalar", ShiftByNumber<false>),
    Pointwise("aten::__irshift__.Tensor", Shift<false>),
    Pointwise("aten::__lshift__.Scalar", ShiftByNumber<true>),
    Pointwise("aten::__lshift__.Tensor", Shift<true>),
    Pointwise("aten::__rshift__.Scalar", ShiftByNumber<false>),
    Pointwise("aten::__rshift__.Tensor", Shift<false>),
    Fitting(Pointwise("aten::add.Tensor", AddScaled<1>)),
    Pointwise("aten::addcdiv", AddCDiv),
    Pointwise("aten::addcmul", AddCMul),
    Binary("aten::atan2", BinaryOp::kAtan2, In::kToFloat),
    Binary("aten::bitwise_and.Tensor", BinaryOp::kAnd),
    Pointwise("aten::bitwise_left_shift.Tensor", Shift<true>),
    Binary("aten::bitwise_or.Tensor", BinaryOp::kOr),
    Pointwise("aten::bitwise_right_shift.Tensor", Shift<false>),
    Binary("aten::bitwise_xor.Tensor", BinaryOp::kXor),
    Fitting(Pointwise("aten::clamp", Clamp)),
    Pointwise("aten::clamp.Tensor", Clamp),
    Fitting(Pointwise("aten::clamp_max", Clamp)),
    Pointwise("aten::clamp_max.Tensor", Clamp),
    Fitting(Pointwise("aten::clamp_min", Clamp)),
    Pointwise("aten::clamp_min.Tensor", Clamp),
    Pointwise("aten::complex", Complex, In::kSelf, Out::kAsLowered),
    Pointwise("aten::copysign.Tensor", CopySign, In::kToFloat),
    Binary("aten::div.Tensor", BinaryOp::kDivide, In::kToFloat),
    Divides("aten::div.Tensor_mode", DivMode),
    Divides("aten::floor_divide", Divided<FloorDivide>),
    Pointwise("aten::fmax", FMinMax<true>),
    Pointwise("aten::fmin", FMinMax<false>),
    Divides("aten::fmod.Tensor", Divided<TruncRemainder>),
    Pointwise("aten::gcd", Gcd<BinaryOp::kRemainder>),
    Pointwise("aten::heaviside", Heaviside),
    Pointwise("aten::hypot", Hypot),
    Pointwise("aten::lcm", Gcd<BinaryOp::kMultiply>),
    Pointwise("aten::lerp.Scalar", LerpNumber),
    Pointwise("aten::lerp.Tensor", LerpTensor),
    Pointwise("aten::logaddexp", LogAddExp, In::kToFloat),
    Pointwise("aten::logaddexp2", LogAddExp2, In::kToFloat),
    Pointwise("aten::logical_and", Logical<BinaryOp::kAnd>, In::kPromote, Out::kBool),
    Pointwise("aten::logical_or", Logical<BinaryOp::kOr>, In::kPromote, Out::kBool),
    Pointwise("aten::logical_xor", Logical<BinaryOp::kXor>, In::kPromote, Out::kBool),
    Pointwise("aten::maximum", MinMax<true>),
    Pointwise("aten::minimum", MinMax<false>),
    Binary("aten::mul.Tensor", BinaryOp::kMultiply),
    Pointwise("aten::nextafter", NextAfter),
    Pointwise("aten::polar", Polar, In::kPromote, Out::kAsLowered),
    Pointwise("aten::pow.Scalar", PowOp),
    Pointwise("aten::pow.Tensor_Scalar", PowNumber, In::kPromote, Out::kCompute, "exponent"),
    Pointwise("aten::pow.Tensor_Tensor", PowOp),
    Divides("aten::remainder.Tensor", Divided<FloorRemainder>),
    Divides("aten::remainder.Scalar_Tensor", Divided<FloorRemainder>),
    Fitting(Pointwise("aten::rsub.Tensor", RsubScaled)),
    Fitting(Pointwise("aten::sub.Tensor", AddScaled<-1>)),
    Pointwise("aten::where.self", Where, In::kSelf, Out::kAsLowered),
    Pointwise("aten::xlogy.Tensor", XLogY, In::kToFloat),
};

}  // namespace

std::span<const OpDef> BinaryOps() { return kRows; }

}  // namespace tpu::ops
