// Streams and events.
#include "stream.h"

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>

#include "convert.h"
#include "device.h"
#include "runtime/wait.h"

namespace tpu::torch_layer {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kMaxDevices = 64;
thread_local std::array<c10::StreamId, kMaxDevices> current_stream{};
std::atomic<c10::StreamId> next_stream{1};

}  // namespace

c10::Stream DefaultStream(c10::DeviceIndex index) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kTpu, index < 0 ? CurrentDevice() : index),
                     0);
}

c10::Stream CurrentStream(c10::DeviceIndex index) {
  if (index < 0) index = CurrentDevice();
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kTpu, index),
                     current_stream[size_t(index) % kMaxDevices]);
}

c10::Stream NewStream(c10::DeviceIndex index, int) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kTpu, index < 0 ? CurrentDevice() : index),
                     next_stream.fetch_add(1));
}

c10::Stream ExchangeStream(c10::Stream stream) {
  const c10::DeviceIndex index = stream.device_index();
  const c10::Stream old = CurrentStream(index);
  current_stream[size_t(index) % kMaxDevices] = stream.id();
  return old;
}

// Filled by the device's queue: everything enqueued before has been launched when the task runs;
// the values alive at that moment are what there is left to wait for.
class StreamEvent {
 public:
  struct Point {
    std::atomic<bool> launched{false};
    std::mutex mu;
    std::vector<pjrt::Event> pending;  // at the time of launch
    Clock::time_point done_at;
    bool done = false;
  };
  std::shared_ptr<Point> point;
  runtime::Device* device = nullptr;

  // Waits if `block`; whether everything is done.
  static bool Finish(Point& p, bool block) {
    if (!p.launched.load(std::memory_order_acquire)) {
      if (!block) return false;
      Check(runtime::WaitUntil([&] { return p.launched.load(std::memory_order_acquire); },
                               "waiting for an event"));
    }
    std::lock_guard lock(p.mu);
    if (p.done) return true;
    for (pjrt::Event& e : p.pending) {
      if (!block && !e.IsReady()) return false;
      Check(e.Await());
    }
    p.pending.clear();
    p.done = true;
    p.done_at = Clock::now();
    return true;
  }
};

StreamEvent* RecordEvent(StreamEvent* event, c10::DeviceIndex index) {
  if (event == nullptr) event = new StreamEvent;
  event->device = DeviceAt(index);
  event->point = std::make_shared<StreamEvent::Point>();
  const auto launch = [point = event->point, device = event->device] {
    {
      std::lock_guard lock(point->mu);
      point->pending = device->live().PendingEvents();
      if (point->pending.empty()) {
        point->done = true;
        point->done_at = Clock::now();
      }
    }
    point->launched.store(true, std::memory_order_release);
    runtime::NotifyWaiters();
  };
  event->device->QueueEmpty() ? launch() : event->device->Enqueue(launch);
  return event;
}

bool QueryEvent(const StreamEvent* event) {
  return event == nullptr || !event->point || StreamEvent::Finish(*event->point, false);
}

void SynchronizeEvent(const StreamEvent* event) {
  if (event == nullptr || !event->point) return;
  StreamEvent::Finish(*event->point, true);
  Check(event->device->CheckIndexRecord());
}

double ElapsedMs(const StreamEvent* start, const StreamEvent* end) {
  TORCH_CHECK(start && start->point && end && end->point,
              "both events must be recorded before their elapsed time is asked");
  StreamEvent::Finish(*start->point, true);
  StreamEvent::Finish(*end->point, true);
  return std::chrono::duration<double, std::milli>(end->point->done_at - start->point->done_at)
      .count();
}

void DestroyEvent(StreamEvent* event) noexcept { delete event; }

}  // namespace tpu::torch_layer
