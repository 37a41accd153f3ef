// Errors as values: Status, Result<T>, and the two propagation macros.
// What it is not: exceptions. The core never throws across its API; torch/ maps codes to Python
// types.
#pragma once

#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace tpu {

enum class Code : unsigned char {
  kOk,
  kInvalidArgument,    // ValueError / RuntimeError: shapes, dtypes, values
  kOutOfRange,         // IndexError
  kUnimplemented,      // NotImplementedError
  kResourceExhausted,  // torch.OutOfMemoryError
  kUnavailable,        // no plugin, no device, dead device
  kDeadlineExceeded,
  kCancelled,  // Ctrl-C
  kInternal,
};

std::string_view CodeName(Code code);

// Where an error came from. Filled by whoever knows; empty fields are not printed.
struct ErrorContext {
  std::string op;        // "aten::add.Tensor"
  std::string operands;  // "float32[2, 3], int64[3]"
  std::string location;  // the user's file and line
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message)
      : rep_(code == Code::kOk ? nullptr
                               : std::make_shared<Rep>(Rep{code, std::move(message), {}})) {}

  static Status Ok() { return {}; }
  bool ok() const { return rep_ == nullptr; }
  explicit operator bool() const = delete;
  Code code() const { return rep_ ? rep_->code : Code::kOk; }
  const std::string& message() const;
  const ErrorContext& context() const;

  // Returns this error with the empty fields of its context filled from `context`.
  Status With(const ErrorContext& context) const;
  // Returns this error with `prefix` put before its message.
  Status Annotate(std::string_view prefix) const;

  // "invalid argument: ... (aten::add.Tensor on float32[2], int64[3]; at train.py:12)"
  std::string ToString() const;

 private:
  struct Rep {
    Code code;
    std::string message;
    ErrorContext context;
  };
  // Shared because an asynchronous failure is kept by every value that depends on it.
  std::shared_ptr<const Rep> rep_;
};

namespace internal {
template <class... Args>
std::string Concat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}
}  // namespace internal

template <class... Args>
Status InvalidArgument(const Args&... args) {
  return {Code::kInvalidArgument, internal::Concat(args...)};
}
template <class... Args>
Status OutOfRange(const Args&... args) {
  return {Code::kOutOfRange, internal::Concat(args...)};
}
template <class... Args>
Status Unimplemented(const Args&... args) {
  return {Code::kUnimplemented, internal::Concat(args...)};
}
template <class... Args>
Status ResourceExhausted(const Args&... args) {
  return {Code::kResourceExhausted, internal::Concat(args...)};
}
template <class... Args>
Status Unavailable(const Args&... args) {
  return {Code::kUnavailable, internal::Concat(args...)};
}
template <class... Args>
Status Internal(const Args&... args) {
  return {Code::kInternal, internal::Concat(args...)};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace tpu

#define TPU_RETURN_IF_ERROR(expr)                                                  \
  do {                                                                             \
    if (::tpu::Status tpu_status_ = (expr); !tpu_status_.ok()) return tpu_status_; \
  } while (false)

#define TPU_CONCAT_INNER_(a, b) a##b
#define TPU_CONCAT_(a, b) TPU_CONCAT_INNER_(a, b)
#define TPU_ASSIGN_OR_RETURN(lhs, expr)                 \
  auto TPU_CONCAT_(tpu_result_, __LINE__) = (expr);     \
  if (!TPU_CONCAT_(tpu_result_, __LINE__).ok())         \
    return TPU_CONCAT_(tpu_result_, __LINE__).status(); \
  lhs = std::move(TPU_CONCAT_(tpu_result_, __LINE__)).value()
