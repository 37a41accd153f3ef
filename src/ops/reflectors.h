// Householder reflections, for all rows built on them.
// What it is not: a row.
#pragma once

#include "hlo/hlo.h"

namespace tpu::ops {

// As LAPACK's geqrf: R on and above the diagonal of `a` [b, m, n], the reflectors below, their
// factors `tau` [b, k].
struct Reflected {
  hlo::Value a, tau;
};
Reflected Reflect(hlo::Value a);
// Q c or Q^H c, for `c` [b, m, r].
hlo::Value ApplyReflectors(const Reflected& r, hlo::Value c, bool adjoint);
// The first n columns of Q.
hlo::Value ReflectorColumns(const Reflected& r, int64_t n);
// The upper triangle of the first k rows.
hlo::Value UpperRows(hlo::Value a, int64_t k);

}  // namespace tpu::ops
