// Sorting, the largest and smallest k, order statistics, and searches in sorted rows.
#include "ops/sort.h"

#include <bit>
#include <cmath>

#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/reduction.h"

namespace tpu::ops {

using hlo::Function;
using hlo::Monoid;
using hlo::Value;
using hlo::Values;

namespace {

// The halves of a 64-bit integer; the first compares as the whole does.
Values Halves(Value a) {
  Function& fn = *a.function();
  const DType high = IsSigned(a.dtype()) ? DType::kI32 : DType::kU32;
  const Value shifted = fn.Binary(hlo::BinaryOp::kShiftRightLogical, a, Like(a, int64_t{32}));
  return {fn.Convert(shifted, high), fn.Convert(a, DType::kU32)};
}

struct SortedKeys {
  Values keys;
  Value places;
};

// TPU compilers take half as long without the order of equals (which they keep by one more
// operand), a third with halves of 64-bit numbers, two thirds with integers instead of floats that
// may be NaN. So keys are integers, least first, and positions decide between equals.
SortedKeys SortKeys(const Values& keys, Value places, int64_t dim, bool descending) {
  Values operands;
  for (const Value& k : keys) operands.push_back(descending ? ~k : k);
  operands.push_back(places);
  Function& fn = *places.function();
  const Values out = fn.Sort(operands, dim, false, [&](Function&, const Values& v) {
    Value first = Lt(v[v.size() - 2], v[v.size() - 1]);  // of the positions
    for (size_t i = keys.size(); i-- > 0;) {
      first = Lt(v[2 * i], v[2 * i + 1]) | (Eq(v[2 * i], v[2 * i + 1]) & first);
    }
    return Values{first};
  });
  SortedKeys s{{}, out.back()};
  for (size_t i = 0; i < keys.size(); ++i) s.keys.push_back(descending ? ~out[i] : out[i]);
  return s;
}

Sorted SortWide(Value a, Value places, int64_t dim, bool descending) {
  Function& fn = *a.function();
  const SortedKeys s = SortKeys(Halves(a), places, dim, descending);
  const auto wide = [&](Value v) { return fn.Convert(fn.Convert(v, DType::kU32), a.dtype()); };
  const Value high = fn.Binary(hlo::BinaryOp::kShiftLeft, wide(s.keys[0]), Like(a, int64_t{32}));
  return {high | wide(s.keys[1]), s.places};
}

// float32 as integers in the same order: -0.0 as 0.0, and every NaN as the greatest. The sign of a
// zero travels in the lowest bit of its position.
Sorted SortFloats(Value a, Value places, int64_t dim, bool descending) {
  Function& fn = *a.function();
  const Value bits = fn.BitcastConvert(a, DType::kI32), zero = Like(bits, int64_t{0});
  const Value flipped = bits ^ Like(bits, int64_t{INT32_MAX});
  Value key = fn.Select(Lt(bits, zero), flipped, bits);
  key = fn.Select(Eq(bits & Like(bits, int64_t{INT32_MAX}), zero), zero, key);
  key = fn.Select(IsNan(a), Like(bits, int64_t{0x7fc00000}), key);
  const Value signs = fn.Convert(Eq(bits, Like(bits, int64_t{INT32_MIN})), DType::kI32);
  const SortedKeys s = SortKeys({key}, places + places + signs, dim, descending);
  const Value from = s.keys[0];
  Value out = fn.Select(Lt(from, zero), from ^ Like(from, int64_t{INT32_MAX}), from);
  const Value negative = Ne(s.places & Like(zero, int64_t{1}), zero);
  out = fn.Select(negative, Like(out, int64_t{INT32_MIN}), out);
  return {fn.BitcastConvert(out, DType::kF32),
          fn.Binary(hlo::BinaryOp::kShiftRightLogical, s.places, Like(s.places, int64_t{1}))};
}

// Null values: none of these ways is for `a`.
Sorted SortByKeys(Value a, Value places, int64_t dim, bool descending) {
  const DType t = a.dtype();
  if (!IsFloat(t) && ItemSize(t) == 8) return SortWide(a, places, dim, descending);
  if (!IsFloat(t)) {
    const SortedKeys s = SortKeys({a}, places, dim, descending);
    return {s.keys[0], s.places};
  }
  if (OpMathType(t) != DType::kF32 || a.dim(dim) > INT32_MAX / 2) return {};
  const Sorted s = SortFloats(Cast(a, DType::kF32), places, dim, descending);
  return {Cast(s.values, t), s.places};
}

}  // namespace

Sorted SortAlong(Value a, int64_t dim, bool descending) {
  if (!a.valid()) return {};
  Function& fn = *a.function();
  const DType t = a.dtype();
  if (IsBool(t)) {
    const Sorted s = SortAlong(Cast(a, DType::kU8), dim, descending);
    return {Cast(s.values, t), s.places};
  }
  const DType index_type = a.dim(dim) > INT32_MAX ? DType::kI64 : DType::kI32;
  const Value places = fn.Iota({index_type, a.dims()}, dim);
  if (fn.emulates_64bit()) {
    if (const Sorted s = SortByKeys(a, places, dim, descending); s.values.valid()) return s;
  }
  const Values out = fn.Sort({a, places}, dim, true, [&](Function&, const Values& v) {
    const Value x = descending ? v[1] : v[0], y = descending ? v[0] : v[1];
    const Value less = Lt(x, y);
    return Values{IsFloat(t) ? less | (IsNan(y) & ~IsNan(x)) : less};
  });
  return {out[0], out[1]};
}

Value TakeAlong(Value a, Value place, int64_t dim) {
  if (!a.valid() || !place.valid()) return {};
  Function& fn = *a.function();
  if (place.numel() == 0) return fn.Constant({a.dtype(), place.dims()}, int64_t{0});
  hlo::GatherDims g;
  Dims sizes(a.dims().size(), 1), batch;
  for (int64_t d = 0; d < a.rank(); ++d) {
    if (d == dim) continue;
    batch.push_back(d);
    g.start_indices_batching_dims.push_back(static_cast<int64_t>(batch.size()) - 1);
  }
  g.collapsed_slice_dims = {dim};
  g.operand_batching_dims = batch;
  g.start_index_map = {dim};
  Dims kept;
  for (int64_t d : batch) kept.push_back(a.dim(d));
  g.index_vector_dim = static_cast<int64_t>(kept.size());
  return fn.Reshape(fn.Gather(a, fn.Reshape(place, kept), g, sizes), place.dims());
}

Value SearchSorted(Value sorted, Value values, bool right, bool nan_last) {
  if (!sorted.valid() || !values.valid()) return {};
  Function& fn = *sorted.function();
  const int64_t n = sorted.dim(sorted.rank() - 1);
  const hlo::Type index{DType::kI32, values.dims()};
  const Value zero = fn.Constant(index, int64_t{0});
  if (n == 0 || values.numel() == 0) return zero;
  // A gather of one element for each value, from its own row or from the only one.
  hlo::GatherDims g;
  const int64_t rows = sorted.rank() - 1;
  g.collapsed_slice_dims = {rows};
  for (int64_t d = 0; d < rows; ++d) {
    g.operand_batching_dims.push_back(d);
    g.start_indices_batching_dims.push_back(d);
  }
  g.start_index_map = {rows};
  g.index_vector_dim = values.rank();
  const Dims one(static_cast<size_t>(sorted.rank()), 1);
  // Halving [low, high) as PyTorch does, so that unsorted rows and NaN give the same places.
  const int turns = std::bit_width(static_cast<uint64_t>(n));
  const Values out = fn.While(
      {fn.Scalar(DType::kI32, int64_t{0}), zero, fn.Constant(index, n)},
      [&](Function&, const Values& v) { return Values{Lt(v[0], static_cast<double>(turns))}; },
      [&](Function& f, const Values& v) {
        const Value low = v[1], high = v[2], open = Lt(low, high);
        const Value middle = low + (high - low) / 2.0;
        const Value safe = Min(middle, Like(middle, n - 1));
        const Value at = f.Gather(sorted, safe, g, one);
        Value up;
        if (nan_last) {
          up = right ? Le(at, values) : Lt(at, values);
        } else {
          up = ~(right ? Gt(at, values) : Ge(at, values));
        }
        return Values{v[0] + 1.0, f.Select(open & up, middle + 1.0, low),
                      f.Select(open & ~up, middle, high)};
      });
  return out[1];
}

namespace {

int64_t SelfDim(const Lowering& lw) {
  return DimOf(lw, static_cast<int64_t>(lw.TensorDims("self").size()));
}

Values SortOp(Lowering& lw) {
  const Sorted s = SortAlong(AtLeast1d(lw.Tensor("self")), SelfDim(lw), lw.Bool("descending"));
  const Dims dims = lw.TensorDims("self");
  return {lw.fn().Reshape(s.values, dims), lw.fn().Reshape(Cast(s.places, DType::kI64), dims)};
}

Value FirstAlong(Value a, int64_t dim, int64_t k) {
  if (!a.valid()) return {};
  Dims starts(a.dims().size(), 0), limits = a.dims(), steps(a.dims().size(), 1);
  limits[static_cast<size_t>(dim)] = k;
  return a.function()->Slice(a, starts, limits, steps);
}

// XLA's own top-k orders float32 by all bits: NaN gets the sign that puts it first or last.
Values FloatTopK(Value a, int64_t k, bool largest) {
  Function& fn = *a.function();
  const Value nan = fn.BitcastConvert(
      fn.Constant({DType::kI32, a.dims()}, int64_t{largest ? 0x7fc00000 : int64_t{0xffc00000}}),
      DType::kF32);
  const Values top = fn.TopK(fn.Select(IsNan(a), nan, largest ? a : -a), k);
  return {largest ? top[0] : -top[0], top[1]};
}

Values TopKOp(Lowering& lw) {
  const DType own = lw.TensorType("self");
  const bool largest = lw.Bool("largest");
  Value a = AtLeast1d(lw.Tensor("self"));
  const int64_t dim = SelfDim(lw), k = lw.Int("k"), last = a.rank() - 1;
  Dims dims = lw.TensorDims("self");
  if (!dims.empty()) dims[static_cast<size_t>(dim)] = k;
  Values top;
  if (!lw.fn().emulates_64bit() && OpMathType(own) == DType::kF32 && a.numel() > 0 && k > 0 &&
      a.dim(dim) <= INT32_MAX) {
    Dims swap = Iota(a.rank());
    std::swap(swap[static_cast<size_t>(dim)], swap[static_cast<size_t>(last)]);
    top = FloatTopK(lw.fn().Transpose(Cast(a, DType::kF32), swap), k, largest);
    for (Value& v : top) v = lw.fn().Transpose(v, swap);
  } else {
    const Sorted s = SortAlong(a, dim, largest);
    top = {FirstAlong(s.values, dim, k), FirstAlong(s.places, dim, k)};
  }
  return {lw.fn().Reshape(Cast(top[0], own), dims),
          lw.fn().Reshape(Cast(top[1], DType::kI64), dims)};
}

// --- One element of each sorted row.

struct Selected {
  Value value, place;
};

Selected SelectAt(const Sorted& s, Value rank, int64_t dim) {
  return {TakeAlong(s.values, rank, dim), TakeAlong(s.places, rank, dim)};
}

// How many along `dim` aren't NaN: int32, 1 at `dim`.
Value NumbersAlong(Value a, int64_t dim) {
  Function& fn = *a.function();
  Dims kept = a.dims();
  kept[static_cast<size_t>(dim)] = 1;
  if (!IsFloat(a.dtype())) return fn.Constant({DType::kI32, kept}, a.dim(dim));
  return fn.Reshape(fn.Reduce(Cast(~IsNan(a), DType::kI32), Monoid::kAdd, Dims{dim}), kept);
}

// The lower median; of a row with NaN the first NaN, unless NaN is ignored.
Selected MedianAlong(Value a, int64_t dim, bool ignore_nan) {
  if (!a.valid()) return {};
  Function& fn = *a.function();
  const Value numbers = NumbersAlong(a, dim);
  Value rank;
  if (ignore_nan) {
    rank = Max(numbers - 1.0, Like(numbers, int64_t{0})) / 2.0;
  } else {
    const int64_t n = a.dim(dim);
    rank = fn.Select(Lt(numbers, Like(numbers, n)), numbers, Like(numbers, (n - 1) / 2));
  }
  return SelectAt(SortAlong(a, dim, false), rank, dim);
}

Values SelectedAlong(Lowering& lw, const Selected& s) {
  const Reduction r{lw.TensorDims("self"), {SelfDim(lw)}, true};
  Dims dims = r.from;
  if (!dims.empty()) {
    dims[static_cast<size_t>(r.dims[0])] = 1;
    if (!lw.Bool("keepdim")) dims.erase(dims.begin() + r.dims[0]);
  }
  return {lw.fn().Reshape(s.value, dims), lw.fn().Reshape(Cast(s.place, DType::kI64), dims)};
}

Status EmptyDim(std::string_view op, int64_t dim) {
  return OutOfRange(op, "(): Expected reduction dim ", dim, " to have non-zero size.");
}

template <bool ignore_nan>
Values MedianDim(Lowering& lw) {
  const Value a = AtLeast1d(lw.Tensor("self"));
  const int64_t dim = SelfDim(lw);
  if (a.dim(dim) == 0) return {lw.Fail(EmptyDim("median", dim)), {}};
  return SelectedAlong(lw, MedianAlong(a, dim, ignore_nan));
}

template <bool ignore_nan>
Values MedianOfAll(Lowering& lw) {
  const Value a = lw.Tensor("self");
  if (a.numel() == 0) {
    if (IsFloat(a.dtype())) return {lw.fn().Scalar(a.dtype(), NAN)};
    return {Bound(lw.fn(), a.dtype(), false)};
  }
  const Value flat = lw.fn().Reshape(a, Dims{a.numel()});
  return {lw.fn().Reshape(MedianAlong(flat, 0, ignore_nan).value, Dims{})};
}

Values KthValue(Lowering& lw) {
  const Value a = AtLeast1d(lw.Tensor("self"));
  const int64_t dim = SelfDim(lw), k = lw.Int("k");
  if (a.dim(dim) == 0) return {lw.Fail(EmptyDim("kthvalue", dim)), {}};
  if (k < 1 || k > a.dim(dim)) {
    return {
        lw.Fail(InvalidArgument("kthvalue(): selected number k out of range for dimension ", dim)),
        {}};
  }
  const Sorted s = SortAlong(a, dim, false);
  Dims kept = a.dims();
  kept[static_cast<size_t>(dim)] = 1;
  return SelectedAlong(lw, SelectAt(s, lw.fn().Constant({DType::kI32, kept}, k - 1), dim));
}

// For each element of a sorted row the length of its run of equals so far.
Value RunLengths(Value sorted, int64_t dim) {
  Function& fn = *sorted.function();
  // A run's first place by search among the values themselves: rows last.
  Dims swap = Iota(sorted.rank());
  std::swap(swap[static_cast<size_t>(dim)], swap[swap.size() - 1]);
  const Value rows = fn.Transpose(sorted, swap);
  const Value first = SearchSorted(rows, rows, false, true);
  const Value at = fn.Iota(first.type(), first.rank() - 1);
  return fn.Transpose(at - first + 1.0, swap);
}

// The most frequent value; among equals the smallest.
Values Mode(Lowering& lw) {
  const Value a = AtLeast1d(lw.Tensor("self"));
  const int64_t dim = SelfDim(lw);
  if (a.dim(dim) == 0) return {lw.Fail(EmptyDim("mode", dim)), {}};
  const Sorted s = SortAlong(a, dim, false);
  const Value keys = IsBool(a.dtype()) ? Cast(s.values, DType::kU8) : s.values;
  Value length = RunLengths(keys, dim);
  if (IsFloat(a.dtype())) {  // NaN equals nothing: each is a run of its own
    length = lw.fn().Select(IsNan(s.values), Like(length, int64_t{1}), length);
  }
  const Reduction r{a.dims(), {dim}, true};
  const Value longest = r.Spread(r.Over(length, Monoid::kMax));
  const Value at = lw.fn().Iota(length.type(), dim);
  const Value none = Like(at, a.dim(dim));
  const Value rank = r.Over(lw.fn().Select(Eq(length, longest), at, none), Monoid::kMin);
  return SelectedAlong(lw, SelectAt(s, r.Shaped(rank), dim));
}

// --- Searches.

Values Search(Lowering& lw, Value sorted, bool right) {
  const DType t = lw.Bool("out_int32") ? DType::kI32 : DType::kI64;
  const DType number = lw.NumberType("self");
  ResultType type;
  type.AddTensor(sorted.dtype(), false);
  if (number == DType::kInvalid) {
    type.AddTensor(lw.TensorType("self"), false);
  } else {
    type.AddWrappedNumber(number);
  }
  DType common = type.Get();
  if (IsComplex(common)) return {lw.Fail(Unimplemented("searches of complex numbers"))};
  if (IsBool(common)) common = DType::kU8;
  Value values = number == DType::kInvalid ? lw.Tensor("self") : lw.Number("self", common);
  const Dims dims = values.dims();
  values = AtLeast1d(Cast(values, common));
  const Value place = SearchSorted(Cast(sorted, common), values, right, false);
  return {lw.fn().Reshape(Cast(place, t), dims)};
}

Values SearchSortedOp(Lowering& lw) {
  Value sorted = lw.Tensor("sorted_sequence");
  const bool by_side = lw.Has("side") && lw.String("side") == "right";
  if (lw.Has("sorter") && sorted.numel() > 0) {
    const int64_t last = sorted.rank() - 1;
    const Value order = lw.CheckIndex(lw.Tensor("sorter"), sorted.dim(last), "sorter", last, false);
    sorted = [&] {
      hlo::GatherDims g;
      g.collapsed_slice_dims = {last};
      for (int64_t d = 0; d < last; ++d) {
        g.operand_batching_dims.push_back(d);
        g.start_indices_batching_dims.push_back(d);
      }
      g.start_index_map = {last};
      g.index_vector_dim = sorted.rank();
      return lw.fn().Gather(sorted, order, g, Dims(sorted.dims().size(), 1));
    }();
  }
  return Search(lw, sorted, lw.Bool("right") || by_side);
}

Values Bucketize(Lowering& lw) { return Search(lw, lw.Tensor("boundaries"), lw.Bool("right")); }

// Few test elements are compared one by one; many are sorted and searched.
Values IsIn(Lowering& lw, Value elements, Value tests) {
  Function& fn = lw.fn();
  ResultType type;
  type.AddTensor(elements.dtype(), elements.rank() == 0);
  type.AddTensor(tests.dtype(), tests.rank() == 0);
  DType common = type.Get();
  if (IsBool(common)) common = DType::kU8;
  elements = Cast(elements, common);
  tests = Cast(fn.Reshape(tests, Dims{tests.numel()}), common);
  const Dims dims = elements.dims();
  constexpr int64_t kFew = 64;
  Value found;
  if (tests.numel() == 0) {
    found = fn.Constant({DType::kBool, dims}, false);
  } else if (tests.numel() <= kFew) {
    Dims pairs = dims;
    pairs.push_back(tests.numel());
    const Value a = fn.BroadcastInDim(elements, pairs, Iota(elements.rank()));
    const Value b = fn.BroadcastInDim(tests, pairs, Dims{elements.rank()});
    found = fn.Reduce(Eq(a, b), Monoid::kOr, Dims{elements.rank()});
  } else {
    const Value sorted = SortAlong(tests, 0, false).values, flat = AtLeast1d(elements);
    const Value place = SearchSorted(sorted, flat, false, true);
    const Value safe = Min(place, Like(place, tests.numel() - 1));
    hlo::GatherDims g{{}, {0}, {}, {}, {0}, flat.rank()};
    found = fn.Reshape(Eq(fn.Gather(sorted, safe, g, Dims{1}), flat), dims);
  }
  return {lw.Bool("invert") ? ~found : found};
}

Values IsInTensors(Lowering& lw) {
  return IsIn(lw, lw.Tensor("elements"), lw.Tensor("test_elements"));
}
// A number takes part in promotion as a Python number does.
Value NumberBeside(Lowering& lw, std::string_view number, DType tensor, DType* common) {
  ResultType type;
  type.AddTensor(tensor, false);
  type.AddWrappedNumber(lw.NumberType(number));
  *common = type.Get();
  return lw.Number(number, *common);
}
Values IsInTensorNumber(Lowering& lw) {
  const Value a = lw.Tensor("elements");
  DType t = DType::kInvalid;
  const Value b = NumberBeside(lw, "test_element", a.dtype(), &t);
  const Value found = Eq(Cast(a, t), lw.fn().BroadcastTo(b, a.dims()));
  return {lw.Bool("invert") ? ~found : found};
}
Values IsInNumberTensor(Lowering& lw) {
  const Value tests = lw.Tensor("test_elements");
  DType t = DType::kInvalid;
  const Value a = NumberBeside(lw, "element", tests.dtype(), &t);
  const Value same = Eq(Cast(tests, t), lw.fn().BroadcastTo(a, tests.dims()));
  const Value found = lw.fn().Reduce(same, Monoid::kOr, Iota(tests.rank()));
  return {lw.Bool("invert") ? ~found : found};
}

constexpr OpDef Sort(std::string_view name, LowerFn lower) {
  return {.name = name, .kind = Kind::kSort, .lower = lower};
}
constexpr OpDef kRows[] = {
    Sort("aten::bucketize.Scalar", Bucketize),
    Sort("aten::bucketize.Tensor", Bucketize),
    Sort("aten::isin.Scalar_Tensor", IsInNumberTensor),
    Sort("aten::isin.Tensor_Scalar", IsInTensorNumber),
    Sort("aten::isin.Tensor_Tensor", IsInTensors),
    Sort("aten::kthvalue", KthValue),
    Sort("aten::median", MedianOfAll<false>),
    Sort("aten::median.dim", MedianDim<false>),
    Sort("aten::mode", Mode),
    Sort("aten::nanmedian", MedianOfAll<true>),
    Sort("aten::nanmedian.dim", MedianDim<true>),
    Sort("aten::searchsorted.Scalar", SearchSortedOp),
    Sort("aten::searchsorted.Tensor", SearchSortedOp),
    Sort("aten::sort.stable", SortOp),
    Sort("aten::topk", TopKOp),
};

}  // namespace

std::span<const OpDef> SortOps() { return kRows; }

}  // namespace tpu::ops
