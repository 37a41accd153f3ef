// OpKernel.
#include "kernel.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/resize.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <bit>

#include "convert.h"
#include "data_dependent.h"
#include "device.h"
#include "foreach.h"
#include "generator.h"
#include "meta.h"
#include "numbers.h"
#include "tensor.h"

namespace tpu::torch_layer {
namespace {

using exec::Arg;
using exec::Call;
using exec::Number;

Number NumberOf(const c10::Scalar& s) {
  Number n;
  if (s.isBoolean()) {
    n.kind = Number::Kind::kBool;
    n.b = s.toBool();
  } else if (s.isIntegral(false)) {
    n.kind = Number::Kind::kInt;
    n.i = s.type() == c10::ScalarType::UInt64 ? static_cast<int64_t>(s.toUInt64()) : s.toLong();
  } else if (s.isComplex()) {
    n.kind = Number::Kind::kComplex;
    n.d = s.toComplexDouble().real();
    n.imag = s.toComplexDouble().imag();
  } else {
    n.kind = Number::Kind::kFloat;
    n.d = s.toDouble();
  }
  return n;
}

// Contiguous tensors of equal sizes as one dimension.
void Flatten(Call* call) {
  const exec::TensorArg* first = nullptr;
  for (const exec::TensorArg& t : call->tensors) {
    if (t.storage == nullptr || NumElements(call->Sizes(t)) == 1) continue;
    if (!t.covers) return;
    if (first == nullptr) first = &t;
    if (!std::ranges::equal(call->Sizes(*first), call->Sizes(t))) return;
  }
  if (first == nullptr || first->rank < 2) return;
  const int64_t numel = NumElements(call->Sizes(*first));
  for (exec::TensorArg& t : call->tensors) {
    if (t.storage == nullptr || NumElements(call->Sizes(t)) == 1) continue;
    t.rank = 1;
    call->ints[t.dims_at] = numel;
    call->ints[t.dims_at + 1] = 1;
  }
}

// A thread's Call is reused, so that a hit allocates nothing. Calls nest (a meta kernel or an
// upload may call other operators), so each depth has its own.
class CallLease {
 public:
  CallLease() {
    thread_local std::vector<std::unique_ptr<Call>> calls;
    thread_local size_t in_use = 0;
    depth_ = &in_use;
    if (calls.size() == in_use) calls.push_back(std::make_unique<Call>());
    call_ = calls[in_use++].get();
    call_->Clear();
  }
  ~CallLease() { --*depth_; }
  Call* get() { return call_; }

 private:
  size_t* depth_;
  Call* call_;
};

}  // namespace

uint64_t DrawCount(const Call& call) {
  int64_t n = 1;
  Dims common;
  for (const exec::TensorArg& t : call.tensors) {
    if (!t.storage) continue;
    n = std::max(n, NumElements(call.Sizes(t)));
    if (BroadcastShapes(common, call.Sizes(t), &common)) n = std::max(n, NumElements(common));
  }
  for (size_t i = 0; i < call.args.size(); ++i) {
    const Arg& a = call.args[i];
    if (a.kind == Arg::Kind::kInt) n = std::max(n, a.i);
    if (call.overload->arg_names[i] == "num_samples" && call.tensors[0].rank == 2) {
      n = std::max(n, a.i * call.Sizes(call.tensors[0])[0]);
    }
    if (a.kind == Arg::Kind::kInts && a.count > 0) {
      n = std::max(n, NumElements({call.ints.data() + a.at, a.count}));
    }
  }
  return static_cast<uint64_t>(n);
}

void OpKernel::AddTensor(const at::Tensor& t, Arg* arg, Call* call,
                         std::vector<at::Tensor>* uploaded) const {
  if (t.device().type() == kTpu) {
    TORCH_CHECK(t.layout() == c10::kStrided, overload_->name, ": tpu has no ", t.layout(),
                " tensors");
    const int index = t.device().index();
    if (call->device == nullptr) {
      call->device = DeviceAt(static_cast<c10::DeviceIndex>(index));
    } else if (call->device->index() != index) {
      TORCH_CHECK(
          false,
          "Expected all tensors to be on the same device, but found at least two devices, tpu:",
          call->device->index(), " and tpu:", index, "! (", overload_->name, ")");
    }
    arg->kind = Arg::Kind::kTensor;
    arg->at = static_cast<uint32_t>(call->tensors.size());
    AppendTensor(t, call);
    arg->dtype = call->tensors.back().dtype;
    return;
  }
  if (t.device().is_cpu() && t.dim() == 0) {
    arg->kind = Arg::Kind::kHostTensor;
    arg->dtype = SupportedType(t.scalar_type(), overload_->name.c_str());
    arg->wrapped = t.unsafeGetTensorImpl()->is_wrapped_number();
    arg->number = NumberOf(t.item());
    return;
  }
  if (plan_.uploads_host_tensors && t.device().is_cpu() && call->device != nullptr) {
    uploaded->push_back(
        t.to(c10::Device(kTpu, static_cast<c10::DeviceIndex>(call->device->index()))));
    AddTensor(uploaded->back(), arg, call, uploaded);
    return;
  }
  TORCH_CHECK(false,
              "Expected all tensors to be on the same device, but found at least two devices, ",
              call->device ? "tpu:" + std::to_string(call->device->index()) : "tpu", " and ",
              t.device().str(), "! (", overload_->name, ")");
}

void OpKernel::Fill(torch::jit::Stack* stack, Call* call, at::Generator* generator,
                    std::vector<at::Tensor>* uploaded) const {
  const size_t n = plan_.args.size();
  const c10::IValue* const values = stack->data() + (stack->size() - n);
  call->overload = overload_;
  call->args.resize(n);
  for (size_t i = 0; i < n; ++i) {
    const c10::IValue& v = values[i];
    Arg& a = call->args[i];
    a = Arg();
    if (v.isNone()) continue;
    switch (plan_.args[i]) {
      case Read::kTensor:
        if (v.unsafeToTensorImpl() && v.toTensor().defined())
          AddTensor(v.toTensor(), &a, call, uploaded);
        break;
      case Read::kTensors: {
        const c10::ArrayRef<c10::IValue> list = v.toListRef();
        a.kind = Arg::Kind::kTensors;
        a.count = static_cast<uint32_t>(list.size());
        std::vector<exec::TensorArg> own;
        for (const c10::IValue& e : list) {
          Arg one;
          if (!e.isNone() && e.toTensor().defined()) {
            AddTensor(e.toTensor(), &one, call, uploaded);
            TORCH_CHECK(
                one.kind == Arg::Kind::kTensor || plan_.uploads_host_tensors,
                "Expected all tensors to be on the same device, but found at least two devices, "
                "tpu and cpu! (",
                overload_->name, ")");
          }
          if (one.kind == Arg::Kind::kHostTensor) {
            uploaded->push_back(e.toTensor().to(c10::Device(kTpu, call->device->index())));
            AddTensor(uploaded->back(), &one, call, uploaded);
          }
          if (one.kind != Arg::Kind::kTensor) call->tensors.emplace_back();
          own.push_back(call->tensors.back());
        }
        a.at = static_cast<uint32_t>(call->tensors.size() - own.size());
        break;
      }
      case Read::kNumber:
        a.kind = Arg::Kind::kNumber;
        a.number = NumberOf(v.toScalar());
        a.is_default = plan_.defaults[i] && *plan_.defaults[i] == a.number.AsDouble() &&
                       a.number.kind != Number::Kind::kComplex;
        break;
      case Read::kInt:
        a.kind = Arg::Kind::kInt;
        a.i = v.isBool() ? v.toBool() : v.toInt();
        break;
      case Read::kInts: {
        if (v.isInt()) {
          a.kind = Arg::Kind::kInts;
          a.at = static_cast<uint32_t>(call->ints.size());
          a.count = 1;
          call->ints.push_back(v.toInt());
          break;
        }
        const std::vector<int64_t> list = v.toIntVector();
        a.kind = Arg::Kind::kInts;
        a.at = static_cast<uint32_t>(call->ints.size());
        a.count = static_cast<uint32_t>(list.size());
        call->ints.insert(call->ints.end(), list.begin(), list.end());
        break;
      }
      case Read::kBools: {
        a.kind = Arg::Kind::kInts;
        a.at = static_cast<uint32_t>(call->ints.size());
        for (const c10::IValue& e : v.toListRef()) call->ints.push_back(e.toBool());
        a.count = static_cast<uint32_t>(call->ints.size()) - a.at;
        break;
      }
      case Read::kFloats: {  // static, kept as bit patterns
        a.kind = Arg::Kind::kInts;
        a.at = static_cast<uint32_t>(call->ints.size());
        for (const c10::IValue& e : v.toListRef()) {
          call->ints.push_back(std::bit_cast<int64_t>(e.toDouble()));
        }
        a.count = static_cast<uint32_t>(call->ints.size()) - a.at;
        break;
      }
      case Read::kType:
        a.kind = Arg::Kind::kType;
        a.dtype = SupportedType(v.toScalarType(), overload_->name.c_str());
        break;
      case Read::kString:
        a.kind = Arg::Kind::kString;
        a.at = static_cast<uint32_t>(call->strings.size());
        call->strings.emplace_back(v.toStringView());
        break;
      case Read::kGenerator: *generator = v.toGenerator(); break;
      case Read::kSkip: break;
    }
  }
}

void OpKernel::RunOne(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t n = plan_.args.size();
  CallLease lease;
  Call* const call = lease.get();
  at::Generator generator;
  std::vector<at::Tensor> uploaded;
  Fill(stack, call, &generator, &uploaded);
  if (call->device == nullptr) call->device = DeviceAt(CurrentDevice());
  call->default_dtype = FromScalarType(c10::get_default_dtype_as_scalartype());
  CheckNumbers(*call, plan_.scalars);
  const c10::ArrayRef<c10::IValue> args(stack->data() + (stack->size() - n), n);
  if (plan_.overlap != Overlap::kAllowed) CheckOverlap(plan_.overlap, *call, args.data());
  if (overload_->row->flattens) Flatten(call);
  if (overload_->row->random) {
    const auto index = static_cast<c10::DeviceIndex>(call->device->index());
    const at::Generator& g = generator.defined() ? generator : DefaultGenerator(index);
    auto* const impl = at::check_generator<TpuGenerator>(g);
    std::lock_guard lock(impl->mutex_);
    std::tie(call->seed, call->seed_offset) = impl->Draw(DrawCount(*call));
  }
  MetaFrontend frontend(op, args, overload_, &plan_);
  Ref<exec::Entry> entry;
  thread_local std::vector<exec::CallResult> results;
  const Status status = exec::Run(call, &frontend, &entry, &results);
  if (!status.ok()) {
    results.clear();
    if (!frontend.resizes().empty()) {
      for (const MetaFrontend::Resize& r : frontend.resizes()) {
        at::Tensor out = args[r.arg].toTensor();
        out.resize_(r.sizes);
        if (out.strides() != c10::IntArrayRef(r.strides)) out.as_strided_(r.sizes, r.strides);
      }
      return RunOne(op, stack);
    }
    if (frontend.thrown()) std::rethrow_exception(frontend.thrown());
    Throw(status);
  }

  size_t next = 0;
  const auto fresh = [&]() -> c10::IValue {
    exec::CallResult& r = results[next++];
    if (r.spec->number) return *r.spec->number;
    if (r.spec->dtype == DType::kInvalid) return at::Tensor();
    return MakeTensor(call->device, *r.spec, std::move(r.value));
  };
  if (plan_.returns.size() == 1 && !plan_.returns_list) {
    c10::IValue one = plan_.returns[0] < 0 ? fresh() : args[size_t(plan_.returns[0])];
    results.clear();
    torch::jit::drop(*stack, n);
    stack->push_back(std::move(one));
    return;
  }
  torch::jit::Stack returned;
  if (plan_.returns_list) {
    c10::List<at::Tensor> list;
    while (next < results.size()) list.push_back(fresh().toTensor());
    returned.emplace_back(std::move(list));
  } else {
    for (int from : plan_.returns) {
      returned.push_back(from < 0 ? fresh() : args[size_t(from)]);
    }
  }
  results.clear();
  torch::jit::drop(*stack, n);
  for (c10::IValue& v : returned) stack->push_back(std::move(v));
}

void OpKernel::RunPerTensor(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t n = plan_.args.size();
  const torch::jit::Stack args(stack->end() - static_cast<std::ptrdiff_t>(n), stack->end());
  size_t length = 0;
  for (size_t i = 0; i < n; ++i) {
    if (plan_.args[i] == Read::kTensors) length = std::max(length, args[i].toListRef().size());
  }
  Together together(DeviceOfLists(*stack, n));
  for (size_t k = 0; k < length; ++k) {
    torch::jit::Stack one;
    for (size_t i = 0; i < n; ++i) {
      if (plan_.args[i] != Read::kTensors || args[i].toListRef().size() <= k) {
        one.push_back(args[i]);
        continue;
      }
      one.emplace_back(c10::List<at::Tensor>({args[i].toListRef()[k].toTensor()}));
    }
    RunOne(op, &one);
  }
  together.Finish();
  torch::jit::drop(*stack, n);
  for (int from : plan_.returns) stack->push_back(from >= 0 ? args[size_t(from)] : c10::IValue());
}

bool OpKernel::ReplaceMasks(torch::jit::Stack* stack) const {
  const size_t n = plan_.args.size(), first = stack->size() - n;
  c10::IValue& indices = (*stack)[first + size_t(plan_.indices)];
  if (!HasMask(indices)) return false;
  const at::Tensor self = (*stack)[first].toTensor();
  const size_t after = size_t(plan_.indices) + 1;
  if (plan_.returns == std::vector<int>{0} && after + 1 < n && (*stack)[first + after].isTensor() &&
      PutOneValue(self, indices, (*stack)[first + after].toTensor(),
                  (*stack)[first + after + 1].toBool())) {
    torch::jit::drop(*stack, n);
    stack->emplace_back(self);
    return true;
  }
  indices = ExpandMasks(self, indices);
  return false;
}

void OpKernel::operator()(const c10::OperatorHandle& op, c10::DispatchKeySet,
                          torch::jit::Stack* stack) {
  if (plan_.indices >= 0 && ReplaceMasks(stack)) return;
  overload_->row->per_tensor ? RunPerTensor(op, stack) : RunOne(op, stack);
}

void RunTargets(Call* call) {
  class NoMeta final : public exec::Frontend {
    Result<std::vector<exec::ResultSpec>> Expect(const Call&) override {
      return std::vector<exec::ResultSpec>();
    }
    std::string Location() override { return UserLocation(); }
  } frontend;
  Ref<exec::Entry> entry;
  std::vector<exec::CallResult> results;
  Check(exec::Run(call, &frontend, &entry, &results));
}

}  // namespace tpu::torch_layer
