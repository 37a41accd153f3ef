// The device allocator and the pinned host allocator, as PyTorch's registries want them.
#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <cstdlib>
#include <mutex>
#include <set>

#include "convert.h"
#include "device.h"
#include "exec/executor.h"
#include "host_memory.h"
#include "tensor.h"

namespace tpu::torch_layer {
namespace {

using Stats = c10::CachingDeviceAllocator::DeviceStats;

void Fill(c10::CachingAllocator::StatArray* out, int64_t current, int64_t peak, int64_t allocated,
          int64_t freed) {
  for (auto kind :
       {c10::CachingAllocator::StatType::AGGREGATE, c10::CachingAllocator::StatType::LARGE_POOL}) {
    auto& s = (*out)[static_cast<size_t>(kind)];
    s.current = current;
    s.peak = peak;
    s.allocated = allocated;
    s.freed = freed;
  }
}

class DeviceAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t nbytes) override {
    return NewDataPtr(DeviceAt(CurrentDevice()), nbytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void*, const void*, std::size_t) const override {
    TORCH_CHECK(false, "tpu memory can't be copied by address");
  }
  bool initialized() override { return runtime::Runtime::Started(); }
  void emptyCache(c10::MempoolId_t) override { EmptyCaches(); }
  void recordStream(const c10::DataPtr&, c10::Stream) override {
  }  // values are counted, not recycled

  Stats getDeviceStats(c10::DeviceIndex index) override {
    Stats out;
    if (!runtime::Runtime::Started()) return out;
    const runtime::MemoryCounts& m = DeviceAt(index)->memory;
    Fill(&out.allocated_bytes, m.current, m.peak, m.allocated, m.freed);
    Fill(&out.active_bytes, m.current, m.peak, m.allocated, m.freed);
    Fill(&out.reserved_bytes, m.current, m.peak, m.allocated, m.freed);
    Fill(&out.requested_bytes, m.current, m.peak, m.allocated, m.freed);
    Fill(&out.allocation, m.live, m.live_peak, m.num_allocs, m.num_frees);
    Fill(&out.active, m.live, m.live_peak, m.num_allocs, m.num_frees);
    Fill(&out.segment, m.live, m.live_peak, m.num_allocs, m.num_frees);
    out.num_ooms = m.num_ooms;
    out.num_device_alloc = m.num_allocs;
    out.num_device_free = m.num_frees;
    return out;
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    if (!runtime::Runtime::Started()) return;
    runtime::MemoryCounts& m = DeviceAt(index)->memory;
    m.allocated = m.freed = m.num_allocs = m.num_frees = m.num_ooms = 0;
  }
  void resetPeakStats(c10::DeviceIndex index) override {
    if (!runtime::Runtime::Started()) return;
    runtime::MemoryCounts& m = DeviceAt(index)->memory;
    m.peak = m.current.load();
    m.live_peak = m.live.load();
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    runtime::Device* const d = DeviceAt(index);
    const int64_t total = d->TotalMemory();
    return {static_cast<size_t>(std::max<int64_t>(0, total - d->memory.current)),
            static_cast<size_t>(total)};
  }
};

DeviceAllocator& TheAllocator() {
  static auto* const a = new DeviceAllocator;
  return *a;
}

}  // namespace

c10::Allocator* TpuAllocator() { return &TheAllocator(); }

void EmptyCaches() {
  exec::EntryCache::Get().Clear();
  if (!runtime::Runtime::Started()) return;
  auto rt = runtime::Runtime::Get();
  if (!rt.ok()) return;
  (*rt)->programs().Clear();
  for (int i = 0; i < (*rt)->num_devices(); ++i) (*rt)->device(i)->DropCaches();
}

REGISTER_ALLOCATOR(kTpu, &TheAllocator());

}  // namespace tpu::torch_layer
