// Call: clearing, description, numbers, the register of overloads.
#include "exec/call.h"

#include <deque>
#include <mutex>

namespace tpu::exec {
namespace {

struct Register {
  std::mutex mu;
  std::deque<Overload> overloads;  // addresses stay
};
Register& TheRegister() {
  static Register* const r = new Register;
  return *r;
}

}  // namespace

Overload* Overload::Register(Overload overload) {
  auto& r = TheRegister();
  std::lock_guard lock(r.mu);
  overload.id = static_cast<uint32_t>(r.overloads.size());
  r.overloads.push_back(std::move(overload));
  return &r.overloads.back();
}

const Overload* Overload::ById(uint32_t id) {
  auto& r = TheRegister();
  std::lock_guard lock(r.mu);
  return id < r.overloads.size() ? &r.overloads[id] : nullptr;
}

std::complex<double> Number::AsComplex() const {
  return kind == Kind::kComplex ? std::complex<double>(d, imag) : std::complex<double>(AsDouble());
}

double Number::AsDouble() const {
  switch (kind) {
    case Kind::kBool: return b ? 1 : 0;
    case Kind::kInt: return static_cast<double>(i);
    case Kind::kUint: return static_cast<double>(u);
    case Kind::kFloat:
    case Kind::kComplex: return d;
  }
  return 0;
}

int64_t Number::AsInt() const {
  switch (kind) {
    case Kind::kBool: return b ? 1 : 0;
    case Kind::kInt: return i;
    case Kind::kUint: return static_cast<int64_t>(u);
    case Kind::kFloat:
    case Kind::kComplex: {
      // Out of int64's range the cast would be undefined.
      if (d >= 9223372036854775807.0) return INT64_MAX;
      if (!(d > -9223372036854775808.0)) return INT64_MIN;
      return static_cast<int64_t>(d);
    }
  }
  return 0;
}

void Call::Clear() {
  overload = nullptr;
  device = nullptr;
  args.clear();
  tensors.clear();
  ints.clear();
  strings.clear();
  default_dtype = DType::kF32;
  location.clear();
  seed = seed_offset = 0;
}

std::string Call::Describe() const {
  std::string out;
  for (const TensorArg& t : tensors) {
    if (t.storage == nullptr) continue;
    if (!out.empty()) out += ", ";
    out += std::string(TorchName(t.dtype)) + tpu::ToString(Sizes(t));
    if (out.size() > 400) return out + ", ...";
  }
  return out;
}

}  // namespace tpu::exec
