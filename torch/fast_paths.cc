// Operators for which PyTorch's CPU has whole kernels that its modules call in inference: here they
// are composed of plain ones. torch.nn takes these paths for every PrivateUse1 device. What it is
// not: nested tensors. Where a module would make one of a padding mask, tpu says no.
#include <ATen/TensorOperators.h>
#include <ATen/ops/_masked_softmax.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/var_mean.h>
#include <torch/library.h>

#include <cmath>

namespace tpu::torch_layer {
namespace {

using at::Tensor;
using OptTensor = std::optional<Tensor>;

// Queries, keys and values by one packed weight of three parts.
std::array<Tensor, 3> Project(const Tensor& q, const Tensor& k, const Tensor& v,
                              const Tensor& weight, const Tensor& bias) {
  if (q.is_same(k) && k.is_same(v)) {
    const std::vector<Tensor> parts = at::linear(q, weight, bias).chunk(3, -1);
    return {parts[0], parts[1], parts[2]};
  }
  const std::vector<Tensor> w = weight.chunk(3, 0), b = bias.chunk(3, 0);
  return {at::linear(q, w[0], b[0]), at::linear(k, w[1], b[1]), at::linear(v, w[2], b[2])};
}

// (context, weights): the weights have the heads of all batches.
std::pair<Tensor, Tensor> Attend(const std::array<Tensor, 3>& qkv, int64_t heads,
                                 const OptTensor& mask, std::optional<int64_t> mask_type) {
  const auto by_head = [&](const Tensor& t) {  // [B, T, D] -> [B, H, T, D / H]
    return t.view({t.size(0), t.size(1), heads, -1}).transpose(1, 2);
  };
  const Tensor q = by_head(qkv[0]), k = by_head(qkv[1]), v = by_head(qkv[2]);
  const Tensor scaled = q / std::sqrt(static_cast<double>(q.size(3)));
  const Tensor scores = at::matmul(scaled, k.transpose(2, 3));
  Tensor weights;
  if (mask && mask->defined()) {
    weights = at::_masked_softmax(scores, mask->to(at::kBool), scores.dim() - 1, mask_type);
  } else {
    weights = at::_softmax(scores, scores.dim() - 1, /*half_to_float=*/false);
  }
  const Tensor context = at::matmul(weights, v).transpose(1, 2);
  return {context.reshape({q.size(0), q.size(2), -1}), weights};
}

std::tuple<Tensor, Tensor> MultiHeadAttention(const Tensor& query, const Tensor& key,
                                              const Tensor& value, int64_t embed_dim,
                                              int64_t num_head, const Tensor& qkv_weight,
                                              const Tensor& qkv_bias, const Tensor& proj_weight,
                                              const Tensor& proj_bias, const OptTensor& mask,
                                              bool need_weights, bool average_attn_weights,
                                              std::optional<int64_t> mask_type) {
  TORCH_CHECK(!query.is_nested(), "_native_multi_head_attention: no nested tensors on tpu");
  TORCH_CHECK(query.dim() == 3, "expected 3-D `query`, got ", query.dim(), "-D tensor");
  TORCH_CHECK(query.size(2) == embed_dim, "passed-in embed_dim ", embed_dim,
              " didn't match last dim of query ", query.size(2));
  TORCH_CHECK(embed_dim % num_head == 0, "num_head must divide embed_dim evenly");
  const auto qkv = Project(query, key, value, qkv_weight, qkv_bias);
  auto [context, weights] = Attend(qkv, num_head, mask, mask_type);
  if (!need_weights) {
    weights = Tensor();
  } else if (average_attn_weights) {
    weights = weights.mean(1);
  }
  return {at::linear(context, proj_weight, proj_bias), weights};
}

Tensor TransformerEncoderLayer(const Tensor& src, int64_t embed_dim, int64_t num_heads,
                               const Tensor& qkv_weight, const Tensor& qkv_bias,
                               const Tensor& proj_weight, const Tensor& proj_bias, bool use_gelu,
                               bool norm_first, double eps, const Tensor& norm_weight_1,
                               const Tensor& norm_bias_1, const Tensor& norm_weight_2,
                               const Tensor& norm_bias_2, const Tensor& ffn_weight_1,
                               const Tensor& ffn_bias_1, const Tensor& ffn_weight_2,
                               const Tensor& ffn_bias_2, const OptTensor& mask,
                               std::optional<int64_t> mask_type) {
  TORCH_CHECK(!src.is_nested(), "_transformer_encoder_layer_fwd: no nested tensors on tpu");
  const auto norm_1 = [&](const Tensor& t) {
    return at::layer_norm(t, {embed_dim}, norm_weight_1, norm_bias_1, eps);
  };
  const auto norm_2 = [&](const Tensor& t) {
    return at::layer_norm(t, {embed_dim}, norm_weight_2, norm_bias_2, eps);
  };
  const Tensor in = norm_first ? norm_1(src) : src;
  const auto qkv = Project(in, in, in, qkv_weight, qkv_bias);
  Tensor x =
      src + at::linear(Attend(qkv, num_heads, mask, mask_type).first, proj_weight, proj_bias);
  if (!norm_first) x = norm_1(x);
  Tensor hidden = at::linear(norm_first ? norm_2(x) : x, ffn_weight_1, ffn_bias_1);
  hidden = use_gelu ? at::gelu(hidden) : at::relu(hidden);
  x = x + at::linear(hidden, ffn_weight_2, ffn_bias_2);
  return norm_first ? x : norm_2(x);
}

// The module then keeps its padding mask.
bool LeftAligned(const Tensor&, const Tensor&) { return false; }

std::tuple<Tensor, Tensor> UpdateStats(const Tensor& input, const OptTensor& running_mean,
                                       const OptTensor& running_var, double momentum) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < input.dim(); ++d) {
    if (d != 1) dims.push_back(d);
  }
  const bool half = input.scalar_type() == at::kHalf || input.scalar_type() == at::kBFloat16;
  const auto [var, mean] = at::var_mean(half ? input.to(at::kFloat) : input, dims,
                                        /*correction=*/c10::Scalar(0));
  const double n = static_cast<double>(input.numel()) / static_cast<double>(input.size(1));
  if (running_mean && running_mean->defined()) {
    running_mean->mul_(1 - momentum).add_(mean, momentum);
  }
  if (running_var && running_var->defined()) {
    running_var->mul_(1 - momentum).add_(var, momentum * n / (n - 1));
  }
  return {mean.to(input.scalar_type()), var.to(input.scalar_type())};
}

// Weights of eight bits and a scale for each output.
Tensor Int8PackedMm(const Tensor& self, const Tensor& mat2, const Tensor& scales) {
  TORCH_CHECK(mat2.scalar_type() == at::kChar, "_weight_int8pack_mm: expect B to be int8 tensor.");
  const Tensor product = at::matmul(self.to(at::kFloat), mat2.to(at::kFloat).t());
  return (product * scales.to(at::kFloat)).to(self.scalar_type());
}

// Eight-bit floats, scaled as a whole or by rows and columns.
Tensor ScaledMm(const Tensor& self, const Tensor& mat2, const Tensor& scale_a,
                const Tensor& scale_b, const OptTensor& bias, const OptTensor& scale_result,
                std::optional<at::ScalarType> out_dtype, bool) {
  TORCH_CHECK(self.dim() == 2 && mat2.dim() == 2, "_scaled_mm takes matrices");
  TORCH_CHECK(scale_a.scalar_type() == at::kFloat && scale_b.scalar_type() == at::kFloat,
              "Both scale_a and scale_b must be float (fp32) tensors.");
  const auto fits = [](const Tensor& scale, at::IntArrayRef wide) {
    return scale.numel() == 1 || scale.sizes() == wide;
  };
  TORCH_CHECK(
      fits(scale_a, {self.size(0), 1}) && fits(scale_b, {1, mat2.size(1)}),
      "_scaled_mm on tpu takes scales of one element or one for each row of self and column "
      "of mat2");
  Tensor out = at::matmul(self.to(at::kFloat), mat2.to(at::kFloat)) * scale_a * scale_b;
  if (bias && bias->defined()) out = out + bias->to(at::kFloat);
  const at::ScalarType to = out_dtype.value_or(self.scalar_type());
  const bool narrow = c10::isFloat8Type(to);
  if (narrow && scale_result && scale_result->defined()) out = out * *scale_result;
  return out.to(to);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_native_multi_head_attention", &MultiHeadAttention);
  m.impl("_nested_tensor_from_mask_left_aligned", &LeftAligned);
  m.impl("_scaled_mm", &ScaledMm);
  m.impl("_transformer_encoder_layer_fwd", &TransformerEncoderLayer);
  m.impl("_weight_int8pack_mm", &Int8PackedMm);
  m.impl("batch_norm_update_stats", &UpdateStats);
}

}  // namespace
}  // namespace tpu::torch_layer
