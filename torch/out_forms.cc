// out= forms by way of new results: one copy more than writing into the tensors themselves.
#include "out_forms.h"

#include <ATen/native/Resize.h>

namespace tpu::torch_layer {
namespace {

class OutKernel final : public c10::OperatorKernel {
 public:
  OutKernel(std::unique_ptr<OpKernel> kernel, const c10::OperatorHandle& own)
      : kernel_(std::move(kernel)), own_(own) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) {
    if (op.hasKernelForDispatchKey(c10::DispatchKey::Meta)) return (*kernel_)(op, keys, stack);
    const size_t given = op.schema().arguments().size(), n = own_.schema().arguments().size();
    const torch::jit::Stack outs(stack->end() - static_cast<std::ptrdiff_t>(given - n),
                                 stack->end());
    torch::jit::drop(*stack, given - n);
    torch::jit::Stack results(stack->end() - static_cast<std::ptrdiff_t>(n), stack->end());
    torch::jit::drop(*stack, n);
    own_.callBoxed(&results);
    for (size_t i = 0; i < outs.size(); ++i) {
      const at::Tensor &out = outs[i].toTensor(), &result = results[i].toTensor();
      TORCH_CHECK(c10::canCast(result.scalar_type(), out.scalar_type()), op.schema().name(),
                  ": result type ", result.scalar_type(),
                  " can't be cast to the desired output type ", out.scalar_type());
      at::native::resize_output(out, result.sizes());
      out.copy_(result);
      stack->push_back(out);
    }
  }

 private:
  const std::unique_ptr<OpKernel> kernel_;
  const c10::OperatorHandle own_;
};

}  // namespace

torch::CppFunction OutForm(std::unique_ptr<OpKernel> kernel, const c10::OperatorHandle& own) {
  return torch::CppFunction::makeFromBoxedFunctor(
      std::make_unique<OutKernel>(std::move(kernel), own));
}

}  // namespace tpu::torch_layer
