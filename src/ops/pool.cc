// Max pooling, its indices and its gradient; adaptive max pooling; unpooling.
// What it is not: averages (pool_average.cc) and max_pool1d, max_pool2d ... which are composites.
#include <algorithm>

#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/pool_window.h"
#include "ops/rows.h"

namespace tpu::ops {
namespace {

using hlo::BinaryOp;
using hlo::Value;
using hlo::Values;

// Windows of more positions are read by a reduction; the formula would grow too long.
constexpr int64_t kMaxPositions = 64;

hlo::Number LowestOf(DType t) {
  if (IsFloat(t)) return -std::numeric_limits<double>::infinity();
  if (IsUnsigned(t) || IsBool(t)) return int64_t{0};
  return std::numeric_limits<int64_t>::min() >> (64 - 8 * ItemSize(t));
}

// Where PyTorch's loop takes `value` over `best`: greater, or NaN (so the last NaN stays).
Value Beats(Value value, Value best) {
  const Value greater = Gt(value, best);
  return IsFloat(value.dtype()) ? greater | IsNan(value) : greater;
}

// The better of two (value, index) pairs, whatever the order in which a reduction meets them:
// the last NaN, else the greatest value, else the lower index.
Values BetterPair(hlo::Function& fn, const Values& v) {
  const Value a = v[0], ia = v[1], b = v[2], ib = v[3];
  const Value first = Lt(ia, ib);
  Value take = Gt(a, b) | (Eq(a, b) & first);
  if (IsFloat(a.dtype())) {
    const Value nan_a = IsNan(a), nan_b = IsNan(b);
    take = (nan_a & (~nan_b | ~first)) | (~nan_a & ~nan_b & take);
  }
  return {fn.Select(take, a, b), fn.Select(take, ia, ib)};
}

// The first position of each window that lies in the input, as a row-major index of the plane.
Value FirstPosition(hlo::Function& fn, const PoolWindow& w) {
  Value index;
  for (size_t i = 0; i < w.rank; ++i) {
    Value at = SpatialIota(fn, w.output, i) * static_cast<double>(w.stride[i]) -
               static_cast<double>(w.padding[i]);
    if (w.padding[i] > 0) {
      const Value zero = Like(at, int64_t{0}), step = Like(at, w.dilation[i]);
      const Value before = Max(-at, zero);
      at = at + (before + static_cast<double>(w.dilation[i] - 1)) / step * step;
    }
    index = i == 0 ? at : index * static_cast<double>(w.input[i]) + at;
  }
  return index;
}

struct Pair {
  Value value, index;
};

Pair MaxOfSlices(hlo::Function& fn, const PoolWindow& w, Value input) {
  const DType t = input.dtype();
  const Value padded = PadToWindows(w, input, fn.Scalar(t, LowestOf(t)));
  const Dims dims = WithSpatial(input.dims(), w.rank, w.output);
  Pair best = {fn.Constant({t, dims}, LowestOf(t)), FirstPosition(fn, w)};
  best.index = fn.BroadcastTo(best.index, dims);
  Value corner;  // of the window, as an index of the plane; may lie outside
  for (size_t i = 0; i < w.rank; ++i) {
    const Value at = SpatialIota(fn, w.output, i) * static_cast<double>(w.stride[i]) -
                     static_cast<double>(w.padding[i]);
    corner = i == 0 ? at : corner * static_cast<double>(w.input[i]) + at;
  }
  ForEachIndex(w.size, [&](const Dims& offset) {
    const Value value = WindowElement(w, padded, offset);
    int64_t shift = 0;
    for (size_t i = 0; i < w.rank; ++i) shift = shift * w.input[i] + offset[i] * w.dilation[i];
    const Value take = Beats(value, best.value);
    best.value = fn.Select(take, value, best.value);
    best.index =
        fn.Select(take, fn.BroadcastTo(corner + static_cast<double>(shift), dims), best.index);
  });
  return best;
}

// For large windows: a reduction over (value, index) pairs.
Pair MaxOfReduction(hlo::Function& fn, const PoolWindow& w, Value input) {
  const auto rank = static_cast<size_t>(input.rank());
  std::vector<hlo::Window> windows(rank);
  for (size_t i = 0; i < w.rank; ++i) {
    const int64_t reach = (w.size[i] - 1) * w.dilation[i] + 1;
    const int64_t needed = (w.output[i] - 1) * w.stride[i] + reach;
    windows[rank - w.rank + i] = {
        .size = w.size[i],
        .stride = w.stride[i],
        .pad_low = w.padding[i],
        .pad_high = std::max<int64_t>(needed - w.input[i] - w.padding[i], 0),
        .window_dilation = w.dilation[i]};
  }
  const Value index = fn.BroadcastTo(PlaneIndex(fn, w.input), input.dims());
  const Values out = fn.ReduceWindow({input, index},
                                     {fn.Scalar(input.dtype(), LowestOf(input.dtype())),
                                      fn.Scalar(DType::kI32, int64_t{INT32_MAX})},
                                     windows, BetterPair);
  return {out[0], out[1]};
}

template <size_t rank>
Values MaxPool(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Value input = lw.Tensor("self");
  PoolWindow w;
  if (!input.valid() || !ReadPoolWindow(lw, input.dims(), rank, &w)) return Values(2);
  const Dims dims = WithSpatial(input.dims(), rank, w.output);
  if (NumElements(dims) == 0) {
    return {fn.Constant({input.dtype(), dims}, int64_t{0}),
            fn.Constant({DType::kI64, dims}, int64_t{0})};
  }
  const Pair best =
      w.Positions() <= kMaxPositions ? MaxOfSlices(fn, w, input) : MaxOfReduction(fn, w, input);
  return {best.value, fn.Convert(best.index, DType::kI64)};
}

// The gradient goes to the element whose index each window names.
template <size_t rank>
Values MaxPoolBackward(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Dims input = lw.TensorDims("self");
  const DType t = lw.TensorType("self");
  const Value grad = lw.TensorAs("grad_output", OpMathType(t)), index = lw.Tensor("indices");
  PoolWindow w;
  if (!grad.valid() || !index.valid() || !ReadPoolWindow(lw, input, rank, &w)) return {Value()};
  if (grad.dims() != WithSpatial(input, rank, w.output) || grad.dims() != index.dims()) {
    return {lw.Fail(InvalidArgument("the gradient ", ToString(grad.type()),
                                    " doesn't fit an input of sizes ", ToString(input)))};
  }
  if (NumElements(input) == 0 || grad.numel() == 0) {
    return {fn.Constant({t, input}, int64_t{0})};
  }
  if (w.Covering() > kMaxPositions) {
    return {Cast(ScatterPlanes(fn, grad, index, rank, w.input, true), t)};
  }
  const Value zero = fn.Scalar(grad.dtype(), 0.0);
  const Value grads = SpreadWindows(w, grad, zero);
  const Value indices =
      SpreadWindows(w, fn.Convert(index, DType::kI32), fn.Scalar(DType::kI32, int64_t{-1}));
  const Value here = fn.BroadcastTo(PlaneIndex(fn, w.input), input);
  const Value zeros = fn.Constant({grad.dtype(), input}, 0.0);
  Value sum;
  Dims covering;
  for (size_t i = 0; i < rank; ++i) covering.push_back(w.Covering(i));
  ForEachIndex(covering, [&](const Dims& back) {
    const Value part = fn.Select(Eq(CoveringWindow(w, indices, back), here),
                                 CoveringWindow(w, grads, back), zeros);
    sum = sum.valid() ? sum + part : part;
  });
  return {Cast(sum, t)};
}

// --- Adaptive: see InBin.

// One dimension of an adaptive maximum: [..., s, ...] to [..., n, ...].
Pair AdaptiveDimension(hlo::Function& fn, Pair in, int64_t dim, int64_t n) {
  const int64_t s = in.value.dim(dim);
  Dims dims = in.value.dims();
  dims.insert(dims.begin() + dim, n);
  const Value mask = fn.BroadcastInDim(InBin(fn, n, s), dims, Dims{dim, dim + 1});
  const auto spread = [&](Value v, hlo::Number otherwise) {
    return fn.Select(mask, fn.BroadcastTo(Unsqueeze(v, dim), dims),
                     fn.Constant({v.dtype(), dims}, otherwise));
  };
  const DType t = in.value.dtype();
  const Values out =
      fn.Reduce({spread(in.value, LowestOf(t)), spread(in.index, int64_t{INT32_MAX})},
                {fn.Scalar(t, LowestOf(t)), fn.Scalar(DType::kI32, int64_t{INT32_MAX})},
                Dims{dim + 1}, BetterPair);
  return {out[0], out[1]};
}

template <size_t rank>
Values AdaptiveMaxPool(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Value input = lw.Tensor("self");
  if (!input.valid()) return Values(2);
  Dims output = lw.Ints("output_size");
  if (output.size() == 1) output.resize(rank, output[0]);
  const Dims dims = WithSpatial(input.dims(), rank, output);
  if (NumElements(dims) == 0 || input.numel() == 0) {
    return {fn.Constant({input.dtype(), dims}, int64_t{0}),
            fn.Constant({DType::kI64, dims}, int64_t{0})};
  }
  const Dims spatial(input.dims().end() - static_cast<ptrdiff_t>(rank), input.dims().end());
  const PoolWindow w = BinWindow(spatial, output);
  bool even = true;
  for (size_t i = 0; i < rank; ++i) even = even && spatial[i] % output[i] == 0;
  Pair best;
  if (even && w.Positions() <= kMaxPositions) {
    best = MaxOfSlices(fn, w, input);
  } else {
    best = {input, fn.BroadcastTo(PlaneIndex(fn, spatial), input.dims())};
    for (int64_t i = static_cast<int64_t>(rank); i-- > 0;) {
      best = AdaptiveDimension(fn, best, input.rank() - static_cast<int64_t>(rank) + i,
                               output[static_cast<size_t>(i)]);
    }
  }
  return {best.value, fn.Convert(best.index, DType::kI64)};
}

template <size_t rank>
Values MaxPoolBackwardByIndex(Lowering& lw) {  // adaptive, fractional
  const Dims input = lw.TensorDims("self");
  const DType t = lw.TensorType("self");
  const Value grad = lw.TensorAs("grad_output", OpMathType(t)), index = lw.Tensor("indices");
  if (!grad.valid() || !index.valid()) return {Value()};
  const Dims spatial(input.end() - static_cast<ptrdiff_t>(rank), input.end());
  return {Cast(ScatterPlanes(lw.fn(), grad, index, rank, spatial, true), t)};
}

// Values go where their index says; the rest is zero.
template <size_t rank>
Values MaxUnpool(Lowering& lw) {
  const Dims output = lw.Ints("output_size");
  const Value self = lw.Tensor("self");
  const Value index = lw.CheckIndex(lw.Tensor("indices"), NumElements(output), "indices", 0, false);
  if (!self.valid() || !index.valid()) return {Value()};
  if (index.dims() != self.dims()) {
    return {
        lw.Fail(InvalidArgument("Expected shape of indices to be same as that of the input "
                                "tensor (",
                                ToString(self.dims()),
                                ") but got indices tensor "
                                "with shape: ",
                                ToString(index.dims())))};
  }
  return {ScatterPlanes(lw.fn(), self, index, rank, output, false)};
}

constexpr OpDef Row(std::string_view name, LowerFn lower, std::string_view indexes = "") {
  return {.name = name, .kind = Kind::kPool, .lower = lower, .indexes = indexes};
}

constexpr OpDef kRows[] = {
    Row("aten::adaptive_max_pool2d", AdaptiveMaxPool<2>),
    Row("aten::adaptive_max_pool2d_backward", MaxPoolBackwardByIndex<2>),
    Row("aten::adaptive_max_pool3d", AdaptiveMaxPool<3>),
    Row("aten::adaptive_max_pool3d_backward", MaxPoolBackwardByIndex<3>),
    Row("aten::fractional_max_pool2d_backward", MaxPoolBackwardByIndex<2>),
    {.name = "aten::fractional_max_pool3d_backward",
     .kind = Kind::kPool,
     .lower = MaxPoolBackwardByIndex<3>,
     .meta = Meta::kInfer},
    Row("aten::max_pool2d_with_indices", MaxPool<2>),
    Row("aten::max_pool2d_with_indices_backward", MaxPoolBackward<2>),
    Row("aten::max_pool3d_with_indices", MaxPool<3>),
    Row("aten::max_pool3d_with_indices_backward", MaxPoolBackward<3>),
    Row("aten::max_unpool2d", MaxUnpool<2>, "indices:*"),
    Row("aten::max_unpool3d", MaxUnpool<3>, "indices:*"),
};

}  // namespace

std::span<const OpDef> PoolOps() { return kRows; }

}  // namespace tpu::ops
