// Cumulative sums, products, maxima, minima and logarithms of sums.
#include "ops/scan.h"

#include <cmath>

#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/reduction.h"

namespace tpu::ops {

using hlo::Function;
using hlo::Value;
using hlo::Values;

namespace {

// One turn of a loop for each element along `dim`: on the CPU plugin 4 ns and one kernel to
// compile, where windows and doubling steps take three to twenty times the compile and no less
// time.
Values ScanByTurns(const Values& operands, const Values& inits, int64_t dim,
                   const hlo::Body& combine) {
  const size_t n = operands.size();
  Function& fn = *operands[0].function();
  const int64_t length = operands[0].dim(dim);
  Dims slice = operands[0].dims();
  slice[static_cast<size_t>(dim)] = 1;
  Values state = {fn.Scalar(DType::kI32, int64_t{0})};
  for (const Value& init : inits) state.push_back(fn.BroadcastInDim(init, slice, Dims{}));
  state.insert(state.end(), operands.begin(), operands.end());
  const Values out = fn.While(
      state,
      [length](Function&, const Values& v) {
        return Values{Lt(v[0], static_cast<double>(length))};
      },
      [&](Function& f, const Values& v) {
        Values starts(static_cast<size_t>(v[1].rank()), f.Scalar(DType::kI32, int64_t{0}));
        starts[static_cast<size_t>(dim)] = v[0];
        Values args(v.begin() + 1, v.begin() + 1 + static_cast<std::ptrdiff_t>(n));
        for (size_t i = 0; i < n; ++i) args.push_back(f.DynamicSlice(v[1 + n + i], starts, slice));
        const Values next = combine(f, args);
        Values result = {v[0] + 1.0};
        result.insert(result.end(), next.begin(), next.end());
        for (size_t i = 0; i < n; ++i) {
          result.push_back(f.DynamicUpdateSlice(v[1 + n + i], next[i], starts));
        }
        return result;
      });
  return {out.begin() + 1 + static_cast<std::ptrdiff_t>(n), out.end()};
}

// Blocks side by side, then the blocks' totals: as many turns as twice the square root.
Values ScanByBlocks(const Values& operands, const Values& inits, int64_t dim,
                    const hlo::Body& combine) {
  Function& fn = *operands[0].function();
  const Dims dims = operands[0].dims();
  const auto d = static_cast<size_t>(dim);
  const auto size = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(dims[d]))));
  const int64_t blocks = (dims[d] + size - 1) / size;
  Dims split = dims, none(dims.size(), 0), padding = none, ones(dims.size() + 1, 1);
  split[d] = blocks;
  split.insert(split.begin() + dim + 1, size);
  padding[d] = blocks * size - dims[d];
  Values parts, totals;
  for (size_t i = 0; i < operands.size(); ++i) {
    parts.push_back(fn.Reshape(fn.Pad(operands[i], inits[i], none, padding, none), split));
  }
  parts = ScanByTurns(parts, inits, dim + 1, combine);
  Dims last(split.size(), 0), per_block = split;
  last[d + 1] = size - 1;
  per_block.erase(per_block.begin() + dim + 1);
  for (const Value& v : parts) {
    totals.push_back(fn.Reshape(fn.Slice(v, last, v.dims(), ones), per_block));
  }
  totals = ScanByTurns(totals, inits, dim, combine);
  Dims low = none, high = none;
  low[d] = 1;
  high[d] = -1;
  Values args, out;
  for (size_t i = 0; i < totals.size(); ++i) {
    const Value before = fn.Pad(totals[i], inits[i], low, high, none);
    args.push_back(fn.BroadcastTo(Unsqueeze(before, dim + 1), split));
  }
  args.insert(args.end(), parts.begin(), parts.end());
  Dims whole = dims;
  whole[d] = blocks * size;
  for (const Value& v : combine(fn, args)) {
    out.push_back(fn.Slice(fn.Reshape(v, whole), none, dims, Dims(dims.size(), 1)));
  }
  return out;
}

}  // namespace

Values Scan(const Values& operands, const Values& inits, int64_t dim, const hlo::Body& combine) {
  constexpr int64_t kLong = 8192;
  if (operands.empty() || !operands[0].valid()) return Values(operands.size());
  if (operands[0].numel() == 0) return operands;
  return operands[0].dim(dim) > kLong ? ScanByBlocks(operands, inits, dim, combine)
                                      : ScanByTurns(operands, inits, dim, combine);
}

namespace {

Values Shaped(Lowering& lw, const Values& values) {
  Values out;
  for (const Value& v : values) out.push_back(lw.fn().Reshape(v, lw.TensorDims("self")));
  return out;
}

int64_t ScanDim(const Lowering& lw) {
  return DimOf(lw, static_cast<int64_t>(lw.TensorDims("self").size()));
}

// The type: `dtype`, else that of `out`, else int64 for integers, else the tensor's.
Value Term(Lowering& lw) {
  DType t = lw.TensorType("self");
  if (lw.Has("dtype")) {
    t = *lw.Type("dtype");
  } else if (lw.Has("out")) {
    t = lw.TensorType("out");
  } else if (IsIntegral(t)) {
    t = DType::kI64;
  }
  return AtLeast1d(Cast(lw.TensorAs("self", t), OpMathType(t)));
}

Values CumSum(Lowering& lw) {
  const Value a = Term(lw);
  return Shaped(lw, Scan({a}, {lw.fn().Scalar(a.dtype(), int64_t{0})}, ScanDim(lw),
                         [](Function&, const Values& v) { return Values{v[0] + v[1]}; }));
}

Values CumProd(Lowering& lw) {
  const Value a = Term(lw);
  return Shaped(lw, Scan({a}, {lw.fn().Scalar(a.dtype(), int64_t{1})}, ScanDim(lw),
                         [](Function&, const Values& v) { return Values{v[0] * v[1]}; }));
}

// The last place of the extremum so far; once a NaN was met, the last NaN.
template <bool maximum>
Values CumExtremum(Lowering& lw) {
  const DType own = lw.TensorType("self");
  const Value a = AtLeast1d(lw.TensorAs("self", IsBool(own) ? DType::kU8 : own));
  const int64_t dim = ScanDim(lw);
  const Value at = lw.fn().Iota({DType::kI32, a.dims()}, dim);
  const Values out =
      Scan({a, at}, {Bound(lw.fn(), a.dtype(), !maximum), lw.fn().Scalar(DType::kI32, int64_t{0})},
           dim, [](Function& f, const Values& v) {
             Value take = maximum ? Ge(v[2], v[0]) : Le(v[2], v[0]);
             if (IsFloat(v[0].dtype())) take = take | IsNan(v[2]);
             return Values{f.Select(take, v[2], v[0]), f.Select(take, v[3], v[1])};
           });
  return Shaped(lw, {Cast(out[0], own), Cast(out[1], DType::kI64)});
}

// log(exp(a) + exp(b)) without overflow; infinities of one sign stay.
Value LogAddExp(Value a, Value b) {
  Function& fn = *a.function();
  if (IsComplex(a.dtype())) {
    // The angle of the larger one goes in whole, not wrapped to (-pi, pi], as in PyTorch.
    const Value x = fn.Unary(hlo::UnaryOp::kReal, a), y = fn.Unary(hlo::UnaryOp::kReal, b);
    const Value rising = Lt(x, y);
    const Value low = fn.Select(rising, a, b), high = fn.Select(rising, b, a);
    const Value sum = Log(Like(a, 1.0) + Exp(low - high)) + high;
    return fn.Select(Eq(x, -INFINITY) & Eq(y, -INFINITY), low, sum);
  }
  const Value peak = Max(a, b);
  const Value sum = peak + Log1p(Exp(-Abs(a - b)));
  return fn.Select(Eq(a, b) & Eq(Abs(a), INFINITY), a, sum);
}

Values LogCumSumExp(Lowering& lw) {
  const DType t = OpMathType(lw.TensorType("self"));
  const Value a = AtLeast1d(lw.TensorAs("self", t));
  return Shaped(lw, Scan({a}, {lw.fn().Scalar(t, -INFINITY)}, ScanDim(lw),
                         [](Function&, const Values& v) { return Values{LogAddExp(v[0], v[1])}; }));
}

constexpr OpDef Row(std::string_view name, LowerFn lower) {
  return {.name = name, .kind = Kind::kReduce, .lower = lower};
}

constexpr OpDef kRows[] = {
    Row("aten::cummax", CumExtremum<true>),
    Row("aten::cummin", CumExtremum<false>),
    Row("aten::cumprod", CumProd),
    Row("aten::cumsum", CumSum),
    {.name = "aten::_logcumsumexp",
     .kind = Kind::kReduce,
     .lower = LogCumSumExp,
     .meta_name = "aten::logcumsumexp"},
    Row("aten::logcumsumexp", LogCumSumExp),
};

}  // namespace

std::span<const OpDef> ScanOps() { return kRows; }

}  // namespace tpu::ops
