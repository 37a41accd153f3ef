// Types, attributes and literals as MLIR text.
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <type_traits>

#include "hlo/function_impl.h"

namespace tpu::hlo {

std::string ToMlir(const Type& type) {
  std::string out = "tensor<";
  for (int64_t d : type.dims) {
    out += std::to_string(d);
    out += 'x';
  }
  out += MlirName(type.dtype);
  out += '>';
  return out;
}

std::string ToString(const Type& type) {
  return std::string(TorchName(type.dtype)) + tpu::ToString(type.dims);
}

std::string ListText(DimsView values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(values[i]);
  }
  out += ']';
  return out;
}

void AppendField(std::string* out, std::string_view name, DimsView values) {
  if (values.empty()) return;
  *out += name;
  *out += " = ";
  *out += ListText(values);
  *out += ", ";
}

Attributes& Attributes::Text(std::string_view name, std::string_view value) {
  if (!text_.empty()) text_ += ", ";
  text_ += name;
  text_ += " = ";
  text_ += value;
  return *this;
}

Attributes& Attributes::I64(std::string_view name, int64_t value) {
  return Text(name, std::to_string(value) + " : i64");
}

Attributes& Attributes::Bool(std::string_view name, bool value) {
  return Text(name, value ? "true" : "false");
}

Attributes& Attributes::Array(std::string_view name, DimsView values) {
  if (values.empty()) return Text(name, "array<i64>");
  std::string list = ListText(values);
  return Text(name, "array<i64: " + list.substr(1, list.size() - 2) + ">");
}

Attributes& Attributes::String(std::string_view name, std::string_view value) {
  std::string quoted = "\"";
  for (char c : value) {
    auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F && c != '"' && c != '\\') {
      quoted += c;
    } else {
      char hex[4];
      std::snprintf(hex, sizeof(hex), "\\%02X", byte);
      quoted += hex;
    }
  }
  quoted += '"';
  return Text(name, quoted);
}

Attributes& Attributes::Padding(std::string_view name, std::span<const Window> windows) {
  std::string rows;
  for (const Window& window : windows) {
    if (!rows.empty()) rows += ", ";
    rows += '[' + std::to_string(window.pad_low) + ", " + std::to_string(window.pad_high) + ']';
  }
  std::string dense = windows.empty() ? "dense<>" : "dense<[" + rows + "]>";
  return Text(name, dense + " : tensor<" + std::to_string(windows.size()) + "x2xi64>");
}

Attributes& Attributes::Windows(std::string_view name, std::span<const Window> windows,
                                int64_t Window::* field) {
  Dims values;
  for (const Window& window : windows) values.push_back(window.*field);
  return Array(name, values);
}

namespace {

// MLIR's float literals need a point: 1e+20 is 1.0e+20.
std::string WithPoint(std::string text) {
  if (text.find('.') != std::string::npos) return text;
  size_t exponent = text.find('e');
  text.insert(exponent == std::string::npos ? text.size() : exponent, ".0");
  return text;
}

std::string Hex(uint64_t bits, int digits) {
  char buffer[24];
  std::snprintf(buffer, sizeof(buffer), "0x%0*llX", digits, static_cast<unsigned long long>(bits));
  return buffer;
}

// Bit patterns of what has no decimal: positive infinity and NaN. float8 types without infinity
// have NaN there, as PyTorch's conversions do.
struct Specials {
  uint64_t infinity, negative_infinity, nan;
};
Specials SpecialsOf(DType dtype) {
  switch (dtype) {
    case DType::kF16: return {0x7C00, 0xFC00, 0x7E00};
    case DType::kBF16: return {0x7F80, 0xFF80, 0x7FC0};
    case DType::kF64:
    case DType::kC128: return {0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000};
    case DType::kF8E4M3FN: return {0x7F, 0xFF, 0x7F};
    case DType::kF8E5M2: return {0x7C, 0xFC, 0x7F};
    case DType::kF8E4M3FNUZ:
    case DType::kF8E5M2FNUZ: return {0x80, 0x80, 0x80};
    default: return {0x7F800000, 0xFF800000, 0x7FC00000};
  }
}

std::string SpecialLiteral(DType dtype, double value) {
  Specials specials = SpecialsOf(dtype);
  uint64_t bits = std::isnan(value) ? specials.nan
                                    : (value > 0 ? specials.infinity : specials.negative_infinity);
  int64_t bytes = ItemSize(dtype) / (IsComplex(dtype) ? 2 : 1);
  return Hex(bits, static_cast<int>(2 * bytes));
}

// T: bool, int64_t, uint64_t, double.
template <class T>
std::string FloatLiteral(DType dtype, T value) {
  char buffer[40];
  if (dtype == DType::kF32 || dtype == DType::kC64) {
    auto narrow = static_cast<float>(value);  // from integers, rounded once
    if (!std::isfinite(narrow)) return SpecialLiteral(dtype, narrow);
    std::snprintf(buffer, sizeof(buffer), "%.9g", static_cast<double>(narrow));
  } else {
    auto wide = static_cast<double>(value);
    if (!std::isfinite(wide)) return SpecialLiteral(dtype, wide);
    std::snprintf(buffer, sizeof(buffer), "%.17g", wide);
  }
  return WithPoint(buffer);
}

// The value modulo 2^width, read as signed or unsigned.
std::string IntLiteral(DType dtype, uint64_t bits) {
  int unused = 64 - 8 * static_cast<int>(ItemSize(dtype));
  if (IsUnsigned(dtype)) return std::to_string(bits << unused >> unused);
  return std::to_string(std::bit_cast<int64_t>(bits << unused) >> unused);
}

Result<uint64_t> IntegerBits(double value) {
  if (value >= -0x1p63 && value < 0x1p63) {
    return std::bit_cast<uint64_t>(static_cast<int64_t>(value));
  }
  if (value >= 0 && value < 0x1p64) return static_cast<uint64_t>(value);
  return InvalidArgument("the constant ", value, " is no 64-bit integer");
}

template <class T>
Result<std::string> RealLiteral(DType dtype, T value) {
  if (IsBool(dtype)) return std::string(value != T{} ? "true" : "false");
  if (IsFloat(dtype)) return FloatLiteral(dtype, value);
  if constexpr (std::is_same_v<T, double>) {
    Result<uint64_t> bits = IntegerBits(value);
    if (!bits.ok()) return bits.status();
    return IntLiteral(dtype, *bits);
  } else {
    return IntLiteral(dtype, static_cast<uint64_t>(value));
  }
}

struct LiteralOf {
  DType dtype;

  template <class T>
  Result<std::string> operator()(T value) const {
    if (IsComplex(dtype)) return "(" + FloatLiteral(dtype, value) + ", 0.0)";
    return RealLiteral(dtype, value);
  }
  Result<std::string> operator()(std::complex<double> value) const {
    if (IsComplex(dtype)) {
      return "(" + FloatLiteral(dtype, value.real()) + ", " + FloatLiteral(dtype, value.imag()) +
             ")";
    }
    if (IsBool(dtype)) return std::string(value != 0.0 ? "true" : "false");
    if (value.imag() == 0) return RealLiteral(dtype, value.real());
    return InvalidArgument("the complex constant ", value, " is no ", TorchName(dtype));
  }
};

void AppendNested(std::string* out, const std::vector<std::string>& literals, size_t* next,
                  DimsView dims) {
  if (dims.empty()) {
    *out += literals[(*next)++];
    return;
  }
  *out += '[';
  for (int64_t i = 0; i < dims[0]; ++i) {
    if (i > 0) *out += ", ";
    AppendNested(out, literals, next, dims.subspan(1));
  }
  *out += ']';
}

}  // namespace

Result<std::string> Literal(DType dtype, const Number& value) {
  return std::visit(LiteralOf{dtype}, value);
}

std::string NestedLiterals(const std::vector<std::string>& literals, DimsView dims) {
  std::string out;
  size_t next = 0;
  AppendNested(&out, literals, &next, dims);
  return out;
}

bool Contains(unsigned set, DType dtype) {
  unsigned member = IsBool(dtype)       ? kBoolSet
                    : IsUnsigned(dtype) ? kUnsignedSet
                    : IsSigned(dtype)   ? kSignedSet
                    : IsF8(dtype)       ? kFloat8Set
                    : IsFloat(dtype)    ? kWideFloatSet
                    : IsComplex(dtype)  ? kComplexSet
                                        : 0u;
  return (set & member) != 0;
}

std::string DescribeSet(unsigned set) {
  std::vector<std::string_view> names;
  if (set & kBoolSet) names.push_back("bool");
  if ((set & kIntSet) == kIntSet) {
    names.push_back("integer");
  } else if (set & kSignedSet) {
    names.push_back("signed integer");
  } else if (set & kUnsignedSet) {
    names.push_back("unsigned integer");
  }
  if ((set & kFloatSet) == kFloatSet) {
    names.push_back("float");
  } else if (set & kWideFloatSet) {
    names.push_back("float of 16 bits or more");
  }
  if (set & kComplexSet) names.push_back("complex");
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " or " : ", ";
    out += names[i];
  }
  return out;
}

}  // namespace tpu::hlo
