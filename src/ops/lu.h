// LU factors with partial pivoting, for all rows built on them.
// What it is not: a row.
#pragma once

#include "ops/lowering.h"

namespace tpu::ops {

struct Lu {
  hlo::Value lu;      // [b, m, n]
  hlo::Value pivots;  // i32[b, k], from 1
  hlo::Value order;   // i32[b, m]: row i of P^T A is row order[i] of A
  hlo::Value info;    // i32[b]: first zero pivot, from 1
};

// `a` with any batch dimensions; the parts come with one.
Lu Factor(Lowering& lw, hlo::Value a, bool pivot);
// Row order from pivots (from 1): the swaps played in turn.
hlo::Value OrderOf(hlo::Function& fn, hlo::Value pivots, int64_t m);
// P as a matrix [b, m, m] of `dtype`: A = P L U.
hlo::Value Permutation(hlo::Function& fn, hlo::Value order, DType dtype);
// Solves A x = b, or A^H x = b, from A's factors; all with one batch dimension. `b`: [b, n, r].
hlo::Value LuSolved(hlo::Function& fn, hlo::Value lu, hlo::Value order, hlo::Value b);
hlo::Value LuAdjointSolved(hlo::Function& fn, hlo::Value lu, hlo::Value order, hlo::Value b);
// As torch.linalg.lu_solve: batch dimensions broadcast. `pivots` has those of `lu`.
hlo::Value LuSolve(Lowering& lw, hlo::Value lu, hlo::Value pivots, hlo::Value b, bool left,
                   bool adjoint);

}  // namespace tpu::ops
