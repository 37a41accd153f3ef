// Decompose against direct indexing, over random views; and the steps expected for common ones.
#include "shape/view.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>
#include <map>

#include "shape/view_oracle.h"

namespace tpu::shape {
namespace {

using oracle::Addresses;
using oracle::Describe;
using oracle::Generator;
using oracle::IotaArray;

View Contiguous(const Dims& sizes, int64_t offset = 0) {
  return {sizes, RowMajorStrides(sizes), offset};
}

int Gathers(const ReadPlan& plan) {
  int n = 0;
  for (const auto& step : plan.steps) n += std::holds_alternative<GatherStep>(step) ? 1 : 0;
  return n;
}

void CheckRead(const View& view, const Dims& base) {
  SCOPED_TRACE(Describe(view, base));
  auto plan = Decompose(view, base);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  const auto got = oracle::Interpreter(IotaArray(base), *plan).Run();
  EXPECT_EQ(got.dims, view.sizes);
  EXPECT_EQ(got.data, Addresses(view));
}

// All offsets that keep the view in its base: equal variants must have equal steps.
void CheckAllOffsets(View view, const Dims& base) {
  std::map<int, std::vector<ReadStep>> steps;
  const int64_t room = NumElements(base) - Generator::LastAddress(view) + view.offset;
  for (view.offset = 0; view.offset < room; ++view.offset) {
    CheckRead(view, base);
    auto plan = Decompose(view, base);
    ASSERT_TRUE(plan.ok());
    auto [it, fresh] = steps.try_emplace(plan->variant, plan->steps);
    // Offset 0 of the contiguous view has no steps, and room for no other.
    EXPECT_EQ(it->second, plan->steps) << Describe(view, base) << " variant " << plan->variant;
    if (::testing::Test::HasFailure()) return;
  }
}

bool HasElements(const View& view) { return NumElements(view.sizes) > 0; }

TEST(Decompose, ChainsOfViewsOnTheirOwnBase) {
  Generator random(1);
  int gathers = 0, steps = 0, nontrivial = 0;
  for (int i = 0; i < 20000 && !HasFailure(); ++i) {
    const Dims base = random.Shape(6, 400);
    const View view = random.Chain(base, static_cast<int>(random.Int(0, 7)));
    CheckRead(view, base);
    const auto plan = Decompose(view, base);
    ASSERT_TRUE(plan.ok());
    nontrivial += plan->identity() ? 0 : 1;
    steps += static_cast<int>(plan->steps.size());
    gathers += Gathers(*plan);
  }
  std::printf("steps per plan that is not the identity: %.2f; gathers: %.1f %%\n",
              double(steps) / nontrivial, 100.0 * gathers / nontrivial);
}

TEST(Decompose, ChainsOfViewsOnAnotherShapeOfTheBase) {
  Generator random(2);
  for (int i = 0; i < 20000 && !HasFailure(); ++i) {
    const Dims made = random.Shape(6, 400);
    View view = random.Chain(made, static_cast<int>(random.Int(0, 7)));
    Dims base = random.Refactored(made);
    CheckRead(view, base);
    // The same view further on in a longer, flat base.
    if (HasElements(view)) {
      view.offset += random.Int(0, 9);
      CheckRead(view, {Generator::LastAddress(view) + 1 + random.Int(0, 9)});
    }
  }
}

TEST(Decompose, RandomStrides) {
  Generator random(3);
  for (int i = 0; i < 20000 && !HasFailure(); ++i) {
    Dims base = random.Shape(5, 300);
    if (NumElements(base) == 0) base = {60};
    CheckRead(random.Strided(NumElements(base)), base);
  }
}

TEST(Decompose, LargeBases) {
  Generator random(5);
  for (int i = 0; i < 10000 && !HasFailure(); ++i) {
    const Dims base = random.LargeShape();
    const View view = random.Chain(base, static_cast<int>(random.Int(0, 7)));
    auto plan = Decompose(view, base);
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    double numel = 1;  // with repeated elements there may be more than the tracer can count
    for (int64_t size : view.sizes) numel *= static_cast<double>(size);
    if (numel > 1e18) continue;
    oracle::Tracer tracer(base, *plan);
    for (int j = 0; j < 10; ++j) {
      const Dims index = random.Index(view.sizes);
      EXPECT_EQ(tracer.Address(index), view.offset + oracle::Dot(index, view.strides))
          << Describe(view, base);
    }
  }
}

TEST(Decompose, StepsDependOnTheVariantAlone) {
  Generator random(4);
  for (int i = 0; i < 2000 && !HasFailure(); ++i) {
    Dims made = random.Shape(4, 120);
    View view = random.Chain(made, static_cast<int>(random.Int(0, 5)));
    if (HasElements(view))
      CheckAllOffsets(view, random.Chance(0.5) ? made : random.Refactored(made));
    made = {random.Int(1, 120)};
    view = random.Strided(made[0]);
    CheckAllOffsets(view, random.Refactored(made));
  }
}

TEST(Decompose, ManyDimensions) {
  Dims base(80, 1);
  base[3] = 2;
  base[70] = 3;
  CheckRead(Contiguous(base), base);
  CheckRead({{3, 2}, {1, 3}, 0}, base);
  CheckRead({{2}, {3}, 1}, base);
  CheckRead(Contiguous({6}), base);
  View view{Dims(80, 1), Dims(80, 1), 4};
  CheckRead(view, base);
  view.sizes[79] = 2;
  CheckRead(view, base);
  view.strides[2] = 0;
  view.sizes[2] = 4;
  CheckRead(view, base);
  Dims binary(18, 2);
  CheckRead({binary, Dims(18, 1), 0}, {100});  // all overlapping
}

using Steps = std::vector<ReadStep>;

Steps StepsOf(const View& view, const Dims& base) {
  CheckRead(view, base);
  auto plan = Decompose(view, base);
  return plan.ok() ? plan->steps : Steps{};
}

void ExpectSteps(const View& view, const Dims& base, const Steps& want) {
  EXPECT_EQ(StepsOf(view, base), want) << Describe(view, base);
}

SliceStep Slice(Dims sizes, std::vector<bool> dynamic, Dims steps = {}) {
  if (steps.empty()) steps.assign(sizes.size(), 1);
  return {std::move(sizes), std::move(steps), std::move(dynamic)};
}

TEST(Decompose, FewestSteps) {
  ExpectSteps(Contiguous({2, 3}), {2, 3}, {});
  ExpectSteps({{2, 1, 3}, {3, 77, 1}, 0}, {2, 1, 3}, {});
  ExpectSteps(Contiguous({}), {}, {});
  ExpectSteps(Contiguous({3, 2}), {2, 3}, {ReshapeStep{{3, 2}}});
  ExpectSteps(Contiguous({6}), {2, 3}, {ReshapeStep{{6}}});
  ExpectSteps(Contiguous({2, 1, 3}), {2, 3}, {ReshapeStep{{2, 1, 3}}});
  ExpectSteps({{3, 2}, {1, 3}, 0}, {2, 3}, {TransposeStep{{1, 0}}});
  ExpectSteps({{3, 1, 2}, {1, 6, 3}, 0}, {2, 1, 3}, {TransposeStep{{2, 1, 0}}});
  // channels_last
  ExpectSteps({{2, 3, 4, 5}, {60, 1, 15, 3}, 0}, {2, 4, 5, 3}, {TransposeStep{{0, 3, 1, 2}}});
  ExpectSteps({{2, 3, 4, 5}, {60, 1, 15, 3}, 0}, {120},
              {ReshapeStep{{2, 4, 5, 3}}, TransposeStep{{0, 3, 1, 2}}});
  // expand
  ExpectSteps({{3, 4}, {1, 0}, 0}, {3, 1}, {BroadcastStep{{3, 4}, {0, 1}}});
  ExpectSteps({{2, 3}, {0, 1}, 0}, {3}, {BroadcastStep{{2, 3}, {1}}});
  ExpectSteps({{2, 3}, {0, 0}, 0}, {}, {BroadcastStep{{2, 3}, {}}});
  ExpectSteps({{2, 3}, {0, 0}, 0}, {1}, {BroadcastStep{{2, 3}, {0}}});
  // select, narrow
  ExpectSteps(Contiguous({5}, 5), {4, 5}, {Slice({1, 5}, {true, false}), ReshapeStep{{5}}});
  ExpectSteps(Contiguous({2, 5}, 5), {4, 5}, {Slice({2, 5}, {true, false})});
  ExpectSteps({{4, 2}, {5, 1}, 2}, {4, 5}, {Slice({4, 2}, {false, true})});
  ExpectSteps({{}, {}, 7}, {4, 5}, {Slice({1, 1}, {true, true}), ReshapeStep{{}}});
  ExpectSteps({{2, 4}, {1, 5}, 2}, {4, 5}, {Slice({4, 2}, {false, true}), TransposeStep{{1, 0}}});
  ExpectSteps({{7, 5}, {0, 1}, 5}, {4, 5},
              {Slice({1, 5}, {true, false}), BroadcastStep{{7, 5}, {0, 1}}});
  // steps: in the digit where they don't divide it, as a digit of their own where they do
  ExpectSteps({{3, 4}, {10, 3}, 0}, {3, 10}, {Slice({3, 4}, {false, false}, {1, 3})});
  ExpectSteps({{3, 3}, {10, 3}, 2}, {3, 10}, {Slice({3, 3}, {false, true}, {1, 3})});
  ExpectSteps({{3}, {2}, 1}, {6},
              {ReshapeStep{{3, 2}}, Slice({3, 1}, {false, true}), ReshapeStep{{3}}});
  ExpectSteps(
      {{3, 5}, {10, 1}, 5}, {6, 5},
      {ReshapeStep{{3, 2, 5}}, Slice({3, 1, 5}, {false, true, false}), ReshapeStep{{3, 5}}});
  ExpectSteps({{4}, {2}, 0}, {7}, {Slice({4}, {false}, {2})});
  // diagonals
  ExpectSteps({{3}, {4}, 0}, {3, 3}, {ReshapeStep{{9}}, Slice({3}, {false}, {4})});
  ExpectSteps({{2, 3}, {9, 4}, 0}, {2, 3, 3},
              {ReshapeStep{{2, 9}}, Slice({2, 3}, {false, false}, {1, 4})});
  // a parameter within a flat buffer, whatever its place
  for (int64_t offset : {0, 6, 7}) {
    ExpectSteps(Contiguous({2, 3}, offset), {30}, {Slice({6}, {true}), ReshapeStep{{2, 3}}});
  }
  // the heads of a fused projection (tokens of 3 * 3 * 8), and half of each head
  ExpectSteps({{2, 3, 4, 8}, {288, 8, 72, 1}, 24}, {2, 4, 72},
              {Slice({2, 4, 24}, {false, false, true}), ReshapeStep{{2, 4, 3, 8}},
               TransposeStep{{0, 2, 1, 3}}});
  ExpectSteps({{2, 4, 3, 4}, {288, 72, 8, 1}, 28}, {2, 4, 72},
              {ReshapeStep{{2, 4, 9, 8}}, Slice({2, 4, 3, 4}, {false, false, true, true})});
  // a window that is none of the base's digits: x[:, 1:].view(4, 2, 3)[:, :, :2]
  ExpectSteps({{4, 2, 2}, {7, 3, 1}, 1}, {4, 7},
              {Slice({4, 6}, {false, true}), ReshapeStep{{4, 2, 3}},
               Slice({4, 2, 2}, {false, false, true})});
  // sliding windows
  ExpectSteps({{4, 3}, {2, 1}, 0}, {9}, {GatherStep{{4, 3}, {2, 1}}});
}

TEST(Decompose, EmptyViews) {
  ExpectSteps({{0, 3}, {3, 1}, 0}, {2, 3}, {Slice({0, 3}, {false, false})});
  ExpectSteps({{2, 0}, {3, 1}, 3}, {2, 3}, {Slice({2, 0}, {false, false})});
  ExpectSteps({{0}, {1}, 900}, {2, 3}, {Slice({0, 3}, {false, false}), ReshapeStep{{0}}});
  ExpectSteps({{4, 0}, {0, 1}, 0}, {}, {BroadcastStep{{4, 0}, {}}});
  ExpectSteps({{0, 4}, {1, 1}, 0}, {0}, {ReshapeStep{{0, 4}}});
  ExpectSteps({{3, 0}, {9, 9}, 0}, {3, 0}, {});
}

void ExpectOutside(const View& view, const Dims& base, const char* part) {
  for (const Status& status : {Decompose(view, base).status(), Invert(view, base).status()}) {
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << Describe(view, base);
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(ToString(view.sizes)), std::string::npos) << status.message();
  }
}

TEST(Decompose, ViewsThatLeaveTheirBase) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  ExpectOutside({{3}, {2}, 2}, {6}, "beyond the end");
  ExpectOutside({{2, 3}, {3, 1}, 1}, {2, 3}, "beyond the end");
  ExpectOutside({{}, {}, 6}, {2, 3}, "beyond the end");
  ExpectOutside({{1}, {1}, 0}, {0}, "beyond the end");
  ExpectOutside({{1}, {1}, -1}, {2}, "before");
  ExpectOutside({{0}, {1}, -1}, {2}, "before");
  ExpectOutside({{2}, {-1}, 1}, {2}, "negative stride");
  ExpectOutside({{-2}, {1}, 0}, {2}, "negative size");
  ExpectOutside({{2, 2}, {1}, 0}, {2}, "one stride");
  ExpectOutside({{5, 5}, {kHuge, 1}, 0}, {100}, "beyond the end");
  ExpectOutside({{kHuge, kHuge}, {kHuge, 4}, 0}, {100}, "beyond the end");
  ExpectOutside({{2, 2, 2}, {kHuge, kHuge, kHuge}, 3}, {100}, "beyond the end");
  ExpectOutside({{2}, {1}, INT64_MAX}, {100}, "beyond the end");
  ExpectOutside({{2}, {1}, 0}, {kHuge, 4, 0}, "too many");
  ExpectOutside({{2}, {1}, 0}, {2, -1}, "negative size");
  // As large as it gets, in a base that big.
  EXPECT_TRUE(Decompose({{2, 2}, {kHuge / 2, 1}, 3}, Dims{kHuge}).ok());
  EXPECT_TRUE(Decompose({{3}, {kHuge / 3}, 3}, Dims{kHuge}).ok());
  EXPECT_TRUE(Decompose({{kHuge, kHuge}, {0, 0}, 3}, Dims{4}).ok());
}

TEST(Decompose, SpeedPrintout) {
  const struct {
    const char* name;
    View view;
    Dims base;
  } cases[] = {
      {"identity", Contiguous({8, 128, 64}), {8, 128, 64}},
      {"reshape", Contiguous({1024, 64}), {8, 128, 64}},
      {"transpose", {{8, 64, 128}, {8192, 1, 64}, 0}, {8, 128, 64}},
      {"select", {{128, 64}, {64, 1}, 16384}, {8, 128, 64}},
      {"narrow last", {{8, 128, 16}, {8192, 64, 1}, 32}, {8, 128, 64}},
      {"expand", {{8, 128, 64}, {0, 64, 1}, 0}, {128, 64}},
      {"channels_last", {{8, 3, 32, 32}, {3072, 1, 96, 3}, 0}, {8, 32, 32, 3}},
      {"heads", {{8, 4, 128, 16}, {24576, 16, 192, 1}, 64}, {8, 128, 192}},
      {"flat parameter", Contiguous({64, 64}, 4096), {100000}},
      {"x[::2]", {{4, 128, 64}, {16384, 64, 1}, 8192}, {8, 128, 64}},
      {"diagonal", {{8, 64}, {4096, 65}, 0}, {8, 64, 64}},
      {"window", {{4, 2, 2}, {7, 3, 1}, 1}, {4, 7}},
      {"unfold", {{100, 3}, {1, 1}, 0}, {102}},
  };
  for (const auto& c : cases) {
    constexpr int kRounds = 50000;
    const std::clock_t begin = std::clock();  // process time: steadier on busy machines
    size_t steps = 0;
    for (int i = 0; i < kRounds; ++i) steps += Decompose(c.view, c.base)->steps.size();
    const double ns = 1e9 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    std::printf("%-16s %6.0f ns, %zu steps\n", c.name, ns / kRounds, steps / kRounds);
  }
}

}  // namespace
}  // namespace tpu::shape
