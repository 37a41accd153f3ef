// What is refused as a plugin and how it is told; identities of files; the gate on table slots.
#include "pjrt/plugin.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "pjrt/call.h"
#include "pjrt/pjrt.h"

namespace tpu::pjrt {
namespace {

namespace fs = std::filesystem;

bool Has(const Status& status, std::string_view text) {
  return status.message().find(text) != std::string::npos;
}

class PluginFileTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = (fs::temp_directory_path() / ("plugin-" + std::to_string(getpid()) + ".so")).string();
  }
  void TearDown() override { fs::remove(path_); }
  void Write(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }
  std::string Hash() const {
    const int fd = open(path_.c_str(), O_RDONLY);
    std::string hash = FileHash(fd);
    close(fd);
    return hash;
  }
  std::string path_;
};

TEST_F(PluginFileTest, Missing) {
  Result<Plugin*> plugin = Plugin::Load(path_);
  ASSERT_FALSE(plugin.ok());
  EXPECT_EQ(plugin.status().code(), Code::kUnavailable);
  EXPECT_TRUE(Has(plugin.status(), path_));
  EXPECT_TRUE(Has(plugin.status(), "No such file"));
}

TEST_F(PluginFileTest, TextFile) {
  Write("this is no shared object, though it is long enough to hold an ELF header and then some");
  Result<Plugin*> plugin = Plugin::Load(path_);
  ASSERT_FALSE(plugin.ok());
  EXPECT_EQ(plugin.status().code(), Code::kUnavailable);
  EXPECT_TRUE(Has(plugin.status(), path_));
  EXPECT_TRUE(Has(plugin.status(), "invalid ELF header"));
}

TEST_F(PluginFileTest, Folder) {
  EXPECT_EQ(Plugin::Load(fs::temp_directory_path().string()).status().code(), Code::kUnavailable);
}

TEST(PluginTest, SharedObjectWithoutGetPjrtApi) {
  // Some library that is certainly there: the C library, by the address of one of its functions.
  Dl_info info;
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&std::strerror), &info), 0);
  Result<Plugin*> plugin = Plugin::Load(info.dli_fname);
  ASSERT_FALSE(plugin.ok());
  EXPECT_EQ(plugin.status().code(), Code::kUnavailable);
  EXPECT_TRUE(Has(plugin.status(), "is not a PJRT plugin"));
  EXPECT_TRUE(Has(plugin.status(), "GetPjrtApi"));
}

TEST_F(PluginFileTest, HashSeesEveryByte) {
  std::string text(300'001, 'a');
  Write(text);
  const std::string base = Hash();
  EXPECT_EQ(base.size(), std::string("hash-").size() + 16);
  EXPECT_EQ(base, Hash());
  for (size_t at : {size_t{0}, size_t{7}, size_t{262'143}, size_t{262'144}, text.size() - 1}) {
    std::string other = text;
    other[at] = 'b';
    Write(other);
    EXPECT_NE(base, Hash()) << at;
  }
  Write(text + '\0');  // padding must not hide a longer file
  EXPECT_NE(base, Hash());
}

TEST(PluginTest, BuildIdOfAnElfFile) {
  const int fd = open("/proc/self/exe", O_RDONLY);
  const std::string id = ElfBuildId(fd);
  close(fd);
  // The linker may be told to write none; where it does, it is 20 bytes (sha1) or 16 (md5, uuid).
  EXPECT_TRUE(id.empty() || id.size() == 40 || id.size() == 32) << id;
  EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(ElfBuildId(-1), "");
}

PJRT_Error* NoError(abi::BufferDeleteArgs*) { return nullptr; }

PJRT_Api FakeApi() {
  PJRT_Api api{};
  api.struct_size = sizeof(PJRT_Api);
  api.pjrt_api_version.minor_version = 100;
  api.Error_Destroy = [](abi::ErrorDestroyArgs*) {};
  api.Error_Message = [](abi::ErrorMessageArgs*) {};
  api.Error_GetCode = [](abi::ErrorGetCodeArgs*) -> PJRT_Error* { return nullptr; };
  api.Buffer_Delete = &NoError;
  return api;
}

TEST(CheckApiTest, AcceptsAndRefuses) {
  PJRT_Api api = FakeApi();
  EXPECT_TRUE(CheckApi(&api, "p.so").ok());
  EXPECT_FALSE(CheckApi(nullptr, "p.so").ok());

  api.pjrt_api_version.minor_version = Plugin::kMinMinor;
  EXPECT_TRUE(CheckApi(&api, "p.so").ok());
  api.pjrt_api_version.minor_version = 55;
  Status old = CheckApi(&api, "p.so");
  EXPECT_EQ(old.code(), Code::kUnavailable);
  EXPECT_TRUE(Has(old, "p.so") && Has(old, "0.55") && Has(old, "0.81")) << old.message();

  api.pjrt_api_version.major_version = 1;
  EXPECT_TRUE(Has(CheckApi(&api, "p.so"), "update torch-tpu"));

  api = FakeApi();
  api.struct_size = 16;
  EXPECT_FALSE(CheckApi(&api, "p.so").ok());
  api = FakeApi();
  api.Error_GetCode = nullptr;
  EXPECT_FALSE(CheckApi(&api, "p.so").ok());
}

TEST(CallTest, GatedBySizeAndNull) {
  PJRT_Api api = FakeApi();
  abi::BufferDeleteArgs args;
  EXPECT_TRUE(Call<&abi::Table::Buffer_Delete>(&api, &args).ok());

  api.struct_size = offsetof(PJRT_Api, Buffer_Delete);  // ends just before it
  Status shorter = Call<&abi::Table::Buffer_Delete>(&api, &args);
  EXPECT_EQ(shorter.code(), Code::kUnimplemented);
  EXPECT_TRUE(Has(shorter, "has no PJRT_Buffer_Delete")) << shorter.message();
  api.struct_size += sizeof(void*);
  EXPECT_TRUE(Call<&abi::Table::Buffer_Delete>(&api, &args).ok());

  api.Buffer_Delete = nullptr;
  EXPECT_EQ(Call<&abi::Table::Buffer_Delete>(&api, &args).code(), Code::kUnimplemented);
}

// The error's address carries its code: ours to interpret in a fake table.
const PJRT_Error* ErrorWith(int code) { return reinterpret_cast<const PJRT_Error*>(code * 16L); }

TEST(ErrorTest, Codes) {
  static int destroyed = 0;
  PJRT_Api api = FakeApi();
  api.Error_Destroy = [](abi::ErrorDestroyArgs*) { ++destroyed; };
  api.Error_Message = [](abi::ErrorMessageArgs* args) {
    args->message = "why, and more";
    args->message_size = 3;
  };
  api.Error_GetCode = [](abi::ErrorGetCodeArgs* args) -> PJRT_Error* {
    args->code = static_cast<abi::ErrorCode>(reinterpret_cast<intptr_t>(args->error) / 16);
    return nullptr;
  };
  const std::pair<int, Code> cases[] = {
      {1, Code::kCancelled},        {2, Code::kInternal},     {3, Code::kInvalidArgument},
      {4, Code::kDeadlineExceeded}, {5, Code::kInternal},     {8, Code::kResourceExhausted},
      {9, Code::kInternal},         {11, Code::kOutOfRange},  {12, Code::kUnimplemented},
      {13, Code::kInternal},        {14, Code::kUnavailable}, {99, Code::kInternal}};
  for (const auto& [absl, ours] : cases) {
    Status status = ToStatus(&api, const_cast<PJRT_Error*>(ErrorWith(absl)));
    EXPECT_EQ(status.code(), ours) << absl;
    EXPECT_EQ(status.message(), "why");
  }
  EXPECT_EQ(destroyed, static_cast<int>(std::size(cases)));
  EXPECT_TRUE(ToStatus(&api, nullptr).ok());
}

}  // namespace
}  // namespace tpu::pjrt
