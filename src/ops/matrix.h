// Small parts that decompositions share: batches of matrices, triangles, adjoints.
// What it is not: a decomposition.
#pragma once

#include "ops/lowering.h"

namespace tpu::ops {

// The batch dimensions of a stack of matrices, and those dimensions joined with others.
Dims BatchOf(hlo::Value a);
Dims WithMatrix(const Dims& batch, int64_t rows, int64_t columns);
hlo::Value MatrixTranspose(hlo::Value a);
hlo::Value Conjugate(hlo::Value a);  // real: itself
hlo::Value Adjoint(hlo::Value a);
hlo::Value Identity(hlo::Function& fn, DType dtype, const Dims& batch, int64_t n);
// The lower or upper triangle, zeros elsewhere. `diagonal`: as in torch.tril.
hlo::Value Triangle(hlo::Value a, bool lower, int64_t diagonal = 0);
hlo::Value Diagonal(hlo::Value a);  // [..., min(m, n)]
// Batch dimensions joined in one, [b, m, n], and back: [b, ...] to [batch..., ...].
hlo::Value JoinBatch(hlo::Value a);
hlo::Value SplitBatch(hlo::Value v, const Dims& batch);
// Rows `index` (i32[b, m]) of `a` [b, n, ...]: [b, m, ...].
hlo::Value TakeRows(hlo::Value a, hlo::Value index);
// Column or row `j` (a run-time scalar) of [b, m, n]: [b, m] or [b, n].
hlo::Value ColumnAt(hlo::Value a, hlo::Value j);
hlo::Value RowAt(hlo::Value a, hlo::Value j);
// The product of two stacks [b, m, k] and [b, k, n].
hlo::Value MatrixProduct(hlo::Value a, hlo::Value b);
// Both with the same batch dimensions, NumPy's rules. False (and an error) where they don't fit.
bool BroadcastBatches(Lowering& lw, hlo::Value* a, hlo::Value* b);

}  // namespace tpu::ops
