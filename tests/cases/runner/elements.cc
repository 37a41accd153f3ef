// Encoding, decoding and comparing elements.
#include "runner/elements.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>

namespace tpu::cases {
namespace {

// A float type of at most 16 bits.
struct SmallFloat {
  int mantissa, bias, bits;
  bool infinities;     // the largest exponent holds infinities and NaNs, as IEEE's does
  bool nan_at_minus0;  // the only NaN is what would be -0.0
};

SmallFloat SmallFloatOf(DType dtype) {
  switch (dtype) {
    case DType::kF16: return {10, 15, 16, true, false};
    case DType::kBF16: return {7, 127, 16, true, false};
    case DType::kF8E5M2: return {2, 15, 8, true, false};
    case DType::kF8E4M3FN: return {3, 7, 8, false, false};
    case DType::kF8E5M2FNUZ: return {2, 16, 8, false, true};
    default: return {3, 8, 8, false, true};  // f8E4M3FNUZ
  }
}

double DecodeSmall(const SmallFloat& f, uint32_t code) {
  const uint32_t sign = code >> (f.bits - 1) & 1;
  const uint32_t magnitude = code & ((1u << (f.bits - 1)) - 1);
  const int top = (1 << (f.bits - 1 - f.mantissa)) - 1;
  const int exponent = static_cast<int>(magnitude >> f.mantissa);
  const uint32_t fraction = magnitude & ((1u << f.mantissa) - 1);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  double value = exponent == 0
                     ? std::ldexp(fraction, 1 - f.bias - f.mantissa)
                     : std::ldexp(fraction + (1u << f.mantissa), exponent - f.bias - f.mantissa);
  if (f.nan_at_minus0) {
    if (sign && magnitude == 0) return nan;
  } else if (f.infinities) {
    if (exponent == top) value = fraction == 0 ? HUGE_VAL : nan;
  } else if (magnitude == (1u << (f.bits - 1)) - 1) {
    return nan;
  }
  return sign ? -value : value;
}

// The code of each value that a small type holds.
const std::map<double, uint32_t>& CodesOf(DType dtype) {
  static std::map<DType, std::map<double, uint32_t>> tables;
  auto& table = tables[dtype];
  if (!table.empty()) return table;
  const SmallFloat f = SmallFloatOf(dtype);
  for (uint32_t code = 0; code < 1u << f.bits; ++code) {
    const double value = DecodeSmall(f, code);
    if (!std::isnan(value)) table.emplace(value, code);  // 0.0 comes before -0.0
  }
  return table;
}

uint32_t LoadBits(DType dtype, const char* bytes) {
  uint32_t code = 0;
  std::memcpy(&code, bytes, static_cast<size_t>(ItemSize(dtype)));
  return code;
}

template <class T>
T Load(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class T>
Status Append(T value, std::vector<char>* bytes) {
  const char* const p = reinterpret_cast<const char*>(&value);
  bytes->insert(bytes->end(), p, p + sizeof value);
  return {};
}

// `dtype` real.
double LoadFloat(DType dtype, const char* bytes) {
  if (dtype == DType::kF32) return Load<float>(bytes);
  if (dtype == DType::kF64) return Load<double>(bytes);
  return DecodeSmall(SmallFloatOf(dtype), LoadBits(dtype, bytes));
}

Status NotHeld(DType dtype, double value) {
  return InvalidArgument(TorchName(dtype), " does not hold ", value, " exactly");
}

Status AppendFloat(DType dtype, double value, std::vector<char>* bytes) {
  if (dtype == DType::kF64) return Append(value, bytes);
  if (dtype == DType::kF32) return Append(static_cast<float>(value), bytes);
  const SmallFloat f = SmallFloatOf(dtype);
  uint32_t code = 0;
  if (std::isnan(value)) {
    code = f.nan_at_minus0 ? 1u << (f.bits - 1)
           : f.infinities  ? ((1u << (f.bits - 1)) - 1) & ~((1u << (f.mantissa - 1)) - 1)
                           : (1u << (f.bits - 1)) - 1;
  } else if (value == 0 && std::signbit(value)) {
    if (f.nan_at_minus0) return NotHeld(dtype, value);
    code = 1u << (f.bits - 1);
  } else {
    const auto it = CodesOf(dtype).find(value);
    if (it == CodesOf(dtype).end()) return NotHeld(dtype, value);
    code = it->second;
  }
  bytes->insert(bytes->end(), reinterpret_cast<char*>(&code),
                reinterpret_cast<char*>(&code) + ItemSize(dtype));
  return {};
}

Status AppendInteger(DType dtype, uint64_t bits, std::vector<char>* bytes) {
  const char* const p = reinterpret_cast<const char*>(&bits);  // little-endian
  bytes->insert(bytes->end(), p, p + ItemSize(dtype));
  return {};
}

int64_t LoadSigned(DType dtype, const char* bytes) {
  switch (dtype) {
    case DType::kI8: return Load<int8_t>(bytes);
    case DType::kI16: return Load<int16_t>(bytes);
    case DType::kI32: return Load<int32_t>(bytes);
    default: return Load<int64_t>(bytes);
  }
}

// How many values of the type lie from `a` to `b`.
double UlpDistance(DType dtype, const char* a, const char* b) {
  const auto rank = [&](const char* p) {
    uint64_t bits = 0;
    std::memcpy(&bits, p, static_cast<size_t>(ItemSize(dtype)));
    const uint64_t sign = uint64_t{1} << (ItemSize(dtype) * 8 - 1);
    return bits & sign ? -static_cast<double>(bits ^ sign) : static_cast<double>(bits);
  };
  return std::abs(rank(a) - rank(b));
}

bool FloatsAgree(DType dtype, const char* got, const char* want, const Tolerance& tolerance) {
  const double g = LoadFloat(dtype, got), w = LoadFloat(dtype, want);
  if (std::isnan(g) || std::isnan(w)) return std::isnan(g) && std::isnan(w);
  if (g == w) return g != 0 || tolerance.any_zero || std::signbit(g) == std::signbit(w);
  if (std::isinf(g) || std::isinf(w)) return false;
  return std::abs(g - w) <= tolerance.atol + tolerance.rtol * std::abs(w) ||
         UlpDistance(dtype, got, want) <= tolerance.ulp;
}

}  // namespace

Status AppendNumber(DType dtype, double value, std::vector<char>* bytes) {
  const DType part = RealOf(dtype);
  if (IsFloat(part)) return AppendFloat(part, value, bytes);
  if (IsBool(dtype)) return AppendInteger(dtype, value != 0, bytes);
  return AppendInteger(dtype, static_cast<uint64_t>(static_cast<int64_t>(value)), bytes);
}

Status AppendElement(DType dtype, std::string_view view, std::vector<char>* bytes) {
  const std::string text(view);
  char* end = nullptr;
  errno = 0;
  if (IsIntegral(dtype)) {
    const bool negative = text.starts_with('-');
    const uint64_t bits = negative ? static_cast<uint64_t>(std::strtoll(text.c_str(), &end, 10))
                                   : std::strtoull(text.c_str(), &end, 10);
    if (text.empty() || *end != '\0' || errno != 0) {
      return InvalidArgument("not a ", TorchName(dtype), ": ", text);
    }
    TPU_RETURN_IF_ERROR(AppendInteger(dtype, bits, bytes));
    const std::string back = ElementText(dtype, bytes->data() + bytes->size() - ItemSize(dtype));
    if (back != text) return InvalidArgument(TorchName(dtype), " does not hold ", text);
    return {};
  }
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return InvalidArgument("not a number: ", text);
  return AppendNumber(dtype, value, bytes);
}

std::string ElementText(DType dtype, const char* bytes) {
  if (IsBool(dtype) || IsUnsigned(dtype)) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes, static_cast<size_t>(ItemSize(dtype)));
    return std::to_string(bits);
  }
  if (IsInteger(dtype)) return std::to_string(LoadSigned(dtype, bytes));
  const DType part = RealOf(dtype);
  char text[64];
  std::snprintf(text, sizeof text, "%.9g", LoadFloat(part, bytes));
  if (!IsComplex(dtype)) return text;
  return std::string(text) + " + " + ElementText(part, bytes + ItemSize(part)) + "i";
}

Status CompareElements(DType dtype, const char* got, const char* want, int64_t count,
                       const Tolerance& tolerance) {
  const auto size = static_cast<size_t>(ItemSize(dtype));
  const DType part = RealOf(dtype);
  const auto part_size = static_cast<size_t>(ItemSize(part));
  int64_t first = -1, different = 0;
  for (int64_t i = 0; i < count; ++i) {
    const char *const g = got + size_t(i) * size, *const w = want + size_t(i) * size;
    bool same = true;
    if (IsIntegral(dtype)) {
      same = std::memcmp(g, w, size) == 0;
    } else {
      for (size_t at = 0; at < size; at += part_size) {
        same &= FloatsAgree(part, g + at, w + at, tolerance);
      }
    }
    if (same) continue;
    ++different;
    if (first < 0) first = i;
  }
  if (different == 0) return {};
  const size_t at = size_t(first) * size;
  return Internal(different, " of ", count, " elements differ; element ", first, " is ",
                  ElementText(dtype, got + at), ", expected ", ElementText(dtype, want + at));
}

}  // namespace tpu::cases
