// Storages, the call, and comparisons.
#include "runner/run_case.h"

#include <cstring>
#include <memory>

#include "exec/executor.h"
#include "exec/mode.h"

namespace tpu::cases {
namespace {

using runtime::Device;
using runtime::Storage;
using runtime::Value;

// PyTorch's meta kernel, as the case's results tell it.
class ExpectedResults final : public exec::Frontend {
 public:
  ExpectedResults(const Case& c, bool known) : case_(c), known_(known) {}
  Result<std::vector<exec::ResultSpec>> Expect(const exec::Call& call) override {
    std::vector<exec::ResultSpec> out;
    if (!known_ || call.overload->row->meta == ops::Meta::kInfer) return out;
    for (const CaseResult& r : case_.results) {
      exec::ResultSpec spec;
      spec.dtype = r.dtype;
      spec.sizes = r.sizes;
      spec.strides = r.strides.value_or(RowMajorStrides(r.sizes));
      out.push_back(std::move(spec));
    }
    return out;
  }

 private:
  const Case& case_;
  const bool known_;
};

class ModeScope {
 public:
  explicit ModeScope(EagerMode mode) : before_(exec::ExchangeThreadMode(static_cast<int>(mode))) {}
  ~ModeScope() { exec::ExchangeThreadMode(before_); }

 private:
  const int before_;
};

using Storages = std::vector<std::unique_ptr<Storage>>;

// Makes the storages and puts them into the call.
Status PutStorages(const Case& c, Device* device, exec::Call* call, Storages* storages) {
  call->device = device;
  for (const CaseStorage& s : c.storages) {
    TPU_ASSIGN_OR_RETURN(Storage* const made, Storage::Create(device, s.bytes.size()));
    storages->emplace_back(made);
    if (s.bytes.empty()) continue;
    const bool linear = device->capabilities().linear_layout;
    const Dims dims = linear ? Dims{NumElements(s.dims)} : s.dims;
    TPU_ASSIGN_OR_RETURN(made->value,
                         device->Upload(s.bytes.data(), runtime::MakeValueType(s.dtype, dims)));
  }
  for (size_t i = 0; i < call->tensors.size(); ++i) {
    exec::TensorArg& t = call->tensors[i];
    if (c.storage_of[i] < 0) continue;
    t.storage = (*storages)[size_t(c.storage_of[i])].get();
    const DimsView sizes = call->Sizes(t), strides = call->Strides(t);
    const Dims row_major = RowMajorStrides(sizes);
    bool contiguous = true;
    for (size_t d = 0; d < sizes.size(); ++d) {
      contiguous &= sizes[d] == 1 || strides[d] == row_major[d];
    }
    t.covers = t.offset == 0 && contiguous &&
               static_cast<size_t>(NumElements(sizes) * ItemSize(t.dtype)) == t.storage->nbytes();
  }
  return {};
}

Status CheckNumbers(const exec::Call& call) {
  if (call.overload->row->check == nullptr) return {};
  std::vector<double> numbers;
  for (const exec::Arg& a : call.args) {
    if (a.kind == exec::Arg::Kind::kNumber) numbers.push_back(a.number.AsDouble());
  }
  return call.overload->row->check(numbers,
                                   call.tensors.empty() ? DType::kInvalid : call.tensors[0].dtype);
}

// A value's memory, which has `bytes` bytes. Null: zeros.
Result<std::vector<char>> BytesOf(Device* device, const Ref<Value>& value, size_t bytes) {
  std::vector<char> out(bytes, 0), staging;
  if (!value || bytes == 0) return out;
  TPU_ASSIGN_OR_RETURN(const void* const memory, device->HostBytes(*value, &staging));
  if (value->type().bytes != static_cast<int64_t>(bytes)) {
    return Internal("contents of ", value->type().bytes, " bytes where ", bytes, " are expected");
  }
  std::memcpy(out.data(), memory, bytes);
  return out;
}

// The elements of dense memory in the order of their indices.
std::vector<char> InOrder(const std::vector<char>& memory, const exec::ResultSpec& spec) {
  const auto size = static_cast<size_t>(ItemSize(spec.dtype));
  std::vector<char> out;
  Dims index(spec.sizes.size(), 0);
  for (int64_t n = NumElements(spec.sizes); n > 0; --n) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * spec.strides[d];
    const auto from = memory.begin() + at * static_cast<int64_t>(size);
    out.insert(out.end(), from, from + static_cast<int64_t>(size));
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < spec.sizes[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

Status CheckType(const CaseResult& want, DType dtype, const Dims& sizes) {
  if (want.dtype == dtype && (dtype == DType::kInvalid || want.sizes == sizes)) return {};
  return Internal("is ", TorchName(dtype), ToString(sizes), ", expected ", TorchName(want.dtype),
                  ToString(want.sizes));
}

Status CheckResult(const Case& c, Device* device, const CaseResult& want,
                   const exec::CallResult& got) {
  if (want.any && want.dtype == DType::kInvalid) return {};
  const exec::ResultSpec& spec = *got.spec;
  TPU_RETURN_IF_ERROR(CheckType(want, spec.dtype, spec.sizes));
  if (want.any || want.dtype == DType::kInvalid) return {};
  if (want.strides && *want.strides != spec.strides) {
    return Internal("has strides ", ToString(spec.strides), ", expected ", ToString(*want.strides));
  }
  TPU_ASSIGN_OR_RETURN(const std::vector<char> memory, BytesOf(device, got.value, spec.nbytes));
  const std::vector<char> elements = InOrder(memory, spec);
  return CompareElements(want.dtype, elements.data(), want.bytes.data(), NumElements(want.sizes),
                         c.tolerance);
}

Status RunAndCheck(const Case& c, Device* device, exec::Call* call, const Storages& storages) {
  TPU_RETURN_IF_ERROR(CheckNumbers(*call));
  ExpectedResults frontend(c, true);
  Ref<exec::Entry> entry;
  std::vector<exec::CallResult> results;
  TPU_RETURN_IF_ERROR(exec::Run(call, &frontend, &entry, &results));
  if (!c.error_code.empty()) return device->Synchronize();
  if (results.size() != c.results.size()) {
    return Internal(results.size(), " results, expected ", c.results.size());
  }
  for (size_t i = 0; i < results.size(); ++i) {
    TPU_RETURN_IF_ERROR(CheckResult(c, device, c.results[i], results[i])
                            .Annotate("result " + std::to_string(i) + ": "));
  }
  for (size_t i = 0; i < storages.size(); ++i) {
    const CaseStorage& s = c.storages[i];
    const std::string what = (s.after ? "written storage " : "untouched storage ") + s.name + ": ";
    auto bytes = BytesOf(device, storages[i]->Get(), s.bytes.size());
    if (!bytes.ok()) return bytes.status().Annotate(what);
    TPU_RETURN_IF_ERROR(CompareElements(s.dtype, bytes->data(), s.after.value_or(s.bytes).data(),
                                        NumElements(s.dims), s.after ? c.tolerance : Tolerance())
                            .Annotate(what));
  }
  return device->CheckIndexRecord();
}

}  // namespace

Status RunCase(const Case& c, Device* device, EagerMode mode) {
  exec::Call call = c.call;
  Storages storages;
  TPU_RETURN_IF_ERROR(PutStorages(c, device, &call, &storages));
  const ModeScope scope(mode);
  const Status status = RunAndCheck(c, device, &call, storages);
  const Status after = device->Synchronize();  // nothing of a case may reach the next
  if (c.error_code.empty()) return status.ok() ? after : status;
  if (status.ok()) return Internal("no error, expected ", c.error_code, ": ", c.error_text);
  if (CodeName(status.code()) == c.error_code &&
      status.ToString().find(c.error_text) != std::string::npos) {
    return {};
  }
  return Internal("failed with '", status.ToString(), "', expected ", c.error_code, ": ",
                  c.error_text);
}

Status CheckInference(const Case& c, Device* device) {
  const ops::OpDef& row = *c.call.overload->row;
  if (!ops::IsPointwise(row.kind) || !c.error_code.empty()) return {};
  exec::Call call = c.call;
  Storages storages;
  TPU_RETURN_IF_ERROR(PutStorages(c, device, &call, &storages));
  exec::CallState state;
  exec::FindSlots(&call, &state);
  for (exec::Slot& s : state.slots) s.value = s.storage->Get();
  TPU_RETURN_IF_ERROR(exec::BuildKey(call, &state));
  std::vector<exec::ResultSpec> inferred;
  std::vector<int> fresh;
  std::vector<exec::Entry::Written> written;
  TPU_RETURN_IF_ERROR(exec::ComposeCall(call, state, &inferred, &fresh, &written).status());
  for (size_t i = 0; i < c.results.size() && !c.results[i].any; ++i) {
    TPU_RETURN_IF_ERROR(CheckType(c.results[i], inferred[i].dtype, inferred[i].sizes)
                            .Annotate("inferred result " + std::to_string(i) + ": "));
  }
  return {};
}

}  // namespace tpu::cases
