#include "exec/cuts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/value.h"

namespace tpu::exec {
namespace {

// Plays programs as fuse mode would, and writes down where they are cut.
class Player {
 public:
  explicit Player(int64_t max_bytes = 1 << 20) : cutter_(max_bytes) {}

  // A call of operator `op` on storages, each with what was last written to it.
  void Call(uint64_t op, const std::vector<int>& reads, int writes, int64_t bytes = 4) {
    ++tick_;
    std::vector<Cutter::Operand> operands;
    for (int s : reads) operands.push_back({&storages_[size_t(s)], born_[size_t(s)]});
    born_[size_t(writes)] = tick_ * runtime::Value::kBornPerCall;
    ++calls_;
    const char* reason = cutter_.Add(HashOf(op), operands, bytes);
    if (reason != nullptr) Cut(reason);
  }
  void Cut(const std::string& reason) {
    cutter_.Cut(reason == "repeat");
    reasons.push_back(reason);
    lengths.push_back(calls_);
    calls_ = 0;
  }

  std::vector<std::string> reasons;
  std::vector<size_t> lengths;

 private:
  static uint64_t HashOf(uint64_t op) { return (op + 1) * 0x9e3779b97f4a7c15u; }
  Cutter cutter_;
  char storages_[2000] = {};
  uint64_t born_[2000] = {};
  uint64_t tick_ = 0;
  size_t calls_ = 0;
};

TEST(CutterTest, AShortLoopIsCutAtMultiplesOfItsTurn) {
  Player p;
  for (int turn = 0; turn < 1000; ++turn) {
    for (uint64_t op = 0; op < 7; ++op) p.Call(op, {0, 1 + int(op)}, 0);
  }
  ASSERT_GT(p.lengths.size(), 10u);
  EXPECT_EQ(p.reasons[0], "repeat");
  EXPECT_EQ(p.lengths[0], 64u);
  for (size_t i = 1; i < p.lengths.size(); ++i) EXPECT_EQ(p.lengths[i], 126u) << i;  // 18 turns
}

TEST(CutterTest, FreshInputsOfEachTurnDoNotHideALoop) {
  Player p;
  for (int turn = 0; turn < 200; ++turn) {
    p.Call(1, {}, 100 + turn);  // a batch in a new storage each turn
    for (uint64_t op = 2; op < 12; ++op) p.Call(op, {100 + turn, 0}, 0);
  }
  ASSERT_GT(p.lengths.size(), 5u);
  EXPECT_EQ(p.reasons[0], "repeat");
  for (size_t i = 1; i < p.lengths.size(); ++i) EXPECT_EQ(p.lengths[i], 121u) << i;
}

// Layers of a model: the same operators on other weights, which were there before.
TEST(CutterTest, LayersAreNoLoop) {
  Player p;
  for (int layer = 0; layer < 20; ++layer) {
    for (uint64_t op = 0; op < 12; ++op) p.Call(op, {0, 1 + layer * 12 + int(op)}, 0);
  }
  EXPECT_TRUE(p.reasons.empty());
}

TEST(CutterTest, EqualOperatorsWithOtherWiringAreNoLoop) {
  Player p;
  for (int i = 0; i < 200; ++i)
    p.Call(3, {500 + int(uint32_t(i) * 2654435761u >> 8) % (i + 1)}, 501 + i);
  EXPECT_TRUE(p.reasons.empty());
}

TEST(CutterTest, ALoopLongerThanTheLimitIsCutAlikeInEachTurn) {
  for (uint64_t length : {300u, 517u, 700u, 1024u, 1777u}) {
    Player p;
    std::vector<std::vector<size_t>> cuts;  // where in the turn
    for (int turn = 0; turn < 12; ++turn) {
      cuts.emplace_back();
      for (uint64_t op = 0; op < length; ++op) {
        const size_t before = p.lengths.size();
        p.Call(op * 31 % 97 + op, {0, 1 + int(op)}, 0);
        if (p.lengths.size() > before) cuts.back().push_back(op);
      }
    }
    for (size_t n : p.lengths) EXPECT_LE(n, Cutter::kHardLimit);
    EXPECT_FALSE(cuts.back().empty() && cuts[10].empty()) << length;
    // The last turns are cut as others were not long before.
    int alike = 0;
    for (size_t turn = 5; turn < 11; ++turn) alike += cuts[turn] == cuts.back();
    EXPECT_GE(alike, 2) << length;
  }
}

TEST(CutterTest, TheEndOfALoopIsNoticed) {
  Player p;
  for (int turn = 0; turn < 100; ++turn) {
    for (uint64_t op = 0; op < 5; ++op) p.Call(op, {0}, 0);
  }
  const size_t cuts = p.reasons.size();
  for (uint64_t op = 50; op < 150; ++op) p.Call(op, {0}, 0);
  EXPECT_EQ(p.reasons.size(), cuts);  // no cut where the loop would have had one
}

TEST(CutterTest, BytesBoundATrace) {
  Player p(1000);
  for (uint64_t op = 0; op < 10; ++op) p.Call(op, {0}, 0, 300);
  ASSERT_EQ(p.reasons.size(), 2u);
  EXPECT_EQ(p.reasons[0], "bytes");
  EXPECT_EQ(p.lengths[0], 4u);
}

TEST(CutterTest, ALookFromTheHostStartsAnew) {
  Player p;
  for (int turn = 0; turn < 50; ++turn) {
    for (uint64_t op = 0; op < 20; ++op) p.Call(op, {0}, 0);
    p.Cut("item");
  }
  for (const std::string& r : p.reasons) EXPECT_EQ(r, "item");
}

}  // namespace
}  // namespace tpu::exec
