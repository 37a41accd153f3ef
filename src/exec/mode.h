// The eager mode of a thread.
#pragma once

#include "base/flags.h"

namespace tpu::exec {

// This thread's, else what the language front says of it, else the flag's.
EagerMode CurrentMode();
// Sets this thread's mode; returns what it was, for restoring (-1: none).
int ExchangeThreadMode(int mode);
// A front whose work moves between threads (autograd) keeps the mode with it: `mode` gives that of
// the calling thread's work, or -1.
void SetModeSource(int (*mode)());

}  // namespace tpu::exec
