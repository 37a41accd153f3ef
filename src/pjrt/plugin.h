// Checks on a plugin's function table, apart from loading so that they can be tested.
#pragma once

#include <string>

#include "base/status.h"

struct PJRT_Api;

namespace tpu::pjrt {

// kUnavailable, naming `path`, unless the table can be used.
Status CheckApi(const PJRT_Api* api, const std::string& path);

// The GNU build id of an ELF file in hex; empty where it has none.
std::string ElfBuildId(int fd);
// A 64-bit hash of the whole file as "hash-...". Empty where it can't be read.
std::string FileHash(int fd);

}  // namespace tpu::pjrt
