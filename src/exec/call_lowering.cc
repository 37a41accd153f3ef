// CallLowering: running a row, types, operands, and where results go. Arguments by name and the
// pointwise spaces are in call_args.cc and pointwise_space.cc.
#include "exec/call_lowering.h"

#include <algorithm>

#include "exec/view_emit.h"
#include "ops/cast.h"
#include "ops/threefry.h"
#include "shape/view.h"

namespace tpu::exec {

using hlo::Value;
using hlo::Values;
using ops::Cast;

CallLowering::CallLowering(Composer* composer, const Call& call, const std::vector<int>& slot_of,
                           int call_number, std::vector<ResultSpec>* expected)
    : ops::Lowering(&composer->fn_),
      c_(composer),
      call_(call),
      slot_of_(slot_of),
      number_(call_number),
      expected_(expected) {
  for (const ResultSpec& r : *expected) expected_types_.push_back({r.dtype, r.sizes});
}

const hlo::Type* CallLowering::Expected(size_t i) const {
  return i < expected_types_.size() ? &expected_types_[i] : nullptr;
}

void CallLowering::ChooseTypes() {
  const ops::OpDef& row = *call_.overload->row;
  ResultType type;
  for (size_t i = 0; i < call_.args.size(); ++i) {
    const Arg& a = call_.args[i];
    if (!call_.overload->reads_targets) {
      bool is_target = false;
      for (int t : call_.overload->targets) is_target |= t == static_cast<int>(i);
      if (is_target) continue;
    }
    if (a.kind == Arg::Kind::kTensor) {
      type.AddTensor(call_.tensors[a.at].dtype, call_.tensors[a.at].rank == 0);
    } else if (a.kind == Arg::Kind::kTensors) {
      for (uint32_t k = 0; k < a.count; ++k) {
        const TensorArg& t = call_.tensors[a.at + k];
        if (t.storage) type.AddTensor(t.dtype, t.rank == 0);
      }
    } else if (a.kind == Arg::Kind::kHostTensor) {
      a.wrapped ? type.AddWrappedNumber(a.dtype) : type.AddTensor(a.dtype, true);
    } else if (a.kind == Arg::Kind::kNumber && Promotes(call_.overload->arg_names[i])) {
      type.AddWrappedNumber(NumberType(call_.overload->arg_names[i]));
    }
  }
  promoted_ = type.Get(call_.default_dtype);
  if (row.out == ops::Out::kCompute && !expected_types_.empty())
    promoted_ = expected_types_[0].dtype;
  if (row.in == ops::In::kToFloat && IsIntegral(promoted_)) promoted_ = call_.default_dtype;
  compute_ = OpMathType(promoted_);
}

// What kinds of operators have no meaning for, as far as PyTorch's meta kernels let it through. The
// first tensor decides: the others are indices, pivots, or of its type.
static bool Takes(ops::Kind kind, DType t) {
  switch (kind) {
    case ops::Kind::kSort: return !IsComplex(t);
    case ops::Kind::kPool: return !IsComplex(t) && !IsBool(t);
    case ops::Kind::kLinalg: return IsFloat(t) || IsComplex(t);
    default: return true;
  }
}

static Status CheckType(const Call& call) {
  const ops::OpDef& row = *call.overload->row;
  for (const TensorArg& t : call.tensors) {
    if (!t.storage) continue;
    if (Takes(row.kind, t.dtype)) return {};
    return Unimplemented(row.name, " is not implemented for ", TorchName(t.dtype));
  }
  return {};
}

Status CallLowering::Run(std::vector<int>* fresh) {
  const Overload& o = *call_.overload;
  TPU_RETURN_IF_ERROR(CheckType(call_));
  ChooseTypes();
  if (ops::IsPointwise(o.row->kind)) ChoosePointwiseSpace();
  TPU_RETURN_IF_ERROR(fn_->status());
  const Values values = o.row->lower ? o.row->lower(*this) : Values{Regular()};
  TPU_RETURN_IF_ERROR(fn_->status());

  size_t at = 0, result = 0;
  const auto next = [&]() -> Value { return at < values.size() ? values[at++] : Value(); };
  for (int target : o.targets) {
    if (target < 0) {
      TPU_RETURN_IF_ERROR(Fresh(next(), result++, fresh));
      continue;
    }
    const Arg& a = call_.args[size_t(target)];
    const uint32_t n = a.kind == Arg::Kind::kTensors ? a.count : 1;
    for (uint32_t k = 0; k < n; ++k) {
      const Value v = next();
      if (a.kind == Arg::Kind::kNone || !v.valid()) continue;
      TPU_RETURN_IF_ERROR(WriteTarget(v, a.at + k));
    }
  }
  // A Tensor[] is one result of the schema and as many values as there are.
  if (o.targets == std::vector<int>{-1}) {
    while (at < values.size()) TPU_RETURN_IF_ERROR(Fresh(next(), result++, fresh));
  }
  if (at != values.size()) {
    return Internal(o.row->name, ": the lowering gave ", values.size(),
                    " values, the schema takes ", at);
  }
  if (result < expected_types_.size()) {
    return Internal(o.row->name, ": ", result, " new tensors, expected ", expected_types_.size());
  }
  return fn_->status();
}

Value CallLowering::Regular() {
  const ops::OpDef& row = *call_.overload->row;
  const Values in = Operands();
  const size_t arity = row.kind == ops::Kind::kUnary ? 1 : 2;
  if (in.size() != arity) {
    return Fail(Internal(row.name, ": ", in.size(), " operands for a row of arity ", arity));
  }
  switch (row.kind) {
    case ops::Kind::kUnary: return fn_->Unary(static_cast<hlo::UnaryOp>(row.op), in[0]);
    case ops::Kind::kBinary: return fn_->Binary(static_cast<hlo::BinaryOp>(row.op), in[0], in[1]);
    case ops::Kind::kCompare:
      return fn_->Compare(static_cast<hlo::CompareOp>(row.op), in[0], in[1]);
    default: return Fail(Internal(row.name, ": a row of this kind needs a lowering"));
  }
}

// The dtype of a pointwise or other row's result where no meta kernel was asked.
static DType InferredType(const ops::OpDef& row, DType promoted, DType lowered) {
  if (!ops::IsPointwise(row.kind)) return lowered;
  switch (row.out) {
    case ops::Out::kCompute: return promoted;
    case ops::Out::kBool: return DType::kBool;
    case ops::Out::kReal: return RealOf(promoted);
    case ops::Out::kAsLowered: return lowered;
  }
  return lowered;
}

Status CallLowering::Fresh(Value value, size_t result, std::vector<int>* fresh) {
  const bool known = result < expected_types_.size();
  if (!known) {
    ResultSpec spec;
    expected_->resize(std::max(expected_->size(), result + 1));
    if (!value.valid()) {  // an undefined result, as of an output_mask
      (*expected_)[result] = spec;
      fresh->push_back(-1);
      return {};
    }
    spec.dtype = InferredType(*call_.overload->row, promoted_, value.dtype());
    spec.sizes = space_ == Space::kNone ? value.dims() : common_;
    spec.strides = RowMajorStrides(spec.sizes);
    (*expected_)[result] = spec;
  }
  ResultSpec& spec = (*expected_)[result];
  if (spec.dtype == DType::kInvalid) {
    fresh->push_back(-1);
    return {};
  }
  const int64_t numel = NumElements(spec.sizes);
  if (!value.valid()) value = fn_->Constant({spec.dtype, spec.sizes}, int64_t{0});
  value = Cast(value, spec.dtype);
  TPU_RETURN_IF_ERROR(fn_->status());

  Dims order = shape::PhysicalOrder({spec.sizes, spec.strides, 0});
  if (!shape::CoversDensely({spec.sizes, spec.strides, 0}, numel)) {
    spec.strides = RowMajorStrides(spec.sizes);
    order = Iota(static_cast<int64_t>(spec.sizes.size()));
  }
  Dims physical;
  for (int64_t d : order) physical.push_back(spec.sizes[size_t(d)]);
  if (space_ == Space::kFlat || space_ == Space::kMerged) {
    if (value.numel() != numel) {
      return Internal(call_.overload->row->name, ": lowered to ", hlo::ToString(value.type()),
                      ", expected ", tpu::ToString(spec.sizes));
    }
  } else {
    if (value.dims() != spec.sizes) {
      return Internal(call_.overload->row->name, ": result ", result, " lowered to ",
                      hlo::ToString(value.type()), ", PyTorch expects ",
                      hlo::ToString({spec.dtype, spec.sizes}));
    }
    value = fn_->Transpose(value, order);
  }
  if (call_.device->capabilities().linear_layout) physical = {numel};
  value = fn_->Reshape(value, physical);
  spec.nbytes = static_cast<size_t>(numel * ItemSize(spec.dtype));
  spec.type = runtime::MakeValueType(spec.dtype, physical);
  const int slot = c_->AddSlot({spec.dtype, physical, true});
  c_->Write(slot, value, spec.type);
  fresh->push_back(slot);
  return fn_->status();
}

Status CallLowering::WriteTarget(Value value, uint32_t tensor) {
  const TensorArg& t = call_.tensors[tensor];
  const int slot = slot_of_[size_t(t.slot)];
  const DimsView sizes = call_.Sizes(t), strides = call_.Strides(t);
  if (!CanCast(value.dtype(), t.dtype)) {
    return InvalidArgument("result type ", TorchName(value.dtype()),
                           " can't be cast to the desired output type ", TorchName(t.dtype));
  }
  value = Cast(value, t.dtype);
  value = ApplyBits(value, t);
  const int64_t numel = NumElements(sizes);
  const Composer::SlotState& s = c_->slots_[size_t(slot)];
  const bool linear = call_.device->capabilities().linear_layout;
  const bool in_order = space_ == Space::kFlat || space_ == Space::kMerged;
  if (value.numel() != numel || (!in_order && !std::ranges::equal(value.dims(), sizes))) {
    return InvalidArgument("output with shape ", tpu::ToString(sizes),
                           " doesn't match the broadcast shape ",
                           tpu::ToString(in_order ? common_ : value.dims()));
  }
  const shape::View view{Dims(sizes.begin(), sizes.end()), Dims(strides.begin(), strides.end()),
                         t.offset};
  const bool whole =
      t.covers || (numel * ItemSize(t.dtype) == static_cast<int64_t>(t.storage->nbytes()) &&
                   t.offset == 0 && shape::CoversDensely(view, numel));
  if (whole) {
    Dims physical;
    const Dims order = shape::PhysicalOrder(view);
    for (int64_t d : order) physical.push_back(sizes[size_t(d)]);
    if (!in_order) value = fn_->Transpose(value, order);
    if (linear) physical = {numel};
    c_->Write(slot, fn_->Reshape(value, physical), runtime::MakeValueType(t.dtype, physical));
    return fn_->status();
  }
  if (in_order) value = fn_->Reshape(value, sizes);  // only one-element targets get here
  const Dims base_dims = BaseDimsAs(s.base, t.dtype);
  TPU_ASSIGN_OR_RETURN(const shape::WritePlan plan, shape::Invert(view, base_dims));
  if (plan.kind == shape::WritePlan::Kind::kNothing) return {};
  int k = 0;
  const NextStart next = [&] {
    const Values w = c_->Words(
        {WordSource::Kind::kWriteStart, number_, static_cast<int>(tensor), k++, DType::kI32}, 1);
    return fn_->BitcastConvert(w[0], DType::kI32);
  };
  Value base =
      plan.kind == shape::WritePlan::Kind::kFull ? Value() : EmitBits(c_->Read(slot), t.dtype);
  if (base.valid()) base = fn_->Reshape(base, base_dims);
  const Value updated = EmitWrite(base, value, plan, base_dims, next);
  TPU_RETURN_IF_ERROR(fn_->status());
  c_->Write(slot, updated, runtime::MakeValueType(t.dtype, base_dims));
  return {};
}

// Lazy conjugation and negation of a tensor. Each is its own inverse: reads and writes apply them.
Value CallLowering::ApplyBits(Value v, const TensorArg& t) {
  if (t.conj) {
    v = fn_->Binary(hlo::BinaryOp::kComplex, fn_->Unary(hlo::UnaryOp::kReal, v),
                    -fn_->Unary(hlo::UnaryOp::kImag, v));
  }
  return t.neg ? -v : v;
}

Value CallLowering::ReadBase(uint32_t tensor) {
  const TensorArg& t = call_.tensors[tensor];
  const int slot = slot_of_[size_t(t.slot)];
  const bool copies = call_.overload->row->kind == ops::Kind::kCopy;
  if (c_->slots_[size_t(slot)].base.unset && !copies && NumElements(call_.Sizes(t)) > 0) {
    c_->unset_read_ = static_cast<int>(tensor);
  }
  return EmitBits(c_->Read(slot), t.dtype);
}

Value CallLowering::ReadLogical(uint32_t tensor) {
  if (auto it = reads_.find(tensor); it != reads_.end()) return it->second;
  const TensorArg& t = call_.tensors[tensor];
  const Base base_info = c_->slots_[size_t(slot_of_[size_t(t.slot)])].base;
  const Dims base_dims = BaseDimsAs(base_info, t.dtype);
  const DimsView sizes = call_.Sizes(t), strides = call_.Strides(t);
  Value v = ReadBase(tensor);
  if (t.covers) {
    v = fn_->Reshape(v, sizes);
  } else {
    v = fn_->Reshape(v, base_dims);
    auto plan = shape::Decompose(
        {Dims(sizes.begin(), sizes.end()), Dims(strides.begin(), strides.end()), t.offset},
        base_dims);
    if (!plan.ok()) return Fail(plan.status());
    int k = 0;
    v = EmitRead(v, *plan, [&] {
      const Values w = c_->Words(
          {WordSource::Kind::kReadStart, number_, static_cast<int>(tensor), k++, DType::kI32}, 1);
      return fn_->BitcastConvert(w[0], DType::kI32);
    });
  }
  return reads_[tensor] = ApplyBits(v, t);
}

// A run-time number as a scalar of `dtype`.
Value CallLowering::NumberValue(int arg_index, DType dtype) {
  const auto key = std::make_pair(arg_index, dtype);
  if (auto it = numbers_.find(key); it != numbers_.end()) return it->second;
  const Arg& arg = call_.args[size_t(arg_index)];
  if (arg.is_default) return numbers_[key] = fn_->Scalar(dtype, arg.number.AsDouble());
  const Values w =
      c_->Words({WordSource::Kind::kNumber, number_, arg_index, 0, dtype}, NumberWords(dtype));
  const auto pair64 = [&](Value low, Value high) {
    const Value shift = fn_->Scalar(DType::kU64, int64_t{32});
    return fn_->Convert(low, DType::kU64) |
           fn_->Binary(hlo::BinaryOp::kShiftLeft, fn_->Convert(high, DType::kU64), shift);
  };
  Value v;
  if (dtype == DType::kC128) {
    v = fn_->Binary(hlo::BinaryOp::kComplex, fn_->BitcastConvert(pair64(w[0], w[1]), DType::kF64),
                    fn_->BitcastConvert(pair64(w[2], w[3]), DType::kF64));
  } else if (dtype == DType::kC64) {
    v = fn_->Binary(hlo::BinaryOp::kComplex, fn_->BitcastConvert(w[0], DType::kF32),
                    fn_->BitcastConvert(w[1], DType::kF32));
  } else if (dtype == DType::kF64 || dtype == DType::kI64 || dtype == DType::kU64) {
    v = pair64(w[0], w[1]);
    if (dtype != DType::kU64) v = fn_->BitcastConvert(v, dtype);
  } else if (IsFloat(dtype)) {
    v = fn_->Convert(fn_->BitcastConvert(w[0], DType::kF32), dtype);
  } else if (IsBool(dtype)) {
    v = Cast(w[0], DType::kBool);
  } else {
    v = fn_->Convert(w[0], dtype);
  }
  return numbers_[key] = v;
}

ops::Lowering::Bits CallLowering::RandomBits(int64_t n, int draw) {
  if (seed_words_.empty()) {
    seed_words_ = c_->Words({WordSource::Kind::kSeed, number_, 0, 0, DType::kU32}, 4);
  }
  return ops::ThreefryBits(*fn_, seed_words_, n, draw);
}

Value CallLowering::CheckIndex(Value index, int64_t bound, std::string_view argument, int64_t dim,
                               bool wrap, Value ignore) {
  if (!index.valid()) return index;
  const DType t = index.dtype();
  const Value limit = fn_->Constant(index.type(), bound),
              zero = fn_->Constant(index.type(), int64_t{0});
  const Value low = wrap ? fn_->Constant(index.type(), -bound) : zero;
  Value bad = fn_->Compare(hlo::CompareOp::kGe, index, limit);
  if (!IsUnsigned(t)) bad = bad | fn_->Compare(hlo::CompareOp::kLt, index, low);
  if (ignore.valid()) bad = bad & ~ignore;
  Record(bad, index, {call_.overload->name, std::string(argument), bound, dim});
  if (!wrap || IsUnsigned(t)) return index;
  return fn_->Select(fn_->Compare(hlo::CompareOp::kLt, index, zero), index + limit, index);
}

void CallLowering::CheckValue(Value bad, Value value, std::string_view argument,
                              std::string_view rule) {
  if (!bad.valid() || !value.valid()) return;
  CheckInfo info{call_.overload->name, std::string(argument)};
  info.rule = rule;
  info.real = IsFloat(value.dtype());
  if (info.real) value = fn_->BitcastConvert(fn_->Convert(value, DType::kF32), DType::kI32);
  Record(bad, value, std::move(info));
}

// The first element where `bad` holds goes into the record, if that is still empty.
void CallLowering::Record(Value bad, Value value, CheckInfo info) {
  if (value.numel() > 0) {
    const Value flat = fn_->Convert(fn_->Reshape(value, Dims{value.numel()}), DType::kI64);
    const Value none = fn_->Constant({DType::kI32, flat.dims()}, int64_t{INT32_MAX});
    const Value at = fn_->Select(fn_->Reshape(bad, flat.dims()), fn_->Iota(none.type(), 0), none);
    const Values first = fn_->Reduce(
        {at, flat},
        {fn_->Scalar(DType::kI32, int64_t{INT32_MAX}), fn_->Scalar(DType::kI64, int64_t{0})},
        Dims{0}, [](hlo::Function& f, const Values& v) {
          const Value keep = f.Compare(hlo::CompareOp::kLe, v[0], v[2]);
          return Values{f.Select(keep, v[0], v[2]), f.Select(keep, v[1], v[3])};
        });
    const int check = static_cast<int>(c_->checks_.size());
    c_->checks_.push_back(std::move(info));
    if (!c_->check_word_.valid()) {
      c_->check_word_ = c_->Words({WordSource::Kind::kChecks, number_, 0, 0, DType::kI32}, 1)[0];
    }
    if (!site_.valid()) {
      site_ = c_->Words({WordSource::Kind::kSite, number_, 0, 0, DType::kI32}, 1)[0];
    }
    const Value record = c_->IndexRecord();
    const auto word = [&](Value v) { return fn_->Reshape(fn_->Convert(v, DType::kI32), Dims{1}); };
    const Value bits = fn_->BitcastConvert(first[1], DType::kU64);
    const Value high =
        fn_->Binary(hlo::BinaryOp::kShiftRightLogical, bits, fn_->Scalar(DType::kU64, int64_t{32}));
    const Value report = fn_->Concatenate(
        {fn_->Constant({DType::kI32, {1}}, int64_t{1}), word(c_->check_word_),
         fn_->Constant({DType::kI32, {1}}, int64_t{check}), word(first[0]), word(bits), word(high),
         word(site_), fn_->Constant({DType::kI32, {1}}, int64_t{0})},
        0);
    const Value set = fn_->Reshape(fn_->Slice(record, Dims{0}, Dims{1}, Dims{1}), Dims{});
    const Value take =
        fn_->Compare(hlo::CompareOp::kEq, set, fn_->Scalar(DType::kI32, int64_t{0})) &
        fn_->Compare(hlo::CompareOp::kNe, first[0], fn_->Scalar(DType::kI32, int64_t{INT32_MAX}));
    c_->record_ = fn_->Select(take, report, record);
  }
}

}  // namespace tpu::exec
