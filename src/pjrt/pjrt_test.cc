// The handles on real plugins: every test runs once for each file in TORCH_TPU_TEST_PLUGINS
// (separated by colons), with one device and with four in the same process.
#include "pjrt/pjrt.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <thread>

namespace tpu::pjrt {
namespace {

std::vector<std::string> TestPlugins() {
  std::vector<std::string> out;
  const char* env = std::getenv("TORCH_TPU_TEST_PLUGINS");
  std::istringstream in(env != nullptr ? env : "");
  for (std::string path; std::getline(in, path, ':');) {
    if (!path.empty()) out.push_back(path);
  }
  return out;
}

TEST(PluginsTest, AreGiven) {
  EXPECT_FALSE(TestPlugins().empty()) << "set TORCH_TPU_TEST_PLUGINS to the paths of PJRT plugins";
}

#define ASSERT_OK(expr)                                          \
  do {                                                           \
    const Status assert_status = (expr);                         \
    ASSERT_TRUE(assert_status.ok()) << assert_status.ToString(); \
  } while (false)

constexpr const char* kAdd = R"(
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32>
})";

// Argument 0 gives its memory to the result.
constexpr const char* kDonatingAdd = R"(
func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32>)
    -> tensor<4xf32> {
  %0 = stablehlo.add %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32>
})";

using F4 = std::array<float, 4>;

class PjrtTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    Result<Plugin*> plugin = Plugin::Load(GetParam());
    ASSERT_OK(plugin.status());
    plugin_ = *plugin;
    client_ = NewClient(1);
    ASSERT_NE(client_, nullptr);
  }

  std::unique_ptr<Client> NewClient(int64_t devices) {
    Result<std::unique_ptr<Client>> client =
        Client::Create(plugin_, {{"cpu_device_count", devices}, {"asynchronous", false}});
    EXPECT_TRUE(client.ok()) << client.status().ToString();
    return client.ok() ? std::move(client).value() : nullptr;
  }

  Buffer Upload(const F4& values, int device = 0, Client* client = nullptr) {
    if (client == nullptr) client = client_.get();
    const Dims dims = {4};
    Result<Buffer> buffer = client->FromHost(values.data(), DType::kF32, dims, {},
                                             HostBufferSemantics::kImmutableOnlyDuringCall,
                                             client->device(device), nullptr);
    EXPECT_TRUE(buffer.ok()) << buffer.status().ToString();
    return buffer.ok() ? std::move(buffer).value() : Buffer();
  }

  static F4 Read(const Buffer& buffer) {
    F4 out{};
    Result<Event> event = buffer.ToHost(out.data(), sizeof(out));
    EXPECT_TRUE(event.ok()) << event.status().ToString();
    if (event.ok()) {
      EXPECT_TRUE(event->Await().ok());
    }
    return out;
  }

  LoadedExecutable Compile(const char* text) {
    Result<LoadedExecutable> exe = client_->Compile(text, {});
    EXPECT_TRUE(exe.ok()) << exe.status().ToString();
    return exe.ok() ? std::move(exe).value() : LoadedExecutable();
  }

  Result<Buffer> Run(const LoadedExecutable& exe, std::vector<PJRT_Buffer*> arguments,
                     PJRT_Device* device, std::vector<int64_t> non_donatable = {}) {
    PJRT_Buffer* result = nullptr;
    TPU_RETURN_IF_ERROR(exe.Execute({.arguments = arguments,
                                     .results = {&result, 1},
                                     .non_donatable = non_donatable,
                                     .device = device}));
    return Buffer(plugin_->api(), result);
  }

  Plugin* plugin_ = nullptr;
  std::unique_ptr<Client> client_;
};

TEST_P(PjrtTest, LoadTwiceGivesTheSamePlugin) {
  std::array<Plugin*, 8> loaded{};
  std::vector<std::thread> threads;
  for (Plugin*& slot : loaded) {
    threads.emplace_back([&slot] {
      Result<Plugin*> plugin = Plugin::Load(GetParam());
      if (plugin.ok()) slot = *plugin;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (Plugin* plugin : loaded) EXPECT_EQ(plugin, plugin_);
  EXPECT_GE(plugin_->minor_version(), Plugin::kMinMinor);
  EXPECT_GE(plugin_->identity().size(), 16u);
  EXPECT_TRUE(plugin_->attributes().contains("stablehlo_current_version"));
}

TEST_P(PjrtTest, ClientAndDevices) {
  EXPECT_EQ(client_->platform_name(), "cpu");
  EXPECT_EQ(client_->process_index(), 0);
  EXPECT_EQ(client_->num_devices(), 1);
  std::unique_ptr<Client> four = NewClient(4);
  ASSERT_NE(four, nullptr);
  ASSERT_EQ(four->num_devices(), 4);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(four->device_info(i).id, i);
    EXPECT_EQ(four->device_info(i).local_hardware_id, i);
    EXPECT_EQ(four->device_info(i).kind, "cpu");
  }
  // The CPU plugin keeps no statistics; the answer is a status either way.
  Result<MemoryStats> stats = four->DeviceMemoryStats(0);
  if (!stats.ok()) {
    EXPECT_EQ(stats.status().code(), Code::kUnimplemented);
  }
  EXPECT_EQ(four->DeviceMemoryStats(4).status().code(), Code::kOutOfRange);
}

TEST_P(PjrtTest, EveryDtypeThereAndBack) {
  for (int t = 1; t < kNumDTypes; ++t) {
    const auto dtype = static_cast<DType>(t);
    SCOPED_TRACE(t);
    const auto item = static_cast<size_t>(ItemSize(dtype));
    const Dims dims = {2, 3};
    std::vector<unsigned char> in(6 * item), out(6 * item);
    for (size_t i = 0; i < in.size(); ++i) {
      in[i] = static_cast<unsigned char>(dtype == DType::kBool ? i & 1 : i + 1);
    }
    Event done;
    Result<Buffer> buffer = client_->FromHost(in.data(), dtype, dims, {},
                                              HostBufferSemantics::kImmutableUntilTransferCompletes,
                                              client_->device(0), &done);
    ASSERT_OK(buffer.status());
    ASSERT_OK(done.Await());
    EXPECT_TRUE(done.IsReady());
    ASSERT_OK(buffer->Await());
    Result<std::pair<DType, Dims>> shape = buffer->Shape();
    ASSERT_OK(shape.status());
    EXPECT_EQ(shape->first, dtype);
    EXPECT_EQ(shape->second, dims);
    EXPECT_EQ(*buffer->OnDeviceBytes(), static_cast<int64_t>(in.size()));
    Result<Event> read = buffer->ToHost(out.data(), out.size());
    ASSERT_OK(read.status());
    ASSERT_OK(read->Await());
    EXPECT_EQ(in, out);
    Result<const void*> host = buffer->HostPointer();
    ASSERT_OK(host.status());
    EXPECT_EQ(std::memcmp(*host, in.data(), in.size()), 0);
  }
}

TEST_P(PjrtTest, StridesEmptyAndScalar) {
  const std::array<float, 6> data = {0, 1, 2, 3, 4, 5};
  const Dims transposed = {3, 2};
  const Dims strides = {4, 12};
  Result<Buffer> buffer =
      client_->FromHost(data.data(), DType::kF32, transposed, strides,
                        HostBufferSemantics::kImmutableOnlyDuringCall, client_->device(0), nullptr);
  ASSERT_OK(buffer.status());
  std::array<float, 6> out{};
  ASSERT_OK(buffer->ToHost(out.data(), sizeof(out))->Await());
  EXPECT_EQ(out, (std::array<float, 6>{0, 3, 1, 4, 2, 5}));
  EXPECT_FALSE(buffer->ToHost(out.data(), 4).ok());  // too small
  EXPECT_EQ(buffer->ToHost(nullptr, 24).status().code(), Code::kInvalidArgument);

  const Dims empty = {2, 0};
  Result<Buffer> none =
      client_->FromHost(data.data(), DType::kF32, empty, {},
                        HostBufferSemantics::kImmutableOnlyDuringCall, client_->device(0), nullptr);
  ASSERT_OK(none.status());
  EXPECT_EQ(none->Shape()->second, empty);
  Result<Buffer> scalar =
      client_->FromHost(&data[5], DType::kF32, {}, {},
                        HostBufferSemantics::kImmutableOnlyDuringCall, client_->device(0), nullptr);
  ASSERT_OK(scalar.status());
  ASSERT_OK(scalar->ToHost(out.data(), 4)->Await());
  EXPECT_EQ(out[0], 5.0f);
}

TEST_P(PjrtTest, ZeroCopySharesTheMemory) {
  alignas(64) std::array<float, 16> data{};
  const Dims dims = {16};
  Event done;
  Result<Buffer> buffer =
      client_->FromHost(data.data(), DType::kF32, dims, {}, HostBufferSemantics::kImmutableZeroCopy,
                        client_->device(0), &done);
  ASSERT_OK(buffer.status());
  EXPECT_EQ(*buffer->HostPointer(), static_cast<const void*>(data.data()));
  *buffer = Buffer();
  ASSERT_OK(done.Await());  // after the buffer is gone
}

TEST_P(PjrtTest, BadUploads) {
  const F4 data{};
  const Dims dims = {4};
  const Dims strides = {4, 4};
  const auto semantics = HostBufferSemantics::kImmutableOnlyDuringCall;
  PJRT_Device* device = client_->device(0);
  EXPECT_EQ(client_->FromHost(data.data(), DType::kInvalid, dims, {}, semantics, device, nullptr)
                .status()
                .code(),
            Code::kInvalidArgument);
  EXPECT_EQ(client_->FromHost(data.data(), DType::kF32, dims, strides, semantics, device, nullptr)
                .status()
                .code(),
            Code::kInvalidArgument);
  EXPECT_EQ(client_->FromHost(data.data(), DType::kF32, dims, {}, semantics, nullptr, nullptr)
                .status()
                .code(),
            Code::kInvalidArgument);
}

TEST_P(PjrtTest, ShapesNoBufferCanHave) {
  const F4 data{};
  const auto upload = [&](const void* from, const Dims& dims) {
    return client_->FromHost(from, DType::kF32, dims, {},
                             HostBufferSemantics::kImmutableOnlyDuringCall, client_->device(0),
                             nullptr);
  };
  const int64_t big = int64_t{1} << 40;
  EXPECT_EQ(upload(data.data(), {-1}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(upload(data.data(), {big, big}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(upload(nullptr, {4}).status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(upload(nullptr, {0, 4}).ok());
}

TEST_P(PjrtTest, AsynchronousResults) {
  Result<std::unique_ptr<Client>> client =
      Client::Create(plugin_, {{"cpu_device_count", int64_t{1}}, {"asynchronous", true}});
  ASSERT_OK(client.status());
  constexpr const char* kMatmul = R"(
func.func @main(%a: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0]
      : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  return %0 : tensor<512x512xf32>
})";
  Result<LoadedExecutable> exe = (*client)->Compile(kMatmul, {});
  ASSERT_OK(exe.status());
  const std::vector<float> ones(512 * 512, 1.0f);
  const Dims dims = {512, 512};
  Result<Buffer> a = (*client)->FromHost(ones.data(), DType::kF32, dims, {},
                                         HostBufferSemantics::kImmutableOnlyDuringCall,
                                         (*client)->device(0), nullptr);
  ASSERT_OK(a.status());
  for (int i = 0; i < 20; ++i) {
    Result<Buffer> c = Run(*exe, {a->get()}, (*client)->device(0));
    ASSERT_OK(c.status());
    std::promise<Code> ready;
    c->ReadyEvent()->OnReady([&](const Status& status) { ready.set_value(status.code()); });
    EXPECT_EQ(ready.get_future().get(), Code::kOk);  // the event handle is long gone
    EXPECT_EQ(static_cast<const float*>(*c->HostPointer())[512 * 512 - 1], 512.0f);
  }
}

TEST_P(PjrtTest, Execute) {
  LoadedExecutable exe = Compile(kAdd);
  ASSERT_TRUE(exe.valid());
  EXPECT_EQ(*exe.NumOutputs(), 1);
  Buffer a = Upload({1, 2, 3, 4});
  Buffer b = Upload({10, 20, 30, 40});
  for (int i = 0; i < 100; ++i) {
    Result<Buffer> c = Run(exe, {a.get(), b.get()}, client_->device(0));
    ASSERT_OK(c.status());
    ASSERT_OK(c->Await());
    EXPECT_EQ(std::memcmp(*c->HostPointer(), F4{11, 22, 33, 44}.data(), sizeof(F4)), 0);
  }
  EXPECT_FALSE(a.IsDeleted());
  // Wrong counts and handles are statuses.
  EXPECT_FALSE(Run(exe, {a.get()}, client_->device(0)).ok());
  EXPECT_EQ(Run(exe, {a.get(), nullptr}, client_->device(0)).status().code(),
            Code::kInvalidArgument);
  PJRT_Buffer* two[2] = {};
  std::vector<PJRT_Buffer*> arguments = {a.get(), b.get()};
  EXPECT_EQ(
      exe.Execute({.arguments = arguments, .results = two, .device = client_->device(0)}).code(),
      Code::kInvalidArgument);
  EXPECT_FALSE(Run(exe, {a.get(), b.get()}, nullptr).ok());  // portable: a device must be named
  b.Delete();
  EXPECT_TRUE(b.IsDeleted());
  EXPECT_FALSE(Run(exe, {a.get(), b.get()}, client_->device(0)).ok());
}

TEST_P(PjrtTest, PortableRunsOnEveryDevice) {
  std::unique_ptr<Client> four = NewClient(4);
  Result<LoadedExecutable> compiled = four->Compile(kAdd, {});
  ASSERT_OK(compiled.status());
  Result<std::string> bytes = compiled->Serialize();
  ASSERT_OK(bytes.status());
  Result<LoadedExecutable> loaded = four->Deserialize(*bytes);
  ASSERT_OK(loaded.status());
  for (const LoadedExecutable* exe : {&*compiled, &*loaded}) {
    for (int i = 0; i < 4; ++i) {
      Buffer a = Upload({1, 2, 3, 4}, i, four.get());
      Result<Buffer> c = Run(*exe, {a.get(), a.get()}, four->device(i));
      ASSERT_OK(c.status());
      EXPECT_EQ(Read(*c), (F4{2, 4, 6, 8}));
    }
  }
  Buffer a = Upload({1, 2, 3, 4}, 0, four.get());
  Result<Buffer> moved = a.CopyToDevice(four->device(3));
  ASSERT_OK(moved.status());
  EXPECT_EQ(Read(*moved), (F4{1, 2, 3, 4}));
  EXPECT_FALSE(a.CopyToDevice(nullptr).ok());
}

TEST_P(PjrtTest, AllReduceOverFourThreads) {
  constexpr const char* kAllReduce = R"(
module attributes {mhlo.num_replicas = 4 : i32} {
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_reduce"(%a) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}})";
  std::unique_ptr<Client> four = NewClient(4);
  Result<LoadedExecutable> exe =
      four->Compile(kAllReduce, {.num_replicas = 4, .portable = false, .device_ids = {0, 1, 2, 3}});
  ASSERT_OK(exe.status());
  std::array<F4, 4> results{};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      Buffer a = Upload({1, 2, 3, static_cast<float>(i)}, i, four.get());
      PJRT_Buffer* argument = a.get();
      PJRT_Buffer* result = nullptr;
      Status status = exe->Execute({.arguments = {&argument, 1},
                                    .results = {&result, 1},
                                    .device = four->device(i),
                                    .launch_id = 7});
      ASSERT_OK(status);
      results[static_cast<size_t>(i)] = Read(Buffer(plugin_->api(), result));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const F4& result : results) EXPECT_EQ(result, (F4{4, 8, 12, 6}));
}

TEST_P(PjrtTest, Donation) {
  LoadedExecutable exe = Compile(kDonatingAdd);
  ASSERT_TRUE(exe.valid());
  PJRT_Device* device = client_->device(0);
  Buffer b = Upload({1, 1, 1, 1});

  Buffer kept = Upload({1, 2, 3, 4});
  Result<Buffer> copy = Run(exe, {kept.get(), b.get()}, device, {0});
  ASSERT_OK(copy.status());
  EXPECT_FALSE(kept.IsDeleted());
  EXPECT_EQ(Read(kept), (F4{1, 2, 3, 4}));
  EXPECT_EQ(Read(*copy), (F4{2, 3, 4, 5}));

  Buffer given = Upload({1, 2, 3, 4});
  const void* address = *given.HostPointer();
  Result<Buffer> result = Run(exe, {given.get(), b.get()}, device);
  ASSERT_OK(result.status());
  EXPECT_TRUE(given.IsDeleted());
  EXPECT_EQ(*result->HostPointer(), address);
  EXPECT_EQ(Read(*result), (F4{2, 3, 4, 5}));
  EXPECT_FALSE(given.Await().ok());
  EXPECT_FALSE(Run(exe, {given.get(), b.get()}, device).ok());

  // The same buffer donated and read.
  Buffer twice = Upload({1, 2, 3, 4});
  EXPECT_EQ(Run(exe, {twice.get(), twice.get()}, device).status().code(), Code::kInvalidArgument);
}

TEST_P(PjrtTest, SerializedBytes) {
  LoadedExecutable exe = Compile(kDonatingAdd);
  Result<std::string> bytes = exe.Serialize();
  ASSERT_OK(bytes.status());
  EXPECT_GT(bytes->size(), 100u);
  Result<LoadedExecutable> loaded = client_->Deserialize(*bytes);
  ASSERT_OK(loaded.status());
  Buffer a = Upload({1, 2, 3, 4});
  Buffer b = Upload({1, 1, 1, 1});
  Result<Buffer> c = Run(*loaded, {a.get(), b.get()}, client_->device(0));
  ASSERT_OK(c.status());
  EXPECT_EQ(Read(*c), (F4{2, 3, 4, 5}));
  EXPECT_TRUE(a.IsDeleted());  // aliasing survives
  EXPECT_FALSE(client_->Deserialize("no executable").ok());
  EXPECT_FALSE(client_->Deserialize("").ok());
}

TEST_P(PjrtTest, WrongPrograms) {
  for (const char* text : {"this is no program", "", "func.func @main() {",
                           "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
                           "  return %a : tensor<4xf32>\n}"}) {
    Result<LoadedExecutable> exe = client_->Compile(text, {});
    EXPECT_FALSE(exe.ok()) << text;
    EXPECT_FALSE(exe.status().message().empty());
  }
  CompileOptions unknown;
  unknown.overrides["no_such_option"] = "1";
  Status status = client_->Compile(kAdd, unknown).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("no_such_option"), std::string::npos);
}

TEST_P(PjrtTest, OverridesReachTheCompiler) {
  constexpr const char* kMax = R"(
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.maximum %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32>
})";
  CompileOptions options;
  options.overrides["xla_cpu_enable_fast_min_max"] = "False";
  options.optimization_level = 19;
  Result<LoadedExecutable> exe = client_->Compile(kMax, options);
  ASSERT_OK(exe.status());
  Buffer one = Upload({1, 1, 1, 1});
  Buffer nan = Upload({NAN, NAN, NAN, NAN});
  EXPECT_TRUE(std::isnan(Read(*Run(*exe, {one.get(), nan.get()}, client_->device(0)))[0]));
}

TEST_P(PjrtTest, StatisticsOfAnExecutable) {
  LoadedExecutable exe = Compile(kAdd);
  Result<CompiledMemoryStats> memory = exe.MemoryStats();
  ASSERT_OK(memory.status());
  EXPECT_EQ(memory->arguments, 32);
  EXPECT_EQ(memory->outputs, 16);
  Result<std::map<std::string, double>> costs = exe.CostAnalysis();
  if (costs.ok()) {
    EXPECT_EQ((*costs)["flops"], 4.0);
  } else {
    EXPECT_EQ(costs.status().code(), Code::kUnimplemented);
  }
  Result<std::string> program = exe.OptimizedProgram();
  ASSERT_OK(program.status());
  EXPECT_NE(program->find("main"), std::string::npos);
}

TEST_P(PjrtTest, EventsCallBack) {
  Buffer a = Upload({1, 2, 3, 4});
  std::promise<Code> good, bad;
  a.ReadyEvent()->OnReady([&](const Status& status) { good.set_value(status.code()); });
  EXPECT_EQ(good.get_future().get(), Code::kOk);
  a.Delete();
  Result<Event> failed = a.ReadyEvent();
  if (failed.ok()) {
    failed->OnReady([&](const Status& status) { bad.set_value(status.code()); });
    EXPECT_NE(bad.get_future().get(), Code::kOk);
  }
  bool called = false;
  Event().OnReady([&](const Status& status) { called = status.ok(); });
  EXPECT_TRUE(called);
}

TEST_P(PjrtTest, EmptyHandles) {
  Buffer buffer;
  EXPECT_FALSE(buffer.valid());
  EXPECT_FALSE(buffer.Await().ok());
  EXPECT_FALSE(buffer.Shape().ok());
  EXPECT_FALSE(buffer.HostPointer().ok());
  buffer.Delete();
  EXPECT_TRUE(Event().Await().ok());
  LoadedExecutable exe;
  EXPECT_FALSE(exe.Execute({}).ok());
  EXPECT_FALSE(exe.Serialize().ok());
  EXPECT_FALSE(Executable().Serialize().ok());
}

TEST_P(PjrtTest, Topology) {
  EXPECT_EQ(Topology::Create(plugin_, "").status().code(), Code::kInvalidArgument);
  // The CPU plugin has no named topologies.
  EXPECT_EQ(Topology::Create(plugin_, "v5e:2x2").status().code(), Code::kUnimplemented);
}

TEST_P(PjrtTest, UnknownClientOption) {
  Result<std::unique_ptr<Client>> client =
      Client::Create(plugin_, {{"cpu_device_count", int64_t{1}}, {"no_such_option", int64_t{1}}});
  // Plugins older than June 2026 ignore it.
  if (!client.ok()) {
    EXPECT_EQ(client.status().code(), Code::kInvalidArgument);
  }
}

INSTANTIATE_TEST_SUITE_P(Plugins, PjrtTest, testing::ValuesIn(TestPlugins()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return "Plugin" + std::to_string(info.index);
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PjrtTest);

}  // namespace
}  // namespace tpu::pjrt
