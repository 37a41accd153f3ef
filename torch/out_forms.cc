// out= forms by way of new results: one copy more than writing into the tensors themselves.
#include "out_forms.h"

#include <ATen/core/enum_tag.h>
#include <ATen/native/Resize.h>

#include <algorithm>
#include <map>

namespace tpu::torch_layer {
namespace {

class OutKernel final : public c10::OperatorKernel {
 public:
  OutKernel(std::unique_ptr<OpKernel> kernel, const c10::OperatorHandle& own)
      : kernel_(std::move(kernel)), own_(own) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) {
    if (kernel_ && op.hasKernelForDispatchKey(c10::DispatchKey::Meta)) {
      return (*kernel_)(op, keys, stack);
    }
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
  const std::unique_ptr<OpKernel> kernel_;  // may be null
  const c10::OperatorHandle own_;
};

bool Writes(const c10::Argument& a) {
  return a.alias_info() != nullptr && a.alias_info()->isWrite();
}

// Whether `out` is `own` and then one tensor to write for each result.
bool IsOutOf(const c10::FunctionSchema& own, const c10::FunctionSchema& out) {
  const auto &a = own.arguments(), &b = out.arguments();
  if (b.size() <= a.size() || b.size() - a.size() != own.returns().size()) return false;
  for (size_t i = 0; i < b.size(); ++i) {
    if (i >= a.size() ? !Writes(b[i]) || !b[i].kwarg_only()
                      : a[i].name() != b[i].name() || *a[i].real_type() != *b[i].real_type() ||
                            Writes(a[i]) != Writes(b[i])) {
      return false;
    }
  }
  return std::ranges::all_of(own.returns(), [](const c10::Argument& r) {
    return r.alias_info() == nullptr && r.type()->kind() == c10::TypeKind::TensorType;
  });
}

bool Composite(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);
}

// Whether tpu runs `op` by other means than the operator's own out= form (as PyTorch's structured
// operators would).
bool RunsAlone(const c10::OperatorHandle& op) {
  return Composite(op) || op.hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1) ||
         op.hasTag(at::Tag::view_copy);
}

}  // namespace

bool HasMetaKernel(const c10::FunctionSchema& schema) {
  const auto op = c10::Dispatcher::singleton().findSchema(schema.operator_name());
  return op && (op->hasKernelForDispatchKey(c10::DispatchKey::Meta) || Composite(*op));
}

std::vector<OutOf> RemainingOutForms() {
  auto& dispatcher = c10::Dispatcher::singleton();
  std::map<std::string, std::vector<c10::OperatorHandle>> by_name;
  for (const c10::OperatorName& n : dispatcher.getAllOpNames()) {
    if (!n.name.starts_with("aten::")) continue;
    if (const auto op = dispatcher.findSchema(n)) by_name[n.name].push_back(*op);
  }
  std::vector<OutOf> found;
  for (const auto& [name, overloads] : by_name) {
    for (const c10::OperatorHandle& out : overloads) {
      if (!out.hasKernelForDispatchKey(c10::DispatchKey::CPU) || Composite(out) ||
          out.hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1)) {
        continue;
      }
      for (const c10::OperatorHandle& own : overloads) {
        if (RunsAlone(own) && IsOutOf(own.schema(), out.schema())) {
          found.push_back({out, own});
          break;
        }
      }
    }
  }
  return found;
}

torch::CppFunction OutForm(std::unique_ptr<OpKernel> kernel, const c10::OperatorHandle& own) {
  return torch::CppFunction::makeFromBoxedFunctor(
      std::make_unique<OutKernel>(std::move(kernel), own));
}

}  // namespace tpu::torch_layer
