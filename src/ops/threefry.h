// Counter-based random bits in 32-bit operations: the same stream on every plugin and in every
// mode.
#pragma once

#include "hlo/hlo.h"
#include "ops/lowering.h"

namespace tpu::ops {

// `seed_words`: seed low, seed high, offset low, offset high (ui32 scalars). Element i encrypts the
// counter offset + i under the key (seed, draw) with Threefry-2x32, 20 rounds.
// Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
Lowering::Bits ThreefryBits(hlo::Function& fn, const hlo::Values& seed_words, int64_t n, int draw);

}  // namespace tpu::ops
