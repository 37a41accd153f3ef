// Varints, nested messages and one lookup. See wire.h.
#include "pjrt/wire.h"

namespace tpu::pjrt::wire {
namespace {

constexpr uint64_t kVarint = 0;
constexpr uint64_t kFixed64 = 1;
constexpr uint64_t kBytes = 2;
constexpr uint64_t kFixed32 = 5;

bool TakeVarint(std::string_view* in, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && !in->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(in->front());
    in->remove_prefix(1);
    *value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

}  // namespace

void PutVarint(std::string* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

void PutInt(std::string* out, int field, int64_t value) {
  PutVarint(out, static_cast<uint64_t>(field) << 3 | kVarint);
  PutVarint(out, static_cast<uint64_t>(value));
}

void PutBytes(std::string* out, int field, std::string_view bytes) {
  PutVarint(out, static_cast<uint64_t>(field) << 3 | kBytes);
  PutVarint(out, bytes.size());
  out->append(bytes);
}

Result<std::string> FirstBytesField(std::string_view message, int field) {
  std::string_view in = message;
  uint64_t key = 0;
  while (!in.empty()) {
    if (!TakeVarint(&in, &key)) break;
    uint64_t size = 0;
    switch (key & 7) {
      case kVarint:
        if (!TakeVarint(&in, &size)) return Internal("malformed protobuf message");
        size = 0;
        break;
      case kFixed64: size = 8; break;
      case kFixed32: size = 4; break;
      case kBytes:
        if (!TakeVarint(&in, &size)) return Internal("malformed protobuf message");
        break;
      default: return Internal("malformed protobuf message");
    }
    if (size > in.size()) return Internal("malformed protobuf message");
    if ((key & 7) == kBytes && key >> 3 == static_cast<uint64_t>(field)) {
      return std::string(in.substr(0, size));
    }
    in.remove_prefix(size);
  }
  return Internal("protobuf message has no field ", field);
}

}  // namespace tpu::pjrt::wire
