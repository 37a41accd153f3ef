// Losses whose target is a class index: negative log likelihood and the margin losses.
// What it is not: cross_entropy, which PyTorch composes of log_softmax and these.
// A target outside of the classes raises IndexError at the next synchronisation.
#include "ops/loss.h"
#include "ops/lowering.h"
#include "ops/norm_layers.h"
#include "ops/rows.h"

namespace tpu::ops {
namespace {

using hlo::Value;
using hlo::Values;

// [N, C, ...] scores and their targets [N, ...]. A single sample [C] gets a dimension in front.
struct ClassTargets {
  Value scores;
  Value index;    // i32; out-of-range entries as they came
  Value valid;    // i1: not ignored
  Value classes;  // i32 [N, C, ...]: each element's class
};

ClassTargets TargetsOf(Lowering& lw, std::optional<int64_t> ignore) {
  hlo::Function& fn = lw.fn();
  ClassTargets t;
  t.scores = WideTensor(lw, "self");
  if (t.scores.rank() < 2) t.scores = fn.Reshape(t.scores, Dims{1, t.scores.numel()});
  Dims dims = t.scores.dims();
  dims.erase(dims.begin() + 1);
  const DType own = lw.TensorType("target");
  const DType type = ItemSize(own) < 4 ? DType::kI32 : own;
  Value index = fn.Reshape(lw.TensorAs("target", type), dims);
  if (ignore) {
    t.valid = fn.Compare(hlo::CompareOp::kNe, index, fn.Constant(index.type(), *ignore));
  } else {
    t.valid = fn.Constant({DType::kBool, dims}, true);
  }
  index = lw.CheckIndex(index, t.scores.dim(1), "target", 1, /*wrap=*/false, ~t.valid);
  t.index = Convert(index, DType::kI32);
  t.classes = fn.Iota({DType::kI32, t.scores.dims()}, 1);
  return t;
}

// scores[n, index[n, ...], ...]
Value Pick(Lowering& lw, Value scores, Value index) {
  if (scores.numel() == 0) return lw.fn().Constant({scores.dtype(), index.dims()}, int64_t{0});
  hlo::GatherDims d;
  for (int64_t i = 0; i < scores.rank(); ++i) {
    if (i == 1) continue;
    d.operand_batching_dims.push_back(i);
    d.start_indices_batching_dims.push_back(i == 0 ? 0 : i - 1);
  }
  d.collapsed_slice_dims = {1};
  d.start_index_map = {1};
  d.index_vector_dim = index.rank();
  return lw.fn().Gather(scores, index, d, Dims(scores.dims().size(), 1));
}

Value PickWeight(Lowering& lw, Value index, DType dtype) {
  if (!lw.Has("weight")) return {};
  hlo::GatherDims d;
  d.collapsed_slice_dims = {0};
  d.start_index_map = {0};
  d.index_vector_dim = index.rank();
  return lw.fn().Gather(lw.TensorAs("weight", dtype), index, d, Dims{1});
}

Value WeightOfEach(Lowering& lw, const ClassTargets& t) {
  const Value w = PickWeight(lw, t.index, t.scores.dtype());
  const Value one = Convert(t.valid, t.scores.dtype());
  return w.valid() ? Select(t.valid, w, Like(w, 0.0)) : one;
}

Values NllForward(Lowering& lw) {
  const ClassTargets t = TargetsOf(lw, lw.Int("ignore_index"));
  const Value w = WeightOfEach(lw, t);
  const Value picked = Pick(lw, t.scores, t.index);
  const Value losses = Select(t.valid, -picked * w, Like(w, 0.0));
  const Value total = SumAll(w);
  switch (ReductionOf(lw)) {
    case Reduction::kNone: {
      const bool single = lw.TensorDims("self").size() == 1;
      return {single ? lw.fn().Reshape(losses, Dims{}) : losses, Like(total, 0.0)};
    }
    case Reduction::kMean: return {SumAll(losses) / total, total};
    case Reduction::kSum: return {SumAll(losses), total};
  }
  return {lw.Fail(InvalidArgument("unknown reduction"))};
}

// A selection by class, not a scatter: one fused loop.
Values NllBackward(Lowering& lw) {
  const ClassTargets t = TargetsOf(lw, lw.Int("ignore_index"));
  const Value w = WeightOfEach(lw, t);
  Value g = lw.TensorAs("grad_output", t.scores.dtype());
  if (ReductionOf(lw) == Reduction::kMean) g = g / lw.TensorAs("total_weight", g.dtype());
  if (ReductionOf(lw) == Reduction::kNone) g = lw.fn().Reshape(g, t.index.dims());
  const Value each = Unsqueeze(-w * g, 1);
  const Value hit = Eq(t.classes, Unsqueeze(t.index, 1)) & Unsqueeze(t.valid, 1);
  const Value out = Select(hit, each, Like(each, 0.0));
  return {lw.fn().Reshape(out, lw.TensorDims("self"))};
}

// --- multi_margin_loss: sum over the wrong classes of max(0, margin - right + wrong)^p / C.

struct Margins {
  ClassTargets t;
  Value excess;  // max(0, ...), 0 at the right class
  Value hit;     // the right class
  Value factor;  // [N, 1]: the target's weight / C
};

Margins MarginsOf(Lowering& lw) {
  Margins m{TargetsOf(lw, std::nullopt), {}, {}, {}};
  const ClassTargets& t = m.t;
  const Value right = Unsqueeze(Pick(lw, t.scores, t.index), 1);
  m.hit = Eq(t.classes, Unsqueeze(t.index, 1));
  const Value z = lw.Number("margin", t.scores.dtype()) - right + t.scores;
  m.excess = Select(m.hit | Le(z, 0.0), Like(z, 0.0), z);
  const Value w = PickWeight(lw, t.index, z.dtype());
  m.factor = Unsqueeze((w.valid() ? w : Like(Convert(t.index, z.dtype()), 1.0)) /
                           static_cast<double>(t.scores.dim(1)),
                       1);
  return m;
}

Values MultiMargin(Lowering& lw) {
  const Margins m = MarginsOf(lw);
  const Value powered = lw.StaticNumber("p") == 1 ? m.excess : m.excess * m.excess;
  const Value losses = lw.fn().Reduce(powered * m.factor, hlo::Monoid::kAdd, Dims{1});
  const Value out = Reduced(lw, losses);
  const bool single = lw.TensorDims("target").empty();
  return {single ? lw.fn().Reshape(out, Dims{}) : out};
}

Value GradOfSamples(Lowering& lw, const ClassTargets& t) {
  Value g = lw.TensorAs("grad_output", t.scores.dtype());
  const int64_t n = t.scores.dim(0);
  if (ReductionOf(lw) == Reduction::kMean) g = g / static_cast<double>(n);
  if (ReductionOf(lw) == Reduction::kNone) return lw.fn().Reshape(g, Dims{n, 1});
  return g;
}

// In the type and shape of `self`: no meta kernel says so for these.
Value SelfLike(Lowering& lw, Value a) {
  return Convert(lw.fn().Reshape(a, lw.TensorDims("self")), lw.TensorType("self"));
}

Values MultiMarginBackward(Lowering& lw) {
  const Margins m = MarginsOf(lw);
  const Value positive = Convert(Gt(m.excess, 0.0), m.excess.dtype());
  const Value slope = lw.StaticNumber("p") == 1 ? positive : m.excess * 2.0;
  const Value wrong = slope * m.factor * GradOfSamples(lw, m.t);
  const Value right = -SumKeep(wrong, Dims{1});
  return {SelfLike(lw, Select(m.hit, right, wrong))};
}

// --- multilabel_margin_loss: the targets of a sample are listed up to the first -1.

struct Labels {
  Value scores;     // [N, C]
  Value hit;        // [N, J, C]: target j is class c
  Value is_target;  // [N, C]
  Value active;     // [N, J, C]: 1 - scores[target j] + scores[c] where positive and c is no target
  Value excess;     // the same, as numbers
};

Labels LabelsOf(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  Labels l;
  l.scores = WideTensor(lw, "self");
  const int64_t classes = l.scores.rank() == 0 ? 1 : l.scores.dim(l.scores.rank() - 1);
  const int64_t n = l.scores.rank() == 2 ? l.scores.dim(0) : 1;
  l.scores = fn.Reshape(l.scores, Dims{n, classes});
  const Value given = fn.Reshape(lw.TensorAs("target", DType::kI64), Dims{n, classes});
  const Value position = fn.Iota({DType::kI32, {n, classes}}, 1);
  const Value end = Select(Eq(given, -1.0), position, Like(position, classes));
  const Value first = fn.Reduce(end, hlo::Monoid::kMin, Dims{1});
  const Value listed = Lt(position, Unsqueeze(first, 1));
  const Value target = lw.CheckIndex(given, classes, "target", 1, /*wrap=*/false, ~listed);
  const Value each = fn.Iota({DType::kI32, {n, classes, classes}}, 2);
  l.hit = Eq(each, Unsqueeze(Convert(target, DType::kI32), 2)) & Unsqueeze(listed, 2);
  l.is_target = fn.Reduce(l.hit, hlo::Monoid::kOr, Dims{1});
  const Value across = Unsqueeze(l.scores, 1);
  const Value of_target = SumKeep(Select(l.hit, across, Like(across, 0.0)), Dims{2});
  const Value z = 1.0 - of_target + across;
  l.active = Gt(z, 0.0) & Unsqueeze(listed, 2) & ~Unsqueeze(l.is_target, 1);
  l.excess = Select(l.active, z, Like(z, 0.0));
  return l;
}

Values MultilabelMargin(Lowering& lw) {
  const Dims given = lw.TensorDims("self"), target = lw.TensorDims("target");
  if (given.size() > 2 || !std::ranges::equal(given, target)) {
    return {lw.Fail(InvalidArgument("multilabel_margin_loss: inconsistent target size ",
                                    ToString(target), " for sizes ", ToString(given)))};
  }
  const Labels l = LabelsOf(lw);
  const Value losses = lw.fn().Reduce(l.excess, hlo::Monoid::kAdd, Dims{1, 2}) /
                       static_cast<double>(l.scores.dim(1));
  const Value out = Reduced(lw, losses);
  const bool single = lw.TensorDims("self").size() < 2;
  const Value flags = Convert(l.is_target, l.scores.dtype());
  return {single ? lw.fn().Reshape(out, Dims{}) : out,
          lw.fn().Reshape(flags, lw.TensorDims("target"))};
}

Values MultilabelMarginBackward(Lowering& lw) {
  const Labels l = LabelsOf(lw);
  const int64_t n = l.scores.dim(0);
  Value g = lw.TensorAs("grad_output", l.scores.dtype()) / static_cast<double>(l.scores.dim(1));
  if (ReductionOf(lw) == Reduction::kMean) g = g / static_cast<double>(n);
  if (ReductionOf(lw) == Reduction::kNone) g = lw.fn().Reshape(g, Dims{n, 1});
  const Value active = Convert(l.active, l.scores.dtype());
  const Value wrong = lw.fn().Reduce(active, hlo::Monoid::kAdd, Dims{1});
  const Value right = SumKeep(active, Dims{2}) * Convert(l.hit, l.scores.dtype());
  return {SelfLike(lw, (wrong - lw.fn().Reduce(right, hlo::Monoid::kAdd, Dims{1})) * g)};
}

constexpr OpDef kRows[] = {
    {.name = "aten::_ctc_loss", .kind = Kind::kLoss, .lower = CtcForward},
    {.name = "aten::_ctc_loss_backward",
     .kind = Kind::kLoss,
     .lower = CtcBackward,
     .meta = Meta::kInfer},
    {.name = "aten::multi_margin_loss", .kind = Kind::kLoss, .lower = MultiMargin, .statics = "p"},
    {.name = "aten::multi_margin_loss_backward",
     .kind = Kind::kLoss,
     .lower = MultiMarginBackward,
     .statics = "p",
     .meta = Meta::kInfer},
    {.name = "aten::multilabel_margin_loss_backward",
     .kind = Kind::kLoss,
     .lower = MultilabelMarginBackward,
     .meta = Meta::kInfer},
    // The meta kernel gives one sample's loss a dimension that it hasn't.
    {.name = "aten::multilabel_margin_loss_forward",
     .kind = Kind::kLoss,
     .lower = MultilabelMargin,
     .meta = Meta::kInfer},
    {.name = "aten::nll_loss2d_backward", .kind = Kind::kLoss, .lower = NllBackward},
    {.name = "aten::nll_loss2d_forward", .kind = Kind::kLoss, .lower = NllForward},
    {.name = "aten::nll_loss_backward", .kind = Kind::kLoss, .lower = NllBackward},
    {.name = "aten::nll_loss_forward", .kind = Kind::kLoss, .lower = NllForward},
};

}  // namespace

std::span<const OpDef> ClassLossOps() { return kRows; }

}  // namespace tpu::ops
