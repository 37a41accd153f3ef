// Composer: slots, packed words, the index record, and the program's end.
#include "exec/composer.h"

#include <bit>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>

#include "exec/call_lowering.h"
#include "exec/view_emit.h"

namespace tpu::exec {
namespace {

using hlo::Value;

struct CheckTables {
  std::mutex mu;
  std::map<std::vector<CheckInfo>, int32_t> numbers;
  std::vector<const std::vector<CheckInfo>*> tables;  // by number; keys of the map stay in place
};
CheckTables& Tables() {
  static CheckTables* const t = new CheckTables;
  return *t;
}

uint32_t FloatBits(double d) {
  const float f = static_cast<float>(d);
  uint32_t u;
  std::memcpy(&u, &f, sizeof u);
  return u;
}

void Append64(uint64_t v, std::vector<uint32_t>* words) {
  words->push_back(static_cast<uint32_t>(v));
  words->push_back(static_cast<uint32_t>(v >> 32));
}

void AppendDouble(double d, std::vector<uint32_t>* words) {
  uint64_t u;
  std::memcpy(&u, &d, sizeof u);
  Append64(u, words);
}

struct Sites {
  std::mutex mu;
  std::vector<std::string> names{""};  // 0: not known
  std::unordered_map<std::string, uint32_t> ids;
};
Sites& TheSites() {
  static Sites* const s = new Sites;
  return *s;
}

}  // namespace

uint32_t SiteOf(const std::string& location) {
  if (location.empty()) return 0;
  constexpr size_t kMaxSites = 1 << 20;  // of code that is made at run time
  Sites& s = TheSites();
  std::lock_guard lock(s.mu);
  if (const auto it = s.ids.find(location); it != s.ids.end()) return it->second;
  if (s.names.size() == kMaxSites) return 0;
  s.names.push_back(location);
  return s.ids[location] = static_cast<uint32_t>(s.names.size()) - 1;
}

int32_t RegisterChecks(std::vector<CheckInfo> checks) {
  CheckTables& t = Tables();
  std::lock_guard lock(t.mu);
  const auto [it, fresh] =
      t.numbers.try_emplace(std::move(checks), static_cast<int32_t>(t.tables.size()));
  if (fresh) t.tables.push_back(&it->first);
  return it->second;
}

Status DescribeIndexRecord(const std::array<int32_t, runtime::Device::kIndexRecordWords>& r) {
  CheckInfo info;
  {
    CheckTables& t = Tables();
    std::lock_guard lock(t.mu);
    if (size_t(r[1]) < t.tables.size() && size_t(r[2]) < t.tables[size_t(r[1])]->size()) {
      info = (*t.tables[size_t(r[1])])[size_t(r[2])];
    }
  }
  std::string location;
  {
    Sites& s = TheSites();
    std::lock_guard lock(s.mu);
    if (size_t(r[6]) < s.names.size()) location = s.names[size_t(r[6])];
  }
  const int64_t value =
      static_cast<int64_t>(uint64_t(uint32_t(r[4])) | uint64_t(uint32_t(r[5])) << 32);
  if (!info.rule.empty()) {
    std::ostringstream text;
    info.real ? text << std::bit_cast<float>(r[4]) : text << value;
    return InvalidArgument(info.rule, " (argument '", info.argument, "', element ", r[3], " is ",
                           text.str(), ")")
        .With({info.op, "", location});
  }
  return OutOfRange("index ", value, " is out of bounds for dimension ", info.dim, " with size ",
                    info.bound, " (argument '", info.argument, "', element ", r[3], ")")
      .With({info.op, "", location});
}

int NumberWords(DType dtype) {
  switch (dtype) {
    case DType::kI64:
    case DType::kU64:
    case DType::kF64:
    case DType::kC64: return 2;
    case DType::kC128: return 4;
    default: return 1;
  }
}

void AppendNumberWords(const Number& n, DType dtype, std::vector<uint32_t>* words) {
  if (dtype == DType::kC128) {
    AppendDouble(n.AsComplex().real(), words);
    AppendDouble(n.AsComplex().imag(), words);
  } else if (dtype == DType::kC64) {
    words->push_back(FloatBits(n.AsComplex().real()));
    words->push_back(FloatBits(n.AsComplex().imag()));
  } else if (dtype == DType::kF64) {
    AppendDouble(n.AsDouble(), words);
  } else if (IsFloat(dtype)) {
    words->push_back(FloatBits(n.AsDouble()));
  } else if (dtype == DType::kI64 || dtype == DType::kU64) {
    Append64(static_cast<uint64_t>(n.AsInt()), words);
  } else if (IsBool(dtype)) {
    words->push_back(n.AsComplex() != std::complex<double>(0) ? 1 : 0);
  } else {
    words->push_back(static_cast<uint32_t>(n.AsInt()));
  }
}

int Composer::AddSlot(const Base& base) {
  SlotState s;
  s.base = base;
  slots_.push_back(std::move(s));
  return static_cast<int>(slots_.size()) - 1;
}

int Composer::CopySlot(int slot) {
  SlotState s = slots_[size_t(slot)];
  if (s.origin < 0) s.origin = slot;
  s.written = false;
  slots_.push_back(std::move(s));
  return static_cast<int>(slots_.size()) - 1;
}

Value Composer::Read(int slot) {
  SlotState& s = slots_[size_t(slot)];
  if (s.current.valid()) return s.current;
  if (s.origin >= 0) return s.current = Read(s.origin);
  const hlo::Type type{s.base.dtype, s.base.dims};
  if (s.base.unset) {
    s.current = fn_.Constant(type, int64_t{0});
  } else {
    s.parameter = fn_.Parameter(type);
    s.param_index = static_cast<int>(params_.size());
    params_.push_back({ParamSource::Kind::kSlot, slot});
    s.current = s.parameter;
  }
  return s.current;
}

void Composer::Write(int slot, Value base, runtime::ValueTypeRef type) {
  SlotState& s = slots_[size_t(slot)];
  s.current = base;
  s.written = true;
  s.type = std::move(type);
  if (base.valid()) s.base = {base.dtype(), base.dims(), false};
}

hlo::Values Composer::Words(const WordSource& source, int count) {
  if (!words_param_.valid()) {
    words_param_ = fn_.Parameter({DType::kU32, {word_capacity_}});
    params_.push_back({ParamSource::Kind::kWords, -1});
  }
  const int first = words_used_;
  words_used_ += count;
  words_.push_back(source);
  hlo::Values out;
  for (int i = 0; i < count; ++i) {
    if (OutOfWords()) {
      out.push_back(fn_.Fail(Internal("more run-time words than the packed argument holds")));
      continue;
    }
    out.push_back(fn_.Reshape(
        fn_.Slice(words_param_, Dims{first + i}, Dims{first + i + 1}, Dims{1}), Dims{}));
  }
  return out;
}

Value Composer::IndexRecord() {
  if (!record_.valid()) {
    record_param_ = fn_.Parameter({DType::kI32, {runtime::Device::kIndexRecordWords}});
    record_param_index_ = static_cast<int>(params_.size());
    params_.push_back({ParamSource::Kind::kIndexRecord, -1});
    record_ = record_param_;
  }
  return record_;
}

Status Composer::Add(const Call& call, const std::vector<int>& slot_of,
                     std::vector<ResultSpec>* expected, std::vector<int>* fresh) {
  CallLowering lowering(this, call, slot_of, num_calls_++, expected);
  return lowering.Run(fresh).With({call.overload->name, call.Describe(), ""});
}

Result<Ref<Recipe>> Composer::Finish(const std::vector<int>& outputs) {
  auto recipe = Ref<Recipe>::Make();
  Recipe& r = *recipe;
  hlo::Values values;
  for (int slot : outputs) {
    SlotState& s = slots_[size_t(slot)];
    const Value v = Read(slot);
    if (s.type == nullptr && v.valid()) s.type = runtime::MakeValueType(v.dtype(), v.dims());
    const int k = static_cast<int>(values.size());
    const SlotState& home = s.origin < 0 ? s : slots_[size_t(s.origin)];
    const bool has_home = s.written && home.parameter.valid() && v.valid() &&
                          home.parameter.type() == v.type() &&
                          !params_[size_t(home.param_index)].donates;
    if (has_home) {
      fn_.SetParameterAttributes(home.parameter,
                                 "tf.aliasing_output = " + std::to_string(k) + " : i32");
      params_[size_t(home.param_index)].donates = true;
    } else if (s.type != nullptr) {
      r.result_bytes += s.type->bytes;
    }
    values.push_back(v);
    r.outputs.push_back({OutputSource::Kind::kValue, slot, s.type});
  }
  if (record_param_.valid()) {
    fn_.SetParameterAttributes(record_param_,
                               "tf.aliasing_output = " + std::to_string(values.size()) + " : i32");
    values.push_back(record_);
    r.outputs.push_back({OutputSource::Kind::kIndexRecord, -1, nullptr});
  }
  TPU_RETURN_IF_ERROR(fn_.status());
  if (!checks_.empty()) {
    const int32_t table = RegisterChecks(checks_);
    for (WordSource& w : words_) {
      if (w.kind == WordSource::Kind::kChecks) w.index = table;
    }
  }
  TPU_ASSIGN_OR_RETURN(r.text, fn_.Finish(values));
  r.unset_read = unset_read_;
  r.params = params_;
  r.words = words_;
  r.num_words = words_param_.valid() ? uint32_t(word_capacity_) : 0;
  return recipe;
}

}  // namespace tpu::exec
