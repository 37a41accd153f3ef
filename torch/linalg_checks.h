// Decompositions that raise when told so: check_errors=True, and torch.cholesky.
#pragma once

#include <ATen/core/function_schema.h>
#include <torch/library.h>

#include <memory>

#include "kernel.h"

namespace tpu::torch_layer {

// Whether an overload has a check_errors argument, which lowerings don't look at.
bool HasErrorCheck(const c10::FunctionSchema& schema);
// `kernel`, and then, where the call asks for it, a host read of its last result, `info`.
torch::CppFunction WithErrorCheck(std::unique_ptr<OpKernel> kernel);

}  // namespace tpu::torch_layer
