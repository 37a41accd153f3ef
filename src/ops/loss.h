// What loss rows share: the `reduction` argument, and lowerings that fill a file of their own.
#pragma once

#include "hlo/hlo.h"
#include "ops/lowering.h"

namespace tpu::ops {

enum class Reduction : uint8_t { kNone = 0, kMean = 1, kSum = 2 };  // at::Reduction
Reduction ReductionOf(Lowering& lw);
hlo::Value SumAll(hlo::Value a);
// One loss for each element, reduced as the call says.
hlo::Value Reduced(Lowering& lw, hlo::Value losses);

// ctc.cc
hlo::Values CtcForward(Lowering& lw);
hlo::Values CtcBackward(Lowering& lw);

}  // namespace tpu::ops
