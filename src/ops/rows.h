// Short constructors for regular rows, so that a regular op is one line.
#pragma once

#include "ops/op_def.h"

namespace tpu::ops {

constexpr OpDef Unary(std::string_view name, hlo::UnaryOp op, In in = In::kPromote,
                      Out out = Out::kCompute) {
  return {.name = name, .kind = Kind::kUnary, .op = static_cast<int16_t>(op), .in = in, .out = out};
}
constexpr OpDef Binary(std::string_view name, hlo::BinaryOp op, In in = In::kPromote) {
  return {.name = name, .kind = Kind::kBinary, .op = static_cast<int16_t>(op), .in = in};
}
constexpr OpDef Compare(std::string_view name, hlo::CompareOp op) {
  return {.name = name, .kind = Kind::kCompare, .op = static_cast<int16_t>(op), .out = Out::kBool};
}
constexpr OpDef Pointwise(std::string_view name, LowerFn lower, In in = In::kPromote,
                          Out out = Out::kCompute, std::string_view statics = "") {
  return {.name = name,
          .kind = Kind::kPointwise,
          .lower = lower,
          .in = in,
          .out = out,
          .statics = statics};
}

// PyTorch's refusal of numbers that the type of `self` can't hold.
Status CheckFits(std::span<const double> numbers, DType self);
// A row that puts its numbers into `self` as they are.
constexpr OpDef Fitting(OpDef row) {
  row.check = &CheckFits;
  return row;
}

}  // namespace tpu::ops
