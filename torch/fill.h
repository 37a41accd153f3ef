// zero_ and fill_ of a whole small storage where the host can write the device's memory: an upload,
// which costs what a launch does and needs no program for each size.
#pragma once

#include <torch/library.h>

#include <memory>

#include "kernel.h"

namespace tpu::torch_layer {

bool IsFill(const c10::FunctionSchema& schema);
torch::CppFunction WithUpload(std::unique_ptr<OpKernel> kernel);

}  // namespace tpu::torch_layer
