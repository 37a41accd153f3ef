// Client: the devices of one plugin in this process, compiles and uploads.
#include "pjrt/call.h"
#include "pjrt/device.h"
#include "pjrt/element_type.h"
#include "pjrt/named_values.h"
#include "pjrt/pjrt.h"

namespace tpu::pjrt {
namespace {

constexpr std::string_view kMlir = "mlir";

abi::HostBufferSemantics ToAbi(HostBufferSemantics semantics) {
  switch (semantics) {
    case HostBufferSemantics::kImmutableUntilTransferCompletes:
      return abi::HostBufferSemantics::kImmutableUntilTransferCompletes;
    case HostBufferSemantics::kImmutableZeroCopy:
      return abi::HostBufferSemantics::kImmutableZeroCopy;
    case HostBufferSemantics::kImmutableOnlyDuringCall: break;
  }
  return abi::HostBufferSemantics::kImmutableOnlyDuringCall;
}

}  // namespace

Result<std::unique_ptr<Client>> Client::Create(Plugin* plugin, const NamedValues& options) {
  const PJRT_Api* api = plugin->api();
  std::vector<abi::NamedValue> values = pjrt::ToAbi(options);
  abi::ClientCreateArgs create{.create_options = values.data(), .num_options = values.size()};
  if (Status status = Call<&abi::Table::Client_Create>(api, &create); !status.ok()) {
    return status.Annotate("creating a client of " + plugin->path() + ": ");
  }
  std::unique_ptr<Client> client(new Client);
  client->plugin_ = plugin;
  client->client_ = create.client;

  abi::ClientPlatformNameArgs name{.client = create.client};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Client_PlatformName>(api, &name));
  client->platform_name_.assign(name.platform_name, name.platform_name_size);
  abi::ClientPlatformVersionArgs version{.client = create.client};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Client_PlatformVersion>(api, &version));
  client->platform_version_.assign(version.platform_version, version.platform_version_size);
  abi::ClientProcessIndexArgs process{.client = create.client};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Client_ProcessIndex>(api, &process));
  client->process_index_ = process.process_index;

  abi::ClientAddressableDevicesArgs devices{.client = create.client};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Client_AddressableDevices>(api, &devices));
  client->devices_.assign(devices.addressable_devices,
                          devices.addressable_devices + devices.num_addressable_devices);
  for (PJRT_Device* device : client->devices_) {
    TPU_ASSIGN_OR_RETURN(DeviceInfo info, Describe(api, device));
    client->infos_.push_back(std::move(info));
  }
  return client;
}

Client::~Client() {
  if (client_ == nullptr) return;
  abi::ClientDestroyArgs args{.client = client_};
  CallIgnoringErrors<&abi::Table::Client_Destroy>(api(), &args);
}

Result<MemoryStats> Client::DeviceMemoryStats(int i) const {
  if (i < 0 || i >= num_devices()) {
    return OutOfRange("device ", i, " of a client with ", num_devices());
  }
  abi::DeviceMemoryStatsArgs args{.device = device(i)};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Device_MemoryStats>(api(), &args));
  MemoryStats stats;
  stats.bytes_in_use = args.bytes_in_use;
  if (args.peak_bytes_in_use_is_set) stats.peak_bytes = args.peak_bytes_in_use;
  if (args.bytes_limit_is_set) stats.limit = args.bytes_limit;
  return stats;
}

Result<LoadedExecutable> Client::Compile(std::string_view mlir,
                                         const CompileOptions& options) const {
  TPU_RETURN_IF_ERROR(options.Check());
  const std::string serialized = options.Serialize();
  // The field is also an output of other calls, hence not const; compiles only read it.
  abi::Program program{.code = const_cast<char*>(mlir.data()),
                       .code_size = mlir.size(),
                       .format = kMlir.data(),
                       .format_size = kMlir.size()};
  abi::ClientCompileArgs args{.client = client_,
                              .program = &program,
                              .compile_options = serialized.data(),
                              .compile_options_size = serialized.size()};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Client_Compile>(api(), &args));
  return LoadedExecutable(api(), args.executable);
}

Result<LoadedExecutable> Client::Deserialize(std::string_view bytes) const {
  abi::ExecutableDeserializeAndLoadArgs args{.client = client_,
                                             .serialized_executable = bytes.data(),
                                             .serialized_executable_size = bytes.size()};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Executable_DeserializeAndLoad>(api(), &args));
  return LoadedExecutable(api(), args.loaded_executable);
}

Result<Buffer> Client::FromHost(const void* data, DType dtype, DimsView dims, DimsView byte_strides,
                                HostBufferSemantics semantics, PJRT_Device* device,
                                Event* done) const {
  if (device == nullptr) return InvalidArgument("FromHost needs a device");
  int64_t elements = 1;
  for (int64_t dim : dims) {
    // Refused here: a plugin may abort on the first and read past the data on the second.
    if (dim < 0 || __builtin_mul_overflow(elements, dim, &elements)) {
      return InvalidArgument("a buffer can't have the shape ", ToString(dims));
    }
  }
  if (data == nullptr && elements > 0) return InvalidArgument("FromHost needs data");
  if (!byte_strides.empty() && byte_strides.size() != dims.size()) {
    return InvalidArgument(byte_strides.size(), " strides for ", dims.size(), " dimensions");
  }
  abi::ClientBufferFromHostBufferArgs args{
      .client = client_,
      .data = data,
      .type = pjrt::ToAbi(dtype),
      .dims = dims.data(),
      .num_dims = dims.size(),
      .byte_strides = byte_strides.empty() ? nullptr : byte_strides.data(),
      .num_byte_strides = byte_strides.size(),
      .host_buffer_semantics = ToAbi(semantics),
      .device = device};
  if (args.type == abi::BufferType::kInvalid) return InvalidArgument("FromHost needs a dtype");
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Client_BufferFromHostBuffer>(api(), &args));
  Event event(api(), args.done_with_host_buffer);
  if (done != nullptr) *done = std::move(event);
  return Buffer(api(), args.buffer);
}

}  // namespace tpu::pjrt
