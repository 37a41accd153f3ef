// Dims: sizes, strides, permutations. Small helpers over lists of int64.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tpu {

using Dims = std::vector<int64_t>;
using DimsView = std::span<const int64_t>;

inline int64_t NumElements(DimsView dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}
Dims RowMajorStrides(DimsView dims);  // as torch.empty: a size of 0 counts as 1
Dims Iota(int64_t n);                 // 0, 1, ..., n-1
std::string ToString(DimsView dims);  // "[2, 3]"
// NumPy broadcasting of two shapes; false where they don't match.
bool BroadcastShapes(DimsView a, DimsView b, Dims* out);
// Wraps a negative dimension. Rank 0 accepts -1 and 0, as PyTorch does. -1 where out of range.
int64_t WrapDim(int64_t dim, int64_t rank);

}  // namespace tpu
