// Why programs were asked for: for each new key which call it was, on which line of the user's, and
// how it differs from the nearest one seen before. Behind explain_compiles(), forbid_compiles() and
// TORCH_TPU_EXPLAIN. What it is not: a profiler; nothing here is touched on a hit.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "exec/call.h"
#include "exec/trace.h"
#include "runtime/program.h"

namespace tpu::exec {

// What a program is asked for with.
struct ProgramReason {
  std::string op;        // "aten::add.Tensor", "trace of 12 calls"
  std::string operands;  // "float32[2, 3], float32[3]"
  std::string location;  // "train.py:12"; empty if no Python runs
  std::string cause;     // "new shape: float32[5] (nearest: float32[4])"
};

struct ProgramRecord {
  ProgramReason reason;
  runtime::ProgramSource source = runtime::ProgramSource::kCompiled;
  std::shared_ptr<const std::atomic<int64_t>> compile_ns;  // 0 until compiled, or if it never was
};

// How the key of `call` differs from the nearest of its operator; remembers it.
std::string ExplainCall(const Call& call);
// The same of a recorded sequence of calls.
std::string ExplainGraph(const Graph& graph);

// The one way from here to a program: by text from memory, disk or the compiler. Records the
// reason. An error if only a compile would give it and compiles are forbidden.
Result<Ref<runtime::Program>> RequestProgram(const std::string& text, ProgramReason reason);

// Oldest first; the last few thousand.
std::vector<ProgramRecord> ProgramRecords();
void ClearProgramRecords();

// Counts the blocks that forbid compiles, in any thread.
void ForbidCompiles(int by);

}  // namespace tpu::exec
