// Eigenvalues and singular values by Jacobi's rotations, for all rows built on them.
// What it is not: a row.
#pragma once

#include "hlo/hlo.h"

namespace tpu::ops {

struct Eigen {
  hlo::Value values;   // real [b, n], ascending
  hlo::Value vectors;  // [b, n, n], one a column; invalid where not asked for
};
// Of a stack of Hermitian matrices [b, n, n], n > 0.
Eigen HermitianEigen(hlo::Value a, bool vectors);

struct Singular {
  hlo::Value u;       // [b, m, k or m]
  hlo::Value values;  // real [b, k], descending
  hlo::Value v;       // [b, n, k or n]: a = u diag(values) v^H
};
// Of a stack of matrices [b, m, n], neither of them 0. `full`: square u and v.
Singular SingularValues(hlo::Value a, bool vectors, bool full);

}  // namespace tpu::ops
