// Elements of tensors as text and as bytes, and the comparison of two tensors' bytes.
// What it is not: arithmetic. Text must be a value that the element type holds exactly.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "shape/dtype.h"

namespace tpu::cases {

// Appends one value (for complex types: one part) of `dtype`.
Status AppendElement(DType dtype, std::string_view text, std::vector<char>* bytes);
Status AppendNumber(DType dtype, double value, std::vector<char>* bytes);
// The value at `bytes` for messages.
std::string ElementText(DType dtype, const char* bytes);

// What may differ. Everything zero: nothing, not even the sign of a zero.
struct Tolerance {
  double ulp = 0, rtol = 0, atol = 0;
  bool any_zero = false;  // -0.0 for 0.0
};
// Compares `count` elements; the error names the first that differs. NaN equals NaN alone;
// infinities must be equal.
Status CompareElements(DType dtype, const char* got, const char* want, int64_t count,
                       const Tolerance& tolerance);

}  // namespace tpu::cases
