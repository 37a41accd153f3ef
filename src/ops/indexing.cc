// Reads at places given by index tensors: index, gather, index_select, take; and masked_fill.
// What it is not: writes (scatter.cc). Bool and byte indices became positions before they got here:
// their number is known to the host only.
#include "ops/indexing.h"

#include <algorithm>

#include "ops/cast.h"
#include "ops/rows.h"

namespace tpu::ops {

using hlo::Function;
using hlo::Value;
using hlo::Values;

Value CheckedIndex(Lowering& lw, Value index, int64_t bound, std::string_view argument, int64_t dim,
                   bool wrap) {
  if (!index.valid()) return index;
  Function& fn = lw.fn();
  if (!IsInteger(index.dtype())) {
    return lw.Fail(Unimplemented("index tensors of type ", TorchName(index.dtype())));
  }
  if (ItemSize(index.dtype()) < 4) index = fn.Convert(index, DType::kI32);
  index = lw.CheckIndex(index, bound, argument, dim, wrap);
  if (ItemSize(index.dtype()) > 4 && bound < INT32_MAX) {
    // Cutting off high bits could bring a wrong entry back into range.
    index = fn.Clamp(fn.Scalar(index.dtype(), int64_t{-1}), index, fn.Scalar(index.dtype(), bound));
    index = fn.Convert(index, DType::kI32);
  }
  return index;
}

namespace {

// Index tensors side by side, as a last dimension.
Value Vectors(Lowering& lw, Values components) {
  bool wide = false;
  for (const Value& c : components) wide |= ItemSize(c.dtype()) > 4;
  for (Value& c : components) {
    c = Unsqueeze(lw.fn().Convert(c, wide ? DType::kI64 : DType::kI32), -1);
  }
  if (components.size() == 1) return components[0];
  return components.empty() ? Value() : lw.fn().Concatenate(components, components[0].rank() - 1);
}

bool AreAdjacent(const Dims& dims) {
  return dims.empty() || dims.back() - dims.front() + 1 == static_cast<int64_t>(dims.size());
}

}  // namespace

Places AtIndices(Lowering& lw, const Dims& operand, const Values& indices,
                 std::string_view argument) {
  Places p;
  const auto rank = static_cast<int64_t>(operand.size());
  Dims batch;
  if (static_cast<int64_t>(indices.size()) > rank) {
    lw.Fail(OutOfRange("too many indices for tensor of dimension ", rank));
    return p;
  }
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].valid()) continue;
    p.index_map.push_back(static_cast<int64_t>(d));
    if (!BroadcastShapes(batch, indices[d].dims(), &batch)) {
      lw.Fail(OutOfRange("shape mismatch: indexing tensors could not be broadcast together"));
      return p;
    }
  }
  Values components;
  for (int64_t d : p.index_map) {
    const Value checked = CheckedIndex(lw, indices[size_t(d)], operand[size_t(d)], argument, d);
    components.push_back(lw.fn().BroadcastTo(checked, batch));
  }
  p.indices = Vectors(lw, std::move(components));
  p.vector_dim = static_cast<int64_t>(batch.size());
  p.inserted = p.index_map;

  // Adjacent indices put their dimensions in place; others in front of all.
  const int64_t front = AreAdjacent(p.index_map) && !p.index_map.empty() ? p.index_map[0] : 0;
  for (int64_t d = 0; d < rank; ++d) {
    const bool indexed = std::ranges::find(p.index_map, d) != p.index_map.end();
    p.window_sizes.push_back(indexed ? 1 : operand[size_t(d)]);
    if (d == front) p.value_dims.insert(p.value_dims.end(), batch.begin(), batch.end());
    if (indexed) continue;
    p.window_dims.push_back(static_cast<int64_t>(p.value_dims.size()));
    p.value_dims.push_back(operand[size_t(d)]);
  }
  if (rank == 0) p.value_dims = batch;
  return p;
}

Places AtRows(Lowering& lw, const Dims& operand, Value index, int64_t dim,
              std::string_view argument) {
  Values indices(size_t(dim) + 1);
  indices.back() = index.valid() && index.rank() == 0 ? lw.fn().Reshape(index, Dims{1}) : index;
  return AtIndices(lw, operand, indices, argument);
}

Places AlongDim(Lowering& lw, const Dims& operand, Value index, int64_t dim,
                std::string_view argument) {
  Places p;
  if (!index.valid()) return p;
  const auto rank = static_cast<int64_t>(operand.size());
  if (index.rank() != rank) {
    lw.Fail(InvalidArgument("Index tensor must have the same number of dimensions as self tensor"));
    return p;
  }
  bool same = true;
  for (int64_t d = 0; d < rank; ++d) same &= d == dim || index.dim(d) == operand[size_t(d)];
  const Value checked = CheckedIndex(lw, index, operand[size_t(dim)], argument, dim);
  p.value_dims = index.dims();
  p.vector_dim = rank;
  p.window_sizes.assign(size_t(rank), 1);
  Values components;
  for (int64_t d = 0; d < rank; ++d) {
    if (d == dim || !same) {
      p.inserted.push_back(d);
      p.index_map.push_back(d);
      const hlo::Type iota{checked.dtype(), index.dims()};
      components.push_back(d == dim ? checked : lw.fn().Iota(iota, d));
    } else {
      p.batching.push_back(d);
    }
  }
  p.indices = Vectors(lw, std::move(components));
  return p;
}

Value ReadAt(Lowering& lw, Value operand, const Places& p) {
  if (!operand.valid()) return operand;
  if (!p.indices.valid()) return p.value_dims == operand.dims() ? operand : Value();
  if (NumElements(p.value_dims) == 0 || operand.numel() == 0) {
    return lw.fn().Constant({operand.dtype(), p.value_dims}, int64_t{0});
  }
  return lw.fn().Gather(operand, p.indices,
                        {.offset_dims = p.window_dims,
                         .collapsed_slice_dims = p.inserted,
                         .operand_batching_dims = p.batching,
                         .start_indices_batching_dims = p.batching,
                         .start_index_map = p.index_map,
                         .index_vector_dim = p.vector_dim},
                        p.window_sizes);
}

namespace {

// Rank 0 counts as one dimension of size 1.
Value AtLeast1d(Lowering& lw, Value v) {
  return v.valid() && v.rank() == 0 ? lw.fn().Reshape(v, Dims{1}) : v;
}

Values Index(Lowering& lw) {
  const Value self = lw.Tensor("self");
  return {ReadAt(lw, self, AtIndices(lw, self.dims(), lw.Tensors("indices"), "indices"))};
}

Values Gather(Lowering& lw) {
  const Dims result = lw.TensorDims("index");
  Value self = AtLeast1d(lw, lw.Tensor("self")), index = AtLeast1d(lw, lw.Tensor("index"));
  const int64_t dim = WrapDim(lw.Int("dim"), self.rank());
  if (index.numel() == 0) return {lw.fn().Constant({self.dtype(), result}, int64_t{0})};
  // What no entry can reach is cut off, so that the other dimensions go along.
  Dims limits = index.dims();
  if (self.rank() == index.rank()) {
    limits[size_t(dim)] = self.dim(dim);
    self = lw.fn().Slice(self, Dims(limits.size(), 0), limits, Dims(limits.size(), 1));
  }
  return {
      lw.fn().Reshape(ReadAt(lw, self, AlongDim(lw, self.dims(), index, dim, "index")), result)};
}

Values IndexSelect(Lowering& lw) {
  const Dims sizes = lw.TensorDims("self");
  const Value self = AtLeast1d(lw, lw.Tensor("self"));
  const int64_t dim = WrapDim(lw.Int("dim"), self.rank());
  Value index = AtLeast1d(lw, lw.Tensor("index"));
  if (index.rank() != 1) {
    return {lw.Fail(OutOfRange("index_select(): Index is supposed to be a vector"))};
  }
  const Value out = ReadAt(lw, self, AtRows(lw, self.dims(), index, dim, "index"));
  if (!sizes.empty()) return {out};
  if (index.numel() != 1) {
    return {lw.Fail(OutOfRange("index_select(): Index to scalar can have only 1 value"))};
  }
  return {lw.fn().Reshape(out, Dims{})};
}

Values Take(Lowering& lw) {
  const Value self = lw.Tensor("self"), index = lw.Tensor("index");
  const Value flat = lw.fn().Reshape(self, Dims{self.numel()});
  return {ReadAt(lw, flat, AtIndices(lw, flat.dims(), {index}, "index"))};
}

Values MaskedFill(Lowering& lw) {
  const Value self = lw.Tensor("self");
  if (!IsBool(lw.TensorType("mask"))) {
    return {lw.Fail(
        InvalidArgument("masked_fill_ only supports boolean masks, but got mask with dtype ",
                        TorchName(lw.TensorType("mask"))))};
  }
  const Value value = lw.TensorAs("value", self.dtype());
  return {lw.fn().Select(lw.Tensor("mask"), value, self)};
}

constexpr OpDef Indexing(std::string_view name, LowerFn lower, std::string_view indexes) {
  return {.name = name, .kind = Kind::kIndexing, .lower = lower, .indexes = indexes};
}

constexpr OpDef kRows[] = {
    Indexing("aten::gather", Gather, "index:dim"),
    Indexing("aten::index.Tensor", Index, "indices:*"),
    Indexing("aten::index_select", IndexSelect, "index:dim"),
    // PyTorch's functional forms clone and fill: one program here instead of two.
    Fitting(Pointwise("aten::masked_fill.Scalar", MaskedFill, In::kSelf, Out::kAsLowered)),
    Pointwise("aten::masked_fill.Tensor", MaskedFill, In::kSelf, Out::kAsLowered),
    Indexing("aten::take", Take, "index:*"),
};

}  // namespace

std::span<const OpDef> IndexingOps() { return kRows; }

}  // namespace tpu::ops
