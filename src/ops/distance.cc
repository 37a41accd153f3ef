// Pairwise distances: cdist, pdist and their derivatives, by the formula and not by products, so
// that near points keep their digits.
// What it is not: pairwise_distance and cosine_similarity, which PyTorch composes.
#include <cmath>

#include "ops/lowering.h"
#include "ops/norm_layers.h"
#include "ops/pnorm.h"
#include "ops/rows.h"

namespace tpu::ops {
namespace {

using hlo::Value;
using hlo::Values;

// x1 [..., P, M] and x2 [..., R, M] as differences [..., P, R, M].
Value Differences(Value x1, Value x2) {
  return Unsqueeze(x1, x1.rank() - 1) - Unsqueeze(x2, x2.rank() - 2);
}

Values CdistForward(Lowering& lw) {
  const Value x1 = WideTensor(lw, "x1"), x2 = lw.TensorAs("x2", x1.dtype());
  const Value d = Differences(x1, x2);
  return {PNorm(d, lw.StaticNumber("p"), Dims{d.rank() - 1})};
}

// The derivative of |d|_p with respect to d, with `distance` = |d|_p along the last dimension.
Value NormSlope(Value d, Value distance, double p) {
  const Value zero = Like(d, 0.0), far = Ne(distance, 0.0);
  if (p == 0) return zero;
  if (p == 1) return Sign(d);
  if (p == 2) return Select(far, d / distance, zero);
  if (std::isinf(p)) return Select(Eq(Abs(d), distance), Sign(d), zero);
  const Value power = Pow(Abs(d), Like(d, p - 1)) / Pow(distance, Like(distance, p - 1));
  const Value slope = Select(far, Sign(d) * power, zero);
  return p < 1 ? Select(Ne(d, 0.0), slope, zero) : slope;
}

Values CdistBackward(Lowering& lw) {
  const Value x1 = WideTensor(lw, "x1"), x2 = lw.TensorAs("x2", x1.dtype());
  const Value g = lw.TensorAs("grad", x1.dtype()), distance = lw.TensorAs("cdist", x1.dtype());
  const Value d = Differences(x1, x2);
  if (d.numel() == 0 && lw.Expected(0) != nullptr) return {Value()};  // zeros in x1's own shape
  const Value slope = NormSlope(d, Unsqueeze(distance, distance.rank()), lw.StaticNumber("p"));
  return {lw.fn().Reduce(slope * Unsqueeze(g, g.rank()), hlo::Monoid::kAdd, Dims{d.rank() - 2})};
}

Value ListAt(hlo::Function& fn, Value list, Value index) {
  hlo::GatherDims d;
  d.collapsed_slice_dims = {0};
  d.start_index_map = {0};
  d.index_vector_dim = index.rank();
  return fn.Gather(list, index, d, Dims{1});
}

// Pairs (i, j), i < j < n, in order: pair k's row is n * i - i * (i + 1) / 2 + j - i - 1 solved for
// i.
Values PdistForward(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Value x = WideTensor(lw, "self");
  const int64_t n = x.dim(0), pairs = n * (n - 1) / 2;
  if (pairs == 0) return {fn.Constant({x.dtype(), {0}}, int64_t{0})};
  const Value k = fn.Iota({DType::kF64, {pairs}}, 0);
  const double half = static_cast<double>(n) - 0.5;
  const Value i = Floor(half - Sqrt((half * half - 1.0) - 2.0 * k));
  const Value j = k - i * static_cast<double>(n) + i * (i + 1.0) / 2.0 + i + 1.0;
  const Value square = Differences(x, x);
  const Value all = PNorm(square, lw.StaticNumber("p"), Dims{2});
  const Value flat = Convert(i * static_cast<double>(n) + j, DType::kI32);
  return {ListAt(fn, fn.Reshape(all, Dims{n * n}), flat)};
}

Values PdistBackward(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Value x = WideTensor(lw, "self");
  const int64_t n = x.dim(0);
  if (n < 2) return {Like(x, 0.0)};
  const hlo::Type square = {DType::kI32, {n, n}};
  const Value row = fn.Iota(square, 0), column = fn.Iota(square, 1);
  const Value low = Min(row, column), high = Max(row, column), same = Eq(row, column);
  const Value pair = low * static_cast<double>(n) - low * (low + 1.0) / 2.0 + high - low - 1.0;
  const Value at = Select(same, Like(pair, int64_t{0}), pair);
  const auto matrix = [&](const char* name) {
    const Value m = ListAt(fn, lw.TensorAs(name, x.dtype()), at);
    return Unsqueeze(Select(same, Like(m, 0.0), m), 2);
  };
  const Value slope = NormSlope(Differences(x, x), matrix("pdist"), lw.StaticNumber("p"));
  return {fn.Reduce(slope * matrix("grad"), hlo::Monoid::kAdd, Dims{1})};
}

constexpr OpDef kRows[] = {
    {.name = "aten::_cdist_backward",
     .kind = Kind::kReduce,
     .lower = CdistBackward,
     .statics = "p"},
    {.name = "aten::_cdist_forward", .kind = Kind::kReduce, .lower = CdistForward, .statics = "p"},
    {.name = "aten::_pdist_backward",
     .kind = Kind::kReduce,
     .lower = PdistBackward,
     .statics = "p"},
    {.name = "aten::_pdist_forward", .kind = Kind::kReduce, .lower = PdistForward, .statics = "p"},
};

}  // namespace

std::span<const OpDef> DistanceOps() { return kRows; }

}  // namespace tpu::ops
