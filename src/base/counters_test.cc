// Counters: every field has its name, counts from many threads add up, reset.
#include "base/counters.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace tpu {
namespace {

int64_t Value(std::string_view name) {
  for (const auto& [key, value] : Snapshot()) {
    if (key == name) return value;
  }
  return -1;
}

TEST(Counters, EveryFieldHasItsOwnName) {
  ResetCounters();
  std::set<std::string> names;
  for (const auto& [name, value] : Snapshot()) {
    EXPECT_EQ(value, 0);
    names.insert(name);
  }
  EXPECT_EQ(names.size(), sizeof(Counters) / sizeof(std::atomic<int64_t>));
  Count(counters.thread_handoffs, 3);
  Count(counters.compiles);
  EXPECT_EQ(Value("thread_handoffs"), 3);
  EXPECT_EQ(Value("compiles"), 1);
  EXPECT_EQ(Value("compile_ns"), 0);
  ResetCounters();
  EXPECT_EQ(Value("thread_handoffs"), 0);
}

TEST(Counters, Named) {
  ResetCounters();
  EXPECT_EQ(CountNamed("fallback.aten::foo"), 1);
  EXPECT_EQ(CountNamed("fallback.aten::foo"), 2);
  EXPECT_EQ(CountNamed("flush.item", 5), 5);
  const std::vector<std::pair<std::string, int64_t>> want = {{"fallback.aten::foo", 2},
                                                             {"flush.item", 5}};
  EXPECT_EQ(SnapshotNamed(), want);
  ResetCounters();
  EXPECT_TRUE(SnapshotNamed().empty());
}

TEST(Counters, ManyThreads) {
  ResetCounters();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 10000; ++i) {
        Count(counters.launches);
        if (i % 100 == 0) CountNamed("flush.size");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Value("launches"), 40000);
  EXPECT_EQ(SnapshotNamed()[0].second, 400);
  ResetCounters();
}

}  // namespace
}  // namespace tpu
