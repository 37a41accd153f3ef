// segment_reduce: neighbouring elements along an axis are reduced by segments of given lengths.
// What it is not: scatter reductions by index (scatter.cc).
#include <cmath>

#include "ops/cast.h"
#include "ops/families.h"
#include "ops/lowering.h"
#include "ops/scan.h"
#include "ops/sort.h"

namespace tpu::ops {
namespace {

using hlo::Function;
using hlo::Monoid;
using hlo::Value;
using hlo::Values;

// The data as [outer, count, inner], with the segment of each element of the axis.
struct Segments {
  int64_t outer = 1, count = 0, inner = 1, segments = 0;
  size_t axis = 0;
  Dims result;    // sizes of the reduced tensor
  Value of;       // i32[outer, count]; `segments` where an element belongs to none
  Value lengths;  // i32[outer, segments]
};

bool ReadSegments(Lowering& lw, const Dims& data, Segments* s) {
  Function& fn = lw.fn();
  const bool by_length = lw.Has("lengths");
  if (!by_length && !lw.Has("offsets")) {
    lw.Fail(InvalidArgument("segment_reduce(): Either lengths or offsets must be defined."));
    return false;
  }
  const Value given = lw.TensorAs(by_length ? "lengths" : "offsets", DType::kI32);
  if (!given.valid() || given.rank() == 0) return false;
  const auto axis = static_cast<size_t>(given.rank() - 1);
  const Dims lead(given.dims().begin(), given.dims().end() - 1);
  if (axis >= data.size() || !std::equal(lead.begin(), lead.end(), data.begin())) {
    lw.Fail(InvalidArgument("segment_reduce(): lengths or offsets don't fit the data"));
    return false;
  }
  s->axis = axis;
  s->outer = NumElements(lead);
  s->count = data[axis];
  s->inner = NumElements(Dims(data.begin() + static_cast<ptrdiff_t>(axis) + 1, data.end()));
  s->segments = given.dim(given.rank() - 1) - (by_length ? 0 : 1);
  s->result = data;
  s->result[axis] = s->segments;
  const Value rows = fn.Reshape(given, Dims{s->outer, given.dim(given.rank() - 1)});
  Value ends = rows;
  if (by_length) {
    s->lengths = rows;
    if (s->segments > 0) {
      ends = Scan({rows}, {fn.Scalar(DType::kI32, int64_t{0})}, 1,
                  [](Function&, const Values& v) { return Values{v[0] + v[1]}; })[0];
    }
  } else {
    ends = fn.Slice(rows, Dims{0, 1}, Dims{s->outer, s->segments + 1}, Dims{1, 1});
    s->lengths = ends - fn.Slice(rows, Dims{0, 0}, Dims{s->outer, s->segments}, Dims{1, 1});
  }
  const Value at = fn.Iota({DType::kI32, {s->outer, s->count}}, 1);
  if (s->segments == 0 || s->outer * s->count == 0) {
    s->of = Like(at, s->segments);
    return true;
  }
  s->of = SearchSorted(ends, at, true, false);
  if (!by_length) {
    const Value first = fn.Slice(rows, Dims{0, 0}, Dims{s->outer, 1}, Dims{1, 1});
    s->of = fn.Select(Lt(at, fn.BroadcastTo(first, at.dims())), Like(s->of, s->segments), s->of);
  }
  return true;
}

// As they were given: 32 bits would hide what is wrong with large ones.
void CheckLengths(Lowering& lw, const Segments& s) {
  if (s.segments == 0) return;
  Function& fn = lw.fn();
  if (!lw.Has("lengths")) {
    const Value offsets =
        fn.Reshape(lw.TensorAs("offsets", DType::kI64), Dims{s.outer, s.segments + 1});
    lw.CheckIndex(offsets, s.count + 1, "offsets", static_cast<int64_t>(s.axis), /*wrap=*/false);
    lw.CheckValue(Lt(s.lengths, 0.0), s.lengths, "offsets, each less the one before",
                  "Expected segment_length >= 0 to be true, but got false.");
    return;
  }
  if (lw.Bool("unsafe")) return;
  const Value lengths = fn.Reshape(lw.TensorAs("lengths", DType::kI64), Dims{s.outer, s.segments});
  lw.CheckValue(Lt(lengths, 0.0), lengths, "lengths", "lengths contains negative value!");
  const Value sums = fn.Reduce(lengths, Monoid::kAdd, Dims{1});
  lw.CheckValue(Ne(sums, Like(sums, s.count)), sums, "lengths, summed",
                "Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
                "!unsafe.");
}

Value Combined(Monoid monoid, Value a, Value b) {
  switch (monoid) {
    case Monoid::kMax: return Max(a, b);
    case Monoid::kMin: return Min(a, b);
    case Monoid::kMul: return a * b;
    default: return a + b;
  }
}

// `values` [outer, count, inner] reduced by segment: [outer, segments, inner].
Value BySegment(const Segments& s, Value values, Value start, Monoid monoid) {
  Function& fn = *values.function();
  const Dims dims = {s.outer, s.segments, s.inner};
  const Value base = fn.BroadcastTo(start, dims);
  if (values.numel() == 0 || base.numel() == 0) return base;
  const hlo::ScatterDims at = {.update_window_dims = {2},
                               .inserted_window_dims = {1},
                               .input_batching_dims = {0},
                               .scatter_indices_batching_dims = {0},
                               .scatter_dims_to_operand_dims = {1},
                               .index_vector_dim = 2};
  return fn.Scatter({base}, Unsqueeze(s.of, 2), {values}, at, [monoid](Function&, const Values& v) {
    return Values{Combined(monoid, v[0], v[1])};
  })[0];
}

// What each element's segment has: [outer, segments, inner] to [outer, count, inner].
Value Spread(const Segments& s, Value by_segment) {
  Function& fn = *by_segment.function();
  const Value of = Min(s.of, Like(s.of, s.segments - 1));
  return fn.Gather(by_segment, Unsqueeze(of, 2),
                   {.offset_dims = {2},
                    .collapsed_slice_dims = {1},
                    .operand_batching_dims = {0},
                    .start_indices_batching_dims = {0},
                    .start_index_map = {1},
                    .index_vector_dim = 2},
                   Dims{1, 1, s.inner});
}

// Lengths beside [outer, segments, inner], as `dtype`.
Value Wide(const Segments& s, Value lengths, DType dtype) {
  return lengths.function()->BroadcastTo(Unsqueeze(Cast(lengths, dtype), 2),
                                         Dims{s.outer, s.segments, s.inner});
}

Monoid MonoidOf(std::string_view reduce) {
  if (reduce == "max") return Monoid::kMax;
  if (reduce == "min") return Monoid::kMin;
  if (reduce == "prod") return Monoid::kMul;
  return Monoid::kAdd;
}

double StartOf(Monoid monoid) {
  switch (monoid) {
    case Monoid::kMax: return -INFINITY;
    case Monoid::kMin: return INFINITY;
    case Monoid::kMul: return 1;
    default: return 0;
  }
}

Values SegmentReduce(Lowering& lw) {
  Function& fn = lw.fn();
  const DType own = lw.TensorType("data"), t = OpMathType(own);
  const Value data = lw.TensorAs("data", t);
  Segments s;
  if (!data.valid() || !ReadSegments(lw, data.dims(), &s)) return {Value()};
  CheckLengths(lw, s);
  const std::string_view reduce = lw.String("reduce");
  const Monoid monoid = MonoidOf(reduce);
  const bool has_initial = lw.Has("initial");
  const Value start = has_initial ? lw.Number("initial", t) : fn.Scalar(t, StartOf(monoid));
  Value out = BySegment(s, fn.Reshape(data, Dims{s.outer, s.count, s.inner}), start, monoid);
  if (reduce == "mean") {
    const Value length = Wide(s, s.lengths, t);
    const Value mean = out / fn.Select(Gt(length, 0.0), length, Like(length, 1.0));
    out = has_initial ? mean : fn.Select(Gt(length, 0.0), mean, Like(mean, NAN));
  }
  return {Cast(fn.Reshape(out, s.result), own)};
}

// The product of all other elements of the segment, where one is 0 or NaN and can't be divided by.
Value OthersProduct(Lowering& lw, const Segments& s, Value data, Value product) {
  Function& fn = lw.fn();
  const DType t = data.dtype();
  const Value zero = Eq(data, 0.0), nan = IsNan(data), one = Like(data, 1.0);
  const Value none = fn.Scalar(t, 0.0);
  const Value start = lw.Has("initial") ? lw.Number("initial", t) : fn.Scalar(t, 1.0);
  const Value plain =
      Spread(s, BySegment(s, fn.Select(zero | nan, one, data), start, Monoid::kMul));
  const Value zeros = Spread(s, BySegment(s, Cast(zero, t), none, Monoid::kAdd)) - Cast(zero, t);
  const Value nans = Spread(s, BySegment(s, Cast(nan, t), none, Monoid::kAdd)) - Cast(nan, t);
  Value others = fn.Select(Gt(zeros, 0.0), Like(data, 0.0), plain);
  others = fn.Select(Gt(nans, 0.0), Like(data, NAN), others);
  return fn.Select(zero | nan, others, product / fn.Select(zero | nan, one, data));
}

Values SegmentReduceBackward(Lowering& lw) {
  Function& fn = lw.fn();
  const DType own = lw.TensorType("data"), t = OpMathType(own);
  const Dims dims = lw.TensorDims("data");
  Value data = lw.TensorAs("data", t), grad = lw.TensorAs("grad", t),
        output = lw.TensorAs("output", t);
  Segments s;
  if (!data.valid() || !grad.valid() || !output.valid() || !ReadSegments(lw, dims, &s)) {
    return {Value()};
  }
  if (data.numel() == 0 || s.segments == 0) return {fn.Constant({own, dims}, int64_t{0})};
  const Dims by_segment = {s.outer, s.segments, s.inner}, flat = {s.outer, s.count, s.inner};
  data = fn.Reshape(data, flat);
  const Value spread = Spread(s, fn.Reshape(grad, by_segment));
  const Value out = Spread(s, fn.Reshape(output, by_segment));
  const std::string_view reduce = lw.String("reduce");
  Value result = spread;
  if (reduce == "mean") {
    result = spread / Spread(s, Wide(s, s.lengths, t));
  } else if (reduce == "prod") {
    result = spread * OthersProduct(lw, s, data, out);
  } else if (reduce == "max" || reduce == "min") {
    const Value hit = Eq(data, out) | IsNan(data);
    const Value hits = Spread(s, BySegment(s, Cast(hit, t), fn.Scalar(t, 0.0), Monoid::kAdd));
    // PyTorch shares positive gradients among equals, and only those.
    const Value shared = fn.Select(Gt(spread, 0.0), spread / Max(hits, Like(hits, 1.0)), spread);
    result = fn.Select(hit, shared, Like(spread, 0.0));
  }
  const Value in = fn.BroadcastTo(Unsqueeze(Lt(s.of, static_cast<double>(s.segments)), 2), flat);
  result = fn.Select(in, result, Like(result, 0.0));
  return {Cast(fn.Reshape(result, dims), own)};
}

constexpr OpDef Row(std::string_view name, LowerFn lower) {
  return {.name = name, .kind = Kind::kScatter, .lower = lower};
}

constexpr OpDef kRows[] = {
    Row("aten::_segment_reduce_backward", SegmentReduceBackward),
    Row("aten::segment_reduce", SegmentReduce),
};

}  // namespace

std::span<const OpDef> SegmentOps() { return kRows; }

}  // namespace tpu::ops
