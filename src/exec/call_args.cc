// CallLowering: arguments by name.
#include <bit>

#include "exec/call_lowering.h"
#include "exec/view_emit.h"
#include "ops/cast.h"
#include "shape/view.h"

namespace tpu::exec {

using hlo::Value;
using hlo::Values;

int CallLowering::ArgIndex(std::string_view name) const {
  const auto& names = call_.overload->arg_names;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<int>(i);
  }
  return -1;
}

const Arg& CallLowering::Find(std::string_view name) const {
  static const Arg* const kNoArg = new Arg;
  const int i = ArgIndex(name);
  return i < 0 ? *kNoArg : call_.args[size_t(i)];
}

bool CallLowering::Has(std::string_view name) const {
  const Arg& a = Find(name);
  if (a.kind == Arg::Kind::kTensor) return call_.tensors[a.at].storage != nullptr;
  return a.kind != Arg::Kind::kNone;
}

Value CallLowering::OperandOf(const Arg& a, int index, DType dtype) {
  switch (a.kind) {
    case Arg::Kind::kTensor: {
      const Value v = space_ == Space::kNone ? ReadLogical(a.at) : ReadPointwise(a.at);
      return dtype == DType::kInvalid ? v : ops::Cast(v, dtype);
    }
    case Arg::Kind::kHostTensor:
    case Arg::Kind::kNumber: {
      const Value v = NumberValue(index, dtype == DType::kInvalid ? a.dtype : dtype);
      return space_ == Space::kNone ? v : fn_->BroadcastInDim(v, iteration_, Dims{});
    }
    default: return {};
  }
}

Value CallLowering::TensorAs(std::string_view name, DType dtype) {
  const int i = ArgIndex(name);
  if (i < 0) return Fail(Internal(call_.overload->name, " has no argument '", name, "'"));
  const Arg& a = call_.args[size_t(i)];
  if (a.kind == Arg::Kind::kTensors) {
    return Fail(Internal(call_.overload->name, ": '", name, "' is a list"));
  }
  if (dtype == DType::kInvalid && space_ != Space::kNone &&
      call_.overload->row->in != ops::In::kSelf) {
    dtype = compute_;
  }
  return OperandOf(a, i, dtype);
}

DType CallLowering::TensorType(std::string_view name) const {
  const Arg& a = Find(name);
  return a.kind == Arg::Kind::kTensor ? call_.tensors[a.at].dtype : a.dtype;
}

Dims CallLowering::TensorDims(std::string_view name) const {
  const Arg& a = Find(name);
  if (a.kind != Arg::Kind::kTensor) return {};
  const DimsView s = call_.Sizes(call_.tensors[a.at]);
  return {s.begin(), s.end()};
}

Values CallLowering::Tensors(std::string_view name) {
  const Arg& a = Find(name);
  Values out;
  if (a.kind != Arg::Kind::kTensors) return out;
  for (uint32_t k = 0; k < a.count; ++k) {
    out.push_back(call_.tensors[a.at + k].storage ? ReadLogical(a.at + k) : Value());
  }
  return out;
}

size_t CallLowering::NumTensors(std::string_view name) const { return Find(name).count; }

Values CallLowering::Operands() {
  Values out;
  const Overload& o = *call_.overload;
  for (size_t i = 0; i < call_.args.size(); ++i) {
    bool is_out = false;
    for (int t : o.targets) is_out |= t == static_cast<int>(i) && !o.reads_targets;
    const Arg& a = call_.args[i];
    const bool operand =
        a.kind == Arg::Kind::kTensor || a.kind == Arg::Kind::kHostTensor ||
        (a.kind == Arg::Kind::kNumber &&
         (o.arg_names[i] == "other" || o.arg_names[i] == "exponent" || o.arg_names[i] == "self"));
    if (!operand || is_out) continue;
    out.push_back(OperandOf(a, static_cast<int>(i),
                            o.row->in == ops::In::kSelf ? DType::kInvalid : compute_));
  }
  return out;
}

bool CallLowering::ChannelsLast(std::string_view name) const {
  const Arg& a = Find(name);
  if (a.kind != Arg::Kind::kTensor) return false;
  const TensorArg& t = call_.tensors[a.at];
  if (t.rank != 4 && t.rank != 5) return false;
  const DimsView sizes = call_.Sizes(t), strides = call_.Strides(t);
  int64_t expect = 1;
  if (strides[1] != 1 || sizes[1] == 1) return false;
  expect = sizes[1];
  for (int d = t.rank - 1; d >= 2; --d) {
    if (strides[size_t(d)] != expect && sizes[size_t(d)] != 1) return false;
    expect *= sizes[size_t(d)];
  }
  return true;
}

bool CallLowering::Contiguous(std::string_view name) const {
  const Arg& a = Find(name);
  if (a.kind != Arg::Kind::kTensor) return false;
  const TensorArg& t = call_.tensors[a.at];
  const DimsView sizes = call_.Sizes(t), strides = call_.Strides(t);
  int64_t expect = 1;
  for (int d = t.rank - 1; d >= 0; --d) {
    if (strides[size_t(d)] != expect && sizes[size_t(d)] != 1) return false;
    expect *= sizes[size_t(d)];
  }
  return true;
}

int64_t CallLowering::Int(std::string_view name) const {
  const Arg& a = Find(name);
  return a.kind == Arg::Kind::kNumber ? a.number.AsInt() : a.i;
}
bool CallLowering::Bool(std::string_view name) const { return Int(name) != 0; }

Dims CallLowering::Ints(std::string_view name) const {
  const Arg& a = Find(name);
  if (a.kind == Arg::Kind::kInt) return {a.i};
  if (a.kind != Arg::Kind::kInts) return {};
  return {call_.ints.begin() + a.at, call_.ints.begin() + a.at + a.count};
}

std::vector<double> CallLowering::Floats(std::string_view name) const {
  std::vector<double> out;
  for (int64_t bits : Ints(name)) out.push_back(std::bit_cast<double>(bits));
  return out;
}

std::string_view CallLowering::String(std::string_view name) const {
  const Arg& a = Find(name);
  return a.kind == Arg::Kind::kString ? std::string_view(call_.strings[a.at]) : std::string_view();
}

std::optional<DType> CallLowering::Type(std::string_view name) const {
  const Arg& a = Find(name);
  return a.kind == Arg::Kind::kType ? std::optional(a.dtype) : std::nullopt;
}

double CallLowering::StaticNumber(std::string_view name) const {
  const int i = ArgIndex(name);
  if (i < 0 || !call_.overload->arg_static[size_t(i)]) {
    fn_->Fail(Internal(call_.overload->name, ": '", name, "' is not in the row's statics"));
    return 0;
  }
  return call_.args[size_t(i)].number.AsDouble();
}

Value CallLowering::Number(std::string_view name, DType dtype) {
  const int i = ArgIndex(name);
  if (i < 0 || call_.args[size_t(i)].kind == Arg::Kind::kNone) return {};
  const Arg& a = call_.args[size_t(i)];
  Value v;
  if (a.kind == Arg::Kind::kTensor) {  // a zero-dim device tensor in a number's place
    v = ops::Cast(ReadLogical(a.at), dtype);
  } else {
    v = NumberValue(i, dtype);
  }
  return space_ == Space::kNone ? v : fn_->BroadcastInDim(v, iteration_, Dims{});
}

DType CallLowering::NumberType(std::string_view name) const {
  const Arg& a = Find(name);
  if (a.kind == Arg::Kind::kHostTensor) return a.dtype;
  if (a.kind != Arg::Kind::kNumber) return DType::kInvalid;
  switch (a.number.kind) {
    case exec::Number::Kind::kBool: return DType::kBool;
    case exec::Number::Kind::kInt:
    case exec::Number::Kind::kUint: return DType::kI64;
    case exec::Number::Kind::kFloat: return DType::kF64;
    case exec::Number::Kind::kComplex: return DType::kC128;
  }
  return DType::kInvalid;
}

}  // namespace tpu::exec
