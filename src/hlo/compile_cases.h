// The cases of hlo_compile_test: small programs with their inputs and, for most, the values that
// they must give. Each file of cases adds one family.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "hlo/hlo.h"

namespace tpu::hlo::testing {

struct Input {
  Type type;
  std::vector<double> values;  // complex: real and imaginary parts, interleaved
};

// `expected`: one list for each result; without any, the program must compile, no more.
struct Case {
  std::string name;
  std::vector<Input> inputs;
  std::function<Values(Function&, const Values&)> build;
  std::vector<std::vector<double>> expected;
  double tolerance = 1e-5;  // relative, and absolute below 1
  // Why a plugin of this kind is left out; empty: it isn't.
  std::string not_on_cpu = {};
  std::string not_on_tpu = {};
};
inline void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

inline Input F32(Dims dims, std::vector<double> values) {
  return {{DType::kF32, std::move(dims)}, std::move(values)};
}
inline Input I32(Dims dims, std::vector<double> values) {
  return {{DType::kI32, std::move(dims)}, std::move(values)};
}
inline Input Of(DType dtype, Dims dims, std::vector<double> values) {
  return {{dtype, std::move(dims)}, std::move(values)};
}
std::vector<double> Range(int n);  // 0, 1, ..., n-1

std::vector<Case> ElementwiseCases();
std::vector<Case> ConstantCases();
std::vector<Case> ShapeCases();
std::vector<Case> ReduceCases();
std::vector<Case> ContractionCases();
std::vector<Case> IndexingCases();
std::vector<Case> ControlFlowCases();
std::vector<Case> LinalgCases();

}  // namespace tpu::hlo::testing
