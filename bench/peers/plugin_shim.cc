// A PJRT plugin in front of the CPU plugin named by PEER_PLUGIN, for Google's torch_tpu 0.2.0 in
// `make bench-peers`: that package creates its client with options that CPU plugins refuse. It
// hands on the table of the real plugin with two entries replaced, so that the client is made with
// the options that ours gets, and compiles are counted. Nothing of the project links it.
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "pjrt_c_api.h"

namespace {

const PJRT_Api* real_api = nullptr;

PJRT_NamedValue Option(std::string_view name) {
  PJRT_NamedValue option{};
  option.struct_size = PJRT_NamedValue_STRUCT_SIZE;
  option.name = name.data();
  option.name_size = name.size();
  option.value_size = 1;
  return option;
}

PJRT_Error* CreateClient(PJRT_Client_Create_Args* args) {
  std::array options = {Option("cpu_device_count"), Option("asynchronous")};
  options[0].type = PJRT_NamedValue_kInt64;
  options[0].int64_value = 1;
  options[1].type = PJRT_NamedValue_kBool;
  options[1].bool_value = false;
  const auto* given = args->create_options;
  const size_t given_count = args->num_options;
  args->create_options = options.data();
  args->num_options = options.size();
  PJRT_Error* error = real_api->PJRT_Client_Create(args);
  if (error != nullptr) {  // an older plugin does not know the second option
    PJRT_Error_Destroy_Args destroy{};
    destroy.struct_size = PJRT_Error_Destroy_Args_STRUCT_SIZE;
    destroy.error = error;
    real_api->PJRT_Error_Destroy(&destroy);
    args->num_options = 1;
    error = real_api->PJRT_Client_Create(args);
  }
  args->create_options = given;
  args->num_options = given_count;
  return error;
}

std::atomic<long> compiles{0};

PJRT_Error* Compile(PJRT_Client_Compile_Args* args) {
  ++compiles;
  return real_api->PJRT_Client_Compile(args);
}

const PJRT_Api* Load() {
  const char* path = std::getenv("PEER_PLUGIN");
  void* library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void* entry = library == nullptr ? nullptr : dlsym(library, "GetPjrtApi");
  if (entry == nullptr) {
    std::fprintf(stderr, "PEER_PLUGIN names no PJRT plugin: %s\n", path == nullptr ? "" : path);
    return nullptr;
  }
  real_api = reinterpret_cast<const PJRT_Api* (*)()>(entry)();
  auto* copy = static_cast<PJRT_Api*>(std::malloc(real_api->struct_size));
  std::memcpy(copy, real_api, real_api->struct_size);
  copy->PJRT_Client_Create = CreateClient;
  copy->PJRT_Client_Compile = Compile;
  return copy;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi() {
  static const PJRT_Api* const api = Load();
  return api;
}

// Programs that were compiled through this plugin so far.
extern "C" __attribute__((visibility("default"))) long PeerCompiles() { return compiles.load(); }
