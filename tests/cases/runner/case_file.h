// Case files (tests/cases/README.md describes the format): calls of operators with the values that
// PyTorch's CPU gives. Read into exec::Calls that lack only their storages.
// What it is not: a run. run_case.h runs them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "runner/elements.h"
#include "runner/schema.h"
#include "shape/dims.h"

namespace tpu::cases {

struct CaseStorage {
  std::string name;
  DType dtype = DType::kInvalid;
  Dims dims;  // as uploaded
  std::vector<char> bytes;
  std::optional<std::vector<char>> after;  // contents after the call; none: as before
};

struct CaseResult {
  bool any = false;               // values are not checked
  DType dtype = DType::kInvalid;  // kInvalid: undefined
  Dims sizes;
  std::optional<Dims> strides;  // none: contiguous, and not checked
  std::vector<char> bytes;      // in logical order
};

struct Case {
  std::string name;
  int line = 0;
  exec::Call call;
  std::vector<int> storage_of;  // for each of call.tensors; -1: absent
  std::vector<CaseStorage> storages;
  std::vector<CaseResult> results;
  Tolerance tolerance;
  std::string error_code, error_text;  // of the failure that is expected; empty: none
};

Result<std::vector<Case>> ParseCases(std::string_view text);
Result<std::vector<Case>> ReadCaseFile(const std::string& path);

}  // namespace tpu::cases
