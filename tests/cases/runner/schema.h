// Operator schemas as PyTorch writes them ("aten::add.Tensor(Tensor self, ...) -> Tensor"), and
// what a call of one is to the core: an exec::Overload.
// What it is not: a dispatcher. Rows are found by name; which form a schema is follows from it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "exec/call.h"

namespace tpu::cases {

// How an argument of a case is written, and which exec::Arg it becomes.
enum class ArgType : uint8_t {
  kTensor,
  kTensors,
  kNumber,
  kInt,
  kInts,
  kFloats,
  kType,
  kString,
  kIgnored,  // device, layout, memory format, generator: not the core's business
};

struct SchemaArg {
  std::string name;
  ArgType type = ArgType::kIgnored;
  std::string otherwise;  // the default as text; empty: required
  bool has_default = false;
  int list_size = 0;  // of "int[2]": one default stands for all
  bool written = false;
  bool keyword_only = false;
};

struct Schema {
  std::string name;  // "aten::add.Tensor"
  std::vector<SchemaArg> args;
  std::vector<bool> returns_alias;  // for each return: whether it is an argument
};
Result<Schema> ParseSchema(std::string_view text);

struct BoundSchema {
  Schema schema;
  const exec::Overload* overload = nullptr;
  int ArgIndex(std::string_view name) const;  // -1 if there is none
};
// `row`: the functional row's name where it isn't the schema's own, as for "aten::add_.Tensor".
Result<BoundSchema> BindSchema(std::string_view text, std::string_view row);

}  // namespace tpu::cases
