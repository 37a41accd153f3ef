// histogram and histogramdd: counts or weights by given or computed edges.
// What it is not: histc and bincount (counting.cc, torch/).
#include <algorithm>
#include <cmath>

#include "ops/cast.h"
#include "ops/families.h"
#include "ops/lowering.h"
#include "ops/quotient.h"
#include "ops/sort.h"

namespace tpu::ops {
namespace {

using hlo::Function;
using hlo::Monoid;
using hlo::Value;
using hlo::Values;

// Points as [count, dimensions]; one dimension for histogram(), whatever the sizes.
struct Points {
  Value all, weight;  // [n, d]; [n] or invalid
};

bool ReadPoints(Lowering& lw, bool one, Points* points) {
  Function& fn = lw.fn();
  const Value a = lw.Tensor("self");
  if (!a.valid()) return false;
  if (a.dtype() != DType::kF32 && a.dtype() != DType::kF64) {
    lw.Fail(Unimplemented("\"histogramdd\" not implemented for ", TorchName(a.dtype())));
    return false;
  }
  if (!one && a.rank() < 2) {
    lw.Fail(InvalidArgument(
        "torch.histogramdd: input tensor should have at least 2 dimensions, but got ", a.rank()));
    return false;
  }
  const int64_t d = one ? 1 : a.dim(a.rank() - 1);
  const int64_t n = one ? a.numel() : NumElements(Dims(a.dims().begin(), a.dims().end() - 1));
  points->all = fn.Reshape(a, Dims{n, d});
  if (!lw.Has("weight")) return true;
  const Value w = lw.Tensor("weight");
  if (w.dtype() != a.dtype()) {
    lw.Fail(
        InvalidArgument("torch.histogramdd: if weight tensor is provided, input tensor and weight "
                        "tensor should have the same dtype, but got input(",
                        TorchName(a.dtype()), "), and weight(", TorchName(w.dtype()), ")"));
    return false;
  }
  if (w.numel() != n) {
    lw.Fail(
        InvalidArgument("torch.histogramdd: if weight tensor is provided it should have the same "
                        "shape as the input tensor excluding its innermost dimension, but got "
                        "input with shape ",
                        ToString(a.dims()), " and weight with shape ", ToString(w.dims())));
    return false;
  }
  points->weight = fn.Reshape(w, Dims{n});
  return true;
}

Value ColumnOf(Value all, int64_t i) {
  Function& fn = *all.function();
  const int64_t n = all.dim(0);
  return fn.Reshape(fn.Slice(all, Dims{0, i}, Dims{n, i + 1}, Dims{1, 1}), Dims{n});
}

// As torch.linspace: from the nearer end.
Value EvenEdges(Value low, Value high, int64_t bins) {
  Function& fn = *low.function();
  const Value at = fn.Iota({low.dtype(), {bins + 1}}, 0);
  const Value step = ExactQuotient(high - low, Like(low, static_cast<double>(bins)));
  return Select(Lt(at, static_cast<double>((bins + 1) / 2)), low + step * at,
                high - step * (static_cast<double>(bins) - at));
}

// The edges of dimension i: of `range`, or of what the points span.
Value EdgesOf(Lowering& lw, Value column, const std::vector<double>& range, size_t i,
              int64_t bins) {
  Function& fn = lw.fn();
  const DType t = column.dtype();
  Value low, high;
  if (!range.empty()) {
    low = fn.Scalar(t, range[2 * i]);
    high = fn.Scalar(t, range[2 * i + 1]);
  } else if (column.numel() == 0) {
    low = fn.Scalar(t, 0.0);
    high = fn.Scalar(t, 1.0);
  } else {
    low = fn.Reduce(column, Monoid::kMin, Dims{0});
    high = fn.Reduce(column, Monoid::kMax, Dims{0});
    const Value fine = fn.Unary(hlo::UnaryOp::kIsFinite, low);
    lw.CheckValue(~(fine & fn.Unary(hlo::UnaryOp::kIsFinite, high)), fn.Select(fine, high, low),
                  "self", "torch.histogramdd: a dimension's range is not finite");
  }
  const Value flat = Eq(low, high);
  return EvenEdges(fn.Select(flat, low - 0.5, low), fn.Select(flat, high + 0.5, high), bins);
}

bool CheckBins(Lowering& lw, const Dims& bins, const std::vector<double>& range, int64_t d) {
  if (static_cast<int64_t>(bins.size()) != d) {
    lw.Fail(
        InvalidArgument("histogramdd: The size of bins must be equal to the innermost dimension of "
                        "the input."));
    return false;
  }
  for (size_t i = 0; i < bins.size(); ++i) {
    if (bins[i] <= 0) {
      lw.Fail(InvalidArgument("torch.histogram(): bins must be > 0, but got ", bins[i],
                              " for dimension ", i));
      return false;
    }
  }
  if (range.empty()) return true;
  if (range.size() != 2 * bins.size()) {
    lw.Fail(InvalidArgument("torch.histogramdd: for a ", d,
                            "-dimensional histogram range should have ", 2 * d,
                            " elements, but got ", range.size()));
    return false;
  }
  for (size_t i = 0; i < bins.size(); ++i) {
    const double low = range[2 * i], high = range[2 * i + 1];
    if (!std::isfinite(low) || !std::isfinite(high)) {
      lw.Fail(InvalidArgument("torch.histogramdd: dimension ", i, "'s range [", low, ", ", high,
                              "] is not finite"));
      return false;
    }
    if (low > high) {
      lw.Fail(InvalidArgument("torch.histogramdd: min should not exceed max, but got min ", low,
                              " max ", high, " for dimension ", i));
      return false;
    }
  }
  return true;
}

std::vector<double> RangeOf(Lowering& lw) {
  return lw.Has("range") ? lw.Floats("range") : std::vector<double>();
}

// False: an error. `bins`: one number for each dimension of the points.
bool EvenEdgesOf(Lowering& lw, const Points& p, const Dims& bins, Values* edges) {
  const std::vector<double> range = RangeOf(lw);
  if (!CheckBins(lw, bins, range, p.all.dim(1))) return false;
  for (size_t i = 0; i < bins.size(); ++i) {
    edges->push_back(EdgesOf(lw, ColumnOf(p.all, static_cast<int64_t>(i)), range, i, bins[i]));
  }
  return true;
}

// Bins are half open but for the last one.
Value Counted(Lowering& lw, const Points& p, const Values& edges) {
  Function& fn = lw.fn();
  const DType t = p.all.dtype();
  const int64_t n = p.all.dim(0);
  Dims sizes;
  for (const Value& e : edges) sizes.push_back(e.dim(0) - 1);
  const int64_t total = NumElements(sizes);
  Value place = fn.Constant({DType::kI32, {n}}, int64_t{0});
  Value inside = fn.Constant({DType::kBool, {n}}, true);
  Value density;  // the volume of each bin
  for (size_t i = 0; i < edges.size(); ++i) {
    const int64_t bins = sizes[i];
    const Value x = ColumnOf(p.all, static_cast<int64_t>(i));
    const auto edge = [&](int64_t k) {
      return fn.BroadcastTo(fn.Slice(edges[i], Dims{k}, Dims{k + 1}, Dims{1}), x.dims());
    };
    if (bins == 0) return fn.Constant({t, sizes}, int64_t{0});
    inside = inside & Ge(x, edge(0)) & Le(x, edge(bins));
    const Value at = SearchSorted(edges[i], x, true, false) - 1.0;
    place = place * static_cast<double>(bins) + Min(at, Like(at, bins - 1));
    const Value width = fn.Slice(edges[i], Dims{1}, Dims{bins + 1}, Dims{1}) -
                        fn.Slice(edges[i], Dims{0}, Dims{bins}, Dims{1});
    const Value wide = fn.BroadcastInDim(width, sizes, Dims{static_cast<int64_t>(i)});
    density = density.valid() ? density * wide : wide;
  }
  place = fn.Select(inside, place, Like(place, total));  // dropped by the scatter
  // Counts are exact in float32 up to 2^24 only.
  const bool counts = !p.weight.valid();
  const DType sum = counts ? DType::kI32 : t;
  const Value weight = counts ? fn.Constant({sum, {n}}, int64_t{1}) : p.weight;
  Value hist = fn.Constant({sum, {total}}, int64_t{0});
  if (n > 0 && total > 0) {
    hist = fn.Scatter({hist}, place, {weight}, {{}, {0}, {}, {}, {0}, 1},
                      [](Function&, const Values& v) { return Values{v[0] + v[1]}; })[0];
  }
  hist = fn.Reshape(Cast(hist, t), sizes);
  if (!lw.Bool("density")) return hist;
  return hist / fn.Reduce(hist, Monoid::kAdd, Iota(hist.rank())) / density;
}

Values HistogramByCount(Lowering& lw) {
  Points p;
  Values edges;
  if (!ReadPoints(lw, true, &p) || !EvenEdgesOf(lw, p, {lw.Int("bins")}, &edges)) return Values(2);
  return {Counted(lw, p, edges), edges[0]};
}

Values HistogramByEdges(Lowering& lw) {
  Points p;
  if (!ReadPoints(lw, true, &p)) return Values(2);
  const Value edges = lw.TensorAs("bins", p.all.dtype());
  if (edges.rank() != 1 || edges.dim(0) == 0) {
    lw.Fail(InvalidArgument("torch.histogramdd: bins tensor should have one dimension"));
    return Values(2);
  }
  return {Counted(lw, p, {edges}), edges};
}

Values BinEdges(Lowering& lw) {
  Points p;
  Values edges;
  if (!ReadPoints(lw, false, &p) || !EvenEdgesOf(lw, p, lw.Ints("bins"), &edges)) {
    return Values(std::max<size_t>(lw.Ints("bins").size(), 1));
  }
  return edges;
}

Values HistogramsByCount(Lowering& lw) {
  Points p;
  Values edges;
  if (!ReadPoints(lw, false, &p) || !EvenEdgesOf(lw, p, lw.Ints("bins"), &edges)) return {Value()};
  return {Counted(lw, p, edges)};
}

Values HistogramsByEdges(Lowering& lw) {
  Points p;
  if (!ReadPoints(lw, false, &p)) return {Value()};
  const Values edges = lw.Tensors("bins");
  if (static_cast<int64_t>(edges.size()) != p.all.dim(1)) {
    return {lw.Fail(InvalidArgument("torch.histogramdd: expected ", p.all.dim(1),
                                    " sequences of bin edges for a ", p.all.dim(1),
                                    "-dimensional histogram but got ", edges.size()))};
  }
  for (const Value& e : edges) {
    if (e.rank() != 1 || e.dim(0) == 0 || e.dtype() != p.all.dtype()) {
      return {lw.Fail(
          InvalidArgument("torch.histogramdd: bins tensors should have one dimension and the "
                          "input's dtype"))};
    }
  }
  return {Counted(lw, p, edges)};
}

constexpr OpDef Row(std::string_view name, LowerFn lower) {
  return {.name = name, .kind = Kind::kScatter, .lower = lower, .meta = Meta::kInfer};
}

constexpr OpDef kRows[] = {
    Row("aten::_histogramdd_bin_edges", BinEdges),
    Row("aten::_histogramdd_from_bin_cts", HistogramsByCount),
    Row("aten::_histogramdd_from_bin_tensors", HistogramsByEdges),
    Row("aten::histogram.bin_ct", HistogramByCount),
    Row("aten::histogram.bins_tensor", HistogramByEdges),
};

}  // namespace

std::span<const OpDef> HistogramOps() { return kRows; }

}  // namespace tpu::ops
