// Activation functions and their derivatives, pointwise but for glu and rrelu.
// What it is not: softmax (a reduction) or dropout (dropout.cc).
// Formulas and the treatment of NaN and of the kinks follow PyTorch's CPU kernels.
#include <numbers>

#include "ops/lowering.h"
#include "ops/random_bits.h"
#include "ops/rows.h"
#include "ops/transcendental.h"

namespace tpu::ops {
namespace {

using hlo::UnaryOp;
using hlo::Value;
using hlo::Values;

// sqrt(2 / pi), the slope of the tanh form of gelu, and its cubic coefficient.
constexpr double kGeluBeta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
constexpr double kGeluKappa = 0.044715;
constexpr double kInvSqrt2 = 1.0 / std::numbers::sqrt2;

// PyTorch has no integer kernels for these; a number such as a slope of 0.01 would become 0.
Value FloatOperand(Lowering& lw, std::string_view name) {
  const Value a = lw.Tensor(name);
  if (!a.valid() || !IsIntegral(a.dtype())) return a;
  return lw.Fail(Unimplemented("not implemented for ", TorchName(a.dtype())));
}

Value NotBool(Lowering& lw, std::string_view name) {
  const Value a = lw.Tensor(name);
  if (!a.valid() || !IsBool(a.dtype())) return a;
  return lw.Fail(Unimplemented("Boolean inputs are not supported"));
}

Value Zero(Value a) { return Like(a, int64_t{0}); }

Value Conjugate(Value a) {
  if (!a.valid() || !IsComplex(a.dtype())) return a;
  hlo::Function& fn = *a.function();
  return fn.Binary(hlo::BinaryOp::kComplex, fn.Unary(UnaryOp::kReal, a),
                   -fn.Unary(UnaryOp::kImag, a));
}

// --- Piecewise linear.

Values Relu(Lowering& lw) {
  const Value a = NotBool(lw, "self");
  return {a.valid() && IsUnsigned(a.dtype()) ? a : Max(a, Zero(a))};
}

Values Hardtanh(Lowering& lw) {
  const Value a = NotBool(lw, "self");
  return {Min(Max(a, lw.Number("min_val", a.dtype())), lw.Number("max_val", a.dtype()))};
}

Values HardtanhBackward(Lowering& lw) {
  const Value g = lw.Tensor("grad_output"), a = FloatOperand(lw, "self");
  const Value outside =
      Le(a, lw.Number("min_val", a.dtype())) | Ge(a, lw.Number("max_val", a.dtype()));
  return {Select(outside, Zero(g), g)};
}

Values Threshold(Lowering& lw) {
  const Value a = NotBool(lw, "self");
  return {Select(Le(a, lw.Number("threshold", a.dtype())), lw.Number("value", a.dtype()), a)};
}

Values ThresholdBackward(Lowering& lw) {
  const Value g = lw.Tensor("grad_output"), a = NotBool(lw, "self");
  return {Select(Le(a, lw.Number("threshold", a.dtype())), Zero(g), g)};
}

Values LeakyRelu(Lowering& lw) {
  const Value a = FloatOperand(lw, "self");
  return {Select(Gt(a, 0.0), a, a * lw.Number("negative_slope", a.dtype()))};
}

Values LeakyReluBackward(Lowering& lw) {
  const Value g = lw.Tensor("grad_output"), a = FloatOperand(lw, "self");
  return {Select(Gt(a, 0.0), g, g * lw.Number("negative_slope", a.dtype()))};
}

Values Prelu(Lowering& lw) {
  const Value a = FloatOperand(lw, "self");
  return {Select(Gt(a, 0.0), a, a * lw.Tensor("weight"))};
}

Values PreluBackward(Lowering& lw) {
  const Value g = lw.Tensor("grad_output"), a = FloatOperand(lw, "self");
  const Value positive = Gt(a, 0.0);
  return {Select(positive, g, g * lw.Tensor("weight")), Select(positive, Zero(g), g * a)};
}

Values Hardshrink(Lowering& lw) {
  const Value a = FloatOperand(lw, "self"), l = lw.Number("lambd", a.dtype());
  return {Select(Ge(a, -l) & Le(a, l), Zero(a), a)};
}

Values Softshrink(Lowering& lw) {
  const Value a = FloatOperand(lw, "self"), l = lw.Number("lambd", a.dtype());
  // a * 0 keeps NaN.
  return {Select(Gt(a, l), a - l, Select(Lt(a, -l), a + l, a * 0.0))};
}

template <const char* const& grad>
Values ShrinkBackward(Lowering& lw) {
  const Value g = lw.Tensor(grad), a = FloatOperand(lw, "self"), l = lw.Number("lambd", a.dtype());
  return {Select(Ge(a, -l) & Le(a, l), Zero(g), g)};
}

Value SixthsOf(Value a) { return Min(Max(a + 3.0, Zero(a)), Like(a, 6.0)); }

Values Hardsigmoid(Lowering& lw) { return {SixthsOf(FloatOperand(lw, "self")) / 6.0}; }

Values HardsigmoidBackward(Lowering& lw) {
  const Value g = lw.Tensor("grad_output"), a = FloatOperand(lw, "self");
  return {Select(Gt(a, -3.0) & Lt(a, 3.0), g / 6.0, Zero(g))};
}

Values Hardswish(Lowering& lw) {
  const Value a = FloatOperand(lw, "self");
  return {a * SixthsOf(a) / 6.0};
}

Values HardswishBackward(Lowering& lw) {
  const Value g = lw.Tensor("grad_output"), a = FloatOperand(lw, "self");
  return {Select(Le(a, -3.0), Zero(g), Select(Lt(a, 3.0), g * (a / 3.0 + 0.5), g))};
}

// --- Smooth.

Values Elu(Lowering& lw) {
  const Value a = FloatOperand(lw, "self"), scale = lw.Number("scale", a.dtype());
  const Value below = accurate::Expm1(a * lw.Number("input_scale", a.dtype()));
  return {Select(Lt(a, 0.0), below * (lw.Number("alpha", a.dtype()) * scale), a * scale)};
}

Values EluBackward(Lowering& lw) {
  const Value g = lw.Tensor("grad_output"), a = FloatOperand(lw, "self_or_result");
  const Value scale = lw.Number("scale", a.dtype());
  const Value inner = lw.Number("input_scale", a.dtype());
  const Value outer = lw.Number("alpha", a.dtype()) * scale;
  const Value below =
      lw.Bool("is_result") ? g * inner * (a + outer) : g * inner * outer * Exp(a * inner);
  return {Select(Le(a, 0.0), below, g * scale)};
}

Values Sigmoid(Lowering& lw) { return {Logistic(lw.Tensor("self"))}; }

Values SigmoidBackward(Lowering& lw) {
  const Value y = Conjugate(lw.Tensor("output"));
  return {lw.Tensor("grad_output") * (1.0 - y) * y};
}

Values TanhBackward(Lowering& lw) {
  const Value y = Conjugate(lw.Tensor("output"));
  return {lw.Tensor("grad_output") * (1.0 - y * y)};
}

bool TanhForm(Lowering& lw) {
  const std::string_view form = lw.String("approximate");
  if (form != "none" && form != "tanh") {
    lw.Fail(InvalidArgument("approximate argument must be either none or tanh."));
  }
  return form == "tanh";
}

// XLA's own tanh and erf, up to 5 units in the last place off, are good enough under a sum with 1,
// which loses more, and cheaper than the accurate ones (erf by a factor of 3).
Value GeluInner(Value a) { return (a + a * a * a * kGeluKappa) * kGeluBeta; }

Values Gelu(Lowering& lw) {
  const Value a = FloatOperand(lw, "self");
  const Value bend = TanhForm(lw) ? Tanh(GeluInner(a)) : Erf(a * kInvSqrt2);
  return {a * 0.5 * (1.0 + bend)};
}

Values GeluBackward(Lowering& lw) {
  const Value g = lw.Tensor("grad_output"), a = FloatOperand(lw, "self");
  if (TanhForm(lw)) {
    const Value t = Tanh(GeluInner(a));
    const Value slope = (1.0 + a * a * (3.0 * kGeluKappa)) * kGeluBeta;
    return {g * (0.5 * (1.0 + t) + 0.5 * a * (1.0 - t * t) * slope)};
  }
  const Value cdf = 0.5 * (1.0 + Erf(a * kInvSqrt2));
  const Value pdf = Exp(a * a * -0.5) * (0.5 * kGeluBeta);
  return {g * (cdf + a * pdf)};
}

Values Silu(Lowering& lw) {
  const Value a = FloatOperand(lw, "self");
  return {a / (1.0 + Exp(-a))};
}

Values SiluBackward(Lowering& lw) {
  const Value g = lw.Tensor("grad_output"), a = FloatOperand(lw, "self");
  const Value s = Logistic(a);
  return {g * s * (1.0 + a * (1.0 - s))};
}

// tanh(softplus(a)), which is 1 beyond 20: a quotient of polynomials in exp(a).
Value MishSlope(Value a) {
  const Value w = Exp(Min(a, Like(a, 20.0))), n = w * (w + 2.0);
  return n / (n + 2.0);
}

Values Mish(Lowering& lw) {
  const Value a = FloatOperand(lw, "self");
  return {a * MishSlope(a)};
}

Values MishBackward(Lowering& lw) {
  const Value g = lw.Tensor("grad_output"), a = FloatOperand(lw, "self");
  const Value t = MishSlope(a);
  return {g * (t + a * Logistic(a) * (1.0 - t * t))};
}

Values Softplus(Lowering& lw) {
  const Value a = FloatOperand(lw, "self"), beta = lw.Number("beta", a.dtype()), z = a * beta;
  return {Select(Gt(z, lw.Number("threshold", a.dtype())), a, Log1p(Exp(z)) / beta)};
}

Values SoftplusBackward(Lowering& lw) {
  const Value g = lw.Tensor("grad_output"), a = FloatOperand(lw, "self");
  const Value z = a * lw.Number("beta", a.dtype());
  return {Select(Gt(z, lw.Number("threshold", a.dtype())), g, g * Logistic(z))};
}

Values LogSigmoid(Lowering& lw) {
  const Value a = FloatOperand(lw, "self"), z = Exp(-Abs(a));
  // Some devices' meta kernels keep no buffer; the backward recomputes it in any case.
  const hlo::Type *out = lw.Expected(0), *buffer = lw.Expected(1);
  const bool kept = buffer == nullptr || out == nullptr || buffer->dims == out->dims;
  return {Min(a, Zero(a)) - Log1p(z), kept ? z : Value()};
}

Values LogSigmoidBackward(Lowering& lw) {
  return {lw.Tensor("grad_output") * Logistic(-FloatOperand(lw, "self"))};
}

// --- Those that aren't pointwise.

// A tensor in the type its operator computes in.
Value Wide(Lowering& lw, std::string_view name) {
  return lw.TensorAs(name, OpMathType(lw.TensorType(name)));
}

Values RreluWithNoise(Lowering& lw) {
  const Value a = Wide(lw, "self");
  if (!a.valid() || !IsFloat(a.dtype())) {
    return {lw.Fail(Unimplemented("not implemented for this dtype"))};
  }
  const Value lower = lw.Number("lower", a.dtype()), upper = lw.Number("upper", a.dtype());
  if (!lw.Bool("training")) {
    return {Select(Gt(a, 0.0), a, a * ((lower + upper) / 2.0)), Value()};
  }
  const Value flat = UniformFloat(lw, lw.RandomBits(a.numel()), a.dtype());
  const Value uniform = lw.fn().Reshape(flat, a.dims());
  const Value slope = lower + uniform * (upper - lower);
  const Value negative = Le(a, 0.0);
  return {Select(negative, a * slope, a), Select(negative, slope, Like(a, 1.0))};
}

struct Halves {
  Value first, second;
};

Halves Split(Lowering& lw, Value a) {
  const int64_t dim = WrapDim(lw.Int("dim"), a.rank());
  if (!a.valid() || dim < 0 || a.rank() == 0 || a.dim(dim) % 2 != 0) {
    lw.Fail(InvalidArgument("glu needs an even size along its dimension"));
    return {};
  }
  Dims start(a.dims().size(), 0), limit = a.dims();
  const Dims stride(a.dims().size(), 1);
  const size_t d = static_cast<size_t>(dim);
  limit[d] /= 2;
  const Value first = lw.fn().Slice(a, start, limit, stride);
  start[d] = limit[d];
  limit[d] *= 2;
  return {first, lw.fn().Slice(a, start, limit, stride)};
}

Values Glu(Lowering& lw) {
  const Halves h = Split(lw, Wide(lw, "self"));
  return {h.first * Logistic(h.second)};
}

Values GluBackward(Lowering& lw) {
  const Value a = Wide(lw, "self");
  const Value g = lw.TensorAs("grad_output", a.dtype());
  const Halves h = Split(lw, a);
  const Value s = Logistic(h.second);
  return {
      lw.fn().Concatenate({g * s, g * h.first * s * (1.0 - s)}, WrapDim(lw.Int("dim"), a.rank()))};
}

Values GluJvp(Lowering& lw) {
  const Halves x = Split(lw, Wide(lw, "x")), dx = Split(lw, Wide(lw, "dx"));
  const Value s = Logistic(x.second);
  return {dx.first * s + x.first * s * (1.0 - s) * dx.second};
}

// The derivative of glu_backward along (dgrad_glu, dx).
Values GluBackwardJvp(Lowering& lw) {
  const Value g = Wide(lw, "grad_glu"), dg = Wide(lw, "dgrad_glu");
  const Halves x = Split(lw, Wide(lw, "x")), dx = Split(lw, Wide(lw, "dx"));
  const Value s = Logistic(x.second), ds = s * (1.0 - s);
  const Value first = dg * s + g * ds * dx.second;
  const Value second =
      dg * x.first * ds + g * dx.first * ds + g * x.first * ds * (1.0 - 2.0 * s) * dx.second;
  return {lw.fn().Concatenate(
      {first, second}, WrapDim(lw.Int("dim"), static_cast<int64_t>(lw.TensorDims("x").size())))};
}

constexpr const char* kGradOutput = "grad_output";
constexpr const char* kGradOut = "grad_out";

constexpr OpDef kRows[] = {
    Pointwise("aten::elu", Elu),
    Pointwise("aten::elu_backward", EluBackward),
    Pointwise("aten::gelu", Gelu),
    Pointwise("aten::gelu_backward", GeluBackward),
    {.name = "aten::glu", .kind = Kind::kReduce, .lower = Glu},
    {.name = "aten::glu_backward", .kind = Kind::kReduce, .lower = GluBackward},
    {.name = "aten::glu_backward_jvp",
     .kind = Kind::kReduce,
     .lower = GluBackwardJvp,
     .meta = Meta::kInfer},
    {.name = "aten::glu_jvp", .kind = Kind::kReduce, .lower = GluJvp, .meta = Meta::kInfer},
    Pointwise("aten::hardshrink", Hardshrink),
    Pointwise("aten::hardshrink_backward", ShrinkBackward<kGradOut>),
    Pointwise("aten::hardsigmoid", Hardsigmoid),
    Pointwise("aten::hardsigmoid_backward", HardsigmoidBackward),
    Pointwise("aten::hardswish", Hardswish),
    Pointwise("aten::hardswish_backward", HardswishBackward),
    Fitting(Pointwise("aten::hardtanh", Hardtanh)),
    Pointwise("aten::hardtanh_backward", HardtanhBackward),
    Pointwise("aten::leaky_relu", LeakyRelu),
    Pointwise("aten::leaky_relu_backward", LeakyReluBackward),
    Pointwise("aten::log_sigmoid_backward", LogSigmoidBackward),
    Pointwise("aten::log_sigmoid_forward", LogSigmoid),
    Pointwise("aten::mish", Mish),
    // Its own is composite, so there is no meta kernel.
    {.name = "aten::mish_backward",
     .kind = Kind::kPointwise,
     .lower = MishBackward,
     .meta_name = "aten::silu_backward"},
    Pointwise("aten::_prelu_kernel", Prelu),
    Pointwise("aten::_prelu_kernel_backward", PreluBackward),
    Pointwise("aten::relu", Relu),
    {.name = "aten::rrelu_with_noise",
     .kind = Kind::kRandom,
     .lower = RreluWithNoise,
     .random = true},
    {.name = "aten::rrelu_with_noise_",
     .kind = Kind::kRandom,
     .lower = RreluWithNoise,
     .random = true},
    Pointwise("aten::sigmoid", Sigmoid, In::kToFloat),
    Pointwise("aten::sigmoid_backward", SigmoidBackward),
    Pointwise("aten::silu", Silu),
    Pointwise("aten::silu_backward", SiluBackward),
    Pointwise("aten::softplus", Softplus),
    Pointwise("aten::softplus_backward", SoftplusBackward),
    Pointwise("aten::softshrink", Softshrink),
    Pointwise("aten::softshrink_backward", ShrinkBackward<kGradOutput>),
    Pointwise("aten::tanh_backward", TanhBackward),
    Fitting(Pointwise("aten::threshold", Threshold)),
    Pointwise("aten::threshold_backward", ThresholdBackward),
};

}  // namespace

std::span<const OpDef> ActivationOps() { return kRows; }

}  // namespace tpu::ops
