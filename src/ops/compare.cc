// Comparisons: the operands are promoted, the result is bool.
#include "ops/lowering.h"
#include "ops/rows.h"

namespace tpu::ops {
namespace {

using hlo::CompareOp;

constexpr OpDef kRows[] = {
    Compare("aten::eq.Scalar", CompareOp::kEq), Compare("aten::eq.Tensor", CompareOp::kEq),
    Compare("aten::ge.Scalar", CompareOp::kGe), Compare("aten::ge.Tensor", CompareOp::kGe),
    Compare("aten::gt.Scalar", CompareOp::kGt), Compare("aten::gt.Tensor", CompareOp::kGt),
    Compare("aten::le.Scalar", CompareOp::kLe), Compare("aten::le.Tensor", CompareOp::kLe),
    Compare("aten::lt.Scalar", CompareOp::kLt), Compare("aten::lt.Tensor", CompareOp::kLt),
    Compare("aten::ne.Scalar", CompareOp::kNe), Compare("aten::ne.Tensor", CompareOp::kNe),
};

}  // namespace

std::span<const OpDef> CompareOps() { return kRows; }

}  // namespace tpu::ops
