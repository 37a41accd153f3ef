// Gradients of random draws by their parameters: of gamma and Dirichlet variates. By the derivative
// of the distribution function, -(dF/da) / f, with power series differentiated term by term in
// float64. What it is not: the draws (random_loops.cc).
#include <cmath>

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

constexpr double kMaxTerms = 20000;

// float64, but where that is emulated the operands' own type: its loops take half a minute to
// compile.
DType MathType(Lowering& lw, DType own) { return lw.fn().emulates_64bit() ? own : DType::kF64; }

// Terms below this part of a sum end it. Emulated float64 has 48 bits.
double Epsilon(Value v) {
  if (v.dtype() != DType::kF64) return 1e-8;
  return v.function()->emulates_64bit() ? 1e-15 : 1e-17;
}

Value Digamma(Value a) { return a.function()->Unary(UnaryOp::kDigamma, a); }
Value Is(Value like, double x) { return Like(like, x); }

// sum of the terms, and of their derivatives. A term's derivative is term * slope.
struct Sums {
  Value terms, derivatives;
};

// Terms of one sign or falling fast: from 1, each is the one before times a factor of its number k
// (from 1, a scalar in the program). `next` gives the factor and what it adds to the slope.
Sums Series(Value like, const std::function<Values(Value)>& next) {
  Function& fn = *like.function();
  const Value one = Is(like, 1.0), zero = Is(like, 0.0);
  const double epsilon = Epsilon(like);
  const Values out = fn.While(
      {fn.Scalar(like.dtype(), 1.0), one, zero, one, zero, Eq(one, 0.0)},
      [&](Function& f, const Values& v) {
        const Value done = f.Reduce(v[5], Monoid::kAnd, Iota(like.rank()));
        return Values{~done & Lt(v[0], kMaxTerms)};
      },
      [&](Function& f, const Values& v) {
        const Values step = next(v[0]);
        const Value term = v[1] * step[0], derivative = term * (v[2] + step[1]);
        const Value terms = v[3] + term, derivatives = v[4] + derivative;
        const Value small =
            Le(Abs(term), Abs(terms) * epsilon) & Le(Abs(derivative), Abs(derivatives) * epsilon);
        const Value done = v[5] | small | IsNan(term);
        return Values{v[0] + 1.0,
                      f.Select(v[5], v[1], term),
                      f.Select(v[5], v[2], v[2] + step[1]),
                      f.Select(v[5], v[3], terms),
                      f.Select(v[5], v[4], derivatives),
                      done};
      });
  return {out[3], out[4]};
}

// Wilson and Hilferty: the cube root of a gamma variate is nearly normal.
Value LargeGammaGrad(Value a, Value x) {
  const Value root = a.function()->Unary(UnaryOp::kCbrt, x / a);
  const Value deviate = (root - 1.0 + 1.0 / (a * 9.0)) * Sqrt(a) * 3.0;
  return x / a + a * root * root * 3.0 * (1.0 / (a * a * 9.0) - deviate / (a * Sqrt(a) * 6.0));
}

Values StandardGammaGrad(Lowering& lw) {
  const Values in = lw.Operands();
  const DType own = in[0].dtype();
  const DType t = MathType(lw, own);
  const Value a = Cast(in[0], t), x = Cast(in[1], t);
  const Value large = Gt(a, t == DType::kF64 ? 1e5 : 1e3), far = ~large & Gt(x, a + 18.0),
              near = ~large & ~far;
  const auto safe = [&](Value where, Value v) { return Select(where, v, Is(v, 1.0)); };
  const Value an = safe(near, a), xn = safe(near, x);
  const Sums low = Series(an, [&](Value k) {
    const Value n = an + lw.fn().BroadcastTo(k, an.dims());
    return Values{xn / n, -1.0 / n};
  });
  const Value below = -xn / an * ((Log(xn) - Digamma(an + 1.0)) * low.terms + low.derivatives);
  // Far out: the asymptotic series of the upper tail. Its slope is kept beside the product, since a
  // factor may be 0.
  const Value af = safe(far, a), xf = safe(far, x);
  Function& fn = lw.fn();
  const Value one = Is(af, 1.0), zero = Is(af, 0.0);
  const double epsilon = Epsilon(af) / 10;
  const Values up = fn.While(
      {fn.Scalar(t, 1.0), one, zero, one, zero},
      [&](Function& f, const Values& v) {
        const Value more = (Gt(Abs(v[1]), epsilon) | Gt(Abs(v[2]), epsilon)) &
                           Lt(f.BroadcastTo(v[0], af.dims()), af + xf);
        return Values{f.Reduce(more, Monoid::kOr, Iota(af.rank())) & Lt(v[0], kMaxTerms)};
      },
      [&](Function& f, const Values& v) {
        const Value k = f.BroadcastTo(v[0], af.dims()), factor = (af - k) / xf;
        const Value within = Lt(k, af + xf);
        const Value term = f.Select(within, v[1] * factor, zero);
        const Value slope = f.Select(within, v[2] * factor + v[1] / xf, zero);
        return Values{v[0] + 1.0, term, slope, v[3] + term, v[4] + slope};
      });
  const Value above = (Log(xf) - Digamma(af)) * up[3] + up[4];
  Value out = Select(near, below, above);
  out = Select(large, LargeGammaGrad(Select(large, a, Is(a, 1e6)), Select(large, x, Is(x, 1e6))),
               out);
  return {Cast(out, own)};
}

// Of I_x(a, b) by a, over the density: the first parameter's where x is small, else by the mirror
// image 1 - I_(1-x)(b, a), whose second parameter it is.
Values DirichletGrad(Lowering& lw) {
  const Values in = lw.Operands();
  const DType own = in[0].dtype();
  const DType t = MathType(lw, own);
  const Value x = Cast(in[0], t), a = Cast(in[1], t);
  const Value total = Cast(in[2], t), b = total - a;
  Function& fn = lw.fn();
  const Value mirrored = Gt(x, (a + 1.0) / (total + 2.0));
  const Value y = Select(mirrored, 1.0 - x, x), p = Select(mirrored, b, a);
  const Sums s = Series(y, [&](Value k) {
    const Value n = fn.BroadcastTo(k, y.dims());
    const Value top = total + n - 1.0, bottom = p + n;
    return Values{top / bottom * y, 1.0 / top - Select(mirrored, Is(y, 0.0), 1.0 / bottom)};
  });
  // I = y^p (1-y)^q / (p B(p, q)) * terms; over the density that is y (1-y) / p * terms.
  const Value log = Log(x) - Digamma(a) + Digamma(total) - Select(mirrored, Is(y, 0.0), 1.0 / a);
  const Value grad = y / p * (log * s.terms + s.derivatives);
  // Divided by 1 - x as PyTorch's formula has it: y (1-y) is x (1-x).
  const Value out = Select(mirrored, grad * x / y, -grad * (1.0 - y) / (1.0 - x));
  return {Cast(out, own)};
}

constexpr OpDef Row(std::string_view name, LowerFn lower, std::string_view meta) {
  return {.name = name, .kind = Kind::kPointwise, .lower = lower, .meta_name = meta};
}

constexpr OpDef kRows[] = {
    Row("aten::_dirichlet_grad", DirichletGrad, "aten::lerp.Tensor"),
    Row("aten::_standard_gamma_grad", StandardGammaGrad, "aten::igamma"),
};

}  // namespace

std::span<const OpDef> RandomGradOps() { return kRows; }

}  // namespace tpu::ops
