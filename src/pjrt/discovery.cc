// Which plugin file to use. Looks at files and the environment; loads and starts nothing.
#include "pjrt/discovery.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "pjrt/pjrt.h"

namespace tpu::pjrt {
namespace {

namespace fs = std::filesystem;

struct CpuPackage {
  const char* name;  // on the package index
  const char* file;  // below a search directory
};
constexpr CpuPackage kCpuPackages[] = {
    {"lammps-jax-pjrt-cpu", "lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so"},
    {"fastatomstruct-xla-cpu", "fastatomstruct_xla_cpu/libpjrt_cpu.so"},
    {"xla-cpu-pjrt", "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"},
};
#if defined(__aarch64__)
constexpr const char* kInstallCpu = "pip install xla-cpu-pjrt";
#else
// That package asks for jax, which the plugin itself doesn't need.
constexpr const char* kInstallCpu = "pip install --no-deps lammps-jax-pjrt-cpu";
#endif

constexpr const char* kLibtpuFile = "libtpu/libtpu.so";

bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// A sysfs number such as "0x1ae0"; 0 where there is none.
unsigned long ReadHex(const fs::path& path) {
  std::ifstream in(path);
  std::string text;
  in >> text;
  return std::strtoul(text.c_str(), nullptr, 16);
}

// Google's PCI vendor id is also that of its virtual network cards and disks, present on every
// Google Cloud machine, so these classes are left out. Naming TPU device ids instead would miss the
// next generation.
bool IsTpu(const fs::path& pci_device) {
  constexpr unsigned long kGoogle = 0x1ae0;
  constexpr unsigned long kStorage = 0x01, kNetwork = 0x02, kDisplay = 0x03, kBridge = 0x06;
  if (ReadHex(pci_device / "vendor") != kGoogle) return false;
  const unsigned long base_class = ReadHex(pci_device / "class") >> 16;
  return base_class != kStorage && base_class != kNetwork && base_class != kDisplay &&
         base_class != kBridge;
}

bool AnyTpuIn(const fs::path& folder, const char* below) {
  std::error_code error;
  fs::directory_iterator it(folder, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    if (IsTpu(it->path() / below)) return true;
  }
  return false;
}

// Containers may hide the PCI bus and still show the device files' own sysfs entries.
bool AnyTpuVfioGroup(const std::string& root) {
  std::error_code error;
  fs::directory_iterator it(root + "/dev/vfio", error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    const std::string group = it->path().filename().string();
    if (AnyTpuIn(root + "/sys/kernel/iommu_groups/" + group + "/devices", "")) return true;
  }
  return false;
}

std::string Join(std::span<const std::string> dirs) {
  if (dirs.empty()) return "the folders given (none were)";
  std::string out;
  for (const std::string& dir : dirs) out += (out.empty() ? "" : ", ") + dir;
  return out;
}

Result<PluginChoice> FindCpu(std::span<const std::string> dirs, const std::string& why) {
  for (const CpuPackage& package : kCpuPackages) {
    for (const std::string& dir : dirs) {
      const fs::path file = fs::path(dir) / package.file;
      if (!IsFile(file)) continue;
      return PluginChoice{file.string(), why + "; XLA CPU plugin " + package.name, false};
    }
  }
  return Unavailable(why, ", and no XLA CPU plugin in ", Join(dirs), ". Install one with `",
                     kInstallCpu, "`, or set TORCH_TPU_PLUGIN to the path of a PJRT plugin");
}

Result<PluginChoice> FindTpu(std::span<const std::string> dirs) {
  const char* env = std::getenv("TPU_LIBRARY_PATH");
  if (env != nullptr && *env != '\0') {
    if (!IsFile(env)) return Unavailable("TPU_LIBRARY_PATH names no file: ", env);
    return PluginChoice{env, "TPU found; libtpu from TPU_LIBRARY_PATH", true};
  }
  for (const std::string& dir : dirs) {
    const fs::path file = fs::path(dir) / kLibtpuFile;
    if (IsFile(file)) return PluginChoice{file.string(), "TPU found; libtpu package", true};
  }
  return Unavailable("this machine has a TPU, but there is no libtpu in ", Join(dirs),
                     ". Install it with `pip install libtpu`, set TPU_LIBRARY_PATH to a "
                     "libtpu.so, or set TORCH_TPU_PLUGIN=cpu to run on the CPU");
}

Result<PluginChoice> FindPath(const std::string& path) {
  if (!IsFile(path)) {
    return Unavailable("TORCH_TPU_PLUGIN names no file: ", path,
                       ". It takes \"tpu\", \"cpu\" or the path of a PJRT plugin");
  }
  const bool is_tpu = fs::path(path).filename().string().find("libtpu") != std::string::npos;
  return PluginChoice{path, "TORCH_TPU_PLUGIN names the plugin " + path, is_tpu};
}

}  // namespace

bool TpuChipsUnder(const std::string& root) {
  return AnyTpuIn(root + "/sys/bus/pci/devices", "") ||
         AnyTpuIn(root + "/sys/class/accel", "device") || AnyTpuVfioGroup(root);
}

bool TpuChipsPresent() { return TpuChipsUnder(""); }

Result<PluginChoice> FindPlugin(const std::string& choice,
                                std::span<const std::string> search_dirs) {
  if (choice == "cpu") return FindCpu(search_dirs, "TORCH_TPU_PLUGIN=cpu");
  if (choice == "tpu") {
    if (TpuChipsPresent()) return FindTpu(search_dirs);
    return Unavailable(
        "TORCH_TPU_PLUGIN=tpu, but no TPU shows on this machine's PCI bus or device files. Unset "
        "TORCH_TPU_PLUGIN or set it to \"cpu\" to run on the CPU; in a container, check that the "
        "chips are passed in");
  }
  if (!choice.empty()) return FindPath(choice);
  if (TpuChipsPresent()) return FindTpu(search_dirs);
  return FindCpu(search_dirs, "no TPU found");
}

}  // namespace tpu::pjrt
