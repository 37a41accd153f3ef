// Fills by upload.
#include "fill.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>

#include <cstdlib>

#include "copy.h"
#include "device.h"
#include "exec/mode.h"
#include "exec/trace.h"
#include "tensor.h"

namespace tpu::torch_layer {
namespace {

// Beyond these the copy costs more than the launch. Zeros need not be made first.
constexpr int64_t kMaxZeros = int64_t{1} << 20, kMaxBytes = int64_t{1} << 15;

bool Fits(const at::Tensor& t, bool zero) {
  if (t.device().type() != kTpu || t.is_conj() || t.is_neg() || t.numel() == 0) return false;
  const auto limit = static_cast<size_t>(zero ? kMaxZeros : kMaxBytes);
  if (t.nbytes() > limit || !t.is_contiguous() || !CoversStorage(t)) return false;
  return exec::CurrentMode() == EagerMode::kStrict && exec::Capture::OfThisThread() == nullptr &&
         StateOf(t)->device()->capabilities().host_readable;
}

// Read only.
at::Tensor HostZeros(const at::Tensor& like) {
  static void* const zeros = std::calloc(1, kMaxZeros);
  return at::from_blob(zeros, like.sizes(), at::TensorOptions().dtype(like.dtype()));
}

// One element for each place: equal values may be written over each other.
at::Tensor WithoutRepeats(const at::Tensor& t) {
  if (t.is_non_overlapping_and_dense() || t.numel() == 0) return t;
  std::vector<int64_t> sizes = t.sizes().vec();
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (t.strides()[d] == 0) sizes[d] = 1;
  }
  return sizes == t.sizes() ? t : t.as_strided(sizes, t.strides());
}

class FillKernel final : public c10::OperatorKernel {
 public:
  explicit FillKernel(std::unique_ptr<OpKernel> kernel) : kernel_(std::move(kernel)) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) {
    const size_t n = op.schema().arguments().size(), at = stack->size() - n;
    const at::Tensor self = (*stack)[at].toTensor();
    if (!Fits(self, n == 1)) {
      (*stack)[at] = WithoutRepeats(self);
      (*kernel_)(op, keys, stack);
      (*stack)[at] = self;
      return;
    }
    const auto on_host = at::TensorOptions().dtype(self.dtype()).device(at::kCPU);
    const at::Tensor host =
        n == 1 ? HostZeros(self) : at::full(self.sizes(), (*stack)[at + 1].toScalar(), on_host);
    CopyInto(self, host, false);
    torch::jit::drop(*stack, n);
    stack->emplace_back(self);
  }

 private:
  const std::unique_ptr<OpKernel> kernel_;
};

}  // namespace

bool IsFill(const c10::FunctionSchema& schema) {
  return schema.name() == "aten::zero_" ||
         (schema.name() == "aten::fill_" && schema.overload_name() == "Scalar");
}

torch::CppFunction WithUpload(std::unique_ptr<OpKernel> kernel) {
  return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<FillKernel>(std::move(kernel)));
}

}  // namespace tpu::torch_layer
