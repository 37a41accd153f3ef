// Cases for hlo_compile_test: shapes, reductions, contractions, indexing, control flow, linear
// algebra.
#include <limits>

#include "hlo/compile_cases.h"

namespace tpu::hlo::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr DType kAllDTypes[] = {DType::kBool, DType::kU8,  DType::kU16, DType::kU32, DType::kU64,
                                DType::kI8,   DType::kI16, DType::kI32, DType::kI64, DType::kF16,
                                DType::kBF16, DType::kF32, DType::kF64, DType::kC64, DType::kC128};

Values Add(Function& fn, const Values& args) {
  return {fn.Binary(BinaryOp::kAdd, args[0], args[1])};
}

}  // namespace

std::vector<double> Range(int n) {
  std::vector<double> out;
  for (int i = 0; i < n; ++i) out.push_back(i);
  return out;
}

std::vector<Case> ShapeCases() {
  std::vector<Case> cases;
  cases.push_back({"reshape_transpose",
                   {F32({2, 3}, Range(6))},
                   [](Function& fn, const Values& in) {
                     return Values{fn.Reshape(in[0], Dims{3, 2}), fn.Transpose(in[0], Dims{1, 0})};
                   },
                   {{0, 1, 2, 3, 4, 5}, {0, 3, 1, 4, 2, 5}}});
  cases.push_back({"broadcast",
                   {F32({2, 1}, {1, 2}), F32({2, 3}, Range(6))},
                   [](Function& fn, const Values& in) {
                     return Values{fn.BroadcastTo(in[0], Dims{2, 2, 2}),
                                   fn.BroadcastInDim(in[0], Dims{2, 3}, Dims{0, 1}),
                                   // Descending: the builder transposes.
                                   fn.BroadcastInDim(in[1], Dims{3, 2}, Dims{1, 0})};
                   },
                   {{1, 1, 2, 2, 1, 1, 2, 2}, {1, 1, 1, 2, 2, 2}, {0, 3, 1, 4, 2, 5}}});
  cases.push_back({"slice",
                   {F32({3, 4}, Range(12))},
                   [](Function& fn, const Values& in) {
                     return Values{fn.Slice(in[0], Dims{1, 0}, Dims{3, 4}, Dims{1, 3}),
                                   fn.Slice(in[0], Dims{1, 1}, Dims{1, 3}, Dims{1, 1})};
                   },
                   {{4, 7, 8, 11}, {}}});
  cases.push_back({"dynamic_slice",
                   {F32({3, 4}, Range(12)), I32({}, {1}), I32({}, {2}), F32({1, 1}, {99})},
                   [](Function& fn, const Values& in) {
                     return Values{fn.DynamicSlice(in[0], {in[1], in[2]}, Dims{2, 2}),
                                   fn.DynamicUpdateSlice(in[0], in[3], {in[1], in[2]})};
                   },
                   {{6, 7, 10, 11}, {0, 1, 2, 3, 4, 5, 99, 7, 8, 9, 10, 11}}});
  cases.push_back({"dynamic_slice_scalar",
                   {F32({}, {4})},
                   [](Function& fn, const Values& in) {
                     return Values{fn.DynamicSlice(in[0], {}, {}),
                                   fn.DynamicUpdateSlice(in[0], in[0] + 1.0, {})};
                   },
                   {{4}, {5}}});
  cases.push_back({"pad",
                   {F32({3}, {1, 2, 3}), F32({}, {0})},
                   [](Function& fn, const Values& in) {
                     return Values{fn.Pad(in[0], in[1], Dims{1}, Dims{2}, Dims{1}),
                                   fn.Pad(in[0], in[1], Dims{-1}, Dims{1}, Dims{0})};
                   },
                   {{0, 1, 0, 2, 0, 3, 0, 0}, {2, 3, 0}}});
  cases.push_back({"concatenate_reverse",
                   {F32({1, 2}, {1, 2}), F32({2, 2}, {3, 4, 5, 6}), F32({0, 2}, {})},
                   [](Function& fn, const Values& in) {
                     Value all = fn.Concatenate({in[0], in[2], in[1]}, 0);
                     return Values{all, fn.Reverse(all, Dims{0, 1})};
                   },
                   {{1, 2, 3, 4, 5, 6}, {6, 5, 4, 3, 2, 1}}});
  for (DType dtype : kAllDTypes) {
    cases.push_back({"moves_" + std::string(TorchName(dtype)),
                     {},
                     [dtype](Function& fn, const Values&) {
                       Value x = fn.Parameter({dtype, {2, 3}});
                       Value zero = fn.Scalar(dtype, 0);
                       Value y = fn.Pad(fn.Transpose(x, Dims{1, 0}), zero, Dims{0, 0}, Dims{1, 0},
                                        Dims{0, 0});
                       return Values{fn.Concatenate({y, y}, 1), fn.Reverse(x, Dims{0})};
                     },
                     {}});
  }
  cases.push_back({"zero_size",
                   {F32({0, 3}, {})},
                   [](Function& fn, const Values& in) {
                     return Values{in[0] + 1.0, fn.Reshape(in[0], Dims{3, 0}),
                                   fn.Reduce(in[0], Monoid::kAdd, Dims{0}),
                                   fn.Reduce(in[0], Monoid::kMax, Dims{0})};
                   },
                   {{}, {}, {0, 0, 0}, {-kInf, -kInf, -kInf}}});
  cases.push_back({"zero_size_contractions",
                   {F32({2, 0}, {}), F32({0, 2, 3}, {}), F32({1, 2, 2}, {1, 2, 3, 4})},
                   [](Function& fn, const Values& in) {
                     ConvDims ncw{0, 1, 1, 0, 0, 1, {2}, {2}, {2}};
                     Window window;
                     return Values{fn.DotGeneral(in[0], in[0], {}, {}, Dims{1}, Dims{1}),
                                   fn.Convolution(in[1], in[2], ncw, {&window, 1})};
                   },
                   {{0, 0, 0, 0}, {}}});
  cases.push_back({"zero_size_indexing",
                   {F32({3, 2}, Range(6)), I32({0, 1}, {}), F32({0, 2}, {}), F32({0}, {})},
                   [](Function& fn, const Values& in) {
                     GatherDims rows{.offset_dims = {1},
                                     .collapsed_slice_dims = {0},
                                     .start_index_map = {0},
                                     .index_vector_dim = 1};
                     ScatterDims put{.update_window_dims = {1},
                                     .inserted_window_dims = {0},
                                     .scatter_dims_to_operand_dims = {0},
                                     .index_vector_dim = 1};
                     Value sorted = fn.Sort({in[3]}, 0, true, [](Function&, const Values& args) {
                       return Values{Lt(args[0], args[1])};
                     })[0];
                     return Values{fn.Gather(in[0], in[1], rows, Dims{1, 2}),
                                   fn.Scatter({in[0]}, in[1], {in[2]}, put, Add)[0], sorted};
                   },
                   {{}, Range(6), {}}});
  return cases;
}

std::vector<Case> ReduceCases() {
  std::vector<Case> cases;
  for (DType dtype : kAllDTypes) {
    bool logical = IsBool(dtype), ordered = !IsComplex(dtype), bits = IsIntegral(dtype);
    std::vector<double> in = {1, 2, 3, 4, 5, 6};
    if (IsComplex(dtype)) in = {1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0};
    if (logical) in = {1, 0, 1, 0, 0, 1};
    Case c{"reduce_" + std::string(TorchName(dtype)),
           {Of(dtype, {2, 3}, in)},
           [ordered, bits](Function& fn, const Values& in) {
             Values out = {fn.Reduce(in[0], Monoid::kAdd, Dims{1}),
                           fn.Reduce(in[0], Monoid::kMul, Dims{1, 0})};
             if (ordered) {
               out.push_back(fn.Reduce(in[0], Monoid::kMax, Dims{0}));
               out.push_back(fn.Reduce(in[0], Monoid::kMin, Dims{0}));
             }
             if (bits) {
               out.push_back(fn.Reduce(in[0], Monoid::kAnd, Dims{0, 1}));
               out.push_back(fn.Reduce(in[0], Monoid::kOr, Dims{0, 1}));
             }
             return out;
           },
           {}};
    if (logical) {
      c.expected = {{1, 1}, {0}, {1, 0, 1}, {0, 0, 1}, {0}, {1}};
    } else if (IsComplex(dtype)) {
      c.expected = {{6, 0, 15, 0}, {720, 0}};
    } else {
      double product = ItemSize(dtype) == 1 ? (IsSigned(dtype) ? 720 - 768 : 720 - 512) : 720;
      c.expected = {{6, 15}, {product}, {4, 5, 6}, {1, 2, 3}};
      if (bits) c.expected.insert(c.expected.end(), {{0}, {7}});
    }
    cases.push_back(std::move(c));
  }
  for (DType dtype : {DType::kF8E4M3FN, DType::kF8E5M2, DType::kF8E4M3FNUZ, DType::kF8E5M2FNUZ}) {
    cases.push_back({"reduce_" + std::string(TorchName(dtype)),
                     {F32({2}, {-3, -2})},
                     [dtype](Function& fn, const Values& in) {
                       Value x = Convert(in[0], dtype);
                       return Values{Convert(fn.Reduce(x, Monoid::kMax, Dims{0}), DType::kF32),
                                     Convert(fn.Reduce(x, Monoid::kMin, Dims{0}), DType::kF32)};
                     },
                     {{-2}, {-3}}});
  }
  cases.push_back({"reduce_argmax",
                   {F32({2, 3}, {1, 9, 3, 4, 5, 6})},
                   [](Function& fn, const Values& in) {
                     Value index = fn.Iota({DType::kI32, {2, 3}}, 1);
                     return fn.Reduce({in[0], index},
                                      {fn.Scalar(DType::kF32, -kInf), fn.Scalar(DType::kI32, 0)},
                                      Dims{1}, [](Function& fn, const Values& args) {
                                        Value first = Ge(args[0], args[2]);
                                        return Values{fn.Select(first, args[0], args[2]),
                                                      fn.Select(first, args[1], args[3])};
                                      });
                   },
                   {{9, 6}, {1, 2}}});
  cases.push_back({"reduce_window",
                   {F32({1, 4}, {1, 5, 2, 3})},
                   [](Function& fn, const Values& in) {
                     std::vector<Window> pool = {{}, {.size = 2, .stride = 2}};
                     std::vector<Window> scan = {{}, {.size = 4, .pad_low = 3}};
                     std::vector<Window> dilated = {{}, {.size = 2, .window_dilation = 2}};
                     std::vector<Window> spread = {{}, {.size = 2, .base_dilation = 2}};
                     return Values{fn.ReduceWindow(in[0], Monoid::kMax, pool),
                                   fn.ReduceWindow(in[0], Monoid::kAdd, scan),
                                   fn.ReduceWindow(in[0], Monoid::kAdd, dilated),
                                   fn.ReduceWindow(in[0], Monoid::kAdd, spread)};
                   },
                   {{5, 3}, {1, 6, 8, 11}, {3, 8}, {1, 5, 5, 2, 2, 3}}});
  cases.push_back({"select_and_scatter",
                   {F32({4}, {1, 5, 2, 3}), F32({2}, {10, 20})},
                   [](Function& fn, const Values& in) {
                     std::vector<Window> windows = {{.size = 2, .stride = 2}};
                     return Values{fn.SelectAndScatter(
                         in[0], in[1], fn.Scalar(DType::kF32, 0), windows,
                         [](Function&, const Values& args) { return Values{Ge(args[0], args[1])}; },
                         Add)};
                   },
                   {{0, 10, 0, 20}}});
  return cases;
}

std::vector<Case> ContractionCases() {
  std::vector<Case> cases;
  for (DType dtype :
       {DType::kI8, DType::kU8, DType::kI32, DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    cases.push_back({"dot_" + std::string(TorchName(dtype)),
                     {Of(dtype, {2, 3}, Range(6)), Of(dtype, {3, 2}, Range(6))},
                     [](Function& fn, const Values& in) {
                       return Values{fn.DotGeneral(in[0], in[1], {}, {}, Dims{1}, Dims{0})};
                     },
                     {{10, 13, 28, 40}}});
  }
  cases.push_back({"dot_int64",
                   {Of(DType::kI64, {2}, {3, 4}), Of(DType::kI64, {2}, {1, 2})},
                   [](Function& fn, const Values& in) {
                     return Values{fn.DotGeneral(in[0], in[1], {}, {}, Dims{0}, Dims{0})};
                   },
                   {{11}}});
  cases.back().not_on_tpu = "no 64-bit integer products there";
  for (DType dtype : {DType::kI32, DType::kI64, DType::kU64}) {
    const double big = dtype == DType::kI32 ? 1 << 20 : 1e12;
    const double sign = IsSigned(dtype) ? -1 : 1;
    cases.push_back({"dot_emulated_" + std::string(TorchName(dtype)),
                     {Of(dtype, {2, 1, 2}, {3, 4, sign, big}), Of(dtype, {2, 2}, {1, 2, 3, 5})},
                     [](Function& fn, const Values& in) {
                       fn.Emulate64Bit();
                       return Values{
                           fn.DotGeneral(in[0], in[1], Dims{0}, Dims{0}, Dims{2}, Dims{1}),
                           fn.DotGeneral(in[0], in[1], {}, {}, Dims{2}, Dims{1})};
                     },
                     {{11, sign * 3 + 5 * big}, {11, 29, sign + 2 * big, sign * 3 + 5 * big}}});
  }
  cases.push_back({"dot_emulated_long",  // longer than one contraction may be; 17000 * 255 * 2^40
                   {Of(DType::kI64, {1, 17000}, std::vector<double>(17000, 255)),
                    Of(DType::kI64, {1}, {std::ldexp(1.0, 40)})},
                   [](Function& fn, const Values& in) {
                     fn.Emulate64Bit();
                     return Values{fn.DotGeneral(in[0], fn.BroadcastTo(in[1], Dims{17000}), {}, {},
                                                 Dims{1}, Dims{0})};
                   },
                   {{17000.0 * 255 * std::ldexp(1.0, 40)}}});
  cases.push_back({"dot_complex",
                   {Of(DType::kC64, {2}, {1, 1, 2, 0}), Of(DType::kC64, {2}, {1, 1, 0, 1})},
                   [](Function& fn, const Values& in) {
                     return Values{fn.DotGeneral(in[0], in[1], {}, {}, Dims{0}, Dims{0})};
                   },
                   {{0, 4}}});
  cases.push_back(
      {"dot_batched_wider",
       {Of(DType::kBF16, {2, 1, 2}, {1, 2, 3, 4}), Of(DType::kBF16, {2, 2}, Range(4))},
       [](Function& fn, const Values& in) {
         return Values{fn.DotGeneral(in[0], in[1], Dims{0}, Dims{0}, Dims{2}, Dims{1}, DType::kF32),
                       fn.DotGeneral(in[0], in[1], {}, {}, Dims{2}, Dims{0})};
       },
       {{2, 18}, {4, 7, 8, 15}}});
  cases.push_back(
      {"dot_precision",
       {F32({2}, {3, 4}), F32({2}, {1, 2})},
       [](Function& fn, const Values& in) {
         Values out;
         for (Precision p : {Precision::kDefault, Precision::kHigh, Precision::kHighest}) {
           out.push_back(fn.DotGeneral(in[0], in[1], {}, {}, Dims{0}, Dims{0}, DType::kInvalid, p));
         }
         return out;
       },
       {{11}, {11}, {11}}});
  const ConvDims nchw{0, 1, 1, 0, 0, 1, {2, 3}, {2, 3}, {2, 3}};
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF64}) {
    cases.push_back({"conv_nchw_" + std::string(TorchName(dtype)),
                     {Of(dtype, {1, 1, 3, 3}, Range(9)), Of(dtype, {1, 1, 2, 2}, {1, 2, 3, 4})},
                     [nchw](Function& fn, const Values& in) {
                       std::vector<Window> plain(2), padded(2), flipped(2);
                       padded[0] = padded[1] = {.stride = 2, .pad_low = 1, .pad_high = 1};
                       flipped[0].reversed = flipped[1].reversed = true;
                       return Values{fn.Convolution(in[0], in[1], nchw, plain),
                                     fn.Convolution(in[0], in[1], nchw, padded),
                                     fn.Convolution(in[0], in[1], nchw, flipped)};
                     },
                     {{27, 37, 57, 67}, {0, 11, 30, 67}, {13, 23, 43, 53}}});
  }
  cases.push_back({"conv_nhwc_depthwise",
                   {F32({1, 3, 1, 2}, {1, 10, 2, 20, 3, 30}), F32({2, 1, 1, 2}, {1, 2, 1, 2})},
                   [](Function& fn, const Values& in) {
                     ConvDims nhwc{0, 3, 2, 3, 0, 3, {1, 2}, {0, 1}, {1, 2}};
                     std::vector<Window> windows(2);
                     return Values{fn.Convolution(in[0], in[1], nhwc, windows, 2)};
                   },
                   {{3, 60, 5, 100}}});
  cases.push_back({"conv_1d_dilated",
                   {F32({1, 1, 4}, {1, 2, 3, 4}), F32({1, 1, 2}, {1, 10})},
                   [](Function& fn, const Values& in) {
                     ConvDims ncw{0, 1, 1, 0, 0, 1, {2}, {2}, {2}};
                     std::vector<Window> atrous = {{.window_dilation = 2}};
                     std::vector<Window> spread = {
                         {.pad_low = 1, .pad_high = 1, .base_dilation = 2}};
                     return Values{fn.Convolution(in[0], in[1], ncw, atrous),
                                   fn.Convolution(in[0], in[1], ncw, spread)};
                   },
                   {{31, 42}, {10, 1, 20, 2, 30, 3, 40, 4}}});
  cases.push_back(
      {"conv_batch_groups_wider",
       {Of(DType::kBF16, {2, 1, 2}, {1, 2, 3, 4}), Of(DType::kBF16, {2, 1, 2}, {1, 1, 1, 2})},
       [](Function& fn, const Values& in) {
         ConvDims ncw{0, 1, 1, 0, 0, 1, {2}, {2}, {2}};
         std::vector<Window> windows(1);
         return Values{fn.Convolution(in[0], in[1], ncw, windows, 1, 2, DType::kF32)};
       },
       {{3, 11}}});
  return cases;
}

std::vector<Case> IndexingCases() {
  std::vector<Case> cases;
  for (DType dtype : kAllDTypes) {
    if (IsComplex(dtype)) continue;
    bool logical = IsBool(dtype);
    cases.push_back(
        {"gather_" + std::string(TorchName(dtype)),
         {Of(dtype, {3, 2}, logical ? std::vector<double>{0, 1, 1, 0, 1, 1} : Range(6)),
          I32({2}, {2, 0})},
         [](Function& fn, const Values& in) {
           GatherDims rows{.offset_dims = {1},
                           .collapsed_slice_dims = {0},
                           .start_index_map = {0},
                           .index_vector_dim = 1};
           return Values{fn.Gather(in[0], in[1], rows, Dims{1, 2})};
         },
         {logical ? std::vector<double>{1, 1, 0, 1} : std::vector<double>{4, 5, 0, 1}}});
  }
  cases.push_back({"gather_batched",
                   {F32({2, 3}, Range(6)), Of(DType::kI64, {2, 2, 1}, {0, 2, 1, 1})},
                   [](Function& fn, const Values& in) {
                     GatherDims along{.collapsed_slice_dims = {1},
                                      .operand_batching_dims = {0},
                                      .start_indices_batching_dims = {0},
                                      .start_index_map = {1},
                                      .index_vector_dim = 2};
                     return Values{fn.Gather(in[0], in[1], along, Dims{1, 1}, false)};
                   },
                   {{0, 2, 4, 4}}});
  const ScatterDims rows{.update_window_dims = {1},
                         .inserted_window_dims = {0},
                         .scatter_dims_to_operand_dims = {0},
                         .index_vector_dim = 1};
  for (DType dtype : kAllDTypes) {
    if (IsComplex(dtype)) continue;
    bool logical = IsBool(dtype);
    cases.push_back({"scatter_" + std::string(TorchName(dtype)),
                     {Of(dtype, {3, 1}, {0, 1, 0}), I32({3}, {2, 0, 2}),
                      Of(dtype, {3, 1}, {1, 0, logical ? 0.0 : 5.0})},
                     [rows](Function& fn, const Values& in) {
                       return fn.Scatter({in[0]}, in[1], {in[2]}, rows, Add);
                     },
                     {{0, 1, logical ? 1.0 : 6.0}}});
  }
  cases.push_back({"scatter_two_batched",
                   {F32({2, 3}, Range(6)), I32({2, 3}, Range(6)), I32({2, 1}, {2, 0}),
                    F32({2}, {50, 60}), I32({2}, {70, 80})},
                   [](Function& fn, const Values& in) {
                     ScatterDims along{.inserted_window_dims = {1},
                                       .input_batching_dims = {0},
                                       .scatter_indices_batching_dims = {0},
                                       .scatter_dims_to_operand_dims = {1},
                                       .index_vector_dim = 1};
                     return fn.Scatter(
                         {in[0], in[1]}, in[2], {in[3], in[4]}, along,
                         [](Function&, const Values& args) { return Values{args[2], args[3]}; },
                         true);
                   },
                   {{0, 1, 50, 60, 4, 5}, {0, 1, 70, 80, 4, 5}}});
  cases.push_back({"sort",
                   {F32({2, 3}, {3, 1, 2, 5, 5, 4})},
                   [](Function& fn, const Values& in) {
                     return fn.Sort(
                         {in[0], fn.Iota({DType::kI32, {2, 3}}, 1)}, 1, true,
                         [](Function& fn, const Values& args) {
                           return Values{fn.CompareTotal(CompareOp::kLt, args[0], args[1])};
                         });
                   },
                   {{1, 2, 3, 4, 5, 5}, {1, 2, 0, 2, 0, 1}}});
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kI32, DType::kU8}) {
    cases.push_back({"top_k_" + std::string(TorchName(dtype)),
                     {Of(dtype, {2, 4}, {3, 9, 1, 7, 2, 2, 8, 0})},
                     [](Function& fn, const Values& in) { return fn.TopK(in[0], 2); },
                     {{9, 7, 8, 2}, {1, 3, 2, 0}}});
  }
  return cases;
}

std::vector<Case> ControlFlowCases() {
  std::vector<Case> cases;
  cases.push_back({"while_captures",
                   {I32({}, {4}), F32({2}, {1, 2})},
                   [](Function& fn, const Values& in) {
                     Values out = fn.While(
                         {fn.Scalar(DType::kI32, 0), Like(in[1], 0)},
                         [&](Function&, const Values& args) { return Values{Lt(args[0], in[0])}; },
                         [&](Function& fn, const Values& args) {
                           Value sum = fn.Reduce(in[1], Monoid::kAdd, Dims{0});
                           return Values{args[0] + 1.0, args[1] + in[1] * sum};
                         });
                     return out;
                   },
                   {{4}, {12, 24}}});
  cases.push_back({"if_captures",
                   {Of(DType::kBool, {}, {1}), F32({2}, {1, 2})},
                   [](Function& fn, const Values& in) {
                     return fn.If(
                         in[0], [&] { return Values{in[1] + 1.0, fn.Scalar(DType::kI32, 7)}; },
                         [&] { return Values{in[1], fn.Scalar(DType::kI32, 8)}; });
                   },
                   {{2, 3}, {7}}});
  cases.push_back(
      {"nested",
       {I32({}, {3})},
       [](Function& fn, const Values& in) {
         return fn.While(
             {fn.Scalar(DType::kI32, 0), fn.Scalar(DType::kI32, 0)},
             [&](Function&, const Values& args) { return Values{Lt(args[0], in[0])}; },
             [&](Function& fn, const Values& args) {
               Values inner = fn.While(
                   {fn.Scalar(DType::kI32, 0), args[1]},
                   [&](Function&, const Values& i) { return Values{Le(i[0], args[0])}; },
                   [&](Function& fn, const Values& i) {
                     Value added = fn.If(
                         Eq(i[0], 1.0), [&] { return Values{i[1] + 10.0}; },
                         [&] { return Values{i[1] + in[0]}; })[0];
                     return Values{i[0] + 1.0, added};
                   });
               return Values{args[0] + 1.0, inner[1]};
             });
       },
       {{3}, {3 + 3 + 10 + 3 + 10 + 3}}});
  cases.push_back({"constants_in_bodies",
                   {F32({3}, {1, -2, 3})},
                   [](Function& fn, const Values& in) {
                     return fn.Reduce({in[0]}, {fn.Scalar(DType::kF32, 0)}, Dims{0},
                                      [](Function&, const Values& args) {
                                        return Values{args[0] + Max(args[1], Like(args[1], 0))};
                                      });
                   },
                   {{4}}});
  cases.push_back({"barrier",
                   {F32({2}, {1, 2}), I32({}, {3})},
                   [](Function& fn, const Values& in) { return fn.OptimizationBarrier(in); },
                   {{1, 2}, {3}}});
  cases.push_back({"custom_call",
                   {F32({2, 2}, {2, 0, 0, 3})},
                   [](Function& fn, const Values& in) {
                     Type results[] = {in[0].type(), {DType::kF32, {2}}};
                     return Values{Abs(fn.CustomCall("Qr", {in[0]}, results)[0])};
                   },
                   {{2, 0, 0, 3}}});
  cases.push_back({"aliasing",
                   {F32({2}, {1, 2})},
                   [](Function& fn, const Values& in) {
                     fn.SetParameterAttributes(in[0], "tf.aliasing_output = 0 : i32");
                     return Values{in[0] * 2.0};
                   },
                   {{2, 4}}});
  cases.push_back({"parameters_as_results",
                   {F32({2}, {1, 2})},
                   [](Function&, const Values& in) { return Values{in[0], in[0]}; },
                   {{1, 2}, {1, 2}}});
  return cases;
}

std::vector<Case> LinalgCases() {
  std::vector<Case> cases;
  cases.push_back({"cholesky",
                   {F32({2, 2}, {4, 2, 2, 5})},
                   [](Function& fn, const Values& in) {
                     Value lower = fn.Cholesky(in[0], true), upper = fn.Cholesky(in[0], false);
                     // What lies in the other triangle is undefined.
                     return Values{fn.Reduce(lower, Monoid::kMax, Dims{0, 1}),
                                   fn.Slice(upper, Dims{0, 1}, Dims{1, 2}, Dims{1, 1})};
                   },
                   {{2}, {1}}});
  for (bool left : {true, false}) {
    cases.push_back({left ? "triangular_solve_left" : "triangular_solve_right",
                     {F32({2, 2}, {2, 0, 1, 4}), F32({2, 2}, {2, 4, 9, 10})},
                     [left](Function& fn, const Values& in) {
                       Value x = fn.TriangularSolve(in[0], in[1], left, true, false, false);
                       Value t = fn.TriangularSolve(in[0], in[1], left, true, false, true);
                       auto mul = [&](Value a, int64_t i, Value b, int64_t j) {
                         return fn.DotGeneral(a, b, {}, {}, Dims{i}, Dims{j});
                       };
                       if (left) return Values{mul(in[0], 1, x, 0), mul(in[0], 0, t, 0)};
                       return Values{mul(x, 1, in[0], 0), mul(t, 1, in[0], 1)};
                     },
                     {{2, 4, 9, 10}, {2, 4, 9, 10}}});
  }
  cases.push_back({"fft",
                   {Of(DType::kC64, {4}, {1, 0, 2, 0, 3, 0, 4, 0}), F32({4}, {1, 2, 3, 4})},
                   [](Function& fn, const Values& in) {
                     Value f = fn.Fft(in[0], "FFT", Dims{4}), r = fn.Fft(in[1], "RFFT", Dims{4});
                     return Values{f, fn.Fft(f, "IFFT", Dims{4}), r, fn.Fft(r, "IRFFT", Dims{4})};
                   },
                   {{10, 0, -2, 2, -2, 0, -2, -2},
                    {1, 0, 2, 0, 3, 0, 4, 0},
                    {10, 0, -2, 2, -2, 0},
                    {1, 2, 3, 4}}});
  cases.push_back(
      {"fft_2d_double",
       {Of(DType::kF64, {2, 2}, {1, 2, 3, 4})},
       [](Function& fn, const Values& in) { return Values{fn.Fft(in[0], "RFFT", Dims{2, 2})}; },
       {{10, 0, -2, 0, -4, 0, 0, 0}}});
  cases.back().not_on_tpu = "float64 transforms are refused there";
  return cases;
}

}  // namespace tpu::hlo::testing
