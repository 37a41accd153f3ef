// Reading schemas, and binding them to rows.
#include "runner/schema.h"

#include <cstdlib>

namespace tpu::cases {
namespace {

std::string_view Trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

// Splits at commas outside of brackets.
std::vector<std::string_view> SplitList(std::string_view s) {
  std::vector<std::string_view> out;
  int depth = 0;
  size_t from = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '(' || s[i] == '[') ++depth;
    if (s[i] == ')' || s[i] == ']') --depth;
    if (s[i] != ',' || depth > 0) continue;
    out.push_back(Trim(s.substr(from, i - from)));
    from = i + 1;
  }
  const std::string_view last = Trim(s.substr(from));
  if (!last.empty()) out.push_back(last);
  return out;
}

bool Named(std::string_view list, std::string_view name) {
  for (std::string_view one : SplitList(list)) {
    if (one == name) return true;
  }
  return false;
}

// "Tensor(a!)[]?" as its plain name and whether it is a list.
ArgType TypeOf(std::string_view type) {
  while (type.ends_with('?')) type.remove_suffix(1);
  const std::string_view base = type.substr(0, type.find_first_of("([?"));
  const bool list = type.find('[') != std::string_view::npos;
  if (base == "Tensor") return list ? ArgType::kTensors : ArgType::kTensor;
  if (base == "Scalar" || (base == "float" && !list)) return ArgType::kNumber;
  if (base == "float") return ArgType::kFloats;
  if (base == "int" || base == "SymInt" || base == "bool") {
    return list ? ArgType::kInts : ArgType::kInt;
  }
  if (base == "ScalarType") return ArgType::kType;
  if (base == "str") return ArgType::kString;
  return ArgType::kIgnored;
}

Result<SchemaArg> ParseArg(std::string_view text, bool keyword_only) {
  SchemaArg out;
  out.keyword_only = keyword_only;
  const size_t equals = text.find('=');
  if (equals != std::string_view::npos) {
    out.otherwise = Trim(text.substr(equals + 1));
    out.has_default = true;
    text = Trim(text.substr(0, equals));
  }
  const size_t space = text.rfind(' ');
  if (space == std::string_view::npos) return InvalidArgument("an argument without a name: ", text);
  out.name = text.substr(space + 1);
  const std::string_view type = Trim(text.substr(0, space));
  out.type = TypeOf(type);
  const size_t bracket = type.find('[');
  if (bracket != std::string_view::npos) {
    out.list_size = std::atoi(std::string(type.substr(bracket + 1)).c_str());
  }
  out.written = type.find('!') != std::string_view::npos;
  return out;
}

// Where the bracket at `open` closes.
size_t CloseOf(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return i;
  }
  return std::string_view::npos;
}

}  // namespace

Result<Schema> ParseSchema(std::string_view text) {
  text = Trim(text);
  Schema out;
  const size_t open = text.find('(');
  const size_t close = open == std::string_view::npos ? open : CloseOf(text, open);
  if (close == std::string_view::npos) return InvalidArgument("not a schema: ", text);
  out.name = text.substr(0, open);
  bool keyword_only = false;
  for (std::string_view arg : SplitList(text.substr(open + 1, close - open - 1))) {
    if (arg == "*") {
      keyword_only = true;
      continue;
    }
    TPU_ASSIGN_OR_RETURN(SchemaArg parsed, ParseArg(arg, keyword_only));
    out.args.push_back(std::move(parsed));
  }
  std::string_view returns = Trim(text.substr(close + 1));
  if (!returns.starts_with("->")) return InvalidArgument("a schema without returns: ", text);
  returns = Trim(returns.substr(2));
  if (returns.starts_with('(')) returns = returns.substr(1, returns.size() - 2);
  for (std::string_view one : SplitList(returns)) {
    out.returns_alias.push_back(one.find('(') != std::string_view::npos);
  }
  return out;
}

int BoundSchema::ArgIndex(std::string_view name) const {
  for (size_t i = 0; i < schema.args.size(); ++i) {
    if (schema.args[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

Result<BoundSchema> BindSchema(std::string_view text, std::string_view row_name) {
  BoundSchema out;
  TPU_ASSIGN_OR_RETURN(out.schema, ParseSchema(text));
  const ops::OpDef* const row = ops::FindOp(row_name.empty() ? out.schema.name : row_name);
  if (row == nullptr) return InvalidArgument("no row for ", row_name, " ", out.schema.name);
  if (row->status == ops::StatusKind::kHost) {
    return InvalidArgument(row->name, " has results of unknown size: not the core's");
  }
  exec::Overload overload;
  overload.row = row;
  overload.name = out.schema.name;
  std::vector<int> marked, mutated;
  for (size_t i = 0; i < out.schema.args.size(); ++i) {
    SchemaArg& arg = out.schema.args[i];
    if (Named(row->dynamics, arg.name)) arg.type = ArgType::kNumber;
    overload.arg_names.push_back(arg.name);
    overload.arg_static.push_back(Named(row->statics, arg.name));
    if (arg.written) marked.push_back(static_cast<int>(i));
    if (Named(row->mutates, arg.name)) mutated.push_back(static_cast<int>(i));
  }
  if (row->name == out.schema.name) {
    for (bool alias : out.schema.returns_alias) {
      if (!alias) overload.targets.push_back(-1);
    }
    overload.targets.insert(overload.targets.end(), mutated.begin(), mutated.end());
  }
  overload.targets.insert(overload.targets.end(), marked.begin(), marked.end());
  overload.reads_targets = marked.empty() || !out.schema.args[size_t(marked[0])].keyword_only;
  out.overload = exec::Overload::Register(std::move(overload));
  return out;
}

}  // namespace tpu::cases
