// The builder's core: text, inference, sticky errors, scopes, formulas. No plugin needed.
#include "hlo/hlo.h"

#include <gtest/gtest.h>

#include <limits>

namespace tpu::hlo {
namespace {

const Type kF23{DType::kF32, {2, 3}};
const Type kScalar{DType::kF32, {}};

std::string Text(Function* fn, const Values& results) {
  auto text = fn->Finish(results);
  EXPECT_TRUE(text.ok()) << text.status().ToString();
  return text.ok() ? *text : "";
}

// The message of the error that `build` causes.
std::string ErrorOf(const std::function<Value(Function&)>& build) {
  Function fn;
  Value value = build(fn);
  EXPECT_FALSE(value.valid());
  EXPECT_FALSE(fn.status().ok());
  EXPECT_EQ(fn.status().code(), Code::kInvalidArgument);
  EXPECT_FALSE(fn.Finish({}).ok());
  return fn.status().message();
}

TEST(Types, Text) {
  EXPECT_EQ(ToMlir(kF23), "tensor<2x3xf32>");
  EXPECT_EQ(ToMlir({DType::kC64, {}}), "tensor<complex<f32>>");
  EXPECT_EQ(ToMlir({DType::kU8, {0}}), "tensor<0xui8>");
  EXPECT_EQ(ToString(kF23), "float32[2, 3]");
  EXPECT_EQ(ToString(Type{DType::kBool, {}}), "bool[]");
}

TEST(Function, WholeModule) {
  Function fn;
  Value a = fn.Parameter(kF23, "tf.aliasing_output = 0 : i32");
  Value b = fn.Parameter(kF23);
  Value sum = a + b;
  EXPECT_EQ(fn.num_ops(), 1);
  fn.SetParameterAttributes(b, "jax.buffer_donor = true");
  auto text = fn.Finish({sum, a}, "aten::add.Tensor");
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text,
            "module @aten__add.Tensor {\n"
            "  func.func public @main(%arg0: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}, "
            "%arg1: tensor<2x3xf32> {jax.buffer_donor = true}) -> "
            "(tensor<2x3xf32>, tensor<2x3xf32>) {\n"
            "    %2 = stablehlo.add %arg0, %arg1 : tensor<2x3xf32>\n"
            "    func.return %2, %arg0 : tensor<2x3xf32>, tensor<2x3xf32>\n"
            "  }\n"
            "}\n");
}

TEST(Function, GoesOnAfterFinish) {
  Function fn;
  Value a = fn.Parameter(kScalar);
  EXPECT_EQ(Text(&fn, {a}), Text(&fn, {a}));
  Value b = Exp(a);
  EXPECT_NE(Text(&fn, {b}).find("return %1 : tensor<f32>"), std::string::npos);
}

TEST(Function, NoResultsAndNoParameters) {
  Function fn;
  EXPECT_NE(Text(&fn, {}).find("@main() -> () {\n    func.return\n"), std::string::npos);
}

TEST(Function, TypesStayWhereTheyAre) {
  Function fn;
  Value a = fn.Parameter(kF23);
  const Type& type = a.type();
  Value x = a;
  for (int i = 0; i < 10000; ++i) x = -x;
  EXPECT_EQ(&type, &a.type());
  EXPECT_EQ(type, kF23);
  EXPECT_EQ(fn.num_ops(), 10000);
}

TEST(Function, RegionsAreNested) {
  Function fn;
  Value a = fn.Parameter(kF23);
  Value sum = fn.Reduce(a, Monoid::kAdd, Dims{0});
  EXPECT_EQ(sum.dims(), Dims{3});
  std::string text = Text(&fn, {sum});
  EXPECT_NE(text.find("    %5 = \"stablehlo.reduce\"(%arg0, %1) <{dimensions = array<i64: 0>}> ({\n"
                      "    ^bb0(%2: tensor<f32>, %3: tensor<f32>):\n"
                      "      %4 = stablehlo.add"),
            std::string::npos)
      << text;
}

TEST(Errors, NameBothTypes) {
  EXPECT_EQ(
      ErrorOf([](Function& fn) { return fn.Parameter(kF23) + fn.Parameter({DType::kI64, {3}}); }),
      "stablehlo.add: operands differ: float32[2, 3] and int64[3]");
  EXPECT_EQ(
      ErrorOf([](Function& fn) { return fn.Parameter(kF23) * fn.Parameter({DType::kF32, {2}}); }),
      "stablehlo.multiply: operands differ: float32[2, 3] and float32[2]");
  EXPECT_EQ(ErrorOf([](Function& fn) { return Floor(fn.Parameter({DType::kI64, {3}})); }),
            "stablehlo.floor: takes float, not int64[3]");
  EXPECT_EQ(ErrorOf([](Function& fn) {
              return fn.Binary(BinaryOp::kAnd, fn.Parameter(kF23), fn.Parameter(kF23));
            }),
            "stablehlo.and: takes bool or integer, not float32[2, 3]");
}

TEST(Errors, TheFirstOneSticks) {
  Function fn;
  Value a = fn.Parameter(kF23);
  Value bad = fn.Reshape(a, Dims{7});
  std::string first = fn.status().message();
  EXPECT_EQ(first, "stablehlo.reshape: float32[2, 3] can't have the shape [7]");
  Value worse = Floor(bad + 1.0) / a;
  worse = Select(Lt(worse, 0.0), worse, a);
  EXPECT_FALSE(worse.valid());
  EXPECT_EQ(worse.dtype(), DType::kInvalid);
  EXPECT_EQ(worse.rank(), 0);
  EXPECT_EQ(worse.dim(3), 1);
  EXPECT_FALSE(fn.Parameter(kF23).valid());
  EXPECT_FALSE((a + a).valid());
  auto text = fn.Finish({worse});
  EXPECT_EQ(text.status().message(), first);
}

TEST(Errors, SeveralResultsCanBeIndexed) {
  Function fn;
  Value bad = fn.Fail(InvalidArgument("on purpose"));
  Body body = [](Function&, const Values& args) { return args; };
  EXPECT_EQ(fn.TopK(bad, 2).size(), 2u);
  EXPECT_EQ(fn.While({bad, bad}, body, body).size(), 2u);
  EXPECT_EQ(fn.Sort({bad, bad}, 0, true, body).size(), 2u);
  EXPECT_EQ(fn.Scatter({bad}, bad, {bad}, {}, body).size(), 1u);
  EXPECT_EQ(fn.ReduceWindow({bad}, {bad}, {}, body).size(), 1u);
  EXPECT_EQ(fn.OptimizationBarrier({bad, bad, bad}).size(), 3u);
  EXPECT_EQ(
      fn.If(bad, [&] { return Values{bad, bad}; }, [&] { return Values{bad, bad}; }).size(), 2u);
  EXPECT_EQ(fn.status().message(), "on purpose");
}

TEST(Errors, ValuesOfNobodyAndOfOthers) {
  Function other;
  Value foreign = other.Parameter(kF23);
  EXPECT_EQ(ErrorOf([](Function& fn) { return fn.Parameter(kF23) + Value(); }),
            "stablehlo.add: operand 1 is no value");
  EXPECT_EQ(ErrorOf([&](Function& fn) { return fn.Parameter(kF23) + foreign; }),
            "stablehlo.add: operand 1 belongs to another function");
  EXPECT_TRUE(other.status().ok());
  EXPECT_FALSE((Value() + Value()).valid());
  EXPECT_FALSE(Exp(Value()).valid());
  Function fn;
  EXPECT_EQ(fn.Finish({Value()}).status().message(), "result: operand 0 is no value");
}

TEST(Scopes, InnerValuesStayInside) {
  EXPECT_EQ(ErrorOf([](Function& fn) {
              Value a = fn.Parameter(kScalar), leaked;
              fn.While(
                  {a}, [](Function&, const Values& args) { return Values{Lt(args[0], 9.0)}; },
                  [&](Function&, const Values& args) {
                    leaked = args[0] + 1.0;
                    return Values{leaked};
                  });
              return leaked + a;
            }),
            "stablehlo.add: operand 0 was made in a body that has ended");
}

TEST(Scopes, SomeBodiesSeeTheirArgumentsOnly) {
  EXPECT_EQ(ErrorOf([](Function& fn) {
              Value a = fn.Parameter(kF23), b = fn.Parameter(kScalar);
              return fn.Reduce({a}, {b}, Dims{0}, [&](Function&, const Values& args) {
                return Values{args[0] + b};
              })[0];
            }),
            "stablehlo.add: operand 1 comes from outside, but the body of stablehlo.reduce may use "
            "its arguments only");
}

TEST(Scopes, BodiesMustGiveTheRightTypes) {
  EXPECT_EQ(ErrorOf([](Function& fn) {
              Body same = [](Function&, const Values& args) { return args; };
              return fn.While({fn.Parameter(kScalar)}, same, same)[0];
            }),
            "stablehlo.while: result 0 of the body is float32[], not bool[]");
  EXPECT_EQ(ErrorOf([](Function& fn) {
              return fn.Sort({fn.Parameter(kF23)}, 0, false,
                             [](Function&, const Values& args) { return args; })[0];
            }),
            "stablehlo.sort: the body gives 2 results, not 1");
  EXPECT_EQ(ErrorOf([](Function& fn) {
              Value a = fn.Parameter(kF23), p = fn.Parameter({DType::kBool, {}});
              return fn.If(p, [&] { return Values{a}; }, [&] { return Values{Lt(a, a)}; })[0];
            }),
            "stablehlo.if: result 0 of the body is bool[2, 3], not float32[2, 3]");
}

TEST(Scopes, NoParametersInBodies) {
  EXPECT_EQ(
      ErrorOf([](Function& fn) {
        Value a = fn.Parameter(kScalar);
        return fn.While(
            {a},
            [](Function& fn, const Values&) { return Values{fn.Parameter({DType::kBool, {}})}; },
            [](Function&, const Values& args) { return args; })[0];
      }),
      "parameter: made inside the body of stablehlo.while");
}

TEST(Formula, BroadcastsAndTakesNumbers) {
  Function fn;
  Value a = fn.Parameter({DType::kF32, {2, 1}}), b = fn.Parameter({DType::kF32, {3}});
  EXPECT_EQ((a + b).type(), kF23);
  EXPECT_EQ(Eq(a, b).type(), (Type{DType::kBool, {2, 3}}));
  EXPECT_EQ(Select(Lt(a, 0.0), b, fn.Scalar(DType::kF32, 0)).type(), kF23);
  EXPECT_EQ((1.0 / a).type(), a.type());
  EXPECT_EQ(Unsqueeze(a, -1).dims(), (Dims{2, 1, 1}));
  EXPECT_EQ(Squeeze(a, 1).dims(), Dims{2});
  EXPECT_EQ(IsNan(a).dtype(), DType::kBool);
  EXPECT_TRUE(fn.status().ok());
}

TEST(Formula, RefusesNumbersThatDontFit) {
  auto with = [](DType dtype, double number) {
    Function fn;
    (void)(fn.Parameter({dtype, {}}) + number);
    return fn.status().message();
  };
  EXPECT_EQ(with(DType::kI32, 0.5), "the number 0.5 beside int32[]");
  EXPECT_EQ(with(DType::kU8, -1), "the number -1 beside uint8[]");
  EXPECT_EQ(with(DType::kU8, 256), "the number 256 beside uint8[]");
  EXPECT_EQ(with(DType::kI8, -128), "");
  EXPECT_EQ(with(DType::kBool, 2), "the number 2 beside bool[]");
  EXPECT_EQ(with(DType::kI64, std::numeric_limits<double>::infinity()),
            "the number inf beside int64[]");
  EXPECT_EQ(with(DType::kBF16, 0.1), "");
  EXPECT_EQ(with(DType::kC64, 0.1), "");
}

TEST(Formula, SqueezeWantsSizeOne) {
  EXPECT_EQ(ErrorOf([](Function& fn) { return Squeeze(fn.Parameter(kF23), 0); }),
            "squeeze: dimension 0 of float32[2, 3] is not 1");
  EXPECT_EQ(ErrorOf([](Function& fn) { return Unsqueeze(fn.Parameter(kF23), 4); }),
            "unsqueeze: no dimension 4 for float32[2, 3]");
}

}  // namespace
}  // namespace tpu::hlo
