// Connectionist temporal classification: the loss and its derivative, by the forward and backward
// recursions over time in log space.
// Source: Graves et al., "Connectionist temporal classification", ICML 2006, equations 6 to 16.
// What it is not: ctc_loss, PyTorch's composite above it. Lengths are parts of the key, as PyTorch
// passes them as integers. The rows are in class_loss.cc.
#include <algorithm>
#include <cmath>

#include "ops/loss.h"
#include "ops/lowering.h"
#include "ops/norm_layers.h"

namespace tpu::ops {
namespace {

using hlo::Value;
using hlo::Values;

// Positions s = 0 .. 2S are labels with a blank before, between and after them.
struct Problem {
  Value log_probs;  // [T, N, C]
  Value extended;   // i32 [N, 2S + 1]: the class of each position
  Value emission;   // [T, N, 2S + 1]: its log probability at each time
  Value skips;      // i1 [N, 2S + 1]: position s may follow s - 2
  Value last;       // i32 [N, 1]: the last position of each sample, 2 * target length
  Value times;      // i32 [N, 1]: input lengths
  int64_t time = 0, batch = 0, classes = 0, positions = 0;
};

Value LengthColumn(hlo::Function& fn, const Dims& lengths, int64_t factor) {
  Dims values = lengths;
  for (int64_t& v : values) v *= factor;
  return fn.ConstantI64(values, {DType::kI32, {static_cast<int64_t>(values.size()), 1}});
}

// Targets [N, S], out of the one-dimensional form where all samples follow each other.
Value PaddedTargets(Lowering& lw, const Dims& lengths, int64_t longest) {
  hlo::Function& fn = lw.fn();
  const int64_t n = static_cast<int64_t>(lengths.size());
  const Value given = lw.Tensor("targets");
  if (!given.valid()) return given;
  if (longest == 0) return fn.Constant({given.dtype(), {n, 0}}, int64_t{0});
  if (given.rank() == 2) {
    return fn.Slice(given, Dims{0, 0}, Dims{n, longest}, Dims{1, 1});
  }
  Dims at;
  int64_t start = 0;
  for (int64_t length : lengths) {
    for (int64_t i = 0; i < longest; ++i) at.push_back(i < length ? start + i : 0);
    start += length;
  }
  hlo::GatherDims d;
  d.collapsed_slice_dims = {0};
  d.start_index_map = {0};
  d.index_vector_dim = 2;
  return fn.Gather(given, fn.ConstantI64(at, {DType::kI32, {n, longest}}), d, Dims{1});
}

// `a` [N, P] moved `by` positions along the second dimension, -inf coming in.
Value Moved(Value a, int64_t by) {
  hlo::Function& fn = *a.function();
  const Value fill = fn.Scalar(a.dtype(), -INFINITY);
  return fn.Pad(a, fill, Dims{0, by}, Dims{0, -by}, Dims{0, 0});
}

Problem ProblemOf(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  Problem p;
  p.log_probs = WideTensor(lw, "log_probs");
  p.time = p.log_probs.dim(0), p.batch = p.log_probs.dim(1), p.classes = p.log_probs.dim(2);
  const Dims lengths = lw.Ints("target_lengths");
  const int64_t longest = lengths.empty() ? 0 : *std::ranges::max_element(lengths);
  p.positions = 2 * longest + 1;
  p.last = LengthColumn(fn, lengths, 2);
  p.times = LengthColumn(fn, lw.Ints("input_lengths"), 1);

  Value labels = PaddedTargets(lw, lengths, longest);
  if (longest > 0) {
    const Value column = fn.Iota({DType::kI32, labels.dims()}, 1) * 2.0;
    labels = lw.CheckIndex(labels, p.classes, "targets", 1, /*wrap=*/false, Ge(column, p.last));
  }
  labels = Convert(labels, DType::kI32);
  // Blank, label, blank, label, ..., blank.
  const Value blank = fn.Scalar(DType::kI32, lw.Int("blank"));
  p.extended = longest > 0 ? fn.Pad(labels, blank, Dims{0, 1}, Dims{0, 1}, Dims{0, 1})
                           : fn.BroadcastTo(blank, Dims{p.batch, 1});
  const Value before =
      fn.Pad(p.extended, fn.Scalar(DType::kI32, int64_t{-1}), Dims{0, 2}, Dims{0, -2}, Dims{0, 0});
  p.skips = Ne(p.extended, blank) & Ne(p.extended, before) & Ge(before, 0.0);

  hlo::GatherDims d;
  d.offset_dims = {0};
  d.collapsed_slice_dims = {2};
  d.operand_batching_dims = {1};
  d.start_indices_batching_dims = {0};
  d.start_index_map = {2};
  d.index_vector_dim = 2;
  p.emission = fn.Gather(p.log_probs, p.extended, d, Dims{p.time, 1, 1});
  return p;
}

Value LogAddExp(Value a, Value b) {
  const Value top = Max(a, b), least = Min(a, b);
  return Select(Eq(least, -INFINITY), top, top + Log1p(Exp(least - top)));
}

Value At(hlo::Function& fn, Value series, Value t) {  // series[t] of [T, N, P]
  const Value zero = fn.Scalar(DType::kI32, int64_t{0});
  const Dims one = {1, series.dim(1), series.dim(2)};
  return fn.Reshape(fn.DynamicSlice(series, {t, zero, zero}, one), Dims{one[1], one[2]});
}

Value WithAt(hlo::Function& fn, Value series, Value t, Value now) {
  const Value zero = fn.Scalar(DType::kI32, int64_t{0});
  return fn.DynamicUpdateSlice(series, Unsqueeze(now, 0), {t, zero, zero});
}

// Log probabilities of all ways to be at each position, [T, N, P]: of the beginnings up to each
// time.
Value Alphas(hlo::Function& fn, const Problem& p) {
  const Value position = fn.Iota(p.extended.type(), 1);
  const Value none = fn.Constant({p.emission.dtype(), p.extended.dims()}, -INFINITY);
  const Value start = Select(Le(position, 1.0) & Le(position, p.last),
                             At(fn, p.emission, fn.Scalar(DType::kI32, int64_t{0})), none);
  const Value all = fn.Constant(p.emission.type(), -INFINITY);
  const Value zero = fn.Scalar(DType::kI32, int64_t{0});
  const Values out = fn.While(
      {fn.Scalar(DType::kI32, int64_t{1}), start, WithAt(fn, all, zero, start)},
      [&](hlo::Function&, const Values& v) { return Values{Lt(v[0], double(p.time))}; },
      [&](hlo::Function& f, const Values& v) {
        const Value far = Select(p.skips, Moved(v[1], 2), Like(v[1], -INFINITY));
        const Value way = LogAddExp(LogAddExp(v[1], Moved(v[1], 1)), far);
        const Value now =
            Select(Le(position, p.last), way + At(f, p.emission, v[0]), Like(v[1], -INFINITY));
        return Values{v[0] + 1.0, now, WithAt(f, v[2], v[0], now)};
      });
  return out.empty() ? Value() : out[2];
}

// Of the endings from each time on, the time's own emission included.
Value Betas(hlo::Function& fn, const Problem& p) {
  const Value position = fn.Iota(p.extended.type(), 1);
  const Value none = fn.Constant({p.emission.dtype(), p.extended.dims()}, -INFINITY);
  const Value can_end = Le(position, p.last) & Ge(position, p.last - 1.0);
  const Value skips_from =
      fn.Pad(p.skips, fn.Scalar(DType::kBool, false), Dims{0, -2}, Dims{0, 2}, Dims{0, 0});
  const Values out = fn.While(
      {fn.Scalar(DType::kI32, p.time - 1), none, fn.Constant(p.emission.type(), -INFINITY)},
      [&](hlo::Function&, const Values& v) { return Values{Ge(v[0], 0.0)}; },
      [&](hlo::Function& f, const Values& v) {
        const Value far = Select(skips_from, Moved(v[1], -2), Like(v[1], -INFINITY));
        const Value way = LogAddExp(LogAddExp(v[1], Moved(v[1], -1)), far);
        const Value here = Eq(p.times - 1.0, v[0]);  // [N, 1]
        const Value end = Select(can_end, Like(way, 0.0), Like(way, -INFINITY));
        const Value later = Lt(p.times - 1.0, v[0]);
        const Value open = Select(later, Like(way, -INFINITY), Select(here, end, way));
        const Value now =
            Select(Le(position, p.last), open + At(f, p.emission, v[0]), Like(way, -INFINITY));
        return Values{v[0] - 1.0, now, WithAt(f, v[2], v[0], now)};
      });
  return out.empty() ? Value() : out[2];
}

}  // namespace

Values CtcForward(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Problem p = ProblemOf(lw);
  if (p.time == 0 || p.batch == 0) return {lw.Fail(InvalidArgument("ctc_loss of no input"))};
  const Value alphas = fn.Transpose(Alphas(fn, p), Dims{1, 0, 2});  // [N, T, P]
  const Value t = fn.Iota({DType::kI32, alphas.dims()}, 1);
  const Value position = fn.Iota({DType::kI32, alphas.dims()}, 2);
  const Value last = Unsqueeze(p.last, 2), times = Unsqueeze(p.times, 2);
  const Value end = Eq(t, times - 1.0) & Le(position, last) & Ge(position, last - 1.0);
  const Value ends = Select(end, alphas, Like(alphas, -INFINITY));
  const Value top = fn.Reduce(ends, hlo::Monoid::kMax, Dims{1, 2});
  const Value safe = Select(Eq(top, -INFINITY), Like(top, 0.0), top);
  const Value shifted = Exp(ends - fn.Reshape(safe, Dims{p.batch, 1, 1}));
  Value nll = -(safe + Log(fn.Reduce(shifted, hlo::Monoid::kAdd, Dims{1, 2})));
  // Nothing to read and nothing to say is certain.
  const Value nothing = Eq(p.times, 0.0) & Eq(p.last, 0.0);
  nll = Select(fn.Reshape(nothing, Dims{p.batch}), Like(nll, 0.0), nll);
  return {nll, alphas};
}

Values CtcBackward(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Problem p = ProblemOf(lw);
  const DType wide = p.log_probs.dtype();
  const Value alphas = fn.Transpose(lw.TensorAs("log_alpha", wide), Dims{1, 0, 2});
  const Value both = alphas + Betas(fn, p);  // [T, N, P]
  const Value nll = fn.Reshape(lw.TensorAs("neg_log_likelihood", wide), Dims{1, p.batch, 1});
  const Value grad = fn.Reshape(lw.TensorAs("grad", wide), Dims{1, p.batch, 1});
  Dims row = both.dims();
  row[2] = 1;
  const Value top = fn.Reshape(fn.Reduce(both, hlo::Monoid::kMax, Dims{2}), row);
  const Value safe = Select(Eq(top, -INFINITY), Like(top, 0.0), top);
  // Sums over the positions of each class, as a product with an indicator.
  const Value each = fn.Iota({DType::kI32, {p.batch, p.positions, p.classes}}, 2);
  const Value of_class = Convert(Eq(each, Unsqueeze(p.extended, 2)), wide);
  const Value sums = fn.Transpose(
      fn.DotGeneral(Exp(both - safe), of_class, Dims{1}, Dims{0}, Dims{2}, Dims{1}), Dims{1, 0, 2});
  const Value spent = Exp(Log(sums) + safe + nll - p.log_probs);
  const Value expected = Select(Eq(sums, 0.0), Like(sums, 0.0), spent);
  Value out = (Exp(p.log_probs) - expected) * grad;
  const Value t = fn.Iota({DType::kI32, out.dims()}, 0);
  out = Select(Lt(t, Unsqueeze(fn.Reshape(p.times, Dims{1, p.batch}), 2)), out, Like(out, 0.0));
  if (lw.Bool("zero_infinity")) out = Select(Eq(nll, INFINITY), Like(out, 0.0), out);
  return {Convert(out, lw.TensorType("log_probs"))};
}

}  // namespace tpu::ops
