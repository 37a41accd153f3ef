// The eager mode of a thread.
#pragma once

#include "base/flags.h"

namespace tpu::exec {

// The flag's, unless this thread has set its own.
EagerMode CurrentMode();
// Sets this thread's mode; returns what it was, for restoring (-1: the flag's).
int ExchangeThreadMode(int mode);

}  // namespace tpu::exec
