// Promotion against answers of PyTorch 2.13 itself, as letter tables.
#include "shape/dtype.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tpu {
namespace {

// A is bool, B uint8, ... S complex128, in the order of the enum. '.' PyTorch raises, '-' no such
// participant, '?' complex32, which the project does not have.
char Letter(DType t) {
  return t == DType::kInvalid ? '.' : static_cast<char>('@' + static_cast<int>(t));
}
DType FromLetter(char c) {
  return c < 'A' || c > 'S' ? DType::kInvalid : static_cast<DType>(c - '@');
}

std::vector<DType> AllDTypes() {
  std::vector<DType> all;
  for (int i = 1; i < kNumDTypes; ++i) all.push_back(static_cast<DType>(i));
  return all;
}

// Row: torch.promote_types(row, column).
constexpr const char* kPromoteGolden[] = {
    "AB...FGHI....NOPQRS", "BB...GGHI....NOPQRS", "..C..........NOPQ..", "...D.........NOPQ..",
    "....E........NOPQ..", "FG...FGHI....NOPQRS", "GG...GGHI....NOPQRS", "HH...HHHI....NOPQRS",
    "II...IIII....NOPQRS", ".........J.........", "..........K........", "...........L.......",
    "............M......", "NNNNNNNNN....NPPQRS", "OOOOOOOOO....POPQRS", "PPPPPPPPP....PPPQRS",
    "QQQQQQQQQ....QQQQSS", "RR...RRRR....RRRSRS", "SS...SSSS....SSSSSS",
};

// Row: torch.can_cast(row, column).
constexpr const char* kCanCastGolden[] = {
    "1111111111111111111", "0111111111111111111", "0111111111111111111", "0111111111111111111",
    "0111111111111111111", "0111111111111111111", "0111111111111111111", "0111111111111111111",
    "0111111111111111111", "0000000001111111111", "0000000001111111111", "0000000001111111111",
    "0000000001111111111", "0000000001111111111", "0000000001111111111", "0000000001111111111",
    "0000000001111111111", "0000000000000000011", "0000000000000000011",
};

// at::result_type of a dimensioned tensor (row), a zero-dimensional one (column; both start with
// "none") and a Python number, under a default dtype.
struct ResultTypeGolden {
  char default_dtype;
  char wrapped;
  const char* rows[20];
};
constexpr ResultTypeGolden kResultTypeGolden[] = {
    {'P',
     '-',
     {
         "-ABCDEFGHIJKLMNOPQRS", "AAB...FGHI....NOPQRS", "BBBBBBBBBB....NOPQRS",
         "CCCCCCCCCC....NOPQRS", "DDDDDDDDDD....NOPQRS", "EEEEEEEEEE....NOPQRS",
         "FFFFFFFFFF....NOPQRS", "GGGGGGGGGG....NOPQRS", "HHHHHHHHHH....NOPQRS",
         "IIIIIIIIII....NOPQRS", "JJJJJJJJJJJJJJJJJJ..", "KKKKKKKKKKKKKKKKKK..",
         "LLLLLLLLLLLLLLLLLL..", "MMMMMMMMMMMMMMMMMM..", "NNNNNNNNNNNNNNNNNN??",
         "OOOOOOOOOOOOOOOOOORR", "PPPPPPPPPPPPPPPPPPRR", "QQQQQQQQQQQQQQQQQQSS",
         "RRRRRRRRRRRRRRRRRRRR", "SSSSSSSSSSSSSSSSSSSS",
     }},
    {'P',
     'A',
     {
         "AABCDEFGHIJKLMNOPQRS", "AAB...FGHI....NOPQRS", "BBBBBBBBBB....NOPQRS",
         "CCCCCCCCCC....NOPQRS", "DDDDDDDDDD....NOPQRS", "EEEEEEEEEE....NOPQRS",
         "FFFFFFFFFF....NOPQRS", "GGGGGGGGGG....NOPQRS", "HHHHHHHHHH....NOPQRS",
         "IIIIIIIIII....NOPQRS", "JJJJJJJJJJJJJJJJJJ..", "KKKKKKKKKKKKKKKKKK..",
         "LLLLLLLLLLLLLLLLLL..", "MMMMMMMMMMMMMMMMMM..", "NNNNNNNNNNNNNNNNNN??",
         "OOOOOOOOOOOOOOOOOORR", "PPPPPPPPPPPPPPPPPPRR", "QQQQQQQQQQQQQQQQQQSS",
         "RRRRRRRRRRRRRRRRRRRR", "SSSSSSSSSSSSSSSSSSSS",
     }},
    {'P',
     'I',
     {
         "IIBCDEFGHIJKLMNOPQRS", "IIB...FGHI....NOPQRS", "BBBBBBBBBB....NOPQRS",
         "CCCCCCCCCC....NOPQRS", "DDDDDDDDDD....NOPQRS", "EEEEEEEEEE....NOPQRS",
         "FFFFFFFFFF....NOPQRS", "GGGGGGGGGG....NOPQRS", "HHHHHHHHHH....NOPQRS",
         "IIIIIIIIII....NOPQRS", "JJJJJJJJJJJJJJJJJJ..", "KKKKKKKKKKKKKKKKKK..",
         "LLLLLLLLLLLLLLLLLL..", "MMMMMMMMMMMMMMMMMM..", "NNNNNNNNNNNNNNNNNN??",
         "OOOOOOOOOOOOOOOOOORR", "PPPPPPPPPPPPPPPPPPRR", "QQQQQQQQQQQQQQQQQQSS",
         "RRRRRRRRRRRRRRRRRRRR", "SSSSSSSSSSSSSSSSSSSS",
     }},
    {'P',
     'Q',
     {
         "PPPPPPPPPPJKLMNOPQRS", "PPPPPPPPPP....NOPQRS", "PPPPPPPPPP....NOPQRS",
         "PPPPPPPPPP....NOPQRS", "PPPPPPPPPP....NOPQRS", "PPPPPPPPPP....NOPQRS",
         "PPPPPPPPPP....NOPQRS", "PPPPPPPPPP....NOPQRS", "PPPPPPPPPP....NOPQRS",
         "PPPPPPPPPP....NOPQRS", "JJJJJJJJJJJJJJJJJJ..", "KKKKKKKKKKKKKKKKKK..",
         "LLLLLLLLLLLLLLLLLL..", "MMMMMMMMMMMMMMMMMM..", "NNNNNNNNNNNNNNNNNN??",
         "OOOOOOOOOOOOOOOOOORR", "PPPPPPPPPPPPPPPPPPRR", "QQQQQQQQQQQQQQQQQQSS",
         "RRRRRRRRRRRRRRRRRRRR", "SSSSSSSSSSSSSSSSSSSS",
     }},
    {'P',
     'S',
     {
         "RRRRRRRRRR....?RRSRS", "RRRRRRRRRR....?RRSRS", "RRRRRRRRRR....?RRSRS",
         "RRRRRRRRRR....?RRSRS", "RRRRRRRRRR....?RRSRS", "RRRRRRRRRR....?RRSRS",
         "RRRRRRRRRR....?RRSRS", "RRRRRRRRRR....?RRSRS", "RRRRRRRRRR....?RRSRS",
         "RRRRRRRRRR....?RRSRS", "....................", "....................",
         "....................", "....................", "??????????....??????",
         "RRRRRRRRRR....RRRRRR", "RRRRRRRRRR....RRRRRR", "SSSSSSSSSS....SSSSSS",
         "RRRRRRRRRR....RRRRRR", "SSSSSSSSSS....SSSSSS",
     }},
    {'Q',
     'Q',
     {
         "QQQQQQQQQQJKLMNOPQRS", "QQQQQQQQQQ....NOPQRS", "QQQQQQQQQQ....NOPQRS",
         "QQQQQQQQQQ....NOPQRS", "QQQQQQQQQQ....NOPQRS", "QQQQQQQQQQ....NOPQRS",
         "QQQQQQQQQQ....NOPQRS", "QQQQQQQQQQ....NOPQRS", "QQQQQQQQQQ....NOPQRS",
         "QQQQQQQQQQ....NOPQRS", "JJJJJJJJJJJJJJJJJJ..", "KKKKKKKKKKKKKKKKKK..",
         "LLLLLLLLLLLLLLLLLL..", "MMMMMMMMMMMMMMMMMM..", "NNNNNNNNNNNNNNNNNN??",
         "OOOOOOOOOOOOOOOOOORR", "PPPPPPPPPPPPPPPPPPRR", "QQQQQQQQQQQQQQQQQQSS",
         "RRRRRRRRRRRRRRRRRRRR", "SSSSSSSSSSSSSSSSSSSS",
     }},
    {'Q',
     'S',
     {
         "SSSSSSSSSS....?RRSRS", "SSSSSSSSSS....?RRSRS", "SSSSSSSSSS....?RRSRS",
         "SSSSSSSSSS....?RRSRS", "SSSSSSSSSS....?RRSRS", "SSSSSSSSSS....?RRSRS",
         "SSSSSSSSSS....?RRSRS", "SSSSSSSSSS....?RRSRS", "SSSSSSSSSS....?RRSRS",
         "SSSSSSSSSS....?RRSRS", "....................", "....................",
         "....................", "....................", "??????????....??????",
         "RRRRRRRRRR....RRRRRR", "RRRRRRRRRR....RRRRRR", "SSSSSSSSSS....SSSSSS",
         "RRRRRRRRRR....RRRRRR", "SSSSSSSSSS....SSSSSS",
     }},
    {'O',
     'Q',
     {
         "OOOOOOOOOOJKLMNOPQRS", "OOOOOOOOOO....NOPQRS", "OOOOOOOOOO....NOPQRS",
         "OOOOOOOOOO....NOPQRS", "OOOOOOOOOO....NOPQRS", "OOOOOOOOOO....NOPQRS",
         "OOOOOOOOOO....NOPQRS", "OOOOOOOOOO....NOPQRS", "OOOOOOOOOO....NOPQRS",
         "OOOOOOOOOO....NOPQRS", "JJJJJJJJJJJJJJJJJJ..", "KKKKKKKKKKKKKKKKKK..",
         "LLLLLLLLLLLLLLLLLL..", "MMMMMMMMMMMMMMMMMM..", "NNNNNNNNNNNNNNNNNN??",
         "OOOOOOOOOOOOOOOOOORR", "PPPPPPPPPPPPPPPPPPRR", "QQQQQQQQQQQQQQQQQQSS",
         "RRRRRRRRRRRRRRRRRRRR", "SSSSSSSSSSSSSSSSSSSS",
     }},
    {'O',
     'S',
     {
         "RRRRRRRRRR....?RRSRS", "RRRRRRRRRR....?RRSRS", "RRRRRRRRRR....?RRSRS",
         "RRRRRRRRRR....?RRSRS", "RRRRRRRRRR....?RRSRS", "RRRRRRRRRR....?RRSRS",
         "RRRRRRRRRR....?RRSRS", "RRRRRRRRRR....?RRSRS", "RRRRRRRRRR....?RRSRS",
         "RRRRRRRRRR....?RRSRS", "....................", "....................",
         "....................", "....................", "??????????....??????",
         "RRRRRRRRRR....RRRRRR", "RRRRRRRRRR....RRRRRR", "SSSSSSSSSS....SSSSSS",
         "RRRRRRRRRR....RRRRRR", "SSSSSSSSSS....SSSSSS",
     }},
    {'N',
     'Q',
     {
         "NNNNNNNNNNJKLMNOPQRS", "NNNNNNNNNN....NOPQRS", "NNNNNNNNNN....NOPQRS",
         "NNNNNNNNNN....NOPQRS", "NNNNNNNNNN....NOPQRS", "NNNNNNNNNN....NOPQRS",
         "NNNNNNNNNN....NOPQRS", "NNNNNNNNNN....NOPQRS", "NNNNNNNNNN....NOPQRS",
         "NNNNNNNNNN....NOPQRS", "JJJJJJJJJJJJJJJJJJ..", "KKKKKKKKKKKKKKKKKK..",
         "LLLLLLLLLLLLLLLLLL..", "MMMMMMMMMMMMMMMMMM..", "NNNNNNNNNNNNNNNNNN??",
         "OOOOOOOOOOOOOOOOOORR", "PPPPPPPPPPPPPPPPPPRR", "QQQQQQQQQQQQQQQQQQSS",
         "RRRRRRRRRRRRRRRRRRRR", "SSSSSSSSSSSSSSSSSSSS",
     }},
    {'N',
     'S',
     {
         "??????????....?RRSRS", "??????????....?RRSRS", "??????????....?RRSRS",
         "??????????....?RRSRS", "??????????....?RRSRS", "??????????....?RRSRS",
         "??????????....?RRSRS", "??????????....?RRSRS", "??????????....?RRSRS",
         "??????????....?RRSRS", "....................", "....................",
         "....................", "....................", "??????????....??????",
         "RRRRRRRRRR....RRRRRR", "RRRRRRRRRR....RRRRRR", "SSSSSSSSSS....SSSSSS",
         "RRRRRRRRRR....RRRRRR", "SSSSSSSSSS....SSSSSS",
     }},
};

TEST(DType, PromoteTypesIsTorchs) {
  for (DType a : AllDTypes()) {
    for (DType b : AllDTypes()) {
      EXPECT_EQ(Letter(PromoteTypes(a, b)), kPromoteGolden[Letter(a) - 'A'][Letter(b) - 'A'])
          << TorchName(a) << " " << TorchName(b);
    }
  }
  EXPECT_EQ(PromoteTypes(DType::kInvalid, DType::kF32), DType::kInvalid);
}

TEST(DType, CanCastIsTorchs) {
  for (DType a : AllDTypes()) {
    for (DType b : AllDTypes()) {
      EXPECT_EQ(CanCast(a, b), kCanCastGolden[Letter(a) - 'A'][Letter(b) - 'A'] == '1')
          << TorchName(a) << " " << TorchName(b);
    }
  }
}

TEST(DType, ResultTypeIsTorchs) {
  for (const auto& golden : kResultTypeGolden) {
    for (int row = 0; row < 20; ++row) {
      for (int col = 0; col < 20; ++col) {
        ResultType result;
        if (row > 0) result.AddTensor(static_cast<DType>(row), false);
        if (col > 0) result.AddTensor(static_cast<DType>(col), true);
        if (golden.wrapped != '-') result.AddWrappedNumber(FromLetter(golden.wrapped));
        EXPECT_EQ(result.Get(FromLetter(golden.default_dtype)), FromLetter(golden.rows[row][col]))
            << "default " << golden.default_dtype << " wrapped " << golden.wrapped << " row " << row
            << " column " << col;
      }
    }
  }
}

TEST(DType, ResultTypeOfSeveral) {
  ResultType result;
  result.AddTensor(DType::kU8, false);
  result.AddTensor(DType::kI8, false);
  EXPECT_EQ(result.Get(), DType::kI16);
  result.AddTensor(DType::kU32, false);  // raises, and stays so
  EXPECT_EQ(result.Get(), DType::kInvalid);
  result.AddTensor(DType::kF32, false);
  EXPECT_EQ(result.Get(), DType::kInvalid);
  ResultType numbers;
  numbers.AddWrappedNumber(DType::kI64);
  numbers.AddWrappedNumber(DType::kF64);
  EXPECT_EQ(numbers.Get(), DType::kF32);
  EXPECT_EQ(numbers.Get(DType::kF64), DType::kF64);
}

TEST(DType, NamesAndSizes) {
  for (DType t : AllDTypes()) {
    EXPECT_EQ(DTypeFromTorchName(TorchName(t)), t);
    EXPECT_GT(ItemSize(t), 0);
  }
  EXPECT_EQ(DTypeFromTorchName("complex32"), std::nullopt);
  EXPECT_EQ(DTypeFromTorchName("invalid"), std::nullopt);
  EXPECT_EQ(MlirName(DType::kBool), "i1");
  EXPECT_EQ(MlirName(DType::kU16), "ui16");
  EXPECT_EQ(MlirName(DType::kF8E4M3FN), "f8E4M3FN");
  EXPECT_EQ(MlirName(DType::kC64), "complex<f32>");
  EXPECT_EQ(ItemSize(DType::kC128), 16);
  EXPECT_EQ(ItemSize(DType::kF8E5M2), 1);
}

TEST(DType, RelatedTypes) {
  EXPECT_EQ(RealOf(DType::kC128), DType::kF64);
  EXPECT_EQ(RealOf(DType::kI32), DType::kI32);
  EXPECT_EQ(ComplexOf(DType::kBF16), DType::kC64);
  EXPECT_EQ(ComplexOf(DType::kF64), DType::kC128);
  EXPECT_EQ(ComplexOf(DType::kC64), DType::kC64);
  EXPECT_EQ(OpMathType(DType::kF8E5M2), DType::kF32);
  EXPECT_EQ(OpMathType(DType::kF64), DType::kF64);
  EXPECT_EQ(AccumulateType(DType::kBool), DType::kI64);
  EXPECT_EQ(AccumulateType(DType::kU64), DType::kI64);
  EXPECT_EQ(AccumulateType(DType::kBF16), DType::kF32);
}

}  // namespace
}  // namespace tpu
