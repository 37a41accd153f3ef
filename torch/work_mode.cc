// The mode travels as PyTorch's own thread-local settings do: in a slot of its debug information,
// which the autograd engine hands to the threads that work for a thread.
#include "work_mode.h"

#include <c10/util/ThreadLocalDebugInfo.h>

#include <atomic>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "exec/mode.h"

namespace tpu::torch_layer {
namespace {

inline constexpr std::string_view kModeName = "TPU_EAGER_MODE";
inline constexpr c10::DebugInfoKind kMode(&kModeName);

// One a thread, for as long as the thread lives; -1 where it has set none. Others read it while
// they work for it.
struct ModeInfo final : c10::DebugInfoBase {
  std::atomic<int> mode{-1};
};

int ModeOfWork() {
  const auto* info = static_cast<const ModeInfo*>(c10::ThreadLocalDebugInfo::get(kMode));
  return info == nullptr ? -1 : info->mode.load(std::memory_order_relaxed);
}

// Below what is there already (a profiler's), which its owner must find on top when it is done.
void PushBelow(std::shared_ptr<ModeInfo> own) {
  using c10::DebugInfoKind;
  using Info = c10::ThreadLocalDebugInfo;
  const DebugInfoKind kinds[] = {DebugInfoKind::PROFILER_STATE, DebugInfoKind::PRODUCER_INFO,
                                 DebugInfoKind::INFERENCE_CONTEXT, DebugInfoKind::PARAM_COMMS_INFO};
  std::vector<std::pair<DebugInfoKind, std::shared_ptr<c10::DebugInfoBase>>> above;
  const auto take_top = [&] {
    for (const DebugInfoKind kind : kinds) {
      if (Info::get(kind) == nullptr) continue;
      try {
        above.emplace_back(kind, Info::_pop(kind));
        return true;
      } catch (const c10::Error&) {  // not the one on top
      }
    }
    return false;
  };
  while (take_top()) {
  }
  Info::_push(kMode, std::move(own));
  while (!above.empty()) {
    Info::_push(above.back().first, std::move(above.back().second));
    above.pop_back();
  }
}

}  // namespace

int ExchangeWorkMode(int mode) {
  auto* info = static_cast<ModeInfo*>(c10::ThreadLocalDebugInfo::get(kMode));
  if (info == nullptr) {
    exec::SetModeSource(&ModeOfWork);
    auto own = std::make_shared<ModeInfo>();
    info = own.get();
    PushBelow(std::move(own));
  }
  return info->mode.exchange(mode, std::memory_order_relaxed);
}

}  // namespace tpu::torch_layer
