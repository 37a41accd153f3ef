// out= forms by way of the functional form: of operators for which PyTorch has no meta kernel to
// say how large the result is, and of those whose functional form is no row (a composite, or one
// that updates an argument besides).
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <memory>
#include <vector>

#include "kernel.h"

namespace tpu::torch_layer {

// `kernel` where the overload has a meta kernel (Python registers some of them late); elsewhere the
// functional form `own`, whose results are copied. Without a kernel: always so.
torch::CppFunction OutForm(std::unique_ptr<OpKernel> kernel, const c10::OperatorHandle& own);

// Whether PyTorch has a meta kernel of the overload's own, or a composite's.
bool HasMetaKernel(const c10::FunctionSchema& schema);

struct OutOf {
  c10::OperatorHandle out, own;
};

// The out= forms for which PyTorch has nothing but a kernel of the CPU's, once the rows are
// registered, each with the functional form that tpu runs.
std::vector<OutOf> RemainingOutForms();

}  // namespace tpu::torch_layer
