// LU factors with partial pivoting, their parts, and solutions from given factors.
// What it is not: blocked. A loop over the columns, one rank-one update each, for all matrices of a
// batch together (StableHLO has no LU; the custom call for it exists on TPUs only).
#include <algorithm>

#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/lu.h"
#include "ops/matrix.h"
#include "ops/rows.h"

namespace tpu::ops {
namespace {

using hlo::BinaryOp;
using hlo::UnaryOp;
using hlo::Value;
using hlo::Values;

// How LAPACK compares pivots: |re| + |im|.
Value Magnitude(hlo::Function& fn, Value v) {
  if (!IsComplex(v.dtype())) return fn.Unary(UnaryOp::kAbs, v);
  return fn.Unary(UnaryOp::kAbs, fn.Unary(UnaryOp::kReal, v)) +
         fn.Unary(UnaryOp::kAbs, fn.Unary(UnaryOp::kImag, v));
}

// The row of the greatest magnitude at or below row j of column j: i32[b].
Value PivotRow(hlo::Function& fn, Value column, Value rows, Value j) {
  const Value size = Magnitude(fn, column);
  const Value below = Ge(rows, fn.BroadcastTo(j, rows.dims()));
  const Value masked = fn.Select(below, size, Like(size, -1.0));
  return fn.Reduce({masked, rows},
                   {fn.Scalar(masked.dtype(), -2.0), fn.Scalar(DType::kI32, int64_t{INT32_MAX})},
                   Dims{1}, [](hlo::Function& f, const Values& v) {
                     const Value take = Gt(v[0], v[2]) | (Eq(v[0], v[2]) & Lt(v[1], v[3]));
                     return Values{f.Select(take, v[0], v[2]), f.Select(take, v[1], v[3])};
                   })[1];
}

Values LuStep(hlo::Function& fn, const Values& state, bool pivot) {
  Value j = state[0], a = state[1], pivots = state[2], order = state[3], info = state[4];
  const int64_t b = a.dim(0), m = a.dim(1), n = a.dim(2);
  const Value rows = fn.Iota({DType::kI32, {b, m}}, 1), columns = fn.Iota({DType::kI32, {b, n}}, 1);
  const Value here = fn.BroadcastTo(j, Dims{b});
  const Value row = pivot ? PivotRow(fn, ColumnAt(a, j), rows, j) : here;
  if (pivot) {
    const Value at_j = Eq(rows, fn.BroadcastTo(j, rows.dims()));
    const Value chosen = fn.BroadcastInDim(row, rows.dims(), Dims{0});
    const Value swapped =
        fn.Select(at_j, chosen, fn.Select(Eq(rows, chosen), fn.BroadcastTo(j, rows.dims()), rows));
    a = TakeRows(a, swapped);
    order = TakeRows(order, swapped);
  }
  const Value column = ColumnAt(a, j), top = RowAt(a, j);
  const Value zero = Like(j, int64_t{0});
  const Value head = fn.Reshape(fn.DynamicSlice(column, {zero, j}, Dims{b, 1}), Dims{b});
  const Value is_zero = Eq(head, Like(head, int64_t{0}));
  const Value divisor = fn.Select(is_zero, Like(head, int64_t{1}), head);
  const Value below = Gt(rows, fn.BroadcastTo(j, rows.dims()));
  const Value right = Gt(columns, fn.BroadcastTo(j, columns.dims()));
  const Value factors = fn.Select(below, column / Unsqueeze(divisor, 1), column);
  const Value update = fn.Select(below, factors, Like(factors, int64_t{0})),
              pulled = fn.Select(right, top, Like(top, int64_t{0}));
  a = fn.DynamicUpdateSlice(a, Unsqueeze(factors, 2), {zero, zero, j});
  a = a - Unsqueeze(update, 2) * Unsqueeze(pulled, 1);
  pivots = fn.DynamicUpdateSlice(pivots, Unsqueeze(row + 1.0, 1), {zero, j});
  info = fn.Select(is_zero & Eq(info, 0.0), here + 1.0, info);
  return {j + 1.0, a, pivots, order, info};
}

}  // namespace

Lu Factor(Lowering& lw, Value a, bool pivot) {
  hlo::Function& fn = lw.fn();
  const int64_t m = a.dim(a.rank() - 2), n = a.dim(a.rank() - 1), k = std::min(m, n);
  const int64_t b = NumElements(BatchOf(a));
  const Value zero = fn.Scalar(DType::kI32, int64_t{0});
  const Values inits = {
      zero, fn.Reshape(a, Dims{b, m, n}), fn.Constant({DType::kI32, {b, k}}, int64_t{0}),
      fn.Iota({DType::kI32, {b, m}}, 1), fn.Constant({DType::kI32, {b}}, int64_t{0})};
  if (b * k == 0) return {inits[1], inits[2], inits[3], inits[4]};
  const Values out = fn.While(
      inits,
      [k](hlo::Function&, const Values& v) { return Values{Lt(v[0], static_cast<double>(k))}; },
      [pivot](hlo::Function& f, const Values& v) { return LuStep(f, v, pivot); });
  return {out[1], out[2], out[3], out[4]};
}

Value OrderOf(hlo::Function& fn, Value pivots, int64_t m) {
  const int64_t b = pivots.dim(0), k = pivots.dim(1);
  const Value rows = fn.Iota({DType::kI32, {b, m}}, 1);
  if (b * k == 0) return rows;
  return fn.While(
      {fn.Scalar(DType::kI32, int64_t{0}), rows, pivots},
      [k](hlo::Function&, const Values& v) { return Values{Lt(v[0], static_cast<double>(k))}; },
      [b, m](hlo::Function& f, const Values& v) {
        const Value j = v[0], zero = Like(j, int64_t{0});
        const Value at = f.Iota({DType::kI32, {b, m}}, 1);
        const Value here = f.BroadcastTo(j, at.dims());
        const Value other =
            f.BroadcastTo(f.DynamicSlice(v[2], {zero, j}, Dims{b, 1}) - 1.0, at.dims());
        const Value swapped = f.Select(Eq(at, here), other, f.Select(Eq(at, other), here, at));
        return Values{j + 1.0, TakeRows(v[1], swapped), v[2]};
      })[1];
}

Value Permutation(hlo::Function& fn, Value order, DType dtype) {
  const Dims dims = {order.dim(0), order.dim(1), order.dim(1)};
  const Value row = fn.Iota({DType::kI32, dims}, 1);
  return Cast(Eq(row, fn.BroadcastTo(Unsqueeze(order, 1), dims)), dtype);
}

Value LuSolved(hlo::Function& fn, Value lu, Value order, Value b) {
  if (b.numel() == 0) return b;
  const Value half = fn.TriangularSolve(lu, TakeRows(b, order), true, true, true, false);
  return fn.TriangularSolve(lu, half, true, false, false, false);
}

Value LuAdjointSolved(hlo::Function& fn, Value lu, Value order, Value b) {
  if (b.numel() == 0) return b;
  const Value upper = Adjoint(Triangle(lu, false)), lower = Adjoint(Triangle(lu, true));
  Value x = fn.TriangularSolve(upper, b, true, true, false, false);
  x = fn.TriangularSolve(lower, x, true, false, true, false);
  const Value p = Permutation(fn, order, b.dtype());
  return fn.DotGeneral(p, x, Dims{0}, Dims{0}, Dims{2}, Dims{1});
}

Value LuSolve(Lowering& lw, Value lu, Value pivots, Value b, bool left, bool adjoint) {
  hlo::Function& fn = lw.fn();
  if (!pivots.valid() || !BroadcastBatches(lw, &lu, &b)) return {};
  const Dims batch = BatchOf(lu);
  Dims swaps = batch;
  swaps.push_back(pivots.dim(pivots.rank() - 1));
  const Value order =
      OrderOf(fn, fn.Reshape(fn.BroadcastTo(pivots, swaps), Dims{NumElements(batch), swaps.back()}),
              lu.dim(lu.rank() - 2));
  // X A = B is A^H X^H = B^H.
  const Value right = JoinBatch(left ? b : Adjoint(b));
  const Value x = adjoint == left ? LuAdjointSolved(fn, JoinBatch(lu), order, right)
                                  : LuSolved(fn, JoinBatch(lu), order, right);
  return SplitBatch(left ? x : Adjoint(x), batch);
}

namespace {

Values LuFactor(Lowering& lw) {
  const Value a = lw.Tensor("A");
  if (!a.valid()) return Values(3);
  const Lu f = Factor(lw, a, lw.Bool("pivot"));
  const Dims batch = BatchOf(a);
  return {SplitBatch(f.lu, batch), SplitBatch(f.pivots, batch), SplitBatch(f.info, batch)};
}

Value UnitLower(Value lu) {  // [b, m, k]
  hlo::Function& fn = *lu.function();
  const int64_t b = lu.dim(0), m = lu.dim(1), k = std::min(m, lu.dim(2));
  const Value part = fn.Slice(lu, Dims{0, 0, 0}, Dims{b, m, k}, Dims{1, 1, 1});
  const hlo::Type type = {DType::kI32, part.dims()};
  const Value diagonal = Eq(fn.Iota(type, 1), fn.Iota(type, 2));
  return fn.Select(diagonal, Like(part, int64_t{1}), Triangle(part, true, -1));
}
Value UpperPart(Value lu) {  // [b, k, n]
  hlo::Function& fn = *lu.function();
  const int64_t b = lu.dim(0), n = lu.dim(2), k = std::min(lu.dim(1), n);
  return Triangle(fn.Slice(lu, Dims{0, 0, 0}, Dims{b, k, n}, Dims{1, 1, 1}), false);
}

Values LuParts(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Value a = lw.Tensor("A");
  if (!a.valid()) return Values(3);
  const bool pivot = lw.Bool("pivot");
  const Lu f = Factor(lw, a, pivot);
  const Dims batch = BatchOf(a);
  const Value p = pivot ? SplitBatch(Permutation(fn, f.order, a.dtype()), batch)
                        : fn.Constant({a.dtype(), {0}}, int64_t{0});
  return {p, SplitBatch(UnitLower(f.lu), batch), SplitBatch(UpperPart(f.lu), batch)};
}

Values LuUnpack(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Value lu = lw.Tensor("LU_data"), pivots = lw.Tensor("LU_pivots");
  if (!lu.valid() || !pivots.valid()) return Values(3);
  const Dims batch = BatchOf(lu);
  const Value none = fn.Constant({lu.dtype(), {0}}, int64_t{0});
  Values out = {none, none, none};
  const Value flat = JoinBatch(lu);
  if (lw.Bool("unpack_pivots")) {
    const Value swaps =
        fn.Reshape(Cast(pivots, DType::kI32), Dims{flat.dim(0), pivots.dim(pivots.rank() - 1)});
    out[0] = SplitBatch(Permutation(fn, OrderOf(fn, swaps, flat.dim(1)), lu.dtype()), batch);
  }
  if (lw.Bool("unpack_data")) {
    out[1] = SplitBatch(UnitLower(flat), batch);
    out[2] = SplitBatch(UpperPart(flat), batch);
  }
  return out;
}

Values LuSolveRow(Lowering& lw) {
  const Value lu = lw.Tensor("LU"), b = lw.Tensor("B"), pivots = lw.Tensor("pivots");
  return {LuSolve(lw, lu, pivots, b, lw.Bool("left"), lw.Bool("adjoint"))};
}

constexpr OpDef Row(std::string_view name, LowerFn lower) {
  return {.name = name, .kind = Kind::kLinalg, .lower = lower};
}

constexpr OpDef kRows[] = {
    Row("aten::linalg_lu", LuParts),
    Row("aten::linalg_lu_factor_ex", LuFactor),
    Row("aten::linalg_lu_solve", LuSolveRow),
    Row("aten::lu_unpack", LuUnpack),
};

}  // namespace

std::span<const OpDef> LuOps() { return kRows; }

}  // namespace tpu::ops
