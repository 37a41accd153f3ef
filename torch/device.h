// The current device of a thread, and devices by index.
#pragma once

#include <c10/core/Device.h>

#include "runtime/device.h"

namespace tpu::torch_layer {

inline constexpr c10::DeviceType kTpu = c10::DeviceType::PrivateUse1;

c10::DeviceIndex CurrentDevice();
// Legal before the runtime exists; raises for an index out of range.
void SetCurrentDevice(c10::DeviceIndex index);
// Starts the runtime. -1: the current device. Raises where there is no such device.
runtime::Device* DeviceAt(c10::DeviceIndex index);

}  // namespace tpu::torch_layer
