// Copies with a conversion: what `copy_` between two device tensors and `to(dtype)` come down to.
// What it is not: transfers between host and device (torch/), nor clone and contiguous, which are
// copies into a tensor that the front end makes.
#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/rows.h"

namespace tpu::ops {
namespace {

using hlo::Value;
using hlo::Values;

// Numbers are converted on the host, tensors with Cast. Only the type of `self` matters: its old
// contents are not read.
Values Copy(Lowering& lw) { return {lw.TensorAs("src", lw.TensorType("self"))}; }

// A pointwise row, so that copies of one coalesced shape share a program.
constexpr OpDef kRows[] = {
    {.name = "aten::copy",
     .kind = Kind::kCopy,
     .lower = Copy,
     .in = In::kSelf,
     .out = Out::kAsLowered},
};

}  // namespace

std::span<const OpDef> CopyOps() { return kRows; }

}  // namespace tpu::ops
