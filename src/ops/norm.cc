// Normalisation layers and their derivatives: layer, RMS, group and batch norm, weight norm,
// renorm. What it is not: the composites above them (F.batch_norm's checks, rms_norm's dispatch).
// Statistics are float32 for half types. Formulas keep reduced dimensions as size 1 and broadcast,
// so that a device with tiled buffers needs no re-tiling.
#include <limits>

#include "ops/lowering.h"
#include "ops/norm_layers.h"
#include "ops/pnorm.h"
#include "ops/rows.h"

namespace tpu::ops {
namespace {

using hlo::Value;
using hlo::Values;

Dims Range(int64_t from, int64_t to) {
  Dims out;
  for (int64_t d = from; d < to; ++d) out.push_back(d);
  return out;
}

bool Wanted(Lowering& lw, size_t i) { return lw.Ints("output_mask")[i] != 0; }

// --- Layer and RMS norm. The last `normalized_shape` dimensions are normalised.

struct LayerDims {
  Dims outer, inner;  // dimension numbers
};
LayerDims SplitDims(Lowering& lw, Value x) {
  const int64_t axis = x.rank() - static_cast<int64_t>(lw.Ints("normalized_shape").size());
  return {Range(0, axis), Range(axis, x.rank())};
}

Values LayerNorm(Lowering& lw) {
  const Value x = WideTensor(lw, "input");
  const LayerDims dims = SplitDims(lw, x);
  const Moments m = MomentsKeep(x, dims.inner);
  const Value rstd = Rsqrt(m.variance + lw.Number("eps", x.dtype()));
  Value out = (x - m.mean) * rstd;
  if (lw.Has("weight")) out = out * lw.TensorAs("weight", x.dtype());
  if (lw.Has("bias")) out = out + lw.TensorAs("bias", x.dtype());
  return {out, m.mean, rstd};
}

// The saved statistics may come in a shape without the trailing ones.
Value Statistic(Lowering& lw, const char* name, Value x, DimsView inner) {
  Dims kept = x.dims();
  for (int64_t d : inner) kept[static_cast<size_t>(d)] = 1;
  return lw.fn().Reshape(lw.TensorAs(name, x.dtype()), kept);
}

Values LayerNormBackward(Lowering& lw) {
  const Value x = WideTensor(lw, "input"), dy = lw.TensorAs("grad_out", x.dtype());
  const LayerDims dims = SplitDims(lw, x);
  const Value rstd = Statistic(lw, "rstd", x, dims.inner);
  const Value normal = (x - Statistic(lw, "mean", x, dims.inner)) * rstd;
  Value dx, dw, db;
  if (Wanted(lw, 0)) {
    const Value g = lw.Has("weight") ? dy * lw.TensorAs("weight", x.dtype()) : dy;
    dx = (g - MeanKeep(g, dims.inner) - normal * MeanKeep(g * normal, dims.inner)) * rstd;
  }
  if (Wanted(lw, 1)) dw = lw.fn().Reduce(dy * normal, hlo::Monoid::kAdd, dims.outer);
  if (Wanted(lw, 2)) db = lw.fn().Reduce(dy, hlo::Monoid::kAdd, dims.outer);
  return {dx, dw, db};
}

double Epsilon(DType t) {
  switch (t) {
    case DType::kF64: return std::numeric_limits<double>::epsilon();
    case DType::kF16: return 0x1p-10;
    case DType::kBF16: return 0x1p-7;
    default: return std::numeric_limits<float>::epsilon();
  }
}

Values RmsNorm(Lowering& lw) {
  const Value x = WideTensor(lw, "input");
  const LayerDims dims = SplitDims(lw, x);
  const Value square = MeanKeep(x * x, dims.inner);
  const Value rstd = Rsqrt(lw.Has("eps") ? square + lw.Number("eps", x.dtype())
                                         : square + Epsilon(lw.TensorType("input")));
  Value out = x * rstd;
  if (lw.Has("weight")) out = out * lw.TensorAs("weight", x.dtype());
  return {Convert(out, lw.TensorType("input")), rstd};
}

Values RmsNormBackward(Lowering& lw) {
  const Value x = WideTensor(lw, "input"), dy = lw.TensorAs("grad_out", x.dtype());
  const LayerDims dims = SplitDims(lw, x);
  const Value rstd = Statistic(lw, "rstd", x, dims.inner), normal = x * rstd;
  Value dx, dw;
  if (Wanted(lw, 0)) {
    const Value g = lw.Has("weight") ? dy * lw.TensorAs("weight", x.dtype()) : dy;
    dx = (g - normal * MeanKeep(g * normal, dims.inner)) * rstd;
  }
  if (Wanted(lw, 1) && lw.Has("weight")) {
    dw = lw.fn().Reduce(dy * normal, hlo::Monoid::kAdd, dims.outer);
  }
  return {dx, dw};
}

// --- Group norm: input [N, C, ...] as [N, groups, C / groups, H * W].

struct Grouped {
  int64_t n, channels, area, groups;
  Dims shape, per_channel;
};
Grouped GroupsOf(Lowering& lw) {
  Grouped g{lw.Int("N"), lw.Int("C"), lw.Int("HxW"), lw.Int("group"), {}, {}};
  g.shape = {g.n, g.groups, g.channels / g.groups, g.area};
  g.per_channel = {1, g.groups, g.channels / g.groups, 1};
  return g;
}

Values GroupNorm(Lowering& lw) {
  const Value input = WideTensor(lw, "input");
  const Grouped g = GroupsOf(lw);
  const Value x = lw.fn().Reshape(input, g.shape);
  const Moments m = MomentsKeep(x, Dims{2, 3});
  const Value rstd = Rsqrt(m.variance + lw.Number("eps", x.dtype()));
  Value out = (x - m.mean) * rstd;
  const auto channel = [&](const char* name) {
    return lw.fn().Reshape(lw.TensorAs(name, x.dtype()), g.per_channel);
  };
  if (lw.Has("weight")) out = out * channel("weight");
  if (lw.Has("bias")) out = out + channel("bias");
  const Dims stats = {g.n, g.groups};
  return {lw.fn().Reshape(out, input.dims()), lw.fn().Reshape(m.mean, stats),
          lw.fn().Reshape(rstd, stats)};
}

Values GroupNormBackward(Lowering& lw) {
  const Value input = WideTensor(lw, "input");
  const Grouped g = GroupsOf(lw);
  const Value x = lw.fn().Reshape(input, g.shape);
  const Value dy = lw.fn().Reshape(lw.TensorAs("grad_out", x.dtype()), g.shape);
  const Dims stats = {g.n, g.groups, 1, 1}, inner = {2, 3}, outer = {0, 3};
  const Value rstd = lw.fn().Reshape(lw.TensorAs("rstd", x.dtype()), stats);
  const Value mean = lw.fn().Reshape(lw.TensorAs("mean", x.dtype()), stats);
  const Value normal = (x - mean) * rstd;
  Value dx, dw, db;
  if (Wanted(lw, 0)) {
    const Value scaled = lw.Has("weight")
                             ? dy * lw.fn().Reshape(lw.TensorAs("weight", x.dtype()), g.per_channel)
                             : dy;
    dx = (scaled - MeanKeep(scaled, inner) - normal * MeanKeep(scaled * normal, inner)) * rstd;
    dx = lw.fn().Reshape(dx, input.dims());
  }
  const auto channels = [&](Value v) {
    return lw.fn().Reshape(lw.fn().Reduce(v, hlo::Monoid::kAdd, outer), Dims{g.channels});
  };
  if (Wanted(lw, 1)) dw = channels(dy * normal);
  if (Wanted(lw, 2)) db = channels(dy);
  return {dx, dw, db};
}

// --- Batch norm. Dimension 1 is the channel; statistics are over all others.

struct BatchDims {
  Dims reduced, channel;  // what statistics span; the channel's place as a shape [1, C, 1, ...]
};
BatchDims BatchDimsOf(Value x) {
  BatchDims b;
  b.channel.assign(x.dims().size(), 1);
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (d != 1) b.reduced.push_back(d);
  }
  if (x.rank() > 1) b.channel[1] = x.dim(1);
  return b;
}

struct BatchResult {
  Value out, mean, rstd;
  Value running_mean, running_var;  // their new values; invalid: unchanged
};

BatchResult NormalizeBatch(Lowering& lw, bool training) {
  const Value x = WideTensor(lw, "input");
  const BatchDims dims = BatchDimsOf(x);
  const Dims flat = {x.dim(1)};
  const auto channel = [&](const char* name) {
    return lw.fn().Reshape(lw.TensorAs(name, x.dtype()), dims.channel);
  };
  BatchResult r;
  Value mean, variance;
  if (training) {
    const Moments m = MomentsKeep(x, dims.reduced);
    mean = m.mean, variance = m.variance;
    const auto blend = [&](const char* name, Value now) {
      if (!lw.Has(name)) return Value();
      const Value momentum = lw.Number("momentum", x.dtype());
      return momentum * lw.fn().Reshape(now, flat) +
             (1.0 - momentum) * lw.TensorAs(name, x.dtype());
    };
    const double n = static_cast<double>(Span(x, dims.reduced));
    r.running_mean = blend("running_mean", mean);
    r.running_var = blend("running_var", variance * (n / (n - 1)));
  } else if (lw.Has("running_mean") && lw.Has("running_var")) {
    mean = channel("running_mean"), variance = channel("running_var");
  } else {
    lw.Fail(
        InvalidArgument("Expected running_mean and running_var to be defined when training=False"));
    return r;
  }
  const Value rstd = Rsqrt(variance + lw.Number("eps", x.dtype()));
  r.out = (x - mean) * rstd;
  if (lw.Has("weight")) r.out = r.out * channel("weight");
  if (lw.Has("bias")) r.out = r.out + channel("bias");
  r.mean = lw.fn().Reshape(mean, flat);
  r.rstd = lw.fn().Reshape(rstd, flat);
  return r;
}

// Where PyTorch keeps nothing for the backward, as in evaluation on CPU, the result is empty.
Value Saved(Lowering& lw, size_t i, Value v) {
  const hlo::Type* expected = lw.Expected(i);
  return expected != nullptr && expected->dims == Dims{0} ? Value() : v;
}

Values BatchNorm(Lowering& lw) {
  const BatchResult r = NormalizeBatch(lw, lw.Bool("training"));
  return {r.out, Saved(lw, 1, r.mean), Saved(lw, 2, r.rstd), r.running_mean, r.running_var};
}

Values BatchNormNoStats(Lowering& lw) {
  const BatchResult r = NormalizeBatch(lw, lw.Bool("training"));
  return {r.out, Saved(lw, 1, r.mean), Saved(lw, 2, r.rstd)};
}

Values BatchNormWithUpdate(Lowering& lw) {
  const BatchResult r = NormalizeBatch(lw, true);
  const Value reserve = lw.fn().Constant({DType::kU8, {0}}, int64_t{0});
  return {r.out, r.mean, r.rstd, reserve, r.running_mean, r.running_var};
}

Values BackwardOf(Lowering& lw, bool training, const char* saved_rstd) {
  const Value x = WideTensor(lw, "input"), dy = lw.TensorAs("grad_out", x.dtype());
  const BatchDims dims = BatchDimsOf(x);
  const Dims flat = {x.dim(1)};
  const auto channel = [&](const char* name) {
    return lw.fn().Reshape(lw.TensorAs(name, x.dtype()), dims.channel);
  };
  const Value mean = channel(training ? "save_mean" : "running_mean");
  const Value rstd =
      training ? channel(saved_rstd) : Rsqrt(channel("running_var") + lw.Number("eps", x.dtype()));
  const Value normal = (x - mean) * rstd;
  Value dx;
  const Value sum = SumKeep(dy, dims.reduced), dot = SumKeep(dy * normal, dims.reduced);
  if (Wanted(lw, 0)) {
    const double n = static_cast<double>(Span(x, dims.reduced));
    const Value scale = lw.Has("weight") ? rstd * channel("weight") : rstd;
    dx = (training ? dy - (sum + normal * dot) / n : dy) * scale;
  }
  return {dx, Wanted(lw, 1) ? lw.fn().Reshape(dot, flat) : Value(),
          Wanted(lw, 2) ? lw.fn().Reshape(sum, flat) : Value()};
}

Values BatchNormBackward(Lowering& lw) { return BackwardOf(lw, lw.Bool("train"), "save_invstd"); }
Values BatchNormUpdateBackward(Lowering& lw) {
  return BackwardOf(lw, lw.Bool("update"), "save_var");
}

// --- Weight norm: w = v * g / |v|, the norm over all dimensions but one.

Dims AllBut(Value a, int64_t dim) {
  Dims out;
  for (int64_t d = 0; d < a.rank(); ++d) {
    if (d != dim) out.push_back(d);
  }
  return out;
}

Values WeightNorm(Lowering& lw) {
  const Value v = WideTensor(lw, "v"), g = lw.TensorAs("g", v.dtype());
  const Value norm = Sqrt(SumKeep(v * v, AllBut(v, WrapDim(lw.Int("dim"), v.rank()))));
  return {v * (g / norm), norm};
}

Values WeightNormBackward(Lowering& lw) {
  const Value v = WideTensor(lw, "saved_v"), g = lw.TensorAs("saved_g", v.dtype());
  const Value dw = lw.TensorAs("grad_w", v.dtype());
  const Value inverse = 1.0 / lw.TensorAs("saved_norms", v.dtype());
  const Value dot = SumKeep(dw * v, AllBut(v, WrapDim(lw.Int("dim"), v.rank())));
  return {g * (inverse * dw - inverse * inverse * inverse * v * dot), dot * inverse};
}

// Slices along `dim` whose p-norm exceeds maxnorm are scaled down to it.
Values Renorm(Lowering& lw) {
  const Value x = WideTensor(lw, "self");
  const Dims rest = AllBut(x, WrapDim(lw.Int("dim"), x.rank()));
  Dims kept = x.dims();
  for (int64_t d : rest) kept[static_cast<size_t>(d)] = 1;
  const Value size = IsComplex(x.dtype()) ? Abs(x) : x;
  const Value norm = lw.fn().Reshape(PNorm(size, lw.StaticNumber("p"), rest), kept);
  const Value limit = lw.Number("maxnorm", norm.dtype());
  const Value scale = Select(Gt(norm, limit), limit / (norm + 1e-7), Like(norm, 1.0));
  return {x * Convert(scale, x.dtype())};
}

constexpr OpDef kRows[] = {
    {.name = "aten::_batch_norm_with_update", .kind = Kind::kNorm, .lower = BatchNormWithUpdate},
    {.name = "aten::batch_norm_backward", .kind = Kind::kNorm, .lower = BatchNormUpdateBackward},
    // Composite, but PyTorch gives other accelerators kernels and autograd has its own formula for
    // them: one program in place of five.
    {.name = "aten::_fused_rms_norm", .kind = Kind::kNorm, .lower = RmsNorm, .meta = Meta::kInfer},
    {.name = "aten::_fused_rms_norm_backward", .kind = Kind::kNorm, .lower = RmsNormBackward},
    {.name = "aten::native_batch_norm",
     .kind = Kind::kNorm,
     .lower = BatchNorm,
     .mutates = "running_mean,running_var"},
    {.name = "aten::_native_batch_norm_legit", .kind = Kind::kNorm, .lower = BatchNorm},
    {.name = "aten::_native_batch_norm_legit.no_stats",
     .kind = Kind::kNorm,
     .lower = BatchNormNoStats},
    {.name = "aten::native_batch_norm_backward", .kind = Kind::kNorm, .lower = BatchNormBackward},
    {.name = "aten::native_group_norm", .kind = Kind::kNorm, .lower = GroupNorm},
    {.name = "aten::native_group_norm_backward", .kind = Kind::kNorm, .lower = GroupNormBackward},
    {.name = "aten::native_layer_norm", .kind = Kind::kNorm, .lower = LayerNorm},
    {.name = "aten::native_layer_norm_backward", .kind = Kind::kNorm, .lower = LayerNormBackward},
    {.name = "aten::renorm", .kind = Kind::kNorm, .lower = Renorm, .statics = "p"},
    {.name = "aten::_weight_norm_interface", .kind = Kind::kNorm, .lower = WeightNorm},
    {.name = "aten::_weight_norm_interface_backward",
     .kind = Kind::kNorm,
     .lower = WeightNormBackward},
};

}  // namespace

std::span<const OpDef> NormOps() { return kRows; }

}  // namespace tpu::ops
