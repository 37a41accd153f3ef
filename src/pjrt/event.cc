// Event: completion of something asynchronous.
#include "pjrt/call.h"
#include "pjrt/pjrt.h"

namespace tpu::pjrt {
namespace {

void Destroy(const PJRT_Api* api, PJRT_Event* event) {
  if (event == nullptr) return;
  abi::EventDestroyArgs args{.event = event};
  CallIgnoringErrors<&abi::Table::Event_Destroy>(api, &args);
}

struct Callback {
  const PJRT_Api* api;
  std::function<void(Status)> fn;
};

void RunCallback(PJRT_Error* error, void* user_arg) {
  std::unique_ptr<Callback> callback(static_cast<Callback*>(user_arg));
  callback->fn(ToStatus(callback->api, error));
}

}  // namespace

Event::Event(Event&& other) noexcept
    : api_(other.api_), event_(std::exchange(other.event_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
  if (this != &other) {
    Destroy(api_, event_);
    api_ = other.api_;
    event_ = std::exchange(other.event_, nullptr);
  }
  return *this;
}

Event::~Event() { Destroy(api_, event_); }

// An event that can't be asked counts as ready: the Await that follows tells why.
bool Event::IsReady() const {
  if (event_ == nullptr) return true;
  abi::EventIsReadyArgs args{.event = event_};
  return !Call<&abi::Table::Event_IsReady>(api_, &args).ok() || args.is_ready;
}

Status Event::Await() const {
  if (event_ == nullptr) return Status::Ok();
  abi::EventAwaitArgs args{.event = event_};
  return Call<&abi::Table::Event_Await>(api_, &args);
}

void Event::OnReady(std::function<void(Status)> fn) const {
  if (event_ == nullptr) return fn(Status::Ok());
  if (!HasSlot<&abi::Table::Event_OnReady>(api_)) {
    return fn(MissingFunction(api_, SlotName<&abi::Table::Event_OnReady>()));
  }
  auto callback = std::make_unique<Callback>(Callback{api_, std::move(fn)});
  abi::EventOnReadyArgs args{.event = event_, .callback = &RunCallback, .user_arg = callback.get()};
  // A refused registration never runs the callback; an accepted one owns it, and may have run it
  // already.
  if (PJRT_Error* error = api_->Event_OnReady(&args)) {
    callback->fn(ToStatus(api_, error));
  } else {
    static_cast<void>(callback.release());
  }
}

}  // namespace tpu::pjrt
