// The device guard and the accelerator hooks: how PyTorch asks about devices.
#include "device.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/DeviceCapability.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "convert.h"
#include "generator.h"
#include "host_memory.h"
#include "resize.h"
#include "stream.h"
#include "tensor.h"

namespace tpu::torch_layer {
namespace {

thread_local c10::DeviceIndex current_device = 0;

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kTpu; }
  c10::Device exchangeDevice(c10::Device d) const override {
    const c10::Device old = getDevice();
    if (d.index() >= 0 && d.index() != old.index()) SetCurrentDevice(d.index());
    return old;
  }
  c10::Device getDevice() const override { return {kTpu, current_device}; }
  void setDevice(c10::Device d) const override {
    if (d.index() >= 0) SetCurrentDevice(d.index());
  }
  void uncheckedSetDevice(c10::Device d) const noexcept override {
    if (d.index() >= 0) current_device = d.index();
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(runtime::Runtime::DeviceCount());
  }
  c10::Stream getStream(c10::Device d) const override { return CurrentStream(d.index()); }
  c10::Stream getDefaultStream(c10::Device d) const override { return DefaultStream(d.index()); }
  c10::Stream getStreamFromGlobalPool(c10::Device d, bool high) const override {
    return NewStream(d.index(), high ? -1 : 0);
  }
  c10::Stream getNewStream(c10::Device d, int priority) const override {
    return NewStream(d.index(), priority);
  }
  c10::Stream exchangeStream(c10::Stream s) const override { return ExchangeStream(s); }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    DestroyEvent(static_cast<StreamEvent*>(event));
  }
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    *event = RecordEvent(static_cast<StreamEvent*>(*event), stream.device_index());
  }
  // Streams of one device share its order; another device's event is waited for on the host.
  void block(void* event, const c10::Stream&) const override {
    if (event != nullptr) SynchronizeEvent(static_cast<StreamEvent*>(event));
  }
  bool queryEvent(void* event) const override {
    return QueryEvent(static_cast<StreamEvent*>(event));
  }
  void synchronizeEvent(void* event) const override {
    SynchronizeEvent(static_cast<StreamEvent*>(event));
  }
  bool queryStream(const c10::Stream& s) const override {
    runtime::Device* const d = DeviceAt(s.device_index());
    return d->QueueEmpty() && d->live().PendingEvents().empty();
  }
  void synchronizeStream(const c10::Stream& s) const override {
    Check(DeviceAt(s.device_index())->Synchronize());
  }
  void synchronizeDevice(const c10::DeviceIndex index) const override {
    if (runtime::Runtime::Started()) Check(DeviceAt(index)->Synchronize());
  }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
  double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
    return ElapsedMs(static_cast<StreamEvent*>(start), static_cast<StreamEvent*>(end));
  }
  bool isStreamCapturing(const c10::Stream&) const override { return false; }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override {
    c10::DeviceCapability capability;
    capability.capability_data.capability_bits = 0;
    for (int i = 0; i < static_cast<int>(c10::ScalarType::NumOptions); ++i) {
      const auto t = static_cast<c10::ScalarType>(i);
      if (FromScalarType(t) != DType::kInvalid && i < 64) {
        capability.capability_data.capability_bits |= uint64_t{1} << i;
      }
    }
    return capability;
  }
};

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return runtime::Runtime::DeviceCount() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return runtime::Runtime::Started(); }
  void init() const override { DeviceAt(-1); }
  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(runtime::Runtime::DeviceCount());
  }
  void setCurrentDevice(c10::DeviceIndex i) const override { SetCurrentDevice(i); }
  c10::DeviceIndex getCurrentDevice() const override { return current_device; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex i) const override {
    const c10::DeviceIndex old = current_device;
    if (i >= 0) SetCurrentDevice(i);
    return old;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex i) const override {
    return exchangeDevice(i);
  }
  bool isPinnedPtr(const void* p) const override { return IsPinned(p); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return PinnedAllocator(); }
  c10::Device getDeviceFromPtr(void* p) const override {
    const runtime::Storage* const s = runtime::Storage::Find(p);
    TORCH_CHECK(s != nullptr, "this pointer isn't to a tpu storage");
    return {kTpu, static_cast<c10::DeviceIndex>(s->device()->index())};
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex i) const override {
    return DefaultGenerator(i);
  }
  at::Generator getNewGenerator(c10::DeviceIndex i) const override { return NewGenerator(i); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    ResizeStorage(storage.unsafeGetStorageImpl(), bytes);
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

const int registered_hooks = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks);  // PyTorch keeps it for the process
  return 0;
}();

}  // namespace

c10::DeviceIndex CurrentDevice() { return current_device; }

void SetCurrentDevice(c10::DeviceIndex index) {
  const int count = runtime::Runtime::DeviceCount();
  if (count == 0) DeviceAt(index);  // raises and says why there is none
  TORCH_CHECK(index >= 0 && index < count, "tpu:", int(index), " does not exist: there ",
              count == 1 ? "is 1 device" : "are " + std::to_string(count) + " devices");
  current_device = index;
}

runtime::Device* DeviceAt(c10::DeviceIndex index) {
  runtime::Runtime* const rt = Unwrap(runtime::Runtime::Get());
  if (index < 0) index = current_device;
  TORCH_CHECK(index < rt->num_devices(), "tpu:", int(index), " does not exist: there ",
              rt->num_devices() == 1 ? "is 1 device"
                                     : "are " + std::to_string(rt->num_devices()) + " devices");
  return rt->device(index);
}

}  // namespace tpu::torch_layer
