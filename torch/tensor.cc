// Tensors, storages, and the device allocator's memory.
#include "tensor.h"

#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <array>
#include <atomic>

#include "convert.h"
#include "device.h"
#include "shape/view.h"

namespace tpu::torch_layer {
namespace {

// Bytes of the storages of each device, written or not.
std::array<std::atomic<int64_t>, 128> storage_bytes{};

// A memory profile follows storages, as on every device of PyTorch's: their addresses are what it
// knows tensors by. Its total is that of all storages, its "reserved" what values really take.
void Report(const runtime::Storage& storage, int64_t bytes) {
  if (bytes == 0) return;
  runtime::Device* const device = storage.device();
  auto& held = storage_bytes[static_cast<size_t>(device->index()) % storage_bytes.size()];
  const int64_t total = held.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (!c10::memoryProfilingEnabled()) return;
  c10::reportMemoryUsageToProfiler(
      storage.address(), bytes, static_cast<size_t>(total),
      static_cast<size_t>(device->memory.current.load(std::memory_order_relaxed)),
      c10::Device(kTpu, static_cast<c10::DeviceIndex>(device->index())));
}

void DeleteStorage(void* state) {
  const auto* const storage = static_cast<runtime::Storage*>(state);
  Report(*storage, -static_cast<int64_t>(storage->nbytes()));
  delete storage;
}

}  // namespace

c10::DataPtr NewDataPtr(runtime::Device* device, size_t nbytes) {
  runtime::Storage* const state = Unwrap(runtime::Storage::Create(device, nbytes));
  Report(*state, static_cast<int64_t>(nbytes));
  return {state->address(), state, &DeleteStorage,
          c10::Device(kTpu, static_cast<c10::DeviceIndex>(device->index()))};
}

runtime::Storage* StateOf(const c10::StorageImpl& storage) {
  const c10::DataPtr& ptr = storage.data_ptr();
  if (ptr.get_deleter() == &DeleteStorage) return static_cast<runtime::Storage*>(ptr.get_context());
  // PyTorch made a DataPtr of its own over our address (pickle, from_blob, DLPack).
  runtime::Storage* const state = runtime::Storage::Find(ptr.get());
  TORCH_CHECK(state != nullptr,
              "this tensor says it is on tpu, but its memory isn't a tpu storage's");
  return state;
}

void AppendTensor(const at::Tensor& t, exec::Call* call) {
  const c10::TensorImpl& impl = *t.unsafeGetTensorImpl();
  exec::TensorArg arg;
  arg.storage = StateOf(*impl.unsafe_storage().unsafeGetStorageImpl());
  arg.dtype = SupportedType(t.scalar_type(), "tpu");
  arg.conj = impl.is_conj();
  arg.neg = impl.is_neg();
  arg.offset = impl.storage_offset();
  const auto sizes = impl.sizes(), strides = impl.strides();
  arg.rank = static_cast<int16_t>(sizes.size());
  arg.dims_at = static_cast<uint32_t>(call->ints.size());
  arg.covers = arg.offset == 0 && impl.is_contiguous() &&
               static_cast<size_t>(impl.numel()) * impl.itemsize() == arg.storage->nbytes();
  call->ints.insert(call->ints.end(), sizes.begin(), sizes.end());
  call->ints.insert(call->ints.end(), strides.begin(), strides.end());
  call->tensors.push_back(arg);
}

at::Tensor MakeTensor(runtime::Device* device, const exec::ResultSpec& spec,
                      Ref<runtime::Value> value) {
  c10::DataPtr data = NewDataPtr(device, spec.nbytes);
  static_cast<runtime::Storage*>(data.get_context())->value = std::move(value);
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                                       static_cast<int64_t>(spec.nbytes),
                                                       std::move(data), TpuAllocator(), true);
  at::Tensor t = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      c10::scalarTypeToTypeMeta(ToScalarType(spec.dtype)));
  // Rank 1 with one element of size 0 is what the constructor makes.
  if (spec.sizes.size() != 1 || spec.sizes[0] != 0) {
    t.unsafeGetTensorImpl()->set_sizes_and_strides(spec.sizes, spec.strides);
  }
  return t;
}

bool CoversStorage(const at::Tensor& t) {
  if (t.storage_offset() != 0) return false;
  if (static_cast<size_t>(t.numel()) * t.itemsize() != t.storage().nbytes()) return false;
  return t.is_contiguous() || t.is_non_overlapping_and_dense();
}

}  // namespace tpu::torch_layer
