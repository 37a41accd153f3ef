// Growing and shrinking storages.
#pragma once

#include <c10/core/StorageImpl.h>

namespace tpu::torch_layer {

// Gives the storage `bytes` bytes; what both sizes have in common keeps its contents.
void ResizeStorage(c10::StorageImpl* storage, size_t bytes);

}  // namespace tpu::torch_layer
