// _grouped_mm: matrix products over runs of rows, columns or contracted elements whose ends are
// data (mixture-of-experts layers). Work grows with the rows plus one tile a group, not with rows
// times groups: a loop walks tiles, and a tile never crosses the end of its group.
// What it is not: scaled (float8) products.
#include <algorithm>

#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/rows.h"

namespace tpu::ops {
namespace {

using hlo::Value;
using hlo::Values;

// A tile about as long as a group is on average.
int64_t TileOf(int64_t length, int64_t groups) {
  int64_t tile = 8;
  while (tile < 128 && tile * groups < length) tile *= 2;
  return tile;
}

Value PadTail(hlo::Function& fn, Value a, int64_t dim, int64_t by) {
  const auto rank = static_cast<size_t>(a.rank());
  Dims high(rank, 0);
  high[static_cast<size_t>(dim)] = by;
  return fn.Pad(a, fn.Scalar(a.dtype(), int64_t{0}), Dims(rank, 0), high, Dims(rank, 0));
}

// `size` elements of dimension `dim` from `start`.
Value Cut(hlo::Function& fn, Value a, int64_t dim, Value start, int64_t size) {
  Values starts(static_cast<size_t>(a.rank()), Like(start, int64_t{0}));
  starts[static_cast<size_t>(dim)] = start;
  Dims sizes = a.dims();
  sizes[static_cast<size_t>(dim)] = size;
  return fn.DynamicSlice(a, starts, sizes);
}

Value Paste(hlo::Function& fn, Value a, Value part, int64_t dim, Value start) {
  Values starts(static_cast<size_t>(a.rank()), Like(start, int64_t{0}));
  starts[static_cast<size_t>(dim)] = start;
  return fn.DynamicUpdateSlice(a, part, starts);
}

struct Step {
  Value group, start, end;  // i32 scalars
  Value inside;             // i1[tile]: which elements belong to the group
};

// Walks all tiles; `body` gives the new accumulator.
Value Walk(hlo::Function& fn, Value offsets, int64_t tile, Value accumulator, const Values& extra,
           const std::function<Value(hlo::Function&, const Step&, Value, const Values&)>& body) {
  const int64_t groups = offsets.dim(0);
  const Value zero = fn.Scalar(DType::kI32, int64_t{0});
  Values state = {zero, zero, accumulator, offsets};
  state.insert(state.end(), extra.begin(), extra.end());
  return fn.While(
      state,
      [groups](hlo::Function&, const Values& v) {
        return Values{Lt(v[0], static_cast<double>(groups))};
      },
      [&](hlo::Function& f, const Values& v) {
        Step s{v[0], v[1], f.Reshape(f.DynamicSlice(v[3], {v[0]}, Dims{1}), {}), {}};
        const Value at = f.Iota({DType::kI32, {tile}}, 0) + f.BroadcastTo(s.start, Dims{tile});
        s.inside = Lt(at, f.BroadcastTo(s.end, Dims{tile}));
        Values out = v;
        out[2] = body(f, s, v[2], Values(v.begin() + 4, v.end()));
        const Value next = s.start + static_cast<double>(tile);
        const Value done = Ge(next, s.end);
        out[0] = f.Select(done, s.group + 1.0, s.group);
        out[1] = f.Select(done, s.end, next);
        return out;
      })[2];
}

Value Masked(hlo::Function& fn, Value tile, Value inside, int64_t dim, Value otherwise) {
  return fn.Select(fn.BroadcastInDim(inside, tile.dims(), Dims{dim}), tile, otherwise);
}

// Rows of `a` [M, K] in groups, times b[group] [K, N]: [M, N].
Value ByRows(hlo::Function& fn, Value a, Value b, Value offsets, DType acc) {
  const int64_t m = a.dim(0), tile = TileOf(m, b.dim(0));
  const Value zeros = fn.Constant({acc, {m + tile, b.dim(2)}}, int64_t{0});
  const Value out =
      Walk(fn, offsets, tile, zeros, {PadTail(fn, a, 0, tile), b},
           [&](hlo::Function& f, const Step& s, Value sum, const Values& in) {
             const Value matrix = f.Reshape(Cut(f, in[1], 0, s.group, 1), Dims{b.dim(1), b.dim(2)});
             const Value product = f.DotGeneral(Cut(f, in[0], 0, s.start, tile), matrix, {}, {},
                                                Dims{1}, Dims{0}, acc);
             const Value old = Cut(f, sum, 0, s.start, tile);
             return Paste(f, sum, Masked(f, product, s.inside, 0, old), 0, s.start);
           });
  return fn.Slice(out, Dims{0, 0}, Dims{m, b.dim(2)}, Dims{1, 1});
}

// Columns of `b` [K, N] in groups, after a[group] [M, K]: [M, N].
Value ByColumns(hlo::Function& fn, Value a, Value b, Value offsets, DType acc) {
  const Value out =
      ByRows(fn, fn.Transpose(b, Dims{1, 0}), fn.Transpose(a, Dims{0, 2, 1}), offsets, acc);
  return fn.Transpose(out, Dims{1, 0});
}

// The contracted dimension of `a` [M, K] and `b` [K, N] in groups: [G, M, N].
Value ByContraction(hlo::Function& fn, Value a, Value b, Value offsets, DType acc) {
  const int64_t k = a.dim(1), m = a.dim(0), n = b.dim(1), groups = offsets.dim(0);
  const int64_t tile = TileOf(k, groups);
  const Value zeros = fn.Constant({acc, {groups, m, n}}, int64_t{0});
  return Walk(fn, offsets, tile, zeros, {PadTail(fn, a, 1, tile), PadTail(fn, b, 0, tile)},
              [&](hlo::Function& f, const Step& s, Value sum, const Values& in) {
                Value left = Cut(f, in[0], 1, s.start, tile),
                      right = Cut(f, in[1], 0, s.start, tile);
                left = Masked(f, left, s.inside, 1, Like(left, int64_t{0}));
                right = Masked(f, right, s.inside, 0, Like(right, int64_t{0}));
                const Value part = f.DotGeneral(left, right, {}, {}, Dims{1}, Dims{0}, acc);
                const Value old = Cut(f, sum, 0, s.group, 1);
                return Paste(f, sum, old + Unsqueeze(part, 0), 0, s.group);
              });
}

Values GroupedMm(Lowering& lw) {
  hlo::Function& fn = lw.fn();
  const Value a = lw.Tensor("self"), b = lw.Tensor("mat2");
  if (!a.valid() || !b.valid()) return {Value()};
  const DType acc = OpMathType(a.dtype());
  if (lw.Has("bias")) return {lw.Fail(Unimplemented("a grouped product with a bias"))};
  if (a.dtype() != b.dtype()) {
    return {lw.Fail(InvalidArgument("a grouped product of ", TorchName(a.dtype()), " and ",
                                    TorchName(b.dtype())))};
  }
  Value out;
  if (a.rank() == 3 && b.rank() == 3) {
    out = fn.DotGeneral(a, b, Dims{0}, Dims{0}, Dims{2}, Dims{1}, acc);
  } else {
    if (!lw.Has("offs")) return {lw.Fail(InvalidArgument("a grouped product needs offs"))};
    const Value offsets = lw.TensorAs("offs", DType::kI32);
    // Ends past the tensor are those of the tensor: no tile may start there.
    const int64_t length = a.rank() == 2 ? a.dim(b.rank() == 2 ? 1 : 0) : b.dim(1);
    const Value bounded =
        fn.Clamp(fn.Scalar(DType::kI32, int64_t{0}), offsets, fn.Scalar(DType::kI32, length));
    out = a.rank() == 3   ? ByColumns(fn, a, b, bounded, acc)
          : b.rank() == 3 ? ByRows(fn, a, b, bounded, acc)
                          : ByContraction(fn, a, b, bounded, acc);
  }
  return {Cast(out, lw.Type("out_dtype").value_or(a.dtype()))};
}

constexpr OpDef kRows[] = {
    // Composite in PyTorch, as a loop on the host that reads `offs`: here one program.
    {.name = "aten::_grouped_mm",
     .kind = Kind::kMatmul,
     .lower = GroupedMm,
     .status = StatusKind::kPartial,
     .note = "no bias; PyTorch's kernels refuse it, too"},
};

}  // namespace

std::span<const OpDef> GroupedMatmulOps() { return kRows; }

}  // namespace tpu::ops
