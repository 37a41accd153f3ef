// Explaining programs: signatures of calls, their differences, the log.
#include "exec/explain.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "base/flags.h"

namespace tpu::exec {
namespace {

constexpr size_t kMaxRecords = 10000, kMaxSignatures = 128;

// What a key is made of, as text a user can read. In the order in which differences are told.
struct Signature {
  static constexpr std::array<const char*, 4> kNames = {"dtype", "shape", "constant", "layout"};
  std::array<std::string, kNames.size()> parts;

  int Distance(const Signature& other) const {
    int n = 0;
    for (size_t i = 0; i < parts.size(); ++i) n += parts[i] != other.parts[i];
    return n;
  }
};

std::string NumberText(const Number& n) {
  if (n.kind == Number::Kind::kInt) return std::to_string(n.i);
  char text[32];
  std::snprintf(text, sizeof text, "%g", n.AsDouble());
  return text;
}

std::string ConstantText(const Call& call, size_t i) {
  const Arg& a = call.args[i];
  switch (a.kind) {
    case Arg::Kind::kInt: return std::to_string(a.i);
    case Arg::Kind::kInts: return tpu::ToString(DimsView{call.ints.data() + a.at, a.count});
    case Arg::Kind::kType: return std::string(TorchName(a.dtype));
    case Arg::Kind::kString: return call.strings[a.at];
    case Arg::Kind::kNumber:
      if (call.overload->arg_static[i] || a.is_default) return NumberText(a.number);
      switch (a.number.kind) {
        case Number::Kind::kBool: return "a bool";
        case Number::Kind::kInt:
        case Number::Kind::kUint: return "an int";
        case Number::Kind::kFloat: return "a float";
        case Number::Kind::kComplex: return "a complex";
      }
      return "";
    default: return "";
  }
}

Signature SignatureOf(const Call& call) {
  Signature s;
  const auto add = [](std::string* to, const std::string& text) {
    if (!to->empty()) *to += ", ";
    *to += text;
  };
  for (const TensorArg& t : call.tensors) {
    if (t.storage == nullptr) continue;
    add(&s.parts[0], std::string(TorchName(t.dtype)));
    add(&s.parts[1], tpu::ToString(call.Sizes(t)));
    std::string layout = t.covers ? "whole" : "strides " + tpu::ToString(call.Strides(t));
    if (t.offset != 0) layout += " with an offset";
    if (t.conj || t.neg) layout += t.conj ? " conj" : " neg";
    add(&s.parts[3], layout);
  }
  for (size_t i = 0; i < call.args.size(); ++i) {
    const std::string text = ConstantText(call, i);
    if (!text.empty()) add(&s.parts[2], call.overload->arg_names[i] + "=" + text);
  }
  return s;
}

struct Log {
  std::mutex mu;
  std::map<std::string, std::deque<Signature>> seen;  // by operator
  std::map<std::vector<std::string>, int> traces;     // by the operators in order
  std::deque<ProgramRecord> records;
};
Log& TheLog() {
  static Log* const log = new Log;
  return *log;
}

std::atomic<int> forbidden{0};

const char* SourceText(runtime::ProgramSource source) {
  switch (source) {
    case runtime::ProgramSource::kMemory: return "shared";
    case runtime::ProgramSource::kDisk: return "from disk";
    case runtime::ProgramSource::kCompiled: return "compiled";
    case runtime::ProgramSource::kRefused: return "refused";
  }
  return "";
}

std::string Describe(const ProgramReason& r) {
  return r.op + (r.operands.empty() ? "" : " on " + r.operands) + ": " + r.cause;
}

}  // namespace

std::string ExplainCall(const Call& call) {
  Signature now = SignatureOf(call);
  Log& log = TheLog();
  std::lock_guard lock(log.mu);
  std::deque<Signature>& seen = log.seen[call.overload->name];
  std::string cause;
  if (seen.empty()) {
    cause = "new operator";
  } else {
    const auto nearest = std::min_element(
        seen.begin(), seen.end(),
        [&](const Signature& a, const Signature& b) { return now.Distance(a) < now.Distance(b); });
    for (size_t i = 0; i < now.parts.size(); ++i) {
      if (now.parts[i] == nearest->parts[i]) continue;
      if (!cause.empty()) cause += "; ";
      cause += std::string("new ") + Signature::kNames[i] + ": " + now.parts[i] +
               " (nearest: " + nearest->parts[i] + ")";
    }
    if (cause.empty()) cause = "new layout of the memory behind a view, or dropped from memory";
  }
  seen.push_front(std::move(now));
  if (seen.size() > kMaxSignatures) seen.pop_back();
  return cause;
}

std::string ExplainGraph(const Graph& graph) {
  std::vector<std::string> ops;
  for (const Graph::Node& n : graph.nodes) ops.push_back(n.call.overload->name);
  Log& log = TheLog();
  std::lock_guard lock(log.mu);
  if (log.traces.size() > kMaxSignatures * 8) log.traces.clear();
  return log.traces[std::move(ops)]++ == 0
             ? "new order of calls"
             : "known order of calls, other shapes, wiring or live results";
}

Result<Ref<runtime::Program>> RequestProgram(const std::string& text, ProgramReason reason) {
  TPU_ASSIGN_OR_RETURN(runtime::Runtime* const rt, runtime::Runtime::Get());
  const bool may_compile = forbidden.load(std::memory_order_relaxed) == 0;
  ProgramRecord record;
  std::string label = reason.op;
  if (!reason.operands.empty()) label += " on " + reason.operands;
  Ref<runtime::Program> program = rt->programs().Request(
      {text, std::move(label), rt->eager_options(), may_compile}, &record.source);
  record.reason = std::move(reason);
  if (GetFlags().explain()) {
    const std::string& at = record.reason.location;
    std::fprintf(stderr, "torch_tpu: %s: %s%s\n", SourceText(record.source),
                 Describe(record.reason).c_str(), at.empty() ? "" : (" at " + at).c_str());
  }
  if (record.source == runtime::ProgramSource::kRefused) {
    return InvalidArgument("compiling is forbidden here (forbid_compiles): ",
                           Describe(record.reason));
  }
  record.compile_ns = program->compile_ns();
  Log& log = TheLog();
  std::lock_guard lock(log.mu);
  log.records.push_back(std::move(record));
  if (log.records.size() > kMaxRecords) log.records.pop_front();
  return program;
}

std::vector<ProgramRecord> ProgramRecords() {
  Log& log = TheLog();
  std::lock_guard lock(log.mu);
  return {log.records.begin(), log.records.end()};
}

void ClearProgramRecords() {
  std::deque<ProgramRecord> dropped;  // after the lock
  Log& log = TheLog();
  std::lock_guard lock(log.mu);
  dropped.swap(log.records);
}

void ForbidCompiles(int by) { forbidden.fetch_add(by, std::memory_order_relaxed); }

}  // namespace tpu::exec
