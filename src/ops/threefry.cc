// Threefry-2x32-20.
#include "ops/threefry.h"

namespace tpu::ops {
namespace {

using hlo::BinaryOp;
using hlo::Function;
using hlo::Value;

Value RotateLeft(Function& fn, Value x, int64_t by) {
  return fn.Binary(BinaryOp::kShiftLeft, x, fn.Constant(x.type(), by)) |
         fn.Binary(BinaryOp::kShiftRightLogical, x, fn.Constant(x.type(), 32 - by));
}

}  // namespace

Lowering::Bits ThreefryBits(Function& fn, const hlo::Values& seed_words, int64_t n, int draw) {
  const hlo::Type type{DType::kU32, {n}};
  const auto spread = [&](Value scalar) { return fn.BroadcastInDim(scalar, type.dims, Dims{}); };
  // The draw number spoils the key by an odd constant (2^32 / golden ratio), so that draws of one
  // element are independent streams.
  const Value k0 = seed_words[0] ^ fn.Scalar(DType::kU32, int64_t{draw} * 0x9E3779B9 & 0xFFFFFFFF);
  const Value k1 = seed_words[1];
  const Value k2 = k0 ^ k1 ^ fn.Scalar(DType::kU32, int64_t{0x1BD11BDA});
  const Value keys[3] = {spread(k0), spread(k1), spread(k2)};

  const Value low = spread(seed_words[2]) + fn.Iota(type, 0);
  const Value carry = fn.Convert(Lt(low, spread(seed_words[2])), DType::kU32);
  Value x0 = low + keys[0];
  Value x1 = spread(seed_words[3]) + carry + keys[1];
  constexpr int64_t kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  for (int block = 0; block < 5; ++block) {
    for (int64_t r : kRotations[block % 2]) {
      x0 = x0 + x1;
      x1 = RotateLeft(fn, x1, r) ^ x0;
    }
    x0 = x0 + keys[(block + 1) % 3];
    x1 = x1 + keys[(block + 2) % 3] + fn.Constant(type, int64_t{block + 1});
  }
  return {x0, x1};
}

}  // namespace tpu::ops
