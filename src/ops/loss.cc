// Loss functions of PyTorch's own kernels and their derivatives, but those of class indices
// (class_loss.cc).
// What it is not: the many losses that PyTorch composes (cross_entropy, kl_div, l1_loss ...).
#include "ops/loss.h"

#include "ops/lowering.h"
#include "ops/norm_layers.h"
#include "ops/rows.h"

namespace tpu::ops {

using hlo::Value;
using hlo::Values;

Reduction ReductionOf(Lowering& lw) { return static_cast<Reduction>(lw.Int("reduction")); }

Value SumAll(Value a) {
  return a.valid() ? a.function()->Reduce(a, hlo::Monoid::kAdd, Iota(a.rank())) : a;
}

Value Reduced(Lowering& lw, Value losses) {
  switch (ReductionOf(lw)) {
    case Reduction::kNone: return losses;
    case Reduction::kMean: return SumAll(losses) / static_cast<double>(losses.numel());
    case Reduction::kSum: return SumAll(losses);
  }
  return lw.Fail(InvalidArgument("unknown reduction"));
}

namespace {

struct Pair {
  Value input, target;
};
Pair Operands(Lowering& lw) {
  const Value input = WideTensor(lw, "self");
  return {input, lw.TensorAs("target", input.dtype())};
}

// The gradient that reaches each element's loss.
Value GradOfEach(Lowering& lw, Value like) {
  const Value g = lw.TensorAs("grad_output", like.dtype());
  if (ReductionOf(lw) != Reduction::kMean) return g;
  // PyTorch divides by the input's own count, not by that of the broadcast shape.
  return g / static_cast<double>(NumElements(lw.TensorDims("self")));
}

Value ToShape(Value a, Value input, Value target) {
  Dims dims;
  if (!a.valid() || !BroadcastShapes(input.dims(), target.dims(), &dims)) return a;
  return a.function()->BroadcastTo(a, dims);
}

Values MseLoss(Lowering& lw) {
  const Pair p = Operands(lw);
  const Value d = p.input - p.target;
  return {Reduced(lw, d * d)};
}

Values MseLossBackward(Lowering& lw) {
  const Pair p = Operands(lw);
  const Value d = p.input - p.target;
  return {ToShape(GradOfEach(lw, d) * 2.0 * d, p.input, p.target)};
}

Values SmoothL1(Lowering& lw) {
  const Pair p = Operands(lw);
  const Value d = Abs(p.input - p.target), beta = lw.Number("beta", d.dtype());
  return {Reduced(lw, Select(Lt(d, beta), 0.5 * d * d / beta, d - 0.5 * beta))};
}

Values SmoothL1Backward(Lowering& lw) {
  const Pair p = Operands(lw);
  const Value d = p.input - p.target, beta = lw.Number("beta", d.dtype());
  const Value slope =
      Select(Le(d, -beta), Like(d, -1.0), Select(Ge(d, beta), Like(d, 1.0), d / beta));
  return {ToShape(GradOfEach(lw, d) * slope, p.input, p.target)};
}

Values Huber(Lowering& lw) {
  const Pair p = Operands(lw);
  const Value d = Abs(p.input - p.target), delta = lw.Number("delta", d.dtype());
  return {Reduced(lw, Select(Le(d, delta), 0.5 * d * d, delta * (d - 0.5 * delta)))};
}

Values HuberBackward(Lowering& lw) {
  const Pair p = Operands(lw);
  const Value d = p.input - p.target, delta = lw.Number("delta", d.dtype());
  const Value slope = Select(Le(d, -delta), -delta, Select(Ge(d, delta), delta, d));
  return {ToShape(GradOfEach(lw, d) * slope, p.input, p.target)};
}

// The logarithms are held above -100, so that a certain and wrong prediction costs 100, not inf.
Values BinaryCrossEntropy(Lowering& lw) {
  const Pair p = Operands(lw);
  const auto check = [&](Value v, const char* name, const char* rule) {
    lw.CheckValue(~(Ge(v, 0.0) & Le(v, 1.0)), v, name, rule);
  };
  check(p.input, "self", "all elements of input should be between 0 and 1");
  check(p.target, "target", "all elements of target should be between 0 and 1");
  const Value floor = Like(p.input, -100.0);
  Value loss = (p.target - 1.0) * Max(Log1p(-p.input), floor) - p.target * Max(Log(p.input), floor);
  if (lw.Has("weight")) loss = loss * lw.TensorAs("weight", loss.dtype());
  return {Reduced(lw, loss)};
}

Values BinaryCrossEntropyBackward(Lowering& lw) {
  const Pair p = Operands(lw);
  const Value spread = Max((1.0 - p.input) * p.input, Like(p.input, 1e-12));
  Value g = GradOfEach(lw, p.input) * (p.input - p.target) / spread;
  if (lw.Has("weight")) g = g * lw.TensorAs("weight", g.dtype());
  return {ToShape(g, p.input, p.target)};
}

// log(1 + exp(-x)) without overflow.
Value SoftplusOfMinus(Value x) { return Max(-x, Like(x, 0.0)) + Log1p(Exp(-Abs(x))); }

Values BceWithLogits(Lowering& lw) {
  const Pair p = Operands(lw);
  Value loss;
  if (lw.Has("pos_weight")) {
    const Value w = 1.0 + (lw.TensorAs("pos_weight", p.input.dtype()) - 1.0) * p.target;
    loss = (1.0 - p.target) * p.input + w * SoftplusOfMinus(p.input);
  } else {
    loss = (1.0 - p.target) * p.input + SoftplusOfMinus(p.input);
  }
  if (lw.Has("weight")) loss = loss * lw.TensorAs("weight", loss.dtype());
  return {Reduced(lw, loss)};
}

constexpr OpDef kRows[] = {
    {.name = "aten::binary_cross_entropy", .kind = Kind::kLoss, .lower = BinaryCrossEntropy},
    {.name = "aten::binary_cross_entropy_backward",
     .kind = Kind::kLoss,
     .lower = BinaryCrossEntropyBackward},
    // Composite in PyTorch, of seven or more calls: one program here.
    {.name = "aten::binary_cross_entropy_with_logits", .kind = Kind::kLoss, .lower = BceWithLogits},
    {.name = "aten::huber_loss", .kind = Kind::kLoss, .lower = Huber},
    {.name = "aten::huber_loss_backward", .kind = Kind::kLoss, .lower = HuberBackward},
    {.name = "aten::mse_loss", .kind = Kind::kLoss, .lower = MseLoss},
    {.name = "aten::mse_loss_backward", .kind = Kind::kLoss, .lower = MseLossBackward},
    {.name = "aten::smooth_l1_loss", .kind = Kind::kLoss, .lower = SmoothL1},
    {.name = "aten::smooth_l1_loss_backward", .kind = Kind::kLoss, .lower = SmoothL1Backward},
};

}  // namespace

std::span<const OpDef> LossOps() { return kRows; }

}  // namespace tpu::ops
