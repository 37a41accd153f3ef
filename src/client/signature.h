// The parameter types of a StableHLO module's @main, read from its text.
// What it is not: a parser of StableHLO; XLA judges the rest.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "hlo/hlo.h"

namespace tpu {

// kInvalidArgument where there is no @main, or a parameter is not a tensor of static shape.
Result<std::vector<hlo::Type>> ParameterTypes(std::string_view stablehlo);

}  // namespace tpu
