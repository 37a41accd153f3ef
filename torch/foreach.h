// Operators on lists of tensors (_foreach_*, fused optimizers): one program for the list.
#pragma once

#include <torch/library.h>

#include "runtime/device.h"

namespace tpu::torch_layer {

// In strict mode, the calls made while it lives on this thread are recorded and run together at the
// end of the block, as fuse mode would. In other modes it does nothing.
class Together {
 public:
  explicit Together(runtime::Device* device);
  ~Together();
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;
  void Finish();  // runs them; throws what went wrong

 private:
  runtime::Device* device_;  // null: nothing to do
  int before_ = 0;
};

// The device of the first list with more than one tensor of ours among the last `n` of the stack.
runtime::Device* DeviceOfLists(const torch::jit::Stack& stack, size_t n);

// Registers every _foreach_ operator: PyTorch's own loop over the lists, run together.
void RegisterForeach(torch::Library* library);

}  // namespace tpu::torch_layer
