// The runner must be able to fail: wrong values, wrong types, touched storages, missing errors; and
// case files that are no case files.
#include <gtest/gtest.h>

#include <cstdlib>

#include "exec/composer.h"
#include "runner/run_case.h"

namespace tpu::cases {
namespace {

constexpr char kAdd[] =
    "op aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n"
    "case sum\n"
    "  self = float32[3] {1 2 3}\n"
    "  other = float32[3] {0.5 -2 nan}\n";
constexpr char kAddInPlace[] =
    "op row aten::add.Tensor aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) "
    "-> Tensor(a!)\n"
    "case into_a_view\n"
    "  storage s float32[4] {1 2 3 4}\n"
    "  self = s[2] strides [2] offset 1\n"
    "  other = wrapped 10\n";
constexpr char kSelect[] =
    "op aten::index_select(Tensor self, int dim, Tensor index) -> Tensor\n"
    "case pick\n"
    "  self = int64[3] {5 6 7}\n"
    "  dim = 0\n";

runtime::Device* TheDevice() {
  static runtime::Device* const device = [] {
    const char* env = std::getenv("TORCH_TPU_TEST_PLUGINS");
    const std::string all = env != nullptr ? env : "";
    EXPECT_TRUE(SetFlag("plugin", all.substr(0, all.find(':'))).ok());
    const auto runtime = runtime::Runtime::Get();
    EXPECT_TRUE(runtime.ok()) << runtime.status().ToString();
    runtime::Device::SetIndexDescriber(&exec::DescribeIndexRecord);
    return runtime.ok() ? (*runtime)->device(0) : nullptr;
  }();
  return device;
}

// What running the only case of `text` says, in both modes.
std::string Outcome(const std::string& text) {
  const auto cases = ParseCases(text);
  if (!cases.ok()) return "parse: " + cases.status().ToString();
  const Status strict = RunCase(cases->at(0), TheDevice(), EagerMode::kStrict);
  const Status fuse = RunCase(cases->at(0), TheDevice(), EagerMode::kFuse);
  EXPECT_EQ(strict.ToString(), fuse.ToString());
  return strict.ok() ? "passes" : strict.ToString();
}

void ExpectOutcome(const std::string& text, const std::string& part) {
  const std::string outcome = Outcome(text);
  EXPECT_NE(outcome.find(part), std::string::npos) << outcome;
}

TEST(RunnerTest, PassesWhatIsRight) {
  EXPECT_EQ(Outcome(std::string(kAdd) + "-> float32[3] {1.5 0 nan}\n"), "passes");
  EXPECT_EQ(Outcome(std::string(kAddInPlace) + "after s {1 12 3 14}\n"), "passes");
}

TEST(RunnerTest, ReportsWrongValues) {
  const std::string add = kAdd;
  ExpectOutcome(add + "-> float32[3] {1.5 0 3}\n", "element 2 is nan, expected 3");
  ExpectOutcome(add + "-> float32[3] {1.5 -0.0 nan}\n", "element 1 is 0, expected -0");
  EXPECT_EQ(Outcome(add + "-> float32[3] {1.5 -0.0 nan}\ntolerance any_zero\n"), "passes");
  ExpectOutcome(add + "-> float32[3] {1.5000001 0 nan}\n", "1 of 3 elements differ");
  EXPECT_EQ(Outcome(add + "-> float32[3] {1.5000001 0 nan}\ntolerance ulp 1\n"), "passes");
  ExpectOutcome(add + "-> float32[3] {1.5000003 0 nan}\ntolerance ulp 1\n", "differ");
  ExpectOutcome(add + "-> float32[3] {inf 0 nan}\ntolerance rtol 1000\n", "expected inf");
  EXPECT_EQ(Outcome(add + "-> float32[3] {1.4 0 nan}\ntolerance atol 0.11\n"), "passes");
}

TEST(RunnerTest, ReportsWrongTypesAndCounts) {
  const std::string add = kAdd;
  ExpectOutcome(add + "-> float32[1, 3] {1.5 0 nan}\n", "[3]");
  ExpectOutcome(add + "-> float32[3] {1.5 0 nan}\n-> float32[3] {1.5 0 nan}\n",
                "1 new tensors, expected 2");
  const auto cases = ParseCases(add + "-> float64[3] {1.5 0 nan}\n");
  ASSERT_TRUE(cases.ok()) << cases.status().ToString();
  const Status inferred = CheckInference(cases->at(0), TheDevice());
  EXPECT_NE(inferred.ToString().find("is float32[3], expected float64[3]"), std::string::npos)
      << inferred.ToString();
}

TEST(RunnerTest, ReportsStorages) {
  const std::string in_place = kAddInPlace;
  ExpectOutcome(in_place + "after s {1 12 3 15}\n", "written storage s");
  ExpectOutcome(in_place + "after s {1 12 4 14}\n", "element 2 is 3, expected 4");
  // A write that the case doesn't tell of.
  ExpectOutcome(in_place + "storage t float32[1] {0}\nafter t {0}\n", "untouched storage s");
}

TEST(RunnerTest, ReportsErrors) {
  const std::string select = kSelect;
  const std::string bad = select + "  index = int64[2] {0 3}\n";
  ExpectOutcome(bad + "-> int64[2] {5 7}\n", "index 3 is out of bounds");
  EXPECT_EQ(Outcome(bad + "error \"out of range\" \"index 3 is out of bounds\"\n"), "passes");
  ExpectOutcome(bad + "error \"out of range\" \"index 4\"\n", "failed with");
  ExpectOutcome(bad + "error \"not implemented\" \"index 3\"\n", "failed with");
  ExpectOutcome(select + "  index = int64[1] {1}\nerror \"out of range\" \"index\"\n", "no error");
}

TEST(ParserTest, RefusesWhatIsNoCase) {
  const std::string add = kAdd;
  ExpectOutcome("", "no case");
  ExpectOutcome("case early\n", "line 1: a case before any op");
  ExpectOutcome("op aten::nonsense(Tensor self) -> Tensor\n", "no row");
  ExpectOutcome("op aten::nonzero(Tensor self) -> Tensor\n", "not the core's");
  ExpectOutcome(add, "expects nothing");
  ExpectOutcome(add + "-> float32[3] {1 2}\n", "2 values of data where 3");
  ExpectOutcome(add + "-> float32[3] {1 2 x}\n", "not a number");
  ExpectOutcome(add + "-> float23[3] {1 2 3}\n", "no such type");
  ExpectOutcome(add + "beta = 3\n", "no argument 'beta'");
  ExpectOutcome(add + "-> uint8[1] {256}\n", "does not hold 256");
  ExpectOutcome(add + "-> float16[1] {0.1}\n", "does not hold");
  ExpectOutcome(add + "-> float32[3] {1 2 3} 4\n", "unexpected '4'");
  ExpectOutcome(add + "after x {1}\n", "no storage 'x'");
  ExpectOutcome(std::string(kSelect) + "-> int64[0] {}\n", "argument 'index' is missing");
}

TEST(ElementsTest, HoldEveryType) {
  for (int i = 1; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    std::vector<char> one, two;
    const int parts = IsComplex(dtype) ? 2 : 1;
    for (int p = 0; p < parts; ++p) {
      EXPECT_TRUE(AppendElement(dtype, "1", &one).ok());
      EXPECT_TRUE(
          AppendElement(dtype, IsFloat(dtype) || IsComplex(dtype) ? "nan" : "0", &two).ok());
    }
    EXPECT_EQ(one.size(), size_t(ItemSize(dtype))) << TorchName(dtype);
    EXPECT_TRUE(CompareElements(dtype, one.data(), one.data(), 1, {}).ok()) << TorchName(dtype);
    EXPECT_TRUE(CompareElements(dtype, two.data(), two.data(), 1, {}).ok()) << TorchName(dtype);
    EXPECT_FALSE(CompareElements(dtype, one.data(), two.data(), 1, {}).ok()) << TorchName(dtype);
  }
}

}  // namespace
}  // namespace tpu::cases
