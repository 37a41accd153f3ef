// Sliding windows and their transpose: what im2col, col2im and unfold's gradient share.
#pragma once

#include "hlo/hlo.h"

namespace tpu::ops {

// Dimension `dim` becomes two, in its place: `kernel`, then `count`. Element (k, i) is the
// operand's k * dilation + i * step.
hlo::Value Windows(hlo::Value a, int64_t dim, int64_t kernel, int64_t count, int64_t step,
                   int64_t dilation);
// The transpose: dimensions `kernel_dim` and `count_dim` become one of `length`, where count_dim
// was, in which element (k, i) is added at k * dilation + i * step.
hlo::Value OverlapAdd(hlo::Value a, int64_t kernel_dim, int64_t count_dim, int64_t length,
                      int64_t step, int64_t dilation);

}  // namespace tpu::ops
