// Ctrl-C during a wait.
#include "interrupt.h"

#include <c10/util/Exception.h>

#include <utility>

namespace tpu::torch_layer {
namespace {
std::function<void()>& Thrower() {
  static auto* const f = new std::function<void()>;
  return *f;
}
}  // namespace

void SetInterruptThrower(std::function<void()> thrower) { Thrower() = std::move(thrower); }

void ThrowInterrupt(const std::string& text) {
  if (Thrower()) Thrower()();
  TORCH_CHECK(false, text);
}

}  // namespace tpu::torch_layer
