// Together, and the _foreach_ operators.
#include "foreach.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include "convert.h"
#include "device.h"
#include "exec/mode.h"
#include "exec/trace.h"
#include "tensor.h"

namespace tpu::torch_layer {
namespace {

class ForeachKernel final : public c10::OperatorKernel {
 public:
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
    Together together(DeviceOfLists(*stack, op.schema().arguments().size()));
    op.callBoxedForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd, *stack);
    together.Finish();
  }
};

}  // namespace

runtime::Device* DeviceOfLists(const torch::jit::Stack& stack, size_t n) {
  for (size_t i = stack.size() - n; i < stack.size(); ++i) {
    if (!stack[i].isTensorList()) continue;
    const auto list = stack[i].toListRef();
    if (list.size() < 2) continue;
    const at::Tensor& first = list[0].toTensor();
    if (first.defined() && first.device().type() == kTpu) return DeviceAt(first.device().index());
  }
  return nullptr;
}

Together::Together(runtime::Device* device) : device_(device) {
  if (exec::CurrentMode() != EagerMode::kStrict || exec::Capture::OfThisThread() != nullptr) {
    device_ = nullptr;
  }
  if (device_ == nullptr) return;
  Check(device_->Flush("foreach"));
  before_ = exec::ExchangeThreadMode(static_cast<int>(EagerMode::kFuse));
}

void Together::Finish() {
  if (device_ == nullptr) return;
  runtime::Device* const device = std::exchange(device_, nullptr);
  exec::ExchangeThreadMode(before_);
  Check(device->Flush("foreach"));
}

Together::~Together() {
  if (device_ == nullptr) return;  // else a call threw: what came before it runs
  exec::ExchangeThreadMode(before_);
  (void)device_->Flush("foreach");
}

void RegisterForeach(torch::Library* library) {
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!name.name.starts_with("aten::_foreach_")) continue;
    const auto op = c10::Dispatcher::singleton().findOp(name);
    if (!op || !op->hasSchema() || op->hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1) ||
        !op->hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd)) {
      continue;
    }
    const std::string full =
        name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
    library->impl(full.c_str(),
                  torch::CppFunction::makeFromBoxedFunctor(std::make_unique<ForeachKernel>()));
  }
}

}  // namespace tpu::torch_layer
