// PJRT_Error to Status. See error.h.
#include "pjrt/error.h"

#include <string>

#include "pjrt/c_api.h"

namespace tpu::pjrt {
namespace {

Code FromAbsl(abi::ErrorCode code) {
  switch (code) {
    case abi::ErrorCode::kCancelled: return Code::kCancelled;
    case abi::ErrorCode::kInvalidArgument: return Code::kInvalidArgument;
    case abi::ErrorCode::kDeadlineExceeded: return Code::kDeadlineExceeded;
    case abi::ErrorCode::kResourceExhausted: return Code::kResourceExhausted;
    case abi::ErrorCode::kOutOfRange: return Code::kOutOfRange;
    case abi::ErrorCode::kUnimplemented: return Code::kUnimplemented;
    case abi::ErrorCode::kUnavailable: return Code::kUnavailable;
    default: return Code::kInternal;
  }
}

}  // namespace

Status ToStatus(const PJRT_Api* api, PJRT_Error* error) {
  if (error == nullptr) return Status::Ok();
  abi::ErrorMessageArgs message{.error = error};
  api->Error_Message(&message);
  std::string text(message.message ? message.message : "", message.message_size);

  abi::ErrorGetCodeArgs get_code{.error = error};
  Code code = Code::kInternal;
  // An error about an error is dropped: there is nothing more to learn from it.
  PJRT_Error* nested = api->Error_GetCode(&get_code);
  if (nested == nullptr) {
    code = FromAbsl(get_code.code);
  } else {
    abi::ErrorDestroyArgs destroy_nested{.error = nested};
    api->Error_Destroy(&destroy_nested);
  }

  abi::ErrorDestroyArgs destroy{.error = error};
  api->Error_Destroy(&destroy);
  if (text.empty()) text = "the PJRT plugin gave an error without a message";
  return {code, std::move(text)};
}

Status MissingFunction(const PJRT_Api* api, std::string_view name) {
  return Unimplemented("this PJRT plugin (API ", api->pjrt_api_version.major_version, ".",
                       api->pjrt_api_version.minor_version, ") has no PJRT_", name);
}

}  // namespace tpu::pjrt
