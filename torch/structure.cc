// What changes a tensor's metadata and not its contents: making, viewing, resizing, setting.
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "convert.h"
#include "copy.h"
#include "device.h"
#include "resize.h"
#include "tensor.h"

namespace tpu::torch_layer {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

c10::Device DeviceOf(std::optional<c10::Device> d) {
  if (!d) return {kTpu, CurrentDevice()};
  return {kTpu, d->has_index() ? d->index() : CurrentDevice()};
}

// The allocator makes storages on the current device.
struct OnDevice {
  explicit OnDevice(c10::Device d) : old(CurrentDevice()) {
    if (d.index() != old) SetCurrentDevice(d.index());
  }
  ~OnDevice() {
    if (CurrentDevice() != old) SetCurrentDevice(old);
  }
  c10::DeviceIndex old;
};

at::Tensor Empty(c10::IntArrayRef size, std::optional<c10::ScalarType> dtype,
                 std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                 std::optional<bool> pin_memory, std::optional<c10::MemoryFormat> format) {
  TORCH_CHECK(!layout || *layout == c10::kStrided, "empty: tpu has no ", *layout, " tensors");
  TORCH_CHECK(!pin_memory || !*pin_memory, "Only dense CPU tensors can be pinned");
  const c10::ScalarType type = dtype.value_or(c10::get_default_dtype_as_scalartype());
  SupportedType(type, "empty");
  const OnDevice on(DeviceOf(device));
  return at::detail::empty_generic(size, TpuAllocator(), kKeys, type, format);
}

at::Tensor EmptyStrided(c10::IntArrayRef size, c10::IntArrayRef stride,
                        std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
                        std::optional<c10::Device> device, std::optional<bool> pin_memory) {
  TORCH_CHECK(!layout || *layout == c10::kStrided, "empty_strided: tpu has no ", *layout,
              " tensors");
  TORCH_CHECK(!pin_memory || !*pin_memory, "Only dense CPU tensors can be pinned");
  const c10::ScalarType type = dtype.value_or(c10::get_default_dtype_as_scalartype());
  SupportedType(type, "empty_strided");
  const OnDevice on(DeviceOf(device));
  return at::detail::empty_strided_generic(size, stride, TpuAllocator(), kKeys, type);
}

const at::Tensor& Resize(const at::Tensor& self, c10::IntArrayRef size,
                         std::optional<c10::MemoryFormat> format) {
  c10::TensorImpl* const impl = self.unsafeGetTensorImpl();
  if (self.sizes() != size) {
    impl->set_sizes_contiguous(size);
    const size_t need = at::detail::computeStorageNbytesContiguous(
        size, self.itemsize(), static_cast<size_t>(self.storage_offset()));
    if (self.numel() > 0 && need > self.storage().nbytes()) {
      ResizeStorage(self.storage().unsafeGetStorageImpl(), need);
    }
  }
  if (format) {
    TORCH_CHECK(*format != c10::MemoryFormat::Preserve, "Unsupported memory format ", *format);
    impl->empty_tensor_restride(*format);
  }
  return self;
}

at::Tensor& SetStorage(at::Tensor& self, c10::Storage source, int64_t offset, c10::IntArrayRef size,
                       c10::IntArrayRef stride) {
  TORCH_CHECK(source.device().type() == kTpu, "set_: a tpu tensor can't use a ",
              source.device().str(), " storage");
  at::native::checkSetStorage(self, source, offset, size, stride);
  c10::TensorImpl* const impl = self.unsafeGetTensorImpl();
  impl->set_storage_offset(offset);
  const auto strides = stride.data() ? std::optional<c10::IntArrayRef>(stride) : std::nullopt;
  if (strides) {
    impl->set_sizes_and_strides(size, *strides);
  } else {
    impl->set_sizes_contiguous(size);
  }
  const size_t need = at::detail::computeStorageNbytes(
      self.sizes(), self.strides(), self.itemsize(), static_cast<size_t>(offset));
  if (self.numel() > 0 && need > source.nbytes())
    ResizeStorage(source.unsafeGetStorageImpl(), need);
  return self;
}

at::Tensor& SetSource(at::Tensor& self, c10::Storage source) {
  const int64_t n = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return SetStorage(self, std::move(source), 0, {n}, {});
}

at::Tensor& SetTensor(at::Tensor& self, const at::Tensor& source) {
  if (self.unsafeGetTensorImpl() == source.unsafeGetTensorImpl()) return self;
  return SetStorage(self, source.storage(), source.storage_offset(), source.sizes(),
                    source.strides());
}

at::Tensor& SetEmpty(at::Tensor& self) {
  const OnDevice on(self.device());
  c10::Storage fresh(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), 0, TpuAllocator()->allocate(0), TpuAllocator(), true));
  return SetStorage(self, std::move(fresh), 0, {0}, {});
}

bool IsSetTo(const at::Tensor& self, const at::Tensor& other) {
  return self.storage().unsafeGetStorageImpl() == other.storage().unsafeGetStorageImpl() &&
         self.storage_offset() == other.storage_offset() && self.sizes() == other.sizes() &&
         self.strides() == other.strides();
}

// PyTorch's shares memory by copy-on-write pointers of its own; a clone shares contents here
// anyway.
at::Tensor LazyClone(const at::Tensor& self) { return self.clone(); }

// Forward-mode AD's zeros: no memory, and a key by which formulas know them.
at::Tensor EfficientZeroTensor(c10::IntArrayRef size, std::optional<c10::ScalarType> dtype,
                               std::optional<c10::Layout>, std::optional<c10::Device> device,
                               std::optional<bool>) {
  at::native::ZeroTensorAllocator allocator(DeviceOf(device));
  const c10::ScalarType type = dtype.value_or(c10::get_default_dtype_as_scalartype());
  SupportedType(type, "_efficientzerotensor");
  return at::detail::empty_generic(size, &allocator,
                                   kKeys | c10::DispatchKeySet(c10::DispatchKey::ZeroTensor), type,
                                   std::nullopt);
}

void RecordStream(at::Tensor&, c10::Stream) {}  // contents are counted references, never recycled

// TensorImpl.h's list of dense backends omits PrivateUse1; without this `Module.to("tpu")` makes
// new Parameters, which breaks tied weights and optimisers made before it.
bool HasCompatibleShallowCopyType(const at::Tensor& self, const at::Tensor& from) {
  const auto dense = [](const at::Tensor& t) {
    return t.layout() == c10::kStrided && !t.is_quantized() && !t.is_nested() &&
           (t.device().is_cpu() || t.device().type() == kTpu || t.device().is_meta());
  };
  if (dense(self) && dense(from)) return true;
  return self.unsafeGetTensorImpl()->has_compatible_shallow_copy_type(from.key_set());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &Empty);
  m.impl("empty_strided", &EmptyStrided);
  m.impl("resize_", &Resize);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view",
         static_cast<at::Tensor (*)(const at::Tensor&, c10::IntArrayRef)>(&at::native::view));
  m.impl("view_as_complex", &at::native::view_as_complex);
  m.impl("view_as_real", &at::native::view_as_real);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("unfold", &at::native::unfold);
  m.impl("set_.source_Storage", &SetSource);
  m.impl("set_.source_Storage_storage_offset", &SetStorage);
  m.impl("set_.source_Tensor", &SetTensor);
  m.impl("set_", &SetEmpty);
  m.impl("is_set_to", &IsSetTo);
  m.impl("record_stream", &RecordStream);
  m.impl("_efficientzerotensor", &EfficientZeroTensor);
  m.impl("_lazy_clone", &LazyClone);
  m.impl("_has_compatible_shallow_copy_type", &HasCompatibleShallowCopyType);
}

// Two keys rather than the composite kernel's catch-all: PyTorch warns of an overridden kernel.
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("_has_compatible_shallow_copy_type", &HasCompatibleShallowCopyType);
}

}  // namespace

void ResizeStorage(c10::StorageImpl* storage, size_t bytes) {
  TORCH_CHECK(storage->resizable(), "Trying to resize storage that is not resizable");
  runtime::Storage* const old = StateOf(*storage);
  if (old->nbytes() == bytes) return;
  runtime::Device* const device = old->device();
  c10::DataPtr fresh = NewDataPtr(device, bytes);
  const int64_t common = static_cast<int64_t>(std::min(old->nbytes(), bytes));
  if (common > 0 && old->Get()) {
    // Byte views over both storages; the old one is only borrowed.
    const auto view = [&](c10::DataPtr ptr, size_t n) {
      c10::Storage s(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                                           static_cast<int64_t>(n), std::move(ptr),
                                                           TpuAllocator(), false));
      at::Tensor t = at::detail::make_tensor<c10::TensorImpl>(std::move(s), kKeys,
                                                              caffe2::TypeMeta::Make<uint8_t>());
      t.unsafeGetTensorImpl()->set_sizes_and_strides(c10::IntArrayRef({common}),
                                                     c10::IntArrayRef({1}));
      return t;
    };
    const c10::Device where(kTpu, static_cast<c10::DeviceIndex>(device->index()));
    CopyInto(view({fresh.get(), where}, bytes), view({old->address(), where}, old->nbytes()),
             false);
  }
  storage->set_data_ptr_noswap(std::move(fresh));
  storage->set_nbytes(bytes);
}

}  // namespace tpu::torch_layer
