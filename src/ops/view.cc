// Operators that move elements and compute nothing, their gradients, and the cross product, which
// is mostly moves. Padding is in pad.cc; views proper are PyTorch's own.
#include <algorithm>

#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/overlap.h"
#include "ops/reduction.h"

namespace tpu::ops {

using hlo::Function;
using hlo::Value;
using hlo::Values;

namespace {

Value SliceAlong(Value a, int64_t dim, int64_t start, int64_t limit, int64_t step = 1) {
  if (!a.valid()) return {};
  Dims starts(a.dims().size(), 0), limits = a.dims(), steps(a.dims().size(), 1);
  starts[static_cast<size_t>(dim)] = start;
  limits[static_cast<size_t>(dim)] = limit;
  steps[static_cast<size_t>(dim)] = step;
  return a.function()->Slice(a, starts, limits, steps);
}

}  // namespace

Value Windows(Value a, int64_t dim, int64_t kernel, int64_t count, int64_t step, int64_t dilation) {
  Values parts;
  for (int64_t k = 0; k < kernel; ++k) {
    const int64_t first = k * dilation;
    parts.push_back(
        Unsqueeze(SliceAlong(a, dim, first, first + (count - 1) * step + 1, step), dim));
  }
  return a.valid() ? a.function()->Concatenate(parts, dim) : Value();
}

namespace {

// Few kernel places: as many shifted copies are added, which fuses into one loop.
Value AddShifted(Value a, int64_t kernel_dim, int64_t count_dim, int64_t length, int64_t step,
                 int64_t dilation) {
  Function& fn = *a.function();
  const int64_t kernel = a.dim(kernel_dim), count = a.dim(count_dim);
  const int64_t at = count_dim - (kernel_dim < count_dim);
  Value sum;
  for (int64_t k = 0; k < kernel; ++k) {
    const Value one = Squeeze(SliceAlong(a, kernel_dim, k, k + 1), kernel_dim);
    Dims low(one.dims().size(), 0), high = low, interior = low;
    const auto d = static_cast<size_t>(at);
    low[d] = k * dilation;
    interior[d] = step - 1;
    high[d] = length - low[d] - ((count - 1) * step + 1);
    const Value shifted = fn.Pad(one, fn.Scalar(a.dtype(), int64_t{0}), low, high, interior);
    sum = sum.valid() ? sum + shifted : shifted;
  }
  return sum;
}

Value AddScattered(Value a, int64_t kernel_dim, int64_t count_dim, int64_t length, int64_t step,
                   int64_t dilation) {
  Function& fn = *a.function();
  const int64_t kernel = a.dim(kernel_dim), count = a.dim(count_dim);
  const hlo::Type index{DType::kI32, {kernel, count}};
  const Value at = fn.Iota(index, 0) * static_cast<double>(dilation) +
                   fn.Iota(index, 1) * static_cast<double>(step);
  Dims dims = a.dims();
  dims[static_cast<size_t>(count_dim)] = length;
  dims.erase(dims.begin() + kernel_dim);
  hlo::ScatterDims s;
  const int64_t target = count_dim - (kernel_dim < count_dim);
  // Updates: kernel and count first, windows of the rest behind them.
  Dims order = {kernel_dim, count_dim};
  for (int64_t d = 0; d < a.rank(); ++d) {
    if (d != kernel_dim && d != count_dim) order.push_back(d);
  }
  for (int64_t d = 2; d < a.rank(); ++d) s.update_window_dims.push_back(d);
  s.inserted_window_dims = {target};
  s.scatter_dims_to_operand_dims = {target};
  s.index_vector_dim = 2;
  return fn.Scatter({fn.Constant({a.dtype(), dims}, int64_t{0})}, at, {fn.Transpose(a, order)}, s,
                    [](Function&, const Values& v) { return Values{v[0] + v[1]}; })[0];
}

}  // namespace

Value OverlapAdd(Value a, int64_t kernel_dim, int64_t count_dim, int64_t length, int64_t step,
                 int64_t dilation) {
  if (!a.valid()) return {};
  constexpr int64_t kFew = 32;
  if (a.numel() == 0) {
    Dims dims = a.dims();
    dims[static_cast<size_t>(count_dim)] = length;
    dims.erase(dims.begin() + kernel_dim);
    return a.function()->Constant({a.dtype(), dims}, int64_t{0});
  }
  return a.dim(kernel_dim) <= kFew ? AddShifted(a, kernel_dim, count_dim, length, step, dilation)
                                   : AddScattered(a, kernel_dim, count_dim, length, step, dilation);
}

namespace {

// Empty lists [0] join anything, as they always did in PyTorch.
Values Cat(Lowering& lw) {
  const DType t = lw.Promoted();
  Values parts;
  for (const Value& v : lw.Tensors("tensors")) {
    if (v.dims() != Dims{0}) parts.push_back(Cast(v, t));
  }
  if (parts.empty()) return {lw.fn().Constant({t, {0}}, int64_t{0})};
  return {lw.fn().Concatenate(parts, WrapDim(lw.Int("dim"), parts[0].rank()))};
}

// A row of its own, since PyTorch makes a view of each tensor first: n more calls.
Values Stack(Lowering& lw) {
  const DType t = lw.Promoted();
  Values parts;
  for (const Value& v : lw.Tensors("tensors")) {
    parts.push_back(Unsqueeze(Cast(v, t), WrapDim(lw.Int("dim"), v.rank() + 1)));
  }
  if (parts.empty()) return {lw.Fail(InvalidArgument("stack expects a non-empty TensorList"))};
  return {lw.fn().Concatenate(parts, WrapDim(lw.Int("dim"), parts[0].rank()))};
}

Values Flip(Lowering& lw) {
  const Value a = lw.Tensor("self");
  Dims dims = lw.Ints("dims");
  for (int64_t& d : dims) d = WrapDim(d, a.rank());
  if (a.rank() == 0) return {a};
  std::sort(dims.begin(), dims.end());
  return {lw.fn().Reverse(a, dims)};
}

Value RollAlong(Value a, int64_t dim, int64_t shift) {
  const int64_t n = a.dim(dim);
  if (!a.valid() || n == 0) return a;
  const int64_t cut = ((n - shift % n) % n + n) % n;
  if (cut == 0) return a;
  return a.function()->Concatenate({SliceAlong(a, dim, cut, n), SliceAlong(a, dim, 0, cut)}, dim);
}

Values Roll(Lowering& lw) {
  Value a = lw.Tensor("self");
  const Dims shifts = lw.Ints("shifts"), dims = lw.Ints("dims"), sizes = a.dims();
  if (a.rank() == 0) return {a};
  if (dims.empty()) {
    if (shifts.size() != 1) return {lw.Fail(InvalidArgument("`shifts` required"))};
    a = RollAlong(lw.fn().Reshape(a, Dims{a.numel()}), 0, shifts[0]);
    return {lw.fn().Reshape(a, sizes)};
  }
  if (shifts.size() != dims.size()) {
    return {lw.Fail(InvalidArgument("shifts and dimensions must align. shifts: ", shifts.size(),
                                    ", dims:", dims.size()))};
  }
  for (size_t i = 0; i < dims.size(); ++i) a = RollAlong(a, WrapDim(dims[i], a.rank()), shifts[i]);
  return {a};
}

Values ChannelShuffle(Lowering& lw) {
  const Value a = lw.Tensor("self");
  const int64_t groups = lw.Int("groups");
  if (a.rank() < 3 || groups < 1 || a.dim(1) % groups != 0) {
    return {lw.Fail(InvalidArgument("Number of channels must be divisible by groups. Got ",
                                    a.dim(1), " channels and ", groups, " groups."))};
  }
  Dims split = {a.dim(0), groups, a.dim(1) / groups};
  split.insert(split.end(), a.dims().begin() + 2, a.dims().end());
  Dims order = Iota(a.rank() + 1);
  std::swap(order[1], order[2]);
  return {lw.fn().Reshape(lw.fn().Transpose(lw.fn().Reshape(a, split), order), a.dims())};
}

Values Cross(Lowering& lw) {
  const DType t = lw.Promoted();
  Value a = lw.TensorAs("self", OpMathType(t)), b = lw.TensorAs("other", OpMathType(t));
  Dims dims;
  if (!BroadcastShapes(a.dims(), b.dims(), &dims)) {
    return {lw.Fail(InvalidArgument("linalg.cross: inputs don't broadcast"))};
  }
  a = lw.fn().BroadcastTo(a, dims);
  b = lw.fn().BroadcastTo(b, dims);
  const int64_t dim = WrapDim(lw.Int("dim"), a.rank());
  return {RollAlong(a, dim, -1) * RollAlong(b, dim, -2) -
          RollAlong(a, dim, -2) * RollAlong(b, dim, -1)};
}

Value ForAdding(Lowering& lw, std::string_view name) {
  return lw.TensorAs(name, OpMathType(lw.TensorType(name)));
}

// --- im2col, col2im: rows of patches [N, C * kh * kw, oh * ow].

struct Patches {
  Dims kernel, dilation, padding, step;
  int64_t count(int64_t size, size_t d) const {
    return (size + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) / step[d] + 1;
  }
};

Patches PatchesOf(const Lowering& lw) {
  const auto pair = [&](std::string_view name) {
    Dims v = lw.Ints(name);
    if (v.size() == 1) v.push_back(v[0]);
    return v;
  };
  return {pair("kernel_size"), pair("dilation"), pair("padding"), pair("stride")};
}

Values Im2Col(Lowering& lw) {
  Value a = lw.Tensor("self");
  const bool batched = a.rank() == 4;
  if (!batched) a = Unsqueeze(a, 0);
  const Patches p = PatchesOf(lw);
  const int64_t rows = p.count(a.dim(2), 0), cols = p.count(a.dim(3), 1);
  const Dims pad = {0, 0, p.padding[0], p.padding[1]};
  a = lw.fn().Pad(a, lw.fn().Scalar(a.dtype(), int64_t{0}), pad, pad, Dims(4, 0));
  Value v = Windows(a, 3, p.kernel[1], cols, p.step[1], p.dilation[1]);  // N C H kw ow
  v = Windows(v, 2, p.kernel[0], rows, p.step[0], p.dilation[0]);        // N C kh oh kw ow
  v = lw.fn().Transpose(v, Dims{0, 1, 2, 4, 3, 5});
  Dims out = {a.dim(0), a.dim(1) * p.kernel[0] * p.kernel[1], rows * cols};
  if (!batched) out.erase(out.begin());
  return {lw.fn().Reshape(v, out)};
}

Values Col2Im(Lowering& lw) {
  Value a = ForAdding(lw, "self");
  const bool batched = a.rank() == 3;
  if (!batched) a = Unsqueeze(a, 0);
  const Patches p = PatchesOf(lw);
  Dims size = lw.Ints("output_size");
  if (size.size() == 1) size.push_back(size[0]);
  const int64_t rows = p.count(size[0], 0), cols = p.count(size[1], 1);
  const int64_t channels = a.dim(1) / (p.kernel[0] * p.kernel[1]);
  Value v = lw.fn().Reshape(a, Dims{a.dim(0), channels, p.kernel[0], p.kernel[1], rows, cols});
  v = OverlapAdd(v, 2, 4, size[0] + 2 * p.padding[0], p.step[0], p.dilation[0]);  // N C kw H ow
  v = OverlapAdd(v, 2, 4, size[1] + 2 * p.padding[1], p.step[1], p.dilation[1]);  // N C H W
  v = SliceAlong(v, 2, p.padding[0], p.padding[0] + size[0]);
  v = SliceAlong(v, 3, p.padding[1], p.padding[1] + size[1]);
  return {batched ? v : Squeeze(v, 0)};
}

constexpr OpDef View(std::string_view name, LowerFn lower) {
  return {.name = name, .kind = Kind::kView, .lower = lower};
}

constexpr OpDef kRows[] = {
    View("aten::cat", Cat),       View("aten::channel_shuffle", ChannelShuffle),
    View("aten::col2im", Col2Im), View("aten::flip", Flip),
    View("aten::im2col", Im2Col), View("aten::linalg_cross", Cross),
    View("aten::roll", Roll),     View("aten::stack", Stack),
};

}  // namespace

std::span<const OpDef> ViewOps() { return kRows; }

}  // namespace tpu::ops
