// Pooling windows: the arguments of a pooling row as sizes, and the reads of its windows as values.
// What it is not: a reduction. pool.cc and pool_average.cc say what is done with what is read.
#pragma once

#include <functional>

#include "ops/lowering.h"

namespace tpu::ops {

// The last `rank` dimensions of a tensor are pooled; those before them are a batch.
struct PoolWindow {
  size_t rank = 0;
  Dims size, stride, padding, dilation;
  Dims input, output;  // spatial sizes
  int64_t Positions() const { return NumElements(size); }
  // The output windows that hold an input element, at most, along dimension `i`.
  int64_t Covering(size_t i) const { return (size[i] - 1) * dilation[i] / stride[i] + 1; }
  int64_t Covering() const;
};

// Reads kernel_size, stride, padding, dilation and ceil_mode. False (and an error) where they make
// no sense. `input`: all dimensions of the pooled tensor.
bool ReadPoolWindow(Lowering& lw, const Dims& input, size_t rank, PoolWindow* window);

// The batch dimensions of `dims`, then `spatial`.
Dims WithSpatial(const Dims& dims, size_t rank, DimsView spatial);
// A spatial index, i32: iota of dimension `i` of the `spatial` sizes, shaped as them.
hlo::Value SpatialIota(hlo::Function& fn, DimsView spatial, size_t i);
// The row-major index of each position in the plane, i32, shaped as `spatial`.
hlo::Value PlaneIndex(hlo::Function& fn, DimsView spatial);

// Calls `body` with each index of an array of these sizes, last dimension fastest.
void ForEachIndex(DimsView sizes, const std::function<void(const Dims&)>& body);

// Element `offset` (in steps of the dilation) of every window: [batch..., output...]. `padded` is
// PadToWindows of the input.
hlo::Value PadToWindows(const PoolWindow& window, hlo::Value input, hlo::Value padding);
hlo::Value WindowElement(const PoolWindow& window, hlo::Value padded, DimsView offset);

// The other way: for each input element, the value of the window that is `back` windows before the
// last one starting at or before it: [batch..., input...]. Outside: `padding`. `spread` is
// SpreadWindows of the output.
hlo::Value SpreadWindows(const PoolWindow& window, hlo::Value output, hlo::Value padding);
hlo::Value CoveringWindow(const PoolWindow& window, hlo::Value spread, DimsView back);

// --- Adaptive: bin o of n over a dimension of size s is [floor(o s / n), ceil((o + 1) s / n)).
// The windows of a division of `input` into `output` bins; exact only where it is even.
PoolWindow BinWindow(DimsView input, DimsView output);
// i1[n, s]: whether a position is in a bin.
hlo::Value InBin(hlo::Function& fn, int64_t n, int64_t s);

// [planes, flat output] scattered by flat plane index into zeros [planes, flat input]; added where
// `add`, else the last one stays. Both with the batch dimensions before.
hlo::Value ScatterPlanes(hlo::Function& fn, hlo::Value values, hlo::Value index, size_t rank,
                         DimsView spatial, bool add);

}  // namespace tpu::ops
