// Run: a call in the mode of the calling thread.
#include "exec/executor.h"

namespace tpu::exec {

Status Run(Call* call, Frontend* frontend, Ref<Entry>* entry, std::vector<CallResult>* results) {
  return RunStrict(call, frontend, entry, results);
}

}  // namespace tpu::exec
