// The PJRT C function table as of API 0.114, all 138 slots; the structs are in the two files it
// includes. Unused slots are untyped pointers. c_api_contract_test.cc checks names and offsets.
// What it is not: safe to call through. A plugin may have a shorter table or null slots: use
// Call() of pjrt/call.h.
#pragma once

#include <cstddef>

#include "pjrt/c_api_core.h"
#include "pjrt/c_api_program.h"

namespace tpu::pjrt::abi {

// Null on success; else an error that the caller owns.
template <class Args>
using Slot = PJRT_Error* (*)(Args*);

struct Table {
  size_t struct_size;
  Extension* extension_start;
  ApiVersion pjrt_api_version;
  void (*Error_Destroy)(ErrorDestroyArgs*);
  void (*Error_Message)(ErrorMessageArgs*);
  Slot<ErrorGetCodeArgs> Error_GetCode;
  Slot<PluginInitializeArgs> Plugin_Initialize;
  Slot<PluginAttributesArgs> Plugin_Attributes;
  Slot<EventDestroyArgs> Event_Destroy;
  Slot<EventIsReadyArgs> Event_IsReady;
  void* Event_Error;
  Slot<EventAwaitArgs> Event_Await;
  Slot<EventOnReadyArgs> Event_OnReady;
  Slot<ClientCreateArgs> Client_Create;
  Slot<ClientDestroyArgs> Client_Destroy;
  Slot<ClientPlatformNameArgs> Client_PlatformName;
  Slot<ClientProcessIndexArgs> Client_ProcessIndex;
  Slot<ClientPlatformVersionArgs> Client_PlatformVersion;
  void* Client_Devices;
  Slot<ClientAddressableDevicesArgs> Client_AddressableDevices;
  void* Client_LookupDevice;
  void* Client_LookupAddressableDevice;
  void* Client_AddressableMemories;
  Slot<ClientCompileArgs> Client_Compile;
  void* Client_DefaultDeviceAssignment;
  Slot<ClientBufferFromHostBufferArgs> Client_BufferFromHostBuffer;
  Slot<DeviceDescriptionIdArgs> DeviceDescription_Id;
  Slot<DeviceDescriptionProcessIndexArgs> DeviceDescription_ProcessIndex;
  Slot<DeviceDescriptionAttributesArgs> DeviceDescription_Attributes;
  Slot<DeviceDescriptionKindArgs> DeviceDescription_Kind;
  Slot<DeviceDescriptionDebugStringArgs> DeviceDescription_DebugString;
  void* DeviceDescription_ToString;
  Slot<DeviceGetDescriptionArgs> Device_GetDescription;
  void* Device_IsAddressable;
  Slot<DeviceLocalHardwareIdArgs> Device_LocalHardwareId;
  void* Device_AddressableMemories;
  void* Device_DefaultMemory;
  Slot<DeviceMemoryStatsArgs> Device_MemoryStats;
  void* Memory_Id;
  void* Memory_Kind;
  void* Memory_DebugString;
  void* Memory_ToString;
  void* Memory_AddressableByDevices;
  Slot<ExecutableDestroyArgs> Executable_Destroy;
  void* Executable_Name;
  void* Executable_NumReplicas;
  void* Executable_NumPartitions;
  Slot<ExecutableNumOutputsArgs> Executable_NumOutputs;
  void* Executable_SizeOfGeneratedCodeInBytes;
  Slot<ExecutableGetCostAnalysisArgs> Executable_GetCostAnalysis;
  void* Executable_OutputMemoryKinds;
  Slot<ExecutableOptimizedProgramArgs> Executable_OptimizedProgram;
  Slot<ExecutableSerializeArgs> Executable_Serialize;
  Slot<LoadedExecutableDestroyArgs> LoadedExecutable_Destroy;
  Slot<LoadedExecutableGetExecutableArgs> LoadedExecutable_GetExecutable;
  void* LoadedExecutable_AddressableDevices;
  void* LoadedExecutable_Delete;
  void* LoadedExecutable_IsDeleted;
  Slot<LoadedExecutableExecuteArgs> LoadedExecutable_Execute;
  Slot<ExecutableDeserializeAndLoadArgs> Executable_DeserializeAndLoad;
  void* LoadedExecutable_Fingerprint;
  Slot<BufferDestroyArgs> Buffer_Destroy;
  Slot<BufferElementTypeArgs> Buffer_ElementType;
  Slot<BufferDimensionsArgs> Buffer_Dimensions;
  void* Buffer_UnpaddedDimensions;
  void* Buffer_DynamicDimensionIndices;
  void* Buffer_GetMemoryLayout;
  Slot<BufferOnDeviceSizeInBytesArgs> Buffer_OnDeviceSizeInBytes;
  void* Buffer_Device;
  void* Buffer_Memory;
  Slot<BufferDeleteArgs> Buffer_Delete;
  Slot<BufferIsDeletedArgs> Buffer_IsDeleted;
  Slot<BufferCopyToDeviceArgs> Buffer_CopyToDevice;
  Slot<BufferToHostBufferArgs> Buffer_ToHostBuffer;
  Slot<BufferIsOnCpuArgs> Buffer_IsOnCpu;
  Slot<BufferReadyEventArgs> Buffer_ReadyEvent;
  void* Buffer_UnsafePointer;
  void* Buffer_IncreaseExternalReferenceCount;
  void* Buffer_DecreaseExternalReferenceCount;
  Slot<BufferOpaqueDeviceMemoryDataPointerArgs> Buffer_OpaqueDeviceMemoryDataPointer;
  void* CopyToDeviceStream_Destroy;
  void* CopyToDeviceStream_AddChunk;
  void* CopyToDeviceStream_TotalBytes;
  void* CopyToDeviceStream_GranuleSize;
  void* CopyToDeviceStream_CurrentBytes;
  Slot<TopologyDescriptionCreateArgs> TopologyDescription_Create;
  Slot<TopologyDescriptionDestroyArgs> TopologyDescription_Destroy;
  Slot<TopologyDescriptionPlatformNameArgs> TopologyDescription_PlatformName;
  void* TopologyDescription_PlatformVersion;
  Slot<TopologyDescriptionGetDeviceDescriptionsArgs> TopologyDescription_GetDeviceDescriptions;
  void* TopologyDescription_Serialize;
  void* TopologyDescription_Attributes;
  Slot<CompileArgs> Compile;
  void* Executable_OutputElementTypes;
  void* Executable_OutputDimensions;
  void* Buffer_CopyToMemory;
  void* Client_CreateViewOfDeviceBuffer;
  void* Executable_Fingerprint;
  void* Client_TopologyDescription;
  Slot<ExecutableGetCompiledMemoryStatsArgs> Executable_GetCompiledMemoryStats;
  void* Memory_Kind_Id;
  void* ExecuteContext_Create;
  void* ExecuteContext_Destroy;
  void* Buffer_CopyRawToHost;
  void* AsyncHostToDeviceTransferManager_Destroy;
  void* AsyncHostToDeviceTransferManager_TransferData;
  void* Client_CreateBuffersForAsyncHostToDevice;
  void* AsyncHostToDeviceTransferManager_RetrieveBuffer;
  void* AsyncHostToDeviceTransferManager_Device;
  void* AsyncHostToDeviceTransferManager_BufferCount;
  void* AsyncHostToDeviceTransferManager_BufferSize;
  void* AsyncHostToDeviceTransferManager_SetBufferError;
  void* AsyncHostToDeviceTransferManager_AddMetadata;
  void* Client_DmaMap;
  void* Client_DmaUnmap;
  void* Client_CreateUninitializedBuffer;
  void* Client_UpdateGlobalProcessInfo;
  void* TopologyDescription_Deserialize;
  void* Client_CreateAliasBuffer;
  void* Client_FulfillAliasBuffer;
  void* LoadedExecutable_GetDeviceAssignment;
  void* Client_CreateErrorBuffer;
  void* AsyncHostToDeviceTransferManager_TransferLiteral;
  void* Buffer_CopyRawToHostFuture;
  void* Device_PoisonExecution;
  void* Device_CreateAsyncTrackingEvent;
  void* AsyncTrackingEvent_Destroy;
  void* Executable_GetCompileOptions;
  void* Buffer_DonateWithControlDependency;
  void* Event_Create;
  void* Event_Set;
  void* Device_GetAttributes;
  void* Client_Load;
  void* LoadedExecutable_AddressableDeviceLogicalIds;
  void* Buffer_Bitcast;
  void* Error_ForEachPayload;
  void* TopologyDescription_Fingerprint;
  void* Executable_ParameterMemoryKinds;
  void* Device_ClearMemoryStats;
  void* TopologyDescription_MakeCanonicalShapeForMemorySpace;
  void* TopologyDescription_GetMemorySpaceKindIds;
};

}  // namespace tpu::pjrt::abi

// Derived, so that slot types read short above and the global name stays the interface's.
struct PJRT_Api : tpu::pjrt::abi::Table {};
