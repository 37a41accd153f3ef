// Asking PyTorch's meta kernels.
#include "meta.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_strided.h>
#include <c10/util/ScopeExit.h>

#include "convert.h"
#include "device.h"

namespace tpu::torch_layer {
namespace {

thread_local int asking = 0;

at::Tensor MetaOf(const at::Tensor& t) {
  if (!t.defined() || t.device().type() != kTpu) return t;
  at::Tensor m = at::empty_strided(t.sizes(), t.strides(), t.options().device(c10::kMeta));
  if (t.unsafeGetTensorImpl()->is_wrapped_number())
    m.unsafeGetTensorImpl()->set_wrapped_number(true);
  return m;
}

c10::IValue MetaOf(const c10::IValue& v) {
  if (v.isTensor()) return MetaOf(v.toTensor());
  if (v.isTensorList()) {
    c10::List<at::Tensor> out;
    for (const at::Tensor& t : v.toTensorVector()) out.push_back(MetaOf(t));
    return out;
  }
  if (v.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> out;
    for (const std::optional<at::Tensor>& t : v.toOptionalTensorVector()) {
      out.push_back(t ? std::optional(MetaOf(*t)) : t);
    }
    return out;
  }
  if (v.isGenerator()) return c10::IValue();
  if (v.isDevice()) return c10::Device(c10::kMeta);
  return v;
}

exec::ResultSpec SpecOf(const at::Tensor& t) {
  exec::ResultSpec spec;
  if (!t.defined()) return spec;  // an undefined result: kInvalid
  spec.dtype = SupportedType(t.scalar_type(), "a result");
  spec.sizes = t.sizes().vec();
  spec.strides = t.strides().vec();
  return spec;
}

}  // namespace

bool AskingMeta() { return asking > 0; }

std::vector<exec::ResultSpec> MetaFrontend::Ask() {
  const ops::OpDef& row = *overload_->row;
  // An out= form is asked all the same: its tensor may have to be resized.
  if (row.meta == ops::Meta::kInfer && !plan_->is_out) return {};
  std::optional<c10::OperatorHandle> other;
  if (!row.meta_name.empty()) {
    const std::string name(row.meta_name);
    const size_t dot = name.find('.');
    other = c10::Dispatcher::singleton().findSchemaOrThrow(
        name.substr(0, dot).c_str(), dot == std::string::npos ? "" : name.substr(dot + 1).c_str());
  }
  const c10::OperatorHandle& op = other ? *other : op_;
  if (!op.hasComputedKernelForDispatchKey(c10::DispatchKey::Meta)) return {};
  torch::jit::Stack stack;
  for (const c10::IValue& v : args_) stack.push_back(MetaOf(v));
  const torch::jit::Stack given = stack;
  {
    at::AutoDispatchBelowADInplaceOrView guard;
    ++asking;
    const auto done = c10::make_scope_exit([] { --asking; });
    if (op.hasKernelForDispatchKey(c10::DispatchKey::Meta)) {
      op.callBoxedForDispatchKey(c10::DispatchKey::Meta, stack);
    } else {  // composite: the call above would find the backend's fallback only
      op.callBoxed(stack);
    }
  }
  if (plan_->is_out) {
    for (size_t i = 0; i < args_.size(); ++i) {
      if (std::find(overload_->targets.begin(), overload_->targets.end(), int(i)) ==
              overload_->targets.end() ||
          !given[i].isTensor()) {
        continue;
      }
      const at::Tensor &want = given[i].toTensor(), &have = args_[i].toTensor();
      if (want.sizes() != have.sizes()) {
        resizes_.push_back({i, want.sizes().vec(), want.strides().vec()});
      }
    }
  }
  std::vector<exec::ResultSpec> specs;
  if (plan_->returns_list) {
    for (const at::Tensor& t : stack[0].toTensorVector()) specs.push_back(SpecOf(t));
    return specs;
  }
  for (size_t r = 0; r < plan_->returns.size(); ++r) {
    if (plan_->returns[r] >= 0) continue;
    specs.push_back(stack[r].isTensor() ? SpecOf(stack[r].toTensor()) : exec::ResultSpec());
    if (stack[r].isInt()) specs.back().number = stack[r].toInt();
  }
  return specs;
}

Result<std::vector<exec::ResultSpec>> MetaFrontend::Expect(const exec::Call&) {
  try {
    std::vector<exec::ResultSpec> specs = Ask();
    if (!resizes_.empty()) return Internal("an out= tensor must be resized first");
    return specs;
  } catch (...) {  // no exception may cross the core
    thrown_ = std::current_exception();
    return Internal("a meta kernel raised");
  }
}

}  // namespace tpu::torch_layer
