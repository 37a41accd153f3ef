// Element types: names, sizes and PyTorch's promotion rules (2.13), as tables made at compile time.
#include "shape/dtype.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

namespace tpu {
namespace {

struct Info {
  std::string_view torch;
  std::string_view mlir;
  int64_t size;
};

constexpr std::array<Info, kNumDTypes> kInfo = {{
    {"invalid", "invalid", 0},
    {"bool", "i1", 1},
    {"uint8", "ui8", 1},
    {"uint16", "ui16", 2},
    {"uint32", "ui32", 4},
    {"uint64", "ui64", 8},
    {"int8", "i8", 1},
    {"int16", "i16", 2},
    {"int32", "i32", 4},
    {"int64", "i64", 8},
    {"float8_e4m3fn", "f8E4M3FN", 1},
    {"float8_e5m2", "f8E5M2", 1},
    {"float8_e4m3fnuz", "f8E4M3FNUZ", 1},
    {"float8_e5m2fnuz", "f8E5M2FNUZ", 1},
    {"float16", "f16", 2},
    {"bfloat16", "bf16", 2},
    {"float32", "f32", 4},
    {"float64", "f64", 8},
    {"complex64", "complex<f32>", 8},
    {"complex128", "complex<f64>", 16},
}};

const Info& InfoOf(DType t) {
  const auto index = static_cast<size_t>(t);
  return kInfo[index < kInfo.size() ? index : 0];
}

constexpr bool IsWideUnsigned(DType t) { return t >= DType::kU16 && t <= DType::kU64; }

constexpr DType Promote(DType a, DType b) {
  using enum DType;
  if (a > b) std::swap(a, b);  // the enum is ordered by category, then by width
  if (a == b) return a;
  if (a == kInvalid || IsF8(a) || IsF8(b)) return kInvalid;
  // uint16, uint32 and uint64 promote with real floats only.
  if (IsWideUnsigned(a) || IsWideUnsigned(b)) return IsFloat(b) ? b : kInvalid;
  if (IsComplex(b)) return a == kF64 ? kC128 : b;
  if (a == kF16 && b == kBF16) return kF32;
  if (a == kU8 && b == kI8) return kI16;
  return b;
}

constexpr auto kPromote = [] {
  std::array<std::array<DType, kNumDTypes>, kNumDTypes> table{};
  for (int a = 0; a < kNumDTypes; ++a) {
    for (int b = 0; b < kNumDTypes; ++b) {
      table[a][b] = Promote(static_cast<DType>(a), static_cast<DType>(b));
    }
  }
  return table;
}();

// A type that takes part in a promotion: `t` is kInvalid where there is no such participant.
struct Part {
  DType t = DType::kInvalid;
  bool raises = false;
};

Part PromoteParts(Part a, Part b) {
  if (a.raises || b.raises) return {DType::kInvalid, true};
  if (a.t == DType::kInvalid) return b;
  if (b.t == DType::kInvalid) return a;
  const DType t = PromoteTypes(a.t, b.t);
  return {t, t == DType::kInvalid};
}

// complex32, which the project does not have, stands only for itself inside Get().
constexpr auto kComplex32 = static_cast<DType>(kNumDTypes);
static_assert(IsComplex(kComplex32));

// c10's toComplexType.
Part ComplexPart(DType t) {
  if (IsF8(t)) return {DType::kInvalid, true};
  return {t == DType::kF16 ? kComplex32 : ComplexOf(t), false};
}

// combine_categories in ATen/native/TypeProperties.cpp: the lower priority counts only if its
// category (bool, integer, float, complex) is higher. Unlike promote_types, an integer of any width
// next to a complex number of lower priority is that complex type.
Part CombineCategories(Part higher, Part lower) {
  if (higher.raises || lower.raises) return {DType::kInvalid, true};
  if (IsComplex(higher.t)) return higher;
  if (IsFloat(higher.t)) return IsComplex(lower.t) ? ComplexPart(higher.t) : higher;
  if (IsComplex(lower.t)) return lower;
  if (IsBool(higher.t) || IsFloat(lower.t)) return PromoteParts(higher, lower);
  return higher.t != DType::kInvalid ? higher : lower;
}

}  // namespace

int64_t ItemSize(DType t) { return InfoOf(t).size; }
std::string_view TorchName(DType t) { return InfoOf(t).torch; }
std::string_view MlirName(DType t) { return InfoOf(t).mlir; }

std::optional<DType> DTypeFromTorchName(std::string_view name) {
  for (size_t i = 1; i < kInfo.size(); ++i) {
    if (kInfo[i].torch == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

DType RealOf(DType t) {
  if (t == DType::kC64) return DType::kF32;
  return t == DType::kC128 ? DType::kF64 : t;
}

DType ComplexOf(DType t) {
  if (t == DType::kInvalid || IsComplex(t)) return t;
  return t == DType::kF64 ? DType::kC128 : DType::kC64;
}

DType OpMathType(DType t) { return IsHalf(t) || IsF8(t) ? DType::kF32 : t; }

DType AccumulateType(DType t) { return IsIntegral(t) ? DType::kI64 : OpMathType(t); }

DType PromoteTypes(DType a, DType b) {
  return kPromote[static_cast<size_t>(a)][static_cast<size_t>(b)];
}

bool CanCast(DType from, DType to) {
  if (IsComplex(from) && !IsComplex(to)) return false;
  if (IsFloat(from) && IsIntegral(to)) return false;
  return IsBool(from) || !IsBool(to);
}

void ResultType::Add(DType t, DType* slot) {
  const Part sum = PromoteParts({*slot, false}, {t, false});
  *slot = sum.t;
  raises_ |= sum.raises;
}

void ResultType::AddTensor(DType t, bool zero_dim) { Add(t, zero_dim ? &zero_ : &dim_); }

void ResultType::AddWrappedNumber(DType t) { Add(t, &wrapped_); }

DType ResultType::Get(DType default_dtype) const {
  if (raises_) return DType::kInvalid;
  Part wrapped{wrapped_, false};
  if (IsComplex(wrapped_)) {
    wrapped = ComplexPart(default_dtype);
  } else if (IsFloat(wrapped_)) {
    wrapped.t = default_dtype;
  }
  const DType t = CombineCategories({dim_, false}, CombineCategories({zero_, false}, wrapped)).t;
  return t == kComplex32 ? DType::kInvalid : t;
}

}  // namespace tpu
