// Copies. Reads never compile: the storage's bytes are viewed on the host with the tensor's own
// strides. Uploads never zero-copy: the device would see later writes of the host.
#include "copy.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/conj.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include "convert.h"
#include "device.h"
#include "kernel.h"
#include "shape/view.h"
#include "tensor.h"

namespace tpu::torch_layer {
namespace {

bool IsTpu(const at::Tensor& t) { return t.device().type() == kTpu; }

const exec::Overload* CopyOverload() {
  static const exec::Overload* const overload = [] {
    exec::Overload o;
    o.row = ops::FindOp("aten::copy");
    TORCH_CHECK(o.row != nullptr, "no copy row");
    o.name = "aten::copy_";
    o.arg_names = {"self", "src"};
    o.arg_static = {false, false};
    o.targets = {0};
    o.reads_targets = false;
    return exec::Overload::Register(std::move(o));
  }();
  return overload;
}

void CopyOnDevice(const at::Tensor& dst, const at::Tensor& src) {
  runtime::Storage *from = StateOf(src), *to = StateOf(dst);
  if (from == to && dst.is_same(src)) return;
  if (from == to) at::assert_no_partial_overlap(dst, src);
  const bool alike = dst.scalar_type() == src.scalar_type() && dst.is_conj() == src.is_conj() &&
                     dst.is_neg() == src.is_neg() && dst.sizes() == src.sizes() &&
                     dst.strides() == src.strides();
  if (alike && from != to && CoversStorage(dst) && CoversStorage(src)) {
    // Both storages hold one value until one of them is written.
    Ref<runtime::Value> value = from->Get();
    if (value) {
      to->Set(std::move(value));
      return;
    }
  }
  exec::Call call;
  call.overload = CopyOverload();
  call.device = DeviceAt(dst.device().index());
  for (const at::Tensor* t : {&dst, &src}) {
    exec::Arg arg;
    arg.kind = exec::Arg::Kind::kTensor;
    arg.at = static_cast<uint32_t>(call.tensors.size());
    call.args.push_back(arg);
    AppendTensor(*t, &call);
    call.args.back().dtype = call.tensors.back().dtype;
  }
  RunTargets(&call);
}

// `host` is contiguous in the order of dst's memory.
void UploadWhole(const at::Tensor& dst, const at::Tensor& host) {
  runtime::Device* const device = DeviceAt(dst.device().index());
  const DType dtype = SupportedType(dst.scalar_type(), "copy to tpu");
  Dims dims{dst.numel()};
  if (!device->capabilities().linear_layout) {
    dims.clear();
    const shape::View view{dst.sizes().vec(), dst.strides().vec(), 0};
    for (int64_t d : shape::PhysicalOrder(view)) dims.push_back(dst.size(d));
  }
  StateOf(dst)->Set(Unwrap(
      device->Upload(host.const_data_ptr(), runtime::MakeValueType(dtype, std::move(dims)))));
}

void CopyFromHost(const at::Tensor& dst, const at::Tensor& src) {
  if (dst.numel() == 0) return;
  if (CoversStorage(dst) && !dst.is_conj() && !dst.is_neg()) {
    if (src.scalar_type() == dst.scalar_type() && src.sizes() == dst.sizes() &&
        src.strides() == dst.strides() && !src.is_conj() && !src.is_neg()) {
      return UploadWhole(dst, src);
    }
    at::Tensor host = at::empty_strided(dst.sizes(), dst.strides(), dst.options().device(at::kCPU));
    host.copy_(src);
    return UploadWhole(dst, host);
  }
  // Into a part: the part goes up alone.
  at::Tensor host = src.to(dst.scalar_type()).resolve_conj().resolve_neg().contiguous();
  at::Tensor whole = at::empty(host.sizes(), dst.options());
  UploadWhole(whole, host);
  CopyOnDevice(dst, whole);
}

at::Scalar LocalScalarDense(const at::Tensor& self) {
  const HostView view = ViewOnHost(self);
  return view.tensor.item();
}

at::Tensor CopyFrom(const at::Tensor& self, const at::Tensor& dst, bool non_blocking) {
  CopyInto(dst, self, non_blocking);
  return dst;
}

at::Tensor CopyFromAndResize(const at::Tensor& self, const at::Tensor& dst) {
  if (dst.sizes() != self.sizes()) dst.resize_(self.sizes());
  CopyInto(dst, self, false);
  return dst;
}

bool Equal(const at::Tensor& self, const at::Tensor& other) {
  TORCH_CHECK(self.device() == other.device(),
              "Expected all tensors to be on the same device, but found at least two devices, ",
              self.device(), " and ", other.device(), "! (aten::equal)");
  if (self.sizes() != other.sizes()) return false;
  const HostView a = ViewOnHost(self), b = ViewOnHost(other);
  return at::equal(a.tensor, b.tensor);
}

// PyTorch's in-place form calls its own kernels by device, past the dispatcher.
at::Tensor& ConjPhysicalOut(const at::Tensor& self, at::Tensor& out) {
  at::native::resize_output(out, self.sizes());
  return out.copy_(self.conj());
}

at::Tensor& ConjPhysicalInPlace(at::Tensor& self) {
  return self.is_complex() ? self.copy_(self.conj()) : self;
}

}  // namespace

HostView ViewOnHost(const at::Tensor& t) {
  HostView out;
  runtime::Storage* const state = StateOf(t);
  runtime::Device* const device = DeviceAt(t.device().index());  // raises in a forked child
  const Ref<runtime::Value> value = state->Get();
  const at::TensorOptions options = t.options().device(at::kCPU).requires_grad(false);
  const auto bytes_of = [&](void* data, std::shared_ptr<void> keep) {
    const size_t nbytes = state->nbytes();
    at::Tensor flat = at::from_blob(data, {static_cast<int64_t>(nbytes / t.itemsize())}, options);
    out.keep = std::move(keep);
    out.tensor = flat.as_strided(t.sizes(), t.strides(), t.storage_offset());
  };
  if (t.numel() == 0) {
    out.tensor = at::empty_strided(t.sizes(), t.strides(), options);
  } else if (!value) {
    auto zeros = std::make_shared<std::vector<char>>(state->nbytes(), 0);
    bytes_of(zeros->data(), zeros);
  } else {
    struct Memory {
      Ref<runtime::Value> value;
      std::vector<char> staging;
    };
    auto memory = std::make_shared<Memory>();
    memory->value = value;
    const void* const data = Unwrap(device->HostBytes(*value, &memory->staging));
    bytes_of(const_cast<void*>(data), memory);
  }
  if (t.is_conj()) out.tensor._set_conj(true);
  if (t.is_neg()) out.tensor._set_neg(true);
  Check(device->CheckIndexRecord());
  return out;
}

void CopyInto(const at::Tensor& dst, const at::Tensor& src, bool) {
  if (IsTpu(dst)) at::assert_no_internal_overlap(dst);
  if (!IsTpu(src)) {
    CopyFromHost(dst, src);
  } else if (!IsTpu(dst)) {
    dst.copy_(ViewOnHost(src).tensor);
  } else if (src.device() == dst.device()) {
    CopyOnDevice(dst, src);
  } else {
    CopyFromHost(dst, ViewOnHost(src).tensor);
  }
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_copy_from", &CopyFrom);
  m.impl("_copy_from_and_resize", &CopyFromAndResize);
  m.impl("_local_scalar_dense", &LocalScalarDense);
  m.impl("equal", &Equal);
  m.impl("conj_physical.out", &ConjPhysicalOut);
  m.impl("conj_physical_", &ConjPhysicalInPlace);
}

// Copies read and write lazy conj and neg bits themselves. Without these the bits' own fallback
// makes a plain copy of the source first, which is a copy again, for ever.
void RegisterLazyBits(torch::Library& m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
  m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { RegisterLazyBits(m); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { RegisterLazyBits(m); }

}  // namespace tpu::torch_layer
