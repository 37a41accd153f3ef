// Move-only handles over the PJRT C API: plugin, client, device, buffer, event, executable,
// topology. What it is not: policy. Nothing here caches, orders or retries. No PJRT type leaves
// src/pjrt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "shape/dims.h"
#include "shape/dtype.h"

// Opaque C types, declared in pjrt/c_api.h.
struct PJRT_Api;
struct PJRT_Buffer;
struct PJRT_Client;
struct PJRT_Device;
struct PJRT_Event;
struct PJRT_Executable;
struct PJRT_LoadedExecutable;
struct PJRT_TopologyDescription;

namespace tpu::pjrt {

using NamedValue = std::variant<std::string, int64_t, std::vector<int64_t>, float, bool>;
using NamedValues = std::map<std::string, NamedValue>;

// A loaded plugin. Lives for the process: plugins are never unloaded (their threads outlive us).
class Plugin {
 public:
  // Loads the shared object, checks GetPjrtApi, version and table size, and initialises it.
  // kUnavailable, saying what to do, where the file is missing, is no plugin, or is older than
  // kMinMinor.
  static Result<Plugin*> Load(const std::string& path);

  const PJRT_Api* api() const { return api_; }
  const std::string& path() const { return path_; }
  int minor_version() const { return minor_; }
  // Identity for the disk cache: the ELF build id in hex, else a hash of the file. The hash runs
  // beside the load (200 MB, about 0.1 s); the first call may wait for it.
  const std::string& identity() const { return identity_.get(); }
  const NamedValues& attributes() const { return attributes_; }  // xla_version, stablehlo_...

  static constexpr int kMinMinor = 81;

 private:
  Plugin() = default;
  const PJRT_Api* api_ = nullptr;
  std::string path_;
  std::shared_future<std::string> identity_;
  int minor_ = 0;
  NamedValues attributes_;
};

class Event {
 public:
  Event() = default;
  Event(const PJRT_Api* api, PJRT_Event* event) : api_(api), event_(event) {}
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  ~Event();
  bool valid() const { return event_ != nullptr; }
  bool IsReady() const;
  Status Await() const;  // blocks; the error of the event, if it has one
  // Calls `fn` with the outcome, on a thread of the plugin or at once.
  void OnReady(std::function<void(Status)> fn) const;

 private:
  const PJRT_Api* api_ = nullptr;
  PJRT_Event* event_ = nullptr;
};

class Buffer {
 public:
  Buffer() = default;
  Buffer(const PJRT_Api* api, PJRT_Buffer* buffer) : api_(api), buffer_(buffer) {}
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();
  bool valid() const { return buffer_ != nullptr; }
  PJRT_Buffer* get() const { return buffer_; }
  void Delete();  // frees device memory now

  Result<Event> ReadyEvent() const;
  Status Await() const;  // ready event, awaited
  bool IsDeleted() const;
  Result<std::pair<DType, Dims>> Shape() const;
  Result<int64_t> OnDeviceBytes() const;
  // Address of the buffer's bytes in host memory, where the device shares it (CPU plugin). Valid
  // after Await and while the buffer lives.
  Result<const void*> HostPointer() const;
  // Copies the whole buffer to `dst` in row-major order. Done when the event is.
  Result<Event> ToHost(void* dst, size_t bytes) const;
  Result<Buffer> CopyToDevice(PJRT_Device* device) const;

 private:
  const PJRT_Api* api_ = nullptr;
  PJRT_Buffer* buffer_ = nullptr;
};

enum class HostBufferSemantics {
  kImmutableOnlyDuringCall,
  kImmutableUntilTransferCompletes,
  kImmutableZeroCopy,
};

struct DeviceInfo {
  int id = 0;  // global
  int process_index = 0;
  int local_hardware_id = 0;
  std::string kind;  // "TPU v5 lite", "cpu"
  std::string debug_string;
  NamedValues attributes;  // coords, core_on_chip ...
};

struct MemoryStats {  // -1: the plugin doesn't tell
  int64_t bytes_in_use = -1, peak_bytes = -1, limit = -1;
};

struct CompiledMemoryStats {
  int64_t code = 0, arguments = 0, outputs = 0, aliased = 0, temporaries = 0, peak = 0;
};

struct CompileOptions {
  int num_replicas = 1;
  int num_partitions = 1;
  bool portable = true;                  // one replica, any device named at execute time
  std::vector<int64_t> device_ids = {};  // row-major [replica][partition]; empty = none
  bool use_spmd_partitioning = false;
  int optimization_level = 0;  // effort enum of the proto: 0 = default, 9 O0, 19 O1, 29 O2
  std::map<std::string, std::string> overrides = {};  // XLA debug options by field name
  // kInvalidArgument where the fields contradict each other. Both Compile calls ask.
  Status Check() const;
  // Serialised CompileOptionsProto.
  std::string Serialize() const;
};

class Executable;

// What an execute call takes and gives. Arrays are the caller's.
struct ExecuteArgs {
  std::span<PJRT_Buffer* const> arguments = {};
  std::span<PJRT_Buffer*> results = {};  // filled; owned by the caller
  std::span<const int64_t> non_donatable = {};
  PJRT_Device* device = nullptr;
  int launch_id = 0;
};

class LoadedExecutable {
 public:
  LoadedExecutable() = default;
  LoadedExecutable(const PJRT_Api* api, PJRT_LoadedExecutable* exe);
  LoadedExecutable(LoadedExecutable&& other) noexcept;
  LoadedExecutable& operator=(LoadedExecutable&& other) noexcept;
  ~LoadedExecutable();
  bool valid() const { return exe_ != nullptr; }
  PJRT_LoadedExecutable* get() const { return exe_; }

  // The hot call. No allocation of ours.
  Status Execute(const ExecuteArgs& args) const;

  Result<std::string> Serialize() const;
  Result<CompiledMemoryStats> MemoryStats() const;
  Result<std::map<std::string, double>> CostAnalysis() const;
  Result<int64_t> NumOutputs() const;
  Result<std::string> OptimizedProgram() const;  // bytes of an HloModuleProto

 private:
  const PJRT_Api* api_ = nullptr;
  PJRT_LoadedExecutable* exe_ = nullptr;
  int64_t num_outputs_ = -1;  // what Execute must have room for
};

// An executable that is compiled but not loaded: what ahead-of-time compiles give.
class Executable {
 public:
  Executable() = default;
  Executable(const PJRT_Api* api, PJRT_Executable* exe) : api_(api), exe_(exe) {}
  Executable(Executable&& other) noexcept;
  Executable& operator=(Executable&& other) noexcept;
  ~Executable();
  Result<std::string> Serialize() const;
  Result<CompiledMemoryStats> MemoryStats() const;
  Result<std::map<std::string, double>> CostAnalysis() const;

 private:
  const PJRT_Api* api_ = nullptr;
  PJRT_Executable* exe_ = nullptr;
};

class Topology {
 public:
  // Needs no device. `name` as in "v5e:2x2". On libtpu an empty name would mean v2: refused here.
  static Result<Topology> Create(Plugin* plugin, const std::string& name,
                                 const NamedValues& options = {});
  Topology(Topology&& other) noexcept;
  Topology& operator=(Topology&& other) noexcept;
  ~Topology();
  std::vector<DeviceInfo> devices() const;
  Result<std::string> platform_name() const;
  // Compiles StableHLO text for this topology, with no client.
  Result<Executable> Compile(std::string_view mlir, const CompileOptions& options) const;

 private:
  Topology() = default;
  Plugin* plugin_ = nullptr;
  PJRT_TopologyDescription* topology_ = nullptr;
};

class Client {
 public:
  static Result<std::unique_ptr<Client>> Create(Plugin* plugin, const NamedValues& options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Plugin* plugin() const { return plugin_; }
  const PJRT_Api* api() const { return plugin_->api(); }
  const std::string& platform_name() const { return platform_name_; }
  const std::string& platform_version() const { return platform_version_; }
  int process_index() const { return process_index_; }

  int num_devices() const { return static_cast<int>(devices_.size()); }  // addressable
  PJRT_Device* device(int i) const { return devices_[static_cast<size_t>(i)]; }
  const DeviceInfo& device_info(int i) const { return infos_[static_cast<size_t>(i)]; }
  Result<MemoryStats> DeviceMemoryStats(int i) const;

  Result<LoadedExecutable> Compile(std::string_view mlir, const CompileOptions& options) const;
  Result<LoadedExecutable> Deserialize(std::string_view bytes) const;

  // `done` (if not null) gets the event after which the host memory may change. byte_strides empty
  // = dense row-major.
  Result<Buffer> FromHost(const void* data, DType dtype, DimsView dims, DimsView byte_strides,
                          HostBufferSemantics semantics, PJRT_Device* device, Event* done) const;

 private:
  Client() = default;
  Plugin* plugin_ = nullptr;
  PJRT_Client* client_ = nullptr;
  std::string platform_name_, platform_version_;
  int process_index_ = 0;
  std::vector<PJRT_Device*> devices_;
  std::vector<DeviceInfo> infos_;
};

// The plugin file to use, in order: `explicit_path` as a path; "tpu" or "cpu"; empty: a TPU if
// chips are present, else the CPU plugin package found in `search_dirs` (site-packages folders).
// The error text says what to install.
struct PluginChoice {
  std::string path;
  std::string reason;  // one line for people: "no TPU found; XLA CPU plugin lammps-jax-pjrt-cpu"
  bool is_tpu = false;
};
Result<PluginChoice> FindPlugin(const std::string& choice,
                                std::span<const std::string> search_dirs);
// True where TPU chips show on this machine's PCI bus or device files. Starts nothing.
bool TpuChipsPresent();

}  // namespace tpu::pjrt
