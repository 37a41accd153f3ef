// The inside of Function, shared by the files that implement its ops: value table, open regions,
// the op writer, and the checks that every op needs.
// What it is not: an interface. Include "hlo/hlo.h" outside src/hlo.
#pragma once

#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hlo/hlo.h"

namespace tpu::hlo {

using tpu::ToString;  // of dims, beside those of types

// The properties of an op as text: "dimension = 0 : i64, is_stable = true".
class Attributes {
 public:
  Attributes& Text(std::string_view name, std::string_view value);
  Attributes& I64(std::string_view name, int64_t value);
  Attributes& Bool(std::string_view name, bool value);
  Attributes& Array(std::string_view name, DimsView values);  // array<i64: ...>
  Attributes& String(std::string_view name, std::string_view value);
  // Low and high padding of each dimension: an n x 2 matrix.
  Attributes& Padding(std::string_view name, std::span<const Window> windows);
  // The fields of all windows as one array.
  Attributes& Windows(std::string_view name, std::span<const Window> windows,
                      int64_t Window::* field);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// "[0, 1]"; and for #stablehlo.gather and the like, "name = [0, 1]" after a comma if it isn't
// empty.
std::string ListText(DimsView values);
void AppendField(std::string* out, std::string_view name, DimsView values);

// The literal of `value` in a dense constant of `dtype`: "1.5", "0x7FC00000", "(0.0, 1.0)", "true".
Result<std::string> Literal(DType dtype, const Number& value);
// `literals` nested in brackets by `dims`: "[[1, 2], [3, 4]]".
std::string NestedLiterals(const std::vector<std::string>& literals, DimsView dims);
// The identity of a reduction.
Number Identity(Monoid monoid, DType dtype);
// The op of a reduction; logical on bool.
BinaryOp MonoidOp(Monoid monoid, DType dtype);

// Types by class, for the dtypes that an op takes.
enum DTypeSet : unsigned {
  kBoolSet = 1,
  kSignedSet = 2,
  kUnsignedSet = 4,
  kWideFloatSet = 8,  // 16 bits or more
  kFloat8Set = 16,
  kComplexSet = 32,
  kFloatSet = kWideFloatSet | kFloat8Set,
  kIntSet = kSignedSet | kUnsignedSet,
  kBitsSet = kBoolSet | kIntSet,
  kFpSet = kFloatSet | kComplexSet,
  kNumberSet = kIntSet | kFpSet,
  kRealSet = kBitsSet | kFloatSet,
  kAllSet = kBoolSet | kNumberSet,
};
bool Contains(unsigned set, DType dtype);
std::string DescribeSet(unsigned set);  // "float or complex"

// The extent of a dimension after padding and dilation, and the number of windows in it.
int64_t WindowedSize(int64_t size, const Window& window);
// Empty if the windows may be laid over `dims`; else what is wrong.
std::string CheckWindows(DimsView dims, std::span<const Window> windows);

struct Op {
  std::string_view name;  // "stablehlo.sort"
  Values operands;
  std::vector<Type> results;
  Attributes attributes = {};
  std::vector<std::string> regions = {};
};

struct Region {
  bool ok = false;
  std::string text;
  std::vector<Type> results;
};

struct Function::Impl {
  explicit Impl(Function* function) : fn(function) { open.push_back({"", 0, false, "main"}); }

  struct Slot {
    Type type;
    int region = 0;
    int parameter = -1;
  };
  struct Parameter {
    int id;
    std::string attributes;
  };
  struct OpenRegion {
    std::string text;
    int id;
    bool isolated;  // may use its own values only
    std::string op;
  };

  Function* fn;
  Status status;
  std::deque<Slot> slots;  // a deque: Value::type() gives references that must last
  std::vector<Parameter> parameters;
  std::vector<OpenRegion> open;  // innermost last
  int num_regions = 1;
  int64_t num_ops = 0;
  bool emulate_64bit = false;  // Emulate64Bit

  template <class... Args>
  Value Error(std::string_view op, const Args&... args) {
    if (!status.ok()) return {};
    return fn->Fail(InvalidArgument(op, ": ", args...));
  }
  // The same for ops with several results: `n` invalid ones, so that callers may index them.
  template <class... Args>
  Values Errors(size_t n, std::string_view op, const Args&... args) {
    Error(op, args...);
    return Values(n);
  }

  // True if all operands are values that may be used here; else the error is recorded.
  bool Accepts(std::string_view op, std::span<const Value> operands);
  bool Accepts(std::string_view op, std::initializer_list<Value> operands) {
    return Accepts(op, std::span<const Value>(operands.begin(), operands.size()));
  }
  // True if the operand's dtype is in the set; else the error is recorded.
  bool Takes(std::string_view op, Value operand, unsigned set);
  // True if all are different dimensions of `rank`.
  bool AreDims(std::string_view op, std::string_view what, DimsView dims, int64_t rank);
  // True if `starts` are one integer scalar for each dimension, all of one dtype.
  bool AreStarts(std::string_view op, const Values& starts, int64_t rank);
  // True if there is an init for each operand, a scalar of its dtype, and all operands have one
  // shape.
  bool AreInits(std::string_view op, const Values& operands, const Values& inits);

  Value NewValue(Type type, int parameter = -1);
  void AppendName(std::string* out, Value value) const;
  void AppendNames(std::string* out, std::span<const Value> values) const;
  void AppendTypes(std::string* out, std::span<const Value> values) const;
  void Indent(std::string* out) const { out->append(2 * open.size() + 2, ' '); }
  std::string* text() { return &open.back().text; }

  Values Emit(const Op& op);
  Value EmitOne(const Op& op) { return Emit(op).front(); }
  // The short form `%1 = stablehlo.add %0, %0 : tensor<4xf32>`: all types are equal.
  Value EmitElementwise(std::string_view name, std::span<const Value> operands);

  // Runs a body in a region of its own and gives its text. Not ok: an error is recorded.
  Region Build(std::string_view op, const std::vector<Type>& arguments, const Body& body,
               bool isolated);
  // As Build, and the results must have these types.
  Region Build(std::string_view op, const std::vector<Type>& arguments, const Body& body,
               bool isolated, const std::vector<Type>& results);
};

}  // namespace tpu::hlo
