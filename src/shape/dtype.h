// Element types: sizes, names in PyTorch's and StableHLO's spelling, classes, promotion.
// What it is not: values. Rules here mirror c10/core/ScalarType.h and torch.promote_types.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tpu {

enum class DType : uint8_t {
  kInvalid,
  kBool,
  kU8,
  kU16,
  kU32,
  kU64,
  kI8,
  kI16,
  kI32,
  kI64,
  kF8E4M3FN,
  kF8E5M2,
  kF8E4M3FNUZ,
  kF8E5M2FNUZ,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC64,
  kC128,
};
inline constexpr int kNumDTypes = static_cast<int>(DType::kC128) + 1;

int64_t ItemSize(DType t);            // bytes; bool is one
std::string_view TorchName(DType t);  // "float32", "bool", "complex64"
std::string_view MlirName(DType t);   // "f32", "i1", "complex<f32>", "ui8"
std::optional<DType> DTypeFromTorchName(std::string_view name);

constexpr bool IsBool(DType t) { return t == DType::kBool; }
constexpr bool IsUnsigned(DType t) { return t >= DType::kU8 && t <= DType::kU64; }
constexpr bool IsSigned(DType t) { return t >= DType::kI8 && t <= DType::kI64; }
constexpr bool IsInteger(DType t) { return t >= DType::kU8 && t <= DType::kI64; }  // not bool
constexpr bool IsIntegral(DType t) { return t >= DType::kBool && t <= DType::kI64; }
constexpr bool IsF8(DType t) { return t >= DType::kF8E4M3FN && t <= DType::kF8E5M2FNUZ; }
constexpr bool IsFloat(DType t) { return t >= DType::kF8E4M3FN && t <= DType::kF64; }
constexpr bool IsComplex(DType t) { return t >= DType::kC64; }
constexpr bool IsHalf(DType t) { return t == DType::kF16 || t == DType::kBF16; }

DType RealOf(DType t);     // complex64 -> float32; others unchanged
DType ComplexOf(DType t);  // float32 -> complex64, float64 -> complex128, half -> complex64
// The type in which PyTorch's CPU kernels compute: float32 for half and float8 types.
DType OpMathType(DType t);
// The type of sum/prod/cumsum accumulators: float32 for halves, int64 for integers and bool.
DType AccumulateType(DType t);

// torch.promote_types. kInvalid where PyTorch raises (float8 with another type).
DType PromoteTypes(DType a, DType b);
// torch.can_cast: no float -> integer, no complex -> real, nothing but bool -> bool.
bool CanCast(DType from, DType to);

// Participants of a promotion, as torch.result_type sees them. Dimensioned tensors win over
// zero-dimensional ones, and those over Python numbers, unless the category of the latter is
// higher.
class ResultType {
 public:
  void AddTensor(DType t, bool zero_dim);
  void AddWrappedNumber(DType t);  // a Python number: bool, int64, double, complex128
  // `default_dtype` is what a Python float becomes next to integers. kInvalid where PyTorch raises,
  // where its answer is complex32 (float16 next to a Python complex), or where nothing was added.
  DType Get(DType default_dtype = DType::kF32) const;

 private:
  void Add(DType t, DType* slot);

  DType dim_ = DType::kInvalid;  // kInvalid: no such participant yet
  DType zero_ = DType::kInvalid;
  DType wrapped_ = DType::kInvalid;
  bool raises_ = false;  // two participants of one kind don't promote
};

}  // namespace tpu
