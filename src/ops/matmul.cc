// Matrix products: mm, bmm, addmm and their relatives. Half types accumulate in float32 and are
// rounded once; integers stay in their own type and wrap, as in PyTorch's CPU kernels.
// What it is not: linear, matmul, einsum, kron and the rest, which are composites of these.
//
// int64 products are plain dots here: XLA's CPU compiler takes them, TPU compilers refuse them.
#include <algorithm>
#include <string>

#include "ops/cast.h"
#include "ops/lowering.h"
#include "ops/rows.h"

namespace tpu::ops {
namespace {

using hlo::Value;
using hlo::Values;

// a x b over the last and last but one dimension, in the accumulation type. `batch` leading
// dimensions are shared.
Value Product(Lowering& lw, Value a, Value b, int64_t batch) {
  if (!a.valid() || !b.valid()) return {};
  if (a.dtype() != b.dtype()) {
    return lw.Fail(InvalidArgument("expected both matrices to have the same dtype, but got: ",
                                   TorchName(a.dtype()), " != ", TorchName(b.dtype())));
  }
  if (IsBool(a.dtype())) {
    return lw.Fail(Unimplemented("matrix products are not implemented for 'Bool'"));
  }
  const Dims shared = Iota(batch);
  const int64_t b_contract = b.rank() == batch + 1 ? batch : b.rank() - 2;
  return lw.fn().DotGeneral(a, b, shared, shared, Dims{a.rank() - 1}, Dims{b_contract},
                            OpMathType(a.dtype()));
}

// beta * self + alpha * product. With beta == 0 PyTorch doesn't read self: its NaNs don't count.
Value ScaledSum(Lowering& lw, Value self, Value product) {
  if (!self.valid() || !product.valid()) return {};
  const DType t = product.dtype();
  const Value beta = lw.Number("beta", t), alpha = lw.Number("alpha", t);
  const Value added = lw.fn().BroadcastTo(Cast(self, t), product.dims());
  const Value zero = lw.fn().Constant(product.type(), int64_t{0});
  return lw.fn().Select(Eq(beta, Like(beta, int64_t{0})), zero, added * beta) + product * alpha;
}

bool SameTypes(Lowering& lw, std::string_view first, std::string_view second) {
  const DType a = lw.TensorType(first), b = lw.TensorType(second);
  if (a == b) return true;
  lw.Fail(InvalidArgument("expected ", first, " and ", second, " to have the same dtype, but got: ",
                          TorchName(a), " != ", TorchName(b)));
  return false;
}

// The value in the operands' own type: one rounding for half types.
Values Rounded(Value v, DType t) { return {Cast(v, t)}; }

Values Mm(Lowering& lw) {
  return Rounded(Product(lw, lw.Tensor("self"), lw.Tensor("mat2"), 0), lw.TensorType("self"));
}

Values Bmm(Lowering& lw) {
  return Rounded(Product(lw, lw.Tensor("self"), lw.Tensor("mat2"), 1), lw.TensorType("self"));
}

Values Mv(Lowering& lw) {
  return Rounded(Product(lw, lw.Tensor("self"), lw.Tensor("vec"), 0), lw.TensorType("self"));
}

// mm.dtype, bmm.dtype: the accumulator is the result.
template <int batch>
Values MmOfType(Lowering& lw) {
  const DType t = lw.Type("out_dtype").value_or(lw.TensorType("self"));
  return Rounded(Product(lw, lw.Tensor("self"), lw.Tensor("mat2"), batch), t);
}

Value AddmmSum(Lowering& lw) {
  if (!SameTypes(lw, "self", "mat1")) return {};
  return ScaledSum(lw, lw.Tensor("self"), Product(lw, lw.Tensor("mat1"), lw.Tensor("mat2"), 0));
}

Values Addmm(Lowering& lw) { return Rounded(AddmmSum(lw), lw.TensorType("self")); }

Values AddmmActivation(Lowering& lw) {
  const Value sum = AddmmSum(lw);
  if (!sum.valid()) return {sum};
  const Value zero = Like(sum, 0.0);
  const Value out = lw.Bool("use_gelu") ? sum * 0.5 * (1.0 + Erf(sum * 0.70710678118654752440))
                                        : lw.fn().Select(Lt(sum, zero), zero, sum);  // keeps NaN
  return Rounded(out, lw.TensorType("self"));
}

Values Baddbmm(Lowering& lw) {
  if (!SameTypes(lw, "self", "batch1")) return {Value()};
  const Value product = Product(lw, lw.Tensor("batch1"), lw.Tensor("batch2"), 1);
  return Rounded(ScaledSum(lw, lw.Tensor("self"), product), lw.TensorType("self"));
}

// The sum over the batch is one longer contraction.
Values Addbmm(Lowering& lw) {
  const DType t = lw.TensorType("self");
  if (!SameTypes(lw, "self", "batch1") || !SameTypes(lw, "batch1", "batch2")) return {Value()};
  if (IsBool(t)) return {lw.Fail(Unimplemented("addbmm is not implemented for 'Bool'"))};
  const Value product = lw.fn().DotGeneral(lw.Tensor("batch1"), lw.Tensor("batch2"), Dims{}, Dims{},
                                           Dims{0, 2}, Dims{0, 1}, OpMathType(t));
  return Rounded(ScaledSum(lw, lw.Tensor("self"), product), t);
}

Values Addmv(Lowering& lw) {
  if (!SameTypes(lw, "self", "mat")) return {Value()};
  const Value product = Product(lw, lw.Tensor("mat"), lw.Tensor("vec"), 0);
  return Rounded(ScaledSum(lw, lw.Tensor("self"), product), lw.TensorType("self"));
}

// An outer product is elementwise work. Bool: and, or.
Values Addr(Lowering& lw) {
  const DType t = PromoteTypes(lw.TensorType("self"),
                               PromoteTypes(lw.TensorType("vec1"), lw.TensorType("vec2")));
  const DType math = OpMathType(t);
  const Value rows = lw.TensorAs("vec1", math), columns = lw.TensorAs("vec2", math);
  if (!rows.valid() || !columns.valid()) return {Value()};
  return Rounded(ScaledSum(lw, lw.Tensor("self"), Unsqueeze(rows, 1) * columns), t);
}

template <bool conjugate>
Values Dot(Lowering& lw) {
  const char* second = lw.Has("tensor") ? "tensor" : "other";
  const DType t = lw.TensorType("self");
  if (!SameTypes(lw, "self", second)) return {Value()};
  if (IsBool(t)) return {lw.Fail(Unimplemented("\"dot\" not implemented for 'Bool'"))};
  Value a = lw.Tensor("self");
  if (conjugate && IsComplex(t)) {
    a = lw.fn().Binary(hlo::BinaryOp::kComplex, lw.fn().Unary(hlo::UnaryOp::kReal, a),
                       -lw.fn().Unary(hlo::UnaryOp::kImag, a));
  }
  return Rounded(
      lw.fn().DotGeneral(a, lw.Tensor(second), Dims{}, Dims{}, Dims{0}, Dims{0}, OpMathType(t)), t);
}

Values IntMm(Lowering& lw) {
  const Value a = lw.Tensor("self"), b = lw.Tensor("mat2");
  return {lw.fn().DotGeneral(a, b, Dims{}, Dims{}, Dims{1}, Dims{0}, DType::kI32)};
}

constexpr OpDef Row(std::string_view name, LowerFn lower) {
  return {.name = name, .kind = Kind::kMatmul, .lower = lower};
}

constexpr OpDef kRows[] = {
    Row("aten::_addmm_activation", AddmmActivation),
    Row("aten::_int_mm", IntMm),
    Row("aten::addbmm", Addbmm),
    Row("aten::addmm", Addmm),
    Row("aten::addmv", Addmv),
    Row("aten::addr", Addr),
    Row("aten::baddbmm", Baddbmm),
    Row("aten::bmm", Bmm),
    {.name = "aten::bmm.dtype", .kind = Kind::kMatmul, .lower = MmOfType<1>, .meta = Meta::kInfer},
    Row("aten::dot", Dot<false>),
    Row("aten::mm", Mm),
    {.name = "aten::mm.dtype", .kind = Kind::kMatmul, .lower = MmOfType<0>, .meta = Meta::kInfer},
    // Composite in PyTorch: a row because that makes an empty vector and adds to it in a second
    // call.
    Row("aten::mv", Mv),
    Row("aten::vdot", Dot<true>),
};

}  // namespace

std::span<const OpDef> MatmulOps() { return kRows; }

}  // namespace tpu::ops
