// Interpolation along regular grids: nearest, linear, cubic, and their antialiased forms, in one to
// three dimensions, with their gradients. Each is, one dimension after another, a weighted sum of a
// few elements ("taps") whose positions and weights are known when the program is made.
// What it is not: grid_sampler, whose positions are data.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <utility>

#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/rows.h"

namespace tpu::ops {
namespace {

using hlo::Value;
using hlo::Values;

enum class Filter : uint8_t {
  kNearest,
  kNearestExact,
  kLinear,
  kCubic,
  kLinearAa,
  kCubicAa,
  kLanczosAa
};

// out[o] = sum over taps t of weight[t][o] * in[index[t][o]].
struct Taps {
  std::vector<Dims> index;
  std::vector<std::vector<double>> weight;
  size_t size() const { return index.size(); }
};

// Positions are computed in the type PyTorch uses: float unless the data are float64.
template <class T>
struct Grid {
  int64_t in = 0, out = 0;
  T scale = 0;
  T Source(int64_t o, bool align_corners, bool cubic) const {
    if (align_corners) return scale * static_cast<T>(o);
    const T at = scale * (static_cast<T>(o) + T(0.5)) - T(0.5);
    return at < 0 && !cubic ? T(0) : at;
  }
};

template <class T>
Grid<T> GridOf(int64_t in, int64_t out, bool align_corners, double factor) {
  Grid<T> g{in, out, 0};
  if (align_corners) {
    g.scale = out > 1 ? static_cast<T>(in - 1) / static_cast<T>(out - 1) : T(0);
  } else {
    g.scale = factor > 0 ? static_cast<T>(1.0 / factor) : static_cast<T>(in) / static_cast<T>(out);
  }
  return g;
}

template <class T>
Taps NearestTaps(const Grid<T>& g, bool exact) {
  Taps taps{{Dims(static_cast<size_t>(g.out))},
            {std::vector<double>(static_cast<size_t>(g.out), 1.0)}};
  for (int64_t o = 0; o < g.out; ++o) {
    const T at = (static_cast<T>(o) + (exact ? T(0.5) : T(0))) * g.scale;
    taps.index[0][static_cast<size_t>(o)] =
        std::min(static_cast<int64_t>(std::floor(at)), g.in - 1);
  }
  return taps;
}

Taps Empty(size_t taps, int64_t out) {
  const auto n = static_cast<size_t>(out);
  return {std::vector<Dims>(taps, Dims(n, 0)),
          std::vector<std::vector<double>>(taps, std::vector<double>(n, 0.0))};
}

template <class T>
Taps LinearTaps(const Grid<T>& g, bool align_corners) {
  Taps taps = Empty(2, g.out);
  for (int64_t o = 0; o < g.out; ++o) {
    const T at = g.in == g.out ? static_cast<T>(o) : g.Source(o, align_corners, false);
    const int64_t low = std::min(static_cast<int64_t>(std::floor(at)), g.in - 1);
    const T part = std::clamp(at - static_cast<T>(low), T(0), T(1));
    const auto i = static_cast<size_t>(o);
    taps.index[0][i] = low;
    taps.index[1][i] = std::min(low + 1, g.in - 1);
    taps.weight[0][i] = static_cast<double>(T(1) - part);
    taps.weight[1][i] = static_cast<double>(part);
  }
  return taps;
}

// Keys' cubic convolution, a = -0.75 as in PyTorch's plain bicubic.
template <class T>
Taps CubicTaps(const Grid<T>& g, bool align_corners) {
  constexpr T a = T(-0.75);
  const auto near = [](T x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [](T x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  Taps taps = Empty(4, g.out);
  for (int64_t o = 0; o < g.out; ++o) {
    const T at = g.Source(o, align_corners, true), floor = std::floor(at), t = at - floor;
    const T weights[4] = {far(t + 1), near(t), near(1 - t), far(2 - t)};
    for (int64_t k = 0; k < 4; ++k) {
      const auto n = static_cast<size_t>(k), i = static_cast<size_t>(o);
      taps.index[n][i] = std::clamp<int64_t>(static_cast<int64_t>(floor) - 1 + k, 0, g.in - 1);
      taps.weight[n][i] = static_cast<double>(weights[k]);
    }
  }
  return taps;
}

// As PIL does it: the filter stretched by the scale where that shrinks. PyTorch computes these
// weights in the type of the data.
template <class T>
T FilterAt(Filter filter, T x) {
  x = std::abs(x);
  const auto sinc = [](T v) {
    return v == 0 ? T(1) : std::sin(v * std::numbers::pi_v<T>) / (v * std::numbers::pi_v<T>);
  };
  switch (filter) {
    case Filter::kLinearAa: return x < 1 ? 1 - x : T(0);
    case Filter::kCubicAa: {
      constexpr T a = T(-0.5);
      if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
      return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : T(0);
    }
    default: return x < 3 ? sinc(x) * sinc(x / 3) : T(0);
  }
}

template <class T>
Taps AntialiasedTaps(const Grid<T>& g, Filter filter) {
  const T reach = filter == Filter::kLinearAa ? T(1) : filter == Filter::kCubicAa ? T(2) : T(3);
  const T support = g.scale >= 1 ? reach * g.scale : reach;
  const T inverse = g.scale >= 1 ? 1 / g.scale : T(1);
  Taps taps = Empty(static_cast<size_t>(std::ceil(support)) * 2 + 1, g.out);
  for (int64_t o = 0; o < g.out; ++o) {
    const T center = g.scale * (static_cast<T>(o) + T(0.5));
    const int64_t low = std::max<int64_t>(static_cast<int64_t>(center - support + T(0.5)), 0);
    const int64_t count = std::clamp<int64_t>(
        std::min<int64_t>(static_cast<int64_t>(center + support + T(0.5)), g.in) - low, 0,
        static_cast<int64_t>(taps.size()));
    T total = 0;
    std::vector<T> weights;
    for (int64_t k = 0; k < count; ++k) {
      weights.push_back(FilterAt<T>(filter, (static_cast<T>(k + low) - center + T(0.5)) * inverse));
      total += weights.back();
    }
    for (size_t k = 0; k < taps.size(); ++k) {
      const auto i = static_cast<size_t>(o);
      const bool used = static_cast<int64_t>(k) < count;
      taps.index[k][i] = std::min(low + (used ? static_cast<int64_t>(k) : 0), g.in - 1);
      taps.weight[k][i] = used && total != 0 ? static_cast<double>(weights[k] / total) : 0.0;
    }
  }
  return taps;
}

template <class T>
Taps TapsAs(Filter filter, int64_t in, int64_t out, bool align_corners, double factor) {
  const Grid<T> g = GridOf<T>(in, out, align_corners, factor);
  switch (filter) {
    case Filter::kNearest: return NearestTaps(g, false);
    case Filter::kNearestExact: return NearestTaps(g, true);
    case Filter::kLinear: return LinearTaps(g, align_corners);
    case Filter::kCubic: return CubicTaps(g, align_corners);
    default: return AntialiasedTaps(g, filter);
  }
}

// The gradient's taps: for each input, the outputs it had a part in.
Taps Transposed(const Taps& taps, int64_t in) {
  std::vector<std::vector<std::pair<int64_t, double>>> parts(static_cast<size_t>(in));
  for (size_t o = 0; o < taps.index[0].size(); ++o) {
    for (size_t t = 0; t < taps.size(); ++t) {
      if (taps.weight[t][o] == 0.0) continue;
      auto& list = parts[static_cast<size_t>(taps.index[t][o])];
      const auto at = static_cast<int64_t>(o);
      if (!list.empty() && list.back().first == at) {
        list.back().second += taps.weight[t][o];
      } else {
        list.emplace_back(at, taps.weight[t][o]);
      }
    }
  }
  size_t most = 1;
  for (const auto& list : parts) most = std::max(most, list.size());
  Taps out = Empty(most, in);
  for (size_t i = 0; i < parts.size(); ++i) {
    for (size_t t = 0; t < most; ++t) {
      const bool used = t < parts[i].size();
      out.index[t][i] = used ? parts[i][t].first : parts[i].empty() ? 0 : parts[i][0].first;
      out.weight[t][i] = used ? parts[i][t].second : 0.0;
    }
  }
  return out;
}

Value LineOf(hlo::Function& fn, const std::vector<double>& values, DType t) {
  Dims bits;
  if (IsIntegral(t)) {
    for (double v : values) bits.push_back(static_cast<int64_t>(v));
    return fn.ConstantI64(bits, {t, {static_cast<int64_t>(bits.size())}});
  }
  for (double v : values) {
    bits.push_back(t == DType::kF64 ? std::bit_cast<int64_t>(v)
                                    : int64_t{std::bit_cast<uint32_t>(static_cast<float>(v))});
  }
  const DType words = t == DType::kF64 ? DType::kI64 : DType::kU32;
  return fn.BitcastConvert(fn.ConstantI64(bits, {words, {static_cast<int64_t>(bits.size())}}), t);
}

// a[..., index[o], ...] along `dim`.
Value Take(hlo::Function& fn, Value a, int64_t dim, const Dims& index) {
  const auto n = static_cast<int64_t>(index.size());
  if (n == a.dim(dim) && index == Iota(n)) return a;
  const int64_t times = n / a.dim(dim);
  bool repeats = times * a.dim(dim) == n;
  for (int64_t o = 0; repeats && o < n; ++o) repeats = index[static_cast<size_t>(o)] == o / times;
  if (repeats) {
    Dims split = a.dims(), joined = a.dims(), mapping;
    split.insert(split.begin() + dim + 1, times);
    joined[static_cast<size_t>(dim)] = n;
    for (int64_t d = 0; d < a.rank(); ++d) mapping.push_back(d + (d > dim));
    return fn.Reshape(fn.BroadcastInDim(a, split, mapping), joined);
  }
  hlo::GatherDims dims = {
      .collapsed_slice_dims = {dim}, .start_index_map = {dim}, .index_vector_dim = 1};
  Dims sizes = a.dims();
  sizes[static_cast<size_t>(dim)] = 1;
  for (int64_t d = 0; d < a.rank(); ++d) {
    if (d != dim) dims.offset_dims.push_back(d);
  }
  return fn.Gather(a, fn.ConstantI64(index, {DType::kI32, {n, 1}}), dims, sizes);
}

// Sums of more taps than this are a product with the matrix of weights.
constexpr size_t kMaxTaps = 24;

Value Combine(hlo::Function& fn, Value a, int64_t dim, const Taps& taps) {
  const auto n = static_cast<int64_t>(taps.index[0].size());
  if (taps.size() > kMaxTaps) {
    std::vector<double> matrix(static_cast<size_t>(n * a.dim(dim)), 0.0);
    for (size_t t = 0; t < taps.size(); ++t) {
      for (int64_t o = 0; o < n; ++o) {
        const auto i = static_cast<size_t>(o);
        matrix[static_cast<size_t>(o * a.dim(dim) + taps.index[t][i])] += taps.weight[t][i];
      }
    }
    const Value weights = fn.Reshape(LineOf(fn, matrix, a.dtype()), Dims{n, a.dim(dim)});
    const Value out = fn.DotGeneral(a, weights, {}, {}, Dims{dim}, Dims{1});
    Dims order = Iota(a.rank());
    order.pop_back();
    order.insert(order.begin() + dim, a.rank() - 1);
    return fn.Transpose(out, order);
  }
  Value sum;
  for (size_t t = 0; t < taps.size(); ++t) {
    const std::vector<double>& w = taps.weight[t];
    Value part = Take(fn, a, dim, taps.index[t]);
    if (!std::all_of(w.begin(), w.end(), [](double v) { return v == 1.0; })) {
      part = part * fn.BroadcastInDim(LineOf(fn, w, a.dtype()), part.dims(), Dims{dim});
    }
    sum = sum.valid() ? sum + part : part;
  }
  return sum;
}

// Images of bytes, as PyTorch's CPU and PIL have them: weights of 16 bits with the binary point as
// far right as the largest allows, and a result rounded to bytes after each dimension.
Value CombineBytes(hlo::Function& fn, Value a, int64_t dim, Taps taps) {
  double most = 0;
  for (size_t o = 0; o < taps.index[0].size(); ++o) {
    for (size_t t = taps.size() - 1; t > 0; --t) {  // an edge that stands for what is beyond it
      if (taps.index[t][o] != taps.index[t - 1][o]) continue;
      taps.weight[t - 1][o] += std::exchange(taps.weight[t][o], 0.0);
    }
    for (const auto& line : taps.weight) most = std::max(most, line[o]);
  }
  int precision = 0;
  while (precision < 22 && std::floor(0.5 + most * std::exp2(precision + 1)) < 32768) ++precision;
  for (auto& line : taps.weight) {
    for (double& w : line) w = std::trunc(w * std::exp2(precision) + (w < 0 ? -0.5 : 0.5));
  }
  const Value sum = Combine(fn, a, dim, taps) + fn.Scalar(DType::kI32, 1 << (precision - 1));
  const Value bytes = fn.Binary(hlo::BinaryOp::kShiftRightArithmetic, sum,
                                fn.Constant({DType::kI32, sum.dims()}, int64_t{precision}));
  return fn.Clamp(fn.Scalar(DType::kI32, int64_t{0}), bytes, fn.Scalar(DType::kI32, int64_t{255}));
}

double FactorOf(Lowering& lw, size_t i, size_t rank) {
  constexpr std::string_view kNames[] = {"scales_d", "scales_h", "scales_w"};
  const std::string_view name = rank == 1 ? "scales" : kNames[3 - rank + i];
  return lw.Has(name) ? lw.StaticNumber(name) : 0.0;
}

template <Filter filter, size_t rank, bool backward>
Values Upsample(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const std::string_view name = backward ? "grad_output" : "self";
  const DType t = lw.TensorType(name);
  constexpr bool nearest = filter == Filter::kNearest || filter == Filter::kNearestExact;
  // PyTorch has fixed-point kernels for bytes in two dimensions.
  const bool bytes = t == DType::kU8 && rank == 2 && !nearest && !backward;
  // Copies keep their type; sums are made in float32 at least.
  const DType math = nearest && !backward ? t
                     : bytes              ? DType::kI32
                     : IsIntegral(t)      ? DType::kF32
                                          : OpMathType(t);
  Value v = lw.TensorAs(name, math);
  if (!v.valid()) return {Value()};
  const Dims output = lw.Ints("output_size");
  const Dims input = backward ? lw.Ints("input_size") : v.dims();
  if (v.dims().size() != rank + 2 || input.size() != rank + 2 || output.size() != rank) {
    return {lw.Fail(InvalidArgument("interpolation of a tensor of sizes ", ToString(v.dims()),
                                    " to ", ToString(output)))};
  }
  Dims result = input;
  if (!backward) std::copy(output.begin(), output.end(), result.begin() + 2);
  if (NumElements(result) == 0) return {fn.Constant({t, result}, int64_t{0})};
  if (v.numel() == 0) return {fn.Constant({t, result}, int64_t{0})};
  const bool align_corners = lw.BoolOr("align_corners", false);
  for (size_t i = rank; i-- > 0;) {  // as PyTorch: the last dimension first
    const auto dim = static_cast<int64_t>(i) + 2;
    const int64_t in = input[i + 2], out = output[i];
    const double factor = FactorOf(lw, i, rank);
    if (bytes) {
      if (in == out) continue;  // whatever the factor says
      v = CombineBytes(fn, v, dim, TapsAs<double>(filter, in, out, align_corners, factor));
      continue;
    }
    Taps taps = math == DType::kF64 && !nearest
                    ? TapsAs<double>(filter, in, out, align_corners, factor)
                    : TapsAs<float>(filter, in, out, align_corners, factor);
    if (backward) taps = Transposed(taps, in);
    v = Combine(fn, v, dim, taps);
  }
  if (IsIntegral(t) && !nearest && !bytes) {
    v = fn.Unary(hlo::UnaryOp::kRoundNearestEven, v);
    v = fn.Clamp(fn.Scalar(math, 0.0), v, fn.Scalar(math, 255.0));
  }
  return {Cast(v, t)};
}

constexpr OpDef Row(std::string_view name, LowerFn lower) {
  return {.name = name,
          .kind = Kind::kPool,
          .lower = lower,
          .statics = "scales,scales_d,scales_h,scales_w"};
}

constexpr OpDef kRows[] = {
    Row("aten::_upsample_bicubic2d_aa", Upsample<Filter::kCubicAa, 2, false>),
    Row("aten::_upsample_bicubic2d_aa_backward", Upsample<Filter::kCubicAa, 2, true>),
    Row("aten::_upsample_bilinear2d_aa", Upsample<Filter::kLinearAa, 2, false>),
    Row("aten::_upsample_bilinear2d_aa_backward", Upsample<Filter::kLinearAa, 2, true>),
    Row("aten::_upsample_lanczos2d_aa", Upsample<Filter::kLanczosAa, 2, false>),
    Row("aten::_upsample_lanczos2d_aa_backward", Upsample<Filter::kLanczosAa, 2, true>),
    Row("aten::_upsample_nearest_exact1d", Upsample<Filter::kNearestExact, 1, false>),
    Row("aten::_upsample_nearest_exact1d_backward", Upsample<Filter::kNearestExact, 1, true>),
    Row("aten::_upsample_nearest_exact2d", Upsample<Filter::kNearestExact, 2, false>),
    Row("aten::_upsample_nearest_exact2d_backward", Upsample<Filter::kNearestExact, 2, true>),
    Row("aten::_upsample_nearest_exact3d", Upsample<Filter::kNearestExact, 3, false>),
    Row("aten::_upsample_nearest_exact3d_backward", Upsample<Filter::kNearestExact, 3, true>),
    Row("aten::upsample_bicubic2d", Upsample<Filter::kCubic, 2, false>),
    Row("aten::upsample_bicubic2d_backward", Upsample<Filter::kCubic, 2, true>),
    Row("aten::upsample_bilinear2d", Upsample<Filter::kLinear, 2, false>),
    Row("aten::upsample_bilinear2d_backward", Upsample<Filter::kLinear, 2, true>),
    Row("aten::upsample_linear1d", Upsample<Filter::kLinear, 1, false>),
    Row("aten::upsample_linear1d_backward", Upsample<Filter::kLinear, 1, true>),
    Row("aten::upsample_nearest1d", Upsample<Filter::kNearest, 1, false>),
    Row("aten::upsample_nearest1d_backward", Upsample<Filter::kNearest, 1, true>),
    Row("aten::upsample_nearest2d", Upsample<Filter::kNearest, 2, false>),
    Row("aten::upsample_nearest2d_backward", Upsample<Filter::kNearest, 2, true>),
    Row("aten::upsample_nearest3d", Upsample<Filter::kNearest, 3, false>),
    Row("aten::upsample_nearest3d_backward", Upsample<Filter::kNearest, 3, true>),
    Row("aten::upsample_trilinear3d", Upsample<Filter::kLinear, 3, false>),
    Row("aten::upsample_trilinear3d_backward", Upsample<Filter::kLinear, 3, true>),
};

}  // namespace

std::span<const OpDef> UpsampleOps() { return kRows; }

}  // namespace tpu::ops
