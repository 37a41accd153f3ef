// The public C++ interface on the first plugin of TORCH_TPU_TEST_PLUGINS, and reading of
// signatures.
#include "torch_tpu/client.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "client/signature.h"
#include "torch_tpu/hlo.h"

namespace tpu {
namespace {

std::string FirstPlugin() {
  const char* env = std::getenv("TORCH_TPU_TEST_PLUGINS");
  const std::string all = env != nullptr ? env : "";
  return all.substr(0, all.find(':'));
}

class ClientTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(FirstPlugin(), "") << "set TORCH_TPU_TEST_PLUGINS to the paths of PJRT plugins";
    auto made = Client::Create({.plugin = FirstPlugin(), .search_dirs = {}});
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    client_.emplace(*made);
  }
  Program Compile(const std::string& text) {
    auto program = client_->Compile(text);
    EXPECT_TRUE(program.ok()) << program.status().ToString();
    return program.ok() ? *program : Program();
  }
  std::optional<Client> client_;
};

std::string AddText() {
  hlo::Function f;
  const hlo::Value x = f.Parameter({DType::kF32, {3}}), y = f.Parameter({DType::kF32, {3}});
  return f.Finish({x + y, x - y}).value();
}

TEST_F(ClientTest, RunsAProgramWithTwoResults) {
  EXPECT_EQ(client_->platform(), "cpu");
  const Program program = Compile(AddText());
  const Array a = client_->Put<float>({1, 2, 3}, {3}).value();
  const Array b = client_->Put<float>({10, 20, 30}, {3}).value();
  const auto out = program.Run({a, b});
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  ASSERT_EQ(out->size(), 2u);
  EXPECT_EQ((*out)[0].dims(), Dims({3}));
  EXPECT_EQ((*out)[0].ToHost<float>().value(), std::vector<float>({11, 22, 33}));
  EXPECT_EQ((*out)[1].ToHost<float>().value(), std::vector<float>({-9, -18, -27}));
  EXPECT_EQ(a.ToHost<float>().value(), std::vector<float>({1, 2, 3}));  // not donated
}

TEST_F(ClientTest, DonationAsksForNothing) {
  const Program program = Compile(
      "func.func @main(%a: tensor<2xi32> {tf.aliasing_output = 0 : i32}) -> tensor<2xi32> {\n"
      "  %0 = stablehlo.add %a, %a : tensor<2xi32>\n  return %0 : tensor<2xi32>\n}\n");
  const Array a = client_->Put<int32_t>({1, 2}, {2}).value();
  EXPECT_EQ(program.Run({a}).value()[0].ToHost<int32_t>().value(), std::vector<int32_t>({2, 4}));
  EXPECT_EQ(a.ToHost<int32_t>().value(), std::vector<int32_t>({1, 2}));
}

TEST_F(ClientTest, RefusesWrongArguments) {
  const Program program = Compile(AddText());
  const Array a = client_->Put<float>({1, 2, 3}, {3}).value();
  const Array wide = client_->Put<int32_t>({1, 2, 3}, {3}).value();
  const Status count = program.Run({a}).status();
  EXPECT_EQ(count.code(), Code::kInvalidArgument);
  EXPECT_NE(count.message().find("2 arguments"), std::string::npos) << count.message();
  const Status type = program.Run({a, wide}).status();  // as many bytes: the plugin would take it
  EXPECT_NE(type.message().find("argument 1"), std::string::npos) << type.message();
  EXPECT_NE(type.message().find("int32[3]"), std::string::npos) << type.message();
  EXPECT_FALSE(program.Run({a, Array()}).ok());
  EXPECT_FALSE(Program().Run({a}).ok());
}

TEST_F(ClientTest, RefusesWrongReadsAndUploads) {
  const Array a = client_->Put<float>({1, 2, 3}, {3}).value();
  EXPECT_NE(a.ToHost<int32_t>().status().message().find("float32"), std::string::npos);
  char byte = 0;
  EXPECT_EQ(a.CopyToHost(&byte, 1).code(), Code::kInvalidArgument);
  EXPECT_FALSE(Array().ToHost<float>().ok());
  EXPECT_FALSE(client_->Put<float>({1, 2, 3}, {2}).ok());
  EXPECT_FALSE(client_->Put<float>({1}, {1}, client_->num_devices()).ok());
  EXPECT_EQ(client_->Put<float>({}, {0, 4}).value().ToHost<float>().value().size(), 0u);
}

TEST_F(ClientTest, TellsWhatTheCompilerRefused) {
  EXPECT_FALSE(client_->Compile("no module").ok());
  EXPECT_FALSE(client_->Compile("func.func @main(%a: tensor<2xf32>) { nonsense }").ok());
}

TEST(SignatureTest, ReadsTypes) {
  const auto types = ParameterTypes(
      "module @m { func.func public @main(%a: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}, %b: "
      "tensor<ui8>, %c: tensor<0x1xcomplex<f64>> {mhlo.sharding = \"{devices=[1,2]) tensor<x\"}) "
      "-> tensor<9xi1> {");
  ASSERT_TRUE(types.ok()) << types.status().ToString();
  ASSERT_EQ(types->size(), 3u);
  EXPECT_EQ((*types)[0], (hlo::Type{DType::kF32, {2, 3}}));
  EXPECT_EQ((*types)[1], (hlo::Type{DType::kU8, {}}));
  EXPECT_EQ((*types)[2], (hlo::Type{DType::kC128, {0, 1}}));
  EXPECT_TRUE(ParameterTypes("func.func @main() -> tensor<f32> {")->empty());
}

TEST(SignatureTest, RefusesWhatItCannotCheck) {
  for (const char* text :
       {"func.func @other(%a: tensor<f32>)", "@main(%a: tensor<f32>", "@main(%a: tensor<?x2xf32>)",
        "@main(%a: tensor<2xi4>)", "@main(%a: tensor<"}) {
    EXPECT_EQ(ParameterTypes(text).status().code(), Code::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace tpu
