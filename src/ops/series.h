// Series: sums of Chebyshev series at the values of a tensor. The coefficients (special_tables.h)
// are good for float64; narrower types leave out the terms they can't see.
// What it is not: the functions made of them (special.cc, transcendental.cc).
#pragma once

#include <span>

#include "hlo/hlo.h"

namespace tpu::ops {

// The series at t in [-1, 1], by Clenshaw's recurrence: good for every series.
hlo::Value Chebyshev(hlo::Value t, std::span<const double> c);

// The series that was fitted on [low, high].
hlo::Value Series(hlo::Value x, double low, double high, std::span<const double> c);

// The same sum as a polynomial in x, by Horner's rule: half the work. For intervals around or
// beside 0, and series that converge fast, so that the powers of x don't cancel each other.
hlo::Value Polynomial(hlo::Value x, double low, double high, std::span<const double> c);

}  // namespace tpu::ops
