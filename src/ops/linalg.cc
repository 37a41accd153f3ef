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

// The number of the first entry of each row of `bad` (i1[..., n]) that holds, from 1; 0: none.
Value FirstOf(hlo::Function& fn, Value bad) {
  const hlo::Type type = {DType::kI32, bad.dims()};
  const int64_t n = bad.dim(bad.rank() - 1);
  const Value none = fn.Constant(type, n);
  const Value first = fn.Reduce(fn.Select(bad, fn.Iota(type, bad.rank() - 1), none),
                                hlo::Monoid::kMin, Dims{bad.rank() - 1});
  const Value zero = Like(first, int64_t{0});
  return fn.Select(Lt(first, static_cast<double>(n)), first + 1.0, zero);
}

Values Cholesky(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Value a = lw.Tensor("self");
  if (!a.valid()) return Values(2);
  if (a.numel() == 0) {
    return {a, fn.Constant({DType::kI32, BatchOf(a)}, int64_t{0})};
  }
  const bool upper = lw.Bool("upper");
  const Value factor = Triangle(fn.Cholesky(upper ? Adjoint(a) : a, true), true);
  // XLA marks a matrix that isn't positive definite by NaNs.
  Value diagonal = Diagonal(factor);
  if (IsComplex(diagonal.dtype())) diagonal = fn.Unary(hlo::UnaryOp::kReal, diagonal);
  return {upper ? Adjoint(factor) : factor, FirstOf(fn, ~Gt(diagonal, 0.0))};
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
  return {Solve(lw.fn(), matrix, b, true, lw.Bool("upper") != transpose,
                lw.Bool("unitriangular")), a};
}

constexpr OpDef Row(std::string_view name, LowerFn lower) {
  return {.name = name, .kind = Kind::kLinalg, .lower = lower};
}

constexpr OpDef kRows[] = {
    Row("aten::_cholesky_solve_helper", CholeskySolveHelper),
    Row("aten::cholesky_inverse", CholeskyInverse),
    {.name = "aten::linalg_cholesky_ex", .kind = Kind::kLinalg, .lower = Cholesky,
     .status = StatusKind::kPartial, .note = "check_errors=True doesn't raise: look at info"},
    Row("aten::linalg_solve_triangular", SolveTriangular),
    Row("aten::triangular_solve", TriangularSolveOld),
};

}  // namespace

std::span<const OpDef> LinalgOps() { return kRows; }

}  // namespace tpu::ops
