// Batches of matrices.
#include "ops/matrix.h"

#include <algorithm>

namespace tpu::ops {

using hlo::Value;

Dims BatchOf(Value a) {
  return {a.dims().begin(), a.dims().end() - std::min<ptrdiff_t>(2, a.rank())};
}

Dims WithMatrix(const Dims& batch, int64_t rows, int64_t columns) {
  Dims dims = batch;
  dims.push_back(rows);
  dims.push_back(columns);
  return dims;
}

Value MatrixTranspose(Value a) {
  if (!a.valid()) return a;
  Dims order = Iota(a.rank());
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return a.function()->Transpose(a, order);
}

Value Conjugate(Value a) {
  if (!a.valid() || !IsComplex(a.dtype())) return a;
  hlo::Function& fn = *a.function();
  return fn.Binary(hlo::BinaryOp::kComplex, fn.Unary(hlo::UnaryOp::kReal, a),
                   -fn.Unary(hlo::UnaryOp::kImag, a));
}

Value Adjoint(Value a) { return Conjugate(MatrixTranspose(a)); }

namespace {

// i1[m, n]: column - row compared with `diagonal`.
Value Offsets(hlo::Function& fn, hlo::CompareOp op, int64_t m, int64_t n, int64_t diagonal) {
  const hlo::Type type = {DType::kI32, {m, n}};
  return fn.Compare(op, fn.Iota(type, 1) - fn.Iota(type, 0), fn.Constant(type, diagonal));
}

}  // namespace

Value Identity(hlo::Function& fn, DType dtype, const Dims& batch, int64_t n) {
  const Value is = Offsets(fn, hlo::CompareOp::kEq, n, n, 0);
  const Value one = fn.Constant({dtype, {n, n}}, int64_t{1});
  const Value zero = fn.Constant({dtype, {n, n}}, int64_t{0});
  return fn.BroadcastTo(fn.Select(is, one, zero), WithMatrix(batch, n, n));
}

Value Triangle(Value a, bool lower, int64_t diagonal) {
  if (!a.valid()) return a;
  hlo::Function& fn = *a.function();
  const Value keep = Offsets(fn, lower ? hlo::CompareOp::kLe : hlo::CompareOp::kGe,
                             a.dim(a.rank() - 2), a.dim(a.rank() - 1), diagonal);
  return fn.Select(fn.BroadcastTo(keep, a.dims()), a, fn.Constant(a.type(), int64_t{0}));
}

Value Diagonal(Value a) {
  if (!a.valid()) return a;
  hlo::Function& fn = *a.function();
  const int64_t m = a.dim(a.rank() - 2), n = a.dim(a.rank() - 1), k = std::min(m, n);
  Dims starts(a.dims().size(), 0), limits = a.dims();
  limits[limits.size() - 2] = limits[limits.size() - 1] = k;
  const Value square = fn.Slice(a, starts, limits, Dims(starts.size(), 1));
  const Value is = fn.BroadcastTo(Offsets(fn, hlo::CompareOp::kEq, k, k, 0), square.dims());
  // One element of each row survives; the sum only picks it.
  return fn.Reduce(fn.Select(is, square, fn.Constant(square.type(), int64_t{0})), hlo::Monoid::kAdd,
                   Dims{a.rank() - 1});
}

Value JoinBatch(Value a) {
  if (!a.valid()) return a;
  return a.function()->Reshape(
      a, Dims{NumElements(BatchOf(a)), a.dim(a.rank() - 2), a.dim(a.rank() - 1)});
}

Value SplitBatch(Value v, const Dims& batch) {
  if (!v.valid()) return v;
  Dims dims = batch;
  dims.insert(dims.end(), v.dims().begin() + 1, v.dims().end());
  return v.function()->Reshape(v, dims);
}

Value TakeRows(Value a, Value index) {
  if (!a.valid() || !index.valid()) return {};
  hlo::GatherDims dims = {.collapsed_slice_dims = {1},
                          .operand_batching_dims = {0},
                          .start_indices_batching_dims = {0},
                          .start_index_map = {1},
                          .index_vector_dim = 2};
  Dims sizes = a.dims();
  sizes[0] = sizes[1] = 1;
  for (int64_t d = 2; d < a.rank(); ++d) dims.offset_dims.push_back(d);
  return a.function()->Gather(a, Unsqueeze(index, 2), dims, sizes);
}

Value ColumnAt(Value a, Value j) {
  if (!a.valid() || !j.valid()) return {};
  hlo::Function& fn = *a.function();
  const Value zero = Like(j, int64_t{0});
  return fn.Reshape(fn.DynamicSlice(a, {zero, zero, j}, Dims{a.dim(0), a.dim(1), 1}),
                    Dims{a.dim(0), a.dim(1)});
}

Value RowAt(Value a, Value j) {
  if (!a.valid() || !j.valid()) return {};
  hlo::Function& fn = *a.function();
  const Value zero = Like(j, int64_t{0});
  return fn.Reshape(fn.DynamicSlice(a, {zero, j, zero}, Dims{a.dim(0), 1, a.dim(2)}),
                    Dims{a.dim(0), a.dim(2)});
}

Value MatrixProduct(Value a, Value b) {
  if (!a.valid() || !b.valid()) return {};
  return a.function()->DotGeneral(a, b, Dims{0}, Dims{0}, Dims{2}, Dims{1});
}

bool BroadcastBatches(Lowering& lw, Value* a, Value* b) {
  if (!a->valid() || !b->valid() || a->rank() < 2 || b->rank() < 2) return false;
  Dims batch;
  if (!BroadcastShapes(BatchOf(*a), BatchOf(*b), &batch)) {
    lw.Fail(InvalidArgument("the batch dimensions of ", ToString(a->type()), " and ",
                            ToString(b->type()), " don't broadcast"));
    return false;
  }
  for (Value* v : {a, b}) {
    *v = lw.fn().BroadcastTo(*v, WithMatrix(batch, v->dim(v->rank() - 2), v->dim(v->rank() - 1)));
  }
  return true;
}

}  // namespace tpu::ops
