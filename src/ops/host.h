// Rows with status "host".
#pragma once

#include "ops/op_def.h"

namespace tpu::ops {

std::span<const OpDef> HostOps();

}  // namespace tpu::ops
