// Reads of pooling windows, from both sides. Everything is slices and pads of the whole tensor, one
// for each position in a window, so that XLA makes one elementwise kernel of it.
#include "ops/pool_window.h"

#include <algorithm>

#include "ops/cast.h"

namespace tpu::ops {

using hlo::Value;

int64_t PoolWindow::Covering() const {
  int64_t n = 1;
  for (size_t i = 0; i < rank; ++i) n *= Covering(i);
  return n;
}

namespace {

// A list argument of one element stands for all dimensions, an absent one for `otherwise`.
Dims PerDimension(Lowering& lw, std::string_view name, size_t rank, const Dims& otherwise) {
  Dims list = lw.Has(name) ? lw.Ints(name) : Dims{};
  if (list.empty()) return otherwise;
  if (list.size() == 1) list.resize(rank, list[0]);
  return list;
}

int64_t PooledSize(int64_t input, int64_t reach, int64_t padding, int64_t stride, bool ceil_mode) {
  const int64_t room = input + 2 * padding - reach - 1 + (ceil_mode ? stride - 1 : 0);
  int64_t out = room / stride - (room % stride < 0) + 1;
  // The last window must start inside the input or the padding before it.
  if (ceil_mode && (out - 1) * stride >= input + padding) --out;
  return out;
}

}  // namespace

bool ReadPoolWindow(Lowering& lw, const Dims& input, size_t rank, PoolWindow* w) {
  w->rank = rank;
  w->size = PerDimension(lw, "kernel_size", rank, {});
  w->stride = PerDimension(lw, "stride", rank, w->size);
  w->padding = PerDimension(lw, "padding", rank, Dims(rank, 0));
  w->dilation = PerDimension(lw, "dilation", rank, Dims(rank, 1));
  bool fits = input.size() >= rank;
  for (const Dims* list : {&w->size, &w->stride, &w->padding, &w->dilation}) {
    fits = fits && list->size() == rank;
  }
  for (size_t i = 0; fits && i < rank; ++i) {
    fits = w->size[i] > 0 && w->stride[i] > 0 && w->dilation[i] > 0 && w->padding[i] >= 0;
  }
  if (!fits) {
    lw.Fail(InvalidArgument("pooling windows of ", ToString(w->size), " with stride ",
                            ToString(w->stride), " on a tensor of sizes ", ToString(input)));
    return false;
  }
  const bool ceil_mode = lw.BoolOr("ceil_mode", false);
  w->input.assign(input.end() - static_cast<ptrdiff_t>(rank), input.end());
  w->output.clear();
  for (size_t i = 0; i < rank; ++i) {
    w->output.push_back(std::max<int64_t>(PooledSize(w->input[i], w->dilation[i] * (w->size[i] - 1),
                                                     w->padding[i], w->stride[i], ceil_mode),
                                          0));
  }
  return true;
}

Dims WithSpatial(const Dims& dims, size_t rank, DimsView spatial) {
  Dims out(dims.begin(), dims.end() - static_cast<ptrdiff_t>(rank));
  out.insert(out.end(), spatial.begin(), spatial.end());
  return out;
}

Value SpatialIota(hlo::Function& fn, DimsView spatial, size_t i) {
  return fn.Iota({DType::kI32, Dims(spatial.begin(), spatial.end())}, static_cast<int64_t>(i));
}

Value PlaneIndex(hlo::Function& fn, DimsView spatial) {
  Value index = SpatialIota(fn, spatial, 0);
  for (size_t i = 1; i < spatial.size(); ++i) {
    index = index * static_cast<double>(spatial[i]) + SpatialIota(fn, spatial, i);
  }
  return index;
}

void ForEachIndex(DimsView sizes, const std::function<void(const Dims&)>& body) {
  Dims index(sizes.size(), 0);
  for (int64_t n = NumElements(sizes); n > 0; --n) {
    body(index);
    for (size_t i = sizes.size(); i-- > 0;) {
      if (++index[i] < sizes[i]) break;
      index[i] = 0;
    }
  }
}

Value PadToWindows(const PoolWindow& w, Value input, Value padding) {
  const auto rank = static_cast<size_t>(input.rank());
  Dims low(rank, 0), high(rank, 0);
  for (size_t i = 0; i < w.rank; ++i) {
    const size_t d = rank - w.rank + i;
    const int64_t needed = (w.output[i] - 1) * w.stride[i] + (w.size[i] - 1) * w.dilation[i] + 1;
    low[d] = w.padding[i];
    high[d] = needed - w.input[i] - w.padding[i];
  }
  return input.function()->Pad(input, padding, low, high, Dims(rank, 0));
}

Value WindowElement(const PoolWindow& w, Value padded, DimsView offset) {
  const auto rank = static_cast<size_t>(padded.rank());
  Dims starts(rank, 0), limits = padded.dims(), steps(rank, 1);
  for (size_t i = 0; i < w.rank; ++i) {
    const size_t d = rank - w.rank + i;
    starts[d] = offset[i] * w.dilation[i];
    limits[d] = starts[d] + (w.output[i] - 1) * w.stride[i] + 1;
    steps[d] = w.stride[i];
  }
  return padded.function()->Slice(padded, starts, limits, steps);
}

Value SpreadWindows(const PoolWindow& w, Value output, Value padding) {
  hlo::Function& fn = *output.function();
  // Each output element stands for the `stride` input positions that start with its window.
  const auto batch = static_cast<size_t>(output.rank()) - w.rank;
  Dims split(output.dims().begin(), output.dims().begin() + static_cast<ptrdiff_t>(batch)), mapping;
  for (size_t i = 0; i < batch; ++i) mapping.push_back(static_cast<int64_t>(i));
  Dims joined = split;
  for (size_t i = 0; i < w.rank; ++i) {
    mapping.push_back(static_cast<int64_t>(split.size()));
    split.push_back(w.output[i]);
    if (w.stride[i] > 1) split.push_back(w.stride[i]);
    joined.push_back(w.output[i] * w.stride[i]);
  }
  const Value repeated = fn.Reshape(fn.BroadcastInDim(output, split, mapping), joined);
  // Room for the windows before, and the input's size after; position p of the input is at
  // p + padding + stride * (Covering - 1).
  Dims low(joined.size(), 0), high(joined.size(), 0);
  for (size_t i = 0; i < w.rank; ++i) {
    const size_t d = batch + i;
    low[d] = w.stride[i] * (w.Covering(i) - 1);
    high[d] = w.input[i] + w.padding[i] - joined[d];
  }
  return fn.Pad(repeated, padding, low, high, Dims(joined.size(), 0));
}

Value CoveringWindow(const PoolWindow& w, Value spread, DimsView back) {
  const auto rank = static_cast<size_t>(spread.rank());
  Dims starts(rank, 0), limits = spread.dims();
  for (size_t i = 0; i < w.rank; ++i) {
    const size_t d = rank - w.rank + i;
    starts[d] = w.padding[i] + w.stride[i] * (w.Covering(i) - 1 - back[i]);
    limits[d] = starts[d] + w.input[i];
  }
  return spread.function()->Slice(spread, starts, limits, Dims(rank, 1));
}

PoolWindow BinWindow(DimsView input, DimsView output) {
  PoolWindow w;
  w.rank = input.size();
  w.padding = Dims(w.rank, 0);
  w.dilation = Dims(w.rank, 1);
  w.input.assign(input.begin(), input.end());
  w.output.assign(output.begin(), output.end());
  for (size_t i = 0; i < w.rank; ++i) w.size.push_back(input[i] / output[i]);
  w.stride = w.size;
  return w;
}

Value InBin(hlo::Function& fn, int64_t n, int64_t s) {
  const hlo::Type type = {DType::kI32, {n, s}};
  const Value bin = fn.Iota(type, 0), at = fn.Iota(type, 1), count = Like(bin, n);
  const double size = static_cast<double>(s);
  const Value start = bin * size / count;
  const Value end = ((bin + 1.0) * size + static_cast<double>(n - 1)) / count;
  return Ge(at, start) & Lt(at, end);
}

Value ScatterPlanes(hlo::Function& fn, Value values, Value index, size_t rank, DimsView spatial,
                    bool add) {
  const int64_t plane = NumElements(spatial);
  int64_t planes = 1;
  for (int64_t d = 0; d < values.rank() - static_cast<int64_t>(rank); ++d) planes *= values.dim(d);
  const int64_t each = planes == 0 ? 0 : values.numel() / planes;
  const Dims result = WithSpatial(values.dims(), rank, spatial);
  const Value zeros = fn.Constant({values.dtype(), {planes, plane}}, int64_t{0});
  if (zeros.numel() == 0 || values.numel() == 0) return fn.Reshape(zeros, result);
  const Value at = fn.Reshape(Cast(index, DType::kI32), Dims{planes, each, 1});
  const hlo::ScatterDims dims = {.inserted_window_dims = {1},
                                 .input_batching_dims = {0},
                                 .scatter_indices_batching_dims = {0},
                                 .scatter_dims_to_operand_dims = {1},
                                 .index_vector_dim = 2};
  const hlo::Body body = [add](hlo::Function& f, const hlo::Values& v) {
    return hlo::Values{add ? f.Binary(hlo::BinaryOp::kAdd, v[0], v[1]) : v[1]};
  };
  const Value out =
      fn.Scatter({zeros}, at, {fn.Reshape(values, Dims{planes, each})}, dims, body).front();
  return fn.Reshape(out, result);
}

}  // namespace tpu::ops
