// From a PJRT_Error to a Status: the single place where it happens.
#pragma once

#include <string_view>

#include "base/status.h"

struct PJRT_Api;
struct PJRT_Error;

namespace tpu::pjrt {

// Takes ownership of `error` and destroys it. Null is Ok. The three error slots of `api` must be
// there, which Plugin::Load has checked.
Status ToStatus(const PJRT_Api* api, PJRT_Error* error);

// The status for a function that the plugin's table lacks. `name` without its PJRT_ prefix.
Status MissingFunction(const PJRT_Api* api, std::string_view name);

}  // namespace tpu::pjrt
