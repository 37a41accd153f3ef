// The helpers over lists of sizes.
#include "shape/dims.h"

#include <gtest/gtest.h>

namespace tpu {
namespace {

TEST(Dims, Strides) {
  EXPECT_EQ(RowMajorStrides(Dims{2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(RowMajorStrides(Dims{2, 0, 4}), (Dims{4, 4, 1}));
  EXPECT_EQ(RowMajorStrides(Dims{}), Dims{});
  EXPECT_EQ(NumElements(Dims{}), 1);
  EXPECT_EQ(NumElements(Dims{2, 0, 4}), 0);
}

TEST(Dims, IotaAndText) {
  EXPECT_EQ(Iota(3), (Dims{0, 1, 2}));
  EXPECT_EQ(Iota(0), Dims{});
  EXPECT_EQ(ToString(Dims{2, -3}), "[2, -3]");
  EXPECT_EQ(ToString(Dims{}), "[]");
}

TEST(Dims, Broadcast) {
  Dims out;
  EXPECT_TRUE(BroadcastShapes(Dims{2, 1, 4}, Dims{3, 1}, &out));
  EXPECT_EQ(out, (Dims{2, 3, 4}));
  EXPECT_TRUE(BroadcastShapes(Dims{}, Dims{3, 0}, &out));
  EXPECT_EQ(out, (Dims{3, 0}));
  EXPECT_TRUE(BroadcastShapes(Dims{1}, Dims{0}, &out));
  EXPECT_EQ(out, (Dims{0}));
  EXPECT_TRUE(BroadcastShapes(Dims{}, Dims{}, &out));
  EXPECT_EQ(out, Dims{});
  EXPECT_FALSE(BroadcastShapes(Dims{2}, Dims{3}, &out));
  EXPECT_FALSE(BroadcastShapes(Dims{2}, Dims{0}, &out));
}

TEST(Dims, Wrap) {
  EXPECT_EQ(WrapDim(-1, 3), 2);
  EXPECT_EQ(WrapDim(2, 3), 2);
  EXPECT_EQ(WrapDim(3, 3), -1);
  EXPECT_EQ(WrapDim(-4, 3), -1);
  EXPECT_EQ(WrapDim(0, 0), 0);
  EXPECT_EQ(WrapDim(-1, 0), 0);
  EXPECT_EQ(WrapDim(1, 0), -1);
}

}  // namespace
}  // namespace tpu
