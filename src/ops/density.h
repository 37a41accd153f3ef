// Logarithms of densities, exact to their last digits in float32 too: nothing large cancels.
#pragma once

#include "hlo/hlo.h"

namespace tpu::ops {

// log(gamma(n + 1)) less Stirling's formula, (n + 1/2) log(n) - n + log(2 pi) / 2. For n > 0.
hlo::Value StirlingError(hlo::Value n);
// x log(x / mean) + mean - x.
hlo::Value Deviance(hlo::Value x, hlo::Value mean);
// Of a count k >= 0.
hlo::Value LogPoisson(hlo::Value k, hlo::Value mean);
hlo::Value LogBinomial(hlo::Value k, hlo::Value n, hlo::Value p);  // 0 < p < 1

}  // namespace tpu::ops
