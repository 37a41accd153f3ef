// Storage: the device-side state of one PyTorch storage, found from its address.
// What it is not: memory. The address is reserved and inaccessible; contents live in a Value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "runtime/value.h"

namespace tpu::runtime {

class Storage {
 public:
  // Reserves an address range of `nbytes`. Fails with resource_exhausted.
  static Result<Storage*> Create(Device* device, size_t nbytes);
  // The storage whose address range holds `address`; null if it isn't ours.
  static Storage* Find(const void* address);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  Device* device() const { return device_; }
  void* address() const { return reinterpret_cast<void*>(address_); }
  size_t nbytes() const { return nbytes_; }

  // Guards `value`. Held through the launch of a program that replaces it.
  std::mutex mu;
  Ref<Value> value;  // null: never written; reads give zeros

  Ref<Value> Get() {
    std::lock_guard lock(mu);
    return value;
  }
  void Set(Ref<Value> v) {
    std::lock_guard lock(mu);
    std::swap(value, v);  // the old one is dropped outside the lock
  }

 private:
  Storage(Device* device, uintptr_t address, size_t nbytes)
      : device_(device), address_(address), nbytes_(nbytes) {}
  Device* const device_;
  uintptr_t address_;
  const size_t nbytes_;
};

}  // namespace tpu::runtime
