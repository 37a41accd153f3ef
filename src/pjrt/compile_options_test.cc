// Compile options as wire bytes, and the wire format itself.
#include <gtest/gtest.h>

#include "pjrt/pjrt.h"
#include "pjrt/wire.h"

namespace tpu::pjrt {
namespace {

std::string Bytes(std::initializer_list<int> values) {
  std::string out;
  for (int v : values) out.push_back(static_cast<char>(v));
  return out;
}

TEST(WireTest, Varints) {
  std::string out;
  wire::PutVarint(&out, 0);
  wire::PutVarint(&out, 127);
  wire::PutVarint(&out, 300);
  EXPECT_EQ(out, Bytes({0, 127, 0xAC, 2}));
  out.clear();
  wire::PutInt(&out, 1, -1);
  EXPECT_EQ(out, Bytes({8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}));
  out.clear();
  wire::PutInt(&out, 19, 1);  // a key of two bytes
  EXPECT_EQ(out, Bytes({0x98, 1, 1}));
}

TEST(WireTest, FirstBytesField) {
  std::string message;
  wire::PutInt(&message, 3, 1 << 20);
  wire::PutBytes(&message, 2, "two");
  wire::PutBytes(&message, 1, "one");
  wire::PutBytes(&message, 1, "again");
  EXPECT_EQ(*wire::FirstBytesField(message, 1), "one");
  EXPECT_EQ(*wire::FirstBytesField(message, 2), "two");
  EXPECT_FALSE(wire::FirstBytesField(message, 3).ok());
  EXPECT_FALSE(wire::FirstBytesField(message, 4).ok());
  EXPECT_FALSE(wire::FirstBytesField(Bytes({10, 200, 1, 0}), 1).ok());  // longer than the message
  EXPECT_FALSE(wire::FirstBytesField(Bytes({10, 255}), 1).ok());        // an unfinished varint
}

TEST(CompileOptionsTest, Default) {
  const std::string build = Bytes({8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1,  // ordinal
                                   0x20, 1, 0x28, 1});  // replicas, partitions
  std::string expected = Bytes({0x1A, static_cast<int>(build.size())}) + build + Bytes({0x20, 1});
  EXPECT_EQ(CompileOptions{}.Serialize(), expected);
}

TEST(CompileOptionsTest, AssignmentIsTransposed) {
  CompileOptions options;
  options.portable = false;
  options.num_replicas = 2;
  options.num_partitions = 3;
  options.device_ids = {0, 1, 2, 3, 4, 300};
  const std::string build = *wire::FirstBytesField(options.Serialize(), 3);
  const std::string assignment = *wire::FirstBytesField(build, 9);
  EXPECT_EQ(assignment, Bytes({8,    2, 0x10, 3,        //
                               0x1A, 4, 0x0A, 2, 0, 3,  //
                               0x1A, 4, 0x0A, 2, 1, 4,  //
                               0x1A, 5, 0x0A, 3, 2, 0xAC, 2}));
}

TEST(CompileOptionsTest, Contradictions) {
  EXPECT_TRUE(CompileOptions{}.Check().ok());
  EXPECT_TRUE((CompileOptions{.num_replicas = 4, .portable = false}).Check().ok());
  for (const CompileOptions& wrong :
       {CompileOptions{.num_replicas = 0}, CompileOptions{.num_partitions = -1},
        CompileOptions{.num_replicas = 2}, CompileOptions{.device_ids = {0}},
        CompileOptions{.num_replicas = 2, .portable = false, .device_ids = {0, 1, 2}}}) {
    EXPECT_EQ(wrong.Check().code(), Code::kInvalidArgument);
  }
}

TEST(CompileOptionsTest, SpmdEffortAndOverrides) {
  CompileOptions options;
  options.use_spmd_partitioning = true;
  options.optimization_level = 19;
  options.overrides = {{"b", "True"}, {"a", "x"}};
  const std::string bytes = options.Serialize();
  const std::string build = *wire::FirstBytesField(bytes, 3);
  EXPECT_TRUE(build.ends_with(Bytes({0x30, 1, 0x98, 1, 1, 0xC0, 1, 19})));
  EXPECT_TRUE(bytes.ends_with(Bytes({0x3A, 8, 0x0A, 1, 'a', 0x12, 3, 0x0A, 1, 'x',  //
                                     0x3A, 11, 0x0A, 1, 'b', 0x12, 6, 0x0A, 4}) +
                              "True"));
}

}  // namespace
}  // namespace tpu::pjrt
