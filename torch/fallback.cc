// The one fallback to the CPU, for operators with no row: loud, counted, and off where asked.
#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include "base/counters.h"
#include "base/flags.h"
#include "ops/op_def.h"

namespace tpu::torch_layer {
namespace {

void Fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string name = c10::toString(op.operator_name());
  const ops::OpDef* const row = ops::FindOp(name);
  const FallbackMode mode = GetFlags().fallback();
  TORCH_CHECK_NOT_IMPLEMENTED(
      mode != FallbackMode::kError, name, " has no tpu kernel",
      row != nullptr ? std::string(" (") + std::string(row->note) + ")" : std::string(),
      ", and the fallback to the CPU is off (TORCH_TPU_FALLBACK=error)");
  Count(counters.fallbacks);
  if (CountNamed("fallback." + name) == 1 && mode == FallbackMode::kWarn) {
    TORCH_WARN(name,
               " has no tpu kernel and runs on the CPU, which copies its operands back and "
               "forth. TORCH_TPU_FALLBACK=error makes this an error, =silent hides this warning.");
  }
  at::native::cpu_fallback(op, stack);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&Fallback>());
}

}  // namespace
}  // namespace tpu::torch_layer
