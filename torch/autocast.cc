// Autocast on tpu: CUDA's lists, through PyTorch's own wrappers. bfloat16 is the lower precision.
// What it is not: new policies. An operator that isn't listed runs in the types it is given.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace tpu::torch_layer {
namespace {

// PyTorch's lists name these.
using at::IntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

// The state is a thread's own; threads that Python starts get it from torch_tpu._patches.
const int default_dtype = [] {
  at::autocast::set_autocast_dtype(at::kPrivateUse1, at::kBFloat16);
  return 0;
}();

at::Tensor RefuseBinaryCrossEntropy(const at::Tensor&, const at::Tensor&,
                                    const std::optional<at::Tensor>&, int64_t) {
  TORCH_CHECK(false,
              "binary_cross_entropy is unsafe under autocast: its input must lie in [0, 1], which "
              "bfloat16 rounds away. Use binary_cross_entropy_with_logits (BCEWithLogitsLoss), or "
              "leave autocast and cast the input to float32");
}

// PyTorch's lists are macros; these name the policy of each.
#define TPU_LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define TPU_FLOAT32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define TPU_FLOAT32_BY_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define TPU_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  AT_FORALL_LOWER_PRECISION_FP(TPU_LOWER_PRECISION)
  AT_FORALL_FP32(TPU_FLOAT32)
  AT_FORALL_FP32_SET_OPT_DTYPE(TPU_FLOAT32_BY_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(TPU_PROMOTE)
  m.impl("binary_cross_entropy", &RefuseBinaryCrossEntropy);
}

}  // namespace
}  // namespace tpu::torch_layer
