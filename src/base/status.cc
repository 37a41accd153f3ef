// Status: codes, context and printing.
#include "base/status.h"

namespace tpu {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk: return "ok";
    case Code::kInvalidArgument: return "invalid argument";
    case Code::kOutOfRange: return "out of range";
    case Code::kUnimplemented: return "not implemented";
    case Code::kResourceExhausted: return "out of memory";
    case Code::kUnavailable: return "unavailable";
    case Code::kDeadlineExceeded: return "deadline exceeded";
    case Code::kCancelled: return "cancelled";
    case Code::kInternal: return "internal error";
  }
  return "unknown";
}

const std::string& Status::message() const {
  static const std::string* const kEmpty = new std::string;
  return rep_ ? rep_->message : *kEmpty;
}

const ErrorContext& Status::context() const {
  static const ErrorContext* const kEmpty = new ErrorContext;
  return rep_ ? rep_->context : *kEmpty;
}

Status Status::With(const ErrorContext& context) const {
  if (ok()) return *this;
  Rep rep = *rep_;
  if (rep.context.op.empty()) rep.context.op = context.op;
  if (rep.context.operands.empty()) rep.context.operands = context.operands;
  if (rep.context.location.empty()) rep.context.location = context.location;
  Status out;
  out.rep_ = std::make_shared<Rep>(std::move(rep));
  return out;
}

Status Status::Annotate(std::string_view prefix) const {
  if (ok()) return *this;
  Rep rep = *rep_;
  rep.message.insert(0, prefix);
  Status out;
  out.rep_ = std::make_shared<Rep>(std::move(rep));
  return out;
}

std::string Status::ToString() const {
  if (ok()) return "ok";
  std::string out(rep_->message);
  const ErrorContext& cx = rep_->context;
  if (!cx.op.empty() || !cx.operands.empty() || !cx.location.empty()) {
    out += " (";
    out += cx.op;
    if (!cx.operands.empty()) out += (cx.op.empty() ? "on " : " on ") + cx.operands;
    if (!cx.location.empty()) {
      out += (cx.op.empty() && cx.operands.empty() ? "at " : "; at ") + cx.location;
    }
    out += ")";
  }
  return out;
}

}  // namespace tpu
