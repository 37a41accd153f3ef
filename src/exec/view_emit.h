// Turns the plans of shape/view.h into StableHLO, and bits of one dtype into another.
// What it is not: a planner.
#pragma once

#include <functional>

#include "exec/key.h"
#include "hlo/hlo.h"
#include "shape/view.h"

namespace tpu::exec {

// Gives the next run-time start as a scalar i32 value.
using NextStart = std::function<hlo::Value()>;

hlo::Value EmitRead(hlo::Value base, const shape::ReadPlan& plan, const NextStart& next);
// The new base.
hlo::Value EmitWrite(hlo::Value base, hlo::Value value, const shape::WritePlan& plan,
                     DimsView base_dims, const NextStart& next);
// The bytes of `a`, seen as elements of `dtype`. Where the widths differ the result is rank 1. bool
// and complex go the long way: XLA's bitcast refuses them.
hlo::Value EmitBits(hlo::Value a, DType dtype);

}  // namespace tpu::exec
