// Ops that fill a tensor with random numbers. The streams are ours (ops/threefry.h), equal on every
// plugin and in every mode; distributions are PyTorch's.
// What it is not: distributions that need rejection (ops/random_loops.cc) and dropout.
#include <cmath>
#include <numbers>

#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/op_def.h"
#include "ops/random_bits.h"

namespace tpu::ops {
namespace {

using hlo::BinaryOp;
using hlo::Function;
using hlo::UnaryOp;
using hlo::Value;
using hlo::Values;

// The tensor to fill.
struct Target {
  explicit Target(Lowering& lw)
      : dtype(lw.TensorType("self")), dims(lw.TensorDims("self")), n(NumElements(dims)) {}
  // The type to compute in: that of `dtype` if it is a float, else float32.
  DType real() const {
    const DType t = OpMathType(RealOf(dtype));
    return t == DType::kF64 ? t : DType::kF32;
  }
  // Continuous distributions have no integers.
  bool IsContinuous(Lowering& lw) const {
    if (!IsIntegral(dtype)) return true;
    lw.Fail(Unimplemented("not implemented for ", TorchName(dtype), " tensors"));
    return false;
  }
  Values Give(Lowering& lw, Value flat) const { return {lw.fn().Reshape(Cast(flat, dtype), dims)}; }

  const DType dtype;
  const Dims dims;
  const int64_t n;
};

Value JoinComplex(Lowering& lw, Value real, Value imag) {
  return lw.fn().Binary(BinaryOp::kComplex, real, imag);
}

Values Uniform(Lowering& lw) {
  const Target t(lw);
  if (!t.IsContinuous(lw)) return {Value()};
  const Value from = lw.Number("from", t.real());
  const Value width = Cast(lw.Number("to", DType::kF64) - lw.Number("from", DType::kF64), t.real());
  const auto draw = [&](int k) {
    return UniformFloat(lw, lw.RandomBits(t.n, k), RealOf(t.dtype)) * width + from;
  };
  return t.Give(lw, IsComplex(t.dtype) ? JoinComplex(lw, draw(0), draw(1)) : draw(0));
}

// Real and imaginary parts of a complex normal number share the variance.
Value Normal(Lowering& lw, const Target& t, Value mean, Value deviation) {
  if (!IsComplex(t.dtype)) return StandardNormal(lw, t.n, t.dtype) * deviation + mean;
  const DType part = RealOf(t.dtype);
  deviation = deviation * std::numbers::sqrt2 * 0.5;
  const Value real = StandardNormal(lw, t.n, part) * deviation + mean;
  const Value imag = StandardNormal(lw, t.n, part, DrawsOfStandardNormal(part)) * deviation + mean;
  return JoinComplex(lw, real, imag);
}

Values NormalInto(Lowering& lw) {
  const Target t(lw);
  if (!t.IsContinuous(lw)) return {Value()};
  return t.Give(lw, Normal(lw, t, lw.Number("mean", t.real()), lw.Number("std", t.real())));
}

Values LogNormal(Lowering& lw) {
  const Target t(lw);
  if (!t.IsContinuous(lw)) return {Value()};
  return t.Give(lw, Exp(Normal(lw, t, lw.Number("mean", t.real()), lw.Number("std", t.real()))));
}

// normal(mean, std) of tensors: a new tensor of their common shape and the type of the first.
template <bool tensor_mean, bool tensor_std>
Values NormalOf(Lowering& lw) {
  const char* const first = tensor_mean ? "mean" : "std";
  const DType dtype = lw.TensorType(first), t = OpMathType(dtype);
  if (IsComplex(dtype)) return {lw.Fail(Unimplemented("normal of complex tensors"))};
  Dims dims;
  if (!BroadcastShapes(lw.TensorDims("mean"), lw.TensorDims("std"), &dims)) {
    return {lw.Fail(InvalidArgument("mean and std don't broadcast"))};
  }
  const auto operand = [&](const char* name, bool is_tensor) {
    return is_tensor ? lw.TensorAs(name, t) : lw.Number(name, t);
  };
  if (tensor_std) {
    const Value deviation = lw.TensorAs("std", t);
    lw.CheckValue(~Ge(deviation, 0.0), deviation, "std",
                  "normal expects all elements of std >= 0.0");
  }
  const Value draw = lw.fn().Reshape(StandardNormal(lw, NumElements(dims), dtype), dims);
  return {Cast(draw * operand("std", tensor_std) + operand("mean", tensor_mean), dtype)};
}

Values BernoulliNumber(Lowering& lw) {
  const Target t(lw);
  const Value p = lw.Number("p", t.dtype == DType::kF64 ? DType::kF64 : DType::kF32);
  return t.Give(lw, Bernoulli(lw, lw.RandomBits(t.n), p));
}

// Element i is true with probability p[i].
Value BernoulliOf(Lowering& lw, const char* name, const Dims& dims) {
  Value p = lw.Tensor(name);
  if (!p.valid()) return {};
  if (!IsFloat(p.dtype()))
    return lw.Fail(InvalidArgument("bernoulli: probabilities must be floats"));
  p = Cast(p, OpMathType(p.dtype()));
  lw.CheckValue(~(Ge(p, 0.0) & Le(p, 1.0)), p, name, "bernoulli expects probabilities in [0, 1]");
  p = p.numel() == 1 ? lw.fn().Reshape(p, Dims{}) : lw.fn().BroadcastTo(p, dims);
  const int64_t n = NumElements(dims);
  if (p.rank() > 0) p = lw.fn().Reshape(p, Dims{n});
  return lw.fn().Reshape(Bernoulli(lw, lw.RandomBits(n), p), dims);
}

Values BernoulliTensor(Lowering& lw) {
  const Target t(lw);
  return {Cast(BernoulliOf(lw, "p", t.dims), t.dtype)};
}

Values BernoulliSelf(Lowering& lw) {
  const Target t(lw);
  return {Cast(BernoulliOf(lw, "self", t.dims), t.dtype)};
}

Values Exponential(Lowering& lw) {
  const Target t(lw);
  const Value u = UniformOpen(lw, lw.RandomBits(t.n), t.real());
  return t.Give(lw, -Log(u) / lw.Number("lambd", t.real()));
}

Values Geometric(Lowering& lw) {
  const Target t(lw);
  const Value u = UniformOpen(lw, lw.RandomBits(t.n), t.real());
  const Value trials = lw.fn().Unary(UnaryOp::kCeil, Log(u) / Log1p(-lw.Number("p", t.real())));
  return t.Give(lw, Max(trials, Like(trials, 1.0)));
}

Values Cauchy(Lowering& lw) {
  const Target t(lw);
  const Value u = UniformOpen(lw, lw.RandomBits(t.n), t.real());
  const Value tangent = lw.fn().Unary(UnaryOp::kTan, (u - 0.5) * std::numbers::pi);
  return t.Give(lw, tangent * lw.Number("sigma", t.real()) + lw.Number("median", t.real()));
}

// --- Whole numbers.

// The high half of the product of two ui64: `a` scaled into [0, b).
Value HighProduct(Function& fn, Value a, Value b) {
  const auto low = [&](Value v) { return v & Like(v, int64_t{0xFFFFFFFF}); };
  const auto high = [&](Value v) {
    return fn.Binary(BinaryOp::kShiftRightLogical, v, Like(v, int64_t{32}));
  };
  b = fn.BroadcastTo(b, a.dims());
  const Value middle = high(a) * low(b) + high(low(a) * low(b));  // does not overflow
  const Value other = low(a) * high(b) + low(middle);
  return high(a) * high(b) + high(middle) + high(other);
}

// The largest whole number that random_() of this type gives, as PyTorch has it.
uint64_t TopOf(DType t) {
  if (IsBool(t)) return 1;
  if (IsInteger(t)) {
    const int bits = static_cast<int>(8 * ItemSize(t)) - (IsUnsigned(t) ? 0 : 1);
    return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  }
  const int digits = t == DType::kF64 ? 53 : t == DType::kF16 ? 11 : t == DType::kBF16 ? 8 : 24;
  return uint64_t{1} << digits;
}

// A whole number of [base, base + range), as the target's type. `range` (a ui64 scalar) 0: 2^64.
// The bias is at most range / 2^64.
Values Whole(Lowering& lw, const Target& t, Value base, Value range) {
  Function& fn = lw.fn();
  const Value word = Word64(lw, lw.RandomBits(t.n));
  Value drawn = hlo::Select(Eq(range, Like(range, int64_t{0})), word, HighProduct(fn, word, range));
  drawn = fn.BitcastConvert(drawn + fn.BitcastConvert(base, DType::kU64), DType::kI64);
  if (t.dtype == DType::kU64) return t.Give(lw, fn.BitcastConvert(drawn, DType::kU64));
  return t.Give(lw, drawn);
}

Values RandomAll(Lowering& lw) {
  const Target t(lw);
  const Value zero = lw.fn().Scalar(DType::kI64, int64_t{0});
  return Whole(lw, t, zero, lw.fn().Scalar(DType::kU64, TopOf(t.dtype) + 1));
}

Values RandomRange(Lowering& lw) {
  const Target t(lw);
  Function& fn = lw.fn();
  Value from = lw.Number("from", DType::kI64);
  if (!from.valid()) from = fn.Scalar(DType::kI64, int64_t{0});
  const Value start = fn.BitcastConvert(from, DType::kU64);
  if (lw.Has("to")) {
    const Value end = fn.BitcastConvert(lw.Number("to", DType::kI64), DType::kU64);
    return Whole(lw, t, from, end - start);
  }
  return Whole(lw, t, from, fn.Scalar(DType::kU64, TopOf(t.dtype) + 1) - start);
}

// Positions sorted by 64 random bits each.
Values RandPerm(Lowering& lw) {
  const int64_t n = lw.Int("n");
  const Lowering::Bits bits = lw.RandomBits(n);
  const DType t = n < INT32_MAX ? DType::kI32 : DType::kI64;
  const Values sorted = lw.fn().Sort(
      {bits.high, bits.low, lw.fn().Iota({t, {n}}, 0)}, 0, true, [](Function& f, const Values& v) {
        return Values{f.Select(Eq(v[0], v[1]), Lt(v[2], v[3]), Lt(v[0], v[1]))};
      });
  return {Cast(sorted[2], lw.TensorType("out"))};
}

// --- What PyTorch checks on every call.

Status CheckUniform(std::span<const double> v, DType t) {
  const double top = t == DType::kF64 || t == DType::kC128 ? 1.7976931348623157e308
                     : t == DType::kF16                    ? 65504.0
                     : t == DType::kBF16                   ? 3.3895313892515355e38
                                                           : 3.4028234663852886e38;
  if (v[1] - v[0] > top) {
    return InvalidArgument("uniform_ expects to-from <= std::numeric_limits<", TorchName(t),
                           ">::max(), but found to=", v[1], " and from=", v[0]);
  }
  if (v[0] <= v[1]) return {};
  return InvalidArgument("uniform_ expects to return a [from, to) range, but found from=", v[0],
                         " > to=", v[1]);
}
Status CheckNormal(std::span<const double> v, DType) {
  if (v.back() >= 0) return {};  // mean, std, or std alone
  return InvalidArgument("normal expects std >= 0.0, but found std ", v.back());
}
Status CheckLogNormal(std::span<const double> v, DType) {
  if (v[1] > 0) return {};
  return InvalidArgument("log_normal_ expects std > 0.0, but found std=", v[1]);
}
Status CheckBernoulli(std::span<const double> v, DType) {
  if (v[0] >= 0 && v[0] <= 1) return {};
  return InvalidArgument("bernoulli_ expects p to be in [0, 1], but got p=", v[0]);
}
Status CheckExponential(std::span<const double> v, DType t) {
  if (!IsFloat(t)) {
    return InvalidArgument(
        "Exponential distribution is a continuous probability distribution. dtype "
        "must be a floating point but you specified ",
        TorchName(t));
  }
  if (v[0] > 0) return {};
  return InvalidArgument("exponential_ expects lambda > 0.0, but found lambda=", v[0]);
}
Status CheckGeometric(std::span<const double> v, DType) {
  if (v[0] > 0 && v[0] < 1) return {};
  return InvalidArgument("geometric_ expects p to be in (0, 1), but got p=", v[0]);
}
Status CheckCauchy(std::span<const double> v, DType t) {
  if (!IsFloat(t)) {
    return InvalidArgument(
        "Cauchy distribution is a continuous probability distribution. dtype must "
        "be a floating point but you specified ",
        TorchName(t));
  }
  if (v[1] > 0) return {};
  return InvalidArgument("cauchy_ expects sigma > 0.0, but found sigma=", v[1]);
}
Status CheckRange(std::span<const double> v, DType t) {
  const double from = v.size() > 1 ? v[0] : 0, to = v.back();
  if (v.size() > 1 && !(from < to)) {
    return InvalidArgument("random_ expects 'from' to be less than 'to', but got from=", from,
                           " >= to=", to);
  }
  if (!IsIntegral(t)) return {};
  const double top = static_cast<double>(TopOf(t)), low = IsSigned(t) ? -top - 1 : 0;
  if (from < low || to - 1 > top) {
    return InvalidArgument("random_: [", from, ", ", to, ") is out of bounds for ", TorchName(t));
  }
  return {};
}
// Without `to`: up to the type's limit.
Status CheckFrom(std::span<const double> v, DType t) {
  return v.size() > 1 ? CheckRange(v, t) : Status();
}
Status CheckTo(std::span<const double> v, DType t) {
  if (v[0] > 0) return CheckRange(v, t);
  return InvalidArgument("random_ expects 'from' to be less than 'to', but got from=0 >= to=",
                         v[0]);
}

constexpr OpDef Fills(std::string_view name, LowerFn lower, OpDef::CheckNumbers check = nullptr,
                      std::string_view dynamics = "") {
  return {.name = name,
          .kind = Kind::kRandom,
          .lower = lower,
          .dynamics = dynamics,
          .flattens = true,
          .check = check,
          .random = true,
          .meta = Meta::kInfer};
}
constexpr OpDef Draws(std::string_view name, LowerFn lower, OpDef::CheckNumbers check = nullptr,
                      Meta meta = Meta::kOwn) {
  return {.name = name,
          .kind = Kind::kRandom,
          .lower = lower,
          .check = check,
          .random = true,
          .meta = meta};
}

constexpr OpDef kRows[] = {
    Draws("aten::bernoulli", BernoulliSelf, nullptr, Meta::kInfer),
    Fills("aten::bernoulli_.Tensor", BernoulliTensor),
    Fills("aten::bernoulli_.float", BernoulliNumber, CheckBernoulli),
    Fills("aten::cauchy_", Cauchy, CheckCauchy),
    Fills("aten::exponential_", Exponential, CheckExponential),
    Fills("aten::geometric_", Geometric, CheckGeometric),
    Fills("aten::log_normal_", LogNormal, CheckLogNormal),
    Draws("aten::normal.Tensor_Tensor", NormalOf<true, true>),
    Draws("aten::normal.Tensor_float", NormalOf<true, false>, CheckNormal),
    Draws("aten::normal.float_Tensor", NormalOf<false, true>),
    Fills("aten::normal_", NormalInto, CheckNormal),
    Fills("aten::random_", RandomAll),
    Fills("aten::random_.from", RandomRange, CheckFrom, "from,to"),
    Fills("aten::random_.to", RandomRange, CheckTo, "to"),
    Draws("aten::randperm.generator_out", RandPerm),
    Fills("aten::uniform_", Uniform, CheckUniform),
};

}  // namespace

std::span<const OpDef> RandomOps() { return kRows; }

}  // namespace tpu::ops
