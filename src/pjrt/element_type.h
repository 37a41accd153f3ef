// DType to and from the C enumeration. Internal to this folder.
#pragma once

#include <optional>

#include "pjrt/c_api.h"
#include "shape/dtype.h"

namespace tpu::pjrt {

abi::BufferType ToAbi(DType dtype);                  // kInvalid for kInvalid
std::optional<DType> FromAbi(abi::BufferType type);  // none for types we don't have

}  // namespace tpu::pjrt
