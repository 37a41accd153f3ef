// Invert against direct writes, over random views; overlap, density and order against enumeration.
#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>
#include <map>
#include <set>

#include "shape/view.h"
#include "shape/view_oracle.h"

namespace tpu::shape {
namespace {

using Kind = WritePlan::Kind;
using oracle::Addresses;
using oracle::Array;
using oracle::Describe;
using oracle::Generator;
using oracle::IotaArray;

bool Repeats(const View& view) {
  std::set<int64_t> seen;
  for (int64_t a : Addresses(view)) {
    if (!seen.insert(a).second) return true;
  }
  return false;
}

void CheckWrite(const View& view, const Dims& base) {
  SCOPED_TRACE(Describe(view, base));
  const bool repeats = Repeats(view);
  EXPECT_EQ(OverlapsItself(view), repeats);
  auto plan = Invert(view, base);
  if (repeats) {
    EXPECT_EQ(plan.status().code(), Code::kInvalidArgument);
    EXPECT_NE(plan.status().message().find("single memory location"), std::string::npos);
    return;
  }
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  const Array value = IotaArray(view.sizes, 10000);
  Array want = IotaArray(base);
  const auto addresses = Addresses(view);
  for (size_t i = 0; i < addresses.size(); ++i) {
    want.data.at(static_cast<size_t>(addresses[i])) = value.data[i];
  }
  EXPECT_EQ(oracle::Write(IotaArray(base), value, *plan).data, want.data);

  const bool dense = addresses.size() == static_cast<size_t>(NumElements(base));
  EXPECT_EQ(CoversDensely(view, NumElements(base)), dense);
  if (!addresses.empty()) {
    EXPECT_EQ(plan->kind == Kind::kFull, dense);
  } else {
    EXPECT_EQ(plan->kind, Kind::kNothing);
  }
}

bool SameStructure(const WritePlan& a, const WritePlan& b) {
  return a.kind == b.kind && a.value_perm == b.value_perm && a.update_dims == b.update_dims &&
         a.base_dims == b.base_dims && a.steps == b.steps && a.dynamic == b.dynamic &&
         a.scatter_strides == b.scatter_strides;
}

TEST(Invert, ChainsOfViews) {
  Generator random(11);
  std::map<Kind, int> kinds;
  for (int i = 0; i < 20000 && !HasFailure(); ++i) {
    const Dims made = random.Shape(6, 300);
    const View view = random.Chain(made, static_cast<int>(random.Int(0, 7)));
    CheckWrite(view, made);
    CheckWrite(view, random.Refactored(made));
    if (const auto plan = Invert(view, made); plan.ok()) ++kinds[plan->kind];
  }
  std::printf("nothing %d, full %d, slice %d, masked %d, scatter %d\n", kinds[Kind::kNothing],
              kinds[Kind::kFull], kinds[Kind::kSlice], kinds[Kind::kMasked], kinds[Kind::kScatter]);
}

TEST(Invert, RandomStrides) {
  Generator random(12);
  for (int i = 0; i < 20000 && !HasFailure(); ++i) {
    Dims base = random.Shape(5, 200);
    if (NumElements(base) == 0) base = {60};
    CheckWrite(random.Strided(NumElements(base)), base);
  }
}

// Follows single elements of the value to their place in the base.
TEST(Invert, LargeBases) {
  Generator random(15);
  for (int i = 0; i < 10000 && !HasFailure(); ++i) {
    const Dims base = random.LargeShape();
    const View view = random.Chain(base, static_cast<int>(random.Int(0, 5)));
    auto plan = Invert(view, base);
    EXPECT_EQ(plan.ok(), !OverlapsItself(view)) << Describe(view, base);
    if (!plan.ok()) continue;
    for (int j = 0; j < 10; ++j) {
      const Dims index = random.Index(view.sizes);
      Dims permuted, dims;
      for (int64_t p : plan->value_perm) {
        permuted.push_back(index[static_cast<size_t>(p)]);
        dims.push_back(view.sizes[static_cast<size_t>(p)]);
      }
      ASSERT_EQ(NumElements(dims), NumElements(plan->update_dims));
      const Dims at = oracle::Unravel(oracle::Ravel(permuted, dims), plan->update_dims);
      int64_t got = 0;
      if (plan->kind == Kind::kScatter) {
        got = plan->starts.at(0) + oracle::Dot(at, plan->scatter_strides);
      } else {
        Dims target = at;
        size_t next = 0;
        for (size_t d = 0; d < at.size(); ++d) {
          if (plan->kind == Kind::kMasked) target[d] *= plan->steps[d];
          if (plan->kind != Kind::kFull && plan->dynamic[d]) target[d] += plan->starts.at(next++);
          EXPECT_LT(target[d], plan->base_dims[d]);
        }
        got = oracle::Ravel(target, plan->base_dims);
      }
      EXPECT_EQ(got, view.offset + oracle::Dot(index, view.strides)) << Describe(view, base);
    }
  }
}

TEST(Invert, StructureDependsOnTheVariantAlone) {
  Generator random(13);
  for (int i = 0; i < 2000 && !HasFailure(); ++i) {
    const Dims made = random.Shape(4, 120);
    View view = random.Chain(made, static_cast<int>(random.Int(0, 5)));
    if (NumElements(view.sizes) == 0 || OverlapsItself(view)) continue;
    const Dims base = random.Refactored(made);
    std::map<int, WritePlan> plans;
    const int64_t room = NumElements(base) - Generator::LastAddress(view) + view.offset;
    for (view.offset = 0; view.offset < room && !HasFailure(); ++view.offset) {
      CheckWrite(view, base);
      const auto plan = Invert(view, base);
      auto [it, fresh] = plans.try_emplace(plan->variant, *plan);
      EXPECT_TRUE(SameStructure(it->second, *plan)) << Describe(view, base);
    }
  }
}

TEST(Invert, CommonCases) {
  // channels_last into its own storage
  WritePlan plan = *Invert({{2, 3, 4, 5}, {60, 1, 15, 3}, 0}, Dims{2, 4, 5, 3});
  EXPECT_EQ(plan.kind, Kind::kFull);
  EXPECT_EQ(plan.value_perm, (Dims{0, 2, 3, 1}));
  EXPECT_EQ(plan.update_dims, (Dims{2, 4, 5, 3}));
  // x[2] = v
  plan = *Invert({{5}, {1}, 10}, Dims{4, 5});
  EXPECT_EQ(plan.kind, Kind::kSlice);
  EXPECT_EQ(plan.base_dims, (Dims{4, 5}));
  EXPECT_EQ(plan.update_dims, (Dims{1, 5}));
  EXPECT_EQ(plan.dynamic, (std::vector<bool>{true, false}));
  EXPECT_EQ(plan.starts, (Dims{2}));
  // x[1::2] = v on an even dimension
  plan = *Invert({{2, 5}, {10, 1}, 5}, Dims{4, 5});
  EXPECT_EQ(plan.kind, Kind::kSlice);
  EXPECT_EQ(plan.base_dims, (Dims{2, 2, 5}));
  EXPECT_EQ(plan.update_dims, (Dims{2, 1, 5}));
  EXPECT_EQ(plan.starts, (Dims{1}));
  // and on an odd one
  plan = *Invert({{2}, {2}, 1}, Dims{5});
  EXPECT_EQ(plan.kind, Kind::kMasked);
  EXPECT_EQ(plan.base_dims, (Dims{5}));
  EXPECT_EQ(plan.steps, (Dims{2}));
  EXPECT_EQ(plan.starts, (Dims{1}));
  // the diagonal
  plan = *Invert({{3}, {4}, 0}, Dims{3, 3});
  EXPECT_EQ(plan.kind, Kind::kMasked);
  EXPECT_EQ(plan.base_dims, (Dims{9}));
  // neither digits nor overlap
  plan = *Invert({{3, 2}, {2, 3}, 0}, Dims{8});
  EXPECT_EQ(plan.kind, Kind::kScatter);
  EXPECT_EQ(plan.scatter_strides, (Dims{2, 3}));
  EXPECT_EQ(plan.starts, (Dims{0}));
  EXPECT_FALSE(Invert({{4}, {0}, 0}, Dims{4}).ok());
  EXPECT_FALSE(Invert({{4, 3}, {1, 1}, 0}, Dims{9}).ok());
}

TEST(Invert, SpeedPrintout) {
  const struct {
    const char* name;
    View view;
    Dims base;
  } cases[] = {
      {"full", {{8, 128, 64}, {8192, 64, 1}, 0}, {8, 128, 64}},
      {"channels_last", {{8, 3, 32, 32}, {3072, 1, 96, 3}, 0}, {8, 32, 32, 3}},
      {"select", {{128, 64}, {64, 1}, 16384}, {8, 128, 64}},
      {"narrow last", {{8, 128, 16}, {8192, 64, 1}, 32}, {8, 128, 64}},
      {"diagonal", {{8, 64}, {4096, 65}, 0}, {8, 64, 64}},
  };
  for (const auto& c : cases) {
    constexpr int kRounds = 50000;
    const std::clock_t begin = std::clock();
    size_t rank = 0;
    for (int i = 0; i < kRounds; ++i) rank += Invert(c.view, c.base)->base_dims.size();
    const double ns = 1e9 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    std::printf("%-16s %6.0f ns, rank %zu\n", c.name, ns / kRounds, rank / kRounds);
  }
}

TEST(OverlapsItself, AgainstEnumeration) {
  Generator random(14);
  int overlapping = 0;
  for (int i = 0; i < 100000 && !HasFailure(); ++i) {
    View view;
    for (int64_t rank = random.Int(1, 5); rank > 0; --rank) {
      view.sizes.push_back(random.Int(1, 5));
      view.strides.push_back(random.Int(1, random.Chance(0.5) ? 12 : 90));
    }
    const bool repeats = Repeats(view);
    overlapping += repeats ? 1 : 0;
    EXPECT_EQ(OverlapsItself(view), repeats) << Describe(view, {});
  }
  std::printf("overlapping: %d of 100000\n", overlapping);
}

TEST(OverlapsItself, LargeOnes) {
  constexpr int64_t kMillion = 1000000;
  EXPECT_FALSE(OverlapsItself({{kMillion, kMillion}, {kMillion, 1}, 0}));
  EXPECT_TRUE(OverlapsItself({{kMillion, kMillion}, {kMillion - 1, 1}, 0}));
  EXPECT_FALSE(OverlapsItself({{kMillion, kMillion}, {kMillion + 1, kMillion}, 0}));
  EXPECT_TRUE(OverlapsItself({{kMillion + 1, kMillion + 2}, {kMillion + 1, kMillion}, 0}));
  EXPECT_FALSE(OverlapsItself({{3, 1000, 1000}, {7, 999983, 1000003}, 0}));
  EXPECT_TRUE(OverlapsItself({{kMillion, 2}, {0, 1}, 0}));
  EXPECT_FALSE(OverlapsItself({{kMillion, 0}, {0, 1}, 0}));
  EXPECT_FALSE(OverlapsItself({{}, {}, 5}));
}

TEST(CoversDensely, Cases) {
  EXPECT_TRUE(CoversDensely({{2, 3}, {1, 2}, 0}, 6));
  EXPECT_TRUE(CoversDensely({{2, 1, 3}, {1, 50, 2}, 0}, 6));
  EXPECT_FALSE(CoversDensely({{2, 3}, {1, 2}, 0}, 7));
  EXPECT_FALSE(CoversDensely({{2, 3}, {1, 2}, 1}, 7));
  EXPECT_FALSE(CoversDensely({{2, 3}, {1, 2}, 0}, 5));
  EXPECT_FALSE(CoversDensely({{2, 3}, {0, 1}, 0}, 3));
  EXPECT_TRUE(CoversDensely({{}, {}, 0}, 1));
  EXPECT_FALSE(CoversDensely({{}, {}, 0}, 0));
  EXPECT_TRUE(CoversDensely({{0, 3}, {3, 1}, 0}, 0));
  EXPECT_FALSE(CoversDensely({{0}, {1}, 0}, 1));
}

TEST(PhysicalOrder, Cases) {
  EXPECT_EQ(PhysicalOrder({{2, 3, 4, 5}, {60, 1, 15, 3}, 0}), (Dims{0, 2, 3, 1}));
  EXPECT_EQ(PhysicalOrder({{2, 3, 4}, {12, 4, 1}, 0}), (Dims{0, 1, 2}));
  EXPECT_EQ(PhysicalOrder({{1, 3, 1, 4}, {1, 1, 99, 3}, 0}), (Dims{0, 3, 2, 1}));
  EXPECT_EQ(PhysicalOrder({{2, 3, 4}, {0, 1, 0}, 0}), (Dims{1, 0, 2}));
  EXPECT_EQ(PhysicalOrder({{}, {}, 0}), Dims{});
}

}  // namespace
}  // namespace tpu::shape
