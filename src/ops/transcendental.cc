// Polynomials where a difference would cancel, exponentials elsewhere; every piece is computed for
// every element and one selected, as vector units like it. NaN needs no care: each comparison with
// it is false, and the piece then taken passes it on.
#include "ops/transcendental.h"

#include <cmath>
#include <numbers>

#include "ops/series.h"
#include "ops/special_tables.h"

namespace tpu::ops::accurate {
namespace {

using hlo::UnaryOp;
using hlo::Value;

Value Builtin(UnaryOp op, Value x) { return x.function()->Unary(op, x); }

Value WithSignOf(Value x, Value size) { return Select(Lt(x, 0.0), -size, size); }

// For |x| <= 1.
Value SmallErf(Value x) { return x + x * Polynomial(x * x, 0, 1, tables::kErf); }

// exp(a) / 2 for a >= 0, which is finite a little further than exp(a). The difference is exact for
// a >= 1; XLA's a - log(2) isn't, and the exponential multiplies its error by a.
Value HalfExp(Value a) { return Exp(a - 2.0) * (std::exp(2.0) / 2); }

}  // namespace

Value Expm1(Value x) {
  if (IsComplex(x.dtype())) return hlo::Expm1(x);
  const Value near = x * (x * Polynomial(x, -0.5, 0.5, tables::kExpm1) + 1.0);
  return Select(Lt(Abs(x), 0.5), near, Exp(x) - 1.0);
}

Value Sinh(Value x) {
  if (IsComplex(x.dtype())) return Builtin(UnaryOp::kSinh, x);
  const Value a = Abs(x), y = x * x, half = HalfExp(a);
  const Value near = x * (y * Polynomial(y, 0, 1, tables::kSinh) + 1.0);
  return Select(Lt(a, 1.0), near, WithSignOf(x, half - 0.25 / half));
}

Value Cosh(Value x) {
  if (IsComplex(x.dtype())) return Builtin(UnaryOp::kCosh, x);
  const Value half = HalfExp(Abs(x));
  return half + 0.25 / half;
}

Value Tanh(Value x) {
  if (IsComplex(x.dtype())) return hlo::Tanh(x);
  const Value a = Abs(x), y = x * x;
  const Value near = x * (y * Polynomial(y, 0, 0.36, tables::kTanh) + 1.0);
  const Value far = 1.0 - 2.0 / (Exp(a * 2.0) + 1.0);
  return Select(Lt(a, 0.6), near, WithSignOf(x, far));
}

Value Erf(Value x) {
  if (x.dtype() == DType::kF64) return hlo::Erf(x);  // XLA's is good there
  const Value a = Abs(x), near = SmallErf(x);
  // Beyond 4 erf is 1 in float32.
  const Value t = Min(a, Like(a, 4.0)) - 2.5;
  const Value far = 1.0 - Exp(Polynomial(t, -1.5, 1.5, tables::kLogErfc));
  return Select(Lt(a, 1.0), near, WithSignOf(x, far));
}

// exp(-x^2) times a slowly varying function. x^2 in full: of x = high + low, high^2 is exact, and
// the rest, low (x + high), so small that five terms of its exponential do.
Value Erfc(Value x) {
  const Value a = Min(Abs(x), Like(x, 30.0));
  const double steps = x.dtype() == DType::kF64 ? 0x1p21 : 0x1p8;
  const Value high = Floor(a * steps + 0.5) * (1 / steps);
  const Value d = (a - high) * (a + high);
  const Value lost = d * (1.0 - d * (0.5 - d * (1.0 / 6 - d * (1.0 / 24))));
  const Value flat = Polynomial((a - 3.0) / (a + 3.0), -1, 1, tables::kErfcxFlat);
  const Value factor = 1.0 / (a * 2.0 + 1.0);
  const Value rough = Exp(-(high * high)) * (factor + factor * flat);
  const Value right = rough - rough * lost;
  const Value outer = Select(Lt(x, 0.0), 2.0 - right, right);
  return Select(Lt(a, 0.8), 1.0 - SmallErf(x), outer);
}

// x times a function of w = -log(1 - x^2) that hardly feels w's error.
Value Erfinv(Value x) {
  const Value a = Abs(x), w = -Log((1.0 - a) * (1.0 + a)), q = Sqrt(w);
  const Value near = Polynomial(w - 2.5, -2.5, 2.5, tables::kErfinvNear);
  Value ratio = Polynomial(q - 3.2, -1, 1, tables::kErfinvTail);
  if (x.dtype() == DType::kF64) {
    ratio = Select(Lt(q, 4.2), ratio, Polynomial(q - 5.2, -1, 1, tables::kErfinvFar));
  }
  const Value out = x * Select(Lt(w, 5.0), near, q * ratio);
  return Select(Eq(a, 1.0), x * INFINITY, out);
}

namespace {

struct LgammaParts {
  Value of_a;      // lgamma(a)
  Value of_shift;  // the same, but lgamma(1 + a) for a < 0.75
};

// For a >= 0. Near 1 and 2, where it is 0, divided by its zeros; far away by Stirling's formula.
LgammaParts LgammaOf(Value a) {
  const Value small = Lt(a, 0.75), log = Log(a);
  const Value d = Select(small, a, a - 1.0);
  Value near = d * (d - 1.0) * Polynomial(d - 0.625, -0.875, 0.875, tables::kLgammaNear);
  near = Select(Eq(d, 0.0), d, near);  // 0, not -0.0
  const Value middle = (a - 2.0) * Polynomial(a - 5.25, -2.75, 2.75, tables::kLgammaMiddle);
  const double constant = 0.5 * std::log(2 * std::numbers::pi) - 0.5;
  const Value z = 8.0 / a;
  const Value far =
      (a - 0.5) * (log - 1.0) + (z * Polynomial(z * z, 0, 1, tables::kLgammaFar) + constant);
  const Value shifted = Select(Lt(a, 2.5), near, Select(Lt(a, 8.0), middle, far));
  return {Select(small, shifted - log, shifted), shifted};
}

}  // namespace

Value Lgamma(Value x) {
  const Value a = Abs(x);
  const LgammaParts right = LgammaOf(a);
  // gamma(-a) gamma(1 + a) sin(pi a) = -pi, and gamma(1 + a) = a gamma(a).
  const Value fraction = a - Floor(a), r = Min(fraction, 1.0 - fraction);
  const Value sine = r * Polynomial(r * r, 0, 0.25, tables::kSinPi);  // over pi
  Value left = -Log(Select(Lt(a, 0.75), sine, a * sine)) - right.of_shift;
  left = Select(Eq(r, 0.0) | Eq(a, INFINITY), Like(a, INFINITY), left);
  return Select(Lt(x, 0.0), left, right.of_a);
}

}  // namespace tpu::ops::accurate
