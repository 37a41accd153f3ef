// Lists of sizes and strides: the few helpers that everybody needs.
#include "shape/dims.h"

#include <algorithm>
#include <numeric>

namespace tpu {

Dims RowMajorStrides(DimsView dims) {
  Dims strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(dims[i], 1);
  }
  return strides;
}

Dims Iota(int64_t n) {
  Dims out(static_cast<size_t>(std::max<int64_t>(n, 0)));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

std::string ToString(DimsView dims) {
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(dims[i]);
  }
  return out + "]";
}

bool BroadcastShapes(DimsView a, DimsView b, Dims* out) {
  const size_t rank = std::max(a.size(), b.size());
  Dims result(rank);
  for (size_t i = 0; i < rank; ++i) {  // from the last dimension
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return false;
    result[rank - 1 - i] = x == 1 ? y : x;  // 1 against 0 is 0
  }
  *out = std::move(result);
  return true;
}

int64_t WrapDim(int64_t dim, int64_t rank) {
  const int64_t bound = std::max<int64_t>(rank, 1);
  if (dim < -bound || dim >= bound) return -1;
  return dim < 0 ? dim + bound : dim;
}

}  // namespace tpu
