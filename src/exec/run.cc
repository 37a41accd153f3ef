// Run: a call in the mode of the calling thread.
#include "exec/mode.h"
#include "exec/trace.h"

namespace tpu::exec {
namespace {

// Strict, waited for, and with every index checked at once.
Status RunDebug(Call* call, Frontend* frontend, Ref<Entry>* entry,
                std::vector<CallResult>* results) {
  Status status = RunStrict(call, frontend, entry, results);
  if (status.ok()) status = call->device->Synchronize();
  if (status.ok()) return status;
  return status.With({call->overload->name, call->Describe(), frontend->Location()});
}

}  // namespace

Status Run(Call* call, Frontend* frontend, Ref<Entry>* entry, std::vector<CallResult>* results) {
  if (Capture::OfThisThread() != nullptr) return RunFuse(call, frontend, entry, results);
  switch (CurrentMode()) {
    case EagerMode::kStrict: return RunStrict(call, frontend, entry, results);
    case EagerMode::kDebug: return RunDebug(call, frontend, entry, results);
    case EagerMode::kFuse: return RunFuse(call, frontend, entry, results);
  }
  return RunStrict(call, frontend, entry, results);
}

}  // namespace tpu::exec
