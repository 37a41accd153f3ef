// CompileOptions as the bytes of XLA's CompileOptionsProto. Written by hand on the wire format, so
// that no protobuf library is needed. Unknown fields are skipped by older plugins.
#include "pjrt/pjrt.h"
#include "pjrt/wire.h"

namespace tpu::pjrt {
namespace {

// Field numbers, message by message.
constexpr int kExecutableBuildOptions = 3;
constexpr int kCompilePortableExecutable = 4;
constexpr int kEnvOptionOverrides = 7;

constexpr int kBuildDeviceOrdinal = 1;
constexpr int kBuildNumReplicas = 4;
constexpr int kBuildNumPartitions = 5;
constexpr int kBuildUseSpmdPartitioning = 6;
constexpr int kBuildDeviceAssignment = 9;
constexpr int kBuildUseShardyPartitioner = 19;
constexpr int kBuildOptimizationLevel = 24;

constexpr int kAssignmentReplicaCount = 1;
constexpr int kAssignmentComputationCount = 2;
constexpr int kAssignmentComputationDevices = 3;
constexpr int kComputationReplicaDeviceIds = 1;

constexpr int kMapKey = 1;
constexpr int kMapValue = 2;
constexpr int kOverrideString = 1;

// The proto lists the devices of each partition over all replicas: the transpose of ours.
std::string DeviceAssignment(const CompileOptions& options) {
  std::string out;
  wire::PutInt(&out, kAssignmentReplicaCount, options.num_replicas);
  wire::PutInt(&out, kAssignmentComputationCount, options.num_partitions);
  const auto partitions = static_cast<size_t>(options.num_partitions);
  for (size_t p = 0; p < partitions; ++p) {
    std::string ids;
    for (size_t i = p; i < options.device_ids.size(); i += partitions) {
      wire::PutVarint(&ids, static_cast<uint64_t>(options.device_ids[i]));
    }
    std::string computation;
    wire::PutBytes(&computation, kComputationReplicaDeviceIds, ids);
    wire::PutBytes(&out, kAssignmentComputationDevices, computation);
  }
  return out;
}

std::string BuildOptions(const CompileOptions& options) {
  std::string out;
  wire::PutInt(&out, kBuildDeviceOrdinal, -1);  // absent would mean device 0
  wire::PutInt(&out, kBuildNumReplicas, options.num_replicas);
  wire::PutInt(&out, kBuildNumPartitions, options.num_partitions);
  if (options.use_spmd_partitioning) {
    wire::PutInt(&out, kBuildUseSpmdPartitioning, 1);
    wire::PutInt(&out, kBuildUseShardyPartitioner, 1);
  }
  if (!options.device_ids.empty()) {
    wire::PutBytes(&out, kBuildDeviceAssignment, DeviceAssignment(options));
  }
  if (options.optimization_level != 0) {
    wire::PutInt(&out, kBuildOptimizationLevel, options.optimization_level);
  }
  return out;
}

}  // namespace

Status CompileOptions::Check() const {
  if (num_replicas < 1 || num_partitions < 1) {
    return InvalidArgument("compile options: ", num_replicas, " replicas and ", num_partitions,
                           " partitions; both must be positive");
  }
  const auto devices = static_cast<size_t>(num_replicas) * static_cast<size_t>(num_partitions);
  if (portable && (devices != 1 || !device_ids.empty())) {
    return InvalidArgument(
        "compile options: a portable program has one replica, one partition and "
        "no device ids; set portable to false");
  }
  if (!device_ids.empty() && device_ids.size() != devices) {
    return InvalidArgument("compile options: ", device_ids.size(), " device ids for ", num_replicas,
                           " replicas x ", num_partitions, " partitions");
  }
  return Status::Ok();
}

std::string CompileOptions::Serialize() const {
  std::string out;
  wire::PutBytes(&out, kExecutableBuildOptions, BuildOptions(*this));
  if (portable) wire::PutInt(&out, kCompilePortableExecutable, 1);
  for (const auto& [key, value] : overrides) {
    // XLA takes a string for every scalar and enum option, so one form serves all.
    std::string value_message;
    wire::PutBytes(&value_message, kOverrideString, value);
    std::string entry;
    wire::PutBytes(&entry, kMapKey, key);
    wire::PutBytes(&entry, kMapValue, value_message);
    wire::PutBytes(&out, kEnvOptionOverrides, entry);
  }
  return out;
}

}  // namespace tpu::pjrt
