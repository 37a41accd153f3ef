// Convolutions and their gradients, in one to three dimensions: plain, transposed, grouped,
// dilated. All of them are three functions of a "wide" side (the input of a plain convolution) and
// a "narrow" one (its output): narrow from wide, wide from narrow, and the kernel from both. A
// transposed convolution reads them the other way round.
// What it is not: conv1d, conv2d ... which are composites, as is unbatched input.
//
// aten::convolution and its backward are composites of dispatch layers in PyTorch
// (_convolution, then convolution_overrideable): rows here, so that a call is one program.
#include <algorithm>

#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/pool_window.h"
#include "ops/rows.h"

namespace tpu::ops {
namespace {

using hlo::Value;
using hlo::Values;
using hlo::Window;

struct Geometry {
  size_t rank = 0;  // spatial dimensions
  Dims stride, padding, dilation;
  int64_t groups = 1;
  bool transposed = false;
};

// A list argument of one element stands for all dimensions.
Dims PerDimension(Dims list, size_t rank) {
  if (list.size() == 1) list.resize(rank, list[0]);
  return list;
}

bool ReadGeometry(Lowering& lw, int64_t input_rank, Geometry* g) {
  g->rank = static_cast<size_t>(std::max<int64_t>(input_rank - 2, 0));
  g->stride = PerDimension(lw.Ints("stride"), g->rank);
  g->padding = PerDimension(lw.Ints("padding"), g->rank);
  g->dilation = PerDimension(lw.Ints("dilation"), g->rank);
  g->groups = lw.Int("groups");
  g->transposed = lw.Bool("transposed");
  if (g->rank == 0 || g->stride.size() != g->rank || g->padding.size() != g->rank ||
      g->dilation.size() != g->rank) {
    lw.Fail(InvalidArgument("convolution of a tensor of ", input_rank, " dimensions"));
    return false;
  }
  return true;
}

Dims Spatial(const Dims& dims) { return {dims.begin() + 2, dims.end()}; }

Dims SpatialDims(const Geometry& g) {
  Dims dims;
  for (size_t i = 0; i < g.rank; ++i) dims.push_back(static_cast<int64_t>(i) + 2);
  return dims;
}

hlo::ConvDims PlainDims(const Geometry& g) {
  const Dims spatial = SpatialDims(g);
  return {0, 1, 1, 0, 0, 1, spatial, spatial, spatial};
}

// One element has no gaps: fewer distinct programs.
int64_t Dilation(int64_t dilation, int64_t size) { return size == 1 ? 1 : dilation; }

// Padding that may be negative: what is cut off stays out of the convolution, which XLA's CPU
// compiler only takes with padding of zero or more.
Value PadSpatial(hlo::Function& fn, Value a, DimsView low, DimsView high) {
  const auto rank = static_cast<size_t>(a.rank());
  Dims lows(rank, 0), highs(rank, 0);
  std::copy(low.begin(), low.end(), lows.begin() + 2);
  std::copy(high.begin(), high.end(), highs.begin() + 2);
  return fn.Pad(a, fn.Scalar(a.dtype(), int64_t{0}), lows, highs, Dims(rank, 0));
}

Value Zeros(hlo::Function& fn, DType t, Dims dims) {
  return fn.Constant({t, std::move(dims)}, int64_t{0});
}

// --- Special cases, each where XLA's CPU convolution is many times slower: the numbers are in
// docs/design/convolutions.md.

bool AllAre(DimsView list, int64_t value) {
  return std::all_of(list.begin(), list.end(), [value](int64_t v) { return v == value; });
}

int64_t Positions(Value kernel) { return NumElements(Spatial(kernel.dims())); }

// Kernels of one position that touch every element once, and no batch that would have to be moved
// out of the way: a matrix product.
bool IsPointwise(const Geometry& g, Value side, Value kernel) {
  return side.dim(0) == 1 && g.groups == 1 && AllAre(g.stride, 1) && AllAre(g.padding, 0) &&
         Positions(kernel) == 1;
}

// `side` [N, A, ...] times the kernel over its dimension `contract`: [N, B, ...].
Value PointwiseProduct(Lowering& lw, Value side, Value kernel, int64_t contract) {
  hlo::Function& fn = lw.fn();
  const Value matrix = fn.Reshape(kernel, Dims{kernel.dim(0), kernel.dim(1)});
  const Value out =
      fn.DotGeneral(matrix, side, {}, {}, Dims{contract}, Dims{1}, OpMathType(side.dtype()));
  Dims order = Iota(out.rank());
  std::swap(order[0], order[1]);
  return fn.Transpose(out, order);
}

// One channel in each group, and few enough positions for a formula of them all.
bool IsDepthwise(const Geometry& g, Value kernel) {
  return g.groups > 1 && kernel.dim(0) == g.groups && kernel.dim(1) == 1 && Positions(kernel) <= 64;
}

// Elements `at` + stride * i of the spatial dimensions of `a`: [N, C, size...].
Value Shifted(hlo::Function& fn, Value a, DimsView at, DimsView size, DimsView stride) {
  Dims starts(size.size() + 2, 0), limits = a.dims(), steps(size.size() + 2, 1);
  for (size_t i = 0; i < size.size(); ++i) {
    starts[i + 2] = at[i];
    steps[i + 2] = stride[i];
    limits[i + 2] = at[i] + (size[i] - 1) * stride[i] + 1;
  }
  return fn.Slice(a, starts, limits, steps);
}

// The kernel at one position, for each channel: [N, C, size...].
Value KernelAt(hlo::Function& fn, Value kernel, DimsView index, const Dims& dims) {
  Dims starts = {0, 0}, limits = {kernel.dim(0), 1};
  for (int64_t i : index) {
    starts.push_back(i);
    limits.push_back(i + 1);
  }
  const Value one = fn.Slice(kernel, starts, limits, Dims(starts.size(), 1));
  return fn.BroadcastInDim(fn.Reshape(one, Dims{kernel.dim(0)}), dims, Dims{1});
}

Dims Times(DimsView a, DimsView b) {
  Dims out;
  for (size_t i = 0; i < a.size(); ++i) out.push_back(a[i] * b[i]);
  return out;
}

// Depthwise convolutions are sums over kernel positions of shifted inputs: elementwise work.
Value NarrowByShifts(Lowering& lw, const Geometry& g, Value wide, Value kernel, DimsView size) {
  hlo::Function& fn = lw.fn();
  const DType acc = OpMathType(wide.dtype());
  wide = Cast(wide, acc);
  kernel = Cast(kernel, acc);
  Dims dims = {wide.dim(0), wide.dim(1)}, high;
  dims.insert(dims.end(), size.begin(), size.end());
  for (size_t i = 0; i < g.rank; ++i) {
    const auto d = static_cast<int64_t>(i) + 2;
    const int64_t needed = (size[i] - 1) * g.stride[i] + (kernel.dim(d) - 1) * g.dilation[i] + 1;
    high.push_back(needed - wide.dim(d) - g.padding[i]);
  }
  wide = PadSpatial(fn, wide, g.padding, high);
  Value sum;
  ForEachIndex(Spatial(kernel.dims()), [&](const Dims& k) {
    const Value part =
        Shifted(fn, wide, Times(k, g.dilation), size, g.stride) * KernelAt(fn, kernel, k, dims);
    sum = sum.valid() ? sum + part : part;
  });
  return sum;
}

Value WideByShifts(Lowering& lw, const Geometry& g, Value narrow, Value kernel, DimsView size) {
  hlo::Function& fn = lw.fn();
  const DType acc = OpMathType(narrow.dtype());
  kernel = Cast(kernel, acc);
  Dims dims = {narrow.dim(0), narrow.dim(1)}, low = {0, 0}, high = {0, 0}, gaps = {0, 0};
  dims.insert(dims.end(), size.begin(), size.end());
  for (size_t i = 0; i < g.rank; ++i) {
    const auto d = static_cast<int64_t>(i) + 2;
    const int64_t reach = (kernel.dim(d) - 1) * g.dilation[i];
    low.push_back(reach - g.padding[i]);
    high.push_back(size[i] + g.padding[i] - (narrow.dim(d) - 1) * g.stride[i] - 1);
    gaps.push_back(g.stride[i] - 1);
  }
  const Value spread = fn.Pad(Cast(narrow, acc), fn.Scalar(acc, int64_t{0}), low, high, gaps);
  Value sum;
  const Dims positions = Spatial(kernel.dims());
  ForEachIndex(positions, [&](const Dims& k) {
    Dims at;
    for (size_t i = 0; i < g.rank; ++i) at.push_back((positions[i] - 1 - k[i]) * g.dilation[i]);
    const Value part =
        Shifted(fn, spread, at, size, Dims(g.rank, 1)) * KernelAt(fn, kernel, k, dims);
    sum = sum.valid() ? sum + part : part;
  });
  return sum;
}

// One sum for each kernel position, all in one reduction.
Value KernelByShifts(Lowering& lw, const Geometry& g, Value wide, Value narrow, DimsView kernel) {
  hlo::Function& fn = lw.fn();
  const DType acc = OpMathType(wide.dtype());
  const Dims size = Spatial(narrow.dims());
  Dims high, summed = {0};
  for (size_t i = 0; i < g.rank; ++i) {
    const auto d = static_cast<int64_t>(i) + 2;
    const int64_t needed = (size[i] - 1) * g.stride[i] + (kernel[i] - 1) * g.dilation[i] + 1;
    high.push_back(needed - wide.dim(d) - g.padding[i]);
    summed.push_back(d);
  }
  wide = PadSpatial(fn, Cast(wide, acc), g.padding, high);
  narrow = Cast(narrow, acc);
  Values products, zeros;
  ForEachIndex(kernel, [&](const Dims& k) {
    products.push_back(narrow * Shifted(fn, wide, Times(k, g.dilation), size, g.stride));
    zeros.push_back(fn.Scalar(acc, int64_t{0}));
  });
  const size_t n = products.size();
  Values sums = fn.Reduce(products, zeros, summed, [n](hlo::Function& f, const Values& v) {
    Values out;
    for (size_t i = 0; i < n; ++i) out.push_back(f.Binary(hlo::BinaryOp::kAdd, v[i], v[n + i]));
    return out;
  });
  for (Value& v : sums) v = Unsqueeze(v, 1);
  Dims result = {narrow.dim(1), 1};
  result.insert(result.end(), kernel.begin(), kernel.end());
  return fn.Reshape(fn.Concatenate(sums, 1), result);
}

// Spatial sizes `size` of the narrow side, from `wide` [N, C, ...] and `kernel` [O, C / groups,
// ...].
Value NarrowFromWide(Lowering& lw, const Geometry& g, Value wide, Value kernel, DimsView size) {
  hlo::Function& fn = lw.fn();
  const DType acc = OpMathType(wide.dtype());
  if (IsPointwise(g, wide, kernel)) return PointwiseProduct(lw, wide, kernel, 1);
  if (IsDepthwise(g, kernel)) return NarrowByShifts(lw, g, wide, kernel, size);
  std::vector<Window> windows(g.rank);
  Dims cut(g.rank, 0);
  for (size_t i = 0; i < g.rank; ++i) {
    const auto d = static_cast<int64_t>(i) + 2;
    Window& w = windows[i];
    w.stride = g.stride[i];
    w.window_dilation = Dilation(g.dilation[i], kernel.dim(d));
    w.pad_low = g.padding[i];
    const int64_t needed = (size[i] - 1) * w.stride + (kernel.dim(d) - 1) * w.window_dilation + 1;
    w.pad_high = needed - wide.dim(d) - w.pad_low;
    // A rest smaller than the stride is left over anyway; more of it is cut off.
    if (w.pad_high < 0) {
      if (w.pad_high <= -w.stride) cut[i] = w.pad_high;
      w.pad_high = 0;
    }
  }
  wide = PadSpatial(fn, wide, Dims(g.rank, 0), cut);
  return fn.Convolution(wide, kernel, PlainDims(g), windows, g.groups, 1, acc);
}

// Windows side by side: each element of the narrow side makes a tile of the wide one.
bool IsTiling(const Geometry& g, Value kernel) {
  return g.groups == 1 && AllAre(g.padding, 0) && AllAre(g.dilation, 1) &&
         Spatial(kernel.dims()) == g.stride && !AllAre(g.stride, 1);
}

Value WideByTiles(Lowering& lw, const Geometry& g, Value narrow, Value kernel, DimsView size) {
  hlo::Function& fn = lw.fn();
  // [N, narrow..., C, kernel...] -> [N, C, narrow 0, kernel 0, narrow 1, ...]
  const Value tiles =
      fn.DotGeneral(narrow, kernel, {}, {}, Dims{1}, Dims{0}, OpMathType(narrow.dtype()));
  const auto rank = static_cast<int64_t>(g.rank);
  Dims order = {0, rank + 1}, joined = {narrow.dim(0), kernel.dim(1)}, high;
  for (int64_t i = 0; i < rank; ++i) {
    order.push_back(i + 1);
    order.push_back(rank + 2 + i);
    joined.push_back(narrow.dim(i + 2) * kernel.dim(i + 2));
    high.push_back(size[static_cast<size_t>(i)] - joined.back());
  }
  return PadSpatial(fn, fn.Reshape(fn.Transpose(tiles, order), joined), Dims(g.rank, 0), high);
}

// [G * a, b, ...] -> [a, G * b, ...]: grouped kernels read from their other side.
Value SwapGroups(hlo::Function& fn, Value kernel, int64_t groups) {
  Dims split = kernel.dims();
  split[0] /= groups;
  split.insert(split.begin(), groups);
  Dims order = Iota(static_cast<int64_t>(split.size()));
  std::swap(order[0], order[1]);
  Dims joined = kernel.dims();
  joined[0] /= groups;
  joined[1] *= groups;
  return fn.Reshape(fn.Transpose(fn.Reshape(kernel, split), order), joined);
}

// Spatial sizes `size` of the wide side, from `narrow` [N, O, ...] and `kernel` [O, C / groups,
// ...]: a convolution of the dilated narrow side with the mirrored kernel.
Value WideFromNarrow(Lowering& lw, const Geometry& g, Value narrow, Value kernel, DimsView size) {
  hlo::Function& fn = lw.fn();
  const DType acc = OpMathType(narrow.dtype());
  if (IsPointwise(g, narrow, kernel)) return PointwiseProduct(lw, narrow, kernel, 0);
  if (IsDepthwise(g, kernel)) return WideByShifts(lw, g, narrow, kernel, size);
  if (IsTiling(g, kernel)) return WideByTiles(lw, g, narrow, kernel, size);
  std::vector<Window> windows(g.rank);
  Dims low(g.rank, 0), high(g.rank, 0);
  for (size_t i = 0; i < g.rank; ++i) {
    const auto d = static_cast<int64_t>(i) + 2;
    Window& w = windows[i];
    w.base_dilation = Dilation(g.stride[i], narrow.dim(d));
    w.window_dilation = Dilation(g.dilation[i], kernel.dim(d));
    const int64_t reach = (kernel.dim(d) - 1) * w.window_dilation;
    const int64_t dilated = (narrow.dim(d) - 1) * w.base_dilation + 1;
    w.pad_low = reach - g.padding[i];
    w.pad_high = size[i] + reach - dilated - w.pad_low;
    // Negative padding: compute more and cut it off the result.
    low[i] = std::min<int64_t>(w.pad_low, 0);
    high[i] = std::min<int64_t>(w.pad_high, 0);
    w.pad_low -= low[i];
    w.pad_high -= high[i];
    // XLA's simplifier takes this for a dimension of groups and aborts: compute one more than
    // asked.
    if (kernel.dim(d) == 2 && w.base_dilation == 2 && w.pad_low == 0 && w.pad_high == 0) {
      high[i] -= 1;
      w.pad_high = 1;
    }
  }
  hlo::ConvDims dims = PlainDims(g);
  dims.kernel_input = 0;
  dims.kernel_output = 1;
  if (g.groups > 1) kernel = SwapGroups(fn, kernel, g.groups);
  kernel = fn.Reverse(kernel, dims.kernel_spatial);
  return PadSpatial(fn, fn.Convolution(narrow, kernel, dims, windows, g.groups, 1, acc), low, high);
}

// How far the wide side must reach, padding included, for all windows of the narrow one.
struct Reach {
  Dims low, high;
};
Reach ReachOf(const Geometry& g, Value wide, Value narrow, DimsView kernel) {
  Reach r;
  for (size_t i = 0; i < g.rank; ++i) {
    const auto d = static_cast<int64_t>(i) + 2;
    const int64_t needed = (narrow.dim(d) - 1) * g.stride[i] + (kernel[i] - 1) * g.dilation[i] + 1;
    r.low.push_back(g.padding[i]);
    r.high.push_back(needed - wide.dim(d) - g.padding[i]);
  }
  return r;
}

// The kernel's gradient as one convolution: channels are the batch, the batch is summed over.
Value KernelByConvolution(Lowering& lw, const Geometry& g, Value wide, Value narrow,
                          DimsView kernel) {
  hlo::Function& fn = lw.fn();
  const DType acc = OpMathType(wide.dtype());
  Reach reach = ReachOf(g, wide, narrow, kernel);
  std::vector<Window> windows(g.rank);
  Dims cut(g.rank, 0);
  for (size_t i = 0; i < g.rank; ++i) {
    cut[i] = std::min<int64_t>(reach.high[i], 0);
    windows[i] = {
        .stride = g.dilation[i],
        .pad_low = reach.low[i],
        .pad_high = reach.high[i] - cut[i],
        .window_dilation = Dilation(g.stride[i], narrow.dim(static_cast<int64_t>(i) + 2))};
  }
  wide = PadSpatial(fn, wide, Dims(g.rank, 0), cut);
  const Dims spatial = SpatialDims(g);
  const hlo::ConvDims dims = {1, 0, 0, 1, 1, 0, spatial, spatial, spatial};
  return fn.Convolution(wide, narrow, dims, windows, 1, g.groups, acc);
}

Value KernelFromBoth(Lowering& lw, const Geometry& g, Value wide, Value narrow, DimsView kernel) {
  if (g.groups > 1 && g.groups == wide.dim(1) && g.groups == narrow.dim(1) &&
      NumElements(kernel) <= 64) {
    return KernelByShifts(lw, g, wide, narrow, kernel);
  }
  return KernelByConvolution(lw, g, wide, narrow, kernel);
}

// The size of the result of aten::convolution, where no meta kernel tells.
Dims OutputSize(Lowering& lw, const Geometry& g, const Dims& input, const Dims& weight) {
  Dims size;
  const Dims extra = PerDimension(lw.Ints("output_padding"), g.rank);
  for (size_t i = 0; i < g.rank; ++i) {
    const int64_t reach = g.dilation[i] * (weight[i + 2] - 1);
    size.push_back(g.transposed
                       ? (input[i + 2] - 1) * g.stride[i] - 2 * g.padding[i] + reach + extra[i] + 1
                       : (input[i + 2] + 2 * g.padding[i] - reach - 1) / g.stride[i] + 1);
  }
  return size;
}

bool SameTypes(Lowering& lw, DType a, DType b, std::string_view what) {
  if (a == b && !IsBool(a)) return true;
  if (IsBool(a)) {
    lw.Fail(Unimplemented("convolution is not implemented for 'Bool'"));
  } else {
    lw.Fail(InvalidArgument("Input type (", TorchName(a), ") and ", what, " type (", TorchName(b),
                            ") should be the same"));
  }
  return false;
}

Values Convolution(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Value input = lw.Tensor("input"), weight = lw.Tensor("weight");
  Geometry g;
  if (!input.valid() || !weight.valid() || !ReadGeometry(lw, input.rank(), &g) ||
      !SameTypes(lw, input.dtype(), weight.dtype(), "weight")) {
    return {Value()};
  }
  if (weight.rank() != input.rank()) {
    return {lw.Fail(InvalidArgument("convolution of ", ToString(input.type()), " with a weight of ",
                                    ToString(weight.type())))};
  }
  const Dims size = OutputSize(lw, g, input.dims(), weight.dims());
  Dims dims = {input.dim(0), g.transposed ? weight.dim(1) * g.groups : weight.dim(0)};
  dims.insert(dims.end(), size.begin(), size.end());
  const DType acc = OpMathType(input.dtype());
  Value out;
  if (NumElements(dims) == 0 || input.numel() == 0 || weight.numel() == 0) {
    out = Zeros(fn, acc, dims);
  } else {
    out = g.transposed ? WideFromNarrow(lw, g, input, weight, size)
                       : NarrowFromWide(lw, g, input, weight, size);
  }
  if (lw.Has("bias")) {
    if (!SameTypes(lw, input.dtype(), lw.TensorType("bias"), "bias")) return {Value()};
    out = out + fn.BroadcastInDim(lw.TensorAs("bias", acc), out.dims(), Dims{1});
  }
  return {Cast(out, input.dtype())};
}

Values ConvolutionBackward(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Value grad = lw.Tensor("grad_output"), input = lw.Tensor("input"),
              weight = lw.Tensor("weight");
  Geometry g;
  if (!grad.valid() || !input.valid() || !weight.valid() || !ReadGeometry(lw, input.rank(), &g) ||
      !SameTypes(lw, input.dtype(), weight.dtype(), "weight") ||
      !SameTypes(lw, input.dtype(), grad.dtype(), "gradient")) {
    return Values(3);
  }
  const DType t = input.dtype(), acc = OpMathType(t);
  const Dims mask = lw.Ints("output_mask");
  const bool empty = grad.numel() == 0 || input.numel() == 0 || weight.numel() == 0;
  Values out(3);
  if (mask[0]) {
    const Dims size = Spatial(input.dims());
    out[0] = empty          ? Zeros(fn, acc, input.dims())
             : g.transposed ? NarrowFromWide(lw, g, grad, weight, size)
                            : WideFromNarrow(lw, g, grad, weight, size);
  }
  if (mask[1]) {
    const Dims kernel = Spatial(weight.dims());
    out[1] = empty          ? Zeros(fn, acc, weight.dims())
             : g.transposed ? KernelFromBoth(lw, g, grad, input, kernel)
                            : KernelFromBoth(lw, g, input, grad, kernel);
  }
  if (mask[2]) {
    Dims dims = SpatialDims(g);
    dims.insert(dims.begin(), 0);
    out[2] = fn.Reduce(Cast(grad, acc), hlo::Monoid::kAdd, dims);
  }
  for (Value& v : out) v = Cast(v, t);
  return out;
}

constexpr OpDef kRows[] = {
    {.name = "aten::convolution", .kind = Kind::kConv, .lower = Convolution},
    {.name = "aten::convolution_backward", .kind = Kind::kConv, .lower = ConvolutionBackward},
    {.name = "aten::convolution_overrideable",
     .kind = Kind::kConv,
     .lower = Convolution,
     .meta_name = "aten::convolution"},
    {.name = "aten::convolution_backward_overrideable",
     .kind = Kind::kConv,
     .lower = ConvolutionBackward,
     .meta = Meta::kInfer},
};

}  // namespace

std::span<const OpDef> ConvOps() { return kRows; }

}  // namespace tpu::ops
