// Scaled dot product attention, forward and backward, as two fused programs, and masked softmax.
// What it is not: the choice between this and PyTorch's composite form, which is torch/'s.
// Shapes: query [B, H, L, E], key [B, Hk, S, E], value [B, Hk, S, Ev]; H is a multiple of Hk.
#include <cmath>
#include <cstdint>

#include "ops/lowering.h"
#include "ops/norm_layers.h"
#include "ops/random_bits.h"
#include "ops/rows.h"
#include "ops/threefry.h"

namespace tpu::ops {
namespace {

using hlo::Value;
using hlo::Values;

const Dims kBatch = {0, 1};

struct Attention {
  Value query, key, value;  // key and value with as many heads as query
  int64_t groups = 1;       // query heads a key head
  DType wide = DType::kF32;
  Value scale;
  double dropout = 0;
};

// [B, Hk, S, E] -> [B, Hk * groups, S, E]: query head h reads key head h / groups.
Value RepeatHeads(Value a, int64_t groups) {
  if (groups == 1 || !a.valid()) return a;
  hlo::Function& fn = *a.function();
  const Value spread =
      fn.BroadcastInDim(a, Dims{a.dim(0), a.dim(1), groups, a.dim(2), a.dim(3)}, Dims{0, 1, 3, 4});
  return fn.Reshape(spread, Dims{a.dim(0), a.dim(1) * groups, a.dim(2), a.dim(3)});
}

Value SumHeads(Value a, int64_t groups) {
  if (groups == 1 || !a.valid()) return a;
  hlo::Function& fn = *a.function();
  const Value split = fn.Reshape(a, Dims{a.dim(0), a.dim(1) / groups, groups, a.dim(2), a.dim(3)});
  return fn.Reduce(split, hlo::Monoid::kAdd, Dims{2});
}

Attention Read(Lowering& lw) {
  Attention a;
  a.query = lw.Tensor("query"), a.key = lw.Tensor("key"), a.value = lw.Tensor("value");
  a.wide = OpMathType(a.query.dtype());
  if (a.query.rank() != 4 || a.key.rank() != 4 || a.value.rank() != 4) {
    lw.Fail(Unimplemented("attention takes [batch, heads, length, size]"));
    return a;
  }
  if (a.key.dim(1) == 0 || a.query.dim(1) % a.key.dim(1) != 0) {
    lw.Fail(InvalidArgument("attention: ", a.query.dim(1), " query heads over ", a.key.dim(1)));
    return a;
  }
  a.groups = a.query.dim(1) / a.key.dim(1);
  a.key = RepeatHeads(a.key, a.groups);
  a.value = RepeatHeads(a.value, a.groups);
  a.scale = lw.Has("scale") ? lw.Number("scale", a.wide)
                            : lw.fn().Scalar(a.wide, 1.0 / std::sqrt(double(a.query.dim(3))));
  a.dropout = lw.StaticNumber("dropout_p");
  return a;
}

Value Product(Value a, Value b, int64_t contract_a, int64_t contract_b, DType wide) {
  if (!a.valid() || !b.valid()) return {};
  return a.function()->DotGeneral(a, b, kBatch, kBatch, Dims{contract_a}, Dims{contract_b}, wide);
}

// Scores [B, H, L, S] with the bias added; what is masked is -inf.
Value Scores(Lowering& lw, const Attention& a) {
  hlo::Function& fn = lw.fn();
  Value s = Product(a.query, a.key, 3, 3, a.wide) * a.scale;
  const Value minus_inf = Like(s, -INFINITY);
  if (lw.Has("attn_bias")) {
    if (IsBool(lw.TensorType("attn_bias"))) {
      s = Select(fn.BroadcastTo(lw.Tensor("attn_bias"), s.dims()), s, minus_inf);
    } else {
      s = s + lw.TensorAs("attn_bias", a.wide);
    }
  }
  if (lw.Bool("is_causal")) {
    const hlo::Type square = {DType::kI32, {s.dim(2), s.dim(3)}};
    const Value seen = Ge(fn.Iota(square, 0), fn.Iota(square, 1));
    s = Select(seen, s, minus_inf);
  }
  return s;
}

// The softmax over the last dimension as exp(s - shift) / sum. A row with everything masked has the
// maximum -inf: it gets weights 0, not NaN.
struct SoftmaxParts {
  Value shift, weights, sum, inverse;
  Value Probabilities() const { return weights * inverse; }
};
SoftmaxParts Softmax(Value s) {
  hlo::Function& fn = *s.function();
  Dims row = s.dims();
  row[3] = 1;
  const Value top = fn.Reshape(fn.Reduce(s, hlo::Monoid::kMax, Dims{3}), row);
  SoftmaxParts p;
  p.shift = Select(Eq(top, -INFINITY), Like(top, 0.0), top);
  p.weights = Exp(s - p.shift);
  p.sum = SumKeep(p.weights, Dims{3});
  p.inverse = Select(Eq(p.sum, 0.0), Like(p.sum, 0.0), 1.0 / p.sum);
  return p;
}

// The same from what the forward kept, which is float32: too coarse for float64.
Value FromLogSumExp(Value s, Value lse) {
  return Exp(s - Select(Eq(lse, -INFINITY), Like(lse, 0.0), lse));
}

// The dropout of the probabilities, kept or 0, from two words that the forward draws and stores.
Value KeepMask(Lowering& lw, const Attention& a, Value low, Value high, const Dims& dims) {
  const Value zero = lw.fn().Scalar(DType::kU32, int64_t{0});
  const Lowering::Bits bits = ThreefryBits(lw.fn(), {low, high, zero, zero}, NumElements(dims), 0);
  const Value keep = lw.fn().Scalar(DType::kF32, 1.0 - a.dropout);
  const Value flat = Convert(Bernoulli(lw, bits, keep), a.wide);
  const double scale = a.dropout < 1 ? 1.0 / (1.0 - a.dropout) : 0.0;
  return lw.fn().Reshape(flat, dims) * scale;
}

// Results: output, logsumexp [B, H, L], cum_seq_q, cum_seq_k, max_q, max_k, philox_seed,
// philox_offset, debug_attn_mask; those without a value here are PyTorch's to leave undefined.
Values Forward(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Attention a = Read(lw);
  const Value s = Scores(lw, a);
  if (!s.valid()) return {};
  const SoftmaxParts parts = Softmax(s);
  Value p = parts.weights;
  Value seed = fn.Scalar(DType::kI64, int64_t{0}), offset = seed;
  if (a.dropout > 0) {
    const Lowering::Bits words = lw.RandomBits(1);
    const Value low = fn.Reshape(words.low, Dims{}), high = fn.Reshape(words.high, Dims{});
    p = p * KeepMask(lw, a, low, high, s.dims());
    seed = Convert(low, DType::kI64), offset = Convert(high, DType::kI64);
  }
  // The rows are divided after the product: E numbers instead of S.
  const Value out = Product(Convert(p, a.value.dtype()), a.value, 3, 2, a.wide) * parts.inverse;
  const Value lse = fn.Reshape(parts.shift + Log(parts.sum), Dims{s.dim(0), s.dim(1), s.dim(2)});
  return {out, lse, {}, {}, {}, {}, seed, offset, {}};
}

Value ReduceTo(Value a, const Dims& dims) {
  Dims summed;
  const int64_t lead = a.rank() - static_cast<int64_t>(dims.size());
  for (int64_t d = 0; d < a.rank(); ++d) {
    if (d < lead || (dims[static_cast<size_t>(d - lead)] == 1 && a.dim(d) != 1))
      summed.push_back(d);
  }
  if (!a.valid()) return a;
  return a.function()->Reshape(a.function()->Reduce(a, hlo::Monoid::kAdd, summed), dims);
}

Values Backward(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Attention a = Read(lw);
  const Value s = Scores(lw, a);
  if (!s.valid()) return {};
  const DType own = a.query.dtype();
  Dims row = s.dims();
  row[3] = 1;
  const Value p = a.wide == DType::kF64 ? Softmax(s).Probabilities()
                                        : FromLogSumExp(s, fn.Reshape(lw.Tensor("logsumexp"), row));
  const Value dout = lw.TensorAs("grad_out", own);
  Value keep;
  if (a.dropout > 0) {
    const auto word = [&](const char* name) { return lw.TensorAs(name, DType::kU32); };
    keep = KeepMask(lw, a, word("philox_seed"), word("philox_offset"), s.dims());
  }
  const Value dropped = Convert(keep.valid() ? p * keep : p, own);
  Value dp = Product(dout, a.value, 3, 3, a.wide);
  if (keep.valid()) dp = dp * keep;
  const Value dot = SumKeep(Convert(dout, a.wide) * lw.TensorAs("out", a.wide), Dims{3});
  const Value ds = p * (dp - dot), narrow = Convert(ds, own);
  const Dims wanted = lw.Ints("grad_input_mask");
  Value dq, dk, dv, db;
  if (wanted[0]) dq = Product(narrow, a.key, 3, 2, a.wide) * a.scale;
  if (wanted[1]) dk = SumHeads(Product(narrow, a.query, 2, 2, a.wide) * a.scale, a.groups);
  if (wanted[2]) dv = SumHeads(Product(dropped, dout, 2, 2, a.wide), a.groups);
  if (wanted[3] && lw.Has("attn_bias")) db = ReduceTo(ds, lw.TensorDims("attn_bias"));
  return {dq, dk, dv, db};
}

// --- Masked softmax: True in the mask takes an element out.

Value MaskFor(Lowering& lw, Value x) {
  const Value mask = lw.TensorAs("mask", DType::kBool);
  if (mask.dims() == x.dims()) return mask;
  const int64_t length = x.dim(x.rank() - 1);
  const bool padding = lw.OptInt("mask_type").value_or(2) == 1;
  Dims dims(x.dims().size(), 1);
  dims.back() = length;
  padding ? dims.front() = x.dim(0) : dims[dims.size() - 2] = length;
  return lw.fn().BroadcastTo(lw.fn().Reshape(mask, dims), x.dims());
}

Dims SoftmaxDim(Lowering& lw, Value x) {
  return {WrapDim(lw.OptInt("dim").value_or(x.rank() - 1), x.rank())};
}

Values MaskedSoftmax(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Value x = WideTensor(lw, "self");
  const Value mask = MaskFor(lw, x);
  const Dims dim = SoftmaxDim(lw, x);
  Dims kept = x.dims();
  if (!kept.empty()) kept[static_cast<size_t>(dim[0])] = 1;
  const Value left = Select(mask, Like(x, -INFINITY), x);
  const Value top = fn.Reshape(fn.Reduce(left, hlo::Monoid::kMax, dim), kept);
  const Value e = Select(mask, Like(x, 0.0), Exp(x - top));
  return {Convert(e / SumKeep(e, dim), lw.TensorType("self"))};
}

Values MaskedSoftmaxBackward(Lowering& lw) {
  const Value y = WideTensor(lw, "output"), g = lw.TensorAs("grad_output", y.dtype());
  const Value mask = lw.fn().BroadcastTo(lw.TensorAs("mask", DType::kBool), y.dims());
  const Value zero = Like(y, 0.0), product = Select(mask, zero, g * y);
  const Value out = product - y * SumKeep(product, SoftmaxDim(lw, y));
  return {Convert(Select(mask, zero, out), lw.TensorType("output"))};
}

constexpr OpDef kRows[] = {
    {.name = "aten::_masked_softmax",
     .kind = Kind::kAttention,
     .lower = MaskedSoftmax,
     .meta = Meta::kInfer},
    {.name = "aten::_masked_softmax_backward",
     .kind = Kind::kAttention,
     .lower = MaskedSoftmaxBackward,
     .meta = Meta::kInfer},
    {.name = "aten::_scaled_dot_product_fused_attention_overrideable",
     .kind = Kind::kAttention,
     .lower = Forward,
     .statics = "dropout_p",
     .random = true},
    {.name = "aten::_scaled_dot_product_fused_attention_overrideable_backward",
     .kind = Kind::kAttention,
     .lower = Backward,
     .statics = "dropout_p"},
};

}  // namespace

std::span<const OpDef> AttentionOps() { return kRows; }

}  // namespace tpu::ops
