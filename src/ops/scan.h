// Running reductions along a dimension.
#pragma once

#include <functional>

#include "hlo/hlo.h"

namespace tpu::ops {

// values[i] = combine(values[i-1], element[i]) along `dim`, starting from `inits` (scalars that are
// neutral). `combine` is associative: long dimensions are cut in blocks. The operands have equal
// shapes; `combine` gets whole slices, n running values and then n elements, and gives the n new
// running values.
hlo::Values Scan(const hlo::Values& operands, const hlo::Values& inits, int64_t dim,
                 const hlo::Body& combine);

}  // namespace tpu::ops
