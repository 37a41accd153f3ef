// The TorchScript compiler (preview): walks the IR of a frozen module and calls the dispatcher's
// kernels for its operators, so that a capture around it makes one program.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/api/module.h>

#include <vector>

namespace tpu::torch_layer {

// Runs `forward` of an eval-mode scripted module. `if`s need conditions known without the device,
// loops trip counts likewise (they are unrolled). What it does not know raises NotImplementedError
// with the node's kind and source line.
std::vector<at::Tensor> RunScript(const torch::jit::Module& module,
                                  const std::vector<at::Tensor>& inputs);

}  // namespace tpu::torch_layer
