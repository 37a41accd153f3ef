// Softmax, its logarithm, its masked forms, and their gradients. One program each; half types are
// computed in float32 and rounded once.
#include <cmath>

#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/reduction.h"

namespace tpu::ops {
namespace {

using hlo::Monoid;
using hlo::Value;
using hlo::Values;

// A tensor along one dimension, in its compute type.
struct Row {
  Value a;
  Reduction r;

  Value Peak(Value of) const { return r.Spread(r.Over(of, Monoid::kMax)); }
  Value Sum(Value of) const { return r.Spread(r.Over(of, Monoid::kAdd)); }
};

Row RowOf(Lowering& lw, std::string_view tensor, int64_t dim) {
  const DType t = OpMathType(lw.TensorType(tensor));
  const Value a = AtLeast1d(lw.TensorAs(tensor, t));
  return {a, {a.dims(), {dim}, true}};
}
Row RowOf(Lowering& lw, std::string_view tensor) {
  return RowOf(lw, tensor, DimOf(lw, static_cast<int64_t>(lw.TensorDims(tensor).size())));
}

Values ShapedAs(Lowering& lw, std::string_view tensor, Value v) {
  return {lw.fn().Reshape(v, lw.TensorDims(tensor))};
}

Value SoftmaxOf(const Row& row) {
  const Value e = Exp(row.a - row.Peak(row.a));
  return e / row.Sum(e);
}

Values Softmax(Lowering& lw) { return ShapedAs(lw, "self", SoftmaxOf(RowOf(lw, "self"))); }

Values LogSoftmax(Lowering& lw) {
  const Row row = RowOf(lw, "self");
  const Value shifted = row.a - row.Peak(row.a);
  const Value sum = row.r.Spread(Log(row.r.Over(Exp(shifted), Monoid::kAdd)));
  return ShapedAs(lw, "self", shifted - sum);
}

// A row of -inf only gives zeros. Four calls and a mask as PyTorch composes it.
Values SafeSoftmax(Lowering& lw) {
  Row row = RowOf(lw, "self");
  const DType t = lw.Has("dtype") ? *lw.Type("dtype") : lw.TensorType("self");
  row.a = Cast(row.a, OpMathType(t));
  const Value peak = row.r.Over(row.a, Monoid::kMax);
  const Value out = SoftmaxOf(row);
  const Value none = row.r.Spread(Eq(peak, -INFINITY));
  return ShapedAs(lw, "self", Cast(lw.fn().Select(none, Like(out, 0.0), out), t));
}

Values SoftmaxBackward(Lowering& lw) {
  const Row g = RowOf(lw, "grad_output");
  const Value y = RowOf(lw, "output").a, gy = g.a * y;
  return ShapedAs(lw, "grad_output", gy - y * g.Sum(gy));
}

Values LogSoftmaxBackward(Lowering& lw) {
  const Row g = RowOf(lw, "grad_output");
  const Value y = RowOf(lw, "output").a;
  return ShapedAs(lw, "grad_output", g.a - Exp(y) * g.Sum(g.a));
}

constexpr OpDef Reduce(std::string_view name, LowerFn lower, Meta meta = Meta::kOwn) {
  return {.name = name, .kind = Kind::kReduce, .lower = lower, .meta = meta};
}

constexpr OpDef kRows[] = {
    Reduce("aten::_log_softmax", LogSoftmax),
    Reduce("aten::_log_softmax_backward_data", LogSoftmaxBackward),
    Reduce("aten::_safe_softmax", SafeSoftmax),
    Reduce("aten::_softmax", Softmax),
    Reduce("aten::_softmax_backward_data", SoftmaxBackward),
};

}  // namespace

std::span<const OpDef> SoftmaxOps() { return kRows; }

}  // namespace tpu::ops
