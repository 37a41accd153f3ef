// Places of nonzero elements, what goes by such places, and histograms. Operators whose results'
// sizes depend on values are in torch/.
#include <cmath>
#include <cstdint>

#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/quotient.h"
#include "ops/reduction.h"
#include "ops/scan.h"

namespace tpu::ops {
namespace {

using hlo::Function;
using hlo::Monoid;
using hlo::Value;
using hlo::Values;

struct Compacted {
  Value places, count;  // the places of the set elements, in order; behind them anything
};

// How many elements are set up to each place, this one included: int32.
Value RunningCount(Value set) {
  Function& fn = *set.function();
  return Scan({Cast(set, DType::kI32)}, {fn.Scalar(DType::kI32, int64_t{0})}, 0,
              [](Function&, const Values& v) { return Values{v[0] + v[1]}; })[0];
}

// Each place goes where the running count says; what is not set or too much is dropped.
Compacted CompactByCount(Value set, int64_t size) {
  Function& fn = *set.function();
  const int64_t n = set.numel();
  const Value running = RunningCount(set);
  const Value to = fn.Select(set, running - 1.0, Like(running, size));
  const hlo::ScatterDims s{{}, {0}, {}, {}, {0}, 1};
  const Value places =
      fn.Scatter({fn.Constant({DType::kI32, {size}}, int64_t{0})}, to, {fn.Iota(to.type(), 0)}, s,
                 [](Function&, const Values& v) { return Values{v[1]}; })[0];
  const Value count = fn.Slice(running, Dims{n - 1}, Dims{n}, Dims{1});
  return {places, fn.Reshape(count, Dims{})};
}

// Few elements: one turn of a loop for each writes its place behind those found so far; the next
// turn overwrites it unless the element was set.
Compacted Compact(Value set, int64_t size) {
  if (!set.valid()) return {};
  constexpr int64_t kFew = 8192;
  if (set.numel() > kFew) return CompactByCount(set, size);
  Function& fn = *set.function();
  const Value zero = fn.Scalar(DType::kI32, int64_t{0});
  const int64_t n = set.numel();
  const Values out = fn.While(
      {zero, zero, fn.Constant({DType::kI32, {size + 1}}, int64_t{0}), set},
      [n](Function&, const Values& v) { return Values{Lt(v[0], static_cast<double>(n))}; },
      [size](Function& f, const Values& v) {
        const Value place = f.Reshape(v[0], Dims{1});
        const Value to = Min(v[1], Like(v[1], size));
        const Value hit = f.Reshape(f.DynamicSlice(v[3], {v[0]}, Dims{1}), Dims{});
        return Values{v[0] + 1.0, v[1] + Cast(hit, DType::kI32),
                      f.DynamicUpdateSlice(v[2], place, {to}), v[3]};
      });
  return {fn.Slice(out[2], Dims{0}, Dims{size}, Dims{1}), out[1]};
}

Values NonzeroStatic(Lowering& lw) {
  Function& fn = lw.fn();
  const Value a = lw.TensorAs("self", DType::kBool);
  const int64_t size = lw.Int("size"), rank = a.rank();
  if (size < 0) {
    return {lw.Fail(InvalidArgument("nonzero_static: 'size' must be an non-negative integer"))};
  }
  if (rank == 0 || size == 0) return {fn.Constant({DType::kI64, {size, rank}}, int64_t{0})};
  const Value fill = fn.Constant({DType::kI64, {size, rank}}, lw.Int("fill_value"));
  if (a.numel() == 0) return {fill};
  const Compacted c = Compact(fn.Reshape(a, Dims{a.numel()}), size);
  Values columns;
  int64_t stride = a.numel();
  for (int64_t d = 0; d < rank; ++d) {
    const Value rest = stride == a.numel()
                           ? c.places
                           : fn.Binary(hlo::BinaryOp::kRemainder, c.places, Like(c.places, stride));
    stride /= a.dim(d);
    columns.push_back(Unsqueeze(rest / Like(rest, stride), 1));
  }
  const Value found = Cast(fn.Concatenate(columns, 1), DType::kI64);
  const Value at = fn.Iota({DType::kI32, {size, rank}}, 0);
  return {Select(Lt(at, fn.BroadcastTo(c.count, at.dims())), found, fill)};
}

void CheckFinite(Lowering& lw, Value low, Value high, std::string_view rule) {
  Function& fn = lw.fn();
  const Value fine = fn.Unary(hlo::UnaryOp::kIsFinite, low);
  lw.CheckValue(~(fine & fn.Unary(hlo::UnaryOp::kIsFinite, high)), fn.Select(fine, high, low),
                "self", rule);
}

// Elements outside [min, max] and NaN don't count; equal bounds mean the extrema of the elements.
Values Histc(Lowering& lw) {
  Function& fn = lw.fn();
  const DType own = lw.TensorType("self"), t = OpMathType(own);
  const int64_t bins = lw.Int("bins");
  const double min = lw.StaticNumber("min"), max = lw.StaticNumber("max");
  if (bins <= 0) return {lw.Fail(InvalidArgument("torch.histc(): bins must be > 0"))};
  if (!IsFloat(own)) {
    return {lw.Fail(Unimplemented("\"histc\" not implemented for ", TorchName(own)))};
  }
  if (!std::isfinite(min) || !std::isfinite(max)) {
    return {lw.Fail(InvalidArgument("torch.histc: range of [", min, ", ", max, "] is not finite"))};
  }
  if (min > max) return {lw.Fail(InvalidArgument("torch.histc: max must be larger than min"))};
  Value a = lw.TensorAs("self", t);
  a = fn.Reshape(a, Dims{a.numel()});
  Value low = fn.Scalar(t, min), high = fn.Scalar(t, max);
  if (min == max && a.numel() > 0) {
    low = fn.Reduce(a, Monoid::kMin, Dims{0});
    high = fn.Reduce(a, Monoid::kMax, Dims{0});
    CheckFinite(lw, low, high, "torch.histc: range of the elements is not finite");
  }
  const Value flat = Eq(low, high);
  low = fn.Select(flat, low - 1.0, low);
  high = fn.Select(flat, high + 1.0, high);
  const Value l = fn.BroadcastTo(low, a.dims()), h = fn.BroadcastTo(high, a.dims());
  const Value place = Floor(ExactQuotient((a - l) * static_cast<double>(bins), h - l));
  Value bin = Min(Cast(place, DType::kI32), fn.Constant({DType::kI32, a.dims()}, bins - 1));
  bin = fn.Select(Ge(a, l) & Le(a, h), bin, Like(bin, bins));  // dropped by the scatter
  const hlo::ScatterDims s{{}, {0}, {}, {}, {0}, 1};
  const Value one = fn.Constant({DType::kI32, a.dims()}, int64_t{1});
  return {Cast(fn.Scatter({fn.Constant({DType::kI32, {bins}}, int64_t{0})}, bin, {one}, s,
                          [](Function&, const Values& v) { return Values{v[0] + v[1]}; })[0],
               own)};
}

// The k-th set element of the mask takes the k-th of `source`.
Values MaskedScatter(Lowering& lw) {
  Function& fn = lw.fn();
  Value a = lw.Tensor("self"), mask = lw.TensorAs("mask", DType::kBool);
  const Value source = lw.TensorAs("source", a.dtype());
  Dims dims;
  if (!BroadcastShapes(a.dims(), mask.dims(), &dims)) {
    return {lw.Fail(InvalidArgument("masked_scatter: the mask doesn't broadcast"))};
  }
  a = fn.BroadcastTo(a, dims);
  mask = fn.BroadcastTo(mask, dims);
  if (a.numel() == 0) return {a};
  const Dims flat = {a.numel()};
  const Value set = fn.Reshape(mask, flat);
  const Value at = lw.CheckIndex(RunningCount(set) - 1.0, source.numel(), "source", 0, false, ~set);
  if (source.numel() == 0) return {a};
  const hlo::GatherDims g{{}, {0}, {}, {}, {0}, 1};
  const Value taken = fn.Gather(fn.Reshape(source, Dims{source.numel()}), at, g, Dims{1});
  return {fn.Select(mask, fn.Reshape(taken, dims), a)};
}

constexpr OpDef kRows[] = {
    {.name = "aten::histc", .kind = Kind::kScatter, .lower = Histc, .statics = "min,max"},
    {.name = "aten::masked_scatter", .kind = Kind::kScatter, .lower = MaskedScatter},
    {.name = "aten::nonzero_static", .kind = Kind::kIndexing, .lower = NonzeroStatic},
};

}  // namespace

std::span<const OpDef> CountingOps() { return kRows; }

}  // namespace tpu::ops
