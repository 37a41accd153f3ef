// Registers the op table with PyTorch's dispatcher.
#pragma once

#include <string>
#include <vector>

#include "ops/op_def.h"

namespace tpu::torch_layer {

struct RegisteredOp {
  std::string name;  // the overload: "aten::add_.Tensor"
  const ops::OpDef* row;
};

void RegisterRows();
const std::vector<RegisteredOp>& RegisteredOps();

}  // namespace tpu::torch_layer
