// Tensors and storages: from at::Tensor to the core's state and back.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include <vector>

#include "exec/call.h"
#include "exec/composer.h"
#include "runtime/storage.h"

namespace tpu::torch_layer {

c10::Allocator* TpuAllocator();
// A DataPtr that owns a new runtime storage.
c10::DataPtr NewDataPtr(runtime::Device* device, size_t nbytes);

// The state of a tensor's storage, whoever made its DataPtr. Raises if it isn't ours.
runtime::Storage* StateOf(const c10::StorageImpl& storage);
inline runtime::Storage* StateOf(const at::Tensor& t) {
  return StateOf(*t.storage().unsafeGetStorageImpl());
}

// Appends the tensor to call->tensors (sizes and strides to call->ints).
void AppendTensor(const at::Tensor& t, exec::Call* call);

// A tensor over a new storage with the given contents (null: never written).
at::Tensor MakeTensor(runtime::Device* device, const exec::ResultSpec& spec,
                      Ref<runtime::Value> value);

// True if the tensor's elements are exactly its storage's, in some dimension order.
bool CoversStorage(const at::Tensor& t);

}  // namespace tpu::torch_layer
