// Discrete Fourier transforms, one dimension after another, with PyTorch's normalisation.
// What it is not: torch.fft's functions, which are composites of these three.
#include <cmath>

#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/rows.h"

namespace tpu::ops {
namespace {

using hlo::Value;
using hlo::Values;

// XLA transforms the last dimension.
Value Along(hlo::Function& fn, Value v, int64_t dim, std::string_view kind, int64_t length) {
  Dims order = Iota(v.rank());
  std::swap(order[static_cast<size_t>(dim)], order.back());
  return fn.Transpose(fn.Fft(fn.Transpose(v, order), kind, Dims{length}), order);
}

// The unnormalised transform to complex numbers along each of `dims`.
Value Transform(hlo::Function& fn, Value v, DimsView dims, bool forward) {
  for (int64_t dim : dims) {
    const int64_t n = v.dim(dim);
    v = Along(fn, v, dim, forward ? "FFT" : "IFFT", n);
    if (!forward) v = v * static_cast<double>(n);  // XLA's inverse divides
  }
  return v;
}

// 0: none, 1: by the root of the number of elements, 2: by the number.
Value Normalised(Value v, int64_t mode, int64_t count) {
  if (mode == 0 || count == 0) return v;
  const double n = static_cast<double>(count);
  return v * (mode == 1 ? 1.0 / std::sqrt(n) : 1.0 / n);
}

Dims Wrapped(Dims dims, int64_t rank) {
  for (int64_t& d : dims) d += d < 0 ? rank : 0;
  return dims;
}

int64_t Count(Value v, DimsView dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= v.dim(d);
  return n;
}

Values ComplexToComplex(Lowering& lw) {
  const Value v = lw.Tensor("self");
  if (!v.valid() || v.numel() == 0) return {v};
  const Dims dims = Wrapped(lw.Ints("dim"), v.rank());
  return {Normalised(Transform(lw.fn(), v, dims, lw.Bool("forward")), lw.Int("normalization"),
                     Count(v, dims))};
}

Values RealToComplex(Lowering& lw) {
  const Value v = lw.Tensor("self");
  if (!v.valid()) return {v};
  Dims dims = Wrapped(lw.Ints("dim"), v.rank());
  const int64_t count = Count(v, dims), mode = lw.Int("normalization");
  if (!lw.Bool("onesided")) {
    return {Normalised(Transform(lw.fn(), Cast(v, ComplexOf(v.dtype())), dims, true), mode, count)};
  }
  if (v.numel() == 0) {
    Dims half = v.dims();
    if (!dims.empty()) half[static_cast<size_t>(dims.back())] = v.dim(dims.back()) / 2 + 1;
    return {lw.fn().Constant({ComplexOf(v.dtype()), half}, int64_t{0})};
  }
  const int64_t last = dims.back();
  dims.pop_back();
  const Value half = Along(lw.fn(), v, last, "RFFT", v.dim(last));
  return {Normalised(Transform(lw.fn(), half, dims, true), mode, count)};
}

Values ComplexToReal(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  Value v = lw.Tensor("self");
  if (!v.valid()) return {v};
  Dims dims = Wrapped(lw.Ints("dim"), v.rank());
  const int64_t last = dims.back(), n = lw.Int("last_dim_size"), mode = lw.Int("normalization");
  dims.pop_back();
  const int64_t count = Count(v, dims) * n;
  Dims result = v.dims(), limits = v.dims();
  result[static_cast<size_t>(last)] = n;
  if (NumElements(result) == 0 || v.numel() == 0) {
    return {fn.Constant({RealOf(v.dtype()), result}, int64_t{0})};
  }
  limits[static_cast<size_t>(last)] = std::min(n / 2 + 1, v.dim(last));
  v = fn.Slice(v, Dims(result.size(), 0), limits, Dims(result.size(), 1));
  v = Transform(fn, v, dims, false);
  return {Normalised(Along(fn, v, last, "IRFFT", n) * static_cast<double>(n), mode, count)};
}

constexpr OpDef Row(std::string_view name, LowerFn lower) {
  return {.name = name,
          .kind = Kind::kFft,
          .lower = lower,
          .note = "float64 and complex128 raise on TPUs"};
}

constexpr OpDef kRows[] = {
    Row("aten::_fft_c2c", ComplexToComplex),
    Row("aten::_fft_c2r", ComplexToReal),
    Row("aten::_fft_r2c", RealToComplex),
};

}  // namespace

std::span<const OpDef> FftOps() { return kRows; }

}  // namespace tpu::ops
