// One place where threads of the user's wait: interruptible (Ctrl-C), with progress for long waits.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>

#include "base/status.h"

namespace tpu::runtime {

// Set once by the language front. `interrupted` is asked about ten times a second while a user's
// thread waits; true ends the wait with kCancelled (the work goes on). `progress` gets a line to
// show once a wait has lasted over two seconds, and an empty one at its end.
struct WaitHooks {
  std::function<bool()> interrupted;
  std::function<void(const std::string&)> progress;
  // A lock of the language that this thread holds (the GIL) is let go for the wait: others may need
  // it to get there. What `release` returns goes to `restore`.
  std::function<void*()> release;
  std::function<void(void*)> restore;
};
void SetWaitHooks(WaitHooks hooks);
// The calling thread is this library's own: its waits ask no hooks.
void MarkOwnThread();

// Waits until `ready()` holds. Whoever makes it true calls NotifyWaiters afterwards.
Status WaitUntil(const std::function<bool()>& ready, const std::string& what);
// As above, for the threads of this library: no hooks.
void WaitUntilUninterrupted(const std::function<bool()>& ready);
void NotifyWaiters();

}  // namespace tpu::runtime
