// Compiles for TPUs with no TPU, on libtpu where TORCH_TPU_TEST_LIBTPU names its file. The refusals
// that need no libtpu are in pjrt_test.cc.
#include <gtest/gtest.h>

#include <cstdlib>

#include "pjrt/pjrt.h"

namespace tpu::pjrt {
namespace {

class TopologyTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* path = std::getenv("TORCH_TPU_TEST_LIBTPU");
    if (path == nullptr) GTEST_SKIP() << "TORCH_TPU_TEST_LIBTPU names no libtpu.so";
    Result<Plugin*> plugin = Plugin::Load(path);
    ASSERT_TRUE(plugin.ok()) << plugin.status().ToString();
    plugin_ = *plugin;
  }
  Result<Topology> V5e() { return Topology::Create(plugin_, "v5e:2x2"); }

  Plugin* plugin_ = nullptr;
};

constexpr const char* kMatmul = R"(
func.func @main(%a: tensor<256x256xbf16>, %b: tensor<256x256xbf16>) -> tensor<256x256xbf16> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<256x256xbf16>, tensor<256x256xbf16>) -> tensor<256x256xbf16>
  return %0 : tensor<256x256xbf16>
})";

TEST_F(TopologyTest, DevicesOfAV5e) {
  Result<Topology> topology = V5e();
  ASSERT_TRUE(topology.ok()) << topology.status().ToString();
  EXPECT_EQ(*topology->platform_name(), "tpu");
  const std::vector<DeviceInfo> devices = topology->devices();
  ASSERT_EQ(devices.size(), 4u);
  EXPECT_EQ(devices[0].kind, "TPU v5 lite");
  ASSERT_TRUE(devices[3].attributes.contains("coords"));
  EXPECT_EQ(std::get<std::vector<int64_t>>(devices[3].attributes.at("coords")),
            (std::vector<int64_t>{1, 1, 0}));
  Topology moved = std::move(*topology);
  EXPECT_TRUE(topology->devices().empty());
  EXPECT_FALSE(topology->platform_name().ok());
  EXPECT_EQ(moved.devices().size(), 4u);
}

TEST_F(TopologyTest, Names) {
  EXPECT_EQ(Topology::Create(plugin_, "").status().code(), Code::kInvalidArgument);
  Status status = Topology::Create(plugin_, "v99:2x2").status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("v99:2x2"), std::string::npos);
}

TEST_F(TopologyTest, CompilesAndTells) {
  Result<Topology> topology = V5e();
  ASSERT_TRUE(topology.ok());
  Result<Executable> exe = topology->Compile(kMatmul, {.optimization_level = 19});
  ASSERT_TRUE(exe.ok()) << exe.status().ToString();
  Result<CompiledMemoryStats> memory = exe->MemoryStats();
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(memory->arguments, 2 * 256 * 256 * 2);
  EXPECT_EQ(memory->outputs, 256 * 256 * 2);
  EXPECT_GT(memory->code, 0);
  Result<std::map<std::string, double>> costs = exe->CostAnalysis();
  ASSERT_TRUE(costs.ok());
  EXPECT_GE((*costs)["flops"], 2.0 * 256 * 256 * 255);
  EXPECT_GT((*costs)["optimal_seconds"], 0);
  Result<std::string> bytes = exe->Serialize();
  ASSERT_TRUE(bytes.ok());
  EXPECT_GT(bytes->size(), 1000u);
}

TEST_F(TopologyTest, CompilesForSeveralChips) {
  constexpr const char* kAllReduce = R"(
module attributes {mhlo.num_replicas = 4 : i32} {
func.func @main(%a: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = "stablehlo.all_reduce"(%a) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}
      : (tensor<1024xf32>) -> tensor<1024xf32>
  return %0 : tensor<1024xf32>
}})";
  Result<Topology> topology = V5e();
  ASSERT_TRUE(topology.ok());
  CompileOptions options{.num_replicas = 4, .portable = false};
  for (const DeviceInfo& device : topology->devices()) options.device_ids.push_back(device.id);
  Result<Executable> exe = topology->Compile(kAllReduce, options);
  EXPECT_TRUE(exe.ok()) << exe.status().ToString();
}

TEST_F(TopologyTest, ErrorsHaveTheirCodes) {
  Result<Topology> topology = V5e();
  ASSERT_TRUE(topology.ok());
  EXPECT_FALSE(topology->Compile("this is no program", {}).ok());
  constexpr const char* kHuge = R"(
func.func @main(%a: tensor<2147483648xf32>, %b: tensor<2147483648xf32>) -> tensor<2147483648xf32> {
  %0 = stablehlo.add %a, %b : tensor<2147483648xf32>
  return %0 : tensor<2147483648xf32>
})";
  EXPECT_EQ(topology->Compile(kHuge, {}).status().code(), Code::kResourceExhausted);
}

}  // namespace
}  // namespace tpu::pjrt
