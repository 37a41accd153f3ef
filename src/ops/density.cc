// Densities without cancellation.
// Source: Loader, "Fast and accurate computation of binomial probabilities", 2000.
#include "ops/density.h"

#include "ops/transcendental.h"

namespace tpu::ops {

using hlo::Value;

namespace {
constexpr double kLogTwoPi = 1.8378770664093454836;
}  // namespace

Value StirlingError(Value n) {
  const Value small = Min(n, Like(n, 16.0)), inverse = 1.0 / n, square = inverse * inverse;
  const Value direct =
      accurate::Lgamma(small + 1.0) - (small + 0.5) * Log(small) + small - kLogTwoPi / 2;
  const Value series =
      inverse * (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square / 1680.0)));
  return hlo::Select(Lt(n, 16.0), direct, series);
}

Value Deviance(Value x, Value mean) {
  const Value v = (x - mean) / (x + mean), square = v * v;
  Value sum = Like(v, 1.0 / 15);
  for (int k = 13; k >= 3; k -= 2) sum = sum * square + 1.0 / k;
  const Value near = (x - mean) * v + 2.0 * x * v * square * sum;
  return hlo::Select(Lt(Abs(v), 0.1), near, x * Log(x / mean) + mean - x);
}

Value LogPoisson(Value k, Value mean) {
  const Value safe = Max(k, Like(k, 1.0));
  const Value density = -StirlingError(safe) - Deviance(safe, mean) - 0.5 * (kLogTwoPi + Log(safe));
  return hlo::Select(Lt(k, 1.0), -mean, density);
}

Value LogBinomial(Value k, Value n, Value p) {
  const Value one = Like(k, 1.0), rest = n - k;
  const Value hits = Max(k, one), misses = Max(rest, one);
  const Value density = StirlingError(n) - StirlingError(hits) - StirlingError(misses) -
                        Deviance(hits, n * p) - Deviance(misses, n * (1.0 - p)) +
                        0.5 * (Log(n / hits) - Log(misses) - kLogTwoPi);
  return hlo::Select(Lt(k, one), n * Log1p(-p), hlo::Select(Lt(rest, one), n * Log(p), density));
}

}  // namespace tpu::ops
