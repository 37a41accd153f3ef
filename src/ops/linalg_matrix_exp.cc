// The exponential of a matrix: scaling, a Taylor polynomial of degree 16 in four products and more,
// squaring.
// What it is not: an eigenvalue method; any square matrix will do.
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

// How often to halve each matrix so that its norm is at most 1/2: i32[b]. The polynomial's
// remainder is then below 2^-17 / 17!, which float64 can't see.
Value Halvings(Value a) {
  Function& fn = *a.function();
  const Value size = fn.Unary(UnaryOp::kAbs, a);
  const Value norm = fn.Reduce(fn.Reduce(size, Monoid::kAdd, Dims{1}), Monoid::kMax, Dims{1});
  const Value halvings = fn.Unary(UnaryOp::kCeil, Log(norm) * (1.0 / std::log(2.0))) + 1.0;
  // NaN and infinity need none: the result is NaN anyhow.
  const Value finite = fn.Unary(UnaryOp::kIsFinite, norm) & Gt(norm, 0.5);
  const Value bounded = Min(halvings, Like(halvings, 120.0));
  return fn.Convert(Select(finite, bounded, Like(halvings, int64_t{0})), DType::kI32);
}

// 2^-n, exactly: an error would grow with each squaring.
Value PowerOfHalf(Value n, DType t) {
  Function& fn = *n.function();
  const bool wide = t == DType::kF64;
  const Value exponent = (wide ? 1023.0 : 127.0) - fn.Convert(n, wide ? DType::kI64 : DType::kI32);
  const Value shift = Like(exponent, int64_t{wide ? 52 : 23});
  return fn.BitcastConvert(fn.Binary(hlo::BinaryOp::kShiftLeft, exponent, shift), t);
}

// sum of a^k / k!, k <= 16, by Paterson and Stockmeyer: a polynomial of degree 4 in a^4.
Value Taylor(Value a) {
  Function& fn = *a.function();
  const Value one = Identity(fn, a.dtype(), {a.dim(0)}, a.dim(1));
  const Value a2 = MatrixProduct(a, a), a3 = MatrixProduct(a2, a), a4 = MatrixProduct(a2, a2);
  const auto inverse_factorial = [](int k) { return 1 / std::tgamma(k + 1.0); };
  const auto block = [&](int k) {
    return one * inverse_factorial(k) + a * inverse_factorial(k + 1) +
           a2 * inverse_factorial(k + 2) + a3 * inverse_factorial(k + 3);
  };
  Value sum = block(12) + a4 * inverse_factorial(16);
  for (int k = 8; k >= 0; k -= 4) sum = MatrixProduct(sum, a4) + block(k);
  return sum;
}

Values MatrixExp(Lowering& lw) {
  Function& fn = lw.fn();
  const Value given = lw.Tensor("self");
  if (!given.valid() || given.numel() == 0) return {given};
  const DType t = OpMathType(given.dtype());
  const Value a = JoinBatch(Cast(given, t));
  const Value halvings = Halvings(a);
  const Value scale = PowerOfHalf(halvings, RealOf(t));
  const auto wide = [&](Value v) {
    return fn.BroadcastTo(Unsqueeze(Unsqueeze(v, 1), 2), a.dims());
  };
  const Value power = Taylor(a * wide(Cast(scale, t)));
  const Values out = fn.While(
      {fn.Scalar(DType::kI32, int64_t{0}), power},
      [&](Function& f, const Values& v) {
        return Values{Lt(v[0], f.Reduce(halvings, Monoid::kMax, Dims{0}))};
      },
      [&](Function& f, const Values& v) {
        const Value more = Lt(f.BroadcastTo(v[0], halvings.dims()), halvings);
        return Values{v[0] + 1.0, f.Select(wide(more), MatrixProduct(v[1], v[1]), v[1])};
      });
  return {Cast(SplitBatch(out[1], BatchOf(given)), given.dtype())};
}

constexpr OpDef kRows[] = {
    {.name = "aten::linalg_matrix_exp", .kind = Kind::kLinalg, .lower = MatrixExp},
};

}  // namespace

std::span<const OpDef> MatrixExpOps() { return kRows; }

}  // namespace tpu::ops
