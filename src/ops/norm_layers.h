// Small things that normalisation rows share.
#pragma once

#include <string_view>

#include "hlo/hlo.h"
#include "ops/lowering.h"

namespace tpu::ops {

// A tensor in the type its operator computes in: float32 for half types. Invalid if None.
hlo::Value WideTensor(Lowering& lw, std::string_view name);
hlo::Value OptionalTensor(Lowering& lw, std::string_view name, DType dtype);

// Sums and means over `dims`, which stay as dimensions of size 1.
hlo::Value SumKeep(hlo::Value a, DimsView dims);
hlo::Value MeanKeep(hlo::Value a, DimsView dims);

// Mean and (biased) variance over `dims`, which stay as dimensions of size 1. Two passes: the sum
// of squares of what is left after the mean, as float32 needs for data far from 0.
struct Moments {
  hlo::Value mean, variance;
};
Moments MomentsKeep(hlo::Value a, DimsView dims);

// The number of elements that `dims` span.
int64_t Span(hlo::Value a, DimsView dims);

}  // namespace tpu::ops
