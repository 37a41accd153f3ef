// Sorting along a dimension, and reading one element a row.
#pragma once

#include "hlo/hlo.h"

namespace tpu::ops {

struct Sorted {
  hlo::Value values, places;  // places: int32 (int64 for very long dimensions), as they were
};
// Stable. NaN is greater than everything; -0.0 equals 0.0.
Sorted SortAlong(hlo::Value a, int64_t dim, bool descending);
// The element of each row along `dim` at `place` (its shape: a's with 1 at `dim`). In range.
hlo::Value TakeAlong(hlo::Value a, hlo::Value place, int64_t dim);

// For each value the place in its sorted row where it would go: before its equals or (`right`)
// behind them. `sorted` has rank 1, or `values`' leading dimensions. NaN in `sorted` is taken to be
// at its end (`nan_last`), or as PyTorch's search happens to take it. int32.
hlo::Value SearchSorted(hlo::Value sorted, hlo::Value values, bool right, bool nan_last);

}  // namespace tpu::ops
