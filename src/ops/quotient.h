// Division that is rounded once. What it is not: the divide of most formulas, whose last digit XLA
// may change.
#pragma once

#include "hlo/hlo.h"

namespace tpu::ops {

// a / b of equal sizes. XLA turns the division by a constant or a broadcast value into a product
// with its reciprocal, so that 49 / 49 is below 1: what is then floored misses its number by one.
inline hlo::Value ExactQuotient(hlo::Value a, hlo::Value b) {
  if (!a.valid() || !b.valid()) return {};
  return a / a.function()->OptimizationBarrier({b})[0];
}

}  // namespace tpu::ops
