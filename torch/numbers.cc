// Checks of numbers.
#include "numbers.h"

#include <algorithm>
#include <cmath>

#include "convert.h"
#include "ops/rows.h"
#include "shape/dtype.h"

namespace tpu::torch_layer {
namespace {

using exec::Arg;
using exec::Call;
using exec::Number;

bool IsNumber(const Arg& a) {
  return a.kind == Arg::Kind::kNumber || a.kind == Arg::Kind::kHostTensor;
}

DType TypeOf(const Arg& a) {
  if (a.kind == Arg::Kind::kHostTensor) return a.dtype;
  switch (a.number.kind) {
    case Number::Kind::kBool: return DType::kBool;
    case Number::Kind::kComplex: return DType::kC128;
    case Number::Kind::kFloat: return DType::kF64;
    default: return DType::kI64;
  }
}

// The type that a pointwise row computes in, before the half types' detour over float32; else that
// of the first tensor, as the others are indices or equal.
DType ComputeType(const Call& call) {
  const exec::Overload& o = *call.overload;
  if (!ops::IsPointwise(o.row->kind) || o.row->in == ops::In::kSelf) {
    return call.tensors.empty() ? DType::kInvalid : call.tensors[0].dtype;
  }
  ResultType type;
  for (size_t i = 0; i < call.args.size(); ++i) {
    const Arg& a = call.args[i];
    bool counts = o.reads_targets;
    if (!counts) counts = std::ranges::find(o.targets, static_cast<int>(i)) == o.targets.end();
    if (!counts) continue;
    if (a.kind == Arg::Kind::kTensor) {
      type.AddTensor(call.tensors[a.at].dtype, call.tensors[a.at].rank == 0);
    } else if (a.kind == Arg::Kind::kHostTensor && !a.wrapped) {
      type.AddTensor(a.dtype, true);
    } else if (a.kind == Arg::Kind::kHostTensor || exec::Promotes(o.arg_names[i])) {
      if (IsNumber(a)) type.AddWrappedNumber(TypeOf(a));
    }
  }
  return type.Get(call.default_dtype);
}

// Every type holds these.
bool IsSmall(const Number& n) {
  if (n.kind == Number::Kind::kComplex) return false;
  return std::abs(n.AsDouble()) < 128;
}

// Of add, sub and rsub, whose result has no part of alpha's type.
void CheckAlpha(const Call& call, const Number& alpha) {
  if (IsFloat(call.tensors[0].dtype) && alpha.kind == Number::Kind::kFloat) return;
  const DType t = ComputeType(call);
  const char* wrong = nullptr;
  if (alpha.kind == Number::Kind::kBool && !IsBool(t)) {
    wrong = "Boolean alpha only supported for Boolean results.";
  } else if (alpha.kind == Number::Kind::kFloat && IsIntegral(t)) {
    wrong = "For integral input tensors, argument alpha must not be a floating point number.";
  } else if (alpha.kind == Number::Kind::kComplex && !IsComplex(t)) {
    wrong = "For non-complex input tensors, argument alpha must not be a complex number.";
  }
  if (wrong != nullptr) Check(InvalidArgument(wrong));
}

void CheckScalars(const Call& call, const std::vector<int>& scalars) {
  const exec::Overload& o = *call.overload;
  // Searches compare with the number as it is, or wrap it.
  if (o.row->kind == ops::Kind::kSort || call.tensors.empty()) return;
  for (const int i : scalars) {
    const Arg& a = call.args[size_t(i)];
    if (a.kind != Arg::Kind::kNumber || a.is_default) continue;
    const bool alpha = o.arg_names[size_t(i)] == "alpha" && ops::IsPointwise(o.row->kind);
    if (alpha && a.number.kind != Number::Kind::kInt) CheckAlpha(call, a.number);
    if (IsSmall(a.number)) continue;
    DType t = ComputeType(call);
    if (t == DType::kInvalid) return;
    if (IsFloat(t) && o.arg_names[size_t(i)] == "exponent") continue;  // pow's is a double
    const bool imaginary = a.number.kind == Number::Kind::kComplex && a.number.imag != 0;
    if (imaginary && !IsComplex(t)) {
      Check(
          InvalidArgument("value cannot be converted to type ", TorchName(t), " without overflow"));
    }
    // Most kernels of half types take their numbers as float32.
    if (o.row->check != &ops::CheckFits) t = OpMathType(t);
    const double n = a.number.AsDouble();
    Check(ops::CheckFits({&n, 1}, t));
  }
}

// What the row itself has to say.
void CheckByRow(const Call& call) {
  const auto check = call.overload->row->check;
  if (check == nullptr || check == &ops::CheckFits) return;
  double numbers[8];
  size_t n = 0;
  for (const Arg& a : call.args) {
    if (a.kind == Arg::Kind::kNumber && n < std::size(numbers)) numbers[n++] = a.number.AsDouble();
  }
  const DType self = call.tensors.empty() ? DType::kInvalid : call.tensors[0].dtype;
  Check(check({numbers, n}, self));
}

// Division by the number 0 in integers. A number wraps to the type first: 2**32 is 0 in int32.
void CheckDivisor(const Call& call) {
  const exec::Overload& o = *call.overload;
  for (size_t i = 0; i < call.args.size(); ++i) {
    const Arg& a = call.args[i];
    if (o.arg_names[i] == "rounding_mode" && a.kind == Arg::Kind::kNone) return;
  }
  for (size_t i = 0; i < call.args.size(); ++i) {
    const Arg& a = call.args[i];
    if (o.arg_names[i] != o.row->divisor || !IsNumber(a)) continue;
    const DType t = TypeOf(a);
    if (IsFloat(t) || IsComplex(t)) return;
    const int64_t n = a.number.AsInt();
    if (n != 0 && std::abs(n) < 256) return;
    const DType compute = ComputeType(call);
    if (!IsInteger(compute)) return;
    const int64_t bits = 8 * ItemSize(compute);
    const uint64_t kept = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    if ((static_cast<uint64_t>(n) & kept) == 0) Check(InvalidArgument("ZeroDivisionError"));
  }
}

}  // namespace

void CheckNumbers(const Call& call, const std::vector<int>& scalars) {
  CheckByRow(call);
  if (!scalars.empty()) CheckScalars(call, scalars);
  if (!call.overload->row->divisor.empty()) CheckDivisor(call);
}

}  // namespace tpu::torch_layer
