// QR by Householder reflections as LAPACK numbers them: factors, products of reflectors, and least
// squares.
// What it is not: blocked. A loop over the columns for all matrices of a batch together.
#include <algorithm>

#include "ops/cast.h"
#include "ops/families.h"
#include "ops/lowering.h"
#include "ops/matrix.h"
#include "ops/reflectors.h"

namespace tpu::ops {
namespace {

using hlo::BinaryOp;
using hlo::Function;
using hlo::UnaryOp;
using hlo::Value;
using hlo::Values;

Value RealPart(Value v) {
  return IsComplex(v.dtype()) ? v.function()->Unary(UnaryOp::kReal, v) : v;
}
Value SquareSize(Value v) {  // |v|^2
  if (!IsComplex(v.dtype())) return v * v;
  const Value re = v.function()->Unary(UnaryOp::kReal, v);
  const Value im = v.function()->Unary(UnaryOp::kImag, v);
  return re * re + im * im;
}
// v + s u w^T for vectors u, w: outer products [b, m, n].
Value Outer(Value u, Value w) { return Unsqueeze(u, 2) * Unsqueeze(w, 1); }

// Element `j` of each row of [b, k]: [b].
Value At(Value v, Value j) {
  Function& fn = *v.function();
  const Value zero = Like(j, int64_t{0});
  return fn.Reshape(fn.DynamicSlice(v, {zero, j}, Dims{v.dim(0), 1}), Dims{v.dim(0)});
}

struct Reflector {
  Value v, tau, beta;  // [b, m], [b], [b]; H = 1 - tau v v^H takes the column to beta e_j
};

// Of a column [b, m] from row j. The norm is taken of the column scaled to 1, so that squares
// neither overflow nor vanish.
Reflector ReflectorOf(Function& fn, Value column, Value j) {
  const Value rows = fn.Iota({DType::kI32, column.dims()}, 1);
  const Value here = fn.BroadcastTo(j, rows.dims());
  const Value zero = Like(column, int64_t{0});
  const Value alpha = At(column, j);
  const Value below = fn.Select(Gt(rows, here), column, zero);
  const Value from = fn.Select(Ge(rows, here), column, zero);
  Value scale = fn.Reduce(fn.Unary(UnaryOp::kAbs, from), hlo::Monoid::kMax, Dims{1});
  scale = Select(Gt(scale, 0.0), scale, Like(scale, int64_t{1}));
  const Value scaled = from / Cast(Unsqueeze(scale, 1), column.dtype());
  const Value norm = Sqrt(fn.Reduce(SquareSize(scaled), hlo::Monoid::kAdd, Dims{1})) * scale;
  Value same = Eq(fn.Reduce(fn.Unary(UnaryOp::kAbs, below), hlo::Monoid::kMax, Dims{1}), 0.0);
  if (IsComplex(column.dtype())) same = same & Eq(fn.Unary(UnaryOp::kImag, alpha), 0.0);
  const Value real = RealPart(alpha);
  const Value beta = Cast(Select(Lt(real, 0.0), norm, -norm), column.dtype());
  const Value one = Like(alpha, int64_t{1});
  const Value tau =
      fn.Select(same, Like(alpha, int64_t{0}), (beta - alpha) / fn.Select(same, one, beta));
  const Value divisor = fn.Select(same, one, alpha - beta);
  const Value v =
      fn.Select(Eq(rows, here), Like(column, int64_t{1}), below / Unsqueeze(divisor, 1));
  return {v, tau, fn.Select(same, alpha, beta)};
}

// Row vector v^H a: [b, n].
Value AdjointTimes(Value v, Value a) {
  return a.function()->Reduce(Unsqueeze(Conjugate(v), 2) * a, hlo::Monoid::kAdd, Dims{1});
}

Values QrStep(Function& fn, const Values& state) {
  const Value j = state[0], a = state[1], zero = Like(j, int64_t{0});
  const Value column = ColumnAt(a, j);
  const Reflector r = ReflectorOf(fn, column, j);
  const Value columns = fn.Iota({DType::kI32, {a.dim(0), a.dim(2)}}, 1);
  const Value product = AdjointTimes(r.v, a);
  const Value right = Gt(columns, fn.BroadcastTo(j, columns.dims()));
  const Value row =
      fn.Select(right, product * Unsqueeze(Conjugate(r.tau), 1), Like(product, int64_t{0}));
  const Value rows = fn.Iota({DType::kI32, column.dims()}, 1);
  const Value here = fn.BroadcastTo(j, rows.dims());
  const Value wide = fn.BroadcastTo(Unsqueeze(r.beta, 1), column.dims());
  const Value kept = fn.Select(Lt(rows, here), column, fn.Select(Eq(rows, here), wide, r.v));
  return {j + 1.0, fn.DynamicUpdateSlice(a - Outer(r.v, row), Unsqueeze(kept, 2), {zero, zero, j}),
          fn.DynamicUpdateSlice(state[2], Unsqueeze(r.tau, 1), {zero, j})};
}

}  // namespace

Reflected Reflect(Value a) {
  Function& fn = *a.function();
  const int64_t b = a.dim(0), k = std::min(a.dim(1), a.dim(2));
  const Value tau = fn.Constant({a.dtype(), {b, k}}, int64_t{0});
  if (b * k == 0) return {a, tau};
  const Values out = fn.While(
      {fn.Scalar(DType::kI32, int64_t{0}), a, tau},
      [k](Function&, const Values& v) { return Values{Lt(v[0], static_cast<double>(k))}; },
      [](Function& f, const Values& v) { return QrStep(f, v); });
  return {out[1], out[2]};
}

Value ApplyReflectors(const Reflected& r, Value c, bool adjoint) {
  Function& fn = *c.function();
  const int64_t b = c.dim(0), m = c.dim(1), k = r.tau.dim(1);
  if (c.numel() == 0 || k == 0) return c;
  // Q = H_0 H_1 ...: the last one meets c first, the adjoints the other way round.
  const Values out = fn.While(
      {fn.Scalar(DType::kI32, int64_t{0}), c},
      [k](Function&, const Values& v) { return Values{Lt(v[0], static_cast<double>(k))}; },
      [&](Function& f, const Values& v) {
        const Value j = adjoint ? v[0] : static_cast<double>(k - 1) - v[0];
        const Value rows = f.Iota({DType::kI32, {b, m}}, 1);
        const Value here = f.BroadcastTo(j, rows.dims());
        const Value column = ColumnAt(r.a, j);
        const Value vector =
            f.Select(Gt(rows, here), column,
                     f.Select(Eq(rows, here), Like(column, int64_t{1}), Like(column, int64_t{0})));
        Value tau = At(r.tau, j);
        if (adjoint) tau = Conjugate(tau);
        return Values{v[0] + 1.0,
                      v[1] - Outer(vector, AdjointTimes(vector, v[1]) * Unsqueeze(tau, 1))};
      });
  return out[1];
}

Value ReflectorColumns(const Reflected& r, int64_t n) {
  Function& fn = *r.a.function();
  const int64_t b = r.a.dim(0), m = r.a.dim(1);
  const Value one = Identity(fn, r.a.dtype(), {b}, m);
  return ApplyReflectors(r, fn.Slice(one, Dims{0, 0, 0}, Dims{b, m, n}, Dims{1, 1, 1}), false);
}

Value UpperRows(Value a, int64_t k) {
  Function& fn = *a.function();
  return Triangle(fn.Slice(a, Dims{0, 0, 0}, Dims{a.dim(0), k, a.dim(2)}, Dims{1, 1, 1}), false);
}

namespace {

Values Qr(Lowering& lw) {
  const Value a = lw.Tensor("A");
  if (!a.valid()) return Values(2);
  const std::string_view mode = lw.String("mode");
  const Dims batch = BatchOf(a);
  const Reflected r = Reflect(JoinBatch(a));
  const int64_t m = r.a.dim(1), k = std::min(m, r.a.dim(2));
  const int64_t columns = mode == "complete" ? m : k;
  const Value upper = SplitBatch(UpperRows(r.a, columns), batch);
  if (mode == "r") return {lw.fn().Constant({a.dtype(), {0}}, int64_t{0}), upper};
  return {SplitBatch(ReflectorColumns(r, columns), batch), upper};
}

Values Geqrf(Lowering& lw) {
  const Value a = lw.Tensor("self");
  if (!a.valid()) return Values(2);
  if (a.rank() < 2) {
    lw.Fail(InvalidArgument("torch.geqrf: input must have at least 2 dimensions."));
    return Values(2);
  }
  const Reflected r = Reflect(JoinBatch(a));
  return {SplitBatch(r.a, BatchOf(a)), SplitBatch(r.tau, BatchOf(a))};
}

Values HouseholderProduct(Lowering& lw) {
  const Value a = lw.Tensor("input"), tau = lw.Tensor("tau");
  if (!a.valid() || !tau.valid()) return {Value()};
  const Dims batch = BatchOf(a);
  const Reflected r = {JoinBatch(a),
                       lw.fn().Reshape(tau, Dims{NumElements(batch), tau.dim(tau.rank() - 1)})};
  return {SplitBatch(ReflectorColumns(r, r.a.dim(2)), batch)};
}

Values Ormqr(Lowering& lw) {
  const Value a = lw.Tensor("self"), tau = lw.Tensor("input2"), c = lw.Tensor("input3");
  if (!a.valid() || !tau.valid() || !c.valid()) return {Value()};
  const Dims batch = BatchOf(c);
  const bool left = lw.Bool("left"), adjoint = lw.Bool("transpose");
  const Reflected r = {JoinBatch(a),
                       lw.fn().Reshape(tau, Dims{NumElements(batch), tau.dim(tau.rank() - 1)})};
  // C Q is (Q^H C^H)^H.
  const Value out = left ? ApplyReflectors(r, JoinBatch(c), adjoint)
                         : Adjoint(ApplyReflectors(r, Adjoint(JoinBatch(c)), !adjoint));
  return {SplitBatch(out, batch)};
}

constexpr OpDef Row(std::string_view name, LowerFn lower, Meta meta = Meta::kOwn) {
  return {.name = name, .kind = Kind::kLinalg, .lower = lower, .meta = meta};
}

constexpr OpDef kRows[] = {
    Row("aten::geqrf", Geqrf, Meta::kInfer),
    Row("aten::linalg_householder_product", HouseholderProduct),
    Row("aten::linalg_qr", Qr),
    Row("aten::ormqr", Ormqr),
};

}  // namespace

std::span<const OpDef> QrOps() { return kRows; }

}  // namespace tpu::ops
