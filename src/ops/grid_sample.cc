// grid_sampler_2d and _3d and their gradients: interpolation at positions that are data. Along each
// dimension a position reads a few neighbours ("taps") with weights; the result sums over all
// combinations of taps.
// What it is not: interpolation along regular grids (upsample.cc).
#include <algorithm>

#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/pool_window.h"
#include "ops/quotient.h"
#include "ops/rows.h"

namespace tpu::ops {
namespace {

using hlo::UnaryOp;
using hlo::Value;
using hlo::Values;

enum Mode : int64_t { kBilinear, kNearest, kBicubic };
enum Padding : int64_t { kZeros, kBorder, kReflection };

// All values are [N, Q], where Q counts the positions of a sample.
struct Tap {
  Value index;          // i32; inside the dimension
  Value inside;         // i1: false where it lay outside, and counts as zero
  Value weight, slope;  // and its derivative by the position
};

struct Placed {
  Value at;     // in elements
  Value slope;  // derivative by the number given
};

Value Constant(Value like, double v) { return Like(like, v); }

Placed Clip(Placed p, int64_t size) {
  const Value low = Constant(p.at, 0), high = Constant(p.at, static_cast<double>(size - 1));
  hlo::Function& fn = *p.at.function();
  // PyTorch's gradient is zero on the border itself.
  const Value inner = Gt(p.at, low) & Lt(p.at, high);
  // NaN counts as outside, on the low side.
  return {fn.Select(Gt(p.at, low), fn.Select(Ge(p.at, high), high, p.at), low),
          fn.Select(inner, p.slope, low)};
}

Placed Reflect(Placed p, int64_t size, bool align_corners) {
  hlo::Function& fn = *p.at.function();
  const double twice_low = align_corners ? 0 : -1;
  const double twice_high = static_cast<double>(align_corners ? 2 * (size - 1) : 2 * size - 1);
  if (twice_low == twice_high) return {Constant(p.at, 0), Constant(p.at, 0)};
  const double low = twice_low / 2, span = (twice_high - twice_low) / 2;
  const Value from = p.at - low, negative = Lt(from, 0.0), distance = Abs(from);
  const Value flips = Floor(ExactQuotient(distance, Constant(distance, span)));
  const Value extra = fn.Binary(hlo::BinaryOp::kRemainder, distance, Constant(distance, span));
  const Value half = flips * 0.5;
  const Value odd = Ne(Floor(half), half);
  const Value at = fn.Select(odd, span - extra + low, extra + low);
  return {at, fn.Select(Ne(odd, negative), -p.slope, p.slope)};
}

Placed Place(Placed p, int64_t size, int64_t padding, bool align_corners) {
  if (padding == kBorder) return Clip(p, size);
  if (padding == kReflection) return Clip(Reflect(p, size, align_corners), size);
  return p;
}

Tap TapAt(Value at, int64_t size, Value weight, Value slope) {
  hlo::Function& fn = *at.function();
  const double last = static_cast<double>(size - 1);
  const Value inside = Ge(at, 0.0) & Le(at, last);
  const Value safe = fn.Select(inside, at, Constant(at, 0));
  return {Cast(safe, DType::kI32), inside, weight, slope};
}

struct Sampling {
  int64_t mode, padding;
  bool align_corners;
};

// The taps of one dimension for numbers in [-1, 1].
std::vector<Tap> TapsOf(Value given, int64_t size, const Sampling& s) {
  hlo::Function& fn = *given.function();
  const double n = static_cast<double>(size);
  const double factor = s.align_corners ? (n - 1) / 2 : n / 2;
  Placed p = {s.align_corners ? (given + 1.0) / 2.0 * (n - 1) : ((given + 1.0) * n - 1.0) / 2.0,
              Constant(given, factor)};
  if (s.mode != kBicubic) p = Place(p, size, s.padding, s.align_corners);
  const Value zero = Constant(given, 0), one = Constant(given, 1);
  if (s.mode == kNearest) {
    return {TapAt(fn.Unary(UnaryOp::kRoundNearestEven, p.at), size, one, zero)};
  }
  const Value low = Floor(p.at), t = p.at - low;
  if (s.mode == kBilinear) {
    return {TapAt(low, size, 1.0 - t, -p.slope), TapAt(low + 1.0, size, t, p.slope)};
  }
  constexpr double a = -0.75;  // Keys' cubic convolution
  const auto near = [&](Value x) { return ((x * (a + 2) - (a + 3)) * x * x) + 1.0; };
  const auto far = [&](Value x) { return ((x * a - 5 * a) * x + 8 * a) * x - 4 * a; };
  const auto near_slope = [&](Value x) { return (x * (3 * (a + 2)) - 2 * (a + 3)) * x; };
  const auto far_slope = [&](Value x) { return (x * (3 * a) - 10 * a) * x + 8 * a; };
  const Value weights[4] = {far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)};
  const Value slopes[4] = {far_slope(t + 1.0), near_slope(t), -near_slope(1.0 - t),
                           -far_slope(2.0 - t)};
  std::vector<Tap> taps;
  for (int k = 0; k < 4; ++k) {
    const Placed tap =
        Place({low + static_cast<double>(k - 1), zero}, size, s.padding, s.align_corners);
    taps.push_back(TapAt(tap.at, size, weights[k], slopes[k] * p.slope));
  }
  return taps;
}

struct Problem {
  Sampling sampling;
  DType dtype, math;
  Value input;  // [N, C, plane], in the type of computation
  int64_t batch, channels, positions;
  Dims spatial, result;                // of the input; of the whole output
  std::vector<std::vector<Tap>> taps;  // of each spatial dimension
};

template <size_t rank>
bool Read(Lowering& lw, Problem* p) {
  hlo::Function& fn = lw.fn();
  p->sampling = {lw.Int("interpolation_mode"), lw.Int("padding_mode"), lw.Bool("align_corners")};
  p->dtype = lw.TensorType("input");
  p->math = OpMathType(p->dtype);
  const Value input = lw.TensorAs("input", p->math), grid = lw.TensorAs("grid", p->math);
  if (!input.valid() || !grid.valid()) return false;
  p->batch = input.dim(0);
  p->channels = input.dim(1);
  p->spatial.assign(input.dims().begin() + 2, input.dims().end());
  p->result = {p->batch, p->channels};
  p->result.insert(p->result.end(), grid.dims().begin() + 1, grid.dims().end() - 1);
  p->positions = NumElements({p->result.begin() + 2, p->result.end()});
  p->input = fn.Reshape(input, Dims{p->batch, p->channels, NumElements(p->spatial)});
  const Value flat = fn.Reshape(grid, Dims{p->batch, p->positions, static_cast<int64_t>(rank)});
  for (size_t i = 0; i < rank; ++i) {
    // The grid names the last dimension first.
    const auto k = static_cast<int64_t>(rank - 1 - i);
    const Value given =
        fn.Slice(flat, Dims{0, 0, k}, Dims{p->batch, p->positions, k + 1}, Dims{1, 1, 1});
    p->taps.push_back(
        TapsOf(fn.Reshape(given, Dims{p->batch, p->positions}), p->spatial[i], p->sampling));
  }
  return true;
}

// One combination of taps: where it reads and whether that is inside.
struct Corner {
  Value index, inside;
};

Corner CornerOf(const Problem& p, const Dims& choice) {
  Corner c;
  for (size_t i = 0; i < choice.size(); ++i) {
    const Tap& t = p.taps[i][static_cast<size_t>(choice[i])];
    c.index = i == 0 ? t.index : c.index * static_cast<double>(p.spatial[i]) + t.index;
    c.inside = i == 0 ? t.inside : c.inside & t.inside;
  }
  return c;
}

// The product of the weights; along `slope_of`, of its slope.
Value WeightOf(const Problem& p, const Dims& choice, size_t slope_of) {
  Value w;
  for (size_t i = 0; i < choice.size(); ++i) {
    const Tap& t = p.taps[i][static_cast<size_t>(choice[i])];
    const Value factor = i == slope_of ? t.slope : t.weight;
    w = i == 0 ? factor : w * factor;
  }
  return w;
}

Dims Choices(const Problem& p) {
  Dims n;
  for (const auto& taps : p.taps) n.push_back(static_cast<int64_t>(taps.size()));
  return n;
}

// input[n, :, index[n, q]] at each corner, zero where outside: [N, C, Q] each. One gather for all:
// TPU compilers take seconds over each.
Values ReadAll(hlo::Function& fn, const Problem& p) {
  std::vector<Corner> corners;
  ForEachIndex(Choices(p), [&](const Dims& choice) { corners.push_back(CornerOf(p, choice)); });
  const hlo::GatherDims dims = {.offset_dims = {1},
                                .collapsed_slice_dims = {2},
                                .operand_batching_dims = {0},
                                .start_indices_batching_dims = {0},
                                .start_index_map = {2},
                                .index_vector_dim = 2};
  Values places;
  for (const Corner& c : corners) places.push_back(c.index);
  const Value all =
      fn.Gather(p.input, Unsqueeze(fn.Concatenate(places, 1), 2), dims, Dims{1, p.channels, 1});
  Values out;
  for (size_t i = 0; i < corners.size(); ++i) {
    const int64_t from = static_cast<int64_t>(i) * p.positions;
    const Value v = fn.Slice(all, Dims{0, 0, from}, Dims{p.batch, p.channels, from + p.positions},
                             Dims{1, 1, 1});
    out.push_back(fn.Select(fn.BroadcastInDim(corners[i].inside, v.dims(), Dims{0, 2}), v,
                            fn.Constant(v.type(), 0.0)));
  }
  return out;
}

template <size_t rank>
Values GridSample(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  Problem p;
  if (!Read<rank>(lw, &p)) return {Value()};
  if (NumElements(p.result) == 0) return {fn.Constant({p.dtype, p.result}, 0.0)};
  const Values read = ReadAll(fn, p);
  size_t corner = 0;
  Value sum;
  ForEachIndex(Choices(p), [&](const Dims& choice) {
    const Value part = read[corner++] * Unsqueeze(WeightOf(p, choice, rank), 1);
    sum = sum.valid() ? sum + part : part;
  });
  return {Cast(fn.Reshape(sum, p.result), p.dtype)};
}

// Adds grad times the weight at every place read.
Value InputGradient(hlo::Function& fn, const Problem& p, Value grad) {
  Values parts, places;
  const Value outside = fn.Constant({DType::kI32, {p.batch, p.positions}}, NumElements(p.spatial));
  ForEachIndex(Choices(p), [&](const Dims& choice) {
    const Corner c = CornerOf(p, choice);
    parts.push_back(grad * Unsqueeze(WeightOf(p, choice, p.taps.size()), 1));
    places.push_back(fn.Select(c.inside, c.index, outside));  // dropped by the scatter
  });
  const hlo::ScatterDims dims = {.update_window_dims = {1},
                                 .inserted_window_dims = {2},
                                 .input_batching_dims = {0},
                                 .scatter_indices_batching_dims = {0},
                                 .scatter_dims_to_operand_dims = {2},
                                 .index_vector_dim = 2};
  const auto add = [&](hlo::Function& f, Value to, Value at, Value part) {
    return f.Scatter({to}, Unsqueeze(at, 2), {part}, dims, [](hlo::Function& g, const Values& v) {
      return Values{g.Binary(hlo::BinaryOp::kAdd, v[0], v[1])};
    })[0];
  };
  const Value none = fn.Constant(p.input.type(), 0.0);
  const Value all_places = fn.Concatenate(places, 1), all_parts = fn.Concatenate(parts, 2);
  if (!fn.emulates_64bit()) return add(fn, none, all_places, all_parts);
  // A TPU sorts what it scatters, and compiles a long sort for as long as many short ones.
  const Values out = fn.While(
      {fn.Scalar(DType::kI32, int64_t{0}), none},
      [&](hlo::Function&, const Values& v) {
        return Values{Lt(v[0], static_cast<double>(places.size()))};
      },
      [&](hlo::Function& f, const Values& v) {
        const Value zero = f.Scalar(DType::kI32, int64_t{0});
        const Value from = v[0] * static_cast<double>(p.positions);
        const Value at = f.DynamicSlice(all_places, {zero, from}, Dims{p.batch, p.positions});
        const Value part =
            f.DynamicSlice(all_parts, {zero, zero, from}, Dims{p.batch, p.channels, p.positions});
        return Values{v[0] + 1.0, add(f, v[1], at, part)};
      });
  return out[1];
}

// [N, Q, rank], the last dimension of the input first.
Value PositionGradient(hlo::Function& fn, const Problem& p, Value grad) {
  const size_t rank = p.taps.size();
  Values sums(rank);
  const Values read = ReadAll(fn, p);
  size_t corner = 0;
  ForEachIndex(Choices(p), [&](const Dims& choice) {
    const Value seen = fn.Reduce(read[corner++] * grad, hlo::Monoid::kAdd, Dims{1});
    for (size_t i = 0; i < rank; ++i) {
      const Value part = seen * WeightOf(p, choice, i);
      Value& sum = sums[rank - 1 - i];
      sum = sum.valid() ? sum + part : part;
    }
  });
  for (Value& v : sums) v = Unsqueeze(v, 2);
  return fn.Concatenate(sums, 2);
}

template <size_t rank>
Values GridSampleBackward(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  Problem p;
  if (!Read<rank>(lw, &p)) return Values(2);
  const Dims mask = lw.Ints("output_mask");
  const Dims input = lw.TensorDims("input"), grid = lw.TensorDims("grid");
  Values out(2);
  const bool empty = NumElements(p.result) == 0 || NumElements(input) == 0;
  const Value grad =
      fn.Reshape(lw.TensorAs("grad_output", p.math), Dims{p.batch, p.channels, p.positions});
  if (mask[0]) {
    out[0] = empty ? fn.Constant({p.dtype, input}, 0.0)
                   : Cast(fn.Reshape(InputGradient(fn, p, grad), input), p.dtype);
  }
  // PyTorch returns this one whatever the mask says.
  out[1] = empty || p.sampling.mode == kNearest
               ? fn.Constant({p.dtype, grid}, 0.0)
               : Cast(fn.Reshape(PositionGradient(fn, p, grad), grid), p.dtype);
  return out;
}

constexpr OpDef Row(std::string_view name, LowerFn lower) {
  return {.name = name, .kind = Kind::kPool, .lower = lower};
}

constexpr OpDef kRows[] = {
    Row("aten::grid_sampler_2d", GridSample<2>),
    Row("aten::grid_sampler_2d_backward", GridSampleBackward<2>),
    Row("aten::grid_sampler_3d", GridSample<3>),
    Row("aten::grid_sampler_3d_backward", GridSampleBackward<3>),
};

}  // namespace

std::span<const OpDef> GridSampleOps() { return kRows; }

}  // namespace tpu::ops
