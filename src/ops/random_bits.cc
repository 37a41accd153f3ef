// Uniform, normal and Bernoulli variates from 32-bit words.
#include "ops/random_bits.h"

#include <cmath>
#include <numbers>

namespace tpu::ops {
namespace {

using hlo::BinaryOp;
using hlo::Function;
using hlo::UnaryOp;
using hlo::Value;

Value ShiftRight(Function& fn, Value word, int64_t by) {
  return fn.Binary(BinaryOp::kShiftRightLogical, word, Like(word, by));
}

// The top `count` (at most 24) bits of a word as a float32 integer. Through signed integers, which
// every vector unit converts in one instruction.
Value TopBits(Function& fn, Value word, int64_t count) {
  return fn.Convert(fn.Convert(ShiftRight(fn, word, 32 - count), DType::kI32), DType::kF32);
}

// 53 bits as a float64 integer: 27 of one word, 26 of the other.
Value Bits53(Function& fn, const Lowering::Bits& bits) {
  const auto part = [&](Value word, int64_t count) {
    return fn.Convert(fn.Convert(ShiftRight(fn, word, 32 - count), DType::kI32), DType::kF64);
  };
  return part(bits.high, 27) * 67108864.0 + part(bits.low, 26);
}

// A word as a float32 in (0, 1): both halves converted exactly, so that the sum is rounded once and
// small values keep all their bits. The largest rounds to 1 and is kept below it.
Value OpenUnit32(Function& fn, Value word) {
  const auto exact = [&](Value w) { return fn.Convert(fn.Convert(w, DType::kI32), DType::kF32); };
  const Value high = exact(ShiftRight(fn, word, 16));
  const Value low = exact(word & Like(word, int64_t{0xFFFF}));
  const Value u = high * std::ldexp(1.0, -16) + (low + 0.5) * std::ldexp(1.0, -32);
  return Min(u, Like(u, 1.0 - std::ldexp(1.0, -24)));
}

}  // namespace

Value UniformFloat(Lowering& lw, const Lowering::Bits& bits, DType dtype) {
  Function& fn = lw.fn();
  if (dtype == DType::kF64) return Bits53(fn, bits) * std::ldexp(1.0, -53);
  const int count = dtype == DType::kF16 ? 11 : dtype == DType::kBF16 ? 8 : 24;
  return TopBits(fn, bits.low, count) * std::ldexp(1.0, -count);
}

Value UniformOpen(Lowering& lw, const Lowering::Bits& bits, DType dtype) {
  if (dtype != DType::kF64) return OpenUnit32(lw.fn(), bits.low);
  const Value u = (Bits53(lw.fn(), bits) + 0.5) * std::ldexp(1.0, -53);
  return Min(u, Like(u, 1.0 - std::ldexp(1.0, -53)));
}

Value Bernoulli(Lowering& lw, const Lowering::Bits& bits, Value p) {
  if (!p.valid()) return {};
  return Lt(UniformFloat(lw, bits, p.dtype() == DType::kF64 ? DType::kF64 : DType::kF32), p);
}

// Box and Muller, one of the pair: the other would double the width of what is drawn and give an
// odd count a special case. Angles about 0, so that the cosine's argument is small.
Value NormalFrom(Lowering& lw, const Lowering::Bits& first, const Lowering::Bits& second,
                 DType dtype) {
  Function& fn = lw.fn();
  Value radius, turn;
  if (dtype == DType::kF64) {
    radius = UniformOpen(lw, first, dtype);
    turn = UniformFloat(lw, second, dtype);
  } else {
    radius = OpenUnit32(fn, first.low);
    turn = TopBits(fn, first.high, 24) * std::ldexp(1.0, -24);
  }
  const Value angle = (turn - 0.5) * (2.0 * std::numbers::pi);
  return Sqrt(Log(radius) * -2.0) * fn.Unary(UnaryOp::kCosine, angle);
}

Value StandardNormal(Lowering& lw, int64_t n, DType dtype, int draw) {
  const Lowering::Bits first = lw.RandomBits(n, draw);
  const bool two = DrawsOfStandardNormal(dtype) == 2;
  return NormalFrom(lw, first, two ? lw.RandomBits(n, draw + 1) : Lowering::Bits(), dtype);
}

Value Word64(Lowering& lw, const Lowering::Bits& bits) {
  Function& fn = lw.fn();
  const Value high = fn.Convert(bits.high, DType::kU64);
  return fn.Binary(BinaryOp::kShiftLeft, high, Like(high, int64_t{32})) |
         fn.Convert(bits.low, DType::kU64);
}

}  // namespace tpu::ops
