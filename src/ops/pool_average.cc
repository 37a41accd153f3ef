// Average pooling and its gradient, plain and adaptive. Sums in the accumulation type, one
// division, one rounding. What it is not: avg_pool1d and adaptive_avg_pool2d, which are composites
// of these.
#include <algorithm>

#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/pool_window.h"
#include "ops/rows.h"

namespace tpu::ops {
namespace {

using hlo::Value;
using hlo::Values;

constexpr int64_t kMaxPositions = 64;  // as in pool.cc

// By what each window's sum is divided: a scalar, or shaped as the output's spatial dimensions.
Value Divisors(Lowering& lw, const PoolWindow& w, DType t) {
  hlo::Function& fn = lw.fn();
  if (lw.Has("divisor_override")) return fn.Scalar(t, lw.Int("divisor_override"));
  const bool with_padding = lw.BoolOr("count_include_pad", true);
  Value product;
  int64_t constant = 1;
  for (size_t i = 0; i < w.rank; ++i) {
    // Positions of each window that count, as PyTorch has it: those up to the padded end, or those
    // inside the input.
    Dims counts;
    for (int64_t o = 0; o < w.output[i]; ++o) {
      const int64_t start = o * w.stride[i] - w.padding[i];
      const int64_t end = std::min(start + w.size[i], w.input[i] + w.padding[i]);
      counts.push_back(with_padding ? end - start
                                    : std::min(end, w.input[i]) - std::max<int64_t>(start, 0));
    }
    if (std::all_of(counts.begin(), counts.end(), [&](int64_t n) { return n == counts[0]; })) {
      constant *= counts.empty() ? 1 : counts[0];
      continue;
    }
    const Value line = fn.ConstantI64(counts, {t, {w.output[i]}});
    const Value spread = fn.BroadcastInDim(line, w.output, Dims{static_cast<int64_t>(i)});
    product = product.valid() ? product * spread : spread;
  }
  if (!product.valid()) return fn.Scalar(t, constant);
  return constant == 1 ? product : product * static_cast<double>(constant);
}

// Windows that tile their input exactly: split each dimension in two and sum one half.
bool Tiles(const PoolWindow& w) {
  for (size_t i = 0; i < w.rank; ++i) {
    const bool single = w.output[i] == 1 && w.size[i] == w.input[i];
    const bool even = w.stride[i] == w.size[i] && w.output[i] * w.size[i] == w.input[i];
    if (w.padding[i] != 0 || w.dilation[i] != 1 || !(single || even)) return false;
  }
  return true;
}

Value SumOfTiles(hlo::Function& fn, const PoolWindow& w, Value input) {
  Dims split(input.dims().begin(), input.dims().end() - static_cast<ptrdiff_t>(w.rank)), summed;
  for (size_t i = 0; i < w.rank; ++i) {
    split.push_back(w.output[i]);
    summed.push_back(static_cast<int64_t>(split.size()));
    split.push_back(w.size[i]);
  }
  return fn.Reduce(fn.Reshape(input, split), hlo::Monoid::kAdd, summed);
}

Value SumOfWindows(hlo::Function& fn, const PoolWindow& w, Value input) {
  if (Tiles(w)) return SumOfTiles(fn, w, input);
  const Value padded = PadToWindows(w, input, fn.Scalar(input.dtype(), int64_t{0}));
  if (w.Positions() <= kMaxPositions) {
    Value sum;
    ForEachIndex(w.size, [&](const Dims& offset) {
      const Value part = WindowElement(w, padded, offset);
      sum = sum.valid() ? sum + part : part;
    });
    return sum;
  }
  std::vector<hlo::Window> windows(static_cast<size_t>(input.rank()));
  for (size_t i = 0; i < w.rank; ++i) {
    windows[windows.size() - w.rank + i] = {.size = w.size[i], .stride = w.stride[i]};
  }
  return fn.ReduceWindow(padded, hlo::Monoid::kAdd, windows);
}

template <size_t rank>
Values AveragePool(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const DType t = lw.TensorType("self"), acc = OpMathType(t);
  const Value input = lw.TensorAs("self", acc);
  PoolWindow w;
  if (!input.valid() || !ReadPoolWindow(lw, input.dims(), rank, &w)) return {Value()};
  const Dims dims = WithSpatial(input.dims(), rank, w.output);
  if (NumElements(dims) == 0) return {fn.Constant({t, dims}, int64_t{0})};
  return {Cast(SumOfWindows(fn, w, input) / Divisors(lw, w, acc), t)};
}

// i1 over a dimension of the input: whether the window `back` before the last one still reaches a
// position.
Value Reaches(hlo::Function& fn, const PoolWindow& w, size_t i, int64_t back) {
  const Value at = fn.Iota({DType::kI32, {w.input[i]}}, 0) + static_cast<double>(w.padding[i]);
  const Value into = fn.Binary(hlo::BinaryOp::kRemainder, at, Like(at, w.stride[i])) +
                     static_cast<double>(back * w.stride[i]);
  return Lt(into, static_cast<double>(w.size[i]));
}

template <size_t rank>
Values AveragePoolBackward(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Dims input = lw.TensorDims("self");
  const DType t = lw.TensorType("grad_output"), acc = OpMathType(t);
  Value grad = lw.TensorAs("grad_output", acc);
  PoolWindow w;
  if (!grad.valid() || !ReadPoolWindow(lw, input, rank, &w)) return {Value()};
  if (grad.dims() != WithSpatial(input, rank, w.output)) {
    return {lw.Fail(InvalidArgument("the gradient ", ToString(grad.type()),
                                    " doesn't fit an input of sizes ", ToString(input)))};
  }
  if (NumElements(input) == 0 || grad.numel() == 0) return {fn.Constant({t, input}, int64_t{0})};
  const Value zero = fn.Scalar(acc, int64_t{0});
  grad = grad / Divisors(lw, w, acc);
  const auto batch = static_cast<int64_t>(input.size() - rank);
  if (w.Covering() > kMaxPositions) {
    // The transposed sum: windows over the gradient, spread by the stride.
    std::vector<hlo::Window> windows(input.size());
    for (size_t i = 0; i < rank; ++i) {
      const int64_t low = w.size[i] - 1 - w.padding[i];
      const int64_t spread = (w.output[i] - 1) * w.stride[i] + 1;
      windows[static_cast<size_t>(batch) + i] = {
          .size = w.size[i],
          .pad_low = low,
          .pad_high = w.input[i] + w.size[i] - 1 - spread - low,
          .base_dilation = w.stride[i]};
    }
    return {Cast(fn.ReduceWindow(grad, hlo::Monoid::kAdd, windows), t)};
  }
  const Value spread = SpreadWindows(w, grad, zero);
  const Value zeros = fn.Constant({acc, input}, int64_t{0});
  Value sum;
  Dims covering;
  for (size_t i = 0; i < rank; ++i) covering.push_back(w.Covering(i));
  ForEachIndex(covering, [&](const Dims& back) {
    Value part = CoveringWindow(w, spread, back);
    for (size_t i = 0; i < rank; ++i) {
      // Only the first windows of an uneven division may end before a position.
      if ((back[i] + 1) * w.stride[i] <= w.size[i]) continue;
      const Value mask = fn.BroadcastInDim(Reaches(fn, w, i, back[i]), input,
                                           Dims{batch + static_cast<int64_t>(i)});
      part = fn.Select(mask, part, zeros);
    }
    sum = sum.valid() ? sum + part : part;
  });
  return {Cast(sum, t)};
}

// --- Adaptive: see InBin.

struct Bins {
  Value member;  // i1[n, s]
  Value size;    // [n], in the accumulation type
};

Bins BinsOf(hlo::Function& fn, int64_t n, int64_t s, DType t) {
  Dims sizes;
  for (int64_t o = 0; o < n; ++o) sizes.push_back(((o + 1) * s + n - 1) / n - o * s / n);
  return {InBin(fn, n, s), fn.ConstantI64(sizes, {t, {n}})};
}

// Sums of dimension `dim` over the members of each bin, or back (`transposed`).
Value SumOfBins(hlo::Function& fn, Value v, int64_t dim, const Bins& bins, bool transposed) {
  Dims dims = v.dims();
  const int64_t n = bins.member.dim(transposed ? 1 : 0);
  dims.insert(dims.begin() + dim, n);
  const Value member = transposed ? fn.Transpose(bins.member, Dims{1, 0}) : bins.member;
  const Value mask = fn.BroadcastInDim(member, dims, Dims{dim, dim + 1});
  const Value zeros = fn.Constant({v.dtype(), dims}, int64_t{0});
  return fn.Reduce(fn.Select(mask, fn.BroadcastTo(Unsqueeze(v, dim), dims), zeros),
                   hlo::Monoid::kAdd, Dims{dim + 1});
}

template <size_t rank>
Values AdaptiveAveragePool(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const DType t = lw.TensorType("self"), acc = OpMathType(t);
  Value v = lw.TensorAs("self", acc);
  if (!v.valid()) return {Value()};
  Dims output = lw.Ints("output_size");
  if (output.size() == 1) output.resize(rank, output[0]);
  const Dims dims = WithSpatial(v.dims(), rank, output);
  if (NumElements(dims) == 0 || v.numel() == 0) return {fn.Constant({t, dims}, int64_t{0})};
  const int64_t batch = v.rank() - static_cast<int64_t>(rank);
  const PoolWindow w = BinWindow(Dims(v.dims().begin() + batch, v.dims().end()), output);
  const int64_t count = w.Positions();
  if (Tiles(w)) return {Cast(SumOfTiles(fn, w, v) / static_cast<double>(count), t)};
  for (int64_t i = static_cast<int64_t>(rank); i-- > 0;) {
    const int64_t dim = batch + i;
    const Bins bins = BinsOf(fn, output[static_cast<size_t>(i)], v.dim(dim), acc);
    v = SumOfBins(fn, v, dim, bins, false);
    v = v / fn.BroadcastInDim(bins.size, v.dims(), Dims{dim});
  }
  return {Cast(v, t)};
}

template <size_t rank>
Values AdaptiveAveragePoolBackward(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const DType t = lw.TensorType("grad_output"), acc = OpMathType(t);
  const Dims input = lw.TensorDims("self");
  Value v = lw.TensorAs("grad_output", acc);
  if (!v.valid()) return {Value()};
  if (NumElements(input) == 0 || v.numel() == 0) return {fn.Constant({t, input}, int64_t{0})};
  const int64_t batch = v.rank() - static_cast<int64_t>(rank);
  for (int64_t i = static_cast<int64_t>(rank); i-- > 0;) {
    const int64_t dim = batch + i, n = v.dim(dim), s = input[static_cast<size_t>(dim)];
    if (n == s) continue;
    if (s % n == 0) {
      Dims split = v.dims(), joined = v.dims(), mapping;
      split.insert(split.begin() + dim + 1, s / n);
      joined[static_cast<size_t>(dim)] = s;
      for (int64_t d = 0; d < v.rank(); ++d) mapping.push_back(d + (d > dim));
      v = fn.Reshape(fn.BroadcastInDim(v / static_cast<double>(s / n), split, mapping), joined);
      continue;
    }
    const Bins bins = BinsOf(fn, n, s, acc);
    v = v / fn.BroadcastInDim(bins.size, v.dims(), Dims{dim});
    v = SumOfBins(fn, v, dim, bins, true);
  }
  return {Cast(v, t)};
}

constexpr OpDef Row(std::string_view name, LowerFn lower) {
  return {.name = name, .kind = Kind::kPool, .lower = lower};
}

constexpr OpDef kRows[] = {
    Row("aten::_adaptive_avg_pool2d", AdaptiveAveragePool<2>),
    Row("aten::_adaptive_avg_pool2d_backward", AdaptiveAveragePoolBackward<2>),
    Row("aten::_adaptive_avg_pool3d", AdaptiveAveragePool<3>),
    Row("aten::_adaptive_avg_pool3d_backward", AdaptiveAveragePoolBackward<3>),
    Row("aten::avg_pool2d", AveragePool<2>),
    Row("aten::avg_pool2d_backward", AveragePoolBackward<2>),
    Row("aten::avg_pool3d", AveragePool<3>),
    Row("aten::avg_pool3d_backward", AveragePoolBackward<3>),
};

}  // namespace

std::span<const OpDef> AveragePoolOps() { return kRows; }

}  // namespace tpu::ops
