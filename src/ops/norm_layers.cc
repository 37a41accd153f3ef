// Shared pieces of normalisation rows.
#include "ops/norm_layers.h"

#include <cmath>

#include "ops/pnorm.h"

namespace tpu::ops {

using hlo::Monoid;
using hlo::Value;

Value WideTensor(Lowering& lw, std::string_view name) {
  return lw.TensorAs(name, OpMathType(lw.TensorType(name)));
}

Value OptionalTensor(Lowering& lw, std::string_view name, DType dtype) {
  return lw.Has(name) ? lw.TensorAs(name, dtype) : Value();
}

int64_t Span(Value a, DimsView dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= a.dim(d);
  return n;
}

Value SumKeep(Value a, DimsView dims) {
  if (!a.valid()) return {};
  Dims kept = a.dims();
  for (int64_t d : dims) kept[static_cast<size_t>(d)] = 1;
  return a.function()->Reshape(a.function()->Reduce(a, Monoid::kAdd, dims), kept);
}

Value MeanKeep(Value a, DimsView dims) {
  return SumKeep(a, dims) / static_cast<double>(Span(a, dims));
}

Moments MomentsKeep(Value a, DimsView dims) {
  const Value mean = MeanKeep(a, dims), centered = a - mean;
  return {mean, MeanKeep(centered * centered, dims)};
}

Value PNorm(Value a, double p, DimsView dims) {
  if (!a.valid()) return {};
  hlo::Function& fn = *a.function();
  if (p == 0) return fn.Reduce(Convert(Ne(a, 0.0), a.dtype()), Monoid::kAdd, dims);
  if (p == 1) return fn.Reduce(Abs(a), Monoid::kAdd, dims);
  if (p == 2) return Sqrt(fn.Reduce(a * a, Monoid::kAdd, dims));
  if (std::isinf(p)) return fn.Reduce(Abs(a), p > 0 ? Monoid::kMax : Monoid::kMin, dims);
  return Pow(fn.Reduce(Pow(Abs(a), Like(a, p)), Monoid::kAdd, dims),
             fn.Constant({a.dtype(), {}}, 1.0 / p));
}

}  // namespace tpu::ops
