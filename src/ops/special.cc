// Special functions of PyTorch that XLA has no op for. Pieces are Chebyshev series
// (special_tables.h, fitted for this file) joined where PyTorch's own change form, so that float64
// keeps its digits. What it is not: erf, lgamma, digamma and others that are ops of the builder
// (unary.cc, transcendental.cc).
#include <cmath>
#include <numbers>
#include <span>

#include "ops/cast.h"
#include "ops/density.h"
#include "ops/lowering.h"
#include "ops/rows.h"
#include "ops/series.h"
#include "ops/special_tables.h"
#include "ops/transcendental.h"

namespace tpu::ops {
namespace {

using hlo::BinaryOp;
using hlo::Function;
using hlo::UnaryOp;
using hlo::Value;
using hlo::Values;

Value Cos(Value a) { return a.function()->Unary(UnaryOp::kCosine, a); }
Value Sin(Value a) { return a.function()->Unary(UnaryOp::kSine, a); }
Value Number(Value like, double x) { return Like(like, x); }

// The tensor of a function of one: schemas call it self or x.
Value Self(Lowering& lw) { return lw.Operands().at(0); }

// --- Modified Bessel functions of the first kind, times exp(-|x|).

template <int order>
Value ScaledI(Value x) {
  const Value a = Abs(x);
  const Value small = Min(a, Number(a, 8.0)), large = Max(a, Number(a, 8.0));
  Value near = Series(small, 0, 8,
                      order == 0 ? std::span<const double>(tables::kI0Small)
                                 : std::span<const double>(tables::kI1Small));
  if (order == 1) near = near * small;
  const Value far = Series(8.0 / large, 0, 1,
                           order == 0 ? std::span<const double>(tables::kI0Large)
                                      : std::span<const double>(tables::kI1Large)) /
                    Sqrt(large);
  const Value out = Select(Le(a, 8.0), near, far);
  return order == 0 ? out : Select(Lt(x, 0.0), -out, out);
}
template <int order, bool scaled>
Values BesselI(Lowering& lw) {
  const Value x = Self(lw);
  return {scaled ? ScaledI<order>(x) : ScaledI<order>(x) * Exp(Abs(x))};
}

// --- The second kind, times exp(x). Not defined for negative numbers.
template <int order, bool scaled>
Values BesselK(Lowering& lw) {
  const Value x = Self(lw);
  const Value small = Min(Max(x, Number(x, 1e-300)), Number(x, 2.0)),
              large = Max(x, Number(x, 2.0));
  const Value square = small * small;
  const Value i = ScaledI<order>(small) * Exp(small), half_log = Log(small * 0.5);
  Value near = order == 0 ? Series(square, 0, 4, tables::kK0Small) - half_log * i
                          : Series(square, 0, 4, tables::kK1Small) / small + half_log * i;
  if (scaled) near = near * Exp(small);
  Value far = Series(2.0 / large, 0, 1,
                     order == 0 ? std::span<const double>(tables::kK0Large)
                                : std::span<const double>(tables::kK1Large)) /
              Sqrt(large);
  if (!scaled) far = far * Exp(-large);
  Value out = Select(Le(x, 2.0), near, far);
  out = Select(Eq(x, 0.0), Number(x, INFINITY), out);
  out = Select(Lt(x, 0.0), Number(x, NAN), out);
  return {Select(IsNan(x), x, out)};
}

// --- Bessel functions of integer order. Beyond 8: modulus and phase, as amplitudes P and Q.

struct Wave {
  Value p, q, cosine, sine, scale;
};
template <int order>
Wave WaveAt(Value x) {  // x >= 8
  const Value r = 8.0 / x, u = r * r;
  Wave w;
  w.p = Series(u, 0, 1, order == 0 ? std::span<const double>(tables::kP0) : tables::kP1);
  w.q = Series(u, 0, 1, order == 0 ? std::span<const double>(tables::kQ0) : tables::kQ1) * r;
  const Value phase = x - (order == 0 ? 0.25 : 0.75) * std::numbers::pi;
  w.cosine = Cos(phase);
  w.sine = Sin(phase);
  w.scale = Sqrt(2.0 / std::numbers::pi / x);
  return w;
}
template <int order>
Value SmallJ(Value x) {  // |x| <= 8
  const Value y = x * x;
  return order == 0 ? Series(y, 0, 64, tables::kJ0Small) : Series(y, 0, 64, tables::kJ1Small) * x;
}
template <int order>
Values BesselJ(Lowering& lw) {
  const Value x = Self(lw), a = Abs(x);
  const Wave w = WaveAt<order>(Max(a, Number(a, 8.0)));
  const Value far = w.scale * (w.p * w.cosine - w.q * w.sine);
  Value out = Select(Le(a, 8.0), SmallJ<order>(Min(a, Number(a, 8.0))), far);
  return {order == 0 ? out : Select(Lt(x, 0.0), -out, out)};
}
template <int order>
Values BesselY(Lowering& lw) {
  const Value x = Self(lw);
  const Value small = Min(Max(x, Number(x, 1e-300)), Number(x, 8.0));
  const Wave w = WaveAt<order>(Max(x, Number(x, 8.0)));
  const Value far = w.scale * (w.p * w.sine + w.q * w.cosine), y = small * small;
  constexpr double kTwoOverPi = 2.0 / std::numbers::pi;
  const Value near =
      order == 0 ? Log(small) * SmallJ<0>(small) * kTwoOverPi + Series(y, 0, 64, tables::kY0Small)
                 : (Log(small) * SmallJ<1>(small) - 1.0 / small) * kTwoOverPi +
                       Series(y, 0, 64, tables::kY1Small) * small;
  Value out = Select(Le(x, 8.0), near, far);
  out = Select(Eq(x, 0.0), Number(x, -INFINITY), out);
  out = Select(Lt(x, 0.0), Number(x, NAN), out);
  return {Select(IsNan(x), x, out)};
}

Values SphericalJ0(Lowering& lw) {
  const Value x = Self(lw), y = x * x;
  const Value series = ((((y / 362880.0 - 1.0 / 5040) * y + 1.0 / 120) * y - 1.0 / 6) * y) + 1.0;
  const Value out = Select(Lt(Abs(x), 0.1), series, Sin(x) / x);
  return {Select(Eq(Abs(x), INFINITY), Number(x, 0.0), out)};
}

// --- Airy's function: a series around 0; outside, an exponential or a wave in zeta = 2/3
// |x|^(3/2).

Values AiryAi(Lowering& lw) {
  const Value x = Self(lw), size = Max(Abs(x), Number(x, 2.0)), root = Sqrt(size);
  const Value zeta = size * root * (2.0 / 3), t = std::sqrt(32.0) / 3 / zeta, u = t * t;
  const Value scale = std::numbers::inv_sqrtpi / Sqrt(root);
  const Value right = Series(t, 0, 1, tables::kAiRight) * Exp(-zeta) * scale * 0.5;
  const Value phase = zeta - 0.25 * std::numbers::pi;
  const Value left = scale * (Cos(phase) * Series(u, 0, 1, tables::kAiP) +
                              Sin(phase) * Series(u, 0, 1, tables::kAiQ) * t);
  const Value centre =
      Series(Min(Max(x, Number(x, -2.0)), Number(x, 2.0)), -2, 2, tables::kAiCentre);
  const Value out = Select(Gt(x, 2.0), right, Select(Lt(x, -2.0), left, centre));
  return {Select(Eq(Abs(x), INFINITY) | IsNan(x), Number(x, NAN), out)};
}

// --- The normal distribution and its relatives.

// exp(x^2) erfc(x), in t = 4 / (4 + x) for x >= 0.
Value ScaledErfc(Value x) {
  const Value a = Abs(x);
  const Value t = 4.0 / (a + 4.0);
  const Value right = Series(t, 0, 1, tables::kErfcx) * t;
  // The square's rounding error matters where the exponential is large.
  Value out = Select(Lt(x, 0.0), Exp(x * x) * 2.0 - right, right);
  out = Select(Eq(x, INFINITY), Number(x, 0.0), out);
  return Select(IsNan(x), x, out);
}
Values ErfcxOp(Lowering& lw) { return {ScaledErfc(Self(lw))}; }

Values LogNdtr(Lowering& lw) {
  const Value x = Self(lw), t = x * std::sqrt(0.5);
  const Value left = Log(ScaledErfc(-Min(t, Number(t, 0.0))) * 0.5) - t * t;
  const Value right = Log1p(accurate::Erfc(t) * -0.5);
  return {Select(Lt(x, -1.0), left, right)};
}

Values Ndtri(Lowering& lw) {
  const Value p = Self(lw), q = p - 0.5;
  const Value y = Min(q * q, Number(q, 0.180625));
  const Value centre = q * Series(y, 0, 0.180625, tables::kNdtriCentre);
  const Value tail = Min(p, 1.0 - p);
  const Value r = Max(Sqrt(-Log(tail)), Number(p, 1.5));
  const Value near = Series(Min(r, Number(r, 5.0)), 1.5, 5, tables::kNdtriNear);
  const Value far = Series(1.0 / Max(r, Number(r, 5.0)), 1.0 / 28, 0.2, tables::kNdtriFar) * r;
  const Value size = Select(Le(r, 5.0), near, far);
  const Value outer = Select(Lt(q, 0.0), -size, size);
  // Where both fits hold: the tail's begins at |q| = 0.3946, the centre's ends at 0.425.
  Value out = Select(Le(Abs(q), 0.42), centre, outer);
  out = Select(Eq(p, 0.0), Number(p, -INFINITY), Select(Eq(p, 1.0), Number(p, INFINITY), out));
  return {Select(Lt(p, 0.0) | Gt(p, 1.0), Number(p, NAN), out)};
}

Values Entr(Lowering& lw) {
  const Value x = Self(lw);
  Value out = Select(Gt(x, 0.0), -x * Log(x), Number(x, -INFINITY));
  out = Select(Eq(x, 0.0), Number(x, 0.0), out);
  return {Select(IsNan(x), x, out)};
}

Values XLog1py(Lowering& lw) {
  const Values in = lw.Operands();
  const Value product = in[0] * Log1p(in[1]);
  const Value out = Select(Eq(in[0], 0.0), Like(product, 0.0), product);
  return {Select(IsNan(in[1]), in[1], out)};
}

// --- Zeta and the incomplete gamma functions.

// chlo.zeta starts its asymptotic series nine terms from q, which is too early for q below -8.
// Negative q is first brought above 0, term by term.
Value ZetaOf(Value x, Value q) {
  hlo::Function& fn = *q.function();
  const Value negative = Lt(q, 0.0) & Ne(q, Floor(q)) & Eq(x, Floor(x));
  const Values out = fn.While(
      {q, Like(q, 0.0)},
      [&](hlo::Function& f, const Values& v) {
        return Values{f.Reduce(Lt(v[0], 0.0) & negative, hlo::Monoid::kOr, Iota(q.rank()))};
      },
      [&](hlo::Function& f, const Values& v) {
        const Value more = Lt(v[0], 0.0) & negative;
        const Value term = f.Binary(BinaryOp::kPower, v[0], -x);
        return Values{f.Select(more, v[0] + 1.0, v[0]), f.Select(more, v[1] + term, v[1])};
      });
  Value zeta = out[1] + fn.Binary(BinaryOp::kZeta, x, out[0]);
  // The poles, as Cephes orders them: zeta(1, q) and q = 0, -1, ...; below x = 1 there is no value.
  zeta = Select(Le(q, 0.0) & Eq(q, Floor(q)), Like(q, INFINITY), zeta);
  zeta = Select(Lt(x, 1.0), Like(q, NAN), zeta);
  return Select(Eq(x, 1.0), Like(q, INFINITY), zeta);
}

Values Zeta(Lowering& lw) {
  const Values in = lw.Operands();
  return {ZetaOf(in[0], in[1])};
}

Values Polygamma(Lowering& lw) {
  const Value x = Self(lw);
  const int64_t n = lw.Int("n");
  if (n < 0) return {lw.Fail(InvalidArgument("polygamma(n, x) does not support negative n."))};
  if (n == 0) return {lw.fn().Unary(UnaryOp::kDigamma, x)};
  const double factor = std::tgamma(static_cast<double>(n) + 1) * (n % 2 == 1 ? 1 : -1);
  return {factor * ZetaOf(Like(x, static_cast<double>(n) + 1), x)};
}

// x^a exp(-x) / gamma(a). In float64, since large terms nearly cancel, or by a longer way round.
Value GammaTerm(Value a, Value x) {
  if (!a.valid() || !a.function()->emulates_64bit())
    return Exp(a * Log(x) - x - accurate::Lgamma(a));
  return Exp(-Deviance(a, x) - StirlingError(a)) * Sqrt(a * (0.5 / std::numbers::pi));
}

// Where a series ends and what stands for zero in a fraction. Emulated float64 has float32's range.
struct Limits {
  double epsilon, tiny;
};
Limits LimitsOf(Value a) {
  if (a.dtype() == DType::kF32) return {6e-8, 1e-30};
  if (a.valid() && a.function()->emulates_64bit()) return {1e-14, 1e-30};
  return {1e-17, 1e-300};
}

// P(a, x) by its power series: for x <= max(a, 1).
Value LowerSeries(Lowering& lw, Value a, Value x, Value skip) {
  const Value one = Like(a, 1.0);
  const double epsilon = LimitsOf(a).epsilon;
  const Values out = lw.fn().While(
      {a, one, one, skip},
      [](Function& f, const Values& v) {
        return Values{~f.Reduce(v[3], hlo::Monoid::kAnd, tpu::Iota(v[3].rank()))};
      },
      [&](Function&, const Values& v) {
        const Value r = v[0] + 1.0, term = v[1] * x / r, sum = v[2] + term;
        return Values{r, term, sum, v[3] | Le(term, sum * epsilon) | Gt(r, a + 1e5)};
      });
  return out[2] * GammaTerm(a, x) / a;
}

// Q(a, x) by Lentz's continued fraction: for x > max(a, 1).
Value UpperFraction(Lowering& lw, Value a, Value x, Value skip) {
  const Value b = x + 1.0 - a, one = Like(a, 1.0);
  const Limits limits = LimitsOf(a);
  const double tiny = limits.tiny, epsilon = 10 * limits.epsilon;
  const auto nonzero = [&](Value v) { return Select(Lt(Abs(v), tiny), Like(v, tiny), v); };
  const Value d = 1.0 / nonzero(b);
  const Values out = lw.fn().While(
      {one, b, Like(b, 1 / tiny), d, d, skip},
      [](Function& f, const Values& v) {
        return Values{~f.Reduce(v[5], hlo::Monoid::kAnd, tpu::Iota(v[5].rank()))};
      },
      [&](Function& f, const Values& v) {
        const Value i = v[0], numerator = i * (a - i), next = v[1] + 2.0;
        const Value dn = 1.0 / nonzero(numerator * v[3] + next);
        const Value c = nonzero(next + numerator / v[2]);
        const Value ratio = c * dn;
        const Value h = f.Select(v[5], v[4], v[4] * ratio);
        return Values{i + 1.0, next, c, dn, h, v[5] | Le(Abs(ratio - 1.0), epsilon) | Gt(i, 1e5)};
      });
  return out[4] * GammaTerm(a, x);
}

template <bool upper>
Values IncompleteGamma(Lowering& lw) {
  const Values in = lw.Operands();
  // Emulated, the loops take a minute to compile in float64.
  const DType t = lw.fn().emulates_64bit() ? in[0].dtype() : DType::kF64;
  const Value a = Cast(in[0], t), x = Cast(in[1], t);
  const Value valid = Gt(a, 0.0) & Gt(x, 0.0) & Lt(a, INFINITY) & Lt(x, INFINITY);
  const Value series = Le(x, Max(a, Like(a, 1.0)));
  const Value safe_a = Select(valid, a, Like(a, 1.0)), safe_x = Select(valid, x, Like(x, 1.0));
  const Value low = LowerSeries(lw, safe_a, safe_x, ~(valid & series));
  const Value high = UpperFraction(lw, safe_a, safe_x, ~valid | series);
  Value out = upper ? Select(series, 1.0 - low, high) : Select(series, low, 1.0 - high);
  const double at_zero = upper ? 1 : 0;
  const auto fixed = [&](Value where, double value) { out = Select(where, Like(out, value), out); };
  // Later lines win, so that the outcome is that of PyTorch's order of tests.
  fixed(IsNan(a) | IsNan(x), NAN);
  fixed(Eq(x, INFINITY), 1 - at_zero);
  fixed(Eq(a, INFINITY), at_zero);
  fixed(Eq(a, INFINITY) & Eq(x, INFINITY), NAN);
  fixed(Eq(x, 0.0), at_zero);
  fixed(Eq(a, 0.0), NAN);
  fixed(Eq(a, 0.0) & Gt(x, 0.0), 1 - at_zero);
  fixed(Lt(a, 0.0) | Lt(x, 0.0), NAN);
  return {Cast(out, in[0].dtype())};
}

Values LogitBackward(Lowering& lw) {
  const Value grad = lw.Tensor("grad_output"), x = lw.Tensor("self");
  const Value out = grad / (x * (1.0 - x));
  if (!lw.Has("eps")) {
    const Value outside = Lt(x, 0.0) | Gt(x, 1.0);
    return {Select(outside, Number(x, NAN), out)};
  }
  const Value eps = lw.Number("eps", x.dtype());
  return {Select(Lt(x, eps) | Gt(x, 1.0 - eps), Number(x, 0.0), out)};
}

constexpr OpDef Floating(std::string_view name, LowerFn lower) {
  return Pointwise(name, lower, In::kToFloat);
}

constexpr OpDef kRows[] = {
    Floating("aten::i0", BesselI<0, false>),
    Floating("aten::igamma", IncompleteGamma<false>),
    Floating("aten::igammac", IncompleteGamma<true>),
    Floating("aten::logit_backward", LogitBackward),
    Floating("aten::polygamma", Polygamma),
    Floating("aten::special_airy_ai", AiryAi),
    Floating("aten::special_bessel_j0", BesselJ<0>),
    Floating("aten::special_bessel_j1", BesselJ<1>),
    Floating("aten::special_bessel_y0", BesselY<0>),
    Floating("aten::special_bessel_y1", BesselY<1>),
    Floating("aten::special_entr", Entr),
    Floating("aten::special_erfcx", ErfcxOp),
    Floating("aten::special_i0e", BesselI<0, true>),
    Floating("aten::special_i1", BesselI<1, false>),
    Floating("aten::special_log_ndtr", LogNdtr),
    Floating("aten::special_modified_bessel_i0", BesselI<0, false>),
    Floating("aten::special_modified_bessel_i1", BesselI<1, false>),
    Floating("aten::special_modified_bessel_k0", BesselK<0, false>),
    Floating("aten::special_modified_bessel_k1", BesselK<1, false>),
    Floating("aten::special_ndtri", Ndtri),
    Floating("aten::special_scaled_modified_bessel_k0", BesselK<0, true>),
    Floating("aten::special_scaled_modified_bessel_k1", BesselK<1, true>),
    Floating("aten::special_spherical_bessel_j0", SphericalJ0),
    Floating("aten::special_xlog1py", XLog1py),
    Floating("aten::special_zeta", Zeta),
};

}  // namespace

std::span<const OpDef> SpecialOps() { return kRows; }

}  // namespace tpu::ops
