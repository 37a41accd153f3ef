// p-norms with a static p, shared by renorm, embedding_renorm_, cdist and pdist.
// What it is not: linalg_vector_norm, which has its own row among the reductions.
#pragma once

#include "hlo/hlo.h"

namespace tpu::ops {

// The p-norm of `a` (real) over `dims`, which are removed. p: 0 counts what isn't 0, inf and -inf
// take the largest and smallest size.
hlo::Value PNorm(hlo::Value a, double p, DimsView dims);

}  // namespace tpu::ops
