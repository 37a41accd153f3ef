// Copies between the host and devices, and between devices.
#pragma once

#include <ATen/core/Tensor.h>

namespace tpu::torch_layer {

// dst <- src, with conversion and any layouts on both sides. Sizes broadcast as in Tensor.copy_.
void CopyInto(const at::Tensor& dst, const at::Tensor& src, bool non_blocking);
// A CPU tensor with the sizes, strides and offset of `t` over the bytes of its storage. Waits.
// Where the host can read the device's memory nothing is copied: `keep` holds the memory alive.
struct HostView {
  at::Tensor tensor;
  std::shared_ptr<void> keep;
};
HostView ViewOnHost(const at::Tensor& t);

}  // namespace tpu::torch_layer
