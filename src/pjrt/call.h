// Call<&abi::Table::X>(api, &args): the one way to call a plugin. A slot is used only where the
// plugin's table reaches it and it is not null; else the status names the function.
// What it is not: for users of src/pjrt. Internal to this folder.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/status.h"
#include "pjrt/c_api.h"
#include "pjrt/error.h"

namespace tpu::pjrt {

// "Buffer_Delete" for &abi::Table::Buffer_Delete, read from the compiler's spelling of the
// template argument, so that no call site repeats the name.
template <auto kSlot>
constexpr std::string_view SlotName() {
  std::string_view text = __PRETTY_FUNCTION__;
  constexpr std::string_view kTable = "Table::";
  text.remove_prefix(text.find(kTable) + kTable.size());
  return text.substr(0, text.find_first_of(";]>)"));
}

template <auto kSlot>
inline bool HasSlot(const PJRT_Api* api) {
  const auto* slot = &(api->*kSlot);
  const auto end = static_cast<size_t>(reinterpret_cast<const char*>(slot + 1) -
                                       reinterpret_cast<const char*>(api));
  return end <= api->struct_size && *slot != nullptr;
}

template <auto kSlot, class Args>
inline Status Call(const PJRT_Api* api, Args* args) {
  if (!HasSlot<kSlot>(api)) [[unlikely]] {
    return MissingFunction(api, SlotName<kSlot>());
  }
  PJRT_Error* error = (api->*kSlot)(args);
  if (error == nullptr) [[likely]]
    return Status::Ok();
  return ToStatus(api, error);
}

// For destructors, which have nobody to tell.
template <auto kSlot, class Args>
inline void CallIgnoringErrors(const PJRT_Api* api, Args* args) {
  static_cast<void>(Call<kSlot>(api, args));
}

}  // namespace tpu::pjrt
