// Pinned host memory, and what empty_cache empties.
#pragma once

#include <ATen/core/CachingHostAllocator.h>

namespace tpu::torch_layer {

at::HostAllocator* PinnedAllocator();
bool IsPinned(const void* p);
// Compiled programs in memory and packed scalars, of all devices. Programs on disk stay.
void EmptyCaches();

}  // namespace tpu::torch_layer
