// Operators whose result's size depends on data (rows with status "host"): one read of the
// operands, the CPU's kernel, one upload. Not a fallback: a device can't run them without that
// read.
#include "data_dependent.h"

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/nonzero.h>
#include <c10/core/DispatchKeySet.h>
#include <torch/library.h>

#include "copy.h"
#include "device.h"
#include "ops/op_def.h"

namespace tpu::torch_layer {
namespace {

class HostKernel final : public c10::OperatorKernel {
 public:
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
    const auto& schema = op.schema();
    const size_t n = schema.arguments().size();
    const torch::jit::Stack given(stack->end() - static_cast<std::ptrdiff_t>(n), stack->end());
    torch::jit::drop(*stack, n);
    std::optional<c10::Device> device;
    std::vector<HostView> keep;
    torch::jit::Stack host;
    for (size_t i = 0; i < n; ++i) {
      const c10::AliasInfo* const alias = schema.arguments()[i].alias_info();
      const bool out = alias != nullptr && alias->isWrite();
      if (!given[i].isTensor() || !given[i].toTensor().defined()) {
        host.push_back(given[i]);
        continue;
      }
      const at::Tensor& t = given[i].toTensor();
      if (t.device().type() != kTpu) {
        TORCH_CHECK(!out, schema.name(), ": expected out on tpu, but it is on ", t.device());
        host.push_back(t);
        continue;
      }
      if (!device) device = t.device();
      TORCH_CHECK(*device == t.device(),
                  "Expected all tensors to be on the same device, but found at "
                  "least two devices, ",
                  *device, " and ", t.device(), "! (", schema.name(), ")");
      if (out) {
        host.push_back(at::empty({0}, t.options().device(c10::kCPU)));
      } else {
        keep.push_back(ViewOnHost(t));
        host.push_back(keep.back().tensor);
      }
    }
    op.callBoxed(&host);
    for (size_t r = 0; r < host.size(); ++r)
      stack->push_back(Return(schema, r, host[r], given, device));
  }

 private:
  // A result on the device: a new tensor, or the out= argument it belongs to.
  static c10::IValue Return(const c10::FunctionSchema& schema, size_t r, const c10::IValue& result,
                            const torch::jit::Stack& given, std::optional<c10::Device> device) {
    if (!result.isTensor() || !result.toTensor().defined() || !device) return result;
    const c10::AliasInfo* const alias = schema.returns()[r].alias_info();
    if (alias == nullptr) return result.toTensor().to(*device);
    for (size_t i = 0; i < given.size(); ++i) {
      const c10::AliasInfo* const a = schema.arguments()[i].alias_info();
      if (a == nullptr || a->beforeSets() != alias->beforeSets()) continue;
      const at::Tensor &out = given[i].toTensor(), &host = result.toTensor();
      if (at::native::resize_output(out, host.sizes()) && out.strides() != host.strides()) {
        out.as_strided_(host.sizes(), host.strides());
      }
      out.copy_(host);
      return given[i];
    }
    return result;
  }
};

torch::Library& Lib() {
  static auto* const lib = new torch::Library(torch::Library::IMPL, "aten",
                                              c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  return *lib;
}

bool IsMask(const at::Tensor& t) {
  return t.defined() && (t.scalar_type() == at::kBool || t.scalar_type() == at::kByte);
}

void CheckMask(const at::Tensor& self, size_t at_dim, const at::Tensor& mask) {
  for (int64_t j = 0; j < mask.dim(); ++j) {
    const int64_t d = static_cast<int64_t>(at_dim) + j;
    TORCH_CHECK_INDEX(d < self.dim(), "too many indices for tensor of dimension ", self.dim());
    TORCH_CHECK_INDEX(mask.size(j) == self.size(d), "The shape of the mask ", mask.sizes(),
                      " at index ", j, " does not match the shape of the indexed tensor ",
                      self.sizes(), " at index ", d);
  }
}

}  // namespace

void RegisterHostRows() {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const ops::OpDef* row : ops::AllOps()) {
    if (row->status != ops::StatusKind::kHost) continue;
    const std::string full(row->name);
    const size_t dot = full.find('.');
    const std::string base = full.substr(0, dot);
    const std::string overload = dot == std::string::npos ? "" : full.substr(dot + 1);
    for (const std::string& name : {overload, overload.empty() ? "out" : overload + "_out"}) {
      const auto op = dispatcher.findSchema({base, name});
      if (!op || op->hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd)) continue;
      Lib().impl((base + (name.empty() ? "" : "." + name)).c_str(),
                 torch::CppFunction::makeFromBoxedFunctor(std::make_unique<HostKernel>()));
    }
  }
}

bool HasMask(const c10::IValue& indices) {
  for (const c10::IValue& i : indices.toListRef()) {
    if (!i.isNone() && IsMask(i.toTensor())) return true;
  }
  return false;
}

c10::IValue ExpandMasks(const at::Tensor& self, const c10::IValue& indices) {
  c10::List<std::optional<at::Tensor>> out;
  for (const c10::IValue& i : indices.toListRef()) {
    if (i.isNone() || !IsMask(i.toTensor())) {
      out.push_back(i.isNone() ? std::nullopt : std::optional(i.toTensor()));
      continue;
    }
    const at::Tensor& mask = i.toTensor();
    CheckMask(self, out.size(), mask);
    const HostView view = mask.device().type() == kTpu ? ViewOnHost(mask) : HostView{mask, nullptr};
    const at::Tensor places = at::nonzero(view.tensor);
    for (int64_t d = 0; d < mask.dim(); ++d) {
      out.push_back(places.select(1, d).contiguous().to(self.device()));
    }
    // A zero-dim mask adds a dimension that it indexes: its row count is 0 or 1.
    TORCH_CHECK_INDEX(mask.dim() > 0,
                      "a zero-dimensional mask can't be mixed with other indices on tpu");
  }
  return out;
}

bool PutOneValue(const at::Tensor& self, const c10::IValue& indices, const at::Tensor& values,
                 bool accumulate) {
  const auto list = indices.toListRef();
  if (accumulate || values.numel() != 1 || list.size() != 1 || list[0].isNone()) return false;
  at::Tensor mask = list[0].toTensor();
  if (!IsMask(mask)) return false;
  CheckMask(self, 0, mask);
  if (mask.device().type() != kTpu) mask = mask.to(self.device());
  if (mask.scalar_type() != at::kBool) mask = mask.to(at::kBool);
  while (mask.dim() < self.dim()) mask = mask.unsqueeze(-1);
  at::Tensor target = self;
  target.masked_fill_(mask, values.reshape({}));
  return true;
}

}  // namespace tpu::torch_layer
