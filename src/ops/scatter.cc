// Writes at places given by index tensors. Later values win over earlier ones, sums are taken in
// their order, as on PyTorch's CPU; an entry out of range changes nothing (and raises).
// What it is not: reads (indexing.cc), and the *_scatter views, which PyTorch composes.
#include <optional>
#include <string_view>

#include "ops/cast.h"
#include "ops/indexing.h"
#include "ops/op_def.h"
#include "ops/rows.h"

namespace tpu::ops {

using hlo::Body;
using hlo::Function;
using hlo::Value;
using hlo::Values;

Value WriteAt(Lowering& lw, Value operand, const Places& p, Value values, const Body& body) {
  if (!operand.valid() || !values.valid() || !p.indices.valid()) return operand;
  values = lw.fn().BroadcastTo(Cast(values, operand.dtype()), p.value_dims);
  if (!values.valid() || values.numel() == 0 || operand.numel() == 0) return operand;
  return lw.fn().Scatter({operand}, p.indices, {values},
                         {.update_window_dims = p.window_dims,
                          .inserted_window_dims = p.inserted,
                          .input_batching_dims = p.batching,
                          .scatter_indices_batching_dims = p.batching,
                          .scatter_dims_to_operand_dims = p.index_map,
                          .index_vector_dim = p.vector_dim},
                         body)[0];
}

Value StoreAt(Lowering& lw, Value operand, const Places& p, Value values) {
  if (operand.valid() && values.valid() && !p.indices.valid()) {  // no indices: everything
    return lw.fn().BroadcastTo(Cast(values, operand.dtype()), operand.dims());
  }
  return WriteAt(lw, operand, p, values, [](Function&, const Values& v) { return Values{v[1]}; });
}

namespace {

enum class How : uint8_t { kSum, kProd, kMean, kMax, kMin };

std::optional<How> HowOf(std::string_view name) {
  if (name == "sum" || name == "add") return How::kSum;
  if (name == "prod" || name == "multiply") return How::kProd;
  if (name == "mean") return How::kMean;
  if (name == "amax") return How::kMax;
  if (name == "amin") return How::kMin;
  return std::nullopt;
}

Value Combine(How how, Value old, Value value) {
  const bool logical = IsBool(old.dtype());
  switch (how) {
    case How::kSum:
    case How::kMean: return logical ? old | value : old + value;
    case How::kProd: return logical ? old & value : old * value;
    case How::kMax: return Max(old, value);
    case How::kMin: return Min(old, value);
  }
  return {};
}

// The value that changes nothing, as a scalar.
Value Identity(Function& fn, How how, DType t) {
  switch (how) {
    case How::kSum:
    case How::kMean: return fn.Scalar(t, int64_t{0});
    case How::kProd: return fn.Scalar(t, int64_t{1});
    case How::kMax:
    case How::kMin: break;
  }
  // The reduction over nothing knows the type's limits.
  const Value nothing = fn.Constant({t, {0}}, int64_t{0});
  return fn.Reduce(nothing, how == How::kMax ? hlo::Monoid::kMax : hlo::Monoid::kMin, Dims{0});
}

Value FloorQuotient(Value a, Value b) {
  Function& fn = *a.function();
  if (!IsIntegral(a.dtype())) return a / b;
  if (IsUnsigned(a.dtype()) || IsBool(a.dtype())) return a / b;
  const Value q = a / b, r = fn.Binary(hlo::BinaryOp::kRemainder, a, b);
  return fn.Select(Ne(r, 0.0) & Lt(r, 0.0), q - 1.0, q);  // b, a count, is positive
}

// The operand with `values` reduced into the places. Without `include_self` the old contents of a
// place that gets a value don't take part.
Value ReduceAt(Lowering& lw, Value operand, const Places& p, Value values, How how,
               bool include_self) {
  if (!operand.valid() || !values.valid()) return operand;
  if (operand.numel() == 0 || NumElements(p.value_dims) == 0) return operand;
  Function& fn = lw.fn();
  const bool averages = how == How::kMean;
  // One pass needs no rounding between its steps: half types are summed in float32. The limits need
  // none at all.
  const bool exact = how == How::kMax || how == How::kMin;
  const DType t = exact ? operand.dtype() : OpMathType(operand.dtype());
  Value out = Cast(operand, t);
  if (!include_self) out = StoreAt(lw, out, p, Identity(fn, how, t));
  out = WriteAt(lw, out, p, Cast(values, t),
                [&](Function&, const Values& v) { return Values{Combine(how, v[0], v[1])}; });
  if (averages) {
    Value count = fn.Constant({DType::kI32, operand.dims()}, int64_t{include_self});
    count = AddAt(lw, count, p, fn.Scalar(DType::kI32, int64_t{1}));
    count = Max(count, Like(count, int64_t{1}));
    out = FloorQuotient(out, Cast(count, t));
  }
  return Cast(out, operand.dtype());
}

// Rank 0 counts as one dimension of size 1.
Value AtLeast1d(Lowering& lw, Value v) {
  return v.valid() && v.rank() == 0 ? lw.fn().Reshape(v, Dims{1}) : v;
}

}  // namespace

Value AddAt(Lowering& lw, Value operand, const Places& p, Value values) {
  if (!operand.valid() || !values.valid()) return operand;
  const DType t = OpMathType(operand.dtype());
  values = Cast(values, t);
  Value out = Cast(operand, t);
  if (!p.indices.valid()) {
    out = Combine(How::kSum, out, lw.fn().BroadcastTo(values, operand.dims()));
  } else {
    out = WriteAt(lw, out, p, values, [](Function&, const Values& v) {
      return Values{Combine(How::kSum, v[0], v[1])};
    });
  }
  return Cast(out, operand.dtype());
}

namespace {

Values IndexPut(Lowering& lw) {
  const Value self = lw.Tensor("self");
  const Value values = lw.TensorAs("values", self.dtype());
  const Places p = AtIndices(lw, self.dims(), lw.Tensors("indices"), "indices");
  if (!lw.fn().status().ok()) return {Value()};
  Dims common;
  if (!BroadcastShapes(values.dims(), p.value_dims, &common) || common != p.value_dims) {
    // Leading dimensions of size 1 are dropped, as in an assignment.
    Dims dims = values.dims();
    while (dims.size() > p.value_dims.size() && dims[0] == 1) dims.erase(dims.begin());
    if (!BroadcastShapes(dims, p.value_dims, &common) || common != p.value_dims) {
      return {lw.Fail(InvalidArgument(
          "shape mismatch: value tensor of shape ", ToString(values.dims()),
          " cannot be broadcast to indexing result of shape ", ToString(p.value_dims)))};
    }
    const Value cut = lw.fn().Reshape(values, dims);
    return {lw.Bool("accumulate") ? AddAt(lw, self, p, cut) : StoreAt(lw, self, p, cut)};
  }
  return {lw.Bool("accumulate") ? AddAt(lw, self, p, values) : StoreAt(lw, self, p, values)};
}

// --- scatter: values[i][j] goes to self[index[i][j]][j].

struct AlongArgs {
  Dims dims;  // of self as the caller has it
  Value self, values;
  Places places;
  bool empty = false;  // nothing to write
};

// `values`: "src" or "value". Of src as much as the index has.
AlongArgs ReadAlong(Lowering& lw, std::string_view values) {
  AlongArgs a;
  a.dims = lw.TensorDims("self");
  a.self = AtLeast1d(lw, lw.Tensor("self"));
  const Value index = AtLeast1d(lw, lw.Tensor("index"));
  a.empty = !index.valid() || index.numel() == 0;
  if (a.empty) return a;
  const int64_t dim = WrapDim(lw.Int("dim"), a.self.rank());
  if (values == "src") {
    a.values = AtLeast1d(lw, lw.TensorAs("src", a.self.dtype()));
    if (a.values.rank() == index.rank()) {
      const Dims zeros(size_t(index.rank()), 0), ones(size_t(index.rank()), 1);
      a.values = lw.fn().Slice(a.values, zeros, index.dims(), ones);
    }
  } else {
    a.values = lw.TensorAs(values, a.self.dtype());
  }
  a.places = AlongDim(lw, a.self.dims(), index, dim, "index");
  return a;
}

Values Finish(Lowering& lw, const AlongArgs& a, Value out) {
  return {lw.fn().Reshape(out, a.dims)};
}

Values ScatterSrc(Lowering& lw) {
  const AlongArgs a = ReadAlong(lw, "src");
  return Finish(lw, a, a.empty ? a.self : StoreAt(lw, a.self, a.places, a.values));
}
Values ScatterValue(Lowering& lw) {
  const AlongArgs a = ReadAlong(lw, "value");
  return Finish(lw, a, a.empty ? a.self : StoreAt(lw, a.self, a.places, a.values));
}
Values ScatterAdd(Lowering& lw) {
  const AlongArgs a = ReadAlong(lw, "src");
  return Finish(lw, a, a.empty ? a.self : AddAt(lw, a.self, a.places, a.values));
}

Values ScatterReduceOf(Lowering& lw, std::string_view values, bool include_self) {
  const std::optional<How> how = HowOf(lw.String("reduce"));
  if (!how) {
    return {lw.Fail(
        InvalidArgument("reduce argument must be either sum, prod, mean, amax or amin, got ",
                        lw.String("reduce")))};
  }
  const AlongArgs a = ReadAlong(lw, values);
  if (a.empty) return Finish(lw, a, a.self);
  return Finish(lw, a, ReduceAt(lw, a.self, a.places, a.values, *how, include_self));
}
Values ScatterReduceTwo(Lowering& lw) {
  return ScatterReduceOf(lw, "src", lw.Bool("include_self"));
}
Values ScatterReduceSrc(Lowering& lw) { return ScatterReduceOf(lw, "src", true); }
Values ScatterReduceValue(Lowering& lw) { return ScatterReduceOf(lw, "value", true); }

// --- index_*: values[i] goes to self[index[i]].

struct RowArgs {
  Dims dims;
  Value self, values;
  Places places;
};

// `values`: "source" or "value". A source may be of rank 0 beside an index of one entry.
RowArgs ReadRows(Lowering& lw, std::string_view values) {
  RowArgs a;
  a.dims = lw.TensorDims("self");
  a.self = AtLeast1d(lw, lw.Tensor("self"));
  const int64_t dim = WrapDim(lw.Int("dim"), a.self.rank());
  const Value index = AtLeast1d(lw, lw.Tensor("index"));
  if (!index.valid() || index.rank() != 1) {
    lw.Fail(OutOfRange("Index is supposed to be a vector"));
    return a;
  }
  a.places = AtRows(lw, a.self.dims(), index, dim, "index");
  a.values = lw.TensorAs(values, a.self.dtype());
  if (values == "source" && a.values.valid()) {
    if (a.values.numel() != NumElements(a.places.value_dims)) {
      lw.Fail(InvalidArgument("source of shape ", ToString(a.values.dims()), " for ", index.numel(),
                              " entries of dimension ", dim));
      return a;
    }
    a.values = lw.fn().Reshape(a.values, a.places.value_dims);
  }
  return a;
}

Values IndexAdd(Lowering& lw) {
  RowArgs a = ReadRows(lw, "source");
  if (!a.values.valid()) return {Value()};
  const DType t = OpMathType(a.self.dtype());
  const Value alpha = lw.Number("alpha", t);
  Value values = Cast(a.values, t);
  values = IsBool(t) ? values & alpha : values * alpha;
  return {lw.fn().Reshape(AddAt(lw, a.self, a.places, values), a.dims)};
}
Values IndexCopy(Lowering& lw) {
  const RowArgs a = ReadRows(lw, "source");
  return {lw.fn().Reshape(StoreAt(lw, a.self, a.places, a.values), a.dims)};
}
Values IndexFill(Lowering& lw) {
  const RowArgs a = ReadRows(lw, "value");
  if (a.values.valid() && a.values.rank() > 0) {
    return {
        lw.Fail(InvalidArgument("index_fill_ only supports a 0-dimensional value tensor, but got "
                                "tensor with ",
                                a.values.rank(), " dimension(s)."))};
  }
  return {lw.fn().Reshape(StoreAt(lw, a.self, a.places, a.values), a.dims)};
}
Values IndexReduce(Lowering& lw) {
  const std::optional<How> how = HowOf(lw.String("reduce"));
  if (!how || *how == How::kSum) {
    return {
        lw.Fail(InvalidArgument("index_reduce(): Expected reduce to be one of prod, mean, amax or "
                                "amin but got ",
                                lw.String("reduce"), "."))};
  }
  const RowArgs a = ReadRows(lw, "source");
  const Value out = ReduceAt(lw, a.self, a.places, a.values, *how, lw.Bool("include_self"));
  return {lw.fn().Reshape(out, a.dims)};
}

// Positions in the flattened tensor.
Values Put(Lowering& lw) {
  const Value self = lw.Tensor("self"), index = lw.Tensor("index");
  const Value flat = lw.fn().Reshape(self, Dims{self.numel()});
  const Places p = AtIndices(lw, flat.dims(), {index}, "index");
  const Value values = lw.fn().Reshape(lw.TensorAs("source", self.dtype()), index.dims());
  const Value out =
      lw.Bool("accumulate") ? AddAt(lw, flat, p, values) : StoreAt(lw, flat, p, values);
  return {lw.fn().Reshape(out, self.dims())};
}

// Windows of a dimension laid over it again and summed: the gradient of Tensor.unfold.
Values UnfoldBackward(Lowering& lw) {
  const Value grad = lw.Tensor("grad_in");
  const Dims sizes = lw.Ints("input_sizes");
  const DType t = OpMathType(grad.dtype());
  Function& fn = lw.fn();
  if (sizes.empty()) return {fn.Reshape(grad, Dims{})};
  const auto rank = static_cast<int64_t>(sizes.size());
  const int64_t dim = WrapDim(lw.Int("dim"), rank), step = lw.Int("step");
  const int64_t count = grad.dim(dim), size = grad.dim(rank);
  const hlo::Type type{DType::kI32, {count, size}};
  const Value at = fn.Iota(type, 0) * static_cast<double>(step) + fn.Iota(type, 1);
  const Value zeros = fn.Constant({t, sizes}, int64_t{0});
  if (grad.numel() == 0) return {Cast(zeros, grad.dtype())};
  Places p;
  p.indices = fn.Reshape(at, Dims{count, size, 1});
  p.vector_dim = 2;
  p.inserted = p.index_map = {dim};
  for (int64_t d = 0; d < rank; ++d) {
    if (d != dim) p.window_dims.push_back(d);
  }
  p.value_dims = grad.dims();
  return {Cast(AddAt(lw, zeros, p, grad), grad.dtype())};
}

constexpr OpDef Writes(std::string_view name, LowerFn lower, std::string_view indexes) {
  return {.name = name, .kind = Kind::kScatter, .lower = lower, .indexes = indexes};
}

// PyTorch's functional index_fill clones and writes: one program here instead of two.
constexpr OpDef kRows[] = {
    Writes("aten::_index_put_impl_", IndexPut, "indices:*"),
    Writes("aten::index_add", IndexAdd, "index:dim"),
    Writes("aten::index_copy", IndexCopy, "index:dim"),
    Fitting(Writes("aten::index_fill.int_Scalar", IndexFill, "index:dim")),
    Writes("aten::index_fill.int_Tensor", IndexFill, "index:dim"),
    Writes("aten::index_reduce", IndexReduce, "index:dim"),
    {.name = "aten::put_",
     .kind = Kind::kScatter,
     .lower = Put,
     .indexes = "index:*",
     .meta = Meta::kInfer},
    Writes("aten::scatter.reduce", ScatterReduceSrc, "index:dim"),
    Writes("aten::scatter.src", ScatterSrc, "index:dim"),
    Fitting(Writes("aten::scatter.value", ScatterValue, "index:dim")),
    Writes("aten::scatter.value_reduce", ScatterReduceValue, "index:dim"),
    Writes("aten::scatter_add", ScatterAdd, "index:dim"),
    Writes("aten::scatter_reduce.two", ScatterReduceTwo, "index:dim"),
    {.name = "aten::unfold_backward", .kind = Kind::kScatter, .lower = UnfoldBackward},
};

}  // namespace

std::span<const OpDef> ScatterOps() { return kRows; }

}  // namespace tpu::ops
