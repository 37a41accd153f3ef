// Distributions that draw until they accept (gamma, Dirichlet, Poisson, binomial), and multinomial.
// What it is not: fills by formula (ops/random.cc).
#include <cmath>

#include "ops/cast.h"
#include "ops/density.h"
#include "ops/lowering.h"
#include "ops/op_def.h"
#include "ops/random_bits.h"
#include "ops/scan.h"
#include "ops/threefry.h"

namespace tpu::ops {
namespace {

using hlo::Function;
using hlo::UnaryOp;
using hlo::Value;
using hlo::Values;

// Fresh bits for every turn of a loop: a key of its own for the call, and the turn as a counter.
class LoopBits {
 public:
  LoopBits(Lowering& lw, int64_t n) : lw_(lw), n_(n) {
    const Lowering::Bits key = lw.RandomBits(1, 1);
    low_ = lw.fn().Reshape(key.low, Dims{});
    high_ = lw.fn().Reshape(key.high, Dims{});
  }
  Lowering::Bits Draw(Value turn, int draw) const {
    const Value zero = lw_.fn().Scalar(DType::kU32, int64_t{0});
    return ThreefryBits(lw_.fn(), {low_, high_, zero, turn}, n_, draw);
  }

 private:
  Lowering& lw_;
  const int64_t n_;
  Value low_, high_;
};

// Counts are drawn in float64; where that is emulated, float64 loops take minutes to compile, and
// float32 has to do: the densities below don't cancel.
DType CountMath(Lowering& lw, DType dtype) {
  return lw.fn().emulates_64bit() && dtype != DType::kF64 ? DType::kF32 : DType::kF64;
}

// Turns `attempt(turn)`, which gives candidates and whether each is accepted, until all are.
template <typename Attempt>
Value UntilAccepted(Lowering& lw, Value start, Value done, const Attempt& attempt) {
  const Values out = lw.fn().While(
      {lw.fn().Scalar(DType::kU32, int64_t{0}), start, done},
      [](Function& f, const Values& v) {
        const Value all = f.Reduce(v[2], hlo::Monoid::kAnd, Dims{0});
        return Values{~all & Lt(v[0], 100000.0)};
      },
      [&](Function& f, const Values& v) {
        const auto [candidate, accepted] = attempt(v[0]);
        return Values{v[0] + 1.0, f.Select(~v[2] & accepted, candidate, v[1]), v[2] | accepted};
      });
  return out[1];
}

struct Attempted {
  Value candidate, accepted;
};

// Source: Marsaglia and Tsang, "A simple method for generating gamma variables", 2000. Shapes below
// 1 by way of shape + 1.
Value GammaOf(Lowering& lw, Value shape) {  // flat, float32 or float64
  const DType t = shape.dtype();
  const int64_t n = shape.numel();
  const LoopBits bits(lw, n);
  const Value small = Lt(shape, 1.0);
  const Value d = hlo::Select(small, shape + 1.0, shape) - 1.0 / 3.0;
  const Value c = 1.0 / Sqrt(d * 9.0);
  const Value sample =
      UntilAccepted(lw, Like(shape, 0.0), Ne(shape, shape), [&](Value turn) -> Attempted {
        const Value x = NormalFrom(lw, bits.Draw(turn, 0), bits.Draw(turn, 1), t);
        const Value u = UniformOpen(lw, bits.Draw(turn, 2), t);
        const Value y = c * x + 1.0;
        const Value v = y * y * y;
        const Value accepted = Gt(y, 0.0) & Lt(Log(u), x * x * 0.5 + d - d * v + d * Log(v));
        return {d * v, accepted};
      });
  const Value boost = Pow(UniformOpen(lw, lw.RandomBits(n), t), 1.0 / shape);
  Value out = hlo::Select(small, sample * boost, sample);
  const double tiny = t == DType::kF64 ? 2.2250738585072014e-308 : 1.1754943508222875e-38;
  out = Max(out, Like(out, tiny));
  return hlo::Select(Ne(shape, shape), shape, out);
}

Value Flat(Value v) { return v.function()->Reshape(v, Dims{v.numel()}); }

Values StandardGamma(Lowering& lw) {
  const Value self = lw.Tensor("self");
  const Value shape = Flat(Cast(self, OpMathType(self.dtype())));
  if (self.numel() == 0) return {self};
  return {Cast(lw.fn().Reshape(GammaOf(lw, shape), self.dims()), self.dtype())};
}

Values Dirichlet(Lowering& lw) {
  const Value self = lw.Tensor("self");
  if (self.numel() == 0) return {self};
  const Value shape = Flat(Cast(self, OpMathType(self.dtype())));
  const Value gamma = lw.fn().Reshape(GammaOf(lw, shape), self.dims());
  const Value sum = lw.fn().Reduce(gamma, hlo::Monoid::kAdd, Dims{self.rank() - 1});
  return {Cast(gamma / Unsqueeze(sum, -1), self.dtype())};
}

// Source: Hormann, "The transformed rejection method for generating Poisson random variables", 1993
// (PTRS), from a rate of 10; below, products of uniform numbers (Knuth).
Values Poisson(Lowering& lw) {
  const Value self = lw.Tensor("self");
  if (self.numel() == 0) return {self};
  const DType t = CountMath(lw, self.dtype());
  const Value rate = Flat(Cast(self, t));
  lw.CheckValue(~Ge(rate, 0.0), rate, "self",
                "invalid Poisson rate, expected rate to be non-negative");
  const int64_t n = rate.numel();
  const LoopBits bits(lw, n);
  const Value big = Ge(rate, 10.0);
  const Value mean = hlo::Select(big, rate, Like(rate, 10.0));
  const Value b = Sqrt(mean) * 2.53 + 0.931, a = b * 0.02483 - 0.059;
  const Value inverse_alpha = 1.1328 / (b - 3.4) + 1.1239, vr = 0.9277 - 3.6224 / (b - 2.0);
  const Value large = UntilAccepted(lw, Like(rate, 0.0), ~big, [&](Value turn) -> Attempted {
    const Value u = UniformOpen(lw, bits.Draw(turn, 0), t) - 0.5;
    const Value v = UniformOpen(lw, bits.Draw(turn, 1), t);
    const Value us = 0.5 - Abs(u);
    const Value k = Floor((a * 2.0 / us + b) * u + mean + 0.43);
    const Value squeeze = Ge(us, 0.07) & Le(v, vr);
    const Value out = Lt(k, 0.0) | (Lt(us, 0.013) & Gt(v, us));
    const Value exact =
        Le(Log(v) + Log(inverse_alpha) - Log(a / (us * us) + b), LogPoisson(k, mean));
    return {k, squeeze | (~out & exact)};
  });
  const Value limit = Exp(-rate);
  const Values small = lw.fn().While(
      {lw.fn().Scalar(DType::kU32, int64_t{0}), Like(rate, 1.0), Like(rate, -1.0),
       big | ~Gt(rate, 0.0)},
      [](Function& f, const Values& v) {
        return Values{~f.Reduce(v[3], hlo::Monoid::kAnd, Dims{0})};
      },
      [&](Function& f, const Values& v) {
        const Value u = UniformOpen(lw, bits.Draw(v[0], 2), t);
        const Value product = f.Select(v[3], v[1], v[1] * u);
        const Value count = f.Select(v[3], v[2], v[2] + 1.0);
        return Values{v[0] + 1.0, product, count, v[3] | Le(product, limit)};
      });
  Value out = hlo::Select(big, large, Max(small[2], Like(rate, 0.0)));
  out = hlo::Select(Ne(rate, rate), rate, out);
  return {Cast(lw.fn().Reshape(out, self.dims()), self.dtype())};
}

// Source: Hormann, "The generation of binomial random variates", 1993 (BTRS), from a mean of 10;
// below, sums of geometric numbers of failures.
Values Binomial(Lowering& lw) {
  Dims dims;
  if (!BroadcastShapes(lw.TensorDims("count"), lw.TensorDims("prob"), &dims)) {
    return {lw.Fail(InvalidArgument("count and prob don't broadcast"))};
  }
  const DType type = lw.TensorType("count");
  if (NumElements(dims) == 0) return {lw.fn().Constant({type, dims}, int64_t{0})};
  const DType t = CountMath(lw, type);
  const auto read = [&](const char* name) {
    return Flat(lw.fn().BroadcastTo(lw.TensorAs(name, t), dims));
  };
  const Value count = read("count"), prob = read("prob");
  const LoopBits bits(lw, count.numel());
  const Value mirrored = Gt(prob, 0.5);
  const Value p = hlo::Select(mirrored, 1.0 - prob, prob);
  const Value big = Ge(count * p, 10.0);
  const Value n = hlo::Select(big, count, Like(count, 40.0));
  const Value q = hlo::Select(big, p, Like(p, 0.5));
  const Value spread = Sqrt(n * q * (1.0 - q));
  const Value b = spread * 2.53 + 1.15, a = b * 0.0248 + q * 0.01 - 0.0873;
  const Value c = n * q + 0.5, vr = 0.92 - 4.2 / b;
  const Value alpha = (5.1 / b + 2.83) * spread;
  const Value mode = LogBinomial(Floor((n + 1.0) * q), n, q);
  const Value large = UntilAccepted(lw, Like(n, 0.0), ~big, [&](Value turn) -> Attempted {
    const Value u = UniformOpen(lw, bits.Draw(turn, 0), t) - 0.5;
    const Value v = UniformOpen(lw, bits.Draw(turn, 1), t);
    const Value us = 0.5 - Abs(u);
    const Value k = Floor((a * 2.0 / us + b) * u + c);
    const Value squeeze = Ge(us, 0.07) & Le(v, vr);
    const Value out = Lt(k, 0.0) | Gt(k, n);
    const Value exact = Le(Log(v * alpha / (a / (us * us) + b)), LogBinomial(k, n, q) - mode);
    return {k, ~out & (squeeze | exact)};
  });
  const Value rate = Log1p(-p);
  const Values small = lw.fn().While(
      {lw.fn().Scalar(DType::kU32, int64_t{0}), Like(n, 0.0), Like(n, -1.0),
       big | ~Gt(p, 0.0) | ~Gt(count, 0.0)},
      [](Function& f, const Values& v) {
        return Values{~f.Reduce(v[3], hlo::Monoid::kAnd, Dims{0})};
      },
      [&](Function& f, const Values& v) {
        const Value u = UniformOpen(lw, bits.Draw(v[0], 2), t);
        const Value trials = v[1] + f.Unary(UnaryOp::kCeil, Log(u) / rate);
        const Value kept = f.Select(v[3], v[1], trials);
        const Value hits = f.Select(v[3], v[2], v[2] + 1.0);
        return Values{v[0] + 1.0, kept, hits, v[3] | Gt(trials, count)};
      });
  Value out = hlo::Select(big, large, Max(small[2], Like(n, 0.0)));
  out = hlo::Select(mirrored, count - out, out);
  out = hlo::Select(Ne(count, count) | Ne(prob, prob), count + prob, out);
  return {Cast(lw.fn().Reshape(out, dims), type)};
}

// --- multinomial: rows of unnormalised probabilities.

// What PyTorch's two ways look at, in their order and words.
void CheckProbabilities(Lowering& lw, Value p, bool replace) {
  Function& fn = lw.fn();
  const Value infinite = Eq(p, INFINITY);
  if (replace) {
    lw.CheckValue(~Ge(p, 0.0), p, "self",
                  "invalid multinomial distribution (encountering probability entry < 0)");
    lw.CheckValue(
        infinite, p, "self",
        "invalid multinomial distribution (encountering probability entry = infinity or NaN)");
  } else {
    lw.CheckValue(~Ge(p, 0.0) | infinite, p, "self",
                  "probability tensor contains either `inf`, `nan` or element < 0");
  }
  const Value sums = fn.Reduce(p, hlo::Monoid::kAdd, Dims{1});
  lw.CheckValue(Le(sums, 0.0), sums, "self, summed",
                "invalid multinomial distribution (sum of probabilities <= 0)");
}

// The largest of p / e with exponential e is a draw by p; the k largest are k draws without
// replacement.
Value WithoutReplacement(Lowering& lw, Value p, int64_t k) {
  Function& fn = lw.fn();
  const Value u = UniformOpen(lw, lw.RandomBits(p.numel()), p.dtype());
  const Value keys = p / -fn.Reshape(Log(u), p.dims());
  if (k > 1) return fn.TopK(keys, k)[1];
  const Value at = fn.Iota({DType::kI32, p.dims()}, 1);
  const Values best =
      fn.Reduce({keys, at}, {fn.Scalar(p.dtype(), -1.0), fn.Scalar(DType::kI32, int64_t{0})},
                Dims{1}, [](Function& f, const Values& v) {
                  const Value first = f.Select(Eq(v[0], v[2]), Lt(v[1], v[3]), Gt(v[0], v[2]));
                  return Values{f.Select(first, v[0], v[2]), f.Select(first, v[1], v[3])};
                });
  return Unsqueeze(best[1], 1);
}

// By halving steps over the running sums.
Value WithReplacement(Lowering& lw, Value p, int64_t k) {
  Function& fn = lw.fn();
  const int64_t rows = p.dim(0), n = p.dim(1);
  const Value sums = Scan({p}, {fn.Scalar(p.dtype(), 0.0)}, 1,
                          [](Function&, const Values& v) { return Values{v[0] + v[1]}; })[0];
  const Value total = fn.Slice(sums, Dims{0, n - 1}, Dims{rows, n}, Dims{1, 1});
  const Dims dims = {rows, k};
  const Value u = UniformFloat(lw, lw.RandomBits(rows * k), p.dtype());
  const Value target = fn.Reshape(u, dims) * total;
  int64_t top = 1;
  while (top * 2 <= n) top *= 2;
  const Values out = fn.While(
      {fn.Scalar(DType::kI32, top), fn.Constant({DType::kI32, dims}, int64_t{0})},
      [](Function&, const Values& v) { return Values{Gt(v[0], 0.0)}; },
      [&](Function& f, const Values& v) {
        const Value next = v[1] + f.BroadcastInDim(v[0], dims, Dims{});
        const Value at = Min(next, Like(next, n)) - 1.0;
        const Value sum = f.Gather(sums, Unsqueeze(at, 2),
                                   {.collapsed_slice_dims = {1},
                                    .operand_batching_dims = {0},
                                    .start_indices_batching_dims = {0},
                                    .start_index_map = {1},
                                    .index_vector_dim = 2},
                                   Dims{1, 1});
        const Value take = Le(next, static_cast<double>(n)) & Le(sum, target);
        const Value half =
            f.Binary(hlo::BinaryOp::kShiftRightLogical, v[0], Like(v[0], int64_t{1}));
        return Values{half, f.Select(take, next, v[1])};
      });
  // Rounding may reach the total: then it is the last one with a probability.
  const Value below = fn.Convert(Lt(sums, total), DType::kI32);
  return Min(out[1], Unsqueeze(fn.Reduce(below, hlo::Monoid::kAdd, Dims{1}), 1));
}

Values Multinomial(Lowering& lw) {
  const Value self = lw.Tensor("self");
  const int64_t k = lw.Int("num_samples");
  if (self.rank() < 1 || self.rank() > 2) {
    return {lw.Fail(InvalidArgument("prob_dist must be 1 or 2 dim"))};
  }
  if (!IsFloat(self.dtype())) {
    return {
        lw.Fail(InvalidArgument("multinomial only supports floating-point dtypes for input, got: ",
                                TorchName(self.dtype())))};
  }
  const int64_t n = self.dim(self.rank() - 1), rows = self.rank() == 2 ? self.dim(0) : 1;
  if (k <= 0) return {lw.Fail(InvalidArgument("cannot sample n_sample <= 0 samples"))};
  if (!lw.Bool("replacement") && k > n) {
    return {
        lw.Fail(InvalidArgument("cannot sample n_sample > prob_dist.size(-1) samples without "
                                "replacement"))};
  }
  Dims dims = {rows, k};
  if (self.rank() == 1) dims = {k};
  if (self.numel() == 0) return {lw.fn().Constant({DType::kI64, dims}, int64_t{0})};
  const Value p = Cast(lw.fn().Reshape(self, Dims{rows, n}), OpMathType(self.dtype()));
  const bool replace = k > 1 && lw.Bool("replacement");
  CheckProbabilities(lw, p, replace);
  const Value drawn = replace ? WithReplacement(lw, p, k) : WithoutReplacement(lw, p, k);
  return {Cast(lw.fn().Reshape(drawn, dims), DType::kI64)};
}

constexpr OpDef Draws(std::string_view name, LowerFn lower) {
  return {
      .name = name, .kind = Kind::kRandom, .lower = lower, .random = true, .meta = Meta::kInfer};
}

constexpr OpDef kRows[] = {
    Draws("aten::_sample_dirichlet", Dirichlet),
    Draws("aten::_standard_gamma", StandardGamma),
    Draws("aten::binomial", Binomial),
    Draws("aten::multinomial", Multinomial),
    Draws("aten::poisson", Poisson),
};

}  // namespace

std::span<const OpDef> RandomLoopOps() { return kRows; }

}  // namespace tpu::ops
