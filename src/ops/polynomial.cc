// Orthogonal polynomials of run-time degree, by their recurrences, and the closed forms that
// PyTorch takes instead inside the interval. What it is not: a series. One loop up to the greatest
// degree among the elements.
#include <cmath>
#include <numbers>

#include "ops/cast.h"
#include "ops/families.h"
#include "ops/lowering.h"
#include "ops/rows.h"

namespace tpu::ops {
namespace {

using hlo::Function;
using hlo::Monoid;
using hlo::UnaryOp;
using hlo::Value;
using hlo::Values;

enum class Family { kT, kU, kV, kW, kHermiteH, kHermiteHe, kLaguerre, kLegendre };

constexpr bool IsChebyshev(Family f) { return f <= Family::kW; }

struct Point {
  Value x, n;  // n: a whole number, truncated
};

Value Number(Value like, double x) { return Like(like, x); }
Value Truncated(Value n) { return Select(Lt(n, 0.0), -Floor(-n), Floor(n)); }
Value IsEven(Value n) { return Eq(Floor(n * 0.5) * 2.0, n); }

// The polynomial of degree 1.
Value First(Family f, Value x) {
  switch (f) {
    case Family::kT: return x;
    case Family::kU: return x + x;
    case Family::kV: return x + x - 1.0;
    case Family::kW: return x + x + 1.0;
    case Family::kHermiteH: return x + x;
    case Family::kHermiteHe: return x;
    case Family::kLaguerre: return 1.0 - x;
    case Family::kLegendre: return x;
  }
  return x;
}

// Degree k + 1 from degrees k (`q`) and k - 1 (`p`).
Value Next(Family f, Value x, Value k, Value q, Value p) {
  switch (f) {
    case Family::kHermiteH: return (x + x) * q - (k + k) * p;
    case Family::kHermiteHe: return x * q - k * p;
    case Family::kLaguerre: return ((k + k + 1.0 - x) * q - k * p) / (k + 1.0);
    case Family::kLegendre: return ((k + k + 1.0) * x * q - k * p) / (k + 1.0);
    default: return (x + x) * q - p;
  }
}

// By the recurrence, for elements of `wanted`; others may be anything.
Value Recurrence(Family f, const Point& at, Value wanted) {
  Function& fn = *at.x.function();
  const Value one = Number(at.x, 1.0);
  const Value degree = fn.Select(wanted, at.n, Number(at.n, 0.0));
  const Value top = fn.Reduce(degree, Monoid::kMax, Iota(degree.rank()));
  const Value first = First(f, at.x);
  const Values out = fn.While(
      {fn.Scalar(at.x.dtype(), 1.0), one, first},
      [&](Function&, const Values& v) { return Values{Lt(v[0], top)}; },
      [&](Function& f2, const Values& v) {
        const Value k = f2.BroadcastTo(v[0], at.x.dims());
        const Value more = Lt(k, degree);
        return Values{v[0] + 1.0, f2.Select(more, v[2], v[1]),
                      f2.Select(more, Next(f, at.x, k, v[2], v[1]), v[2])};
      });
  return fn.Select(Lt(at.n, 1.0), one, out[2]);
}

// At the ends of the interval, x = 1 and x = -1.
Value AtEnd(Family f, const Point& at) {
  const Value one = Number(at.x, 1.0), upper = Gt(at.x, 0.0), even = IsEven(at.n);
  const Value alternating = Select(upper | even, one, -one);
  switch (f) {
    case Family::kU: return alternating * (at.n + 1.0);
    case Family::kV: return Select(upper, one, alternating * (at.n + at.n + 1.0));
    case Family::kW: return Select(upper, at.n + at.n + 1.0, alternating);
    default: return alternating;
  }
}

// Chebyshev's polynomials within the interval, as sines and cosines of the angle.
Value ByAngle(Family f, const Point& at) {
  Function& fn = *at.x.function();
  const auto cos = [&](Value v) { return fn.Unary(UnaryOp::kCosine, v); };
  const auto sin = [&](Value v) { return fn.Unary(UnaryOp::kSine, v); };
  const Value angle = fn.Unary(UnaryOp::kAcos, at.x);
  switch (f) {
    case Family::kT: return cos(at.n * angle);
    case Family::kU: return sin((at.n + 1.0) * angle) / sin(angle);
    case Family::kV: return cos((at.n + 0.5) * angle) / cos(angle * 0.5);
    default: return sin((at.n + 0.5) * angle) / sin(angle * 0.5);
  }
}

// From which degree on PyTorch takes the angle.
double AngleFrom(Family f, bool shifted) {
  if (f == Family::kT) return 6;
  if (shifted) return f == Family::kW ? 4 : 6;
  return 8;
}

template <Family f, bool shifted = false>
Values Polynomial(Lowering& lw) {
  const Values in = lw.Operands();
  const Value x = shifted ? in[0] + in[0] - 1.0 : in[0];
  const Point at = {x, Truncated(in[1])};
  Value wanted = Ge(at.n, 0.0);
  Value inside, end;
  if (IsChebyshev(f)) {
    inside = Gt(at.n, AngleFrom(f, shifted)) & Lt(Abs(x), 1.0);
    wanted = wanted & ~inside;
  }
  if (IsChebyshev(f) || f == Family::kLegendre) {
    end = Eq(Abs(x), 1.0);
    wanted = wanted & ~end;
  }
  const double limit = x.dtype() == DType::kF64 ? 512 : 128;
  constexpr bool hermite = f == Family::kHermiteH || f == Family::kHermiteHe;
  if (hermite) wanted = wanted & Le(at.n, limit);
  Value out = Recurrence(f, at, wanted);
  if (inside.valid()) out = Select(inside, ByAngle(f, at), out);
  if (end.valid()) out = Select(end, AtEnd(f, at), out);
  if (hermite) out = Select(Gt(at.n, limit), Number(x, NAN), out);
  return {Select(Lt(at.n, 0.0), Number(x, 0.0), out)};
}

constexpr OpDef Floating(std::string_view name, LowerFn lower) {
  return Pointwise(name, lower, In::kToFloat);
}

constexpr OpDef kRows[] = {
    Floating("aten::special_chebyshev_polynomial_t", Polynomial<Family::kT>),
    Floating("aten::special_chebyshev_polynomial_u", Polynomial<Family::kU>),
    Floating("aten::special_chebyshev_polynomial_v", Polynomial<Family::kV>),
    Floating("aten::special_chebyshev_polynomial_w", Polynomial<Family::kW>),
    Floating("aten::special_hermite_polynomial_h", Polynomial<Family::kHermiteH>),
    Floating("aten::special_hermite_polynomial_he", Polynomial<Family::kHermiteHe>),
    Floating("aten::special_laguerre_polynomial_l", Polynomial<Family::kLaguerre>),
    Floating("aten::special_legendre_polynomial_p", Polynomial<Family::kLegendre>),
    Floating("aten::special_shifted_chebyshev_polynomial_t", Polynomial<Family::kT, true>),
    Floating("aten::special_shifted_chebyshev_polynomial_u", Polynomial<Family::kU, true>),
    Floating("aten::special_shifted_chebyshev_polynomial_v", Polynomial<Family::kV, true>),
    Floating("aten::special_shifted_chebyshev_polynomial_w", Polynomial<Family::kW, true>),
};

}  // namespace

std::span<const OpDef> PolynomialOps() { return kRows; }

}  // namespace tpu::ops
