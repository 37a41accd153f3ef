// What PyTorch's CPU checks of the numbers of a call, in the words of its own errors. Run-time
// numbers are no part of a key, so every call is checked.
#pragma once

#include <vector>

#include "exec/call.h"

namespace tpu::torch_layer {

// `scalars`: the arguments that the schema calls Scalar. PyTorch's kernels convert these to the
// type they compute in and raise where they don't fit; floats of a schema overflow in silence.
void CheckNumbers(const exec::Call& call, const std::vector<int>& scalars);

}  // namespace tpu::torch_layer
