// Fractional max pooling: windows of one size at places that random numbers, given by the caller,
// spread over the input.
// What it is not: the drawing of those numbers, which torch.nn.functional does; nor the gradient,
// which is that of any pooling with indices (pool.cc).
#include <algorithm>
#include <cmath>

#include "ops/cast.h"
#include "ops/families.h"
#include "ops/lowering.h"
#include "ops/pool_window.h"

namespace tpu::ops {
namespace {

using hlo::Function;
using hlo::Value;
using hlo::Values;

struct Fraction {
  int64_t planes = 0;  // all batch dimensions joined
  Dims size, input, output;
};

Dims Spread(Lowering& lw, std::string_view name, size_t rank) {
  Dims d = lw.Ints(name);
  if (d.size() == 1) d.resize(rank, d[0]);
  return d;
}

Fraction ReadFraction(Lowering& lw, size_t rank) {
  const Dims dims = lw.TensorDims("self");
  Fraction f;
  f.size = Spread(lw, "kernel_size", rank);
  f.output = Spread(lw, "output_size", rank);
  f.input.assign(dims.end() - static_cast<ptrdiff_t>(rank), dims.end());
  f.planes = NumElements(Dims(dims.begin(), dims.end() - static_cast<ptrdiff_t>(rank)));
  return f;
}

// Where the windows start along dimension i: i32[planes, output]. `sample`: [planes].
Value Starts(const Fraction& f, size_t i, Value sample) {
  Function& fn = *sample.function();
  const int64_t n = f.output[i], room = f.input[i] - f.size[i];
  const hlo::Type type = {DType::kI32, {f.planes, n}};
  const Value last = fn.Constant(type, room);
  if (n == 1) return last;
  // PyTorch computes in the samples' own type.
  const DType t = sample.dtype();
  const double exact = static_cast<double>(room) / static_cast<double>(n - 1);
  const double alpha = t == DType::kF64 ? exact : static_cast<double>(static_cast<float>(exact));
  const Value at = fn.Iota(type, 1), wide = fn.BroadcastTo(Unsqueeze(sample, 1), type.dims);
  const Value place = fn.Convert((fn.Convert(at, t) + wide) * alpha, DType::kI32) -
                      fn.Convert(wide * alpha, DType::kI32);
  return fn.Select(Eq(at, static_cast<double>(n - 1)), last, place);
}

// The plane's row-major index of each window's elements: i32[planes, outputs, positions].
Value WindowIndices(const Fraction& f, Value samples) {
  Function& fn = *samples.function();
  const size_t rank = f.size.size();
  Dims dims = {f.planes};  // planes, output..., size...
  dims.insert(dims.end(), f.output.begin(), f.output.end());
  dims.insert(dims.end(), f.size.begin(), f.size.end());
  Value index;
  for (size_t i = 0; i < rank; ++i) {
    // Samples of planes go (T,) W, H: the last spatial dimension's first for two dimensions.
    const auto from = static_cast<int64_t>(rank == 2 ? 1 - i : i);
    const Value sample = fn.Reshape(
        fn.Slice(samples, Dims{0, from}, Dims{f.planes, from + 1}, Dims{1, 1}), Dims{f.planes});
    const Value start =
        fn.BroadcastInDim(Starts(f, i, sample), dims, Dims{0, static_cast<int64_t>(1 + i)});
    const Value at = start + fn.Iota({DType::kI32, dims}, static_cast<int64_t>(1 + rank + i));
    index = i == 0 ? at : index * static_cast<double>(f.input[i]) + at;
  }
  return fn.Reshape(index, Dims{f.planes, NumElements(f.output), NumElements(f.size)});
}

// As PyTorch's loop: greater wins, the last NaN stays, the first element is the start.
Values Better(Function& fn, const Values& v) {
  const Value a = v[0], ia = v[1], b = v[2], ib = v[3];
  const Value nan_a = IsNan(a), nan_b = IsNan(b), first = Lt(ia, ib);
  const Value numbers = ~nan_a & ~nan_b & (Gt(a, b) | (Eq(a, b) & first));
  const Value take = (nan_a & (~nan_b | ~first)) | numbers;
  return {fn.Select(take, a, b), fn.Select(take, ia, ib)};
}

template <size_t rank>
Values FractionalMaxPool(Lowering& lw) {
  Function& fn = lw.fn();
  const Value input = lw.Tensor("self");
  Value samples = lw.Tensor("random_samples");
  if (!input.valid() || !samples.valid()) return Values(2);
  const Fraction f = ReadFraction(lw, rank);
  const Dims dims = WithSpatial(input.dims(), rank, f.output);
  if (NumElements(dims) == 0) {
    return {fn.Constant({input.dtype(), dims}, int64_t{0}),
            fn.Constant({DType::kI64, dims}, int64_t{0})};
  }
  samples = fn.Reshape(Cast(samples, OpMathType(samples.dtype())),
                       Dims{f.planes, static_cast<int64_t>(rank)});
  const Value index = WindowIndices(f, samples);
  const Value flat = fn.Reshape(input, Dims{f.planes, NumElements(f.input)});
  const Value read = fn.Gather(flat, Unsqueeze(index, 3),
                               {.collapsed_slice_dims = {1},
                                .operand_batching_dims = {0},
                                .start_indices_batching_dims = {0},
                                .start_index_map = {1},
                                .index_vector_dim = 3},
                               Dims{1, 1});
  const Values out =
      fn.Reduce({read, index},
                {fn.Scalar(read.dtype(), -INFINITY), fn.Scalar(DType::kI32, int64_t{INT32_MAX})},
                Dims{2}, Better);
  return {fn.Reshape(out[0], dims), fn.Convert(fn.Reshape(out[1], dims), DType::kI64)};
}

constexpr OpDef Row(std::string_view name, LowerFn lower) {
  return {.name = name, .kind = Kind::kPool, .lower = lower};
}

constexpr OpDef kRows[] = {
    Row("aten::fractional_max_pool2d", FractionalMaxPool<2>),
    Row("aten::fractional_max_pool3d", FractionalMaxPool<3>),
};

}  // namespace

std::span<const OpDef> FractionalPoolOps() { return kRows; }

}  // namespace tpu::ops
