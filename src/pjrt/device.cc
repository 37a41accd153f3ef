// Reading a device description. See device.h.
#include "pjrt/device.h"

#include "pjrt/call.h"
#include "pjrt/named_values.h"

namespace tpu::pjrt {

Result<DeviceInfo> Describe(const PJRT_Api* api, PJRT_DeviceDescription* description) {
  DeviceInfo info;
  abi::DeviceDescriptionIdArgs id{.device_description = description};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::DeviceDescription_Id>(api, &id));
  info.id = id.id;
  abi::DeviceDescriptionProcessIndexArgs process{.device_description = description};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::DeviceDescription_ProcessIndex>(api, &process));
  info.process_index = process.process_index;
  abi::DeviceDescriptionKindArgs kind{.device_description = description};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::DeviceDescription_Kind>(api, &kind));
  info.kind.assign(kind.device_kind, kind.device_kind_size);
  abi::DeviceDescriptionDebugStringArgs debug{.device_description = description};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::DeviceDescription_DebugString>(api, &debug));
  info.debug_string.assign(debug.debug_string, debug.debug_string_size);
  // Attributes are extras: a plugin without them still has a usable device.
  abi::DeviceDescriptionAttributesArgs attributes{.device_description = description};
  if (Call<&abi::Table::DeviceDescription_Attributes>(api, &attributes).ok()) {
    info.attributes = FromAbi(attributes.attributes, attributes.num_attributes);
  }
  return info;
}

Result<DeviceInfo> Describe(const PJRT_Api* api, PJRT_Device* device) {
  abi::DeviceGetDescriptionArgs get{.device = device};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Device_GetDescription>(api, &get));
  TPU_ASSIGN_OR_RETURN(DeviceInfo info, Describe(api, get.device_description));
  abi::DeviceLocalHardwareIdArgs local{.device = device};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Device_LocalHardwareId>(api, &local));
  info.local_hardware_id = local.local_hardware_id;
  return info;
}

}  // namespace tpu::pjrt
