// Decompositions that raise when told so. The programs themselves leave `info` on the device; only
// the caller's wish to hear of failures at once costs a read.
#include "linalg_checks.h"

#include <ATen/native/Resize.h>
#include <ATen/ops/_linalg_check_errors.h>
#include <ATen/ops/linalg_cholesky_ex.h>

namespace tpu::torch_layer {
namespace {

// As PyTorch names them in its messages: some with "torch.", some without.
std::string PublicName(const std::string& schema) {
  std::string name = schema.substr(schema.find("::") + 2);
  if (name[0] == '_') name = name.substr(1);
  const std::string what = name.substr(std::string("linalg_").size());
  const bool bare = what == "cholesky_ex" || what == "inv_ex";
  return (bare ? "linalg." : "torch.linalg.") + what;
}

class CheckedKernel final : public c10::OperatorKernel {
 public:
  explicit CheckedKernel(std::unique_ptr<OpKernel> kernel) : kernel_(std::move(kernel)) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) {
    const auto& args = op.schema().arguments();
    const size_t first = stack->size() - args.size();
    bool check = false, is_matrix = true;
    for (size_t i = 0; i < args.size(); ++i) {
      const c10::IValue& v = (*stack)[first + i];
      if (args[i].name() == "check_errors") check = v.toBool();
      if (i == 0) is_matrix = v.toTensor().dim() == 2;
    }
    (*kernel_)(op, keys, stack);
    if (!check) return;
    at::_linalg_check_errors(stack->back().toTensor(), PublicName(op.schema().name()), is_matrix);
  }

 private:
  const std::unique_ptr<OpKernel> kernel_;
};

at::Tensor Cholesky(const at::Tensor& self, bool upper) {
  const auto [factor, info] = at::linalg_cholesky_ex(self, upper, /*check_errors=*/false);
  at::_linalg_check_errors(info, "cholesky", self.dim() == 2);
  return factor;
}

// PyTorch copies a fresh result here too: a tensor that must grow becomes contiguous.
at::Tensor& CholeskyOut(const at::Tensor& self, bool upper, at::Tensor& out) {
  TORCH_CHECK(c10::canCast(self.scalar_type(), out.scalar_type()),
              "cholesky: Expected result to be ", "safely castable from ", self.scalar_type(),
              " dtype, but got result with dtype ", out.scalar_type());
  const at::Tensor factor = Cholesky(self, upper);
  at::native::resize_output(out, factor.sizes());
  return out.copy_(factor);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("cholesky", &Cholesky);
  m.impl("cholesky.out", &CholeskyOut);
}

}  // namespace

bool HasErrorCheck(const c10::FunctionSchema& schema) {
  for (const c10::Argument& a : schema.arguments()) {
    if (a.name() == "check_errors") return true;
  }
  return false;
}

torch::CppFunction WithErrorCheck(std::unique_ptr<OpKernel> kernel) {
  return torch::CppFunction::makeFromBoxedFunctor(
      std::make_unique<CheckedKernel>(std::move(kernel)));
}

}  // namespace tpu::torch_layer
