// What each op infers and refuses. No plugin needed.
#include <gtest/gtest.h>

#include "hlo/hlo.h"

namespace tpu::hlo {
namespace {

const Type kF23{DType::kF32, {2, 3}};

// The type that `build` gives for a parameter of `type`, or its error, as text.
std::string Outcome(const Type& type, const std::function<Value(Function&, Value)>& build) {
  Function fn;
  Value result = build(fn, fn.Parameter(type));
  EXPECT_EQ(result.valid(), fn.status().ok());
  return result.valid() ? ToString(result.type()) : fn.status().message();
}

std::string Bitcast(const Type& type, DType to) {
  return Outcome(type, [&](Function& fn, Value a) { return fn.BitcastConvert(a, to); });
}

TEST(Elementwise, BitcastConvert) {
  EXPECT_EQ(Bitcast(kF23, DType::kU32), "uint32[2, 3]");
  EXPECT_EQ(Bitcast(kF23, DType::kU8), "uint8[2, 3, 4]");
  EXPECT_EQ(Bitcast({DType::kU8, {5, 4}}, DType::kF32), "float32[5]");
  EXPECT_EQ(Bitcast({DType::kU8, {5, 3}}, DType::kF32),
            "stablehlo.bitcast_convert: uint8[5, 3] to float32 needs a last dimension of 4");
  EXPECT_EQ(Bitcast({DType::kU8, {}}, DType::kU16),
            "stablehlo.bitcast_convert: uint8[] to uint16 needs a last dimension of 2");
  for (auto [from, to] : {std::pair{DType::kC64, DType::kF32},
                          {DType::kF64, DType::kC64},
                          {DType::kC64, DType::kC128},
                          {DType::kBool, DType::kU8},
                          {DType::kI8, DType::kBool}}) {
    EXPECT_NE(Bitcast({from, {2}}, to).find("can't read the bits of"), std::string::npos);
  }
}

TEST(Elementwise, ResultDTypes) {
  EXPECT_EQ(Outcome({DType::kC64, {2}}, [](Function&, Value a) { return Abs(a); }), "float32[2]");
  EXPECT_EQ(Outcome({DType::kC128, {2}},
                    [](Function& fn, Value a) { return fn.Unary(UnaryOp::kImag, a); }),
            "float64[2]");
  EXPECT_EQ(Outcome(kF23, [](Function& fn, Value a) { return fn.Unary(UnaryOp::kIsFinite, a); }),
            "bool[2, 3]");
  EXPECT_EQ(
      Outcome(kF23, [](Function& fn, Value a) { return fn.Binary(BinaryOp::kComplex, a, a); }),
      "complex64[2, 3]");
  EXPECT_EQ(Outcome({DType::kC64, {2}}, [](Function&, Value a) { return Lt(a, a); }),
            "stablehlo.compare: complex numbers have no order: complex64[2]");
  EXPECT_EQ(Outcome({DType::kBF16, {2}},
                    [](Function& fn, Value a) { return fn.Binary(BinaryOp::kComplex, a, a); }),
            "stablehlo.complex: takes float32 or float64, not bfloat16[2]");
  EXPECT_EQ(Outcome({DType::kC64, {2}},
                    [](Function& fn, Value a) { return fn.Binary(BinaryOp::kRemainder, a, a); }),
            "stablehlo.remainder: takes integer or float, not complex64[2]");
}

TEST(Elementwise, NothingToDo) {
  Function fn;
  Value a = fn.Parameter(kF23);
  for (Value same :
       {fn.Convert(a, DType::kF32), fn.Reshape(a, Dims{2, 3}), fn.Transpose(a, Dims{0, 1}),
        fn.BroadcastTo(a, Dims{2, 3}), fn.Slice(a, Dims{0, 0}, Dims{2, 3}, Dims{1, 1}),
        fn.Concatenate({a}, 0), fn.Reverse(a, {})}) {
    EXPECT_EQ(same.id(), a.id());
  }
  EXPECT_EQ(fn.num_ops(), 0);
}

TEST(Shapes, Transpose) {
  EXPECT_EQ(Outcome(kF23, [](Function& fn, Value a) { return fn.Transpose(a, Dims{1, 0}); }),
            "float32[3, 2]");
  EXPECT_EQ(Outcome(kF23, [](Function& fn, Value a) { return fn.Transpose(a, Dims{1, 1}); }),
            "stablehlo.transpose: permutation [1, 1] are not different dimensions of rank 2");
  EXPECT_EQ(Outcome(kF23, [](Function& fn, Value a) { return fn.Transpose(a, Dims{0}); }),
            "stablehlo.transpose: [0] is no permutation of the dimensions of float32[2, 3]");
}

TEST(Shapes, Broadcast) {
  EXPECT_EQ(Outcome(kF23, [](Function& fn, Value a) { return fn.BroadcastTo(a, Dims{4, 2, 3}); }),
            "float32[4, 2, 3]");
  EXPECT_EQ(Outcome(kF23, [](Function& fn, Value a) { return fn.BroadcastTo(a, Dims{3}); }),
            "broadcast: float32[2, 3] can't have the shape [3]");
  EXPECT_EQ(
      Outcome(kF23,
              [](Function& fn, Value a) { return fn.BroadcastInDim(a, Dims{2, 4}, Dims{0, 1}); }),
      "stablehlo.broadcast_in_dim: dimension 1 of float32[2, 3] doesn't fit [2, 4] by [0, 1]");
}

TEST(Shapes, Slices) {
  auto slice = [](Dims starts, Dims limits, Dims strides) {
    return Outcome(kF23,
                   [&](Function& fn, Value a) { return fn.Slice(a, starts, limits, strides); });
  };
  EXPECT_EQ(slice({0, 0}, {2, 3}, {1, 2}), "float32[2, 2]");
  EXPECT_EQ(slice({2, 0}, {2, 3}, {1, 1}), "float32[0, 3]");
  EXPECT_EQ(slice({0, 0}, {2, 4}, {1, 1}),
            "stablehlo.slice: starts [0, 0], limits [2, 4], strides [1, 1] leave float32[2, 3]");
  EXPECT_NE(slice({0, 0}, {2, 3}, {0, 1}).find("leave"), std::string::npos);
  EXPECT_EQ(Outcome(kF23,
                    [](Function& fn, Value a) {
                      Value i = fn.Scalar(DType::kI32, 0), j = fn.Scalar(DType::kI64, 0);
                      return fn.DynamicSlice(a, {i, j}, Dims{1, 1});
                    }),
            "stablehlo.dynamic_slice: starts must be integer scalars of one dtype: int32[] and "
            "int64[]");
  EXPECT_EQ(Outcome(kF23,
                    [](Function& fn, Value a) {
                      Value i = fn.Scalar(DType::kI32, 0);
                      return fn.DynamicSlice(a, {i, i}, Dims{1, 4});
                    }),
            "stablehlo.dynamic_slice: can't take [1, 4] of float32[2, 3]");
}

TEST(Shapes, PadAndConcatenate) {
  EXPECT_EQ(Outcome(kF23,
                    [](Function& fn, Value a) {
                      return fn.Pad(a, fn.Scalar(DType::kF32, 0), Dims{1, -1}, Dims{0, 0},
                                    Dims{2, 0});
                    }),
            "float32[5, 2]");
  EXPECT_EQ(Outcome(kF23,
                    [](Function& fn, Value a) {
                      return fn.Pad(a, fn.Scalar(DType::kI32, 0), Dims{1, 1}, Dims{0, 0},
                                    Dims{0, 0});
                    }),
            "stablehlo.pad: the padding value int32[] doesn't fit float32[2, 3]");
  EXPECT_EQ(Outcome(kF23, [](Function& fn, Value a) { return fn.Concatenate({a, a, a}, 1); }),
            "float32[2, 9]");
  EXPECT_EQ(
      Outcome(kF23, [](Function& fn,
                       Value a) { return fn.Concatenate({a, fn.Transpose(a, Dims{1, 0})}, 1); }),
      "stablehlo.concatenate: operands differ outside dimension 1: float32[2, 3] and "
      "float32[3, 2]");
}

TEST(Reductions, Shapes) {
  EXPECT_EQ(
      Outcome(kF23, [](Function& fn, Value a) { return fn.Reduce(a, Monoid::kMax, Dims{0}); }),
      "float32[3]");
  EXPECT_EQ(Outcome(kF23, [](Function& fn, Value a) { return fn.Reduce(a, Monoid::kOr, Dims{0}); }),
            "stablehlo.reduce: takes bool or integer, not float32[2, 3]");
  EXPECT_EQ(
      Outcome(kF23, [](Function& fn, Value a) { return fn.Reduce(a, Monoid::kAdd, Dims{2}); }),
      "stablehlo.reduce: dimensions [2] are not different dimensions of rank 2");
  EXPECT_EQ(Outcome({DType::kF32, {7}},
                    [](Function& fn, Value a) {
                      Window w{.size = 3, .stride = 2, .pad_low = 1, .pad_high = 1};
                      return fn.ReduceWindow(a, Monoid::kMax, {&w, 1});
                    }),
            "float32[4]");
  EXPECT_EQ(Outcome({DType::kF32, {7}},
                    [](Function& fn, Value a) {
                      Window w{.stride = 0};
                      return fn.ReduceWindow(a, Monoid::kMax, {&w, 1});
                    }),
            "stablehlo.reduce_window: sizes, strides and dilations of windows must be positive on "
            "float32[7]");
}

TEST(Contractions, Dot) {
  auto dot = [](const Type& a, const Type& b, Dims a_contract, Dims b_contract) {
    return Outcome(a, [&](Function& fn, Value x) {
      return fn.DotGeneral(x, fn.Parameter(b), {}, {}, a_contract, b_contract);
    });
  };
  EXPECT_EQ(dot(kF23, {DType::kF32, {3, 5}}, {1}, {0}), "float32[2, 5]");
  EXPECT_EQ(dot(kF23, {DType::kF32, {4, 5}}, {1}, {0}),
            "stablehlo.dot_general: float32[2, 3] and float32[4, 5] don't fit: batch [] and [], "
            "contracting [1] and [0]");
  EXPECT_EQ(dot(kF23, {DType::kBF16, {3, 5}}, {1}, {0}),
            "stablehlo.dot_general: operands differ in dtype: float32[2, 3] and bfloat16[3, 5]");
}

TEST(Contractions, Convolution) {
  auto conv = [](const Type& input, const Type& kernel, Window window, int64_t groups) {
    return Outcome(input, [&](Function& fn, Value x) {
      return fn.Convolution(x, fn.Parameter(kernel), {0, 1, 1, 0, 0, 1, {2}, {2}, {2}},
                            {&window, 1}, groups);
    });
  };
  const Type input{DType::kF32, {8, 4, 10}};
  EXPECT_EQ(conv(input, {DType::kF32, {6, 4, 3}}, {.stride = 2, .pad_low = 1, .pad_high = 1}, 1),
            "float32[8, 6, 5]");
  EXPECT_EQ(conv(input, {DType::kF32, {6, 2, 3}}, {}, 2), "float32[8, 6, 8]");
  EXPECT_EQ(
      conv(input, {DType::kF32, {6, 3, 3}}, {}, 1),
      "stablehlo.convolution: 4 input features, 3 of the kernel, 6 outputs and 1 groups don't "
      "fit: input float32[8, 4, 10], kernel float32[6, 3, 3]");
  // Stride 0 is an error here, not an abort there.
  EXPECT_NE(conv(input, {DType::kF32, {6, 4, 3}}, {.stride = 0}, 1).find("must be positive"),
            std::string::npos);
}

TEST(Indexing, Gather) {
  auto gather = [](Dims indices, GatherDims dims, Dims sizes, DType dtype = DType::kI64) {
    return Outcome(kF23, [&](Function& fn, Value a) {
      return fn.Gather(a, fn.Parameter({dtype, indices}), dims, sizes);
    });
  };
  GatherDims rows{.offset_dims = {2},
                  .collapsed_slice_dims = {0},
                  .start_index_map = {0},
                  .index_vector_dim = 2};
  EXPECT_EQ(gather({4, 5}, rows, {1, 3}), "float32[4, 5, 3]");
  EXPECT_EQ(gather({4, 5, 1}, rows, {1, 3}), "float32[4, 5, 3]");
  EXPECT_EQ(gather({4, 5}, rows, {1, 4}),
            "stablehlo.gather: slice sizes [1, 4]: operand float32[2, 3], indices int64[4, 5]");
  EXPECT_NE(gather({4, 5}, rows, {1, 3}, DType::kF32).find("indices must be integers"),
            std::string::npos);
  EXPECT_NE(gather({4, 5, 2}, rows, {1, 3}).find("indices have 2 components for 1 dimensions"),
            std::string::npos);
  rows.offset_dims = {3};
  EXPECT_NE(gather({4, 5}, rows, {1, 3}).find("offset dimensions [3]"), std::string::npos);
}

TEST(Indexing, Scatter) {
  auto scatter = [](Dims indices, Dims updates, DType dtype = DType::kF32) {
    return Outcome(kF23, [&](Function& fn, Value a) {
      ScatterDims rows{.update_window_dims = {1},
                       .inserted_window_dims = {0},
                       .scatter_dims_to_operand_dims = {0},
                       .index_vector_dim = 1};
      return fn.Scatter({a}, fn.Parameter({DType::kI32, indices}), {fn.Parameter({dtype, updates})},
                        rows, [](Function&, const Values& args) { return Values{args[1]}; })[0];
    });
  };
  EXPECT_EQ(scatter({4}, {4, 3}), "float32[2, 3]");
  EXPECT_EQ(scatter({4}, {5, 3}),
            "stablehlo.scatter: updates and indices don't fit: operand float32[2, 3], indices "
            "int32[4], updates float32[5, 3]");
  EXPECT_NE(scatter({4}, {4, 4}).find("larger than the operand"), std::string::npos);
  EXPECT_NE(scatter({4}, {4, 3}, DType::kF64).find("operands and updates differ"),
            std::string::npos);
}

TEST(Linalg, Shapes) {
  EXPECT_EQ(Outcome(kF23, [](Function& fn, Value a) { return fn.Cholesky(a, true); }),
            "stablehlo.cholesky: takes square matrices of float32, float64 or complex, not "
            "float32[2, 3]");
  EXPECT_EQ(Outcome({DType::kF64, {5, 2, 8}},
                    [](Function& fn, Value a) { return fn.Fft(a, "RFFT", Dims{8}); }),
            "complex128[5, 2, 5]");
  EXPECT_EQ(Outcome({DType::kC64, {5}},
                    [](Function& fn, Value a) { return fn.Fft(a, "IRFFT", Dims{9}); }),
            "float32[9]");
  EXPECT_EQ(
      Outcome({DType::kF32, {5}}, [](Function& fn, Value a) { return fn.Fft(a, "FFT", Dims{5}); }),
      "stablehlo.fft: FFT of length [5] doesn't take float32[5]");
  EXPECT_EQ(Outcome(kF23, [](Function& fn, Value a) { return fn.TopK(a, 2)[1]; }), "int32[2, 2]");
  EXPECT_EQ(Outcome(kF23, [](Function& fn, Value a) { return fn.TopK(a, 4)[0]; }),
            "chlo.top_k: can't take 4 of float32[2, 3]");
}

}  // namespace
}  // namespace tpu::hlo
