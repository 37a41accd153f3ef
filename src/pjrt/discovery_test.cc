// Choice of the plugin, on made-up folders: no TPU, package index or plugin is needed.
#include "pjrt/discovery.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "pjrt/pjrt.h"

namespace tpu::pjrt {
namespace {

namespace fs = std::filesystem;

class DiscoveryTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "discovery-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string Write(const std::string& path, const std::string& text = "") {
    const fs::path file = root_ / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
    return file.string();
  }
  void PciDevice(const std::string& folder, const std::string& vendor, const std::string& klass) {
    Write(folder + "/vendor", vendor + "\n");
    Write(folder + "/class", klass + "\n");
  }
  std::string Dir(const std::string& name) const { return (root_ / name).string(); }

  fs::path root_;
};

TEST_F(DiscoveryTest, ChipsOnThePciBus) {
  EXPECT_FALSE(TpuChipsUnder(root_.string()));
  PciDevice("sys/bus/pci/devices/0000:00:01.0", "0x8086", "0x120000");
  PciDevice("sys/bus/pci/devices/0000:00:02.0", "0x1ae0", "0x020000");  // gVNIC
  PciDevice("sys/bus/pci/devices/0000:00:03.0", "0x1ae0", "0x010802");  // its disk
  EXPECT_FALSE(TpuChipsUnder(root_.string()));
  PciDevice("sys/bus/pci/devices/0000:00:04.0", "0x1ae0", "0xff0000");
  EXPECT_TRUE(TpuChipsUnder(root_.string()));
}

TEST_F(DiscoveryTest, ChipsAsAccelDevices) {
  PciDevice("sys/class/accel/accel0/device", "0x8086", "0x120000");  // another vendor's
  EXPECT_FALSE(TpuChipsUnder(root_.string()));
  PciDevice("sys/class/accel/accel1/device", "0x1ae0", "0x120000");
  EXPECT_TRUE(TpuChipsUnder(root_.string()));
}

TEST_F(DiscoveryTest, ChipsAsVfioGroups) {
  Write("dev/vfio/vfio");
  PciDevice("sys/kernel/iommu_groups/7/devices/0000:00:04.0", "0x1ae0", "0x120000");
  EXPECT_FALSE(TpuChipsUnder(root_.string()));  // no device file for the group
  Write("dev/vfio/7");
  EXPECT_TRUE(TpuChipsUnder(root_.string()));
}

TEST_F(DiscoveryTest, CpuPackagesInOrder) {
  const std::vector<std::string> dirs = {Dir("one"), Dir("two")};
  Result<PluginChoice> none = FindPlugin("cpu", dirs);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), Code::kUnavailable);
  EXPECT_NE(none.status().message().find("pip install"), std::string::npos);
  EXPECT_NE(none.status().message().find(dirs[1]), std::string::npos);

  const std::string third = Write("one/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so");
  EXPECT_EQ(FindPlugin("cpu", dirs)->path, third);
  const std::string second = Write("two/fastatomstruct_xla_cpu/libpjrt_cpu.so");
  EXPECT_EQ(FindPlugin("cpu", dirs)->path, second);
  const std::string first = Write("two/lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so");
  Result<PluginChoice> found = FindPlugin("cpu", dirs);
  EXPECT_EQ(found->path, first);
  EXPECT_FALSE(found->is_tpu);
  EXPECT_NE(found->reason.find("lammps-jax-pjrt-cpu"), std::string::npos);
}

TEST_F(DiscoveryTest, WithoutATpu) {
  if (TpuChipsPresent()) GTEST_SKIP() << "this machine has a TPU";
  const std::vector<std::string> dirs = {root_.string()};
  const std::string file = Write("lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so");
  Write("libtpu/libtpu.so");
  EXPECT_EQ(FindPlugin("", dirs)->path, file);
  EXPECT_EQ(FindPlugin("", dirs)->reason, "no TPU found; XLA CPU plugin lammps-jax-pjrt-cpu");
  Result<PluginChoice> tpu = FindPlugin("tpu", dirs);
  ASSERT_FALSE(tpu.ok());
  EXPECT_EQ(tpu.status().code(), Code::kUnavailable);
  EXPECT_NE(tpu.status().message().find("\"cpu\""), std::string::npos);
}

TEST_F(DiscoveryTest, ExplicitPath) {
  const std::string libtpu = Write("somewhere/libtpu.so");
  EXPECT_TRUE(FindPlugin(libtpu, {})->is_tpu);
  const std::string other = Write("libtpu/cpu.so");
  EXPECT_FALSE(FindPlugin(other, {})->is_tpu);
  Result<PluginChoice> missing = FindPlugin("gpu", {});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), Code::kUnavailable);
  EXPECT_NE(missing.status().message().find("gpu"), std::string::npos);
  EXPECT_FALSE(FindPlugin(root_.string(), {}).ok());  // a folder
}

}  // namespace
}  // namespace tpu::pjrt
