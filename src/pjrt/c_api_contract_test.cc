// Compares every struct, field, enumerator and table slot that c_api.h declares with the real
// header, where the build names a folder that holds xla/pjrt/c/pjrt_c_api.h (API 0.114). Without it
// the one remaining test says so and is skipped.
#include <gtest/gtest.h>

#include <vector>

#include "pjrt/c_api.h"

#if __has_include("xla/pjrt/c/pjrt_c_api.h")
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// In a namespace of its own, since both declare PJRT_Api. The handle types are declared there
// first: its "typedef struct X X" would otherwise find the global ones.
namespace real {
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
#include "xla/pjrt/c/pjrt_c_api.h"
}  // namespace real

namespace tpu::pjrt {
namespace {

struct Field {
  const char* name;
  size_t our_offset, our_size, real_offset, real_size;
};

#define FIELD(name)                                                                              \
  {                                                                                              \
      #name, offsetof(Ours, name), sizeof(Ours::name), offsetof(Real, name), sizeof(Real::name), \
  }

template <class Ours, class Real>
void Check(size_t real_struct_size, const std::vector<Field>& fields) {
  EXPECT_EQ(Ours{}.struct_size, real_struct_size);
  EXPECT_EQ(sizeof(Ours), sizeof(Real));
  size_t end = 0;
  for (const Field& field : fields) {
    EXPECT_EQ(field.our_offset, field.real_offset) << field.name;
    EXPECT_EQ(field.our_size, field.real_size) << field.name;
    end = field.our_offset + field.our_size;
  }
  EXPECT_EQ(end, real_struct_size) << "the last field is missing here";
}

// Both structs, with every field of ours; the two that all begin with are added here.
#define CHECK_STRUCT(ours, real_name, ...)                                                      \
  TEST(ContractTest, ours) {                                                                    \
    using Ours = abi::ours;                                                                     \
    using Real = real::real_name;                                                               \
    Check<Ours, Real>(real::real_name##_STRUCT_SIZE,                                            \
                      {FIELD(struct_size), FIELD(extension_start) __VA_OPT__(, ) __VA_ARGS__}); \
  }

TEST(ContractTest, Version) {
  EXPECT_EQ(abi::kMajor, PJRT_API_MAJOR);
  EXPECT_EQ(abi::kMinor, PJRT_API_MINOR);
}

TEST(ContractTest, ErrorCode) {
  EXPECT_EQ(sizeof(abi::ErrorCode), sizeof(real::PJRT_Error_Code));
  EXPECT_EQ(static_cast<int>(abi::ErrorCode::kOk), real::PJRT_Error_Code_OK);
  EXPECT_EQ(static_cast<int>(abi::ErrorCode::kCancelled), real::PJRT_Error_Code_CANCELLED);
  EXPECT_EQ(static_cast<int>(abi::ErrorCode::kUnknown), real::PJRT_Error_Code_UNKNOWN);
  EXPECT_EQ(static_cast<int>(abi::ErrorCode::kInvalidArgument),
            real::PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_EQ(static_cast<int>(abi::ErrorCode::kDeadlineExceeded),
            real::PJRT_Error_Code_DEADLINE_EXCEEDED);
  EXPECT_EQ(static_cast<int>(abi::ErrorCode::kNotFound), real::PJRT_Error_Code_NOT_FOUND);
  EXPECT_EQ(static_cast<int>(abi::ErrorCode::kAlreadyExists), real::PJRT_Error_Code_ALREADY_EXISTS);
  EXPECT_EQ(static_cast<int>(abi::ErrorCode::kPermissionDenied),
            real::PJRT_Error_Code_PERMISSION_DENIED);
  EXPECT_EQ(static_cast<int>(abi::ErrorCode::kResourceExhausted),
            real::PJRT_Error_Code_RESOURCE_EXHAUSTED);
  EXPECT_EQ(static_cast<int>(abi::ErrorCode::kFailedPrecondition),
            real::PJRT_Error_Code_FAILED_PRECONDITION);
  EXPECT_EQ(static_cast<int>(abi::ErrorCode::kAborted), real::PJRT_Error_Code_ABORTED);
  EXPECT_EQ(static_cast<int>(abi::ErrorCode::kOutOfRange), real::PJRT_Error_Code_OUT_OF_RANGE);
  EXPECT_EQ(static_cast<int>(abi::ErrorCode::kUnimplemented), real::PJRT_Error_Code_UNIMPLEMENTED);
  EXPECT_EQ(static_cast<int>(abi::ErrorCode::kInternal), real::PJRT_Error_Code_INTERNAL);
  EXPECT_EQ(static_cast<int>(abi::ErrorCode::kUnavailable), real::PJRT_Error_Code_UNAVAILABLE);
  EXPECT_EQ(static_cast<int>(abi::ErrorCode::kDataLoss), real::PJRT_Error_Code_DATA_LOSS);
  EXPECT_EQ(static_cast<int>(abi::ErrorCode::kUnauthenticated),
            real::PJRT_Error_Code_UNAUTHENTICATED);
}

TEST(ContractTest, NamedValueType) {
  EXPECT_EQ(sizeof(abi::NamedValueType), sizeof(real::PJRT_NamedValue_Type));
  EXPECT_EQ(static_cast<int>(abi::NamedValueType::kString), real::PJRT_NamedValue_kString);
  EXPECT_EQ(static_cast<int>(abi::NamedValueType::kInt64), real::PJRT_NamedValue_kInt64);
  EXPECT_EQ(static_cast<int>(abi::NamedValueType::kInt64List), real::PJRT_NamedValue_kInt64List);
  EXPECT_EQ(static_cast<int>(abi::NamedValueType::kFloat), real::PJRT_NamedValue_kFloat);
  EXPECT_EQ(static_cast<int>(abi::NamedValueType::kBool), real::PJRT_NamedValue_kBool);
}

TEST(ContractTest, BufferType) {
  EXPECT_EQ(sizeof(abi::BufferType), sizeof(real::PJRT_Buffer_Type));
  EXPECT_EQ(static_cast<int>(abi::BufferType::kInvalid), real::PJRT_Buffer_Type_INVALID);
  EXPECT_EQ(static_cast<int>(abi::BufferType::kPred), real::PJRT_Buffer_Type_PRED);
  EXPECT_EQ(static_cast<int>(abi::BufferType::kS8), real::PJRT_Buffer_Type_S8);
  EXPECT_EQ(static_cast<int>(abi::BufferType::kS16), real::PJRT_Buffer_Type_S16);
  EXPECT_EQ(static_cast<int>(abi::BufferType::kS32), real::PJRT_Buffer_Type_S32);
  EXPECT_EQ(static_cast<int>(abi::BufferType::kS64), real::PJRT_Buffer_Type_S64);
  EXPECT_EQ(static_cast<int>(abi::BufferType::kU8), real::PJRT_Buffer_Type_U8);
  EXPECT_EQ(static_cast<int>(abi::BufferType::kU16), real::PJRT_Buffer_Type_U16);
  EXPECT_EQ(static_cast<int>(abi::BufferType::kU32), real::PJRT_Buffer_Type_U32);
  EXPECT_EQ(static_cast<int>(abi::BufferType::kU64), real::PJRT_Buffer_Type_U64);
  EXPECT_EQ(static_cast<int>(abi::BufferType::kF16), real::PJRT_Buffer_Type_F16);
  EXPECT_EQ(static_cast<int>(abi::BufferType::kF32), real::PJRT_Buffer_Type_F32);
  EXPECT_EQ(static_cast<int>(abi::BufferType::kF64), real::PJRT_Buffer_Type_F64);
  EXPECT_EQ(static_cast<int>(abi::BufferType::kBF16), real::PJRT_Buffer_Type_BF16);
  EXPECT_EQ(static_cast<int>(abi::BufferType::kC64), real::PJRT_Buffer_Type_C64);
  EXPECT_EQ(static_cast<int>(abi::BufferType::kC128), real::PJRT_Buffer_Type_C128);
  EXPECT_EQ(static_cast<int>(abi::BufferType::kF8E5M2), real::PJRT_Buffer_Type_F8E5M2);
  EXPECT_EQ(static_cast<int>(abi::BufferType::kF8E4M3FN), real::PJRT_Buffer_Type_F8E4M3FN);
  EXPECT_EQ(static_cast<int>(abi::BufferType::kF8E4M3B11FNUZ),
            real::PJRT_Buffer_Type_F8E4M3B11FNUZ);
  EXPECT_EQ(static_cast<int>(abi::BufferType::kF8E5M2FNUZ), real::PJRT_Buffer_Type_F8E5M2FNUZ);
  EXPECT_EQ(static_cast<int>(abi::BufferType::kF8E4M3FNUZ), real::PJRT_Buffer_Type_F8E4M3FNUZ);
}

TEST(ContractTest, HostBufferSemantics) {
  EXPECT_EQ(sizeof(abi::HostBufferSemantics), sizeof(real::PJRT_HostBufferSemantics));
  EXPECT_EQ(static_cast<int>(abi::HostBufferSemantics::kImmutableOnlyDuringCall),
            real::PJRT_HostBufferSemantics_kImmutableOnlyDuringCall);
  EXPECT_EQ(static_cast<int>(abi::HostBufferSemantics::kImmutableUntilTransferCompletes),
            real::PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes);
  EXPECT_EQ(static_cast<int>(abi::HostBufferSemantics::kImmutableZeroCopy),
            real::PJRT_HostBufferSemantics_kImmutableZeroCopy);
  EXPECT_EQ(static_cast<int>(abi::HostBufferSemantics::kMutableZeroCopy),
            real::PJRT_HostBufferSemantics_kMutableZeroCopy);
}

TEST(ContractTest, MemoryLayoutType) {
  EXPECT_EQ(sizeof(abi::MemoryLayoutType), sizeof(real::PJRT_Buffer_MemoryLayout_Type));
  EXPECT_EQ(static_cast<int>(abi::MemoryLayoutType::kTiled),
            real::PJRT_Buffer_MemoryLayout_Type_Tiled);
  EXPECT_EQ(static_cast<int>(abi::MemoryLayoutType::kStrides),
            real::PJRT_Buffer_MemoryLayout_Type_Strides);
}

CHECK_STRUCT(ApiVersion, PJRT_Api_Version, FIELD(major_version), FIELD(minor_version))
CHECK_STRUCT(ErrorDestroyArgs, PJRT_Error_Destroy_Args, FIELD(error))
CHECK_STRUCT(ErrorMessageArgs, PJRT_Error_Message_Args, FIELD(error), FIELD(message),
             FIELD(message_size))
CHECK_STRUCT(ErrorGetCodeArgs, PJRT_Error_GetCode_Args, FIELD(error), FIELD(code))
CHECK_STRUCT(NamedValue, PJRT_NamedValue, FIELD(name), FIELD(name_size), FIELD(type),
             FIELD(string_value), FIELD(int64_value), FIELD(int64_array_value), FIELD(float_value),
             FIELD(bool_value), FIELD(value_size))
CHECK_STRUCT(PluginInitializeArgs, PJRT_Plugin_Initialize_Args)
CHECK_STRUCT(PluginAttributesArgs, PJRT_Plugin_Attributes_Args, FIELD(attributes),
             FIELD(num_attributes))
CHECK_STRUCT(EventDestroyArgs, PJRT_Event_Destroy_Args, FIELD(event))
CHECK_STRUCT(EventIsReadyArgs, PJRT_Event_IsReady_Args, FIELD(event), FIELD(is_ready))
CHECK_STRUCT(EventAwaitArgs, PJRT_Event_Await_Args, FIELD(event))
CHECK_STRUCT(EventOnReadyArgs, PJRT_Event_OnReady_Args, FIELD(event), FIELD(callback),
             FIELD(user_arg))
CHECK_STRUCT(ClientCreateArgs, PJRT_Client_Create_Args, FIELD(create_options), FIELD(num_options),
             FIELD(kv_get_callback), FIELD(kv_get_user_arg), FIELD(kv_put_callback),
             FIELD(kv_put_user_arg), FIELD(client), FIELD(kv_try_get_callback),
             FIELD(kv_try_get_user_arg))
CHECK_STRUCT(ClientDestroyArgs, PJRT_Client_Destroy_Args, FIELD(client))
CHECK_STRUCT(ClientPlatformNameArgs, PJRT_Client_PlatformName_Args, FIELD(client),
             FIELD(platform_name), FIELD(platform_name_size))
CHECK_STRUCT(ClientPlatformVersionArgs, PJRT_Client_PlatformVersion_Args, FIELD(client),
             FIELD(platform_version), FIELD(platform_version_size))
CHECK_STRUCT(ClientProcessIndexArgs, PJRT_Client_ProcessIndex_Args, FIELD(client),
             FIELD(process_index))
CHECK_STRUCT(ClientAddressableDevicesArgs, PJRT_Client_AddressableDevices_Args, FIELD(client),
             FIELD(addressable_devices), FIELD(num_addressable_devices))
CHECK_STRUCT(Program, PJRT_Program, FIELD(code), FIELD(code_size), FIELD(format),
             FIELD(format_size))
CHECK_STRUCT(ClientCompileArgs, PJRT_Client_Compile_Args, FIELD(client), FIELD(program),
             FIELD(compile_options), FIELD(compile_options_size), FIELD(executable))
CHECK_STRUCT(MemoryLayoutTiled, PJRT_Buffer_MemoryLayout_Tiled, FIELD(minor_to_major),
             FIELD(minor_to_major_size), FIELD(tile_dims), FIELD(tile_dim_sizes), FIELD(num_tiles))
CHECK_STRUCT(MemoryLayout, PJRT_Buffer_MemoryLayout, FIELD(tiled), FIELD(type))
CHECK_STRUCT(ClientBufferFromHostBufferArgs, PJRT_Client_BufferFromHostBuffer_Args, FIELD(client),
             FIELD(data), FIELD(type), FIELD(dims), FIELD(num_dims), FIELD(byte_strides),
             FIELD(num_byte_strides), FIELD(host_buffer_semantics), FIELD(device), FIELD(memory),
             FIELD(device_layout), FIELD(done_with_host_buffer), FIELD(buffer))
CHECK_STRUCT(DeviceDescriptionIdArgs, PJRT_DeviceDescription_Id_Args, FIELD(device_description),
             FIELD(id))
CHECK_STRUCT(DeviceDescriptionProcessIndexArgs, PJRT_DeviceDescription_ProcessIndex_Args,
             FIELD(device_description), FIELD(process_index))
CHECK_STRUCT(DeviceDescriptionAttributesArgs, PJRT_DeviceDescription_Attributes_Args,
             FIELD(device_description), FIELD(num_attributes), FIELD(attributes))
CHECK_STRUCT(DeviceDescriptionKindArgs, PJRT_DeviceDescription_Kind_Args, FIELD(device_description),
             FIELD(device_kind), FIELD(device_kind_size))
CHECK_STRUCT(DeviceDescriptionDebugStringArgs, PJRT_DeviceDescription_DebugString_Args,
             FIELD(device_description), FIELD(debug_string), FIELD(debug_string_size))
CHECK_STRUCT(DeviceGetDescriptionArgs, PJRT_Device_GetDescription_Args, FIELD(device),
             FIELD(device_description))
CHECK_STRUCT(DeviceLocalHardwareIdArgs, PJRT_Device_LocalHardwareId_Args, FIELD(device),
             FIELD(local_hardware_id))
CHECK_STRUCT(DeviceMemoryStatsArgs, PJRT_Device_MemoryStats_Args, FIELD(device),
             FIELD(bytes_in_use), FIELD(peak_bytes_in_use), FIELD(peak_bytes_in_use_is_set),
             FIELD(num_allocs), FIELD(num_allocs_is_set), FIELD(largest_alloc_size),
             FIELD(largest_alloc_size_is_set), FIELD(bytes_limit), FIELD(bytes_limit_is_set),
             FIELD(bytes_reserved), FIELD(bytes_reserved_is_set), FIELD(peak_bytes_reserved),
             FIELD(peak_bytes_reserved_is_set), FIELD(bytes_reservable_limit),
             FIELD(bytes_reservable_limit_is_set), FIELD(largest_free_block_bytes),
             FIELD(largest_free_block_bytes_is_set), FIELD(pool_bytes), FIELD(pool_bytes_is_set),
             FIELD(peak_pool_bytes), FIELD(peak_pool_bytes_is_set), FIELD(peak_allocated_bytes),
             FIELD(peak_allocated_bytes_is_set))
CHECK_STRUCT(ExecutableDestroyArgs, PJRT_Executable_Destroy_Args, FIELD(executable))
CHECK_STRUCT(LoadedExecutableDestroyArgs, PJRT_LoadedExecutable_Destroy_Args, FIELD(executable))
CHECK_STRUCT(LoadedExecutableGetExecutableArgs, PJRT_LoadedExecutable_GetExecutable_Args,
             FIELD(loaded_executable), FIELD(executable))
CHECK_STRUCT(ExecutableNumOutputsArgs, PJRT_Executable_NumOutputs_Args, FIELD(executable),
             FIELD(num_outputs))
CHECK_STRUCT(ExecutableOptimizedProgramArgs, PJRT_Executable_OptimizedProgram_Args,
             FIELD(executable), FIELD(program))
CHECK_STRUCT(ExecutableGetCostAnalysisArgs, PJRT_Executable_GetCostAnalysis_Args, FIELD(executable),
             FIELD(num_properties), FIELD(properties))
CHECK_STRUCT(ExecutableGetCompiledMemoryStatsArgs, PJRT_Executable_GetCompiledMemoryStats_Args,
             FIELD(executable), FIELD(generated_code_size_in_bytes), FIELD(argument_size_in_bytes),
             FIELD(output_size_in_bytes), FIELD(alias_size_in_bytes), FIELD(temp_size_in_bytes),
             FIELD(host_generated_code_size_in_bytes), FIELD(host_argument_size_in_bytes),
             FIELD(host_output_size_in_bytes), FIELD(host_alias_size_in_bytes),
             FIELD(host_temp_size_in_bytes), FIELD(peak_memory_in_bytes),
             FIELD(total_size_in_bytes), FIELD(total_allocation_bytes),
             FIELD(indefinite_allocations), FIELD(peak_unpadded_heap_bytes))
CHECK_STRUCT(ExecutableSerializeArgs, PJRT_Executable_Serialize_Args, FIELD(executable),
             FIELD(serialized_bytes), FIELD(serialized_bytes_size), FIELD(serialized_executable),
             FIELD(serialized_executable_deleter))
CHECK_STRUCT(ExecutableDeserializeAndLoadArgs, PJRT_Executable_DeserializeAndLoad_Args,
             FIELD(client), FIELD(serialized_executable), FIELD(serialized_executable_size),
             FIELD(loaded_executable), FIELD(overridden_serialized_compile_options),
             FIELD(overridden_serialized_compile_options_size), FIELD(load_options))
CHECK_STRUCT(ExecuteOptions, PJRT_ExecuteOptions, FIELD(send_callbacks), FIELD(recv_callbacks),
             FIELD(num_send_ops), FIELD(num_recv_ops), FIELD(launch_id),
             FIELD(non_donatable_input_indices), FIELD(num_non_donatable_input_indices),
             FIELD(context), FIELD(call_location), FIELD(num_tasks), FIELD(task_ids),
             FIELD(incarnation_ids), FIELD(multi_slice_config),
             FIELD(use_major_to_minor_data_layout_for_callbacks), FIELD(hlo_output_callbacks),
             FIELD(num_hlo_output_callbacks))
CHECK_STRUCT(LoadedExecutableExecuteArgs, PJRT_LoadedExecutable_Execute_Args, FIELD(executable),
             FIELD(options), FIELD(argument_lists), FIELD(num_devices), FIELD(num_args),
             FIELD(output_lists), FIELD(device_complete_events), FIELD(execute_device))
CHECK_STRUCT(BufferDestroyArgs, PJRT_Buffer_Destroy_Args, FIELD(buffer))
CHECK_STRUCT(BufferElementTypeArgs, PJRT_Buffer_ElementType_Args, FIELD(buffer), FIELD(type))
CHECK_STRUCT(BufferDimensionsArgs, PJRT_Buffer_Dimensions_Args, FIELD(buffer), FIELD(dims),
             FIELD(num_dims))
CHECK_STRUCT(BufferOnDeviceSizeInBytesArgs, PJRT_Buffer_OnDeviceSizeInBytes_Args, FIELD(buffer),
             FIELD(on_device_size_in_bytes))
CHECK_STRUCT(BufferDeleteArgs, PJRT_Buffer_Delete_Args, FIELD(buffer))
CHECK_STRUCT(BufferIsDeletedArgs, PJRT_Buffer_IsDeleted_Args, FIELD(buffer), FIELD(is_deleted))
CHECK_STRUCT(BufferCopyToDeviceArgs, PJRT_Buffer_CopyToDevice_Args, FIELD(buffer),
             FIELD(dst_device), FIELD(dst_buffer))
CHECK_STRUCT(BufferToHostBufferArgs, PJRT_Buffer_ToHostBuffer_Args, FIELD(src), FIELD(host_layout),
             FIELD(dst), FIELD(dst_size), FIELD(event))
CHECK_STRUCT(BufferIsOnCpuArgs, PJRT_Buffer_IsOnCpu_Args, FIELD(buffer), FIELD(is_on_cpu))
CHECK_STRUCT(BufferReadyEventArgs, PJRT_Buffer_ReadyEvent_Args, FIELD(buffer), FIELD(event))
CHECK_STRUCT(BufferOpaqueDeviceMemoryDataPointerArgs,
             PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args, FIELD(buffer),
             FIELD(device_memory_ptr))
CHECK_STRUCT(TopologyDescriptionCreateArgs, PJRT_TopologyDescription_Create_Args,
             FIELD(topology_name), FIELD(topology_name_size), FIELD(create_options),
             FIELD(num_options), FIELD(topology))
CHECK_STRUCT(TopologyDescriptionDestroyArgs, PJRT_TopologyDescription_Destroy_Args, FIELD(topology))
CHECK_STRUCT(TopologyDescriptionPlatformNameArgs, PJRT_TopologyDescription_PlatformName_Args,
             FIELD(topology), FIELD(platform_name), FIELD(platform_name_size))
CHECK_STRUCT(TopologyDescriptionGetDeviceDescriptionsArgs,
             PJRT_TopologyDescription_GetDeviceDescriptions_Args, FIELD(topology),
             FIELD(descriptions), FIELD(num_descriptions))
CHECK_STRUCT(CompileArgs, PJRT_Compile_Args, FIELD(topology), FIELD(program),
             FIELD(compile_options), FIELD(compile_options_size), FIELD(client), FIELD(executable))

struct SlotInfo {
  const char* name;
  size_t our_offset, real_offset;
};

#define SLOT(name) {#name, offsetof(abi::Table, name), offsetof(real::PJRT_Api, PJRT_##name)}

TEST(ContractTest, Table) {
  const std::vector<SlotInfo> slots = {
      SLOT(Error_Destroy),
      SLOT(Error_Message),
      SLOT(Error_GetCode),
      SLOT(Plugin_Initialize),
      SLOT(Plugin_Attributes),
      SLOT(Event_Destroy),
      SLOT(Event_IsReady),
      SLOT(Event_Error),
      SLOT(Event_Await),
      SLOT(Event_OnReady),
      SLOT(Client_Create),
      SLOT(Client_Destroy),
      SLOT(Client_PlatformName),
      SLOT(Client_ProcessIndex),
      SLOT(Client_PlatformVersion),
      SLOT(Client_Devices),
      SLOT(Client_AddressableDevices),
      SLOT(Client_LookupDevice),
      SLOT(Client_LookupAddressableDevice),
      SLOT(Client_AddressableMemories),
      SLOT(Client_Compile),
      SLOT(Client_DefaultDeviceAssignment),
      SLOT(Client_BufferFromHostBuffer),
      SLOT(DeviceDescription_Id),
      SLOT(DeviceDescription_ProcessIndex),
      SLOT(DeviceDescription_Attributes),
      SLOT(DeviceDescription_Kind),
      SLOT(DeviceDescription_DebugString),
      SLOT(DeviceDescription_ToString),
      SLOT(Device_GetDescription),
      SLOT(Device_IsAddressable),
      SLOT(Device_LocalHardwareId),
      SLOT(Device_AddressableMemories),
      SLOT(Device_DefaultMemory),
      SLOT(Device_MemoryStats),
      SLOT(Memory_Id),
      SLOT(Memory_Kind),
      SLOT(Memory_DebugString),
      SLOT(Memory_ToString),
      SLOT(Memory_AddressableByDevices),
      SLOT(Executable_Destroy),
      SLOT(Executable_Name),
      SLOT(Executable_NumReplicas),
      SLOT(Executable_NumPartitions),
      SLOT(Executable_NumOutputs),
      SLOT(Executable_SizeOfGeneratedCodeInBytes),
      SLOT(Executable_GetCostAnalysis),
      SLOT(Executable_OutputMemoryKinds),
      SLOT(Executable_OptimizedProgram),
      SLOT(Executable_Serialize),
      SLOT(LoadedExecutable_Destroy),
      SLOT(LoadedExecutable_GetExecutable),
      SLOT(LoadedExecutable_AddressableDevices),
      SLOT(LoadedExecutable_Delete),
      SLOT(LoadedExecutable_IsDeleted),
      SLOT(LoadedExecutable_Execute),
      SLOT(Executable_DeserializeAndLoad),
      SLOT(LoadedExecutable_Fingerprint),
      SLOT(Buffer_Destroy),
      SLOT(Buffer_ElementType),
      SLOT(Buffer_Dimensions),
      SLOT(Buffer_UnpaddedDimensions),
      SLOT(Buffer_DynamicDimensionIndices),
      SLOT(Buffer_GetMemoryLayout),
      SLOT(Buffer_OnDeviceSizeInBytes),
      SLOT(Buffer_Device),
      SLOT(Buffer_Memory),
      SLOT(Buffer_Delete),
      SLOT(Buffer_IsDeleted),
      SLOT(Buffer_CopyToDevice),
      SLOT(Buffer_ToHostBuffer),
      SLOT(Buffer_IsOnCpu),
      SLOT(Buffer_ReadyEvent),
      SLOT(Buffer_UnsafePointer),
      SLOT(Buffer_IncreaseExternalReferenceCount),
      SLOT(Buffer_DecreaseExternalReferenceCount),
      SLOT(Buffer_OpaqueDeviceMemoryDataPointer),
      SLOT(CopyToDeviceStream_Destroy),
      SLOT(CopyToDeviceStream_AddChunk),
      SLOT(CopyToDeviceStream_TotalBytes),
      SLOT(CopyToDeviceStream_GranuleSize),
      SLOT(CopyToDeviceStream_CurrentBytes),
      SLOT(TopologyDescription_Create),
      SLOT(TopologyDescription_Destroy),
      SLOT(TopologyDescription_PlatformName),
      SLOT(TopologyDescription_PlatformVersion),
      SLOT(TopologyDescription_GetDeviceDescriptions),
      SLOT(TopologyDescription_Serialize),
      SLOT(TopologyDescription_Attributes),
      SLOT(Compile),
      SLOT(Executable_OutputElementTypes),
      SLOT(Executable_OutputDimensions),
      SLOT(Buffer_CopyToMemory),
      SLOT(Client_CreateViewOfDeviceBuffer),
      SLOT(Executable_Fingerprint),
      SLOT(Client_TopologyDescription),
      SLOT(Executable_GetCompiledMemoryStats),
      SLOT(Memory_Kind_Id),
      SLOT(ExecuteContext_Create),
      SLOT(ExecuteContext_Destroy),
      SLOT(Buffer_CopyRawToHost),
      SLOT(AsyncHostToDeviceTransferManager_Destroy),
      SLOT(AsyncHostToDeviceTransferManager_TransferData),
      SLOT(Client_CreateBuffersForAsyncHostToDevice),
      SLOT(AsyncHostToDeviceTransferManager_RetrieveBuffer),
      SLOT(AsyncHostToDeviceTransferManager_Device),
      SLOT(AsyncHostToDeviceTransferManager_BufferCount),
      SLOT(AsyncHostToDeviceTransferManager_BufferSize),
      SLOT(AsyncHostToDeviceTransferManager_SetBufferError),
      SLOT(AsyncHostToDeviceTransferManager_AddMetadata),
      SLOT(Client_DmaMap),
      SLOT(Client_DmaUnmap),
      SLOT(Client_CreateUninitializedBuffer),
      SLOT(Client_UpdateGlobalProcessInfo),
      SLOT(TopologyDescription_Deserialize),
      SLOT(Client_CreateAliasBuffer),
      SLOT(Client_FulfillAliasBuffer),
      SLOT(LoadedExecutable_GetDeviceAssignment),
      SLOT(Client_CreateErrorBuffer),
      SLOT(AsyncHostToDeviceTransferManager_TransferLiteral),
      SLOT(Buffer_CopyRawToHostFuture),
      SLOT(Device_PoisonExecution),
      SLOT(Device_CreateAsyncTrackingEvent),
      SLOT(AsyncTrackingEvent_Destroy),
      SLOT(Executable_GetCompileOptions),
      SLOT(Buffer_DonateWithControlDependency),
      SLOT(Event_Create),
      SLOT(Event_Set),
      SLOT(Device_GetAttributes),
      SLOT(Client_Load),
      SLOT(LoadedExecutable_AddressableDeviceLogicalIds),
      SLOT(Buffer_Bitcast),
      SLOT(Error_ForEachPayload),
      SLOT(TopologyDescription_Fingerprint),
      SLOT(Executable_ParameterMemoryKinds),
      SLOT(Device_ClearMemoryStats),
      SLOT(TopologyDescription_MakeCanonicalShapeForMemorySpace),
      SLOT(TopologyDescription_GetMemorySpaceKindIds),
  };
  EXPECT_EQ(slots.size(), 138u);
  for (size_t i = 0; i < slots.size(); ++i) {
    EXPECT_EQ(slots[i].our_offset, slots[i].real_offset) << slots[i].name;
    EXPECT_EQ(slots[i].our_offset, 40 + 8 * i) << slots[i].name;
  }
  EXPECT_EQ(sizeof(PJRT_Api), static_cast<size_t>(real::PJRT_Api_STRUCT_SIZE));
}

}  // namespace
}  // namespace tpu::pjrt

#else

TEST(ContractTest, NeedsTheRealHeader) {
  GTEST_SKIP() << "the build names no folder with xla/pjrt/c/pjrt_c_api.h";
}

#endif
