// LoadedExecutable and Executable: runs, serialised forms and statistics.
#include "pjrt/call.h"
#include "pjrt/pjrt.h"
#include "pjrt/wire.h"

namespace tpu::pjrt {
namespace {

void Destroy(const PJRT_Api* api, PJRT_LoadedExecutable* exe) {
  if (exe == nullptr) return;
  abi::LoadedExecutableDestroyArgs args{.executable = exe};
  CallIgnoringErrors<&abi::Table::LoadedExecutable_Destroy>(api, &args);
}

void Destroy(const PJRT_Api* api, PJRT_Executable* exe) {
  if (exe == nullptr) return;
  abi::ExecutableDestroyArgs args{.executable = exe};
  CallIgnoringErrors<&abi::Table::Executable_Destroy>(api, &args);
}

// The unloaded view of a loaded executable, which most queries ask for.
class View {
 public:
  static Result<View> Of(const PJRT_Api* api, PJRT_LoadedExecutable* loaded) {
    if (loaded == nullptr) return InvalidArgument("the executable handle is empty");
    abi::LoadedExecutableGetExecutableArgs args{.loaded_executable = loaded};
    TPU_RETURN_IF_ERROR(Call<&abi::Table::LoadedExecutable_GetExecutable>(api, &args));
    return View(api, args.executable);
  }
  View(View&& other) noexcept : api_(other.api_), exe_(std::exchange(other.exe_, nullptr)) {}
  ~View() { Destroy(api_, exe_); }
  PJRT_Executable* get() const { return exe_; }

 private:
  View(const PJRT_Api* api, PJRT_Executable* exe) : api_(api), exe_(exe) {}
  const PJRT_Api* api_;
  PJRT_Executable* exe_;
};

Result<std::string> SerializeExecutable(const PJRT_Api* api, PJRT_Executable* exe) {
  if (exe == nullptr) return InvalidArgument("the executable handle is empty");
  abi::ExecutableSerializeArgs args{.executable = exe};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Executable_Serialize>(api, &args));
  std::string bytes(args.serialized_bytes, args.serialized_bytes_size);
  if (args.serialized_executable_deleter != nullptr) {
    args.serialized_executable_deleter(args.serialized_executable);
  }
  return bytes;
}

Result<CompiledMemoryStats> MemoryStatsOf(const PJRT_Api* api, PJRT_Executable* exe) {
  if (exe == nullptr) return InvalidArgument("the executable handle is empty");
  abi::ExecutableGetCompiledMemoryStatsArgs args{.executable = exe};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Executable_GetCompiledMemoryStats>(api, &args));
  return CompiledMemoryStats{.code = args.generated_code_size_in_bytes,
                             .arguments = args.argument_size_in_bytes,
                             .outputs = args.output_size_in_bytes,
                             .aliased = args.alias_size_in_bytes,
                             .temporaries = args.temp_size_in_bytes,
                             .peak = args.peak_memory_in_bytes};
}

Result<std::map<std::string, double>> CostAnalysisOf(const PJRT_Api* api, PJRT_Executable* exe) {
  if (exe == nullptr) return InvalidArgument("the executable handle is empty");
  abi::ExecutableGetCostAnalysisArgs args{.executable = exe};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Executable_GetCostAnalysis>(api, &args));
  std::map<std::string, double> costs;
  for (size_t i = 0; i < args.num_properties; ++i) {
    const abi::NamedValue& value = args.properties[i];
    const std::string name(value.name, value.name_size);
    if (value.type == abi::NamedValueType::kFloat) {
      costs[name] = static_cast<double>(value.float_value);
    } else if (value.type == abi::NamedValueType::kInt64) {
      costs[name] = static_cast<double>(value.int64_value);
    }
  }
  return costs;
}

Result<int64_t> NumOutputsOf(const PJRT_Api* api, PJRT_LoadedExecutable* loaded) {
  TPU_ASSIGN_OR_RETURN(View view, View::Of(api, loaded));
  abi::ExecutableNumOutputsArgs args{.executable = view.get()};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Executable_NumOutputs>(api, &args));
  return static_cast<int64_t>(args.num_outputs);
}

}  // namespace

LoadedExecutable::LoadedExecutable(const PJRT_Api* api, PJRT_LoadedExecutable* exe)
    : api_(api), exe_(exe) {
  Result<int64_t> outputs = NumOutputsOf(api, exe);
  if (outputs.ok()) num_outputs_ = *outputs;
}

LoadedExecutable::LoadedExecutable(LoadedExecutable&& other) noexcept
    : api_(other.api_),
      exe_(std::exchange(other.exe_, nullptr)),
      num_outputs_(other.num_outputs_) {}

LoadedExecutable& LoadedExecutable::operator=(LoadedExecutable&& other) noexcept {
  if (this != &other) {
    Destroy(api_, exe_);
    api_ = other.api_;
    exe_ = std::exchange(other.exe_, nullptr);
    num_outputs_ = other.num_outputs_;
  }
  return *this;
}

LoadedExecutable::~LoadedExecutable() { Destroy(api_, exe_); }

Status LoadedExecutable::Execute(const ExecuteArgs& args) const {
  if (exe_ == nullptr) [[unlikely]]
    return InvalidArgument("the executable handle is empty");
  // The plugin fills the result array without knowing its length.
  if (static_cast<int64_t>(args.results.size()) != num_outputs_) [[unlikely]] {
    return InvalidArgument("room for ", args.results.size(), " results of a program with ",
                           num_outputs_);
  }
  // A null argument would be read by the plugin.
  for (const PJRT_Buffer* buffer : args.arguments) {
    if (buffer == nullptr) [[unlikely]]
      return InvalidArgument("an argument buffer is null");
  }
  PJRT_Buffer* const* arguments = args.arguments.data();
  PJRT_Buffer** results = args.results.data();
  // Every field newer than Plugin::kMinMinor keeps its zero.
  abi::ExecuteOptions options{.launch_id = args.launch_id,
                              .non_donatable_input_indices = args.non_donatable.data(),
                              .num_non_donatable_input_indices = args.non_donatable.size()};
  abi::LoadedExecutableExecuteArgs call{.executable = exe_,
                                        .options = &options,
                                        .argument_lists = &arguments,
                                        .num_devices = 1,
                                        .num_args = args.arguments.size(),
                                        .output_lists = &results,
                                        .execute_device = args.device};
  return Call<&abi::Table::LoadedExecutable_Execute>(api_, &call);
}

Result<std::string> LoadedExecutable::Serialize() const {
  TPU_ASSIGN_OR_RETURN(View view, View::Of(api_, exe_));
  return SerializeExecutable(api_, view.get());
}

Result<CompiledMemoryStats> LoadedExecutable::MemoryStats() const {
  TPU_ASSIGN_OR_RETURN(View view, View::Of(api_, exe_));
  return MemoryStatsOf(api_, view.get());
}

Result<std::map<std::string, double>> LoadedExecutable::CostAnalysis() const {
  TPU_ASSIGN_OR_RETURN(View view, View::Of(api_, exe_));
  return CostAnalysisOf(api_, view.get());
}

Result<int64_t> LoadedExecutable::NumOutputs() const { return NumOutputsOf(api_, exe_); }

Result<std::string> LoadedExecutable::OptimizedProgram() const {
  TPU_ASSIGN_OR_RETURN(View view, View::Of(api_, exe_));
  abi::Program program;
  abi::ExecutableOptimizedProgramArgs args{.executable = view.get(), .program = &program};
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Executable_OptimizedProgram>(api_, &args));
  std::string bytes(program.code_size, '\0');
  program.code = bytes.data();
  TPU_RETURN_IF_ERROR(Call<&abi::Table::Executable_OptimizedProgram>(api_, &args));
  // With its configuration, the module is field 1 of an enclosing message.
  if (std::string_view(program.format, program.format_size) == "hlo_with_config") {
    return wire::FirstBytesField(bytes, 1);
  }
  return bytes;
}

Executable::Executable(Executable&& other) noexcept
    : api_(other.api_), exe_(std::exchange(other.exe_, nullptr)) {}

Executable& Executable::operator=(Executable&& other) noexcept {
  if (this != &other) {
    Destroy(api_, exe_);
    api_ = other.api_;
    exe_ = std::exchange(other.exe_, nullptr);
  }
  return *this;
}

Executable::~Executable() { Destroy(api_, exe_); }

Result<std::string> Executable::Serialize() const { return SerializeExecutable(api_, exe_); }
Result<CompiledMemoryStats> Executable::MemoryStats() const { return MemoryStatsOf(api_, exe_); }
Result<std::map<std::string, double>> Executable::CostAnalysis() const {
  return CostAnalysisOf(api_, exe_);
}

}  // namespace tpu::pjrt
