// Jacobi's method with half of all pairs rotated at once: position j is paired with its mirror
// image, and after each round all positions but the first move on by one, so that a sweep of p - 1
// rounds has met every pair. One loop whose body is a few elementwise steps: short programs, and
// what a vector unit likes. Source of the order: Brent and Luk, "The solution of singular-value and
// symmetric eigenvalue problems on multiprocessor arrays", 1985.
// What it is not: fast for matrices of many hundreds of rows; the work is n^3 a sweep, 6 to 12
// sweeps.
#include "ops/jacobi.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/cast.h"
#include "ops/matrix.h"
#include "ops/reflectors.h"

namespace tpu::ops {
namespace {

using hlo::Function;
using hlo::Monoid;
using hlo::UnaryOp;
using hlo::Value;
using hlo::Values;

constexpr int kMaxSweeps = 40;

double EpsilonOf(DType t) {
  return RealOf(t) == DType::kF64 ? std::numeric_limits<double>::epsilon()
                                  : std::numeric_limits<float>::epsilon();
}

Value AbsOf(Value v) { return v.function()->Unary(UnaryOp::kAbs, v); }
Value Mirrored(Value v, int64_t dim) { return v.function()->Reverse(v, Dims{dim}); }

// Positions 1 ... p-1 along `dim` move on by one, the last one to the front.
Value Moved(Value v, int64_t dim) {
  Function& fn = *v.function();
  const int64_t p = v.dim(dim);
  if (p <= 2) return v;
  const auto part = [&](int64_t from, int64_t to) {
    Dims starts(v.dims().size(), 0), limits = v.dims();
    starts[static_cast<size_t>(dim)] = from;
    limits[static_cast<size_t>(dim)] = to;
    return fn.Slice(v, starts, limits, Dims(starts.size(), 1));
  };
  return fn.Concatenate({part(0, 1), part(p - 1, p), part(1, p - 1)}, dim);
}

// Rotations of all pairs, by column: new column j = cosine_j column_j + sine_j column_(p-1-j).
struct Rotations {
  Value cosine, sine;  // [b, p]; the type of the matrix
  Value shift;         // real [b, p]: what the rotation adds to the diagonal
};

// That make the off-diagonal elements `off` (of position j and its mirror image) zero; `diagonal`
// is real. None where `off` is 0 or `skip` holds.
Rotations RotationsOf(Value diagonal, Value off, Value skip) {
  Function& fn = *off.function();
  const int64_t p = off.dim(1);
  // Rounding leaves the two elements of a pair a little different, and where they are nothing but
  // rounding, quite: the first one speaks for both, else the rotation isn't one.
  const Value at = fn.Iota({DType::kI32, off.dims()}, 1);
  const Value first = Lt(at, static_cast<double>(p / 2));
  off = fn.Select(first, off, Conjugate(Mirrored(off, 1)));
  const Value half = (Mirrored(diagonal, 1) - diagonal) * 0.5;
  const Value size = AbsOf(off);
  const Value reach = AbsOf(half) + Sqrt(half * half + size * size);
  Value rotates = Gt(size, 0.0) & Gt(reach, 0.0);
  if (skip.valid()) rotates = rotates & ~skip;
  const Value safe = fn.Select(rotates, reach, Like(reach, int64_t{1}));
  const Value tangent = fn.Select(rotates, size / safe, Like(size, int64_t{0}));
  const Value one = Like(half, int64_t{1});
  // Equal diagonal elements: the two of a pair must still turn opposite ways.
  const Value tie = fn.Select(first, one, -one);
  const Value sign = fn.Select(Eq(half, 0.0), tie, Sign(half));
  const Value cosine = 1.0 / Sqrt(tangent * tangent + 1.0);
  const Value factor = fn.Select(rotates, -sign * cosine / safe, Like(sign, int64_t{0}));
  const DType t = off.dtype();
  return {Cast(cosine, t), Conjugate(off) * Cast(factor, t), -sign * tangent * size};
}

Value RotateColumns(Value a, const Rotations& r) {
  return a * Unsqueeze(r.cosine, 1) + Mirrored(a, 2) * Unsqueeze(r.sine, 1);
}
Value RotateRows(Value a, const Rotations& r) {
  return a * Unsqueeze(r.cosine, 2) + Mirrored(a, 1) * Unsqueeze(Conjugate(r.sine), 2);
}

// Greatest magnitude of each matrix, 1 where that is no divisor: real [b].
Value ScaleOf(Value a) {
  const Value size = a.function()->Reduce(AbsOf(a), Monoid::kMax, Dims{1, 2});
  return Select(Gt(size, 0.0), size, Like(size, int64_t{1}));
}
Value Divided(Value a, Value scale) {
  return a / Cast(Unsqueeze(Unsqueeze(scale, 1), 2), a.dtype());
}

// [b, m, n] with one more column (and row) of zeros where n is odd: pairs need an even number.
Value Padded(Value a, bool rows) {
  const int64_t odd = a.dim(2) % 2;
  Function& fn = *a.function();
  return odd == 0 ? a
                  : fn.Pad(a, fn.Scalar(a.dtype(), int64_t{0}), Dims{0, 0, 0},
                           Dims{0, rows ? 1 : 0, 1}, Dims{0, 0, 0});
}
Value FirstColumns(Value a, int64_t n) {
  Dims limits = a.dims();
  limits.back() = n;
  return a.function()->Slice(a, Dims(limits.size(), 0), limits, Dims(limits.size(), 1));
}

// Runs rounds of whole sweeps while `worst` of the last sweep exceeds `tolerance` in any matrix.
// State: round, worst, then what `round` takes and gives: the round's own worst, then the rest.
Values Sweeps(Function& fn, Value worst, const Values& inits, int64_t p, double tolerance,
              const std::function<Values(const Values&)>& round) {
  const int64_t rounds = p - 1;
  Values state = {fn.Scalar(DType::kI32, int64_t{0}), worst};
  state.insert(state.end(), inits.begin(), inits.end());
  const auto begins = [rounds](Function& f, Value r) {
    return Eq(f.Binary(hlo::BinaryOp::kRemainder, r, Like(r, rounds)), 0.0);
  };
  const Values out = fn.While(
      state,
      [&](Function& f, const Values& v) {
        const Value more = f.Reduce(Gt(v[1], tolerance), Monoid::kOr, Dims{0});
        const Value within = Lt(v[0], static_cast<double>(kMaxSweeps * rounds));
        return Values{within & (~begins(f, v[0]) | Eq(v[0], 0.0) | more)};
      },
      [&](Function& f, const Values& v) {
        Values next = round(Values(v.begin() + 2, v.end()));
        const Value before = Select(begins(f, v[0]), Like(v[1], int64_t{0}), v[1]);
        next[0] = Max(before, next[0]);
        next.insert(next.begin(), v[0] + 1.0);
        return next;
      });
  return Values(out.begin() + 2, out.end());
}

Values EigenRound(const Values& v) {
  const Value w = v[0];
  Function& fn = *w.function();
  const int64_t b = w.dim(0), p = w.dim(1);
  const Value flat = fn.Reshape(w, Dims{b, p * p});
  Value diagonal = fn.Slice(flat, Dims{0, 0}, Dims{b, p * p}, Dims{1, p + 1});
  if (IsComplex(diagonal.dtype())) diagonal = fn.Unary(UnaryOp::kReal, diagonal);
  const Value off = fn.Slice(flat, Dims{0, p - 1}, Dims{b, p * p - p + 1}, Dims{1, p - 1});
  const Rotations r = RotationsOf(diagonal, off, {});
  const Value turned = RotateRows(RotateColumns(w, r), r);
  const hlo::Type index = {DType::kI32, w.dims()};
  const Value row = fn.Iota(index, 1), column = fn.Iota(index, 2);
  const Value exact = fn.BroadcastTo(Unsqueeze(Cast(diagonal + r.shift, w.dtype()), 2), w.dims());
  Value next = fn.Select(Eq(row + column, static_cast<double>(p - 1)), Like(w, int64_t{0}), turned);
  next = fn.Select(Eq(row, column), exact, next);
  Values out = {fn.Reduce(AbsOf(off), Monoid::kMax, Dims{1}), Moved(Moved(next, 1), 2)};
  if (v.size() > 1) out.push_back(Moved(RotateColumns(v[1], r), 2));
  return out;
}

// Columns of `a` [b, m, n] in the order `order` [b, n].
Value TakeColumns(Value a, Value order) {
  return MatrixTranspose(TakeRows(MatrixTranspose(a), order));
}

// Sorted values and where they were.
Values Sorted(Value values, bool descending) {
  Function& fn = *values.function();
  const Value at = fn.Iota({DType::kI32, values.dims()}, 1);
  return fn.Sort({values, at}, 1, true, [descending](Function&, const Values& v) {
    return Values{descending ? Gt(v[0], v[1]) : Lt(v[0], v[1])};
  });
}

// One-sided: columns of w = a v are made orthogonal to each other.
Values SingularRound(const Values& v, double tolerance) {
  const Value w = v[0];
  Function& fn = *w.function();
  const Value conjugate = Conjugate(w);
  Value squares = fn.Reduce(conjugate * w, Monoid::kAdd, Dims{1});
  if (IsComplex(w.dtype())) squares = fn.Unary(UnaryOp::kReal, squares);
  const Value products = fn.Reduce(conjugate * Mirrored(w, 2), Monoid::kAdd, Dims{1});
  const Value norm = Sqrt(squares), other = Mirrored(norm, 1);
  const Value both = Gt(norm, 0.0) & Gt(other, 0.0);
  const Value one = Like(norm, int64_t{1}), zero = Like(norm, int64_t{0});
  const Value angle = fn.Select(
      both, AbsOf(products) / fn.Select(both, norm, one) / fn.Select(both, other, one), zero);
  const Rotations r = RotationsOf(squares, products, Le(angle, tolerance));
  Values out = {fn.Reduce(angle, Monoid::kMax, Dims{1}), Moved(RotateColumns(w, r), 2)};
  if (v.size() > 1) out.push_back(Moved(RotateColumns(v[1], r), 2));
  return out;
}

// Orthonormal columns along those of w, which are orthogonal and shrink from left to right: w's QR
// factor, which is whole even where columns of w are 0, turned to w's own phases.
Value Directions(Value w, bool full) {
  Function& fn = *w.function();
  const int64_t m = w.dim(1), n = w.dim(2), columns = full ? m : n;
  const Reflected r = Reflect(w);
  const Value diagonal = Diagonal(r.a), size = AbsOf(diagonal);
  const Value some = Gt(size, 0.0);
  const Value safe = fn.Select(some, size, Like(size, int64_t{1}));
  Value phase = fn.Select(some, diagonal / Cast(safe, w.dtype()), Like(diagonal, int64_t{1}));
  phase =
      fn.Pad(phase, fn.Scalar(w.dtype(), int64_t{1}), Dims{0, 0}, Dims{0, columns - n}, Dims{0, 0});
  return ReflectorColumns(r, columns) * Unsqueeze(phase, 1);
}

// m >= n.
Singular TallSingularValues(Value a, bool vectors, bool full) {
  Function& fn = *a.function();
  const int64_t b = a.dim(0), m = a.dim(1), n = a.dim(2);
  const DType t = a.dtype(), real = RealOf(t);
  const Value scale = ScaleOf(a);
  Values inits = {Padded(Divided(a, scale), false)};
  if (vectors) inits.push_back(Padded(Identity(fn, t, {b}, n), false));
  const double tolerance = 2 * EpsilonOf(t) * std::sqrt(static_cast<double>(m));
  const Values out =
      Sweeps(fn, fn.Constant({real, {b}}, int64_t{0}), inits, inits[0].dim(2), tolerance,
             [tolerance](const Values& v) { return SingularRound(v, tolerance); });
  const Value w = FirstColumns(out[0], n);
  Value squares = fn.Reduce(Conjugate(w) * w, Monoid::kAdd, Dims{1});
  if (IsComplex(t)) squares = fn.Unary(UnaryOp::kReal, squares);
  const Values sorted = Sorted(Sqrt(squares), true);
  const Value values = sorted[0] * Unsqueeze(scale, 1);
  if (!vectors) return {{}, values, {}};
  return {Directions(TakeColumns(w, sorted[1]), full), values,
          TakeColumns(FirstColumns(out[1], n), sorted[1])};
}

}  // namespace

Eigen HermitianEigen(Value a, bool vectors) {
  Function& fn = *a.function();
  const int64_t b = a.dim(0), n = a.dim(1);
  const DType t = a.dtype(), real = RealOf(t);
  const Value scale = ScaleOf(a);
  Values inits = {Padded(Divided(a, scale), true)};
  const int64_t p = inits[0].dim(1);
  if (vectors) inits.push_back(Padded(Identity(fn, t, {b}, n), false));
  const Values out =
      Sweeps(fn, fn.Constant({real, {b}}, int64_t{0}), inits, p, EpsilonOf(t), EigenRound);
  Value diagonal = FirstColumns(Diagonal(out[0]), n);
  if (IsComplex(t)) diagonal = fn.Unary(UnaryOp::kReal, diagonal);
  const Values sorted = Sorted(diagonal, false);
  const Value values = sorted[0] * Unsqueeze(scale, 1);
  if (!vectors) return {values, {}};
  return {values, TakeColumns(FirstColumns(out[1], n), sorted[1])};
}

Singular SingularValues(Value a, bool vectors, bool full) {
  if (a.dim(1) >= a.dim(2)) return TallSingularValues(a, vectors, full);
  const Singular s = TallSingularValues(Adjoint(a), vectors, full);
  return {s.v, s.values, s.u};
}

}  // namespace tpu::ops
