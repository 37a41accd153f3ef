// The parts of discovery that look at the file system below a given root, for tests.
#pragma once

#include <string>

namespace tpu::pjrt {

// TpuChipsPresent with `root` ("" for the machine itself) before /sys and /dev.
bool TpuChipsUnder(const std::string& root);

}  // namespace tpu::pjrt
