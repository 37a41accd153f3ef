// The protobuf wire format, as much of it as compile options need: varints and nested messages.
// What it is not: a protobuf library. There are no schemas; callers know the field numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tpu::pjrt::wire {

void PutVarint(std::string* out, uint64_t value);
void PutInt(std::string* out, int field, int64_t value);             // int32, int64, bool, enum
void PutBytes(std::string* out, int field, std::string_view bytes);  // string, bytes, message

// The first length-delimited field with this number.
Result<std::string> FirstBytesField(std::string_view message, int field);

}  // namespace tpu::pjrt::wire
