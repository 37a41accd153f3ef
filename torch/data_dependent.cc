// Operators whose results' sizes depend on values: nonzero, masked_select, unique, bincount ...
// They must wait for their operands, so they work on the host's view of them (no copy where the
// device's memory is the host's) and put the results on the device.
#include <ATen/ops/_unique.h>
#include <ATen/ops/_unique2.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/masked_select.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/resize.h>
#include <ATen/ops/unique_consecutive.h>
#include <ATen/ops/unique_dim.h>
#include <ATen/ops/unique_dim_consecutive.h>
#include <torch/library.h>

#include <tuple>

#include "copy.h"
#include "device.h"
#include "tensor.h"

namespace tpu::torch_layer {
namespace {

using at::Tensor;
using Triple = std::tuple<Tensor, Tensor, Tensor>;

bool IsTpu(const Tensor& t) { return t.device().type() == kTpu; }

// A host view of an operand; CPU operands (zero-dim masks) stand for themselves.
HostView Host(const Tensor& t) {
  if (IsTpu(t)) return ViewOnHost(t);
  HostView own;
  own.tensor = t;
  return own;
}

void CheckDevice(const char* op, const Tensor& like, const Tensor& other) {
  TORCH_CHECK(other.device() == like.device() || other.dim() == 0, op,
              ": Expected all tensors to be on the same device, but found at least two devices, ",
              like.device(), " and ", other.device(), "!");
}

Tensor Back(const Tensor& result, const Tensor& like) { return result.to(like.device()); }

Tensor& BackInto(Tensor& out, const Tensor& result) {
  TORCH_CHECK(out.scalar_type() == result.scalar_type(), "Expected object of scalar type ",
              result.scalar_type(), " as out, but got ", out.scalar_type());
  if (out.sizes() != result.sizes()) out.resize_(result.sizes());
  return out.copy_(result);
}

Triple Back(const Triple& t, const Tensor& like) {
  return {Back(std::get<0>(t), like), Back(std::get<1>(t), like), Back(std::get<2>(t), like)};
}

Tensor Nonzero(const Tensor& self) { return Back(at::nonzero(Host(self).tensor), self); }
Tensor& NonzeroOut(const Tensor& self, Tensor& out) {
  CheckDevice("nonzero", self, out);
  return BackInto(out, at::nonzero(Host(self).tensor));
}

const Tensor& OnTpu(const Tensor& a, const Tensor& b) { return IsTpu(a) ? a : b; }

Tensor MaskedSelect(const Tensor& self, const Tensor& mask) {
  CheckDevice("masked_select", OnTpu(self, mask), self);
  CheckDevice("masked_select", OnTpu(self, mask), mask);
  return Back(at::masked_select(Host(self).tensor, Host(mask).tensor), OnTpu(self, mask));
}
Tensor& MaskedSelectOut(const Tensor& self, const Tensor& mask, Tensor& out) {
  CheckDevice("masked_select", out, self);
  CheckDevice("masked_select", out, mask);
  return BackInto(out, at::masked_select(Host(self).tensor, Host(mask).tensor));
}

std::tuple<Tensor, Tensor> Unique(const Tensor& self, bool sorted, bool inverse) {
  const auto [values, places] = at::_unique(Host(self).tensor, sorted, inverse);
  return {Back(values, self), Back(places, self)};
}
Triple Unique2(const Tensor& self, bool sorted, bool inverse, bool counts) {
  return Back(at::_unique2(Host(self).tensor, sorted, inverse, counts), self);
}
Triple UniqueDim(const Tensor& self, int64_t dim, bool sorted, bool inverse, bool counts) {
  return Back(at::unique_dim(Host(self).tensor, dim, sorted, inverse, counts), self);
}
Triple UniqueConsecutive(const Tensor& self, bool inverse, bool counts,
                         std::optional<int64_t> dim) {
  return Back(at::unique_consecutive(Host(self).tensor, inverse, counts, dim), self);
}
Triple UniqueDimConsecutive(const Tensor& self, int64_t dim, bool inverse, bool counts) {
  return Back(at::unique_dim_consecutive(Host(self).tensor, dim, inverse, counts), self);
}

Tensor BinCount(const Tensor& self, const std::optional<Tensor>& weights, int64_t minlength) {
  std::optional<Tensor> host_weights;
  HostView view;
  if (weights && weights->defined()) {
    CheckDevice("bincount", self, *weights);
    view = Host(*weights);
    host_weights = view.tensor;
  }
  return Back(at::bincount(Host(self).tensor, host_weights, minlength), self);
}

Tensor RepeatInterleave(const Tensor& repeats, std::optional<int64_t> output_size) {
  return Back(at::repeat_interleave(Host(repeats).tensor, output_size), repeats);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_unique", &Unique);
  m.impl("_unique2", &Unique2);
  m.impl("bincount", &BinCount);
  m.impl("masked_select", &MaskedSelect);
  m.impl("masked_select.out", &MaskedSelectOut);
  m.impl("nonzero", &Nonzero);
  m.impl("nonzero.out", &NonzeroOut);
  m.impl("repeat_interleave.Tensor", &RepeatInterleave);
  m.impl("unique_consecutive", &UniqueConsecutive);
  m.impl("unique_dim", &UniqueDim);
  m.impl("unique_dim_consecutive", &UniqueDimConsecutive);
}

}  // namespace
}  // namespace tpu::torch_layer
