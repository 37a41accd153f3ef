// Waiting: one condition variable for all user waits, woken by whoever produces a value.
#include "runtime/wait.h"

#include <atomic>
#include <chrono>

#include "base/timeline.h"

namespace tpu::runtime {
namespace {

struct Waiting {
  std::mutex mu;
  std::condition_variable wake;
  std::atomic<int> waiters{0};
  std::mutex hooks_mu;
  WaitHooks hooks;
};
Waiting& W() {
  static Waiting* const w = new Waiting;
  return *w;
}

WaitHooks Hooks() {
  std::lock_guard lock(W().hooks_mu);
  return W().hooks;
}

constexpr auto kSlice = std::chrono::milliseconds(100);
constexpr auto kShowAfter = std::chrono::seconds(2);

}  // namespace

void SetWaitHooks(WaitHooks hooks) {
  std::lock_guard lock(W().hooks_mu);
  W().hooks = std::move(hooks);
}

void NotifyWaiters() {
  if (W().waiters.load(std::memory_order_seq_cst) == 0) return;
  {
    std::lock_guard lock(W().mu);
  }  // a waiter between its check and its sleep has the lock
  W().wake.notify_all();
}

namespace {
thread_local bool own_thread = false;
}

void MarkOwnThread() { own_thread = true; }

Status WaitUntil(const std::function<bool()>& ready, const std::string& what) {
  if (ready()) return {};
  if (own_thread) {
    WaitUntilUninterrupted(ready);
    return {};
  }
  const timeline::Span span(timeline::Kind::kWait, -1, what);
  Waiting& w = W();
  const auto start = std::chrono::steady_clock::now();
  WaitHooks hooks = Hooks();
  bool shown = false, interrupted = false;
  void* const released = hooks.release ? hooks.release() : nullptr;
  w.waiters.fetch_add(1, std::memory_order_seq_cst);
  {
    std::unique_lock lock(w.mu);
    while (!ready()) {
      w.wake.wait_for(lock, kSlice);
      if (ready()) break;
      lock.unlock();  // hooks may take the GIL
      if (hooks.interrupted && hooks.interrupted()) interrupted = true;
      const auto waited = std::chrono::steady_clock::now() - start;
      if (hooks.progress && waited > kShowAfter) {
        shown = true;
        const auto s = std::chrono::duration_cast<std::chrono::seconds>(waited).count();
        hooks.progress(what + " (" + std::to_string(s) + " s)");
      }
      lock.lock();
      if (interrupted) break;
    }
  }
  w.waiters.fetch_sub(1, std::memory_order_seq_cst);
  if (shown) hooks.progress("");
  if (hooks.restore) hooks.restore(released);
  if (interrupted) return {Code::kCancelled, "interrupted while " + what};
  return {};
}

void WaitUntilUninterrupted(const std::function<bool()>& ready) {
  Waiting& w = W();
  w.waiters.fetch_add(1, std::memory_order_seq_cst);
  std::unique_lock lock(w.mu);
  while (!ready()) w.wake.wait_for(lock, kSlice);
  lock.unlock();
  w.waiters.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace tpu::runtime
