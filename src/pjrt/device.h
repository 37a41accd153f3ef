// Facts about one device, read from a client's or a topology's description of it.
#pragma once

#include "pjrt/c_api.h"
#include "pjrt/pjrt.h"

namespace tpu::pjrt {

// Fills everything but local_hardware_id, which only a client's devices have.
Result<DeviceInfo> Describe(const PJRT_Api* api, PJRT_DeviceDescription* description);
Result<DeviceInfo> Describe(const PJRT_Api* api, PJRT_Device* device);

}  // namespace tpu::pjrt
