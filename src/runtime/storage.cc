// Storage: address ranges and their owners.
#include "runtime/storage.h"

#include "runtime/address_space.h"
#include "runtime/device.h"

namespace tpu::runtime {

Result<Storage*> Storage::Create(Device* device, size_t nbytes) {
  // The address names the storage and the storage names its address: made in two steps.
  TPU_ASSIGN_OR_RETURN(AddressSpace* const space, AddressSpace::Global());
  auto* storage = new Storage(device, 0, nbytes);
  auto address = space->Allocate(nbytes, storage);
  if (!address.ok()) {
    delete storage;
    return address.status();
  }
  storage->address_ = *address;
  return storage;
}

Storage* Storage::Find(const void* address) {
  auto space = AddressSpace::Global();
  if (!space.ok()) return nullptr;
  return static_cast<Storage*>((*space)->Find(reinterpret_cast<uintptr_t>(address)));
}

Storage::~Storage() {
  // In a forked child the space may be locked for ever by a thread that exists only in the parent.
  if (address_ != 0 && !Runtime::InForkedChild()) (*AddressSpace::Global())->Free(address_);
}

}  // namespace tpu::runtime
