// What loss rows share: the `reduction` argument.
#pragma once

#include "hlo/hlo.h"
#include "ops/lowering.h"

namespace tpu::ops {

enum class Reduction : uint8_t { kNone = 0, kMean = 1, kSum = 2 };  // at::Reduction
Reduction ReductionOf(Lowering& lw);
hlo::Value SumAll(hlo::Value a);
// One loss for each element, reduced as the call says.
hlo::Value Reduced(Lowering& lw, hlo::Value losses);

}  // namespace tpu::ops
