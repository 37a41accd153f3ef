// Cast: element type conversion with PyTorch's CPU semantics, where StableHLO's convert differs.
#pragma once

#include "hlo/hlo.h"

namespace tpu::ops {

// float -> small integer wraps (through 64 bits) instead of saturating; anything -> bool is != 0;
// complex -> real drops the imaginary part; real -> complex adds a zero one.
hlo::Value Cast(hlo::Value a, DType dtype);

}  // namespace tpu::ops
