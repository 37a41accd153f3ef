// Transcendental functions that XLA computes with larger errors than PyTorch: sinh 24 units in the
// last place of float32, erfc 65, lgamma 160,000. Rows and lowerings call these instead of the
// builder's ops; docs/ulp.md has what is left. Of floats no narrower than float32; what XLA has for
// complex numbers it does alone.
// What it is not: special functions that XLA has no op for (special.cc).
#pragma once

#include "hlo/hlo.h"

namespace tpu::ops::accurate {

hlo::Value Expm1(hlo::Value x);
hlo::Value Sinh(hlo::Value x);
hlo::Value Cosh(hlo::Value x);
hlo::Value Tanh(hlo::Value x);
hlo::Value Erf(hlo::Value x);
hlo::Value Erfc(hlo::Value x);
hlo::Value Erfinv(hlo::Value x);
hlo::Value Lgamma(hlo::Value x);  // log(|gamma(x)|)

}  // namespace tpu::ops::accurate
