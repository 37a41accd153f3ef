// NamedValues to and from the C form.
#pragma once

#include <cstddef>
#include <vector>

#include "pjrt/c_api.h"
#include "pjrt/pjrt.h"

namespace tpu::pjrt {

// Points into `values`, which must outlive the result.
std::vector<abi::NamedValue> ToAbi(const NamedValues& values);
NamedValues FromAbi(const abi::NamedValue* values, size_t count);

}  // namespace tpu::pjrt
