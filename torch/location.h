// The user's line that a call comes from, for errors and explanations. Only asked on a miss, in
// debug mode and on errors. This library has no Python: the binding knows how to look.
#pragma once

#include <string>

namespace tpu::torch_layer {

void SetLocator(std::string (*locator)());
// "train.py:12"; empty where no Python runs (the autograd thread).
std::string UserLocation();

}  // namespace tpu::torch_layer
