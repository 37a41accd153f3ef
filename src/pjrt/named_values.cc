// NamedValues to and from the C form. See named_values.h.
#include "pjrt/named_values.h"

namespace tpu::pjrt {
namespace {

struct Filler {
  abi::NamedValue* out;
  void operator()(const std::string& v) const {
    out->type = abi::NamedValueType::kString;
    out->string_value = v.data();
    out->value_size = v.size();
  }
  void operator()(int64_t v) const {
    out->type = abi::NamedValueType::kInt64;
    out->int64_value = v;
    out->value_size = 1;
  }
  void operator()(const std::vector<int64_t>& v) const {
    out->type = abi::NamedValueType::kInt64List;
    out->int64_array_value = v.data();
    out->value_size = v.size();
  }
  void operator()(float v) const {
    out->type = abi::NamedValueType::kFloat;
    out->float_value = v;
    out->value_size = 1;
  }
  void operator()(bool v) const {
    out->type = abi::NamedValueType::kBool;
    out->bool_value = v;
    out->value_size = 1;
  }
};

}  // namespace

std::vector<abi::NamedValue> ToAbi(const NamedValues& values) {
  std::vector<abi::NamedValue> out;
  out.reserve(values.size());
  for (const auto& [name, value] : values) {
    abi::NamedValue& item = out.emplace_back();
    item.name = name.data();
    item.name_size = name.size();
    std::visit(Filler{&item}, value);
  }
  return out;
}

NamedValues FromAbi(const abi::NamedValue* values, size_t count) {
  NamedValues out;
  for (size_t i = 0; i < count; ++i) {
    const abi::NamedValue& item = values[i];
    NamedValue value;
    switch (item.type) {
      case abi::NamedValueType::kString:
        value = std::string(item.string_value, item.value_size);
        break;
      case abi::NamedValueType::kInt64: value = item.int64_value; break;
      case abi::NamedValueType::kInt64List:
        value =
            std::vector<int64_t>(item.int64_array_value, item.int64_array_value + item.value_size);
        break;
      case abi::NamedValueType::kFloat: value = item.float_value; break;
      case abi::NamedValueType::kBool: value = item.bool_value; break;
      default: continue;  // a type newer than this code
    }
    out.emplace(std::string(item.name, item.name_size), std::move(value));
  }
  return out;
}

}  // namespace tpu::pjrt
