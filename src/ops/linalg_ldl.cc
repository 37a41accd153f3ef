// L D L^T with the pivots of Bunch and Kaufman, as LAPACK's sytrf and hetrf leave it (lower
// triangle, D with blocks of one and two rows), and solutions by it. What it is not: fast. Matrices
// of a batch take blocks of different sizes, so each keeps its own place, and all reads are
// selections by it.
#include <cmath>

#include "ops/cast.h"
#include "ops/families.h"
#include "ops/lowering.h"
#include "ops/matrix.h"

namespace tpu::ops {
namespace {

using hlo::Function;
using hlo::Monoid;
using hlo::UnaryOp;
using hlo::Value;
using hlo::Values;

Value Size(Value v) {  // how LAPACK compares: |re| + |im|
  Function& fn = *v.function();
  if (!IsComplex(v.dtype())) return fn.Unary(UnaryOp::kAbs, v);
  return fn.Unary(UnaryOp::kAbs, fn.Unary(UnaryOp::kReal, v)) +
         fn.Unary(UnaryOp::kAbs, fn.Unary(UnaryOp::kImag, v));
}
Value Zero(Value v) { return Like(v, int64_t{0}); }
Value One(Value v) { return Like(v, int64_t{1}); }

// i32[b, n]: 0 ... n-1.
Value Places(Value like) {
  return like.function()->Iota({DType::kI32, {like.dim(0), like.dim(1)}}, 1);
}
Value Beside(Value k, Value places) {  // [b] against [b, n]
  return k.function()->BroadcastTo(Unsqueeze(k, 1), places.dims());
}
// Row k[b] of [b, n, r]; element k[b] of [b, n]. Places out of range read the last one.
Value RowOf(Value a, Value k) {
  return a.function()->Reshape(TakeRows(a, Unsqueeze(k, 1)), Dims{a.dim(0), a.dim(2)});
}
Value ElementOf(Value a, Value k) {
  return a.function()->Reshape(TakeRows(a, Unsqueeze(k, 1)), Dims{a.dim(0)});
}
Value Outer(Value u, Value w) { return Unsqueeze(u, 2) * Unsqueeze(w, 1); }

// The greatest of sizes [b, n] where `among`, and its first place. 0 where there is none.
Values Greatest(Value sizes, Value among) {
  Function& fn = *sizes.function();
  const Value held = fn.Select(among, sizes, Like(sizes, -1.0));
  const Value best = fn.Reduce(held, Monoid::kMax, Dims{1});
  const Value at = Places(sizes);
  const Value hit = Eq(held, fn.BroadcastTo(Unsqueeze(best, 1), held.dims()));
  const Value place =
      fn.Reduce(fn.Select(hit, at, Like(at, sizes.dim(1) - 1)), Monoid::kMin, Dims{1});
  return {Max(best, Zero(best)), place};
}

struct Choice {
  Value place, two, none;  // i32[b]; whether the block has two rows; whether the column is 0
};

// `s`: the matrix, both triangles, right from row and column k on.
Choice ChoosePivot(Value s, Value k) {
  Function& fn = *s.function();
  const int64_t n = s.dim(1);
  const double alpha = (1 + std::sqrt(17.0)) / 8;
  const Value column = Size(RowOf(s, k)), at = Places(s);
  const Value own = ElementOf(column, k);
  const Values best = Greatest(column, Gt(at, Beside(k, at)));
  const Value i = Min(best[1], Like(k, n - 1)), colmax = best[0];
  const Value row = Size(RowOf(s, i));
  const Value rowmax = Greatest(row, Ge(at, Beside(k, at)) & Ne(at, Beside(i, at)))[0];
  const Value safe = fn.Select(Gt(rowmax, 0.0), rowmax, One(rowmax));
  const Value stays = Ge(own, colmax * alpha) | Ge(own, colmax * alpha * (colmax / safe));
  const Value one = stays | Ge(ElementOf(row, i), rowmax * alpha);
  const Value none = ~Gt(Max(own, colmax), 0.0);
  return {fn.Select(stays | none, k, i), ~one & ~none, none};
}

// Rows and columns `a` and `b` (i32[b]) of s [b, n, n] change places.
Value SwappedPlaces(Value at, Value a, Value b) {
  Function& fn = *at.function();
  const Value wa = Beside(a, at), wb = Beside(b, at);
  return fn.Select(Eq(at, wa), wb, fn.Select(Eq(at, wb), wa, at));
}

// v with `value` [b] at place k [b].
Value Put(Value v, Value k, Value value) {
  Function& fn = *v.function();
  const Value at = Places(v);
  return fn.Select(Eq(at, Beside(k, at)), fn.BroadcastTo(Unsqueeze(value, 1), v.dims()), v);
}

// The matrix l [b, n, n] with column k [b] replaced by `column` where `when`.
Value PutColumn(Value l, Value k, Value column, Value when) {
  Function& fn = *l.function();
  const Value at = fn.Iota({DType::kI32, l.dims()}, 2);
  const Value hit = Eq(at, fn.BroadcastTo(Unsqueeze(Unsqueeze(k, 1), 2), l.dims())) &
                    fn.BroadcastTo(Unsqueeze(Unsqueeze(when, 1), 2), l.dims());
  return fn.Select(hit, fn.BroadcastTo(Unsqueeze(column, 2), l.dims()), l);
}

struct Block {
  Value first, second;  // columns of L below the block, [b, n]; `second` of blocks of two
  Value d11, d21, d22;  // [b]
};

// x D^-1 for rows of two: [x y] with D = [d11 conj(d21); d21 d22].
Values ByInverse(const Block& d, Value x, Value y, bool hermitian) {
  const Value upper = hermitian ? Conjugate(d.d21) : d.d21;
  const Value det = d.d11 * d.d22 - d.d21 * upper;
  const auto wide = [](Value v) { return Unsqueeze(v, 1); };
  return {(x * wide(d.d22) - y * wide(d.d21)) / wide(det),
          (y * wide(d.d11) - x * wide(upper)) / wide(det)};
}

// State: k, s, l, pivots, info.
Values FactorStep(Function& fn, const Values& v, bool hermitian) {
  const Value given = v[0], n_minus = Like(given, v[1].dim(1) - 1);
  const Value active = Le(given, n_minus);
  const Value k = Min(given, n_minus);
  const Choice c = ChoosePivot(v[1], k);
  const Value two = c.two & active;
  const Value next = Min(k + 1.0, n_minus), moved = fn.Select(two, next, k);
  Value s = v[1];
  const Value at = Places(s), order = SwappedPlaces(at, moved, c.place);
  s = MatrixTranspose(TakeRows(MatrixTranspose(TakeRows(s, order)), order));
  // Rows of s are columns, conjugated where it is Hermitian.
  const auto column = [&](Value j) { return hermitian ? Conjugate(RowOf(s, j)) : RowOf(s, j); };
  const Value x = column(k), y = column(next);
  Block d;
  d.d11 = ElementOf(x, k);
  d.d21 = ElementOf(x, next);
  d.d22 = ElementOf(y, next);
  if (hermitian && IsComplex(s.dtype())) {
    for (Value* e : {&d.d11, &d.d22}) *e = Cast(fn.Unary(UnaryOp::kReal, *e), s.dtype());
  }
  const Value under = Gt(at, Beside(moved, at));
  const Value xs = fn.Select(under, x, Zero(x)), ys = fn.Select(under, y, Zero(y));
  const Value safe = fn.Select(c.none, One(d.d11), d.d11);
  const Values pair = ByInverse(d, xs, ys, hermitian);
  const Value wide = fn.BroadcastTo(Unsqueeze(two, 1), x.dims());
  const Value first = fn.Select(wide, pair[0], xs / Unsqueeze(safe, 1));
  const Value second = fn.Select(wide, pair[1], Zero(xs));
  const auto across = [&](Value u) { return hermitian ? Conjugate(u) : u; };
  const Value updated = s - Outer(first, across(xs)) - Outer(second, across(ys));
  Value left = Put(first, k, d.d11);
  left = fn.Select(wide, Put(left, next, d.d21), left);
  const Value right = Put(second, next, d.d22);
  Value l = PutColumn(v[2], k, left, active);
  l = PutColumn(l, next, right, two);
  const Value named = fn.Select(two, -(c.place + 1.0), c.place + 1.0);
  Value pivots =
      fn.Select(fn.BroadcastTo(Unsqueeze(active, 1), at.dims()), Put(v[3], k, named), v[3]);
  pivots =
      fn.Select(fn.BroadcastTo(Unsqueeze(two, 1), at.dims()), Put(pivots, next, named), pivots);
  const Value info = fn.Select(active & c.none & Eq(v[4], 0.0), k + 1.0, v[4]);
  const Value step = fn.Select(two, Like(given, int64_t{2}), Like(given, int64_t{1}));
  return {given + step, updated, l, pivots, info};
}

Values LdlFactor(Lowering& lw) {
  Function& fn = lw.fn();
  const Value given = lw.Tensor("self");
  if (!given.valid()) return Values(3);
  const bool hermitian = lw.Bool("hermitian");
  const Dims batch = BatchOf(given);
  const Value a = JoinBatch(given);
  const int64_t b = a.dim(0), n = a.dim(1);
  const Value pivots = fn.Constant({DType::kI32, {b, n}}, int64_t{0});
  const Value none = fn.Constant({DType::kI32, {b}}, int64_t{0});
  if (a.numel() == 0) return {given, SplitBatch(pivots, batch), SplitBatch(none, batch)};
  const Value strict = Triangle(a, true, -1);
  const Value s = Triangle(a, true) + (hermitian ? Adjoint(strict) : MatrixTranspose(strict));
  const Values out = fn.While(
      {none, s, Triangle(a, false, 1), pivots, none},
      [n](Function& f, const Values& v) {
        return Values{f.Reduce(Lt(v[0], static_cast<double>(n)), Monoid::kOr, Dims{0})};
      },
      [hermitian](Function& f, const Values& v) { return FactorStep(f, v, hermitian); });
  return {SplitBatch(Triangle(out[2], true), batch), SplitBatch(out[3], batch),
          SplitBatch(out[4], batch)};
}

// --- Solutions. Which rows begin a block of two: i1[b, n], from the pivots.
Value BlockStarts(Function& fn, Value pivots) {
  const int64_t b = pivots.dim(0), n = pivots.dim(1);
  return fn.While(
      {fn.Scalar(DType::kI32, int64_t{0}), fn.Constant({DType::kBool, {b, n}}, false),
       fn.Constant({DType::kBool, {b}}, false)},
      [n](Function&, const Values& v) { return Values{Lt(v[0], static_cast<double>(n))}; },
      [&](Function& f, const Values& v) {
        const Value zero = Like(v[0], int64_t{0});
        const Value pivot = f.Reshape(f.DynamicSlice(pivots, {zero, v[0]}, Dims{b, 1}), Dims{b});
        const Value starts = Lt(pivot, 0.0) & ~v[2];
        return Values{v[0] + 1.0, f.DynamicUpdateSlice(v[1], Unsqueeze(starts, 1), {zero, v[0]}),
                      starts};
      })[1];
}

struct Step {
  Value starts, ends,
      pivot;  // [b]: whether row j begins or ends a block of two; its partner from 0
};
Step StepAt(Function& fn, Value pivots, Value starts, Value j) {
  const int64_t b = pivots.dim(0);
  const Value zero = Like(j, int64_t{0});
  const auto read = [&](Value v, Value at) {
    return fn.Reshape(fn.DynamicSlice(v, {zero, at}, Dims{b, 1}), Dims{b});
  };
  Step s;
  s.starts = read(starts, j);
  s.ends = read(starts, Max(j - 1.0, zero)) & fn.BroadcastTo(Gt(j, 0.0), Dims{b});
  const Value pivot = read(pivots, j);
  s.pivot = fn.Select(Lt(pivot, 0.0), -pivot, pivot) - 1.0;
  return s;
}

Value SwapRows(Value x, Value a, Value b) { return TakeRows(x, SwappedPlaces(Places(x), a, b)); }
Value Where(Value when, Value yes, Value no) {  // [b] against [b, n] or [b, n, r]
  Value w = when;
  while (w.rank() < yes.rank()) w = Unsqueeze(w, w.rank());
  return when.function()->Select(when.function()->BroadcastTo(w, yes.dims()), yes, no);
}

// One row of L^-1 D^-1: row j, or rows j and j + 1 where a block of two begins.
Value Forward(Function& fn, Value ld, Value x, const Step& s, Value j, bool hermitian) {
  const int64_t b = ld.dim(0), n = ld.dim(1);
  const Value here = fn.BroadcastTo(j, Dims{b}), next = Min(here + 1.0, Like(here, n - 1));
  const Value last = Where(s.starts, next, here);
  x = Where(s.ends, x, SwapRows(x, last, s.pivot));
  const Value first = ColumnAt(ld, j), second = ColumnAt(ld, Min(j + 1.0, Like(j, n - 1)));
  const Value at = Places(ld), under = Gt(at, Beside(last, at));
  const Value l1 = fn.Select(under, first, Zero(first)),
              l2 = fn.Select(under, second, Zero(second));
  const Value x1 = RowOf(x, here), x2 = RowOf(x, next);
  const Value done = x - Outer(l1, x1) - Where(s.starts, Outer(l2, x2), Zero(x));
  const Block d = {{}, {}, ElementOf(first, here), ElementOf(first, next), ElementOf(second, next)};
  // D z = x, by the transpose of ByInverse.
  const Value upper = hermitian ? Conjugate(d.d21) : d.d21;
  const Value det = d.d11 * d.d22 - d.d21 * upper;
  const auto wide = [](Value v) { return Unsqueeze(v, 1); };
  const Value z1 = (x1 * wide(d.d22) - x2 * wide(upper)) / wide(det);
  const Value z2 = (x2 * wide(d.d11) - x1 * wide(d.d21)) / wide(det);
  const auto put = [&](Value to, Value k, Value row) {
    const Value hit = Eq(at, Beside(k, at));
    return fn.Select(fn.BroadcastTo(Unsqueeze(hit, 2), to.dims()),
                     fn.BroadcastTo(Unsqueeze(row, 1), to.dims()), to);
  };
  const Value one = put(done, here, x1 / wide(d.d11));
  return Where(s.ends, x, Where(s.starts, put(put(done, here, z1), next, z2), one));
}

// One row of L^-T: row j, or rows j - 1 and j where a block of two ends.
Value Backward(Function& fn, Value ld, Value x, const Step& s, Value j, bool hermitian) {
  const Value at = Places(ld), here = fn.BroadcastTo(j, Dims{ld.dim(0)});
  const Value before = Max(here - 1.0, Zero(here));
  const Value under = Gt(at, Beside(here, at));
  const auto pulled = [&](Value column) {
    const Value l = fn.Select(under, hermitian ? Conjugate(column) : column, Zero(column));
    return fn.Reduce(Unsqueeze(l, 2) * x, Monoid::kAdd, Dims{1});
  };
  const auto less = [&](Value k, Value row) {
    const Value hit = Eq(at, Beside(k, at));
    return fn.Select(fn.BroadcastTo(Unsqueeze(hit, 2), x.dims()),
                     fn.BroadcastTo(Unsqueeze(row, 1), x.dims()), Zero(x));
  };
  const Value zero = Like(j, int64_t{0});
  Value out = x - less(here, pulled(ColumnAt(ld, j)));
  out = Where(s.ends, out - less(before, pulled(ColumnAt(ld, Max(j - 1.0, zero)))), out);
  return Where(s.starts, x, SwapRows(out, here, s.pivot));
}

Values LdlSolve(Lowering& lw) {
  Function& fn = lw.fn();
  Value ld = lw.Tensor("LD"), b = lw.Tensor("B"), pivots = lw.Tensor("pivots");
  if (!pivots.valid() || !BroadcastBatches(lw, &ld, &b)) return {Value()};
  if (b.numel() == 0) return {b};
  const bool hermitian = lw.Bool("hermitian");
  const Dims batch = BatchOf(ld);
  const int64_t n = ld.dim(ld.rank() - 1);
  Dims pivot_dims = batch;
  pivot_dims.push_back(n);
  const Value flat = JoinBatch(ld);
  pivots = fn.Reshape(fn.BroadcastTo(Cast(pivots, DType::kI32), pivot_dims), Dims{flat.dim(0), n});
  const Value starts = BlockStarts(fn, pivots);
  const auto loop = [&](Value x, bool forward) {
    return fn.While(
        {fn.Scalar(DType::kI32, int64_t{0}), x},
        [n](Function&, const Values& v) { return Values{Lt(v[0], static_cast<double>(n))}; },
        [&](Function& f, const Values& v) {
          const Value j = forward ? v[0] : static_cast<double>(n - 1) - v[0];
          const Step s = StepAt(f, pivots, starts, j);
          return Values{v[0] + 1.0, forward ? Forward(f, flat, v[1], s, j, hermitian)
                                            : Backward(f, flat, v[1], s, j, hermitian)};
        })[1];
  };
  return {SplitBatch(loop(loop(JoinBatch(b), true), false), batch)};
}

constexpr OpDef kRows[] = {
    {.name = "aten::linalg_ldl_factor_ex", .kind = Kind::kLinalg, .lower = LdlFactor},
    {.name = "aten::linalg_ldl_solve", .kind = Kind::kLinalg, .lower = LdlSolve},
};

}  // namespace

std::span<const OpDef> LdlOps() { return kRows; }

}  // namespace tpu::ops
