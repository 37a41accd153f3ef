// The public C++ interface over the runtime.
#include "torch_tpu/client.h"

#include <cstring>

#include "base/flags.h"
#include "client/signature.h"
#include "runtime/device.h"

namespace tpu {

struct Array::Rep {
  Ref<runtime::Value> value;
};

struct Program::Rep {
  Ref<runtime::Program> program;
  std::vector<hlo::Type> parameters;
  size_t num_results = 0;
};

DType Array::dtype() const { return valid() ? rep_->value->type().dtype : DType::kInvalid; }

const Dims& Array::dims() const {
  static const Dims none;
  return valid() ? rep_->value->type().dims : none;
}

int Array::device() const { return valid() ? rep_->value->device()->index() : -1; }

Status Array::WrongType(DType wanted) const {
  if (!valid()) return InvalidArgument("an empty Array was read");
  return InvalidArgument("the array holds ", TorchName(dtype()), ", not ", TorchName(wanted));
}

Status Array::CopyToHost(void* dst, size_t bytes) const {
  if (!valid()) return InvalidArgument("an empty Array was read");
  const runtime::Value& value = *rep_->value;
  if (static_cast<int64_t>(bytes) != value.type().bytes) {
    return InvalidArgument("the array has ", value.type().bytes, " bytes, the destination ", bytes);
  }
  if (bytes == 0) return {};
  std::vector<char> staging;
  TPU_ASSIGN_OR_RETURN(const void* const source, value.device()->HostBytes(value, &staging));
  std::memcpy(dst, source, bytes);
  return {};
}

const std::string& Program::text() const {
  static const std::string none;
  return rep_ ? rep_->program->text() : none;
}

Result<std::vector<Array>> Program::Run(std::span<const Array> arguments) const {
  if (!rep_) return InvalidArgument("an empty Program was run");
  const std::vector<hlo::Type>& types = rep_->parameters;
  if (arguments.size() != types.size()) {
    return InvalidArgument("the program takes ", types.size(), " arguments, not ",
                           arguments.size());
  }
  TPU_ASSIGN_OR_RETURN(runtime::Runtime* const runtime, runtime::Runtime::Get());
  runtime::Device* const device =
      runtime->device(arguments.empty() ? 0 : std::max(arguments[0].device(), 0));
  std::vector<PJRT_Buffer*> buffers;
  std::vector<int64_t> kept;  // arrays are immutable: none may be donated
  for (size_t i = 0; i < arguments.size(); ++i) {
    const hlo::Type given{arguments[i].dtype(), arguments[i].dims()};
    if (given != types[i]) {
      return InvalidArgument("argument ", i, " of the program is ", ToString(types[i]), ", not ",
                             arguments[i].valid() ? ToString(given) : "an empty Array");
    }
    if (arguments[i].device() != device->index()) {
      return InvalidArgument("argument ", i, " is on device ", arguments[i].device(),
                             ", argument 0 on device ", device->index());
    }
    TPU_RETURN_IF_ERROR(arguments[i].rep_->value->WaitProduced());
    buffers.push_back(arguments[i].rep_->value->buffer().get());
    kept.push_back(static_cast<int64_t>(i));
  }
  std::vector<PJRT_Buffer*> results(rep_->num_results);
  TPU_RETURN_IF_ERROR(rep_->program->executable().Execute({.arguments = buffers,
                                                           .results = results,
                                                           .non_donatable = kept,
                                                           .device = device->handle()}));
  std::vector<pjrt::Buffer> owned;
  for (PJRT_Buffer* result : results) owned.emplace_back(device->client()->api(), result);
  std::vector<Array> out;
  for (pjrt::Buffer& buffer : owned) {
    TPU_ASSIGN_OR_RETURN(auto shape, buffer.Shape());
    auto type = runtime::MakeValueType(shape.first, std::move(shape.second));
    auto value =
        Ref<runtime::Value>::Make(device, std::move(type), runtime::Value::State::kPending);
    value->Fulfill(std::move(buffer));
    out.emplace_back().rep_ = std::make_shared<Array::Rep>(Array::Rep{std::move(value)});
  }
  return out;
}

Result<Client> Client::Create(const ClientOptions& options) {
  if (!options.plugin.empty() && !runtime::Runtime::Started()) {
    TPU_RETURN_IF_ERROR(SetFlag("plugin", options.plugin));
  }
  if (!options.search_dirs.empty()) runtime::Runtime::SetSearchDirs(options.search_dirs);
  TPU_RETURN_IF_ERROR(runtime::Runtime::Get().status());
  return Client();
}

std::string Client::platform() const {
  const auto runtime = runtime::Runtime::Get();
  return runtime.ok() ? (*runtime)->client().platform_name() : "";
}

int Client::num_devices() const {
  const auto runtime = runtime::Runtime::Get();
  return runtime.ok() ? (*runtime)->num_devices() : 0;
}

Result<Program> Client::Compile(std::string_view stablehlo) const {
  auto rep = std::make_shared<Program::Rep>();
  TPU_ASSIGN_OR_RETURN(rep->parameters, ParameterTypes(stablehlo));
  TPU_ASSIGN_OR_RETURN(runtime::Runtime* const runtime, runtime::Runtime::Get());
  rep->program = runtime->programs().Request(
      {std::string(stablehlo), "a StableHLO program", runtime->eager_options()});
  TPU_RETURN_IF_ERROR(rep->program->Wait());
  TPU_ASSIGN_OR_RETURN(const int64_t results, rep->program->executable().NumOutputs());
  rep->num_results = static_cast<size_t>(results);
  Program program;
  program.rep_ = std::move(rep);
  return program;
}

Result<Array> Client::Put(const void* data, DType dtype, Dims dims, int device) const {
  TPU_ASSIGN_OR_RETURN(runtime::Runtime* const runtime, runtime::Runtime::Get());
  if (device < 0 || device >= runtime->num_devices()) {
    return InvalidArgument("there is no device ", device, ", only ", runtime->num_devices());
  }
  TPU_ASSIGN_OR_RETURN(auto value, runtime->device(device)->Upload(
                                       data, runtime::MakeValueType(dtype, std::move(dims))));
  Array array;
  array.rep_ = std::make_shared<Array::Rep>(Array::Rep{std::move(value)});
  return array;
}

}  // namespace tpu
