// Padding with a number, by reflection and by replication, and the gradients.
#include <algorithm>

#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/rows.h"

namespace tpu::ops {
namespace {

using hlo::Function;
using hlo::Monoid;
using hlo::Value;
using hlo::Values;

enum class Mode : uint8_t { kReflect, kReplicate };

// One dimension's padding. What is negative cuts off.
struct Side {
  int64_t dim, low, high;
};

// PyTorch lists pairs from the last dimension on.
std::vector<Side> SidesOf(const Dims& padding, int64_t rank) {
  std::vector<Side> sides;
  for (size_t i = 0; i + 1 < padding.size(); i += 2) {
    sides.push_back({rank - 1 - static_cast<int64_t>(i / 2), padding[i], padding[i + 1]});
  }
  return sides;
}

Value ZeroPad(Value a, int64_t dim, int64_t low, int64_t high) {
  if (!a.valid() || (low == 0 && high == 0)) return a;
  Dims l(a.dims().size(), 0), h = l, i = l;
  l[static_cast<size_t>(dim)] = low;
  h[static_cast<size_t>(dim)] = high;
  return a.function()->Pad(a, a.function()->Scalar(a.dtype(), int64_t{0}), l, h, i);
}

Value SliceAlong(Value a, int64_t dim, int64_t start, int64_t limit) {
  if (!a.valid()) return a;
  Dims starts(a.dims().size(), 0), limits = a.dims(), steps(a.dims().size(), 1);
  starts[static_cast<size_t>(dim)] = start;
  limits[static_cast<size_t>(dim)] = limit;
  return a.function()->Slice(a, starts, limits, steps);
}

Value Repeated(Value slice, int64_t dim, int64_t n) {
  Dims dims = slice.dims();
  dims[static_cast<size_t>(dim)] = n;
  return slice.function()->BroadcastTo(slice, dims);
}

// What stands before (`low`) or behind the elements.
Value Border(Value a, Mode mode, int64_t dim, bool low, int64_t n) {
  const int64_t size = a.dim(dim);
  if (mode == Mode::kReplicate) {
    return Repeated(low ? SliceAlong(a, dim, 0, 1) : SliceAlong(a, dim, size - 1, size), dim, n);
  }
  const Value part =
      low ? SliceAlong(a, dim, 1, 1 + n) : SliceAlong(a, dim, size - 1 - n, size - 1);
  return a.valid() ? a.function()->Reverse(part, Dims{dim}) : Value();
}

Value PadAlong(Value a, Mode mode, const Side& s) {
  if (!a.valid()) return a;
  Values parts;
  if (s.low > 0) parts.push_back(Border(a, mode, s.dim, true, s.low));
  parts.push_back(a);
  if (s.high > 0) parts.push_back(Border(a, mode, s.dim, false, s.high));
  const Value padded = parts.size() == 1 ? a : a.function()->Concatenate(parts, s.dim);
  return SliceAlong(padded, s.dim, std::max<int64_t>(-s.low, 0),
                    padded.dim(s.dim) - std::max<int64_t>(-s.high, 0));
}

// The transpose of Border: its gradient at the elements it came from, in a dimension of `size`.
Value BorderBackward(Value g, Mode mode, int64_t dim, bool low, int64_t size) {
  if (!g.valid()) return g;
  const int64_t n = g.dim(dim);
  if (mode == Mode::kReplicate) {
    const Value sum = Unsqueeze(g.function()->Reduce(g, Monoid::kAdd, Dims{dim}), dim);
    return low ? ZeroPad(sum, dim, 0, size - 1) : ZeroPad(sum, dim, size - 1, 0);
  }
  const Value back = g.function()->Reverse(g, Dims{dim});
  return low ? ZeroPad(back, dim, 1, size - 1 - n) : ZeroPad(back, dim, size - 1 - n, 1);
}

Value PadAlongBackward(Value g, Mode mode, const Side& s, int64_t size) {
  g = ZeroPad(g, s.dim, std::max<int64_t>(-s.low, 0), std::max<int64_t>(-s.high, 0));
  const int64_t low = std::max<int64_t>(s.low, 0), high = std::max<int64_t>(s.high, 0);
  Value sum = SliceAlong(g, s.dim, low, low + size);
  if (low > 0) {
    sum = sum + BorderBackward(SliceAlong(g, s.dim, 0, low), mode, s.dim, true, size);
  }
  if (high > 0) {
    const Value border = SliceAlong(g, s.dim, low + size, low + size + high);
    sum = sum + BorderBackward(border, mode, s.dim, false, size);
  }
  return sum;
}

template <Mode mode>
Values Pad(Lowering& lw) {
  Value a = lw.Tensor("self");
  for (const Side& s : SidesOf(lw.Ints("padding"), a.rank())) a = PadAlong(a, mode, s);
  return {a};
}

template <Mode mode>
Values PadBackward(Lowering& lw) {
  Value g = lw.TensorAs("grad_output", OpMathType(lw.TensorType("grad_output")));
  const Dims sizes = lw.TensorDims("self");
  for (const Side& s : SidesOf(lw.Ints("padding"), g.rank())) {
    g = PadAlongBackward(g, mode, s, sizes[static_cast<size_t>(s.dim)]);
  }
  return {g};
}

// A row of its own: PyTorch composes it of three launches and three views.
Values ConstantPad(Lowering& lw) {
  const Value a = lw.Tensor("self");
  Dims low(a.dims().size(), 0), high = low, interior = low;
  for (const Side& s : SidesOf(lw.Ints("pad"), a.rank())) {
    low[static_cast<size_t>(s.dim)] = s.low;
    high[static_cast<size_t>(s.dim)] = s.high;
  }
  return {lw.fn().Pad(a, lw.Number("value", a.dtype()), low, high, interior)};
}

constexpr OpDef View(std::string_view name, LowerFn lower) {
  return {.name = name, .kind = Kind::kView, .lower = lower};
}

constexpr OpDef kRows[] = {
    Fitting(View("aten::constant_pad_nd", ConstantPad)),
    View("aten::reflection_pad1d", Pad<Mode::kReflect>),
    View("aten::reflection_pad1d_backward", PadBackward<Mode::kReflect>),
    View("aten::reflection_pad2d", Pad<Mode::kReflect>),
    View("aten::reflection_pad2d_backward", PadBackward<Mode::kReflect>),
    View("aten::reflection_pad3d", Pad<Mode::kReflect>),
    View("aten::reflection_pad3d_backward", PadBackward<Mode::kReflect>),
    View("aten::replication_pad1d", Pad<Mode::kReplicate>),
    View("aten::replication_pad1d_backward", PadBackward<Mode::kReplicate>),
    View("aten::replication_pad2d", Pad<Mode::kReplicate>),
    View("aten::replication_pad2d_backward", PadBackward<Mode::kReplicate>),
    View("aten::replication_pad3d", Pad<Mode::kReplicate>),
    View("aten::replication_pad3d_backward", PadBackward<Mode::kReplicate>),
};

}  // namespace

std::span<const OpDef> PadOps() { return kRows; }

}  // namespace tpu::ops
