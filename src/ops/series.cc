// See series.h.
#include "ops/series.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tpu::ops {
namespace {

using hlo::Value;

std::span<const double> Visible(std::span<const double> c, DType dtype) {
  if (dtype == DType::kF64) return c;
  double largest = 0;
  for (double x : c) largest = std::max(largest, std::abs(x));
  while (c.size() > 2 && std::abs(c.back()) < 1e-9 * largest) c = c.first(c.size() - 1);
  return c;
}

// Coefficients of x^k for the sum of c_j T_j(scale x + offset).
std::vector<long double> Powers(std::span<const double> c, long double scale, long double offset) {
  const size_t n = c.size();
  std::vector<long double> sum(n), last(n), now(n), next(n);  // T_(j-1), T_j, T_(j+1)
  last[0] = 1;
  now[0] = offset;
  if (n > 1) now[1] = scale;
  for (size_t j = 0; j < n; ++j) {
    for (size_t k = 0; k < n; ++k) sum[k] += c[j] * last[k];
    for (size_t k = 0; k < n; ++k) {
      next[k] = 2 * (offset * now[k] + (k > 0 ? scale * now[k - 1] : 0)) - last[k];
    }
    last = now;
    now = next;
  }
  return sum;
}

}  // namespace

Value Chebyshev(Value t, std::span<const double> c) {
  c = Visible(c, t.dtype());
  const Value twice = t * 2.0;
  Value b1 = Like(t, c.back()), b2 = Like(t, 0.0);
  for (size_t i = c.size() - 2; i > 0; --i) {
    const Value b0 = twice * b1 - b2 + c[i];
    b2 = b1;
    b1 = b0;
  }
  return t * b1 - b2 + c[0];
}

Value Series(Value x, double low, double high, std::span<const double> c) {
  return Chebyshev((x - low) * (2.0 / (high - low)) - 1.0, c);
}

Value Polynomial(Value x, double low, double high, std::span<const double> c) {
  const long double width = static_cast<long double>(high) - low;
  const std::vector<long double> powers =
      Powers(Visible(c, x.dtype()), 2 / width, -(static_cast<long double>(low) + high) / width);
  Value sum = Like(x, static_cast<double>(powers.back()));
  for (size_t k = powers.size() - 1; k-- > 0;) sum = sum * x + static_cast<double>(powers[k]);
  return sum;
}

}  // namespace tpu::ops
