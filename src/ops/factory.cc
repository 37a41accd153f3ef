// Tensors made from numbers: filled, ranges, identity and triangles.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/quotient.h"
#include "ops/rows.h"
#include "ops/scan.h"
#include "ops/sort.h"

namespace tpu::ops {
namespace {

using hlo::Function;
using hlo::Value;
using hlo::Values;

Values FillNumber(Lowering& lw) {
  const Value v = lw.Number("value", lw.TensorType("self"));
  return {lw.fn().BroadcastTo(v, lw.TensorDims("self"))};
}

Values FillTensor(Lowering& lw) {
  const Value v = lw.TensorAs("value", lw.TensorType("self"));
  return {lw.fn().BroadcastTo(v, lw.TensorDims("self"))};
}

Values Zero(Lowering& lw) {
  return {lw.fn().Constant({lw.TensorType("self"), lw.TensorDims("self")}, int64_t{0})};
}

// --- Ranges. `out` has its final sizes; one of as many elements in another shape is filled in
// order.

// 0, 1, 2 ... in `dtype`.
Value Count(Function& fn, DType dtype, int64_t n) {
  const DType real = RealOf(dtype);
  const DType whole = n > INT32_MAX ? DType::kI64 : DType::kI32;
  const Value i = fn.Iota({IsInteger(real) ? real : whole, {n}}, 0);
  return Cast(Cast(i, real), dtype);
}

Value Spread(Value scalar, Value like) {
  return like.valid() ? like.function()->BroadcastTo(scalar, like.dims()) : Value();
}

// torch.arange on the CPU multiplies in int64, in double for float32, in float32 for half types.
DType RangeType(DType t) {
  if (IsIntegral(t)) return DType::kI64;
  return t == DType::kF32 ? DType::kF64 : OpMathType(t);
}

Values Arange(Lowering& lw) {
  const Dims dims = lw.TensorDims("out");
  const DType own = lw.TensorType("out"), t = RangeType(own);
  const Value i = Count(lw.fn(), t, NumElements(dims));
  const Value out = Spread(lw.Number("start", t), i) + Spread(lw.Number("step", t), i) * i;
  return {lw.fn().Reshape(Cast(out, own), dims)};
}

// From both ends towards the middle, as PyTorch's CPU kernel does.
Value Even(Lowering& lw, DType t, int64_t n) {
  const Value i = Count(lw.fn(), t, n);
  const DType own = lw.TensorType("out"), ends = IsIntegral(own) ? own : t;
  const Value first = Cast(lw.Number("start", ends), t), last = Cast(lw.Number("end", ends), t);
  const Value start = Spread(first, i), end = Spread(last, i);
  if (n == 1) return start;
  const Value steps = lw.fn().Scalar(t, static_cast<double>(n - 1));
  const Value step = Spread(ExactQuotient(last - first, steps), i);
  const Value left = Like(i, static_cast<double>(n - 1)) - i;
  const Value at = lw.fn().Iota({DType::kI64, {n}}, 0);
  return lw.fn().Select(Lt(at, static_cast<double>(n / 2)), start + step * i, end - step * left);
}

// Integers: ends are cut to the type, steps are double.
DType EvenType(DType t) { return IsIntegral(t) ? DType::kF64 : OpMathType(t); }

Values Linspace(Lowering& lw) {
  const Dims dims = lw.TensorDims("out");
  const DType own = lw.TensorType("out");
  return {lw.fn().Reshape(Cast(Even(lw, EvenType(own), NumElements(dims)), own), dims)};
}

Values Logspace(Lowering& lw) {
  const Dims dims = lw.TensorDims("out");
  const DType own = lw.TensorType("out"), t = EvenType(own);
  const Value exponent = Even(lw, t, NumElements(dims));
  const Value out = Pow(Spread(lw.Number("base", t), exponent), exponent);
  return {lw.fn().Reshape(Cast(out, own), dims)};
}

Values Eye(Lowering& lw) {
  const Dims dims = lw.TensorDims("out");
  const hlo::Type index{DType::kI32, dims};
  return {Cast(Eq(lw.fn().Iota(index, 0), lw.fn().Iota(index, 1)), lw.TensorType("out"))};
}

// --- Triangles.

template <bool lower>
Values Triangle(Lowering& lw) {
  const Value a = lw.Tensor("self");
  if (a.rank() < 2) return {lw.Fail(InvalidArgument("a triangle needs a matrix"))};
  Function& fn = lw.fn();
  const hlo::Type index{DType::kI32, {a.dim(a.rank() - 2), a.dim(a.rank() - 1)}};
  const auto k =
      static_cast<double>(std::clamp<int64_t>(lw.Int("diagonal"), -INT32_MAX, INT32_MAX));
  const Value off = fn.Iota(index, 1) - fn.Iota(index, 0);
  const Value keep = fn.BroadcastTo(lower ? Le(off, k) : Ge(off, k), a.dims());
  return {fn.Select(keep, a, Like(a, int64_t{0}))};
}

// Row and column of each element of a triangle, row after row.
template <bool lower>
Values TriangleIndices(Lowering& lw) {
  Function& fn = lw.fn();
  const int64_t rows = lw.Int("row"), cols = lw.Int("col"), offset = lw.Int("offset");
  DType t = lw.Has("dtype") ? *lw.Type("dtype") : DType::kI64;
  if (lw.Expected(0) != nullptr) t = lw.Expected(0)->dtype;
  int64_t n = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t edge = std::clamp<int64_t>(lower ? r + offset + 1 : r + offset, 0, cols);
    n += lower ? edge : cols - edge;
  }
  if (n == 0) return {fn.Constant({t, {2, 0}}, int64_t{0})};
  const hlo::Type per_row{DType::kI32, {rows}};
  const Value edge =
      fn.Clamp(fn.Scalar(DType::kI32, int64_t{0}),
               fn.Iota(per_row, 0) + static_cast<double>(lower ? offset + 1 : offset),
               fn.Scalar(DType::kI32, cols));
  const Value length = lower ? edge : Like(edge, cols) - edge;
  const Value ends = Scan({length}, {fn.Scalar(DType::kI32, int64_t{0})}, 0,
                          [](Function&, const Values& v) { return Values{v[0] + v[1]}; })[0];
  const Value at = fn.Iota({DType::kI32, {n}}, 0);
  const Value row = SearchSorted(ends, at, true, false);
  const hlo::GatherDims g{{}, {0}, {}, {}, {0}, 1};
  // The column: the place in the row, which starts at `edge` in an upper triangle.
  const Value shift = lower ? length - ends : length - ends + edge;
  const Value col = at + fn.Gather(shift, row, g, Dims{1});
  return {Cast(fn.Concatenate({Unsqueeze(row, 0), Unsqueeze(col, 0)}, 0), t)};
}

constexpr OpDef Factory(std::string_view name, LowerFn lower) {
  return {.name = name, .kind = Kind::kFactory, .lower = lower};
}

// The numbers decide the size that `out` gets, so they are part of the key; but the program takes
// them at run time, so ranges of one length share it.
constexpr OpDef Range(std::string_view name) {
  return {.name = name, .kind = Kind::kFactory, .lower = Arange, .statics = "start,end,step"};
}

constexpr OpDef kRows[] = {
    Range("aten::arange.start_out"),
    Factory("aten::eye.m_out", Eye),
    Factory("aten::eye.out", Eye),
    Fitting(Factory("aten::fill_.Scalar", FillNumber)),
    Factory("aten::fill_.Tensor", FillTensor),
    Factory("aten::linspace.out", Linspace),
    Factory("aten::logspace.out", Logspace),
    Range("aten::range.out"),
    Factory("aten::tril", Triangle<true>),
    Factory("aten::tril_indices", TriangleIndices<true>),
    Factory("aten::triu", Triangle<false>),
    Factory("aten::triu_indices", TriangleIndices<false>),
    Factory("aten::zero_", Zero),
};

}  // namespace

std::span<const OpDef> FactoryOps() { return kRows; }

}  // namespace tpu::ops
