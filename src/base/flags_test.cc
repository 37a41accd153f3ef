// Flags: defaults, environment, setting by name, freezing, and errors that name what is wrong.
#include "base/flags.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace tpu {
namespace {

class FlagsTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const FlagRow& row : ListFlags()) unsetenv(row.variable.c_str());
    internal::ResetFlagsForTest();
  }
  void TearDown() override { SetUp(); }
  static void Env(const char* name, const char* value) {
    setenv(name, value, 1);
    internal::ResetFlagsForTest();
  }
};

TEST_F(FlagsTest, Defaults) {
  const Flags& flags = GetFlags();
  EXPECT_TRUE(FlagsStatus().ok());
  EXPECT_EQ(flags.plugin(), "");
  EXPECT_EQ(flags.devices(), 1);
  EXPECT_TRUE(flags.cache());
  EXPECT_EQ(flags.cache_max_bytes(), int64_t{4} << 30);
  EXPECT_EQ(flags.fallback(), FallbackMode::kWarn);
  EXPECT_EQ(flags.program_limit(), 4096);
  EXPECT_EQ(flags.program_bytes_limit(), int64_t{1} << 30);
  EXPECT_EQ(flags.compile_threads(), 2);
  EXPECT_EQ(flags.disabled_capabilities(), 0);
  EXPECT_EQ(flags.log_level(), 1);
  EXPECT_EQ(flags.memory_limit(), 0);
  EXPECT_EQ(flags.eager_mode(), EagerMode::kStrict);
  EXPECT_EQ(flags.dump_dir(), "");
}

TEST_F(FlagsTest, EnvironmentIsTheStartingValue) {
  Env("TORCH_TPU_DEVICES", " 4 ");
  Env("TORCH_TPU_CACHE", "off");
  Env("TORCH_TPU_PLUGIN", "/opt/plugin.so");
  Env("TORCH_TPU_CACHE_MAX_BYTES", "2GiB");
  Env("TORCH_TPU_DISABLE_CAPABILITIES", "linear_layout, inline_execute");
  Env("TORCH_TPU_EAGER_MODE", "fuse");
  Env("TORCH_TPU_DUMP_DIR", "programs");
  Env("TORCH_TPU_FALLBACK", "");  // as if it were not set
  const Flags& flags = GetFlags();
  EXPECT_TRUE(FlagsStatus().ok()) << FlagsStatus().ToString();
  EXPECT_EQ(flags.devices(), 4);
  EXPECT_FALSE(flags.cache());
  EXPECT_EQ(flags.plugin(), "/opt/plugin.so");
  EXPECT_EQ(flags.cache_max_bytes(), int64_t{2} << 30);
  EXPECT_EQ(flags.disabled_capabilities(), kDisableLinearLayout | kDisableInlineExecute);
  EXPECT_EQ(flags.eager_mode(), EagerMode::kFuse);
  EXPECT_EQ(flags.dump_dir(), "programs");
  EXPECT_EQ(flags.fallback(), FallbackMode::kWarn);
  EXPECT_EQ(*GetFlag("disable_capabilities"), "linear_layout,inline_execute");
}

TEST_F(FlagsTest, ZeroDevicesIsLegal) {
  Env("TORCH_TPU_DEVICES", "0");
  EXPECT_TRUE(FlagsStatus().ok());
  EXPECT_EQ(GetFlags().devices(), 0);
}

TEST_F(FlagsTest, BadVariableIsReportedWithNameAndValueAndKeepsTheDefault) {
  for (const char* bad : {"-1", "two", "3x", "1.5", "99999999999999999999", "0x4", "+1", "2000"}) {
    Env("TORCH_TPU_DEVICES", bad);
    const Status status = FlagsStatus();
    ASSERT_FALSE(status.ok()) << bad;
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find("TORCH_TPU_DEVICES"), std::string::npos);
    EXPECT_NE(status.message().find(bad), std::string::npos);
    EXPECT_EQ(GetFlags().devices(), 1);
  }
  Env("TORCH_TPU_FALLBACK", "loud");
  EXPECT_NE(FlagsStatus().message().find("TORCH_TPU_DEVICES"), std::string::npos);
  EXPECT_NE(FlagsStatus().message().find("warn|silent|error"), std::string::npos);
  // Setting a flag takes its complaint back.
  EXPECT_TRUE(SetFlag("devices", "2").ok());
  EXPECT_TRUE(SetFlag("fallback", "error").ok());
  EXPECT_TRUE(FlagsStatus().ok());
}

TEST_F(FlagsTest, BytesTakeUnits) {
  const std::pair<const char*, int64_t> good[] = {{"0", 0},
                                                  {"17", 17},
                                                  {"3K", 3072},
                                                  {"1M", 1 << 20},
                                                  {"4GiB", int64_t{4} << 30},
                                                  {"2TB", int64_t{2} << 40}};
  for (const auto& [text, bytes] : good) {
    ASSERT_TRUE(SetFlag("memory_limit", text).ok()) << text;
    EXPECT_EQ(GetFlags().memory_limit(), bytes);
  }
  for (const char* bad : {"", "-1", "K", "1X", "1Gib", "1 G", "9000000T", "99999999999T"}) {
    EXPECT_FALSE(SetFlag("memory_limit", bad).ok()) << bad;
  }
  EXPECT_FALSE(SetFlag("devices", "1K").ok());
  EXPECT_EQ(GetFlags().memory_limit(), int64_t{2} << 40);
}

TEST_F(FlagsTest, SetByName) {
  EXPECT_TRUE(SetFlag("eager_mode", "debug").ok());
  EXPECT_EQ(GetFlags().eager_mode(), EagerMode::kDebug);
  EXPECT_TRUE(SetFlag("cache", "false").ok());
  EXPECT_EQ(*GetFlag("cache"), "off");
  EXPECT_TRUE(SetFlag("disable_capabilities", "").ok());
  EXPECT_TRUE(SetFlag("plugin", "").ok());
  const Status bad = SetFlag("eager_mode", "lazy");
  EXPECT_NE(bad.message().find("eager_mode"), std::string::npos);
  EXPECT_NE(bad.message().find("lazy"), std::string::npos);
  EXPECT_NE(bad.message().find("strict|debug|fuse"), std::string::npos);
  EXPECT_FALSE(SetFlag("log_level", "4").ok());
  EXPECT_FALSE(SetFlag("disable_capabilities", "linear_layout,speed").ok());
  const Status unknown = SetFlag("devises", "1");
  EXPECT_NE(unknown.message().find("devises"), std::string::npos);
  EXPECT_NE(unknown.message().find("devices"), std::string::npos);
  EXPECT_FALSE(GetFlag("devises").ok());
}

TEST_F(FlagsTest, StartupFlagsFreeze) {
  EXPECT_TRUE(SetFlag("devices", "3").ok());
  FreezeStartupFlags();
  EXPECT_TRUE(SetFlag("devices", "3").ok());
  const Status late = SetFlag("devices", "4");
  ASSERT_FALSE(late.ok());
  EXPECT_NE(late.message().find("TORCH_TPU_DEVICES"), std::string::npos);
  EXPECT_FALSE(SetFlag("plugin", "/other.so").ok());
  EXPECT_TRUE(SetFlag("eager_mode", "fuse").ok());
  EXPECT_EQ(GetFlags().devices(), 3);
}

TEST_F(FlagsTest, CacheDir) {
  Env("HOME", "/home/someone");
  Env("XDG_CACHE_HOME", "/scratch/cache");
  EXPECT_EQ(GetFlags().cache_dir(), "/scratch/cache/torch_tpu");
  Env("XDG_CACHE_HOME", "relative");
  EXPECT_EQ(GetFlags().cache_dir(), "/home/someone/.cache/torch_tpu");
  unsetenv("HOME");
  unsetenv("XDG_CACHE_HOME");
  internal::ResetFlagsForTest();
  EXPECT_NE(GetFlags().cache_dir().find("/.cache/torch_tpu"), std::string::npos);
  char here[4096];
  ASSERT_NE(getcwd(here, sizeof here), nullptr);
  Env("TORCH_TPU_CACHE_DIR", "programs");
  EXPECT_EQ(GetFlags().cache_dir(), std::string(here) + "/programs");
  EXPECT_TRUE(SetFlag("cache_dir", "/x").ok());
  EXPECT_EQ(GetFlags().cache_dir(), "/x");
}

TEST_F(FlagsTest, ListSaysWhereAValueCameFrom) {
  Env("TORCH_TPU_LOG", "2");
  EXPECT_TRUE(SetFlag("devices", "0").ok());
  const std::vector<FlagRow> rows = ListFlags();
  ASSERT_EQ(rows.size(), static_cast<size_t>(kFlagCount));
  for (const FlagRow& row : rows) {
    EXPECT_FALSE(row.doc.empty());
    EXPECT_EQ(row.variable.rfind("TORCH_TPU_", 0), 0u);
    EXPECT_EQ(row.source, row.name == "log_level" ? "environment"
                          : row.name == "devices" ? "set"
                                                  : "default");
    if (row.source == "default") {
      EXPECT_EQ(row.value, row.default_value) << row.name;
    }
    // What is printed can be set.
    EXPECT_TRUE(SetFlag(row.name, row.value).ok()) << row.name;
  }
}

}  // namespace
}  // namespace tpu
