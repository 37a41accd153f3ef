// Compiles one small program for each op with real plugins, and runs it where there is a device.
// The plugins are the files named in TORCH_TPU_TEST_PLUGINS (separated by colons); libtpu compiles
// for a described chip, with none attached.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "hlo/compile_cases.h"
#include "pjrt/pjrt.h"

namespace tpu::hlo::testing {
namespace {

// --- Values to bytes and back.

uint16_t HalfBits(double value) {  // exact for the small values of the cases
  auto half = static_cast<_Float16>(value);
  return std::bit_cast<uint16_t>(half);
}

uint16_t BFloatBits(double value) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16);
}

template <class T>
void Put(std::string* out, T value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

void PutReal(std::string* out, DType dtype, double value) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8: return Put(out, static_cast<uint8_t>(value));
    case DType::kU16: return Put(out, static_cast<uint16_t>(value));
    case DType::kU32: return Put(out, static_cast<uint32_t>(value));
    case DType::kU64: return Put(out, static_cast<uint64_t>(value));
    case DType::kI8: return Put(out, static_cast<int8_t>(value));
    case DType::kI16: return Put(out, static_cast<int16_t>(value));
    case DType::kI32: return Put(out, static_cast<int32_t>(value));
    case DType::kI64: return Put(out, static_cast<int64_t>(value));
    case DType::kF16: return Put(out, HalfBits(value));
    case DType::kBF16: return Put(out, BFloatBits(value));
    case DType::kF64:
    case DType::kC128: return Put(out, value);
    default: return Put(out, static_cast<float>(value));
  }
}

template <class T>
double Take(const char** in) {
  T value;
  std::memcpy(&value, *in, sizeof(T));
  *in += sizeof(T);
  return static_cast<double>(value);
}

double TakeReal(const char** in, DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8: return Take<uint8_t>(in);
    case DType::kU16: return Take<uint16_t>(in);
    case DType::kU32: return Take<uint32_t>(in);
    case DType::kU64: return Take<uint64_t>(in);
    case DType::kI8: return Take<int8_t>(in);
    case DType::kI16: return Take<int16_t>(in);
    case DType::kI32: return Take<int32_t>(in);
    case DType::kI64: return Take<int64_t>(in);
    case DType::kF16: return Take<_Float16>(in);
    case DType::kBF16: {
      auto bits = static_cast<uint32_t>(Take<uint16_t>(in));
      return std::bit_cast<float>(bits << 16);
    }
    case DType::kF64:
    case DType::kC128: return Take<double>(in);
    default: return Take<float>(in);
  }
}

std::vector<double> Decode(const std::string& bytes, DType dtype) {
  std::vector<double> out;
  const char* in = bytes.data();
  while (in < bytes.data() + bytes.size()) out.push_back(TakeReal(&in, dtype));
  return out;
}

// --- The plugins.

struct Device {
  std::string path;
  std::unique_ptr<pjrt::Client> client;      // CPU plugins
  std::unique_ptr<pjrt::Topology> topology;  // libtpu
  std::string error;
};

Device Open(const std::string& path) {
  Device device{path, nullptr, nullptr, ""};
  auto plugin = pjrt::Plugin::Load(path);
  if (!plugin.ok()) {
    device.error = plugin.status().ToString();
  } else if (path.find("libtpu") != std::string::npos) {
    auto topology = pjrt::Topology::Create(*plugin, "v5e:2x2");
    if (topology.ok()) {
      device.topology = std::make_unique<pjrt::Topology>(std::move(topology).value());
    } else {
      device.error = topology.status().ToString();
    }
  } else {
    auto client = pjrt::Client::Create(*plugin, {{"cpu_device_count", int64_t{1}}});
    if (client.ok()) {
      device.client = std::move(client).value();
    } else {
      device.error = client.status().ToString();
    }
  }
  return device;
}

const std::vector<Device>& Devices() {
  static const auto* devices = [] {
    auto* out = new std::vector<Device>();
    const char* paths = std::getenv("TORCH_TPU_TEST_PLUGINS");
    std::stringstream stream(paths ? paths : "");
    for (std::string path; std::getline(stream, path, ':');) {
      if (!path.empty()) out->push_back(Open(path));
    }
    return out;
  }();
  return *devices;
}

// --- One case on one device.

void Compare(const std::vector<double>& actual, const std::vector<double>& expected,
             double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i]) || std::isinf(expected[i])) {
      EXPECT_TRUE(actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i])))
          << "element " << i << " is " << actual[i] << ", not " << expected[i];
    } else {
      EXPECT_NEAR(actual[i], expected[i], tolerance * std::max(1.0, std::fabs(expected[i])))
          << "element " << i;
    }
  }
}

void CompileAndRun(const Device& device, const Case& c, const Values& results,
                   const std::string& text, const pjrt::CompileOptions& options) {
  auto program = device.client->Compile(text, options);
  ASSERT_TRUE(program.ok()) << program.status().ToString() << "\n" << text;
  if (c.expected.empty()) return;
  std::vector<std::string> bytes;
  std::vector<pjrt::Buffer> buffers;
  std::vector<PJRT_Buffer*> arguments, outputs(results.size());
  for (const Input& input : c.inputs) {
    for (double value : input.values) {
      if (bytes.size() == buffers.size()) bytes.emplace_back();
      PutReal(&bytes.back(), input.type.dtype, value);
    }
    if (bytes.size() == buffers.size()) bytes.emplace_back();
    auto buffer = device.client->FromHost(bytes.back().data(), input.type.dtype, input.type.dims,
                                          {}, pjrt::HostBufferSemantics::kImmutableOnlyDuringCall,
                                          device.client->device(0), nullptr);
    ASSERT_TRUE(buffer.ok()) << buffer.status().ToString();
    buffers.push_back(std::move(buffer).value());
    arguments.push_back(buffers.back().get());
  }
  Status status = program->Execute(
      {.arguments = arguments, .results = outputs, .device = device.client->device(0)});
  ASSERT_TRUE(status.ok()) << status.ToString();
  for (size_t i = 0; i < outputs.size(); ++i) {
    SCOPED_TRACE("result " + std::to_string(i) + ", " + ToString(results[i].type()));
    pjrt::Buffer output(device.client->api(), outputs[i]);
    auto shape = output.Shape();
    ASSERT_TRUE(shape.ok());
    EXPECT_EQ(shape->first, results[i].dtype());
    EXPECT_EQ(shape->second, results[i].dims());
    std::string host(static_cast<size_t>(results[i].numel() * ItemSize(results[i].dtype())), 0);
    auto done = output.ToHost(host.data(), host.size());
    ASSERT_TRUE(done.ok()) << done.status().ToString();
    Status arrived = done->Await();
    ASSERT_TRUE(arrived.ok()) << arrived.ToString();
    if (c.expected[i].empty() && results[i].numel() > 0) continue;
    double tolerance = IsHalf(results[i].dtype()) ? 1e-2 : c.tolerance;
    Compare(Decode(host, results[i].dtype()), c.expected[i], tolerance);
  }
}

class CompileTest : public ::testing::TestWithParam<Case> {};

TEST_P(CompileTest, Compiles) {
  const Case& c = GetParam();
  Function fn;
  Values parameters;
  for (const Input& input : c.inputs) parameters.push_back(fn.Parameter(input.type));
  Values results = c.build(fn, parameters);
  auto text = fn.Finish(results, c.name);
  ASSERT_TRUE(text.ok()) << text.status().ToString();
  if (!c.expected.empty()) {
    ASSERT_EQ(c.expected.size(), results.size());
  }
  if (Devices().empty()) GTEST_SKIP() << "TORCH_TPU_TEST_PLUGINS names no plugin";
  for (const Device& device : Devices()) {
    SCOPED_TRACE(device.path);
    ASSERT_EQ(device.error, "");
    if (!(device.client ? c.not_on_cpu : c.not_on_tpu).empty()) continue;
    if (device.client) {
      CompileAndRun(device, c, results, *text, {});
    } else {
      pjrt::CompileOptions options;
      options.optimization_level = 9;
      auto program = device.topology->Compile(*text, options);
      EXPECT_TRUE(program.ok()) << program.status().ToString() << "\n" << *text;
    }
  }
}

std::string CaseName(const ::testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Elementwise, CompileTest, ::testing::ValuesIn(ElementwiseCases()),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(Constants, CompileTest, ::testing::ValuesIn(ConstantCases()), CaseName);
INSTANTIATE_TEST_SUITE_P(Shapes, CompileTest, ::testing::ValuesIn(ShapeCases()), CaseName);
INSTANTIATE_TEST_SUITE_P(Reductions, CompileTest, ::testing::ValuesIn(ReduceCases()), CaseName);
INSTANTIATE_TEST_SUITE_P(Contractions, CompileTest, ::testing::ValuesIn(ContractionCases()),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(Indexing, CompileTest, ::testing::ValuesIn(IndexingCases()), CaseName);
INSTANTIATE_TEST_SUITE_P(ControlFlow, CompileTest, ::testing::ValuesIn(ControlFlowCases()),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(Linalg, CompileTest, ::testing::ValuesIn(LinalgCases()), CaseName);

}  // namespace
}  // namespace tpu::hlo::testing
