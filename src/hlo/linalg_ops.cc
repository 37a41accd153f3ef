// Cholesky, triangular solve, Fourier transforms, top-k.
#include <algorithm>
#include <array>

#include "hlo/function_impl.h"

namespace tpu::hlo {
namespace {

// A batch of square matrices.
bool IsSquare(Value a) { return a.rank() >= 2 && a.dim(a.rank() - 1) == a.dim(a.rank() - 2); }

// float32, float64 and their complex types: what XLA's decompositions and transforms take.
bool IsWide(DType dtype) { return Contains(kFpSet, dtype) && !IsHalf(dtype) && !IsF8(dtype); }

}  // namespace

Value Function::Cholesky(Value a, bool lower) {
  constexpr std::string_view kName = "stablehlo.cholesky";
  if (!impl_->Accepts(kName, {a})) return {};
  if (!IsWide(a.dtype()) || !IsSquare(a)) {
    return impl_->Error(kName, "takes square matrices of float32, float64 or complex, not ",
                        ToString(a.type()));
  }
  return impl_->EmitOne({kName, {a}, {a.type()}, Attributes().Bool("lower", lower)});
}

Value Function::TriangularSolve(Value a, Value b, bool left, bool lower, bool unit_diagonal,
                                bool transpose_a) {
  constexpr std::string_view kName = "stablehlo.triangular_solve";
  if (!impl_->Accepts(kName, {a, b})) return {};
  if (!IsWide(a.dtype()) || !IsSquare(a)) {
    return impl_->Error(kName, "takes square matrices of float32, float64 or complex, not ",
                        ToString(a.type()));
  }
  bool fits = a.dtype() == b.dtype() && a.rank() == b.rank();
  for (int64_t i = 0; fits && i + 2 < a.rank(); ++i) fits = a.dim(i) == b.dim(i);
  if (!fits || b.dim(b.rank() - (left ? 2 : 1)) != a.dim(a.rank() - 1)) {
    return impl_->Error(kName, ToString(a.type()), " and ", ToString(b.type()),
                        left ? " don't fit (a x = b)" : " don't fit (x a = b)");
  }
  return impl_->EmitOne(
      {kName,
       {a, b},
       {b.type()},
       Attributes()
           .Bool("left_side", left)
           .Bool("lower", lower)
           .Bool("unit_diagonal", unit_diagonal)
           .Text("transpose_a", transpose_a ? "#stablehlo<transpose TRANSPOSE>"
                                            : "#stablehlo<transpose NO_TRANSPOSE>")});
}

Value Function::Fft(Value a, std::string_view kind, DimsView length) {
  constexpr std::string_view kName = "stablehlo.fft";
  if (!impl_->Accepts(kName, {a})) return {};
  constexpr std::array<std::string_view, 4> kKinds = {"FFT", "IFFT", "RFFT", "IRFFT"};
  if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end()) {
    return impl_->Error(kName, "no kind ", kind);
  }
  bool from_real = kind == "RFFT", to_real = kind == "IRFFT";
  auto n = static_cast<int64_t>(length.size());
  if (!IsWide(a.dtype()) || IsComplex(a.dtype()) == from_real || n < 1 || n > 3 || n > a.rank()) {
    return impl_->Error(kName, kind, " of length ", ToString(length), " doesn't take ",
                        ToString(a.type()));
  }
  if (impl_->emulate_64bit && RealOf(a.dtype()) == DType::kF64) {
    return Fail(Unimplemented("Fourier transforms of ", TorchName(a.dtype()),
                              " are not supported by this device, which has no 64-bit arithmetic: "
                              "convert to ",
                              from_real ? "float32" : "complex64"));
  }
  Type result = a.type();
  for (int64_t i = 0; i < n; ++i) {
    int64_t expected = length[static_cast<size_t>(i)];
    if (to_real && i == n - 1) expected = expected / 2 + 1;
    if (a.dim(a.rank() - n + i) != expected || length[static_cast<size_t>(i)] < 1) {
      return impl_->Error(kName, kind, " of length ", ToString(length), " doesn't take ",
                          ToString(a.type()));
    }
  }
  if (from_real) {
    result.dtype = ComplexOf(a.dtype());
    result.dims.back() = length.back() / 2 + 1;
  } else if (to_real) {
    result.dtype = RealOf(a.dtype());
    result.dims.back() = length.back();
  }
  return impl_->EmitOne({kName,
                         {a},
                         {result},
                         Attributes()
                             .Text("fft_type", "#stablehlo<fft_type " + std::string(kind) + ">")
                             .Array("fft_length", length)});
}

Values Function::TopK(Value a, int64_t k) {
  constexpr std::string_view kName = "chlo.top_k";
  if (!impl_->Accepts(kName, {a}) || !impl_->Takes(kName, a, kIntSet | kFloatSet)) return Values(2);
  if (a.rank() < 1 || k < 0 || k > a.dim(a.rank() - 1)) {
    return impl_->Errors(2, kName, "can't take ", k, " of ", ToString(a.type()));
  }
  Type values = a.type();
  values.dims.back() = k;
  Type indices{DType::kI32, values.dims};
  return impl_->Emit({kName, {a}, {values, indices}, Attributes().I64("k", k)});
}

}  // namespace tpu::hlo
