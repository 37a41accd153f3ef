// Registers the op table with PyTorch's dispatcher: each row's own overload, and the in-place and
// out= overloads that its schema has twins of.
#include "register_rows.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <deque>
#include <map>

#include "data_dependent.h"
#include "fill.h"
#include "foreach.h"
#include "kernel.h"
#include "linalg_checks.h"
#include "ops/op_def.h"
#include "out_forms.h"

namespace tpu::torch_layer {
namespace {

using c10::Argument;
using c10::FunctionSchema;
using Read = OpKernel::Read;

bool Writes(const Argument& a) { return a.alias_info() != nullptr && a.alias_info()->isWrite(); }

bool NamedIn(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    if (list.substr(0, comma) == name) return true;
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return false;
}

Read ReadOf(const Argument& arg) {
  c10::TypePtr type = arg.real_type();
  if (type->kind() == c10::TypeKind::OptionalType) {
    type = type->castRaw<c10::OptionalType>()->getElementType();
  }
  switch (type->kind()) {
    case c10::TypeKind::TensorType: return Read::kTensor;
    case c10::TypeKind::NumberType:
    case c10::TypeKind::FloatType: return Read::kNumber;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
    case c10::TypeKind::BoolType: return Read::kInt;
    case c10::TypeKind::StringType: return Read::kString;
    case c10::TypeKind::ScalarTypeType: return Read::kType;
    case c10::TypeKind::GeneratorType: return Read::kGenerator;
    case c10::TypeKind::ListType: {
      c10::TypePtr e = type->castRaw<c10::ListType>()->getElementType();
      if (e->kind() == c10::TypeKind::OptionalType) {
        e = e->castRaw<c10::OptionalType>()->getElementType();
      }
      switch (e->kind()) {
        case c10::TypeKind::TensorType: return Read::kTensors;
        case c10::TypeKind::BoolType: return Read::kBools;
        case c10::TypeKind::FloatType: return Read::kFloats;
        default: return Read::kInts;
      }
    }
    default: return Read::kSkip;  // device, layout, memory format: the meta kernel's business
  }
}

bool IsScalar(const Argument& arg) {
  c10::TypePtr type = arg.real_type();
  if (type->kind() == c10::TypeKind::OptionalType) {
    type = type->castRaw<c10::OptionalType>()->getElementType();
  }
  return type->kind() == c10::TypeKind::NumberType;
}

bool SameType(const Argument& a, const Argument& b) {
  return *a.real_type() == *b.real_type() && a.name() == b.name();
}

enum class Form { kOwn, kInPlace, kOut };

// Whether `schema` is the in-place or out= twin of `own`.
bool IsTwin(const FunctionSchema& own, const FunctionSchema& schema, Form form) {
  const auto &a = own.arguments(), &b = schema.arguments();
  if (form == Form::kInPlace ? b.size() != a.size() : b.size() <= a.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!SameType(a[i], b[i])) return false;
    if (form == Form::kOut && Writes(b[i])) return false;
  }
  if (form == Form::kInPlace) {
    return !b.empty() && Writes(b[0]) && schema.returns().size() == own.returns().size();
  }
  for (size_t i = a.size(); i < b.size(); ++i) {
    if (!Writes(b[i])) return false;
  }
  return b.size() - a.size() == own.returns().size();
}

struct Bound {
  exec::Overload overload;
  OpKernel::Plan plan;
};

Bound Bind(const ops::OpDef& row, const FunctionSchema& own, const FunctionSchema& schema,
           Form form) {
  Bound out;
  out.overload.row = &row;
  out.overload.name =
      schema.name() + (schema.overload_name().empty() ? "" : "." + schema.overload_name());
  const auto& args = schema.arguments();
  std::vector<int> marked, mutated;
  for (size_t i = 0; i < args.size(); ++i) {
    out.overload.arg_names.push_back(args[i].name());
    out.overload.arg_static.push_back(NamedIn(row.statics, args[i].name()));
    out.plan.args.push_back(NamedIn(row.dynamics, args[i].name()) ? Read::kNumber
                                                                  : ReadOf(args[i]));
    const auto& otherwise = args[i].default_value();
    out.plan.defaults.push_back(otherwise && otherwise->isScalar() && !otherwise->isComplexDouble()
                                    ? std::optional(otherwise->toScalar().toDouble())
                                    : std::nullopt);
    if (IsScalar(args[i])) out.plan.scalars.push_back(static_cast<int>(i));
    if (Writes(args[i])) marked.push_back(static_cast<int>(i));
    if (args[i].name() == "indices" && out.plan.args.back() == Read::kTensors) {
      out.plan.indices = static_cast<int>(i);
    }
    if (NamedIn(row.mutates, args[i].name())) mutated.push_back(static_cast<int>(i));
  }
  auto& targets = out.overload.targets;
  if (form == Form::kOwn) {
    for (const Argument& r : own.returns()) {
      if (r.alias_info() == nullptr) targets.push_back(-1);
    }
    targets.insert(targets.end(), mutated.begin(), mutated.end());
  }
  targets.insert(targets.end(), marked.begin(), marked.end());
  // A row may be an out= overload itself (arange.start_out): its trailing keyword arguments.
  const bool is_out =
      form == Form::kOut || (!marked.empty() && args[size_t(marked[0])].kwarg_only());
  out.overload.reads_targets = !is_out;
  out.plan.is_out = is_out;
  for (const Argument& r : schema.returns()) {
    int from = -1;
    if (r.alias_info() != nullptr) {
      for (size_t i = 0; i < args.size(); ++i) {
        if (args[i].alias_info() != nullptr &&
            args[i].alias_info()->beforeSets() == r.alias_info()->beforeSets()) {
          from = static_cast<int>(i);
        }
      }
    }
    out.plan.returns.push_back(from);
    out.plan.returns_list |= from < 0 && r.type()->kind() == c10::TypeKind::ListType;
  }
  out.plan.uploads_host_tensors =
      row.kind == ops::Kind::kIndexing || row.kind == ops::Kind::kScatter;
  if (!marked.empty()) out.plan.overlap = OverlapOf(row);
  return out;
}

torch::Library& Lib() {
  static auto* const lib = new torch::Library(torch::Library::IMPL, "aten",
                                              c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  return *lib;
}

std::vector<RegisteredOp>& Registered() {
  static auto* const ops = new std::vector<RegisteredOp>;
  return *ops;
}

torch::CppFunction Wrapped(const ops::OpDef& row, const FunctionSchema& schema, Form form,
                           const c10::OperatorHandle& own, std::unique_ptr<OpKernel> kernel) {
  if (IsFill(schema)) return WithUpload(std::move(kernel));
  if (HasErrorCheck(schema)) return WithErrorCheck(std::move(kernel));
  if (form == Form::kOut && !row.random &&
      (row.meta == ops::Meta::kInfer || !HasMetaKernel(schema))) {
    return OutForm(std::move(kernel), own);
  }
  return torch::CppFunction::makeFromBoxedFunctor(std::move(kernel));
}

void Register(const ops::OpDef& row, const c10::OperatorHandle& own, const FunctionSchema& schema,
              Form form) {
  Bound bound = Bind(row, own.schema(), schema, form);
  const std::string name = bound.overload.name;
  const exec::Overload* overload = exec::Overload::Register(std::move(bound.overload));
  auto kernel = std::make_unique<OpKernel>(overload, std::move(bound.plan));
  Lib().impl(name.c_str(), Wrapped(row, schema, form, own, std::move(kernel)));
  Registered().push_back({name, &row});
}

}  // namespace

const std::vector<RegisteredOp>& RegisteredOps() { return Registered(); }

void RegisterRows() {
  TORCH_CHECK(ops::DuplicateRows().empty(), "the op table has two rows for ",
              ops::DuplicateRows()[0]);
  auto& dispatcher = c10::Dispatcher::singleton();
  std::map<std::string, std::vector<c10::OperatorName>> by_name;
  for (const c10::OperatorName& n : dispatcher.getAllOpNames()) by_name[n.name].push_back(n);

  for (const ops::OpDef* row : ops::AllOps()) {
    const std::string full(row->name);
    const size_t dot = full.find('.');
    const std::string base = full.substr(0, dot);
    const std::string overload = dot == std::string::npos ? "" : full.substr(dot + 1);
    const auto own = dispatcher.findSchema({base, overload});
    TORCH_CHECK(own, "the op table has a row for ", full, ", which this torch doesn't have");
    // Registered below, or called by torch/ itself (copy.cc).
    if (row->status == ops::StatusKind::kHost || row->kind == ops::Kind::kCopy) continue;
    Register(*row, *own, own->schema(), Form::kOwn);
    bool mutable_row = !row->mutates.empty();
    for (const Argument& a : own->schema().arguments()) mutable_row |= Writes(a);
    if (mutable_row) continue;
    const auto twins = [&](const std::string& name, Form form) {
      const auto it = by_name.find(name);
      if (it == by_name.end()) return;
      for (const c10::OperatorName& n : it->second) {
        if (ops::FindOp(n.name + (n.overload_name.empty() ? "" : "." + n.overload_name))) continue;
        const auto twin = dispatcher.findSchema(n);
        if (twin && IsTwin(own->schema(), twin->schema(), form)) {
          Register(*row, *own, twin->schema(), form);
        }
      }
    };
    twins(base + "_", Form::kInPlace);
    twins(base, Form::kOut);
  }
  RegisterHostRows();
  for (const auto& [out, own] : RemainingOutForms()) {
    const c10::OperatorName& n = out.operator_name();
    Lib().impl((n.name + "." + n.overload_name).c_str(), OutForm(nullptr, own));
  }
  RegisterForeach(&Lib());
}

}  // namespace tpu::torch_layer
