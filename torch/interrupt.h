// Ctrl-C during a wait. The Python binding knows how to raise it; this library has no Python.
#pragma once

#include <functional>
#include <string>

namespace tpu::torch_layer {

// Set by the binding: throws the exception that stands for KeyboardInterrupt.
void SetInterruptThrower(std::function<void()> thrower);
[[noreturn]] void ThrowInterrupt(const std::string& text);

}  // namespace tpu::torch_layer
