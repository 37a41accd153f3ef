// Cast.
#include "ops/cast.h"

#include <cmath>
#include <limits>

#include "ops/rows.h"

namespace tpu::ops {

using hlo::Function;
using hlo::Value;

Value Cast(Value a, DType dtype) {
  if (!a.valid() || a.dtype() == dtype) return a;
  Function& fn = *a.function();
  const DType from = a.dtype();
  if (IsBool(dtype)) {
    return fn.Compare(hlo::CompareOp::kNe, a, fn.Constant(a.type(), int64_t{0}));
  }
  if (IsComplex(from) && !IsComplex(dtype)) return Cast(fn.Unary(hlo::UnaryOp::kReal, a), dtype);
  if (IsComplex(dtype) && !IsComplex(from)) {
    const Value real = Cast(a, RealOf(dtype));
    return fn.Binary(hlo::BinaryOp::kComplex, real, fn.Constant(real.type(), 0.0));
  }
  if (IsFloat(from) && IsInteger(dtype) && ItemSize(dtype) < 8) {
    return fn.Convert(fn.Convert(a, DType::kI64), dtype);
  }
  if (dtype == DType::kF8E4M3FN && !IsF8(from)) {  // PyTorch saturates: the type has no infinity
    const Value wide = fn.Convert(a, from == DType::kF64 ? from : DType::kF32);
    const auto bound = [&](double x) { return fn.Scalar(wide.dtype(), x); };
    a = Select(fn.Compare(hlo::CompareOp::kNe, wide, wide), wide,
               fn.Clamp(bound(-448), wide, bound(448)));
  }
  return fn.Convert(a, dtype);
}

namespace {

// Whether a number is one of the type's, by c10::overflows: the types with a sign take what lies in
// their range, those without also negative numbers of no greater size, which wrap.
bool Fits(double x, DType t) {
  if (IsBool(t) || IsF8(t)) return true;
  if (IsComplex(t)) t = RealOf(t);
  if (IsFloat(t)) {
    if (!std::isfinite(x)) return true;
    const double max = t == DType::kF16    ? 65504.0
                       : t == DType::kBF16 ? 0x1.fep127
                       : t == DType::kF32  ? double{std::numeric_limits<float>::max()}
                                           : std::numeric_limits<double>::max();
    return std::abs(x) <= max;
  }
  // Up to the next power of two: the largest 64-bit integers are no doubles.
  const double end = std::ldexp(1.0, static_cast<int>(8 * ItemSize(t)) - !IsUnsigned(t));
  return x < end && (IsUnsigned(t) ? x > -end : x >= -end);
}

}  // namespace

Status CheckFits(std::span<const double> numbers, DType self) {
  for (const double x : numbers) {
    if (Fits(x, self)) continue;
    return InvalidArgument("value cannot be converted to type ", TorchName(self),
                           " without overflow");
  }
  return {};
}

}  // namespace tpu::ops
