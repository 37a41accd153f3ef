// Runs a case on the process's device and compares everything it left behind.
#pragma once

#include "base/flags.h"
#include "runner/case_file.h"
#include "runtime/device.h"

namespace tpu::cases {

// Ok if the call did in `mode` what the case says: results, contents of every storage (those it
// doesn't write included), or the error.
Status RunCase(const Case& c, runtime::Device* device, EagerMode mode);
// Pointwise rows tell the type of their result themselves where no meta kernel is asked: whether
// that is the case's. Compiles nothing.
Status CheckInference(const Case& c, runtime::Device* device);

}  // namespace tpu::cases
