// Embedding tables: rows by index, bags of rows, their derivatives, and renormalisation.
// What it is not: index_select. An index here is never negative, and one outside of the table
// raises IndexError at the next synchronisation.
#include "ops/lowering.h"
#include "ops/norm_layers.h"
#include "ops/pnorm.h"
#include "ops/rows.h"

namespace tpu::ops {
namespace {

using hlo::Value;
using hlo::Values;

enum class Mode : int64_t { kSum = 0, kMean = 1, kMax = 2 };

// Rows of `table` [V, D] at `index`: index.dims + [D]. Out-of-range indices are clamped.
Value Rows(hlo::Function& fn, Value table, Value index) {
  hlo::GatherDims d;
  d.offset_dims = {index.rank()};
  d.collapsed_slice_dims = {0};
  d.start_index_map = {0};
  d.index_vector_dim = index.rank();
  return fn.Gather(table, index, d, Dims{1, table.dim(1)});
}

// Elements of `list` [V] at `index`.
Value Elements(hlo::Function& fn, Value list, Value index) {
  hlo::GatherDims d;
  d.collapsed_slice_dims = {0};
  d.start_index_map = {0};
  d.index_vector_dim = index.rank();
  return fn.Gather(list, index, d, Dims{1});
}

Values Plus(hlo::Function&, const Values& v) { return {v[0] + v[1]}; }
Values Second(hlo::Function&, const Values& v) { return {v[1]}; }

// `base` with `updates` combined into the rows (or elements, if base is a list) that index[n]
// names. Indices out of range change nothing.
Value ScatterRows(hlo::Function& fn, Value base, Value index, Value updates, const hlo::Body& body,
                  bool sorted = false) {
  hlo::ScatterDims d;
  if (base.rank() == 2) d.update_window_dims = {1};
  d.inserted_window_dims = {0};
  d.scatter_dims_to_operand_dims = {0};
  d.index_vector_dim = 1;
  const Values out = fn.Scatter({base}, index, {updates}, d, body, /*unique=*/false, sorted);
  return out.empty() ? Value() : out[0];
}

Value Zeros(hlo::Function& fn, DType dtype, Dims dims) {
  return fn.Constant({dtype, std::move(dims)}, int64_t{0});
}

Value CheckedIndices(Lowering& lw, int64_t table_size) {
  const Value index = lw.CheckIndex(lw.Tensor("indices"), table_size, "indices", 0, /*wrap=*/false);
  return Convert(index, DType::kI32);
}

// One row for each index, flat, with entries that must not count sent out of range.
Value FlatIndices(Lowering& lw, int64_t table_size, bool* none) {
  const Value raw = lw.Tensor("indices");
  const Value index = Convert(lw.fn().Reshape(raw, Dims{raw.numel()}), DType::kI32);
  *none = raw.numel() == 0;
  const int64_t padding = lw.Int("padding_idx");
  if (padding < 0) return index;
  return Select(Eq(index, static_cast<double>(padding)), Like(index, table_size), index);
}

// How often each of a table's rows is named.
Value Counts(hlo::Function& fn, Value index, int64_t table_size, DType dtype) {
  return ScatterRows(fn, Zeros(fn, dtype, {table_size}), index,
                     fn.Constant({dtype, index.dims()}, int64_t{1}), Plus);
}

// --- Single rows. `embedding` is composite in PyTorch (index_select and two reshapes): one program
// here, and an error that names it.

Values Embedding(Lowering& lw) {
  const Value table = lw.Tensor("weight");
  if (table.rank() != 2) return {lw.Fail(InvalidArgument("'weight' must be 2-D"))};
  return {Rows(lw.fn(), table, CheckedIndices(lw, table.dim(0)))};
}

Values EmbeddingDenseBackward(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  Value g = WideTensor(lw, "grad_output");
  const int64_t rows = lw.Int("num_weights"), width = g.dim(g.rank() - 1);
  bool none = false;
  const Value index = FlatIndices(lw, rows, &none);
  const Value base = Zeros(fn, g.dtype(), {rows, width});
  if (none) return {base};
  g = fn.Reshape(g, Dims{index.dim(0), width});
  if (lw.Bool("scale_grad_by_freq")) {
    g = g / Unsqueeze(Elements(fn, Counts(fn, index, rows, g.dtype()), index), 1);
  }
  return {ScatterRows(fn, base, index, g, Plus)};
}

// Named rows longer than max_norm are scaled down to it. A row named twice gets the same value
// twice.
Values EmbeddingRenorm(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Value raw = lw.Tensor("self");
  if (lw.Tensor("indices").numel() == 0) return {raw};
  const Value table = Convert(raw, OpMathType(raw.dtype()));
  const Value index = CheckedIndices(lw, table.dim(0));
  const Value flat = fn.Reshape(index, Dims{index.numel()}), rows = Rows(fn, table, flat);
  const Value norm = Unsqueeze(PNorm(rows, lw.StaticNumber("norm_type"), Dims{1}), 1);
  const Value limit = lw.Number("max_norm", table.dtype());
  const Value scaled = Select(Gt(norm, limit), rows * (limit / (norm + 1e-7)), rows);
  return {ScatterRows(fn, raw, flat, Convert(scaled, raw.dtype()), Second)};
}

// --- Bags: bag b holds the indices from offsets[b] on.

struct Bags {
  int64_t count = 0;  // of bags
  Value index;        // i32[N] into the table
  Value counts;       // i1[N]: no padding
  Value bag;          // i32[N]
};

// The bag of each position: how many offsets are at or before it, less one. Offsets ascend, so many
// of them are searched by halving: the first `low` are at or before the position, those from `high`
// on are not.
Value BagOfEach(hlo::Function& fn, Value offsets, int64_t n) {
  const int64_t bags = offsets.dim(0);
  constexpr int64_t kCountDirectly = int64_t{1} << 20;
  if (n * bags <= kCountDirectly) {
    const Value at = fn.Iota({DType::kI32, {n, bags}}, 0);
    const Value before = Convert(Le(Unsqueeze(offsets, 0), at), DType::kI32);
    return fn.Reduce(before, hlo::Monoid::kAdd, Dims{1}) - 1.0;
  }
  const Value at = fn.Iota({DType::kI32, {n}}, 0);
  const Value low = Like(at, int64_t{0}), high = Like(at, bags);
  const Values found = fn.While(
      {low, high},
      [](hlo::Function& f, const Values& v) {
        return Values{f.Reduce(Lt(v[0], v[1]), hlo::Monoid::kOr, Dims{0})};
      },
      [&](hlo::Function& f, const Values& v) {
        const Value middle = (v[0] + v[1]) / 2.0;
        const Value open = Lt(v[0], v[1]);
        const Value before = Le(Elements(f, offsets, middle), at);
        return Values{f.Select(open & before, middle + 1.0, v[0]),
                      f.Select(open & ~before, middle, v[1])};
      });
  return found.empty() ? Value() : found[0] - 1.0;
}

Value NotPadding(Lowering& lw, Value index) {
  const int64_t padding = lw.Int("padding_idx");
  return padding < 0 ? lw.fn().Constant({DType::kBool, index.dims()}, true)
                     : Ne(index, static_cast<double>(padding));
}

// As they were given, before they are cut to 32 bits.
void CheckOffsets(Lowering& lw, Value offsets, int64_t n) {
  const int64_t size = offsets.dim(0);
  if (size == 0) return;
  const auto at = [&](int64_t i) { return lw.fn().Slice(offsets, Dims{i}, Dims{i + 1}, Dims{1}); };
  const Value first = at(0), last = at(size - 1);
  lw.CheckValue(Ne(first, 0.0), first, "offsets",
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start "
                "from position 0");
  if (lw.Bool("include_last_offset")) {
    lw.CheckValue(Ne(last, Like(last, n)), last, "offsets[-1]",
                  "the last offset value should be the size of the indices tensor");
  } else {
    lw.CheckValue(Gt(last, Like(last, n)), last, "offsets[-1]",
                  "offsets[-1] can not be greater than input's length");
  }
}

Bags BagsOf(Lowering& lw, int64_t table_size) {
  Bags b;
  b.index = CheckedIndices(lw, table_size);
  const Value given = lw.Tensor("offsets");
  b.count = given.dim(0) - (lw.Bool("include_last_offset") ? 1 : 0);
  CheckOffsets(lw, given, b.index.numel());
  Value offsets = Convert(given, DType::kI32);
  if (b.count < 0) {
    lw.Fail(InvalidArgument("include_last_offset: number of offsets should be at least 1"));
    return b;
  }
  offsets = lw.fn().Slice(offsets, Dims{0}, Dims{b.count}, Dims{1});
  b.bag = BagOfEach(lw.fn(), offsets, b.index.dim(0));
  b.counts = NotPadding(lw, b.index);
  return b;
}

// The largest entry of each column and where it came from; of equal ones the first.
struct Largest {
  Value value, position;
};
Largest LargestOfBags(hlo::Function& fn, const Bags& b, Value rows) {
  const Dims dims = {b.count, rows.dim(1)};
  const Value position = fn.Iota({DType::kI32, rows.dims()}, 0);
  const Value bag = Select(b.counts, b.bag, Like(b.bag, b.count));  // padding: out of range
  hlo::ScatterDims d;
  d.update_window_dims = {1};
  d.inserted_window_dims = {0};
  d.scatter_dims_to_operand_dims = {0};
  d.index_vector_dim = 1;
  const Values out =
      fn.Scatter({Zeros(fn, rows.dtype(), dims), fn.Constant({DType::kI32, dims}, int64_t{-1})},
                 bag, {rows, position}, d, [](hlo::Function& f, const Values& v) {
                   const Value fresh = Lt(v[1], 0.0);
                   const Value better = Gt(v[2], v[0]) | (Eq(v[2], v[0]) & Lt(v[3], v[1])) | fresh;
                   return Values{f.Select(better, v[2], v[0]), f.Select(better, v[3], v[1])};
                 });
  return out.size() == 2 ? Largest{out[0], out[1]} : Largest{};
}

// `sparse` is the gradient's business.
Values EmbeddingBag(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Value table = WideTensor(lw, "weight");
  const int64_t width = table.dim(1);
  const Bags b = BagsOf(lw, table.dim(0));
  const Mode mode = static_cast<Mode>(lw.Int("mode"));
  const bool any = lw.Tensor("indices").numel() > 0 && b.count > 0;
  const Value empty = Zeros(fn, DType::kI64, {0});
  if (!any) {
    const bool max = mode == Mode::kMax;
    return {Zeros(fn, table.dtype(), {b.count, width}), Convert(b.bag, DType::kI64),
            Zeros(fn, DType::kI64, lw.TensorDims("offsets")),
            max ? Zeros(fn, DType::kI64, {b.count, width}) : empty};
  }
  Value rows = Rows(fn, table, b.index);
  const Value sizes = ScatterRows(fn, Zeros(fn, DType::kI32, {b.count}), b.bag,
                                  Convert(b.counts, DType::kI32), Plus, true);
  const Value bag = Convert(b.bag, DType::kI64);
  Value bag_size = Convert(sizes, DType::kI64);
  if (lw.Bool("include_last_offset")) {  // PyTorch keeps a place for the last offset
    bag_size = fn.Pad(bag_size, fn.Scalar(DType::kI64, int64_t{0}), Dims{0}, Dims{1}, Dims{0});
  }
  if (mode == Mode::kMax) {
    const Largest most = LargestOfBags(fn, b, rows);
    const Value where = Convert(Elements(fn, b.index, most.position), DType::kI64);
    return {most.value, bag, bag_size,
            Select(Lt(most.position, 0.0), Like(where, int64_t{-1}), where)};
  }
  if (lw.Has("per_sample_weights")) {
    rows = rows * Unsqueeze(lw.TensorAs("per_sample_weights", rows.dtype()), 1);
  }
  rows = Select(Unsqueeze(b.counts, 1), rows, Like(rows, 0.0));
  Value out = ScatterRows(fn, Zeros(fn, table.dtype(), {b.count, width}), b.bag, rows, Plus, true);
  if (mode == Mode::kMean) {
    out = out / Unsqueeze(Convert(Max(sizes, Like(sizes, int64_t{1})), out.dtype()), 1);
  }
  return {out, bag, bag_size, empty};
}

Values BagDenseBackward(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Value g = WideTensor(lw, "grad");
  const int64_t rows = lw.Int("num_weights"), width = g.dim(1);
  const Mode mode = static_cast<Mode>(lw.Int("mode"));
  const Value base = Zeros(fn, g.dtype(), {rows, width});
  bool none = false;
  const Value index = FlatIndices(lw, rows, &none);
  if (none) return {base};
  if (mode == Mode::kMax) {  // each column of a bag has its own row
    const Value row = Convert(lw.Tensor("maximum_indices"), DType::kI32);
    const Value column = fn.Iota(row.type(), 1);
    const Value flat = Select(Lt(row, 0.0), row, row * static_cast<double>(width) + column);
    const Value summed =
        ScatterRows(fn, Zeros(fn, g.dtype(), {rows * width}), fn.Reshape(flat, Dims{flat.numel()}),
                    fn.Reshape(g, Dims{g.numel()}), Plus);
    return {fn.Reshape(summed, base.dims())};
  }
  const Value bag = Convert(lw.Tensor("offset2bag"), DType::kI32);
  Value each = Rows(fn, g, bag);
  if (lw.Has("per_sample_weights")) {
    each = each * Unsqueeze(lw.TensorAs("per_sample_weights", g.dtype()), 1);
  }
  if (lw.Bool("scale_grad_by_freq")) {
    each = each / Unsqueeze(Elements(fn, Counts(fn, index, rows, g.dtype()), index), 1);
  }
  if (mode == Mode::kMean) {
    each = each / Unsqueeze(Elements(fn, lw.TensorAs("bag_size", g.dtype()), bag), 1);
  }
  return {ScatterRows(fn, base, index, each, Plus)};
}

Values BagBackward(Lowering& lw) {
  if (lw.Bool("sparse")) return {lw.Fail(Unimplemented("sparse gradients are not supported"))};
  return BagDenseBackward(lw);
}

Values BagWeightsBackward(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Value g = WideTensor(lw, "grad"), table = lw.TensorAs("weight", g.dtype());
  const Value raw = lw.Tensor("indices");
  if (raw.numel() == 0) return {Zeros(fn, g.dtype(), {0})};
  const Value index = Convert(raw, DType::kI32);
  Value bag = Convert(lw.Tensor("offset2bag"), DType::kI32);
  if (bag.numel() == 0) {
    bag = BagOfEach(fn, Convert(lw.Tensor("offsets"), DType::kI32), raw.dim(0));
  }
  const Value dot =
      fn.Reduce(Rows(fn, g, bag) * Rows(fn, table, index), hlo::Monoid::kAdd, Dims{1});
  return {Select(NotPadding(lw, index), dot, Like(dot, 0.0))};
}

constexpr OpDef kRows[] = {
    {.name = "aten::embedding",
     .kind = Kind::kEmbedding,
     .lower = Embedding,
     .indexes = "indices:0"},
    {.name = "aten::embedding_dense_backward",
     .kind = Kind::kEmbedding,
     .lower = EmbeddingDenseBackward},
    {.name = "aten::embedding_renorm_",
     .kind = Kind::kEmbedding,
     .lower = EmbeddingRenorm,
     .statics = "norm_type",
     .indexes = "indices:0"},
    {.name = "aten::_embedding_bag",
     .kind = Kind::kEmbedding,
     .lower = EmbeddingBag,
     .indexes = "indices:0"},
    {.name = "aten::_embedding_bag_backward",
     .kind = Kind::kEmbedding,
     .lower = BagBackward,
     .status = StatusKind::kPartial,
     .note = "no sparse gradients"},
    {.name = "aten::_embedding_bag_dense_backward",
     .kind = Kind::kEmbedding,
     .lower = BagDenseBackward},
    {.name = "aten::_embedding_bag_forward_only",
     .kind = Kind::kEmbedding,
     .lower = EmbeddingBag,
     .indexes = "indices:0"},
    {.name = "aten::_embedding_bag_per_sample_weights_backward",
     .kind = Kind::kEmbedding,
     .lower = BagWeightsBackward},
};

}  // namespace

std::span<const OpDef> EmbeddingOps() { return kRows; }

}  // namespace tpu::ops
