// What PyTorch's profiler asks of a device: points in its order of work, and the time between them.
// What it is not: a device's tracks, which are made in kineto.cc.
#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>

#include "convert.h"
#include "device.h"
#include "runtime/device.h"
#include "stream.h"

namespace tpu::torch_layer {
namespace {

class Stubs final : public torch::profiler::impl::ProfilerStubs {
 public:
  void record(c10::DeviceIndex* device, torch::profiler::impl::ProfilerVoidEventStub* event,
              int64_t* cpu_ns) const override {
    if (device != nullptr) *device = CurrentDevice();
    StreamEvent* const e = RecordEvent(nullptr, CurrentDevice());
    *event = std::shared_ptr<void>(e, [](void* p) { DestroyEvent(static_cast<StreamEvent*>(p)); });
    if (cpu_ns != nullptr) *cpu_ns = c10::getTime();
  }
  float elapsed(const torch::profiler::impl::ProfilerVoidEventStub* a,
                const torch::profiler::impl::ProfilerVoidEventStub* b) const override {
    constexpr double kMicrosecondsPerMs = 1000;
    return static_cast<float>(kMicrosecondsPerMs *
                              ElapsedMs(static_cast<const StreamEvent*>(a->get()),
                                        static_cast<const StreamEvent*>(b->get())));
  }
  void onEachDevice(std::function<void(int)> op) const override {
    if (!runtime::Runtime::Started()) return;
    const c10::DeviceIndex old = CurrentDevice();
    for (int i = 0; i < runtime::Runtime::DeviceCount(); ++i) {
      SetCurrentDevice(static_cast<c10::DeviceIndex>(i));
      op(i);
    }
    SetCurrentDevice(old);
  }
  void synchronize() const override {
    for (int i = 0; runtime::Runtime::Started() && i < runtime::Runtime::DeviceCount(); ++i) {
      Check(DeviceAt(static_cast<c10::DeviceIndex>(i))->Synchronize());
    }
  }
  bool enabled() const override { return true; }
  void mark(const char*) const override {}
  void rangePush(const char*) const override {}
  void rangePop() const override {}
};

const int registered = [] {
  torch::profiler::impl::registerPrivateUse1Methods(new Stubs);  // kept for the process
  return 0;
}();

}  // namespace
}  // namespace tpu::torch_layer
