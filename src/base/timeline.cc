// Timeline: a bounded queue of events under one lock, and the scopes of each thread.
#include "base/timeline.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

namespace tpu::timeline {

constinit std::atomic<bool> internal::recording{false};

namespace {

struct Recorder {
  std::mutex mu;
  std::condition_variable finished;
  std::deque<Event> events;
  size_t capacity = 0;
  // The ticket of events.front(), and what it was at Start. Tickets go on from one recording to the
  // next, so that a launch of an earlier one that finishes late is known as such.
  uint64_t first = 1, first_at_start = 1;
  uint64_t dropped = 0;
  int64_t unfinished = 0;
  // Of every thread that has some: their open annotations.
  std::map<int64_t, std::vector<uint64_t>> annotations;
};

// Never destroyed: the plugin's threads may report while the process ends.
Recorder& R() {
  static Recorder* const recorder = new Recorder;
  return *recorder;
}

struct Operator {
  uint64_t id;
  bool in_backward;
};
thread_local std::vector<Operator> operators;

uint64_t AddTo(Recorder& r, Event event) {
  r.events.push_back(std::move(event));
  if (r.events.size() > r.capacity) {
    r.events.pop_front();
    ++r.first;
    ++r.dropped;
  }
  return r.first + r.events.size() - 1;
}

}  // namespace

void Start(size_t capacity) {
  Recorder& r = R();
  std::lock_guard lock(r.mu);
  r.first += r.events.size();
  r.first_at_start = r.first;
  r.events.clear();
  r.capacity = capacity;
  r.dropped = 0;
  r.unfinished = 0;
  r.annotations.clear();
  internal::recording.store(true, std::memory_order_relaxed);
}

Recorded Stop(std::chrono::milliseconds patience) {
  Recorder& r = R();
  std::unique_lock lock(r.mu);
  r.finished.wait_for(lock, patience, [&] { return r.unfinished <= 0; });
  internal::recording.store(false, std::memory_order_relaxed);
  Recorded out{{std::make_move_iterator(r.events.begin()), std::make_move_iterator(r.events.end())},
               r.dropped};
  r.first += r.events.size();
  std::deque<Event>().swap(r.events);
  r.annotations.clear();
  return out;
}

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

int64_t ThisThread() {
  thread_local const int64_t id = syscall(SYS_gettid);
  return id;
}

uint64_t Add(Event event) {
  Recorder& r = R();
  std::lock_guard lock(r.mu);
  return Recording() ? AddTo(r, std::move(event)) : 0;
}

uint64_t AddUnfinished(Event event) {
  Recorder& r = R();
  std::lock_guard lock(r.mu);
  if (!Recording()) return 0;
  ++r.unfinished;
  return AddTo(r, std::move(event));
}

void Finish(uint64_t ticket) {
  const int64_t now = Now();
  Recorder& r = R();
  std::lock_guard lock(r.mu);
  if (ticket < r.first_at_start) return;  // 0, or of an earlier recording
  if (ticket >= r.first && ticket - r.first < r.events.size()) {
    r.events[ticket - r.first].finished_ns = now;
  }
  if (--r.unfinished == 0) r.finished.notify_all();
}

void PushOperator(uint64_t id, bool in_backward) { operators.push_back({id, in_backward}); }

// A recording may begin inside an operator: its end has no beginning then.
void PopOperator() {
  if (!operators.empty()) operators.pop_back();
}

void PushAnnotation(uint64_t id) {
  std::lock_guard lock(R().mu);
  R().annotations[ThisThread()].push_back(id);
}

void PopAnnotation() {
  std::lock_guard lock(R().mu);
  const auto it = R().annotations.find(ThisThread());
  if (it == R().annotations.end()) return;
  it->second.pop_back();
  if (it->second.empty()) R().annotations.erase(it);
}

Cause CurrentCause() {
  Cause cause;
  if (!operators.empty()) cause.op = operators.back().id;
  std::lock_guard lock(R().mu);
  const auto& annotations = R().annotations;
  if (const auto own = annotations.find(ThisThread()); own != annotations.end()) {
    cause.annotations = own->second;
  } else if (annotations.size() == 1 && !operators.empty() && operators.back().in_backward) {
    cause.annotations = annotations.begin()->second;
  }
  return cause;
}

void Span::Begin(Kind kind, int device, const char* name, int64_t bytes) {
  event_ = std::make_unique<Event>();
  event_->kind = kind;
  event_->device = device;
  event_->thread = ThisThread();
  event_->name = name;
  event_->bytes = bytes;
  event_->cause = CurrentCause();
  event_->start_ns = Now();
}

void Span::End() {
  event_->end_ns = Now();
  Add(std::move(*event_));
}

}  // namespace tpu::timeline
