// Operators whose result's size depends on data, and masks as indices.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

namespace tpu::torch_layer {

// Gives the table's rows with status "host" their kernel.
void RegisterHostRows();

// `indices`: the list argument of index, index_put and their like.
bool HasMask(const c10::IValue& indices);
// The list with every bool or uint8 mask as int64 positions (one host read a mask).
c10::IValue ExpandMasks(const at::Tensor& self, const c10::IValue& indices);
// self[mask] = one value: a select on the device, with no read. False if this call isn't that.
bool PutOneValue(const at::Tensor& self, const c10::IValue& indices, const at::Tensor& values,
                 bool accumulate);

}  // namespace tpu::torch_layer
