// Cast.
#include "ops/cast.h"

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

}  // namespace tpu::ops
