// Literals and attributes as MLIR text.
#include <gtest/gtest.h>

#include <limits>

#include "hlo/function_impl.h"

namespace tpu::hlo {
namespace {

std::string Text(DType dtype, Number value) {
  Result<std::string> literal = Literal(dtype, value);
  return literal.ok() ? *literal : "error: " + literal.status().message();
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Literal, Floats) {
  EXPECT_EQ(Text(DType::kF32, 1), "1.0");
  EXPECT_EQ(Text(DType::kF32, true), "1.0");
  EXPECT_EQ(Text(DType::kF32, 0.1), "0.100000001");
  EXPECT_EQ(Text(DType::kF64, 0.1), "0.10000000000000001");
  EXPECT_EQ(Text(DType::kF32, -0.0), "-0.0");
  EXPECT_EQ(Text(DType::kF64, 1e20), "1.0e+20");
  EXPECT_EQ(Text(DType::kF32, 1.5e-7), "1.50000005e-07");
  EXPECT_EQ(Text(DType::kF32, int64_t{16777217}), "16777216.0");
  EXPECT_EQ(Text(DType::kBF16, 0.5), "0.5");
}

TEST(Literal, WhatHasNoDecimal) {
  EXPECT_EQ(Text(DType::kF32, kNan), "0x7FC00000");
  EXPECT_EQ(Text(DType::kF32, kInf), "0x7F800000");
  EXPECT_EQ(Text(DType::kF32, -kInf), "0xFF800000");
  EXPECT_EQ(Text(DType::kF32, 1e300), "0x7F800000");
  EXPECT_EQ(Text(DType::kF64, -kInf), "0xFFF0000000000000");
  EXPECT_EQ(Text(DType::kF16, kNan), "0x7E00");
  EXPECT_EQ(Text(DType::kBF16, kInf), "0x7F80");
  EXPECT_EQ(Text(DType::kF8E5M2, kInf), "0x7C");
  EXPECT_EQ(Text(DType::kF8E4M3FN, kInf), "0x7F");
  EXPECT_EQ(Text(DType::kF8E4M3FNUZ, kNan), "0x80");
}

TEST(Literal, IntegersWrap) {
  EXPECT_EQ(Text(DType::kU8, -1), "255");
  EXPECT_EQ(Text(DType::kI8, 200), "-56");
  EXPECT_EQ(Text(DType::kU64, -1), "18446744073709551615");
  EXPECT_EQ(Text(DType::kI64, std::numeric_limits<uint64_t>::max()), "-1");
  EXPECT_EQ(Text(DType::kI64, std::numeric_limits<int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(Text(DType::kI32, -2.75), "-2");
  EXPECT_EQ(Text(DType::kU64, 1.8e19), "18000000000000000000");
  EXPECT_EQ(Text(DType::kI32, kNan), "error: the constant nan is no 64-bit integer");
  EXPECT_EQ(Text(DType::kI32, 1e30), "error: the constant 1e+30 is no 64-bit integer");
}

TEST(Literal, BoolAndComplex) {
  EXPECT_EQ(Text(DType::kBool, 0.5), "true");
  EXPECT_EQ(Text(DType::kBool, kNan), "true");
  EXPECT_EQ(Text(DType::kBool, 0), "false");
  EXPECT_EQ(Text(DType::kC64, 2), "(2.0, 0.0)");
  EXPECT_EQ(Text(DType::kC128, std::complex<double>(0.1, -1)), "(0.10000000000000001, -1.0)");
  EXPECT_EQ(Text(DType::kC64, std::complex<double>(0, kNan)), "(0.0, 0x7FC00000)");
  EXPECT_EQ(Text(DType::kF32, std::complex<double>(2, 0)), "2.0");
  EXPECT_EQ(Text(DType::kF32, std::complex<double>(2, 1)),
            "error: the complex constant (2,1) is no float32");
}

TEST(Literal, Nested) {
  EXPECT_EQ(NestedLiterals({"1", "2", "3", "4"}, Dims{2, 2}), "[[1, 2], [3, 4]]");
  EXPECT_EQ(NestedLiterals({"7"}, Dims{}), "7");
}

TEST(Attributes, Text) {
  EXPECT_EQ(Attributes().I64("a", -1).Bool("b", true).Array("c", Dims{1, 2}).text(),
            "a = -1 : i64, b = true, c = array<i64: 1, 2>");
  EXPECT_EQ(Attributes().Array("c", {}).text(), "c = array<i64>");
  EXPECT_EQ(Attributes().String("s", "a\"b\\\n").text(), "s = \"a\\22b\\5C\\0A\"");
  Window window{.pad_low = 1, .pad_high = 2};
  EXPECT_EQ(Attributes().Padding("p", {&window, 1}).text(),
            "p = dense<[[1, 2]]> : tensor<1x2xi64>");
  EXPECT_EQ(Attributes().Padding("p", {}).text(), "p = dense<> : tensor<0x2xi64>");
}

TEST(Identity, OfEachDType) {
  EXPECT_EQ(Text(DType::kI8, Identity(Monoid::kMax, DType::kI8)), "-128");
  EXPECT_EQ(Text(DType::kI16, Identity(Monoid::kMin, DType::kI16)), "32767");
  EXPECT_EQ(Text(DType::kI64, Identity(Monoid::kMax, DType::kI64)), "-9223372036854775808");
  EXPECT_EQ(Text(DType::kU16, Identity(Monoid::kMin, DType::kU16)), "65535");
  EXPECT_EQ(Text(DType::kU32, Identity(Monoid::kAnd, DType::kU32)), "4294967295");
  EXPECT_EQ(Text(DType::kBF16, Identity(Monoid::kMax, DType::kBF16)), "0xFF80");
  EXPECT_EQ(Text(DType::kF8E4M3FN, Identity(Monoid::kMax, DType::kF8E4M3FN)), "-448.0");
  EXPECT_EQ(Text(DType::kBool, Identity(Monoid::kMin, DType::kBool)), "true");
}

}  // namespace
}  // namespace tpu::hlo
