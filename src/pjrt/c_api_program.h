// PJRT C ABI as of API 0.114, second part: the argument structs of executables, buffers and
// topologies. Checked like the first part; include pjrt/c_api.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pjrt/c_api_core.h"

namespace tpu::pjrt::abi {

// --- executable ---

struct ExecutableDestroyArgs {
  size_t struct_size = 24;
  Extension* extension_start = nullptr;
  PJRT_Executable* executable = nullptr;
};

struct LoadedExecutableDestroyArgs {
  size_t struct_size = 24;
  Extension* extension_start = nullptr;
  PJRT_LoadedExecutable* executable = nullptr;
};

struct LoadedExecutableGetExecutableArgs {
  size_t struct_size = 32;
  Extension* extension_start = nullptr;
  PJRT_LoadedExecutable* loaded_executable = nullptr;
  PJRT_Executable* executable = nullptr;  // out; owned by the caller
};

struct ExecutableNumOutputsArgs {
  size_t struct_size = 32;
  Extension* extension_start = nullptr;
  PJRT_Executable* executable = nullptr;
  size_t num_outputs = 0;  // out
};

struct ExecutableOptimizedProgramArgs {
  size_t struct_size = 32;
  Extension* extension_start = nullptr;
  PJRT_Executable* executable = nullptr;
  Program* program = nullptr;  // null code asks for the size
};

struct ExecutableGetCostAnalysisArgs {
  size_t struct_size = 40;
  Extension* extension_start = nullptr;
  PJRT_Executable* executable = nullptr;
  size_t num_properties = 0;               // out
  const NamedValue* properties = nullptr;  // out; live as long as the executable
};

struct ExecutableGetCompiledMemoryStatsArgs {
  size_t struct_size = 144;
  Extension* extension_start = nullptr;
  PJRT_Executable* executable = nullptr;
  int64_t generated_code_size_in_bytes = 0;
  int64_t argument_size_in_bytes = 0;
  int64_t output_size_in_bytes = 0;
  int64_t alias_size_in_bytes = 0;
  int64_t temp_size_in_bytes = 0;
  int64_t host_generated_code_size_in_bytes = 0;
  int64_t host_argument_size_in_bytes = 0;
  int64_t host_output_size_in_bytes = 0;
  int64_t host_alias_size_in_bytes = 0;
  int64_t host_temp_size_in_bytes = 0;
  int64_t peak_memory_in_bytes = 0;
  int64_t total_size_in_bytes = 0;       // since 0.90
  int64_t total_allocation_bytes = 0;    // since 0.104
  int64_t indefinite_allocations = 0;    // since 0.104
  int64_t peak_unpadded_heap_bytes = 0;  // since 0.104
};

struct ExecutableSerializeArgs {
  size_t struct_size = 56;
  Extension* extension_start = nullptr;
  const PJRT_Executable* executable = nullptr;
  const char* serialized_bytes = nullptr;                      // out
  size_t serialized_bytes_size = 0;                            // out
  PJRT_SerializedExecutable* serialized_executable = nullptr;  // out; backs the bytes
  void (*serialized_executable_deleter)(PJRT_SerializedExecutable*) = nullptr;  // out
};

struct ExecutableDeserializeAndLoadArgs {
  size_t struct_size = 72;
  Extension* extension_start = nullptr;
  PJRT_Client* client = nullptr;
  const char* serialized_executable = nullptr;
  size_t serialized_executable_size = 0;
  PJRT_LoadedExecutable* loaded_executable = nullptr;  // out
  const char* overridden_serialized_compile_options = nullptr;
  size_t overridden_serialized_compile_options_size = 0;
  void* load_options = nullptr;  // since 0.111
};

struct ExecuteOptions {
  size_t struct_size = 144;
  Extension* extension_start = nullptr;
  void** send_callbacks = nullptr;
  void** recv_callbacks = nullptr;
  size_t num_send_ops = 0;
  size_t num_recv_ops = 0;
  int launch_id = 0;
  const int64_t* non_donatable_input_indices = nullptr;
  size_t num_non_donatable_input_indices = 0;
  void* context = nullptr;
  const char* call_location = nullptr;
  size_t num_tasks = 0;
  int* task_ids = nullptr;
  int64_t* incarnation_ids = nullptr;
  void* multi_slice_config = nullptr;                         // since 0.97
  bool use_major_to_minor_data_layout_for_callbacks = false;  // since 0.108
  void* hlo_output_callbacks = nullptr;                       // since 0.112
  size_t num_hlo_output_callbacks = 0;                        // since 0.112
};

struct LoadedExecutableExecuteArgs {
  size_t struct_size = 80;
  Extension* extension_start = nullptr;
  PJRT_LoadedExecutable* executable = nullptr;
  ExecuteOptions* options = nullptr;
  PJRT_Buffer* const* const* argument_lists = nullptr;  // [device][argument]
  size_t num_devices = 0;
  size_t num_args = 0;
  PJRT_Buffer** const* output_lists = nullptr;  // [device][result]; rows are the caller's
  PJRT_Event** device_complete_events = nullptr;
  PJRT_Device* execute_device = nullptr;
};

// --- buffer ---

struct BufferDestroyArgs {
  size_t struct_size = 24;
  Extension* extension_start = nullptr;
  PJRT_Buffer* buffer = nullptr;
};

struct BufferElementTypeArgs {
  size_t struct_size = 28;
  Extension* extension_start = nullptr;
  PJRT_Buffer* buffer = nullptr;
  BufferType type = BufferType::kInvalid;  // out
};

struct BufferDimensionsArgs {
  size_t struct_size = 40;
  Extension* extension_start = nullptr;
  PJRT_Buffer* buffer = nullptr;
  const int64_t* dims = nullptr;  // out; live as long as the buffer
  size_t num_dims = 0;            // out
};

struct BufferOnDeviceSizeInBytesArgs {
  size_t struct_size = 32;
  Extension* extension_start = nullptr;
  PJRT_Buffer* buffer = nullptr;
  size_t on_device_size_in_bytes = 0;  // out
};

struct BufferDeleteArgs {
  size_t struct_size = 24;
  Extension* extension_start = nullptr;
  PJRT_Buffer* buffer = nullptr;
};

struct BufferIsDeletedArgs {
  size_t struct_size = 25;
  Extension* extension_start = nullptr;
  PJRT_Buffer* buffer = nullptr;
  bool is_deleted = false;  // out
};

struct BufferCopyToDeviceArgs {
  size_t struct_size = 40;
  Extension* extension_start = nullptr;
  PJRT_Buffer* buffer = nullptr;
  PJRT_Device* dst_device = nullptr;
  PJRT_Buffer* dst_buffer = nullptr;  // out
};

struct BufferToHostBufferArgs {
  size_t struct_size = 56;
  Extension* extension_start = nullptr;
  PJRT_Buffer* src = nullptr;
  MemoryLayout* host_layout = nullptr;
  void* dst = nullptr;
  size_t dst_size = 0;
  PJRT_Event* event = nullptr;  // out
};

struct BufferIsOnCpuArgs {
  size_t struct_size = 25;
  Extension* extension_start = nullptr;
  PJRT_Buffer* buffer = nullptr;
  bool is_on_cpu = false;  // out
};

struct BufferReadyEventArgs {
  size_t struct_size = 32;
  Extension* extension_start = nullptr;
  PJRT_Buffer* buffer = nullptr;
  PJRT_Event* event = nullptr;  // out
};

struct BufferOpaqueDeviceMemoryDataPointerArgs {
  size_t struct_size = 32;
  Extension* extension_start = nullptr;
  PJRT_Buffer* buffer = nullptr;
  void* device_memory_ptr = nullptr;  // out
};

// --- topology ---

struct TopologyDescriptionCreateArgs {
  size_t struct_size = 56;
  Extension* extension_start = nullptr;
  const char* topology_name = nullptr;
  size_t topology_name_size = 0;
  const NamedValue* create_options = nullptr;
  size_t num_options = 0;
  PJRT_TopologyDescription* topology = nullptr;  // out
};

struct TopologyDescriptionDestroyArgs {
  size_t struct_size = 24;
  Extension* extension_start = nullptr;
  PJRT_TopologyDescription* topology = nullptr;
};

struct TopologyDescriptionPlatformNameArgs {
  size_t struct_size = 40;
  Extension* extension_start = nullptr;
  const PJRT_TopologyDescription* topology = nullptr;
  const char* platform_name = nullptr;  // out
  size_t platform_name_size = 0;        // out
};

struct TopologyDescriptionGetDeviceDescriptionsArgs {
  size_t struct_size = 40;
  Extension* extension_start = nullptr;
  const PJRT_TopologyDescription* topology = nullptr;
  PJRT_DeviceDescription* const* descriptions = nullptr;  // out
  size_t num_descriptions = 0;                            // out
};

struct CompileArgs {
  size_t struct_size = 64;
  Extension* extension_start = nullptr;
  const PJRT_TopologyDescription* topology = nullptr;
  const Program* program = nullptr;
  const char* compile_options = nullptr;
  size_t compile_options_size = 0;
  PJRT_Client* client = nullptr;
  PJRT_Executable* executable = nullptr;  // out
};

}  // namespace tpu::pjrt::abi
