// Pinned host memory: page-aligned ranges of our own, remembered so that is_pinned() can tell.
// Pages are not locked: the plugin copies uploads, and locking needs rights that users lack.
#include "host_memory.h"

#include <c10/core/impl/alloc_cpu.h>

#include <map>
#include <mutex>

namespace tpu::torch_layer {
namespace {

struct Ranges {
  std::mutex mu;
  std::map<uintptr_t, size_t> ranges;
  at::HostStats stats;
};
Ranges& R() {
  static auto* const r = new Ranges;
  return *r;
}

void Free(void* p) {
  size_t bytes = 0;
  {
    std::lock_guard lock(R().mu);
    const auto it = R().ranges.find(reinterpret_cast<uintptr_t>(p));
    if (it == R().ranges.end()) return;
    bytes = it->second;
    R().ranges.erase(it);
    R().stats.allocations.decrease(1);
    R().stats.allocated_bytes.decrease(bytes);
  }
  c10::free_cpu(p);
}

class Pinned final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t n) override {
    if (n == 0) return {nullptr, nullptr, &Free, c10::Device(c10::kCPU)};
    void* const p = c10::alloc_cpu(n);
    std::lock_guard lock(R().mu);
    R().ranges[reinterpret_cast<uintptr_t>(p)] = n;
    R().stats.allocations.increase(1);
    R().stats.allocated_bytes.increase(n);
    return {p, p, &Free, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* dest, const void* src, std::size_t n) const override {
    default_copy_data(dest, src, n);
  }
  bool record_event(void*, void*, c10::Stream) override { return true; }  // uploads copy at once
  void empty_cache() override {}                                          // nothing is kept
  at::HostStats get_stats() override {
    std::lock_guard lock(R().mu);
    return R().stats;
  }
  void reset_accumulated_stats() override {
    std::lock_guard lock(R().mu);
    R().stats.allocations.reset_accumulated();
    R().stats.allocated_bytes.reset_accumulated();
  }
  void reset_peak_stats() override {
    std::lock_guard lock(R().mu);
    R().stats.allocations.reset_peak();
    R().stats.allocated_bytes.reset_peak();
  }
};

}  // namespace

at::HostAllocator* PinnedAllocator() {
  static auto* const a = new Pinned;
  return a;
}

bool IsPinned(const void* p) {
  const auto at = reinterpret_cast<uintptr_t>(p);
  std::lock_guard lock(R().mu);
  auto it = R().ranges.upper_bound(at);
  if (it == R().ranges.begin()) return false;
  --it;
  return at < it->first + it->second;
}

REGISTER_HOST_ALLOCATOR(at::kPrivateUse1, PinnedAllocator());

}  // namespace tpu::torch_layer
