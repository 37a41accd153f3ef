// native_dropout and its derivative.
// What it is not: alpha and feature dropout, which are composites of other rows.
#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/norm_layers.h"
#include "ops/random_bits.h"
#include "ops/rows.h"

namespace tpu::ops {
namespace {

using hlo::Value;
using hlo::Values;

// The rate is a run-time number: schedules that change it compile nothing.
Values NativeDropout(Lowering& lw) {
  const Value x = WideTensor(lw, "input");
  if (!lw.BoolOr("train", true)) {
    return {x, lw.fn().Constant({DType::kBool, x.dims()}, true)};
  }
  const Value keep = 1.0 - lw.Number("p", DType::kF32);
  const Value flat = Bernoulli(lw, lw.RandomBits(x.numel()), keep);
  const Value mask = lw.fn().Reshape(flat, x.dims());
  const Value scale = Select(Gt(keep, 0.0), 1.0 / keep, Like(keep, 0.0));
  const Value kept = x * Convert(mask, x.dtype());
  return {kept * Convert(scale, x.dtype()), mask};
}

Values NativeDropoutBackward(Lowering& lw) {
  Value g = WideTensor(lw, "grad_output");
  if (IsIntegral(g.dtype())) g = Cast(g, DType::kF32);
  return {g * lw.TensorAs("mask", g.dtype()) * lw.Number("scale", g.dtype())};
}

constexpr OpDef kRows[] = {
    {.name = "aten::native_dropout", .kind = Kind::kRandom, .lower = NativeDropout, .random = true},
    Pointwise("aten::native_dropout_backward", NativeDropoutBackward, In::kSelf),
};

}  // namespace

std::span<const OpDef> DropoutOps() { return kRows; }

}  // namespace tpu::ops
