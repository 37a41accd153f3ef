// PJRT C ABI as of API 0.114, first part: handles, enums, and the argument structs of errors,
// plugins, events, clients and devices. Names, order and sizes are facts of the interface;
// c_api_contract_test.cc checks them against the real header.
// What it is not: a full binding. Only what this project calls is declared. Include pjrt/c_api.h.
#pragma once

#include <cstddef>
#include <cstdint>

struct PJRT_Api;
struct PJRT_Buffer;
struct PJRT_Client;
struct PJRT_Device;
struct PJRT_DeviceDescription;
struct PJRT_Error;
struct PJRT_Event;
struct PJRT_Executable;
struct PJRT_LoadedExecutable;
struct PJRT_Memory;
struct PJRT_SerializedExecutable;
struct PJRT_TopologyDescription;

namespace tpu::pjrt::abi {

// The version these declarations follow. A plugin accepts a struct_size larger than its own and
// refuses a smaller one, so declarations newer than the plugin are the safe side.
inline constexpr int kMajor = 0;
inline constexpr int kMinor = 114;

// Every struct starts with its size: the offset of its last field plus that field's size, which
// differs from sizeof where the last field leaves tail padding. Hence the literals.

struct Extension;  // node of the extension chain; none is used here

struct ApiVersion {
  size_t struct_size = 24;
  Extension* extension_start = nullptr;
  int major_version = 0;
  int minor_version = 0;
};

// absl status codes.
enum class ErrorCode : int {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

struct ErrorDestroyArgs {
  size_t struct_size = 24;
  Extension* extension_start = nullptr;
  PJRT_Error* error = nullptr;
};

struct ErrorMessageArgs {
  size_t struct_size = 40;
  Extension* extension_start = nullptr;
  const PJRT_Error* error = nullptr;
  const char* message = nullptr;  // out; lives as long as the error
  size_t message_size = 0;        // out
};

struct ErrorGetCodeArgs {
  size_t struct_size = 28;
  Extension* extension_start = nullptr;
  const PJRT_Error* error = nullptr;
  ErrorCode code = ErrorCode::kOk;  // out
};

enum class NamedValueType : int { kString = 0, kInt64 = 1, kInt64List = 2, kFloat = 3, kBool = 4 };

struct NamedValue {
  size_t struct_size = 56;
  Extension* extension_start = nullptr;
  const char* name = nullptr;
  size_t name_size = 0;
  NamedValueType type = NamedValueType::kString;
  union {
    const char* string_value = nullptr;
    int64_t int64_value;
    const int64_t* int64_array_value;
    float float_value;
    bool bool_value;
  };
  size_t value_size = 0;  // characters of a string, length of a list, else 1
};

// --- plugin ---

struct PluginInitializeArgs {
  size_t struct_size = 16;
  Extension* extension_start = nullptr;
};

struct PluginAttributesArgs {
  size_t struct_size = 32;
  Extension* extension_start = nullptr;
  const NamedValue* attributes = nullptr;  // out
  size_t num_attributes = 0;               // out
};

// --- event ---

struct EventDestroyArgs {
  size_t struct_size = 24;
  Extension* extension_start = nullptr;
  PJRT_Event* event = nullptr;
};

struct EventIsReadyArgs {
  size_t struct_size = 25;
  Extension* extension_start = nullptr;
  PJRT_Event* event = nullptr;
  bool is_ready = false;  // out
};

struct EventAwaitArgs {
  size_t struct_size = 24;
  Extension* extension_start = nullptr;
  PJRT_Event* event = nullptr;
};

struct EventOnReadyArgs {
  size_t struct_size = 40;
  Extension* extension_start = nullptr;
  PJRT_Event* event = nullptr;
  void (*callback)(PJRT_Error* error, void* user_arg) = nullptr;  // owns `error`
  void* user_arg = nullptr;
};

// --- client ---

struct ClientCreateArgs {
  size_t struct_size = 88;
  Extension* extension_start = nullptr;
  const NamedValue* create_options = nullptr;
  size_t num_options = 0;
  // The key-value store of multi-process plugins. Neither the CPU plugin nor libtpu asks for one.
  void* kv_get_callback = nullptr;
  void* kv_get_user_arg = nullptr;
  void* kv_put_callback = nullptr;
  void* kv_put_user_arg = nullptr;
  PJRT_Client* client = nullptr;  // out
  void* kv_try_get_callback = nullptr;
  void* kv_try_get_user_arg = nullptr;
};

struct ClientDestroyArgs {
  size_t struct_size = 24;
  Extension* extension_start = nullptr;
  PJRT_Client* client = nullptr;
};

struct ClientPlatformNameArgs {
  size_t struct_size = 40;
  Extension* extension_start = nullptr;
  PJRT_Client* client = nullptr;
  const char* platform_name = nullptr;  // out
  size_t platform_name_size = 0;        // out
};

struct ClientPlatformVersionArgs {
  size_t struct_size = 40;
  Extension* extension_start = nullptr;
  PJRT_Client* client = nullptr;
  const char* platform_version = nullptr;  // out
  size_t platform_version_size = 0;        // out
};

struct ClientProcessIndexArgs {
  size_t struct_size = 28;
  Extension* extension_start = nullptr;
  PJRT_Client* client = nullptr;
  int process_index = 0;  // out
};

struct ClientAddressableDevicesArgs {
  size_t struct_size = 40;
  Extension* extension_start = nullptr;
  PJRT_Client* client = nullptr;
  PJRT_Device* const* addressable_devices = nullptr;  // out
  size_t num_addressable_devices = 0;                 // out
};

struct Program {
  size_t struct_size = 48;
  Extension* extension_start = nullptr;
  char* code = nullptr;  // read by Compile, written by OptimizedProgram
  size_t code_size = 0;
  const char* format = nullptr;
  size_t format_size = 0;
};

struct ClientCompileArgs {
  size_t struct_size = 56;
  Extension* extension_start = nullptr;
  PJRT_Client* client = nullptr;
  const Program* program = nullptr;
  const char* compile_options = nullptr;
  size_t compile_options_size = 0;
  PJRT_LoadedExecutable* executable = nullptr;  // out
};

enum class BufferType : int {
  kInvalid = 0,
  kPred = 1,
  kS8 = 2,
  kS16 = 3,
  kS32 = 4,
  kS64 = 5,
  kU8 = 6,
  kU16 = 7,
  kU32 = 8,
  kU64 = 9,
  kF16 = 10,
  kF32 = 11,
  kF64 = 12,
  kBF16 = 13,
  kC64 = 14,
  kC128 = 15,
  kF8E5M2 = 16,
  kF8E4M3FN = 17,
  kF8E4M3B11FNUZ = 18,
  kF8E5M2FNUZ = 19,
  kF8E4M3FNUZ = 20,
};

enum class HostBufferSemantics : int {
  kImmutableOnlyDuringCall = 0,
  kImmutableUntilTransferCompletes = 1,
  kImmutableZeroCopy = 2,
  kMutableZeroCopy = 3,
};

enum class MemoryLayoutType : int { kTiled = 0, kStrides = 1 };

struct MemoryLayoutTiled {
  size_t struct_size = 56;
  Extension* extension_start = nullptr;
  const int64_t* minor_to_major = nullptr;
  size_t minor_to_major_size = 0;
  const int64_t* tile_dims = nullptr;
  const size_t* tile_dim_sizes = nullptr;
  size_t num_tiles = 0;
};

struct MemoryLayout {
  size_t struct_size = 76;
  Extension* extension_start = nullptr;
  MemoryLayoutTiled tiled;  // in the interface a union with the smaller, unused strides form
  MemoryLayoutType type = MemoryLayoutType::kTiled;
};

struct ClientBufferFromHostBufferArgs {
  size_t struct_size = 120;
  Extension* extension_start = nullptr;
  PJRT_Client* client = nullptr;
  const void* data = nullptr;
  BufferType type = BufferType::kInvalid;
  const int64_t* dims = nullptr;
  size_t num_dims = 0;
  const int64_t* byte_strides = nullptr;
  size_t num_byte_strides = 0;
  HostBufferSemantics host_buffer_semantics = HostBufferSemantics::kImmutableOnlyDuringCall;
  PJRT_Device* device = nullptr;
  PJRT_Memory* memory = nullptr;
  MemoryLayout* device_layout = nullptr;
  PJRT_Event* done_with_host_buffer = nullptr;  // out
  PJRT_Buffer* buffer = nullptr;                // out
};

// --- device ---

struct DeviceDescriptionIdArgs {
  size_t struct_size = 28;
  Extension* extension_start = nullptr;
  PJRT_DeviceDescription* device_description = nullptr;
  int id = 0;  // out
};

struct DeviceDescriptionProcessIndexArgs {
  size_t struct_size = 28;
  Extension* extension_start = nullptr;
  PJRT_DeviceDescription* device_description = nullptr;
  int process_index = 0;  // out
};

struct DeviceDescriptionAttributesArgs {
  size_t struct_size = 40;
  Extension* extension_start = nullptr;
  PJRT_DeviceDescription* device_description = nullptr;
  size_t num_attributes = 0;               // out
  const NamedValue* attributes = nullptr;  // out
};

struct DeviceDescriptionKindArgs {
  size_t struct_size = 40;
  Extension* extension_start = nullptr;
  PJRT_DeviceDescription* device_description = nullptr;
  const char* device_kind = nullptr;  // out
  size_t device_kind_size = 0;        // out
};

struct DeviceDescriptionDebugStringArgs {
  size_t struct_size = 40;
  Extension* extension_start = nullptr;
  PJRT_DeviceDescription* device_description = nullptr;
  const char* debug_string = nullptr;  // out
  size_t debug_string_size = 0;        // out
};

struct DeviceGetDescriptionArgs {
  size_t struct_size = 32;
  Extension* extension_start = nullptr;
  PJRT_Device* device = nullptr;
  PJRT_DeviceDescription* device_description = nullptr;  // out
};

struct DeviceLocalHardwareIdArgs {
  size_t struct_size = 28;
  Extension* extension_start = nullptr;
  PJRT_Device* device = nullptr;
  int local_hardware_id = 0;  // out
};

// Only bytes_in_use is always filled; the others carry a flag.
struct DeviceMemoryStatsArgs {
  size_t struct_size = 201;
  Extension* extension_start = nullptr;
  PJRT_Device* device = nullptr;
  int64_t bytes_in_use = 0;
  int64_t peak_bytes_in_use = 0;
  bool peak_bytes_in_use_is_set = false;
  int64_t num_allocs = 0;
  bool num_allocs_is_set = false;
  int64_t largest_alloc_size = 0;
  bool largest_alloc_size_is_set = false;
  int64_t bytes_limit = 0;
  bool bytes_limit_is_set = false;
  int64_t bytes_reserved = 0;
  bool bytes_reserved_is_set = false;
  int64_t peak_bytes_reserved = 0;
  bool peak_bytes_reserved_is_set = false;
  int64_t bytes_reservable_limit = 0;
  bool bytes_reservable_limit_is_set = false;
  int64_t largest_free_block_bytes = 0;
  bool largest_free_block_bytes_is_set = false;
  int64_t pool_bytes = 0;
  bool pool_bytes_is_set = false;
  int64_t peak_pool_bytes = 0;
  bool peak_pool_bytes_is_set = false;
  int64_t peak_allocated_bytes = 0;  // since 0.113
  bool peak_allocated_bytes_is_set = false;
};

}  // namespace tpu::pjrt::abi
