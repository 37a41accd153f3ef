// From random bits to uniform, normal and Bernoulli variates: shared by every op that draws.
// What it is not: the generator (ops/threefry.h) nor the ops themselves (ops/random.cc).
// Everything is one-dimensional, as Lowering::RandomBits gives it; callers reshape.
#pragma once

#include "hlo/hlo.h"
#include "ops/lowering.h"

namespace tpu::ops {

// Uniform on [0, 1), in OpMathType(dtype), with exactly as many bits as `dtype` has (float16 11,
// bfloat16 8, float32 24, float64 53), so that the value rounds to no other and never to 1.
hlo::Value UniformFloat(Lowering& lw, const Lowering::Bits& bits, DType dtype);

// Uniform on (0, 1), float32 or float64 (`dtype` of half types: float32): fine near 0, for
// logarithms. The smallest value is 2^-33 or 2^-54. One `word` for float32; both for float64.
hlo::Value UniformOpen(Lowering& lw, const Lowering::Bits& bits, DType dtype);

// True with probability `p`: a scalar or f[n], float32 or float64. 0 never is, 1 always.
hlo::Value Bernoulli(Lowering& lw, const Lowering::Bits& bits, hlo::Value p);

// n standard normal variates in OpMathType(dtype), |x| up to 6.7 (float32) or 8.6 (float64).
// Takes draws `draw` and, for float64, `draw + 1` of the call.
hlo::Value StandardNormal(Lowering& lw, int64_t n, DType dtype, int draw = 0);
constexpr int DrawsOfStandardNormal(DType dtype) { return dtype == DType::kF64 ? 2 : 1; }

// The same from given bits; float32 takes `first` alone.
hlo::Value NormalFrom(Lowering& lw, const Lowering::Bits& first, const Lowering::Bits& second,
                      DType dtype);

// The two words as one ui64.
hlo::Value Word64(Lowering& lw, const Lowering::Bits& bits);

}  // namespace tpu::ops
