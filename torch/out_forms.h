// out= forms of operators for which PyTorch has no meta kernel to say how large the result is.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <memory>

#include "kernel.h"

namespace tpu::torch_layer {

// `kernel` where the overload has a meta kernel (Python registers some of them late); elsewhere the
// functional form `own`, whose results are copied.
torch::CppFunction OutForm(std::unique_ptr<OpKernel> kernel, const c10::OperatorHandle& own);

}  // namespace tpu::torch_layer
