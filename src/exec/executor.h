// Strict execution: a call with a known key runs on the calling thread; a new one is lowered, its
// program compiles in a pool, and the call and those after it line up in order.
// What it is not: the front end. Torch's meta kernels are reached through Frontend.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/ref.h"
#include "exec/call.h"
#include "exec/composer.h"
#include "exec/key.h"
#include "runtime/program.h"

namespace tpu::exec {

// What is known of a call's key.
class Entry : public RefCounted {
 public:
  std::vector<uint64_t> key;
  uint64_t hash = 0;                // of the key
  std::vector<ResultSpec> results;  // fresh results, in order
  std::vector<int> result_outputs;  // which output of the program each is
  struct Written {
    int slot;
    int output;
  };
  std::vector<Written> written;        // storages that get new contents
  Ref<Recipe> recipe;                  // its text goes once the program was asked for
  bool works = true;                   // false: nothing to run (no result has elements)
  Ref<runtime::Program> program;       // null until strict mode runs the call
  std::atomic<bool> requested{false};  // `program` is settled
  bool indexes = false;
  std::string location, cause;  // of the call that made it (see explain.h)
  mutable std::atomic<uint64_t> last_used{0};
};

// What the executor asks of the language front on a miss.
class Frontend {
 public:
  virtual ~Frontend() = default;
  // Sizes, strides and dtypes of the fresh results (and all of PyTorch's own checks of the call).
  // Empty: not known, take the lowering's. Called with no lock held: a meta kernel written in
  // Python takes the GIL and may call other operators.
  virtual Result<std::vector<ResultSpec>> Expect(const Call& call) = 0;
  // The user's line, for errors. May be empty.
  virtual std::string Location() { return {}; }
};

struct CallResult {
  const ResultSpec* spec = nullptr;
  Ref<runtime::Value> value;
};

// Strict mode, whatever the current one is.
Status RunStrict(Call* call, Frontend* frontend, Ref<Entry>* entry,
                 std::vector<CallResult>* results);
// Runs `call` in the current mode. `entry` keeps the specs in `results` alive.
Status Run(Call* call, Frontend* frontend, Ref<Entry>* entry, std::vector<CallResult>* results);

// What the front end said of a call's results; empty until it was asked.
using Expected = std::optional<std::vector<ResultSpec>>;
// The entry of a key. One that is new is made from `expected`; null if that isn't known yet.
Result<Ref<Entry>> FindEntry(const Call& call, const CallState& state, const Expected& expected);
// Runs `attempt(expected)`, and if it found no entry, asks and runs it again.
template <typename Attempt>
Status AskOnMiss(Call* call, Frontend* frontend, Ref<Entry>* entry, const Attempt& attempt) {
  Expected expected;
  TPU_RETURN_IF_ERROR(attempt(expected));
  if (*entry) return {};
  call->location = frontend->Location();
  TPU_ASSIGN_OR_RETURN(expected, frontend->Expect(*call));
  return attempt(expected).With({"", "", call->location});
}

// The table of entries: bounded, least recently used first out.
class EntryCache {
 public:
  static EntryCache& Get();
  Ref<Entry> Find(const std::vector<uint64_t>& key);
  // The entry that the cache holds for the key from now on: `entry`, or one that was there before.
  Ref<Entry> Insert(Ref<Entry> entry);
  void Clear();
  size_t size();

 private:
  struct KeyHash {
    using is_transparent = void;
    size_t operator()(const std::vector<uint64_t>* key) const;
  };
  struct KeyEqual {
    using is_transparent = void;
    bool operator()(const std::vector<uint64_t>* a, const std::vector<uint64_t>* b) const {
      return *a == *b;
    }
  };
  void Evict();
  std::mutex mu_;
  uint64_t tick_ = 0;
  std::unordered_map<const std::vector<uint64_t>*, Ref<Entry>, KeyHash, KeyEqual> entries_;
};

// The StableHLO text of a call (for tests, `hlo()` and ahead-of-time compiles).
Result<Ref<Recipe>> ComposeCall(const Call& call, const CallState& state,
                                std::vector<ResultSpec>* expected, std::vector<int>* fresh,
                                std::vector<Entry::Written>* written);

// Resolves the packed words of a program from the calls that made it.
void ResolveWords(const Recipe& recipe, std::span<const Call* const> calls,
                  std::span<const CallState* const> states, std::vector<uint32_t>* words);

// Runs a program now or, if it isn't ready or something is queued, in order. `arguments`: the
// contents of each slot parameter, in the order of recipe.params (null for the others); taken if
// the launch is queued. `outputs`: made by the caller, pending; one for each kValue output. Where a
// value is held by nobody but `arguments`, and the program says so, its memory is taken. An error
// is that of a launch on this thread; the outputs have failed with it. `call`: the one call that
// the program was made of, if it was one; a time line names it.
Status Launch(runtime::Device* device, const Ref<Recipe>& recipe,
              const Ref<runtime::Program>& program, std::vector<Ref<runtime::Value>>* arguments,
              Ref<runtime::Value> words, const std::vector<Ref<runtime::Value>>& outputs,
              const Call* call = nullptr);

}  // namespace tpu::exec
