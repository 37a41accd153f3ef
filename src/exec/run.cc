// Run: a call in the mode of the calling thread.
#include "exec/mode.h"
#include "exec/trace.h"

namespace tpu::exec {
namespace {

Status CheckUnsetReads(const Call& call, const Recipe& recipe) {
  if (recipe.unset_read < 0) return {};
  const auto tensor = static_cast<uint32_t>(recipe.unset_read);
  for (size_t i = 0; i < call.args.size(); ++i) {
    const Arg& a = call.args[i];
    const bool one = a.kind == Arg::Kind::kTensor && a.at == tensor;
    const bool listed = a.kind == Arg::Kind::kTensors && a.at <= tensor && tensor < a.at + a.count;
    if (!one && !listed) continue;
    return InvalidArgument("argument '", call.overload->arg_names[i],
                           "' is memory that nothing has written (torch.empty)");
  }
  return {};
}

// Strict, waited for, with every index checked at once, and reads of memory never written.
Status RunDebug(Call* call, Frontend* frontend, Ref<Entry>* entry,
                std::vector<CallResult>* results) {
  Status status = RunStrict(call, frontend, entry, results);
  if (status.ok()) status = call->device->Synchronize();
  if (status.ok()) status = CheckUnsetReads(*call, *(*entry)->recipe);
  if (status.ok()) return status;
  return status.With({call->overload->name, call->Describe(), frontend->Location()});
}

}  // namespace

Status Run(Call* call, Frontend* frontend, Ref<Entry>* entry, std::vector<CallResult>* results) {
  // The error of a bad index comes later, but names the line of its call.
  if (std::atomic_ref(call->overload->checks).load(std::memory_order_relaxed)) {
    call->location = frontend->Location();
  }
  if (Capture::OfThisThread() != nullptr) return RunFuse(call, frontend, entry, results);
  switch (CurrentMode()) {
    case EagerMode::kStrict: return RunStrict(call, frontend, entry, results);
    case EagerMode::kDebug: return RunDebug(call, frontend, entry, results);
    case EagerMode::kFuse: return RunFuse(call, frontend, entry, results);
  }
  return RunStrict(call, frontend, entry, results);
}

}  // namespace tpu::exec
