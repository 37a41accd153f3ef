// Runs case files: case_runner FILE... Each case is a test for each mode, on the first plugin of
// TORCH_TPU_TEST_PLUGINS.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "base/flags.h"
#include "exec/composer.h"
#include "runner/run_case.h"

namespace tpu::cases {
namespace {

Result<runtime::Device*> TheDevice() {
  static const Status flags = [] {
    const char* env = std::getenv("TORCH_TPU_TEST_PLUGINS");
    const std::string all = env != nullptr ? env : "";
    if (all.empty()) return InvalidArgument("set TORCH_TPU_TEST_PLUGINS to the path of a plugin");
    TPU_RETURN_IF_ERROR(SetFlag("cache", "off"));
    return SetFlag("plugin", all.substr(0, all.find(':')));
  }();
  TPU_RETURN_IF_ERROR(flags);
  TPU_ASSIGN_OR_RETURN(runtime::Runtime* const runtime, runtime::Runtime::Get());
  runtime::Device::SetIndexDescriber(&exec::DescribeIndexRecord);
  return runtime->device(0);
}

class CaseTest : public testing::Test {
 public:
  explicit CaseTest(const Case* c) : case_(*c) {}
  void TestBody() override {
    const auto device = TheDevice();
    ASSERT_TRUE(device.ok()) << device.status().ToString();
    for (const Status& s :
         {RunCase(case_, *device, EagerMode::kStrict), RunCase(case_, *device, EagerMode::kFuse),
          CheckInference(case_, *device)}) {
      EXPECT_TRUE(s.ok()) << case_.call.overload->name << ": " << s.ToString();
    }
  }

 private:
  const Case& case_;
};

int Main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string path = argv[i];
    auto cases = ReadCaseFile(path);
    if (!cases.ok()) {
      std::cerr << cases.status().ToString() << "\n";
      return 1;
    }
    const auto* const kept = new std::vector<Case>(std::move(cases).value());
    const std::string suite = std::filesystem::path(path).stem().string();
    for (const Case& c : *kept) {
      testing::RegisterTest(suite.c_str(), c.name.c_str(), nullptr, nullptr, path.c_str(), c.line,
                            [&c]() -> testing::Test* { return new CaseTest(&c); });
    }
  }
  if (argc < 2) {
    std::cerr << "usage: case_runner FILE...\n";
    return 1;
  }
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace tpu::cases

int main(int argc, char** argv) { return tpu::cases::Main(argc, argv); }
