// Dtypes and errors.
#include "convert.h"

#include <c10/core/DeviceType.h>

#include "interrupt.h"

namespace tpu::torch_layer {

DType FromScalarType(c10::ScalarType t) {
  switch (t) {
    case c10::ScalarType::Bool: return DType::kBool;
    case c10::ScalarType::Byte: return DType::kU8;
    case c10::ScalarType::UInt16: return DType::kU16;
    case c10::ScalarType::UInt32: return DType::kU32;
    case c10::ScalarType::UInt64: return DType::kU64;
    case c10::ScalarType::Char: return DType::kI8;
    case c10::ScalarType::Short: return DType::kI16;
    case c10::ScalarType::Int: return DType::kI32;
    case c10::ScalarType::Long: return DType::kI64;
    case c10::ScalarType::Float8_e4m3fn: return DType::kF8E4M3FN;
    case c10::ScalarType::Float8_e5m2: return DType::kF8E5M2;
    case c10::ScalarType::Float8_e4m3fnuz: return DType::kF8E4M3FNUZ;
    case c10::ScalarType::Float8_e5m2fnuz: return DType::kF8E5M2FNUZ;
    case c10::ScalarType::Half: return DType::kF16;
    case c10::ScalarType::BFloat16: return DType::kBF16;
    case c10::ScalarType::Float: return DType::kF32;
    case c10::ScalarType::Double: return DType::kF64;
    case c10::ScalarType::ComplexFloat: return DType::kC64;
    case c10::ScalarType::ComplexDouble: return DType::kC128;
    default: return DType::kInvalid;  // types of later versions too
  }
}

c10::ScalarType ToScalarType(DType t) {
  switch (t) {
    case DType::kBool: return c10::ScalarType::Bool;
    case DType::kU8: return c10::ScalarType::Byte;
    case DType::kU16: return c10::ScalarType::UInt16;
    case DType::kU32: return c10::ScalarType::UInt32;
    case DType::kU64: return c10::ScalarType::UInt64;
    case DType::kI8: return c10::ScalarType::Char;
    case DType::kI16: return c10::ScalarType::Short;
    case DType::kI32: return c10::ScalarType::Int;
    case DType::kI64: return c10::ScalarType::Long;
    case DType::kF8E4M3FN: return c10::ScalarType::Float8_e4m3fn;
    case DType::kF8E5M2: return c10::ScalarType::Float8_e5m2;
    case DType::kF8E4M3FNUZ: return c10::ScalarType::Float8_e4m3fnuz;
    case DType::kF8E5M2FNUZ: return c10::ScalarType::Float8_e5m2fnuz;
    case DType::kF16: return c10::ScalarType::Half;
    case DType::kBF16: return c10::ScalarType::BFloat16;
    case DType::kF32: return c10::ScalarType::Float;
    case DType::kF64: return c10::ScalarType::Double;
    case DType::kC64: return c10::ScalarType::ComplexFloat;
    case DType::kC128: return c10::ScalarType::ComplexDouble;
    case DType::kInvalid: break;
  }
  return c10::ScalarType::Undefined;
}

DType SupportedType(c10::ScalarType t, const char* what) {
  const DType d = FromScalarType(t);
  TORCH_CHECK_NOT_IMPLEMENTED(d != DType::kInvalid, what, ": tpu has no ", c10::toString(t),
                              " tensors");
  return d;
}

void Throw(const Status& status) {
  const std::string text = status.ToString();
  switch (status.code()) {
    case Code::kOk: return;
    case Code::kOutOfRange: TORCH_CHECK_INDEX(false, text);
    case Code::kUnimplemented: TORCH_CHECK_NOT_IMPLEMENTED(false, text);
    case Code::kResourceExhausted: TORCH_CHECK_WITH(OutOfMemoryError, false, text);
    case Code::kCancelled: ThrowInterrupt(text);
    default: TORCH_CHECK(false, text);
  }
}

}  // namespace tpu::torch_layer
