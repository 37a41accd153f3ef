// Value: states, waiting, memory counts.
#include "runtime/value.h"

#include "base/counters.h"
#include "base/timeline.h"
#include "runtime/device.h"
#include "runtime/wait.h"

namespace tpu::runtime {

ValueTypeRef MakeValueType(DType dtype, Dims dims) {
  auto type = std::make_shared<ValueType>();
  type->dtype = dtype;
  type->numel = NumElements(dims);
  type->bytes = type->numel * ItemSize(dtype);
  type->dims = std::move(dims);
  return type;
}

namespace {
std::atomic<uint64_t> recorded_calls{0};
}

uint64_t Value::NextBorn() {
  return (recorded_calls.fetch_add(1, std::memory_order_relaxed) + 1) * kBornPerCall;
}

Value::Value(Device* device, ValueTypeRef type, State state)
    : born(recorded_calls.load(std::memory_order_relaxed) * kBornPerCall),
      device_(device),
      type_(std::move(type)),
      state_(state) {
  device_->live().Add(this);
}

Value::~Value() {
  if (Runtime::InForkedChild()) {  // the parent's locks may be held here for ever: leave all as it
                                   // is
    (void)new pjrt::Buffer(std::move(buffer_));
    return;
  }
  device_->live().Remove(this);
  if (counted_ > 0) device_->memory.Sub(counted_);
}

void Value::Fulfill(pjrt::Buffer buffer) {
  buffer_ = std::move(buffer);
  counted_ = type_->bytes;
  if (!device_->capabilities().linear_layout) {  // tiled: what the device really takes
    if (auto bytes = buffer_.OnDeviceBytes(); bytes.ok()) counted_ = *bytes;
  }
  if (counted_ > 0) device_->memory.Add(counted_);
  if (state_.exchange(State::kReady, std::memory_order_acq_rel) == State::kPending) NotifyWaiters();
}

void Value::Fail(Status error) {
  error_ = std::move(error);
  state_.store(State::kFailed, std::memory_order_release);
  NotifyWaiters();
}

void Value::MarkDonated() {
  const pjrt::Buffer gone = device_->live().TakeBuffer(this);
  if (counted_ > 0) device_->memory.Sub(counted_);
  counted_ = 0;
}

Status Value::WaitProduced() const {
  if (state() == State::kPending) {
    Count(counters.waits);
    TPU_RETURN_IF_ERROR(WaitUntil([this] { return state() != State::kPending; },
                                  "waiting for a program to compile and run"));
  }
  switch (state()) {
    case State::kFailed: return error_;
    case State::kDonated: return Internal("a value was used after its memory was given away");
    case State::kRecorded: return Internal("a recorded value was read before it was flushed");
    default: return {};
  }
}

Status Value::WaitReady() const {
  TPU_RETURN_IF_ERROR(WaitProduced());
  if (complete_.load(std::memory_order_acquire)) return {};
  const timeline::Span span(timeline::Kind::kWait, device_->index(), "waiting for a result");
  TPU_RETURN_IF_ERROR(buffer_.Await());
  complete_.store(true, std::memory_order_release);
  return {};
}

pjrt::Event Value::PendingEvent() {
  if (state() != State::kReady || complete_.load(std::memory_order_acquire)) return {};
  auto event = buffer_.ReadyEvent();
  if (!event.ok()) return {};
  if (event->IsReady()) {
    complete_.store(true, std::memory_order_release);
    return {};
  }
  return std::move(event).value();
}

void LiveValues::Add(Value* v) {
  std::lock_guard lock(mu_);
  v->next_ = head_;
  if (head_) head_->prev_ = v;
  head_ = v;
}

void LiveValues::Remove(Value* v) {
  std::lock_guard lock(mu_);
  (v->prev_ ? v->prev_->next_ : head_) = v->next_;
  if (v->next_) v->next_->prev_ = v->prev_;
}

pjrt::Buffer LiveValues::TakeBuffer(Value* v) {
  std::lock_guard lock(mu_);
  v->state_.store(Value::State::kDonated, std::memory_order_release);
  return std::move(v->buffer_);
}

std::vector<pjrt::Event> LiveValues::PendingEvents() {
  std::vector<pjrt::Event> out;
  std::lock_guard lock(mu_);
  for (Value* v = head_; v != nullptr; v = v->next_) {
    if (pjrt::Event e = v->PendingEvent(); e.valid()) out.push_back(std::move(e));
  }
  return out;
}

}  // namespace tpu::runtime
