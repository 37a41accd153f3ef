// The core of the builder: values, scopes, regions, and how an op becomes a line of text.
// What it is not: any particular op. Those are in the *_ops.cc files and their neighbours.
#include <algorithm>

#include "hlo/function_impl.h"

namespace tpu::hlo {

const Type& Value::type() const {
  static const Type kNone;
  return fn_ ? fn_->impl_->slots[static_cast<size_t>(id_)].type : kNone;
}

Function* Value::Failed() {
  thread_local Function failed;
  if (failed.status().ok()) (void)failed.Fail(Internal("an invalid value was used"));
  return &failed;
}

Function::Function() : impl_(std::make_unique<Impl>(this)) {}
Function::~Function() = default;

const Status& Function::status() const { return impl_->status; }

Value Function::Fail(Status status) {
  if (impl_->status.ok()) impl_->status = std::move(status);
  return {};
}

void Function::Emulate64Bit() { impl_->emulate_64bit = true; }
bool Function::emulates_64bit() const { return impl_->emulate_64bit; }

int64_t Function::num_ops() const { return impl_->num_ops; }

Value Function::Parameter(const Type& type, std::string attributes) {
  if (!impl_->status.ok()) return {};
  if (impl_->open.size() > 1) {
    return impl_->Error("parameter", "made inside the body of ", impl_->open.back().op);
  }
  if (type.dtype == DType::kInvalid) return impl_->Error("parameter", "has no dtype");
  for (int64_t d : type.dims) {
    if (d < 0) return impl_->Error("parameter", "has a negative size: ", ToString(type));
  }
  Value value = impl_->NewValue(type, static_cast<int>(impl_->parameters.size()));
  impl_->parameters.push_back({value.id(), std::move(attributes)});
  return value;
}

void Function::SetParameterAttributes(Value parameter, std::string attributes) {
  if (!impl_->Accepts("parameter attributes", {parameter})) return;
  int index = impl_->slots[static_cast<size_t>(parameter.id())].parameter;
  if (index < 0) {
    impl_->Error("parameter attributes", "the value is no parameter");
    return;
  }
  impl_->parameters[static_cast<size_t>(index)].attributes = std::move(attributes);
}

namespace {

// A symbol name needs no quotes if it is made of these.
std::string SymbolName(std::string_view name) {
  std::string out;
  for (char c : name) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '_' || c == '$' || c == '.';
    out += plain ? c : '_';
  }
  if (out.empty() || (out[0] >= '0' && out[0] <= '9') || out[0] == '.') out.insert(0, "_");
  return out;
}

}  // namespace

Result<std::string> Function::Finish(const Values& results, std::string_view name) {
  if (impl_->open.size() > 1) impl_->Error("finish", "called inside a body");
  impl_->Accepts("result", results);
  if (!impl_->status.ok()) return impl_->status;

  std::string out = "module @" + SymbolName(name) + " {\n  func.func public @main(";
  for (size_t i = 0; i < impl_->parameters.size(); ++i) {
    const auto& parameter = impl_->parameters[i];
    if (i > 0) out += ", ";
    out += "%arg" + std::to_string(i) + ": " +
           ToMlir(impl_->slots[static_cast<size_t>(parameter.id)].type);
    if (!parameter.attributes.empty()) out += " {" + parameter.attributes + "}";
  }
  out += ") -> (";
  impl_->AppendTypes(&out, results);
  out += ") {\n";
  out += *impl_->text();
  out += "    func.return";
  if (!results.empty()) {
    out += ' ';
    impl_->AppendNames(&out, results);
    out += " : ";
    impl_->AppendTypes(&out, results);
  }
  out += "\n  }\n}\n";
  return out;
}

bool Function::Impl::Accepts(std::string_view op, std::span<const Value> operands) {
  if (!status.ok()) return false;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Value& value = operands[i];
    if (!value.valid()) {
      Error(op, "operand ", i, " is no value");
      return false;
    }
    if (value.function() != fn) {
      Error(op, "operand ", i, " belongs to another function");
      return false;
    }
    int region = slots[static_cast<size_t>(value.id())].region;
    auto scope = open.rbegin();
    while (scope != open.rend() && scope->id != region && !scope->isolated) ++scope;
    if (scope == open.rend()) {
      Error(op, "operand ", i, " was made in a body that has ended");
      return false;
    }
    if (scope->id != region) {
      Error(op, "operand ", i, " comes from outside, but the body of ", scope->op,
            " may use its arguments only");
      return false;
    }
  }
  return true;
}

bool Function::Impl::Takes(std::string_view op, Value operand, unsigned set) {
  if (Contains(set, operand.dtype())) return true;
  Error(op, "takes ", DescribeSet(set), ", not ", ToString(operand.type()));
  return false;
}

bool Function::Impl::AreDims(std::string_view op, std::string_view what, DimsView dims,
                             int64_t rank) {
  std::vector<bool> seen(static_cast<size_t>(std::max<int64_t>(rank, 0)));
  for (int64_t d : dims) {
    if (d < 0 || d >= rank || seen[static_cast<size_t>(d)]) {
      Error(op, what, " ", ToString(dims), " are not different dimensions of rank ", rank);
      return false;
    }
    seen[static_cast<size_t>(d)] = true;
  }
  return true;
}

bool Function::Impl::AreStarts(std::string_view op, const Values& starts, int64_t rank) {
  if (static_cast<int64_t>(starts.size()) != rank) {
    Error(op, starts.size(), " starts for rank ", rank);
    return false;
  }
  for (const Value& start : starts) {
    if (!IsInteger(start.dtype()) || start.rank() != 0 || start.dtype() != starts[0].dtype()) {
      Error(op, "starts must be integer scalars of one dtype: ", ToString(starts[0].type()),
            " and ", ToString(start.type()));
      return false;
    }
  }
  return true;
}

bool Function::Impl::AreInits(std::string_view op, const Values& operands, const Values& inits) {
  if (operands.empty() || operands.size() != inits.size()) {
    Error(op, operands.size(), " operands and ", inits.size(), " initial values");
    return false;
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].dims() != operands[0].dims()) {
      Error(op, "operands differ in shape: ", ToString(operands[0].type()), " and ",
            ToString(operands[i].type()));
      return false;
    }
    if (inits[i].rank() != 0 || inits[i].dtype() != operands[i].dtype()) {
      Error(op, "the initial value ", ToString(inits[i].type()), " doesn't fit ",
            ToString(operands[i].type()));
      return false;
    }
  }
  return true;
}

Value Function::Impl::NewValue(Type type, int parameter) {
  slots.push_back({std::move(type), open.back().id, parameter});
  return Value(fn, static_cast<int>(slots.size()) - 1);
}

void Function::Impl::AppendName(std::string* out, Value value) const {
  int parameter = slots[static_cast<size_t>(value.id())].parameter;
  *out += parameter < 0 ? "%" : "%arg";
  *out += std::to_string(parameter < 0 ? value.id() : parameter);
}

void Function::Impl::AppendNames(std::string* out, std::span<const Value> values) const {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) *out += ", ";
    AppendName(out, values[i]);
  }
}

void Function::Impl::AppendTypes(std::string* out, std::span<const Value> values) const {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) *out += ", ";
    *out += ToMlir(values[i].type());
  }
}

Values Function::Impl::Emit(const Op& op) {
  Values results;
  results.reserve(op.results.size());
  for (const Type& type : op.results) results.push_back(NewValue(type));
  std::string* out = text();
  Indent(out);
  if (!results.empty()) {
    AppendNames(out, results);
    *out += " = ";
  }
  *out += '"';
  *out += op.name;
  *out += "\"(";
  AppendNames(out, op.operands);
  *out += ')';
  if (!op.attributes.text().empty()) {
    *out += " <{";
    *out += op.attributes.text();
    *out += "}>";
  }
  for (size_t i = 0; i < op.regions.size(); ++i) {
    *out += i == 0 ? " ({\n" : "}, {\n";
    *out += op.regions[i];
    Indent(out);
  }
  if (!op.regions.empty()) *out += "})";
  *out += " : (";
  AppendTypes(out, op.operands);
  *out += ") -> ";
  if (results.size() != 1) *out += '(';
  AppendTypes(out, results);
  if (results.size() != 1) *out += ')';
  *out += '\n';
  ++num_ops;
  return results;
}

Value Function::Impl::EmitElementwise(std::string_view name, std::span<const Value> operands) {
  Value result = NewValue(operands[0].type());
  std::string* out = text();
  Indent(out);
  AppendName(out, result);
  *out += " = ";
  *out += name;
  *out += ' ';
  AppendNames(out, operands);
  *out += " : ";
  *out += ToMlir(result.type());
  *out += '\n';
  ++num_ops;
  return result;
}

Region Function::Impl::Build(std::string_view op, const std::vector<Type>& arguments,
                             const Body& body, bool isolated) {
  Region region;
  open.push_back({"", num_regions++, isolated, std::string(op)});
  Values values;
  for (const Type& type : arguments) values.push_back(NewValue(type));
  if (!values.empty()) {
    std::string* out = text();
    out->append(2 * open.size(), ' ');
    *out += "^bb0(";
    for (size_t i = 0; i < values.size(); ++i) {
      if (i > 0) *out += ", ";
      AppendName(out, values[i]);
      *out += ": ";
      *out += ToMlir(arguments[i]);
    }
    *out += "):\n";
  }
  Values results = body(*fn, values);
  // After an error the types of what came out still tell callers how many results there are.
  for (const Value& value : results) region.results.push_back(value.type());
  if (Accepts(op, results)) {
    std::string* out = text();
    Indent(out);
    *out += "\"stablehlo.return\"(";
    AppendNames(out, results);
    *out += ") : (";
    AppendTypes(out, results);
    *out += ") -> ()\n";
    region.ok = true;
  }
  region.text = std::move(open.back().text);
  open.pop_back();
  return region;
}

Region Function::Impl::Build(std::string_view op, const std::vector<Type>& arguments,
                             const Body& body, bool isolated, const std::vector<Type>& results) {
  Region region = Build(op, arguments, body, isolated);
  if (!region.ok) return region;
  if (region.results.size() != results.size()) {
    Error(op, "the body gives ", region.results.size(), " results, not ", results.size());
    region.ok = false;
  }
  for (size_t i = 0; region.ok && i < results.size(); ++i) {
    if (region.results[i] == results[i]) continue;
    Error(op, "result ", i, " of the body is ", ToString(region.results[i]), ", not ",
          ToString(results[i]));
    region.ok = false;
  }
  return region;
}

}  // namespace tpu::hlo
