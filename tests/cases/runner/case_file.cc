// The parser of case files: statements of words and brackets.
#include "runner/case_file.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace tpu::cases {
namespace {

using exec::Arg;
using exec::Number;

// Words, quoted texts (with their quotes) and single brackets or signs.
std::vector<std::string> Tokens(std::string_view text) {
  std::vector<std::string> out;
  size_t i = 0;
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '+' ||
           c == '-' || c == '>';
  };
  while (i < text.size()) {
    const size_t from = i;
    if (std::isspace(static_cast<unsigned char>(text[i]))) {
      ++i;
      continue;
    }
    if (text[i] == '"') {
      i = text.find('"', i + 1);
      i = i == std::string_view::npos ? text.size() : i + 1;
    } else if (is_word(text[i])) {
      while (i < text.size() && is_word(text[i])) ++i;
    } else {
      ++i;
    }
    out.emplace_back(text.substr(from, i - from));
  }
  return out;
}

class Cursor {
 public:
  explicit Cursor(std::string_view text) : tokens_(Tokens(text)) {}
  bool done() const { return at_ == tokens_.size(); }
  const std::string& peek() const {
    static const std::string end;
    return done() ? end : tokens_[at_];
  }
  std::string Next() { return done() ? std::string() : tokens_[at_++]; }
  bool Take(std::string_view token) {
    if (peek() != token) return false;
    ++at_;
    return true;
  }
  Status Need(std::string_view token) {
    if (Take(token)) return {};
    return InvalidArgument("expected '", token, "', found '", peek(), "'");
  }
  Result<int64_t> Int() {
    const std::string text = Next();
    char* end = nullptr;
    const int64_t value = std::strtoll(text.c_str(), &end, 10);
    if (text.empty() || *end != '\0') return InvalidArgument("not an integer: '", text, "'");
    return value;
  }
  Result<double> Float() {
    const std::string text = Next();
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') return InvalidArgument("not a number: '", text, "'");
    return value;
  }
  // "[2, 3]"
  Result<Dims> Ints() {
    TPU_RETURN_IF_ERROR(Need("["));
    Dims out;
    while (!Take("]")) {
      if (!out.empty()) TPU_RETURN_IF_ERROR(Need(","));
      if (peek() == "true" || peek() == "false") {
        out.push_back(Next() == "true");
        continue;
      }
      TPU_ASSIGN_OR_RETURN(const int64_t one, Int());
      out.push_back(one);
    }
    return out;
  }

 private:
  const std::vector<std::string> tokens_;
  size_t at_ = 0;
};

// "3", "3.0", "true", "(1.0, 2.0)": the spelling says the kind.
Result<Number> ParseNumber(Cursor* in) {
  Number out;
  if (in->Take("(")) {
    out.kind = Number::Kind::kComplex;
    TPU_ASSIGN_OR_RETURN(out.d, in->Float());
    TPU_RETURN_IF_ERROR(in->Need(","));
    TPU_ASSIGN_OR_RETURN(out.imag, in->Float());
    TPU_RETURN_IF_ERROR(in->Need(")"));
    return out;
  }
  const std::string& text = in->peek();
  if (text == "true" || text == "false" || text == "True" || text == "False") {
    out.kind = Number::Kind::kBool;
    out.b = text[0] == 't' || text[0] == 'T';
    in->Next();
    return out;
  }
  if (text.find_first_not_of("+-0123456789") == std::string::npos) {
    out.kind = Number::Kind::kInt;
    TPU_ASSIGN_OR_RETURN(out.i, in->Int());
    return out;
  }
  TPU_ASSIGN_OR_RETURN(out.d, in->Float());
  return out;
}

// `count` elements: "{1 2 3}", "all(x)", or "mod(m, n, b, s)": element i is ((i * m) mod n + b) *
// s.
Result<std::vector<char>> ParseData(Cursor* in, DType dtype, int64_t count) {
  std::vector<char> out;
  const int64_t parts = IsComplex(dtype) ? 2 * count : count;
  if (in->Take("all")) {
    TPU_RETURN_IF_ERROR(in->Need("("));
    const std::string text = in->Next();
    for (int64_t i = 0; i < parts; ++i) TPU_RETURN_IF_ERROR(AppendElement(dtype, text, &out));
    TPU_RETURN_IF_ERROR(in->Need(")"));
    return out;
  }
  if (in->Take("mod")) {
    TPU_RETURN_IF_ERROR(in->Need("("));
    TPU_ASSIGN_OR_RETURN(const int64_t m, in->Int());
    TPU_RETURN_IF_ERROR(in->Need(","));
    TPU_ASSIGN_OR_RETURN(const int64_t n, in->Int());
    TPU_RETURN_IF_ERROR(in->Need(","));
    TPU_ASSIGN_OR_RETURN(const int64_t b, in->Int());
    TPU_RETURN_IF_ERROR(in->Need(","));
    TPU_ASSIGN_OR_RETURN(const double s, in->Float());
    TPU_RETURN_IF_ERROR(in->Need(")"));
    for (int64_t i = 0; i < parts; ++i) {
      TPU_RETURN_IF_ERROR(AppendNumber(dtype, static_cast<double>(i * m % n + b) * s, &out));
    }
    return out;
  }
  TPU_RETURN_IF_ERROR(in->Need("{"));
  int64_t found = 0;
  for (; !in->Take("}"); ++found) {
    if (in->done()) return InvalidArgument("data without '}'");
    TPU_RETURN_IF_ERROR(AppendElement(dtype, in->Next(), &out));
  }
  if (found != parts) return InvalidArgument(found, " values of data where ", parts, " are needed");
  return out;
}

class CaseParser {
 public:
  CaseParser(const BoundSchema& op, Case* out) : op_(op), c_(out) {
    c_->call.overload = op.overload;
    c_->call.args.resize(op.schema.args.size());
    given_.resize(op.schema.args.size());
  }

  Status Statement(std::string_view text) {
    Cursor in(text);
    const std::string word = in.Next();
    TPU_RETURN_IF_ERROR(Dispatch(word, &in));
    if (!in.done()) return InvalidArgument("unexpected '", in.peek(), "'");
    return {};
  }

  Status Finish() {
    for (size_t i = 0; i < given_.size(); ++i) {
      const SchemaArg& arg = op_.schema.args[i];
      if (given_[i] || arg.type == ArgType::kIgnored) continue;
      if (!arg.has_default) return InvalidArgument("argument '", arg.name, "' is missing");
      Cursor in(arg.otherwise);
      TPU_RETURN_IF_ERROR(Argument(arg, &in, &c_->call.args[i]));
      c_->call.args[i].is_default = c_->call.args[i].kind == Arg::Kind::kNumber &&
                                    c_->call.args[i].number.kind != Number::Kind::kComplex;
    }
    if (c_->error_code.empty() && c_->results.empty()) {
      bool after = false;
      for (const CaseStorage& s : c_->storages) after |= s.after.has_value();
      if (!after) return InvalidArgument("the case expects nothing");
    }
    return {};
  }

 private:
  Status Dispatch(const std::string& word, Cursor* in) {
    if (word == "storage") return StorageStatement(in);
    if (word == "->") return ResultStatement(in);
    if (word == "after") return After(in);
    if (word == "tolerance") return ToleranceStatement(in);
    if (word == "seed") {
      TPU_ASSIGN_OR_RETURN(const int64_t seed, in->Int());
      TPU_ASSIGN_OR_RETURN(const int64_t offset, in->Int());
      c_->call.seed = static_cast<uint64_t>(seed);
      c_->call.seed_offset = static_cast<uint64_t>(offset);
      return {};
    }
    if (word == "error") {
      const std::string code = in->Next(), message = in->Next();
      if (code.size() < 3 || message.size() < 3) {
        return InvalidArgument("an error needs its code and its text, both in quotes");
      }
      c_->error_code = code.substr(1, code.size() - 2);
      c_->error_text = message.substr(1, message.size() - 2);
      return {};
    }
    const int i = op_.ArgIndex(word);
    if (i < 0) return InvalidArgument(op_.schema.name, " has no argument '", word, "'");
    TPU_RETURN_IF_ERROR(in->Need("="));
    given_[size_t(i)] = true;
    const SchemaArg& arg = op_.schema.args[size_t(i)];
    prefix_ = arg.name;
    TPU_RETURN_IF_ERROR(Argument(arg, in, &c_->call.args[size_t(i)]));
    Arg& a = c_->call.args[size_t(i)];
    if (a.kind == Arg::Kind::kNumber && arg.has_default && arg.otherwise != "None") {
      Cursor otherwise(arg.otherwise);
      TPU_ASSIGN_OR_RETURN(const Number d, ParseNumber(&otherwise));
      a.is_default = d.AsDouble() == a.number.AsDouble() && a.number.kind != Number::Kind::kComplex;
    }
    return {};
  }

  // A name, or PyTorch's number of a type, as schemas give it for a default.
  Result<DType> Type(const std::string& name) const {
    static constexpr DType kNumbered[] = {DType::kU8,  DType::kI8,  DType::kI16, DType::kI32,
                                          DType::kI64, DType::kF16, DType::kF32, DType::kF64};
    if (name.size() == 1 && name[0] >= '0' && name[0] < '8') return kNumbered[name[0] - '0'];
    const auto dtype = DTypeFromTorchName(name);
    if (!dtype) return InvalidArgument("no such type: '", name, "'");
    return *dtype;
  }

  // storage NAME TYPE [COUNT] DATA
  Status StorageStatement(Cursor* in) {
    CaseStorage s;
    s.name = in->Next();
    TPU_ASSIGN_OR_RETURN(s.dtype, Type(in->Next()));
    TPU_ASSIGN_OR_RETURN(s.dims, in->Ints());
    TPU_ASSIGN_OR_RETURN(s.bytes, ParseData(in, s.dtype, NumElements(s.dims)));
    c_->storages.push_back(std::move(s));
    return {};
  }

  Status ResultStatement(Cursor* in) {
    CaseResult r;
    r.any = in->Take("any");
    if (r.any ? !in->done() : !in->Take("none")) {
      TPU_ASSIGN_OR_RETURN(r.dtype, Type(in->Next()));
      TPU_ASSIGN_OR_RETURN(r.sizes, in->Ints());
      if (in->Take("strides")) {
        TPU_ASSIGN_OR_RETURN(Dims strides, in->Ints());
        r.strides = std::move(strides);
      }
      if (!r.any) {
        TPU_ASSIGN_OR_RETURN(r.bytes, ParseData(in, r.dtype, NumElements(r.sizes)));
      }
    }
    c_->results.push_back(std::move(r));
    return {};
  }

  Status After(Cursor* in) {
    const std::string name = in->Next();
    for (CaseStorage& s : c_->storages) {
      if (s.name != name) continue;
      TPU_ASSIGN_OR_RETURN(std::vector<char> bytes, ParseData(in, s.dtype, NumElements(s.dims)));
      s.after = std::move(bytes);
      return {};
    }
    return InvalidArgument("no storage '", name, "'");
  }

  Status ToleranceStatement(Cursor* in) {
    while (!in->done()) {
      const std::string what = in->Next();
      if (what == "any_zero") {
        c_->tolerance.any_zero = true;
        continue;
      }
      double* const to = what == "ulp"    ? &c_->tolerance.ulp
                         : what == "rtol" ? &c_->tolerance.rtol
                         : what == "atol" ? &c_->tolerance.atol
                                          : nullptr;
      if (to == nullptr) return InvalidArgument("no such tolerance: '", what, "'");
      TPU_ASSIGN_OR_RETURN(*to, in->Float());
    }
    return {};
  }

  Status Argument(const SchemaArg& arg, Cursor* in, Arg* a) {
    if (arg.type != ArgType::kTensor && (in->Take("none") || in->Take("None"))) return {};
    exec::Call& call = c_->call;
    switch (arg.type) {
      case ArgType::kIgnored: return InvalidArgument("argument '", arg.name, "' is not the core's");
      case ArgType::kTensor: return TensorArgument(in, prefix_, a);
      case ArgType::kTensors: return TensorList(in, a);
      case ArgType::kNumber: {
        a->kind = Arg::Kind::kNumber;
        TPU_ASSIGN_OR_RETURN(a->number, ParseNumber(in));
        return {};
      }
      case ArgType::kInt: {
        a->kind = Arg::Kind::kInt;
        TPU_ASSIGN_OR_RETURN(const Number n, ParseNumber(in));
        a->i = n.AsInt();
        return {};
      }
      case ArgType::kInts:
      case ArgType::kFloats: {
        Dims list;
        if (in->peek() != "[") {  // "int[2] padding=0"
          TPU_ASSIGN_OR_RETURN(const int64_t one, in->Int());
          list.assign(static_cast<size_t>(std::max(arg.list_size, 1)), one);
        } else if (arg.type == ArgType::kInts) {
          TPU_ASSIGN_OR_RETURN(list, in->Ints());
        } else {
          TPU_ASSIGN_OR_RETURN(list, Floats(in));
        }
        a->kind = Arg::Kind::kInts;
        a->at = static_cast<uint32_t>(call.ints.size());
        a->count = static_cast<uint32_t>(list.size());
        call.ints.insert(call.ints.end(), list.begin(), list.end());
        return {};
      }
      case ArgType::kType: {
        a->kind = Arg::Kind::kType;
        TPU_ASSIGN_OR_RETURN(a->dtype, Type(in->Next()));
        return {};
      }
      case ArgType::kString: {
        const std::string quoted = in->Next();
        if (quoted.size() < 2) return InvalidArgument("a text needs quotes");
        a->kind = Arg::Kind::kString;
        a->at = static_cast<uint32_t>(call.strings.size());
        call.strings.push_back(quoted.substr(1, quoted.size() - 2));
        return {};
      }
    }
    return {};
  }

  // As bit patterns, which is how a Call keeps them.
  Result<Dims> Floats(Cursor* in) {
    Dims out;
    TPU_RETURN_IF_ERROR(in->Need("["));
    while (!in->Take("]")) {
      if (!out.empty()) TPU_RETURN_IF_ERROR(in->Need(","));
      TPU_ASSIGN_OR_RETURN(const double d, in->Float());
      out.push_back(std::bit_cast<int64_t>(d));
    }
    return out;
  }

  Status TensorList(Cursor* in, Arg* a) {
    TPU_RETURN_IF_ERROR(in->Need("["));
    a->kind = Arg::Kind::kTensors;
    a->at = static_cast<uint32_t>(c_->call.tensors.size());
    while (!in->Take("]")) {
      if (a->count > 0) TPU_RETURN_IF_ERROR(in->Need(","));
      Arg one;
      TPU_RETURN_IF_ERROR(TensorArgument(in, prefix_ + "." + std::to_string(a->count), &one));
      if (one.kind == Arg::Kind::kNone) {
        c_->call.tensors.emplace_back();
        c_->storage_of.push_back(-1);
      } else if (one.kind != Arg::Kind::kTensor) {
        return InvalidArgument("a list holds tensors of the device");
      }
      ++a->count;
    }
    return {};
  }

  // none | wrapped NUMBER | scalar TYPE NUMBER | TYPE[sizes] DATA
  //   | STORAGE[sizes] [strides[..]] [offset N] [as TYPE] [conj] [neg]
  Status TensorArgument(Cursor* in, const std::string& own_name, Arg* a) {
    if (in->Take("none") || in->Take("None")) return {};
    if (in->Take("wrapped")) {
      TPU_ASSIGN_OR_RETURN(a->number, ParseNumber(in));
      static constexpr DType kTypes[] = {DType::kBool, DType::kI64, DType::kU64, DType::kF64,
                                         DType::kC128};
      a->kind = Arg::Kind::kHostTensor;
      a->dtype = kTypes[size_t(a->number.kind)];
      a->wrapped = true;
      return {};
    }
    if (in->Take("scalar")) {
      a->kind = Arg::Kind::kHostTensor;
      TPU_ASSIGN_OR_RETURN(a->dtype, Type(in->Next()));
      TPU_ASSIGN_OR_RETURN(a->number, ParseNumber(in));
      return {};
    }
    const std::string name = in->Next();
    for (size_t s = 0; s < c_->storages.size(); ++s) {
      if (c_->storages[s].name == name) return ViewArgument(in, static_cast<int>(s), a);
    }
    CaseStorage own;
    own.name = own_name;
    TPU_ASSIGN_OR_RETURN(own.dtype, Type(name));
    TPU_ASSIGN_OR_RETURN(own.dims, in->Ints());
    TPU_ASSIGN_OR_RETURN(own.bytes, ParseData(in, own.dtype, NumElements(own.dims)));
    exec::TensorArg t;
    t.dtype = own.dtype;
    Place(own.dims, RowMajorStrides(own.dims), static_cast<int>(c_->storages.size()), t, a);
    c_->storages.push_back(std::move(own));
    return {};
  }

  Status ViewArgument(Cursor* in, int storage, Arg* a) {
    exec::TensorArg t;
    t.dtype = c_->storages[size_t(storage)].dtype;
    TPU_ASSIGN_OR_RETURN(const Dims sizes, in->Ints());
    Dims strides = RowMajorStrides(sizes);
    for (;;) {
      if (in->Take("strides")) {
        TPU_ASSIGN_OR_RETURN(strides, in->Ints());
      } else if (in->Take("offset")) {
        TPU_ASSIGN_OR_RETURN(t.offset, in->Int());
      } else if (in->Take("as")) {
        TPU_ASSIGN_OR_RETURN(t.dtype, Type(in->Next()));
      } else if (in->Take("conj")) {
        t.conj = true;
      } else if (in->Take("neg")) {
        t.neg = true;
      } else {
        break;
      }
    }
    if (strides.size() != sizes.size()) return InvalidArgument("as many strides as sizes");
    Place(sizes, strides, storage, t, a);
    return {};
  }

  void Place(const Dims& sizes, const Dims& strides, int storage, exec::TensorArg t, Arg* a) {
    exec::Call& call = c_->call;
    t.rank = static_cast<int16_t>(sizes.size());
    t.dims_at = static_cast<uint32_t>(call.ints.size());
    call.ints.insert(call.ints.end(), sizes.begin(), sizes.end());
    call.ints.insert(call.ints.end(), strides.begin(), strides.end());
    a->kind = Arg::Kind::kTensor;
    a->at = static_cast<uint32_t>(call.tensors.size());
    a->dtype = t.dtype;
    call.tensors.push_back(t);
    c_->storage_of.push_back(storage);
  }

  const BoundSchema& op_;
  Case* const c_;
  std::vector<bool> given_;
  std::string prefix_;
};

// Statements with the number of their first line. One ends with its line unless a brace is open.
std::vector<std::pair<int, std::string>> Statements(std::string_view text) {
  std::vector<std::pair<int, std::string>> out;
  std::istringstream in{std::string(text)};
  int number = 0, depth = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const size_t first = line.find_first_not_of(' ');
    if (first == std::string::npos || line[first] == '#') continue;
    if (depth == 0) {
      out.emplace_back(number, line.substr(first));
    } else {
      out.back().second += ' ' + line.substr(first);
    }
    for (char c : line) depth += c == '{' ? 1 : c == '}' ? -1 : 0;
  }
  return out;
}

}  // namespace

Result<std::vector<Case>> ParseCases(std::string_view text) {
  std::vector<Case> out;
  std::optional<BoundSchema> op;
  std::optional<CaseParser> parser;
  Case current;
  const auto finish = [&]() -> Status {
    if (!parser) return {};
    TPU_RETURN_IF_ERROR(parser->Finish().Annotate("case " + current.name + ": "));
    parser.reset();
    out.push_back(std::move(current));
    return {};
  };
  for (const auto& [line, statement] : Statements(text)) {
    const std::string at = "line " + std::to_string(line) + ": ";
    if (statement.starts_with("op ")) {  // op [row NAME] SCHEMA
      TPU_RETURN_IF_ERROR(finish().Annotate(at));
      std::string_view schema = std::string_view(statement).substr(3), row;
      if (schema.starts_with("row ")) {
        row = schema.substr(4, schema.find(' ', 4) - 4);
        schema = schema.substr(schema.find(' ', 4) + 1);
      }
      auto bound = BindSchema(schema, row);
      if (!bound.ok()) return bound.status().Annotate(at);
      op = std::move(bound).value();
    } else if (statement.starts_with("case ")) {
      TPU_RETURN_IF_ERROR(finish().Annotate(at));
      if (!op) return InvalidArgument(at, "a case before any op");
      current = {};
      current.name = statement.substr(5);
      current.line = line;
      parser.emplace(*op, &current);
    } else {
      if (!parser) return InvalidArgument(at, "a statement outside of a case");
      TPU_RETURN_IF_ERROR(parser->Statement(statement).Annotate(at));
    }
  }
  TPU_RETURN_IF_ERROR(finish());
  if (out.empty()) return InvalidArgument("no case");
  return out;
}

Result<std::vector<Case>> ReadCaseFile(const std::string& path) {
  std::ifstream in(path);
  if (!in) return InvalidArgument("can't read ", path);
  std::ostringstream text;
  text << in.rdbuf();
  auto cases = ParseCases(text.str());
  if (!cases.ok()) return cases.status().Annotate(path + ": ");
  return cases;
}

}  // namespace tpu::cases
