// Bits of numbers: mantissa and exponent, hashes.
// What it is not: arithmetic on integers (binary.cc).
#include "ops/cast.h"
#include "ops/families.h"
#include "ops/lowering.h"
#include "ops/reduction.h"
#include "ops/rows.h"

namespace tpu::ops {
namespace {

using hlo::BinaryOp;
using hlo::Function;
using hlo::Monoid;
using hlo::Value;
using hlo::Values;

// x = mantissa * 2^exponent, |mantissa| in [0.5, 1). Zeros, infinities and NaN stay with exponent
// 0. A row of its own although PyTorch composes it: what it is composed of has a CPU kernel only.
Values Frexp(Lowering& lw) {
  Function& fn = lw.fn();
  const Value given = lw.Tensor("self");
  if (!given.valid()) return Values(2);
  if (!IsFloat(given.dtype())) {
    lw.Fail(Unimplemented("torch.frexp() only supports floating-point dtypes"));
    return Values(2);
  }
  const DType t = OpMathType(given.dtype());
  const bool wide = t == DType::kF64;
  const Value x = Cast(given, t), bits = fn.BitcastConvert(x, wide ? DType::kU64 : DType::kU32);
  const int64_t shift = wide ? 52 : 23, mask = wide ? 0x7FF : 0xFF, bias = wide ? 1022 : 126;
  const auto number = [&](int64_t v) { return Like(bits, v); };
  const Value raw = fn.Binary(BinaryOp::kShiftRightLogical, bits, number(shift)) & number(mask);
  const Value exponent = fn.Convert(raw, DType::kI32) - static_cast<double>(bias);
  const Value kept = bits & ~number(mask << shift);
  const Value mantissa = fn.BitcastConvert(kept | number(bias << shift), t);
  const Value regular = Ne(x, 0.0) & fn.Unary(hlo::UnaryOp::kIsFinite, x);
  return {Cast(fn.Select(regular, mantissa, x), given.dtype()),
          fn.Select(regular, exponent, Like(exponent, int64_t{0}))};
}

// The bits of all elements (of floats: as float64) put together by exclusive or.
Values HashTensor(Lowering& lw) {
  Function& fn = lw.fn();
  const Value a = lw.Tensor("self");
  if (!a.valid()) return {a};
  if (lw.Int("mode") != 0) return {lw.Fail(InvalidArgument("hash_tensor: mode must be 0"))};
  const Value bits = IsFloat(a.dtype()) ? fn.BitcastConvert(Cast(a, DType::kF64), DType::kU64)
                                        : fn.BitcastConvert(Cast(a, DType::kI64), DType::kU64);
  const Reduction r = ReductionOf(lw);
  const Values out = fn.Reduce({bits}, {fn.Scalar(DType::kU64, int64_t{0})}, r.dims,
                               [](Function&, const Values& v) { return Values{v[0] ^ v[1]}; });
  return {r.Shaped(out[0])};
}

constexpr OpDef kRows[] = {
    {.name = "aten::frexp.Tensor",
     .kind = Kind::kUnary,
     .lower = Frexp,
     .in = In::kSelf,
     .out = Out::kAsLowered},
    {.name = "aten::hash_tensor", .kind = Kind::kReduce, .lower = HashTensor},
};

}  // namespace

std::span<const OpDef> BitsOps() { return kRows; }

}  // namespace tpu::ops
