// Trace: calls that were recorded and not run. Fuse mode runs them together as one program at the
// next look from the host; a capture turns them into a Graph that runs again with new inputs.
// What it is not: a second lowering. Nodes are the same calls, composed by the same Composer.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "exec/executor.h"

namespace tpu::exec {

// Fuse mode: records `call` on its device's trace.
Status RunFuse(Call* call, Frontend* frontend, Ref<Entry>* entry, std::vector<CallResult>* results);

// A recorded program: inputs are contents of storages, outputs new contents.
class Graph : public RefCounted {
 public:
  struct Node {
    Call call;
    CallState state;  // views and starts; no slots
    Ref<Entry> entry;
    std::vector<int> slot_of;  // the trace's slot of each of the call's
    std::vector<int> fresh;    // slots of its new results
    std::vector<int> written;  // slots of new contents, as entry->written
  };
  struct Slot {
    Base base;                  // of contents from outside
    Ref<runtime::Value> value;  // null: never written
    bool external = true;
  };

  std::vector<Node> nodes;
  std::vector<Slot> slots;
  std::vector<uint64_t> key;

  int SlotOf(const Call& call, const TensorArg& t, const Ref<runtime::Value>& value);
  int NewSlot(Ref<runtime::Value> value);
  // Appends a call whose slots are in `state`; fills results and writes storages. Leaves `entry`
  // null and does nothing if the key is new and nothing is expected yet.
  Status Append(Call* call, CallState* state, const Expected& expected, Ref<Entry>* entry,
                std::vector<CallResult>* results);
  Result<Ref<Recipe>> Compose(const std::vector<int>& outputs) const;
  std::vector<uint32_t> Words(const Recipe& recipe) const;

 private:
  std::unordered_map<const runtime::Value*, int> slot_by_value_;
};

// While one lives on a thread, that thread's calls on `device` are recorded into a graph of their
// own and don't run.
class Capture {
 public:
  explicit Capture(runtime::Device* device);
  ~Capture();
  Graph* graph() { return graph_.get(); }
  static Capture* OfThisThread();
  runtime::Device* device() const { return device_; }

 private:
  runtime::Device* const device_;
  Ref<Graph> graph_;
  Capture* const outer_;
};

}  // namespace tpu::exec
