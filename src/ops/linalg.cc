// Cholesky factors and triangular systems.
// What it is not: LU and what is built on it (linalg_lu.cc). torch.linalg's functions are mostly
// composites of rows here: they also look at `info` and raise.
#include <algorithm>

#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/matrix.h"
#include "ops/rows.h"

namespace tpu::ops {
namespace {

using hlo::Value;
using hlo::Values;

// Where a matrix stops being positive definite: the first column, from 1, whose pivot isn't
// positive. `a`: [b, n, n].
Value FirstBadPivot(hlo::Function& fn, Value a) {
  const int64_t b = a.dim(0), n = a.dim(1);
  const Value none = fn.Constant({DType::kI32, {b}}, int64_t{0});
  return fn.While(
      {fn.Scalar(DType::kI32, int64_t{0}), a, none},
      [n](hlo::Function&, const Values& v) { return Values{Lt(v[0], static_cast<double>(n))}; },
      [b, n](hlo::Function& f, const Values& v) {
        const Value j = v[0], zero = Like(j, int64_t{0});
        const Value head =
            f.Reshape(f.DynamicSlice(v[1], {zero, j, j}, Dims{b, 1, 1}), Dims{b, 1, 1});
        const Value column = f.DynamicSlice(v[1], {zero, zero, j}, Dims{b, n, 1});
        const Value row = f.DynamicSlice(v[1], {zero, j, zero}, Dims{b, 1, n});
        Value real = f.Reshape(head, Dims{b});
        if (IsComplex(real.dtype())) real = f.Unary(hlo::UnaryOp::kReal, real);
        const Value found = ~Gt(real, 0.0) & Eq(v[2], 0.0);
        return Values{j + 1.0, v[1] - column * row / head,
                      f.Select(found, f.BroadcastTo(j + 1.0, Dims{b}), v[2])};
      })[2];
}

Values Cholesky(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Value a = lw.Tensor("self");
  if (!a.valid()) return Values(2);
  if (a.numel() == 0) {
    return {a, fn.Constant({DType::kI32, BatchOf(a)}, int64_t{0})};
  }
  const bool upper = lw.Bool("upper");
  const Value given = upper ? Adjoint(a) : a;
  const Value factor = Triangle(fn.Cholesky(given, true), true);
  // XLA marks a matrix that isn't positive definite by NaNs everywhere: only then look for the
  // place.
  Value diagonal = Diagonal(factor);
  if (IsComplex(diagonal.dtype())) diagonal = fn.Unary(hlo::UnaryOp::kReal, diagonal);
  const Dims batch = BatchOf(a);
  const int64_t n = a.dim(a.rank() - 1);
  const Value bad = fn.Reduce(~Gt(diagonal, 0.0), hlo::Monoid::kOr, Iota(diagonal.rank()));
  const Value info =
      fn.If(
            bad,
            [&] {
              return Values{FirstBadPivot(fn, fn.Reshape(given, Dims{NumElements(batch), n, n}))};
            },
            [&] { return Values{fn.Constant({DType::kI32, {NumElements(batch)}}, int64_t{0})}; })
          .front();
  return {upper ? Adjoint(factor) : factor, fn.Reshape(info, batch)};
}

// a x = b for a triangle `a`.
Value Solve(hlo::Function& fn, Value a, Value b, bool left, bool upper, bool unit) {
  if (b.numel() == 0 || a.numel() == 0) return b;
  return fn.TriangularSolve(a, b, left, !upper, unit, false);
}

Value CholeskySolved(hlo::Function& fn, Value factor, Value b, bool upper) {
  const Value lower = upper ? Adjoint(factor) : factor;
  const Value half = Solve(fn, lower, b, true, false, false);
  return Solve(fn, Adjoint(Triangle(lower, true)), half, true, true, false);
}

Values CholeskySolveHelper(Lowering& lw) {
  Value b = lw.Tensor("self"), a = lw.Tensor("A");
  if (!BroadcastBatches(lw, &a, &b)) return {Value()};
  return {CholeskySolved(lw.fn(), a, b, lw.Bool("upper"))};
}

Values CholeskyInverse(Lowering& lw) {
  const Value a = lw.Tensor("self");
  if (!a.valid() || a.numel() == 0) return {a};
  const Value one = Identity(lw.fn(), a.dtype(), BatchOf(a), a.dim(a.rank() - 1));
  return {CholeskySolved(lw.fn(), a, one, lw.Bool("upper"))};
}

Values SolveTriangular(Lowering& lw) {
  Value a = lw.Tensor("self"), b = lw.Tensor("B");
  if (!BroadcastBatches(lw, &a, &b)) return {Value()};
  return {Solve(lw.fn(), a, b, lw.Bool("left"), lw.Bool("upper"), lw.Bool("unitriangular"))};
}

Values TriangularSolveOld(Lowering& lw) {
  Value b = lw.Tensor("self"), a = lw.Tensor("A");
  if (!BroadcastBatches(lw, &a, &b)) return Values(2);
  const bool transpose = lw.Bool("transpose");
  const Value matrix = transpose ? MatrixTranspose(a) : a;
  return {Solve(lw.fn(), matrix, b, true, lw.Bool("upper") != transpose, lw.Bool("unitriangular")),
          a};
}

constexpr OpDef Row(std::string_view name, LowerFn lower) {
  return {.name = name, .kind = Kind::kLinalg, .lower = lower};
}

constexpr OpDef kRows[] = {
    Row("aten::_cholesky_solve_helper", CholeskySolveHelper),
    Row("aten::cholesky_inverse", CholeskyInverse),
    Row("aten::linalg_cholesky_ex", Cholesky),
    Row("aten::linalg_solve_triangular", SolveTriangular),
    Row("aten::triangular_solve", TriangularSolveOld),
};

}  // namespace

std::span<const OpDef> LinalgOps() { return kRows; }

}  // namespace tpu::ops
