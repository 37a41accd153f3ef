// BuildKey: a call's structural key. Equal keys mean equal programs but for run-time words.
// What it is not: a hash. Keys are compared whole.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/call.h"
#include "runtime/value.h"

namespace tpu::exec {

// One distinct storage that a call touches.
struct Slot {
  runtime::Storage* storage = nullptr;
  Ref<runtime::Value> value;  // its contents when the key was made; null: never written
  bool target = false;        // the call writes it; its lock is held by the executor
};

// Where in `starts` the run-time slice starts of a tensor's view lie.
struct ViewStarts {
  uint32_t read_at = 0, read_count = 0, write_at = 0, write_count = 0;
};

// What a call needs besides its own data; reused between calls of a thread.
struct CallState {
  std::vector<uint64_t> key;
  std::vector<Slot> slots;
  std::vector<ViewStarts> views;  // one for each tensor
  std::vector<int64_t> starts;
  void Clear();
};

// The shape in which programs take a value: flat where layouts are linear, else natural.
Dims BaseDims(const runtime::Device& device, const runtime::ValueType& type);
// The type of a storage's contents as a program sees it; for unwritten storages, that of zeros of
// the given type.
struct Base {
  DType dtype;
  Dims dims;
  bool unset = false;
};
Base BaseOf(const Call& call, const TensorArg& tensor, const runtime::Value* value);
// `base` re-counted in elements of `dtype` (rank 1 where the widths differ).
Dims BaseDimsAs(const Base& base, DType dtype);

// Finds the call's distinct storages and which of them it writes. First step of every executor.
void FindSlots(Call* call, CallState* state);
// Needs FindSlots, and each slot's value. Fails where a view leaves its storage or a target
// overlaps itself.
Status BuildKey(const Call& call, CallState* state);

}  // namespace tpu::exec
