// Value: the immutable contents of one storage at one moment, on one device. A write makes a new
// Value; a Value that nobody else holds may be donated to the program that replaces it.
// What it is not: a storage. Several storages may hold one Value (a clone costs nothing until one
// of them is written).
#pragma once

#include <atomic>
#include <memory>

#include "base/ref.h"
#include "base/status.h"
#include "pjrt/pjrt.h"
#include "shape/dims.h"
#include "shape/dtype.h"

namespace tpu::runtime {

class Device;

// The natural type of a buffer: that of the last full write.
struct ValueType {
  DType dtype = DType::kInvalid;
  Dims dims;
  int64_t numel = 0;
  int64_t bytes = 0;  // as the host counts them: numel * ItemSize
};
using ValueTypeRef = std::shared_ptr<const ValueType>;
ValueTypeRef MakeValueType(DType dtype, Dims dims);

class Value : public RefCounted {
 public:
  enum class State : uint8_t {
    kPending,   // queued, or waiting for its program
    kReady,     // `buffer` is there (the device may still be computing it)
    kFailed,    // `error` says why
    kDonated,   // its memory went to another value
    kRecorded,  // fuse and record: a result of a node that has not run
  };

  Value(Device* device, ValueTypeRef type, State state);
  ~Value();

  Device* device() const { return device_; }
  const ValueType& type() const { return *type_; }
  const ValueTypeRef& type_ref() const { return type_; }
  State state() const { return state_.load(std::memory_order_acquire); }

  // Only in kReady. The plugin's handle.
  const pjrt::Buffer& buffer() const { return buffer_; }
  const Status& error() const { return error_; }  // only in kFailed

  // Transitions; each is done once, by whoever owns the value's production.
  void Fulfill(pjrt::Buffer buffer);
  void Fail(Status error);
  void MarkDonated();
  void MarkPending() { state_.store(State::kPending, std::memory_order_release); }

  // Blocks until not pending; then the error, if it failed. Does not wait for the device.
  // A recorded value must be flushed first (exec does).
  Status WaitProduced() const;
  // WaitProduced, then waits for the device.
  Status WaitReady() const;

  // An event for the end of the computation; invalid if it is known to be over. For Device's walk
  // over its live values, which holds no reference.
  pjrt::Event PendingEvent();

  // When it was made, counted in recorded calls; kBornPerCall apart from one call to the next, so
  // that a call's results differ. How fuse mode tells the turns of a loop from each other.
  static constexpr uint64_t kBornPerCall = 4096;
  uint64_t born;
  static uint64_t NextBorn();  // of the first result of a call that is being recorded
  // For fuse and record: the slot of the trace that makes this value.
  int32_t trace_slot = -1;

 private:
  Device* const device_;
  const ValueTypeRef type_;
  std::atomic<State> state_;
  int64_t counted_ = 0;                        // bytes in the device's memory count
  mutable std::atomic<bool> complete_{false};  // the device is known to have finished it
  pjrt::Buffer buffer_;
  Status error_;

  friend class LiveValues;
  Value* next_ = nullptr;  // the device's list of live values
  Value* prev_ = nullptr;
};

}  // namespace tpu::runtime
