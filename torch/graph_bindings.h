// Bindings of modes, graphs, the TorchScript compiler and ahead-of-time compiles.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace tpu::torch_layer {
void BindGraphs(pybind11::module& m);
}
