// Timeline: what the runtime did and when, kept while a profiler asks for it. Off by default; off,
// it costs one relaxed load where something could be recorded.
// What it is not: a counter (base/counters.h), nor a format. Whoever records makes tracks of it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tpu::timeline {

enum class Kind : uint8_t {
  kLaunch,   // one execution of a program
  kCompile,  // of a program, on a compile thread
  kLoad,     // of a program, from disk
  kUpload,   // host to device
  kRead,     // device to host
  kWait,     // a thread waits for a device, a compile or the queue
};

// On whose behalf: the profiler's ids of the operator and of the user's annotations around it,
// outermost first.
struct Cause {
  uint64_t op = 0;  // 0: none
  std::vector<uint64_t> annotations;
};

struct Event {
  Kind kind = Kind::kLaunch;
  int device = -1;          // -1: of no device
  int64_t thread = 0;       // the system's id of the thread that did it
  bool queued = false;      // launches: made by a device's queue, later than asked for
  std::string name;         // the operator, the program, what was waited for
  std::string detail;       // dtypes and shapes
  int64_t bytes = 0;        // of transfers
  int64_t start_ns = 0;     // since the epoch, on the system's clock
  int64_t end_ns = 0;       // when the call returned
  int64_t finished_ns = 0;  // launches: when the device had the results; 0 if it never told
  Cause cause;
};

namespace internal {
extern std::atomic<bool> recording;
}
inline bool Recording() { return internal::recording.load(std::memory_order_relaxed); }

// Starts with nothing recorded, and keeps the newest `capacity` events.
void Start(size_t capacity);
struct Recorded {
  std::vector<Event> events;
  uint64_t dropped = 0;  // older ones, for want of room
};
// Ends it. Waits up to `patience` for launches that have not finished.
Recorded Stop(std::chrono::milliseconds patience);

int64_t Now();
int64_t ThisThread();

// Records; gives what Finish takes. Both do nothing unless recording.
uint64_t Add(Event event);
// `event` is a launch that will finish: Finish is called once, from any thread.
uint64_t AddUnfinished(Event event);
void Finish(uint64_t ticket);

// The profiler's scopes of the calling thread. An operator of a backward pass runs on a thread of
// autograd's, where its user annotated nothing: it takes the annotations of the one thread that has
// some open, if there is one such.
void PushOperator(uint64_t id, bool in_backward);
void PopOperator();
void PushAnnotation(uint64_t id);
void PopAnnotation();
Cause CurrentCause();

// Records what lasts as long as it lives. Made only where there is something to wait for or do.
class Span {
 public:
  Span(Kind kind, int device, const char* name, int64_t bytes = 0) {
    if (Recording()) Begin(kind, device, name, bytes);
  }
  Span(Kind kind, int device, const std::string& name) : Span(kind, device, name.c_str()) {}
  ~Span() {
    if (event_) End();
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  // On whose behalf, if not the calling thread's operator's.
  void SetCause(const Cause& cause) {
    if (event_) event_->cause = cause;
  }

 private:
  void Begin(Kind kind, int device, const char* name, int64_t bytes);
  void End();
  std::unique_ptr<Event> event_;  // null: not recording
};

}  // namespace tpu::timeline
