// Eigenvalues of Hermitian matrices, singular values, least squares.
// What it is not: the method (jacobi.cc), nor eigenvalues of other matrices, which are rows of the
// host: the QR algorithm for them is a long chain of tiny steps that depend on data.
#include <algorithm>
#include <limits>

#include "ops/cast.h"
#include "ops/families.h"
#include "ops/jacobi.h"
#include "ops/lowering.h"
#include "ops/matrix.h"
#include "ops/reflectors.h"

namespace tpu::ops {
namespace {

using hlo::Monoid;
using hlo::UnaryOp;
using hlo::Value;
using hlo::Values;

Values Eigh(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Value given = lw.Tensor("A");
  if (!given.valid()) return Values(2);
  const bool vectors = lw.Bool("compute_v");
  const Dims batch = BatchOf(given);
  const int64_t n = given.dim(given.rank() - 1);
  const Value none = fn.Constant({given.dtype(), {0}}, int64_t{0});
  Dims value_dims = batch;
  value_dims.push_back(n);
  if (given.numel() == 0) {
    return {fn.Constant({RealOf(given.dtype()), value_dims}, int64_t{0}), vectors ? given : none};
  }
  // One triangle counts; the diagonal's imaginary part doesn't.
  const char side = lw.String("UPLO").front();
  const bool lower = side == 'L' || side == 'l';
  const Value a = JoinBatch(given);
  const Value strict = Triangle(a, lower, lower ? -1 : 1);
  Value diagonal = Triangle(Triangle(a, true), false);
  if (IsComplex(a.dtype())) diagonal = Cast(fn.Unary(UnaryOp::kReal, diagonal), a.dtype());
  const Eigen out = HermitianEigen(strict + Adjoint(strict) + diagonal, vectors);
  return {SplitBatch(out.values, batch), vectors ? SplitBatch(out.vectors, batch) : none};
}

Values Svd(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Value a = lw.Tensor("A");
  if (!a.valid()) return Values(3);
  const bool vectors = lw.Bool("compute_uv"), full = lw.Bool("full_matrices");
  const Dims batch = BatchOf(a);
  const int64_t m = a.dim(a.rank() - 2), n = a.dim(a.rank() - 1), k = std::min(m, n);
  const Value none = fn.Constant({a.dtype(), {0}}, int64_t{0});
  if (a.numel() == 0) {
    Dims value_dims = batch;
    value_dims.push_back(k);
    const Value values = fn.Constant({RealOf(a.dtype()), value_dims}, int64_t{0});
    if (!vectors) return {none, values, none};
    if (full) return {Identity(fn, a.dtype(), batch, m), values, Identity(fn, a.dtype(), batch, n)};
    return {fn.Constant({a.dtype(), WithMatrix(batch, m, k)}, int64_t{0}), values,
            fn.Constant({a.dtype(), WithMatrix(batch, k, n)}, int64_t{0})};
  }
  const Singular out = SingularValues(JoinBatch(a), vectors, full);
  const Value values = SplitBatch(out.values, batch);
  if (!vectors) return {none, values, none};
  return {SplitBatch(out.u, batch), values, SplitBatch(Adjoint(out.v), batch)};
}

// --- Least squares. Matrices of full rank by QR; any matrix by its singular values.

Value SolveUpper(Value r, Value b) {
  return b.function()->TriangularSolve(r, b, true, false, false, false);
}

Value FullRankSolution(Value a, Value b) {  // [b, m, n], [b, m, r]
  hlo::Function& fn = *a.function();
  const int64_t count = a.dim(0), m = a.dim(1), n = a.dim(2), k = std::min(m, n), r = b.dim(2);
  const Reflected q = Reflect(m >= n ? a : Adjoint(a));
  const Value upper = UpperRows(q.a, k);
  if (m >= n) {
    const Value turned = ApplyReflectors(q, b, true);
    return SolveUpper(upper, fn.Slice(turned, Dims{0, 0, 0}, Dims{count, k, r}, Dims{1, 1, 1}));
  }
  const Value half = fn.TriangularSolve(Adjoint(upper), b, true, true, false, false);
  const Value wide = fn.Pad(half, fn.Scalar(a.dtype(), int64_t{0}), Dims{0, 0, 0},
                            Dims{0, n - m, 0}, Dims{0, 0, 0});
  return ApplyReflectors(q, wide, false);
}

struct Solution {
  Value x, rank, values;  // [b, n, r], i64[b], real [b, k]
};

Solution SmallestSolution(Lowering& lw, Value a, Value b) {
  hlo::Function& fn = lw.fn();
  const DType real = RealOf(a.dtype());
  const Singular s = SingularValues(a, true, false);
  const double epsilon = real == DType::kF64 ? std::numeric_limits<double>::epsilon()
                                             : std::numeric_limits<float>::epsilon();
  const Value cut =
      lw.Has("rcond")
          ? lw.Number("rcond", real)
          : fn.Scalar(real, epsilon * static_cast<double>(std::max(a.dim(1), a.dim(2))));
  const Value largest = fn.Reduce(s.values, Monoid::kMax, Dims{1});
  const Value counts = Gt(s.values, Unsqueeze(largest * cut, 1)) & Gt(s.values, 0.0);
  const Value safe = fn.Select(counts, s.values, Like(s.values, int64_t{1}));
  const Value inverse = fn.Select(counts, 1.0 / safe, Like(s.values, int64_t{0}));
  const Value turned = MatrixProduct(Adjoint(s.u), b) * Cast(Unsqueeze(inverse, 2), a.dtype());
  return {MatrixProduct(s.v, turned), fn.Reduce(Cast(counts, DType::kI64), Monoid::kAdd, Dims{1}),
          s.values};
}

// Results whose sizes PyTorch lets depend on the driver: none is a vector of size 0.
Values LeastSquares(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  Value a = lw.Tensor("self"), b = lw.Tensor("b");
  if (!a.valid() || !b.valid()) return Values(4);
  const std::string_view driver = lw.Has("driver") ? lw.String("driver") : "gelsy";
  if (driver != "gels" && driver != "gelsy" && driver != "gelsd" && driver != "gelss") {
    lw.Fail(
        InvalidArgument("torch.linalg.lstsq: parameter `driver` should be one of "
                        "(gels, gelsy, gelsd, gelss)"));
    return Values(4);
  }
  const DType t = a.dtype(), real = RealOf(t);
  const bool vector = b.rank() == 1 || b.dims() == Dims(a.dims().begin(), a.dims().end() - 1);
  if (vector) b = Unsqueeze(b, b.rank());
  const Dims own = BatchOf(a);
  const int64_t m = a.dim(a.rank() - 2), n = a.dim(a.rank() - 1);
  if (!BroadcastBatches(lw, &a, &b)) return Values(4);
  const Dims batch = BatchOf(a);
  const bool any = driver != "gels", ranked = driver == "gelsd" || driver == "gelss";
  const Value no_number = fn.Constant({real, {0}}, int64_t{0});
  const Value flat_a = JoinBatch(a), flat_b = JoinBatch(b);
  const int64_t count = flat_a.dim(0);
  Solution s = {fn.Constant({t, {count, n, flat_b.dim(2)}}, int64_t{0}),
                fn.Constant({DType::kI64, {count}}, int64_t{0}),
                fn.Constant({real, {count, std::min(m, n)}}, int64_t{0})};
  if (a.numel() > 0 && any) s = SmallestSolution(lw, flat_a, flat_b);
  if (a.numel() > 0 && !any) s.x = FullRankSolution(flat_a, flat_b);
  Value residuals = no_number;
  if (m > n && driver != "gelsy") {
    const Value size = fn.Unary(UnaryOp::kAbs, flat_b - MatrixProduct(flat_a, s.x));
    residuals = SplitBatch(fn.Reduce(size * size, Monoid::kAdd, Dims{1}), batch);
  }
  Value x = SplitBatch(s.x, batch);
  if (vector) x = Squeeze(x, x.rank() - 1);
  return {x, residuals,
          any ? SplitBatch(s.rank, batch) : fn.Constant({DType::kI64, {0}}, int64_t{0}),
          ranked ? SplitBatch(s.values, batch) : no_number};
}

constexpr std::string_view kNoError =
    "an input that isn't finite gives NaN where the CPU raises: raising would need a host read";

constexpr OpDef Row(std::string_view name, LowerFn lower, Meta meta = Meta::kOwn,
                    std::string_view note = kNoError) {
  return {.name = name,
          .kind = Kind::kLinalg,
          .lower = lower,
          .meta = meta,
          .status = StatusKind::kPartial,
          .note = note};
}

constexpr OpDef kRows[] = {
    Row("aten::_linalg_eigh", Eigh),
    Row("aten::_linalg_svd", Svd),
    Row("aten::linalg_lstsq", LeastSquares, Meta::kInfer,
        "drivers gelsd and gelss always give residuals of a tall system; no error for NaN"),
};

}  // namespace

std::span<const OpDef> EigenOps() { return kRows; }

}  // namespace tpu::ops
