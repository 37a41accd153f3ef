// Between torch's words and the core's: dtypes, and Status as C++ exceptions that become Python
// ones.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include "base/status.h"
#include "shape/dtype.h"

namespace tpu::torch_layer {

// kInvalid for types the device does not have (quantised, bits, float4 ...).
DType FromScalarType(c10::ScalarType t);
c10::ScalarType ToScalarType(DType t);
// As above; raises NotImplementedError naming `what`.
DType SupportedType(c10::ScalarType t, const char* what);

// Throws the exception that PyTorch users expect for the code: IndexError, NotImplementedError,
// torch.OutOfMemoryError, KeyboardInterrupt, RuntimeError. Ok does nothing.
void Throw(const Status& status);
inline void Check(const Status& status) {
  if (!status.ok()) Throw(status);
}
template <class T>
T Unwrap(Result<T> result) {
  Check(result.status());
  return std::move(result).value();
}

}  // namespace tpu::torch_layer
