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

// One turn of a loop for each element along `dim`: on the CPU plugin 4 ns and one kernel to compile,
// where windows and doubling steps take three to twenty times the compile and no less time.
Values Scan(const Values& operands, const Values& inits, int64_t dim, const hlo::Body& combine) {
  if (operands.empty() || !operands[0].valid()) return Values(operands.size());
  const size_t n = operands.size();
  Function& fn = *operands[0].function();
  const int64_t length = operands[0].dim(dim);
  if (operands[0].numel() == 0) return operands;
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
  const Values out = Scan(
      {a, at}, {Bound(lw.fn(), a.dtype(), !maximum), lw.fn().Scalar(DType::kI32, int64_t{0})}, dim,
      [](Function& f, const Values& v) {
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
    Value peak = Max(fn.Unary(hlo::UnaryOp::kReal, a), fn.Unary(hlo::UnaryOp::kReal, b));
    peak = Cast(fn.Select(Eq(Abs(peak), INFINITY), Like(peak, 0.0), peak), a.dtype());
    return Log(Exp(a - peak) + Exp(b - peak)) + peak;
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
    {.name = "aten::_logcumsumexp", .kind = Kind::kReduce, .lower = LogCumSumExp,
     .meta_name = "aten::logcumsumexp"},
    Row("aten::logcumsumexp", LogCumSumExp),
};

}  // namespace

std::span<const OpDef> ScanOps() { return kRows; }

}  // namespace tpu::ops
