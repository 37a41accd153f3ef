// Runs case files: case_runner [--threads] FILE... Each case is a test, on the first plugin of
// TORCH_TPU_TEST_PLUGINS. With --threads all of them run in several threads at once.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <list>
#include <thread>

#include "base/flags.h"
#include "exec/composer.h"
#include "runner/run_case.h"

namespace tpu::cases {
namespace {

Result<runtime::Device*> TheDevice() {
  static const Status started = [] {
    runtime::Device::SetIndexDescriber(&exec::DescribeIndexRecord);
    const char* env = std::getenv("TORCH_TPU_TEST_PLUGINS");
    const std::string all = env != nullptr ? env : "";
    if (all.empty()) return InvalidArgument("set TORCH_TPU_TEST_PLUGINS to the path of a plugin");
    TPU_RETURN_IF_ERROR(SetFlag("cache", "off"));
    return SetFlag("plugin", all.substr(0, all.find(':')));
  }();
  TPU_RETURN_IF_ERROR(started);
  TPU_ASSIGN_OR_RETURN(runtime::Runtime* const runtime, runtime::Runtime::Get());
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

// Two threads strict, two fuse, which share one trace. Every thread runs every case, from another
// one on, so that threads meet in the same keys and in different ones. Cases that fail are left
// out: an index error belongs to the device, and whoever asks first gets it.
class ThreadsTest : public testing::Test {
 public:
  explicit ThreadsTest(const std::list<std::vector<Case>>* files) : files_(*files) {}
  void TestBody() override {
    const auto device = TheDevice();
    ASSERT_TRUE(device.ok()) << device.status().ToString();
    std::vector<const Case*> cases;
    for (const auto& file : files_) {
      for (const Case& c : file) {
        if (c.error_code.empty()) cases.push_back(&c);
      }
    }
    std::vector<std::thread> threads;
    constexpr size_t kThreads = 4;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (size_t i = 0; i < cases.size(); ++i) {
          const Case& c = *cases[(i + t * cases.size() / kThreads) % cases.size()];
          const Status s = RunCase(c, *device, t % 2 ? EagerMode::kFuse : EagerMode::kStrict);
          EXPECT_TRUE(s.ok()) << c.name << ": " << s.ToString();
        }
      });
    }
    for (std::thread& t : threads) t.join();
  }

 private:
  const std::list<std::vector<Case>>& files_;
};

int Main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  std::list<std::vector<Case>> kept;  // addresses stay: tests refer to their cases
  bool threads = false;
  for (int i = 1; i < argc; ++i) {
    const std::string path = argv[i];
    if (path == "--threads") {
      threads = true;
      continue;
    }
    auto cases = ReadCaseFile(path);
    if (!cases.ok()) {
      std::cerr << cases.status().ToString() << "\n";
      return 1;
    }
    kept.push_back(std::move(cases).value());
    const std::string suite = std::filesystem::path(path).stem().string();
    if (threads) continue;
    for (const Case& c : kept.back()) {
      testing::RegisterTest(suite.c_str(), c.name.c_str(), nullptr, nullptr, path.c_str(), c.line,
                            [&c]() -> testing::Test* { return new CaseTest(&c); });
    }
  }
  if (kept.empty()) {
    std::cerr << "usage: case_runner [--threads] FILE...\n";
    return 1;
  }
  if (threads) {
    testing::RegisterTest("cases", "in_threads", nullptr, nullptr, __FILE__, __LINE__,
                          [&]() -> testing::Test* { return new ThreadsTest(&kept); });
  }
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace tpu::cases

int main(int argc, char** argv) { return tpu::cases::Main(argc, argv); }
