// Operators and small functions over Value, so that lowerings read as formulas.
// Each broadcasts as NumPy does; dtypes must be equal. With an invalid operand the function of the
// other one records the error, if none was recorded before.
#include <cmath>

#include "hlo/function_impl.h"

namespace tpu::hlo {
namespace {

Function* FunctionOf(Value a, Value b) { return a.valid() ? a.function() : b.function(); }

// Gives both operands their common shape. Operands that don't fit stay as they are: the op that
// takes them says so.
void Align(Value* a, Value* b) {
  Dims dims;
  if (!a->valid() || !b->valid() || a->function() != b->function()) return;
  if (a->type() == b->type()) return;
  if (a->dtype() != b->dtype() || !BroadcastShapes(a->dims(), b->dims(), &dims)) return;
  *a = a->function()->BroadcastTo(*a, dims);
  *b = b->function()->BroadcastTo(*b, dims);
}

Value Apply(BinaryOp op, Value a, Value b) {
  Function* fn = FunctionOf(a, b);
  if (fn == nullptr) return {};
  Align(&a, &b);
  return fn->Binary(op, a, b);
}

Value Apply(CompareOp op, Value a, Value b) {
  Function* fn = FunctionOf(a, b);
  if (fn == nullptr) return {};
  Align(&a, &b);
  return fn->Compare(op, a, b);
}

Value Apply(UnaryOp op, Value a) { return a.valid() ? a.function()->Unary(op, a) : Value(); }

// A C++ number beside `a`. Integers take whole numbers only: what else is a slip in a lowering.
Value NumberLike(Value a, double number) {
  if (!a.valid()) return {};
  bool fits = true;
  if (IsBool(a.dtype())) {
    fits = number == 0 || number == 1;
  } else if (IsInteger(a.dtype())) {
    int bits = 8 * static_cast<int>(ItemSize(a.dtype()));
    double low = IsUnsigned(a.dtype()) ? 0 : -std::ldexp(1.0, bits - 1);
    double end = std::ldexp(1.0, IsUnsigned(a.dtype()) ? bits : bits - 1);
    fits = number == std::trunc(number) && number >= low && number < end;
  }
  if (!fits) {
    return a.function()->Fail(
        InvalidArgument("the number ", number, " beside ", ToString(a.type())));
  }
  return Like(a, number);
}

}  // namespace

Value operator+(Value a, Value b) { return Apply(BinaryOp::kAdd, a, b); }
Value operator-(Value a, Value b) { return Apply(BinaryOp::kSubtract, a, b); }
Value operator*(Value a, Value b) { return Apply(BinaryOp::kMultiply, a, b); }
Value operator/(Value a, Value b) { return Apply(BinaryOp::kDivide, a, b); }
Value operator-(Value a) { return Apply(UnaryOp::kNegate, a); }
Value operator+(Value a, double b) { return a + NumberLike(a, b); }
Value operator-(Value a, double b) { return a - NumberLike(a, b); }
Value operator*(Value a, double b) { return a * NumberLike(a, b); }
Value operator/(Value a, double b) { return a / NumberLike(a, b); }
Value operator+(double a, Value b) { return NumberLike(b, a) + b; }
Value operator-(double a, Value b) { return NumberLike(b, a) - b; }
Value operator*(double a, Value b) { return NumberLike(b, a) * b; }
Value operator/(double a, Value b) { return NumberLike(b, a) / b; }
Value operator&(Value a, Value b) { return Apply(BinaryOp::kAnd, a, b); }
Value operator|(Value a, Value b) { return Apply(BinaryOp::kOr, a, b); }
Value operator^(Value a, Value b) { return Apply(BinaryOp::kXor, a, b); }
Value operator~(Value a) { return Apply(UnaryOp::kNot, a); }

Value Eq(Value a, Value b) { return Apply(CompareOp::kEq, a, b); }
Value Ne(Value a, Value b) { return Apply(CompareOp::kNe, a, b); }
Value Lt(Value a, Value b) { return Apply(CompareOp::kLt, a, b); }
Value Le(Value a, Value b) { return Apply(CompareOp::kLe, a, b); }
Value Gt(Value a, Value b) { return Apply(CompareOp::kGt, a, b); }
Value Ge(Value a, Value b) { return Apply(CompareOp::kGe, a, b); }
Value Eq(Value a, double b) { return Eq(a, NumberLike(a, b)); }
Value Ne(Value a, double b) { return Ne(a, NumberLike(a, b)); }
Value Lt(Value a, double b) { return Lt(a, NumberLike(a, b)); }
Value Le(Value a, double b) { return Le(a, NumberLike(a, b)); }
Value Gt(Value a, double b) { return Gt(a, NumberLike(a, b)); }
Value Ge(Value a, double b) { return Ge(a, NumberLike(a, b)); }

Value Select(Value pred, Value a, Value b) {
  Function* fn = pred.valid() ? pred.function() : FunctionOf(a, b);
  if (fn == nullptr) return {};
  Align(&a, &b);
  Dims dims;
  if (pred.valid() && a.valid() && b.valid() && a.type() == b.type() &&
      BroadcastShapes(pred.dims(), a.dims(), &dims)) {
    a = fn->BroadcastTo(a, dims);
    b = fn->BroadcastTo(b, dims);
    if (pred.rank() != 0) pred = fn->BroadcastTo(pred, dims);
  }
  return fn->Select(pred, a, b);
}

Value Max(Value a, Value b) { return Apply(BinaryOp::kMaximum, a, b); }
Value Min(Value a, Value b) { return Apply(BinaryOp::kMinimum, a, b); }
Value Pow(Value a, Value b) { return Apply(BinaryOp::kPower, a, b); }
Value Abs(Value a) { return Apply(UnaryOp::kAbs, a); }
Value Exp(Value a) { return Apply(UnaryOp::kExp, a); }
Value Log(Value a) { return Apply(UnaryOp::kLog, a); }
Value Log1p(Value a) { return Apply(UnaryOp::kLog1p, a); }
Value Expm1(Value a) { return Apply(UnaryOp::kExpm1, a); }
Value Sqrt(Value a) { return Apply(UnaryOp::kSqrt, a); }
Value Rsqrt(Value a) { return Apply(UnaryOp::kRsqrt, a); }
Value Tanh(Value a) { return Apply(UnaryOp::kTanh, a); }
Value Logistic(Value a) { return Apply(UnaryOp::kLogistic, a); }
Value Erf(Value a) { return Apply(UnaryOp::kErf, a); }
Value Floor(Value a) { return Apply(UnaryOp::kFloor, a); }
Value Sign(Value a) { return Apply(UnaryOp::kSign, a); }

Value Convert(Value a, DType dtype) {
  return a.valid() ? a.function()->Convert(a, dtype) : Value();
}

Value Like(Value a, Number splat) {
  return a.valid() ? a.function()->Constant(a.type(), splat) : Value();
}

Value Unsqueeze(Value a, int64_t dim) {
  if (!a.valid()) return {};
  if (dim < 0) dim += a.rank() + 1;
  if (dim < 0 || dim > a.rank()) {
    return a.function()->Fail(
        InvalidArgument("unsqueeze: no dimension ", dim, " for ", ToString(a.type())));
  }
  Dims dims = a.dims();
  dims.insert(dims.begin() + dim, 1);
  return a.function()->Reshape(a, dims);
}

Value Squeeze(Value a, int64_t dim) {
  if (!a.valid()) return {};
  if (dim < 0) dim += a.rank();
  if (dim < 0 || dim >= a.rank() || a.dim(dim) != 1) {
    return a.function()->Fail(
        InvalidArgument("squeeze: dimension ", dim, " of ", ToString(a.type()), " is not 1"));
  }
  Dims dims = a.dims();
  dims.erase(dims.begin() + dim);
  return a.function()->Reshape(a, dims);
}

Value IsNan(Value a) { return Ne(a, a); }

}  // namespace tpu::hlo
