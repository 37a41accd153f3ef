// Topology: a described machine, to compile for without having it.
#include "pjrt/call.h"
#include "pjrt/device.h"
#include "pjrt/named_values.h"
#include "pjrt/pjrt.h"

namespace tpu::pjrt {
namespace {

constexpr std::string_view kMlir = "mlir";

void Destroy(Plugin* plugin, PJRT_TopologyDescription* topology) {
  if (topology == nullptr) return;
  abi::TopologyDescriptionDestroyArgs args{.topology = topology};
  CallIgnoringErrors<&abi::Table::TopologyDescription_Destroy>(plugin->api(), &args);
}

}  // namespace

Result<Topology> Topology::Create(Plugin* plugin, const std::string& name,
                                  const NamedValues& options) {
  // libtpu reads an empty name as a v2 and says nothing.
  if (name.empty()) return InvalidArgument("a topology needs a name, such as \"v5e:2x2\"");
  std::vector<abi::NamedValue> values = ToAbi(options);
  abi::TopologyDescriptionCreateArgs args{.topology_name = name.data(),
                                          .topology_name_size = name.size(),
                                          .create_options = values.data(),
                                          .num_options = values.size()};
  if (Status status = Call<&abi::Table::TopologyDescription_Create>(plugin->api(), &args);
      !status.ok()) {
    return status.Annotate("topology \"" + name + "\": ");
  }
  Topology topology;
  topology.plugin_ = plugin;
  topology.topology_ = args.topology;
  return topology;
}

Topology::Topology(Topology&& other) noexcept
    : plugin_(other.plugin_), topology_(std::exchange(other.topology_, nullptr)) {}

Topology& Topology::operator=(Topology&& other) noexcept {
  if (this != &other) {
    Destroy(plugin_, topology_);
    plugin_ = other.plugin_;
    topology_ = std::exchange(other.topology_, nullptr);
  }
  return *this;
}

Topology::~Topology() { Destroy(plugin_, topology_); }

std::vector<DeviceInfo> Topology::devices() const {
  std::vector<DeviceInfo> out;
  if (topology_ == nullptr) return out;
  abi::TopologyDescriptionGetDeviceDescriptionsArgs args{.topology = topology_};
  if (!Call<&abi::Table::TopologyDescription_GetDeviceDescriptions>(plugin_->api(), &args).ok()) {
    return out;
  }
  out.reserve(args.num_descriptions);
  for (size_t i = 0; i < args.num_descriptions; ++i) {
    Result<DeviceInfo> info = Describe(plugin_->api(), args.descriptions[i]);
    if (info.ok()) out.push_back(*std::move(info));
  }
  return out;
}

Result<std::string> Topology::platform_name() const {
  if (topology_ == nullptr) return InvalidArgument("the topology handle is empty");
  abi::TopologyDescriptionPlatformNameArgs args{.topology = topology_};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::TopologyDescription_PlatformName>(plugin_->api(), &args));
  return std::string(args.platform_name, args.platform_name_size);
}

Result<Executable> Topology::Compile(std::string_view mlir, const CompileOptions& options) const {
  if (topology_ == nullptr) return InvalidArgument("the topology handle is empty");
  TPU_RETURN_IF_ERROR(options.Check());
  const std::string serialized = options.Serialize();
  abi::Program program{.code = const_cast<char*>(mlir.data()),  // only read by this call
                       .code_size = mlir.size(),
                       .format = kMlir.data(),
                       .format_size = kMlir.size()};
  abi::CompileArgs args{.topology = topology_,
                        .program = &program,
                        .compile_options = serialized.data(),
                        .compile_options_size = serialized.size()};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Compile>(plugin_->api(), &args));
  return Executable(plugin_->api(), args.executable);
}

}  // namespace tpu::pjrt
