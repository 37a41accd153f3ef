// The eager mode of a thread's work: set on the thread that calls backward(), it holds on the
// autograd engine's threads too.
#pragma once

namespace tpu::torch_layer {

// Sets the mode of this thread's work; returns what it was, for restoring (-1: the flag's).
int ExchangeWorkMode(int mode);

}  // namespace tpu::torch_layer
