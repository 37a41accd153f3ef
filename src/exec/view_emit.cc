// Reads and writes of strided views as StableHLO.
#include "exec/view_emit.h"

#include <cstdint>

namespace tpu::exec {
namespace {

using hlo::Function;
using hlo::Value;
using hlo::Values;

// Starts for every dimension of a slice: run-time where dynamic, else 0.
Values Starts(Function& fn, const std::vector<bool>& dynamic, const NextStart& next) {
  Values out;
  for (bool d : dynamic) out.push_back(d ? next() : fn.Scalar(DType::kI32, int64_t{0}));
  return out;
}

bool Any(const std::vector<bool>& v) {
  for (bool b : v) {
    if (b) return true;
  }
  return false;
}

Value EmitSlice(Value a, const shape::SliceStep& s, const NextStart& next) {
  Function& fn = *a.function();
  Dims extent(s.sizes.size()), zeros(s.sizes.size(), 0);
  bool strided = false;
  for (size_t d = 0; d < extent.size(); ++d) {
    extent[d] = s.sizes[d] == 0 ? 0 : (s.sizes[d] - 1) * s.steps[d] + 1;
    strided |= s.steps[d] != 1 && s.sizes[d] > 1;
  }
  if (Any(s.dynamic)) {
    a = fn.DynamicSlice(a, Starts(fn, s.dynamic, next), extent);
  } else if (extent != a.dims()) {
    a = fn.Slice(a, zeros, extent, Dims(extent.size(), 1));
  }
  return strided ? fn.Slice(a, zeros, extent, s.steps) : a;
}

// Flat positions start + sum i*strides of a grid of `sizes` in a base of `reach` elements, [n, 1].
// 64-bit index arithmetic is dear on a TPU, so only where 32 bits don't reach.
Value FlatPositions(Function& fn, const Dims& sizes, const Dims& strides, Value start,
                    int64_t reach) {
  const hlo::Type grid{reach > INT32_MAX ? DType::kI64 : DType::kI32, sizes};
  Value at = fn.BroadcastInDim(fn.Convert(start, grid.dtype), sizes, Dims{});
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (strides[d] == 0 || sizes[d] == 1) continue;
    at = fn.Binary(hlo::BinaryOp::kAdd, at,
                   fn.Binary(hlo::BinaryOp::kMultiply, fn.Iota(grid, int64_t(d)),
                             fn.Constant(grid, strides[d])));
  }
  return fn.Reshape(at, Dims{NumElements(sizes), 1});
}

Value EmitGather(Value flat, const shape::GatherStep& g, Value start) {
  Function& fn = *flat.function();
  hlo::GatherDims dims;
  dims.collapsed_slice_dims = {0};
  dims.start_index_map = {0};
  dims.index_vector_dim = 1;
  const Value at = FlatPositions(fn, g.sizes, g.strides, start, flat.numel());
  return fn.Reshape(fn.Gather(flat, at, dims, Dims{1}), g.sizes);
}

Value EmitScatter(Value flat, Value update, const Dims& strides, Value start) {
  Function& fn = *flat.function();
  hlo::ScatterDims dims;
  dims.inserted_window_dims = {0};
  dims.scatter_dims_to_operand_dims = {0};
  dims.index_vector_dim = 1;
  const Value at = FlatPositions(fn, update.dims(), strides, start, flat.numel());
  const Value values = fn.Reshape(update, Dims{update.numel()});
  return fn.Scatter(
      {flat}, at, {values}, dims, [](Function&, const Values& v) { return Values{v[1]}; },
      /*unique=*/true)[0];
}

// The update put between the elements that keep their value.
Value MergeMasked(Value region, Value update, const Dims& steps) {
  Function& fn = *region.function();
  Dims zeros(steps.size(), 0), interior(steps.size());
  for (size_t d = 0; d < steps.size(); ++d)
    interior[d] = update.dim(int64_t(d)) > 1 ? steps[d] - 1 : 0;
  const Value zero = fn.Scalar(update.dtype(), int64_t{0});
  const Value spread = fn.Pad(update, zero, zeros, zeros, interior);
  const Value ones = fn.Constant({DType::kBool, update.dims()}, true);
  const Value mask = fn.Pad(ones, fn.Scalar(DType::kBool, false), zeros, zeros, interior);
  return fn.Select(mask, spread, region);
}

}  // namespace

Value EmitRead(Value base, const shape::ReadPlan& plan, const NextStart& next) {
  Value a = base;
  if (!a.valid()) return a;
  Function& fn = *a.function();
  for (const shape::ReadStep& step : plan.steps) {
    if (const auto* r = std::get_if<shape::ReshapeStep>(&step)) {
      a = fn.Reshape(a, r->dims);
    } else if (const auto* t = std::get_if<shape::TransposeStep>(&step)) {
      a = fn.Transpose(a, t->perm);
    } else if (const auto* s = std::get_if<shape::SliceStep>(&step)) {
      a = EmitSlice(a, *s, next);
    } else if (const auto* b = std::get_if<shape::BroadcastStep>(&step)) {
      a = fn.BroadcastInDim(a, b->dims, b->mapping);
    } else {
      a = EmitGather(a, std::get<shape::GatherStep>(step), next());
    }
  }
  return a;
}

Value EmitWrite(Value base, Value value, const shape::WritePlan& plan, DimsView base_dims,
                const NextStart& next) {
  using Kind = shape::WritePlan::Kind;
  if (plan.kind == Kind::kNothing) return base;
  if (!value.valid()) return value;
  Function& fn = *value.function();
  Value update = fn.Reshape(fn.Transpose(value, plan.value_perm), plan.update_dims);
  if (plan.kind == Kind::kFull) return fn.Reshape(update, base_dims);
  Value b = fn.Reshape(base, plan.base_dims);
  if (plan.kind == Kind::kScatter) {
    return fn.Reshape(EmitScatter(b, update, plan.scatter_strides, next()), base_dims);
  }
  const Values starts = Starts(fn, plan.dynamic, next);
  if (plan.kind == Kind::kMasked) {
    Dims extent(plan.update_dims.size());
    for (size_t d = 0; d < extent.size(); ++d) {
      extent[d] = (plan.update_dims[d] - 1) * plan.steps[d] + 1;
    }
    update = MergeMasked(fn.DynamicSlice(b, starts, extent), update, plan.steps);
  }
  return fn.Reshape(fn.DynamicUpdateSlice(b, update, starts), base_dims);
}

Value EmitBits(Value a, DType dtype) {
  if (!a.valid() || a.dtype() == dtype) return a;
  Function& fn = *a.function();
  const DType from = a.dtype();
  if (IsBool(from)) return EmitBits(fn.Convert(a, DType::kU8), dtype);
  if (IsComplex(from)) {
    // Real and imaginary parts interleaved are the memory of a complex array.
    const Value real = fn.Unary(hlo::UnaryOp::kReal, a), imag = fn.Unary(hlo::UnaryOp::kImag, a);
    const Value pair =
        fn.Concatenate({hlo::Unsqueeze(real, a.rank()), hlo::Unsqueeze(imag, a.rank())}, a.rank());
    return EmitBits(fn.Reshape(pair, Dims{2 * a.numel()}), dtype);
  }
  if (IsBool(dtype)) {
    const Value bytes = EmitBits(a, DType::kU8);
    return fn.Compare(hlo::CompareOp::kNe, bytes, fn.Constant(bytes.type(), int64_t{0}));
  }
  if (IsComplex(dtype)) {
    const Value parts = EmitBits(a, RealOf(dtype));
    const int64_t n = parts.numel() / 2;
    const Value pair = fn.Reshape(parts, Dims{n, 2});
    const auto part = [&](int64_t k) {
      return fn.Reshape(fn.Slice(pair, Dims{0, k}, Dims{n, k + 1}, Dims{1, 1}), Dims{n});
    };
    const Value out = fn.Binary(hlo::BinaryOp::kComplex, part(0), part(1));
    return ItemSize(from) == ItemSize(dtype) ? fn.Reshape(out, a.dims()) : out;
  }
  const int64_t w_from = ItemSize(from), w_to = ItemSize(dtype);
  if (w_from == w_to) return fn.BitcastConvert(a, dtype);
  const int64_t n = a.numel() * w_from / w_to;
  if (w_from > w_to)
    return fn.Reshape(fn.BitcastConvert(fn.Reshape(a, Dims{a.numel()}), dtype), Dims{n});
  // Bytes past the last whole element are not part of any element.
  Value flat = fn.Reshape(a, Dims{a.numel()});
  if (n * (w_to / w_from) != a.numel())
    flat = fn.Slice(flat, Dims{0}, Dims{n * (w_to / w_from)}, Dims{1});
  return fn.BitcastConvert(fn.Reshape(flat, Dims{n, w_to / w_from}), dtype);
}

}  // namespace tpu::exec
