// Which attention scaled_dot_product_attention takes: the fused row where its operands fit, else
// PyTorch's own composition of products and softmax.
#include <ATen/Context.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <torch/library.h>

#include "convert.h"
#include "ops/op_def.h"

namespace tpu::torch_layer {
namespace {

bool HasRow(const char* name) {
  const ops::OpDef* const row = ops::FindOp(name);
  return row != nullptr && row->status != ops::StatusKind::kRefused;
}

// The fused rows take (batch, heads, length, width) with equal batch and heads throughout: grouped
// queries and broadcast batches go to the composition, which repeats the keys.
bool Fits(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
          const std::optional<at::Tensor>& mask) {
  for (const at::Tensor* t : {&q, &k, &v}) {
    if (t->dim() != 4 || t->layout() != c10::kStrided || t->is_nested()) return false;
    if (t->scalar_type() != q.scalar_type() || t->numel() == 0) return false;
    if (t->size(0) != q.size(0) || t->size(1) != q.size(1)) return false;
  }
  if (!at::isFloatingType(q.scalar_type())) return false;
  if (q.size(3) != k.size(3) || k.size(2) != v.size(2)) return false;
  return !mask || !mask->defined() || mask->dim() <= 4;
}

int64_t Choose(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
               const std::optional<at::Tensor>& mask, double, bool, std::optional<double>, bool) {
  static const bool fused =
      HasRow("aten::_scaled_dot_product_fused_attention_overrideable") &&
      HasRow("aten::_scaled_dot_product_fused_attention_overrideable_backward");
  const at::Context& context = at::globalContext();
  if (fused && context.userEnabledOverrideableSDP() && Fits(q, k, v, mask)) {
    return static_cast<int64_t>(sdp::SDPBackend::overrideable);
  }
  TORCH_CHECK(context.userEnabledMathSDP(),
              "scaled_dot_product_attention: no enabled backend takes these operands on tpu; "
              "enable SDPBackend.MATH");
  return static_cast<int64_t>(sdp::SDPBackend::math);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("_fused_sdp_choice", &Choose); }

}  // namespace
}  // namespace tpu::torch_layer

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &tpu::torch_layer::Choose)
}  // namespace at::native
