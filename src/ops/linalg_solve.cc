// What is computed from LU factors: solutions, inverses, determinants.
// What it is not: the factors (linalg_lu.cc).
#include "ops/cast.h"
#include "ops/families.h"
#include "ops/lowering.h"
#include "ops/lu.h"
#include "ops/matrix.h"

namespace tpu::ops {
namespace {

using hlo::BinaryOp;
using hlo::UnaryOp;
using hlo::Value;
using hlo::Values;

Values SolveEx(Lowering& lw) {
  const Value a = lw.Tensor("A");
  Value b = lw.Tensor("B");
  if (!a.valid() || !b.valid()) return Values(4);
  // A batch of vectors, as torch.linalg.solve tells them from matrices.
  const bool vector = b.rank() == 1 || b.dims() == Dims(a.dims().begin(), a.dims().end() - 1);
  if (vector) b = Unsqueeze(b, b.rank());
  const Lu f = Factor(lw, a, true);
  const Dims batch = BatchOf(a);
  const Value lu = SplitBatch(f.lu, batch), pivots = SplitBatch(f.pivots, batch);
  Value x = LuSolve(lw, lu, pivots, b, lw.Bool("left"), false);
  if (vector) x = Squeeze(x, x.rank() - 1);
  return {x, lu, pivots, SplitBatch(f.info, batch)};
}

Values InverseEx(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Value a = lw.Tensor("A");
  if (!a.valid()) return Values(2);
  const Dims batch = BatchOf(a);
  if (a.numel() == 0) return {a, fn.Constant({DType::kI32, batch}, int64_t{0})};
  const Lu f = Factor(lw, a, true);
  const Value one = Identity(fn, a.dtype(), {f.lu.dim(0)}, a.dim(a.rank() - 1));
  return {SplitBatch(LuSolved(fn, f.lu, f.order, one), batch), SplitBatch(f.info, batch)};
}

// 1 or -1 [b]: each swap of two different rows changes the sign.
Value SwapSign(hlo::Function& fn, const Lu& f, DType dtype) {
  const Value own = fn.Iota(f.pivots.type(), 1) + 1.0;
  const Value swaps = fn.Reduce(Cast(Ne(f.pivots, own), DType::kI32), hlo::Monoid::kAdd, Dims{1});
  const Value odd = Cast(swaps & Like(swaps, int64_t{1}), dtype);
  return Like(odd, int64_t{1}) - odd * Like(odd, int64_t{2});
}

// Determinants return the factors of A's transpose where PyTorch's CPU does; their gradients count
// on it.
Lu FactorFor(Lowering& lw, Value a) {
  const bool transposed = lw.Contiguous("A") && !IsComplex(a.dtype());
  return Factor(lw, transposed ? MatrixTranspose(a) : a, true);
}

Values Determinant(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Value a = lw.Tensor("A");
  if (!a.valid()) return Values(3);
  const Dims batch = BatchOf(a);
  const Lu f = FactorFor(lw, a);
  const Value product = fn.Reduce(Diagonal(f.lu), hlo::Monoid::kMul, Dims{1});
  return {SplitBatch(product * SwapSign(fn, f, a.dtype()), batch), SplitBatch(f.lu, batch),
          SplitBatch(f.pivots, batch)};
}

Values SignLogDeterminant(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Value a = lw.Tensor("A");
  if (!a.valid()) return Values(4);
  const Dims batch = BatchOf(a);
  const Lu f = FactorFor(lw, a);
  const Value diagonal = Diagonal(f.lu), size = fn.Unary(UnaryOp::kAbs, diagonal);
  const Value is_zero = Eq(size, 0.0);
  const Value safe = fn.Select(is_zero, Like(size, int64_t{1}), size);
  const Value unit =
      fn.Select(is_zero, Like(diagonal, int64_t{0}), diagonal / Cast(safe, a.dtype()));
  const Value sign = fn.Reduce(unit, hlo::Monoid::kMul, Dims{1}) * SwapSign(fn, f, a.dtype());
  const Value log = fn.Reduce(Log(size), hlo::Monoid::kAdd, Dims{1});
  return {SplitBatch(sign, batch), SplitBatch(log, batch), SplitBatch(f.lu, batch),
          SplitBatch(f.pivots, batch)};
}

constexpr OpDef Row(std::string_view name, LowerFn lower) {
  return {.name = name, .kind = Kind::kLinalg, .lower = lower};
}

constexpr OpDef kRows[] = {
    Row("aten::_linalg_det", Determinant),
    Row("aten::_linalg_slogdet", SignLogDeterminant),
    Row("aten::_linalg_solve_ex", SolveEx),
    Row("aten::linalg_inv_ex", InverseEx),
};

}  // namespace

std::span<const OpDef> SolveOps() { return kRows; }

}  // namespace tpu::ops
