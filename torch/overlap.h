// Writes to memory that the same call reads: which operators refuse it, as PyTorch's CPU kernels
// do. What it is not: two elements of the written tensor at one place, which core and meta kernels
// refuse by the strides alone.
#pragma once

#include <ATen/core/stack.h>

#include <vector>

#include "exec/call.h"

namespace tpu::torch_layer {

enum class Overlap : uint8_t {
  kAllowed,  // the CPU doesn't look: results here are those of separate memory
  kSame,     // element by element: the very same view may be written, another one may not
  kRefused,  // reads and writes in different places
};

// What the kernels of `row` refuse.
Overlap OverlapOf(const ops::OpDef& row);

// Raises PyTorch's error if an argument overlaps a written one. `targets`: as in exec::Overload.
// Looks at storages first, so that a call that shares none pays a few comparisons.
void CheckOverlap(Overlap rule, const exec::Call& call, const c10::IValue* args);

}  // namespace tpu::torch_layer
