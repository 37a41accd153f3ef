// Families of rows that only the registry asks for, beside those in op_def.h.
#pragma once

#include "ops/op_def.h"

namespace tpu::ops {

std::span<const OpDef> BitsOps();
std::span<const OpDef> EigenOps();
std::span<const OpDef> FractionalPoolOps();
std::span<const OpDef> HistogramOps();
std::span<const OpDef> LdlOps();
std::span<const OpDef> MatrixExpOps();
std::span<const OpDef> PolynomialOps();
std::span<const OpDef> QrOps();
std::span<const OpDef> RandomGradOps();
std::span<const OpDef> SegmentOps();
std::span<const OpDef> SolveOps();

}  // namespace tpu::ops
