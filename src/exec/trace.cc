// Recording, flushing, capturing.
#include "exec/trace.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "base/counters.h"
#include "base/hash.h"
#include "exec/cuts.h"
#include "exec/explain.h"
#include "exec/mode.h"

namespace tpu::exec {

using runtime::Device;
using runtime::Value;

namespace {

using Clock = std::chrono::steady_clock;
// Of a trace that nothing else cuts. Long, because a cut by the clock falls on other calls each
// time.
constexpr std::chrono::seconds kMaxAge{30};

// The programs of traces seen before, by the entries of their calls and the wiring between them.
// Bounded; least recently used first out.
class KnownTraces {
 public:
  struct Known {
    Ref<Recipe> recipe;
    Ref<runtime::Program> program;
    std::vector<Ref<Entry>> entries;  // the key holds their addresses
    uint64_t last_used = 0;
  };
  const Known* Find(const std::vector<uint64_t>& key) {
    const auto it = known_.find(key);
    if (it == known_.end()) return nullptr;
    it->second.last_used = ++tick_;
    return &it->second;
  }
  const Known* Insert(std::vector<uint64_t> key, Known known) {
    if (known_.size() >= size_t(GetFlags().program_limit()) || runtime::Program::OverLimit()) {
      Evict();
    }
    known.last_used = ++tick_;
    return &known_.insert_or_assign(std::move(key), std::move(known)).first->second;
  }

 private:
  struct Hash {
    size_t operator()(const std::vector<uint64_t>& key) const { return HashWords(key); }
  };
  void Evict() {  // a quarter: one pass for many evictions
    std::vector<uint64_t> ages;
    for (const auto& [key, known] : known_) ages.push_back(known.last_used);
    if (ages.empty()) return;
    const auto nth = ages.begin() + std::ptrdiff_t(ages.size() / 4);
    std::nth_element(ages.begin(), nth, ages.end());
    const uint64_t oldest_kept = *nth;
    std::erase_if(known_, [&](const auto& item) { return item.second.last_used <= oldest_kept; });
  }
  uint64_t tick_ = 0;
  std::unordered_map<std::vector<uint64_t>, Known, Hash> known_;
};

// One a device: what fuse mode has recorded and where to cut it.
struct DeviceTrace {
  explicit DeviceTrace(const Device& device) : cutter(device.TotalMemory() / 8) {}
  std::mutex mu;
  Ref<Graph> graph;
  Cutter cutter;
  Clock::time_point began;  // the first call of `graph`
  KnownTraces known;
};

DeviceTrace& TraceOf(const Device* device) {
  static auto* const mu = new std::mutex;
  static auto* const traces = new std::map<const Device*, std::unique_ptr<DeviceTrace>>;
  thread_local const Device* last_device = nullptr;  // devices live as long as the process
  thread_local DeviceTrace* last = nullptr;
  if (device == last_device) return *last;
  std::lock_guard lock(*mu);
  auto& t = (*traces)[device];
  if (!t) t = std::make_unique<DeviceTrace>(*device);
  last_device = device;
  return *(last = t.get());
}

std::string NameOf(const Graph& graph) {
  const std::string n = std::to_string(graph.nodes.size());
  const Overload* const first = graph.nodes.front().call.overload;
  const bool one_op = std::ranges::all_of(
      graph.nodes, [&](const Graph::Node& node) { return node.call.overload == first; });
  return one_op ? first->name + " of " + n + " tensors"
                : "a trace of " + n + " calls, the last " + graph.nodes.back().call.overload->name;
}

// Needs t.mu. Runs the trace as one program that makes what somebody still holds.
Status FlushLocked(Device* device, DeviceTrace* t, const char* reason) {
  Ref<Graph> graph = std::move(t->graph);
  t->graph = {};
  // Only at the end: until then another thread that looks at a value must wait for t.mu.
  struct Done {
    Device* const device;
    DeviceTrace* const trace;
    ~Done() { device->has_recorded.store(bool(trace->graph), std::memory_order_release); }
  } done{device, t};
  t->cutter.Cut(std::string_view(reason) == "repeat");
  if (!graph || graph->nodes.empty()) return {};
  Count(counters.flushes);
  CountNamed(std::string("flush.") + reason);
  std::vector<int> live;
  std::vector<Ref<Value>> outputs;
  std::vector<uint64_t> key = std::move(graph->key);
  const size_t calls_end = key.size();
  for (size_t i = 0; i < graph->slots.size(); ++i) {
    const Graph::Slot& s = graph->slots[i];
    // The slot holds one reference itself.
    if (s.external || !s.value || s.value->use_count() < 2) continue;
    live.push_back(static_cast<int>(i));
    outputs.push_back(s.value);
    key.push_back(i);
  }
  // A bad index is raised even if nobody wants what it was to read.
  const auto indexes = [](const Graph::Node& n) { return n.entry->indexes; };
  if (live.empty() && std::ranges::none_of(graph->nodes, indexes)) return {};
  const auto fail = [&](const Status& s) {
    for (const Ref<Value>& o : outputs) o->Fail(s);
    return s;
  };
  const KnownTraces::Known* known = t->known.Find(key);
  if (known == nullptr) {
    Result<Ref<Recipe>> composed = graph->Compose(live);
    if (!composed.ok()) return fail(composed.status());
    KnownTraces::Known made;
    made.recipe = *composed;
    const std::string name = NameOf(*graph);
    const std::string location = graph->nodes.back().entry->location;
    auto program = RequestProgram(made.recipe->text, {name, "", location, ExplainGraph(*graph)});
    if (!program.ok()) {  // refused: nothing is lost, it may run later
      key.resize(calls_end);
      graph->key = std::move(key);
      t->graph = std::move(graph);
      return program.status();
    }
    made.program = *program;
    made.recipe->text.clear();
    for (const Graph::Node& n : graph->nodes) made.entries.push_back(n.entry);
    known = t->known.Insert(std::move(key), std::move(made));
  }
  const Recipe& r = *known->recipe;
  Ref<Value> words;
  if (r.num_words > 0) {
    auto packed = device->PackWords(graph->Words(r));
    if (!packed.ok()) return fail(packed.status());
    words = std::move(packed).value();
  }
  if (device->memory_limit.load(std::memory_order_relaxed) > 0) {
    if (const Status fits = device->CheckMemory(r.result_bytes); !fits.ok()) {
      return fail(fits.With({NameOf(*graph), "", graph->nodes.back().entry->location}));
    }
  }
  std::vector<Ref<Value>> arguments(r.params.size());
  for (size_t i = 0; i < r.params.size(); ++i) {
    if (r.params[i].kind == ParamSource::Kind::kSlot) {
      arguments[i] = graph->slots[size_t(r.params[i].slot)].value;
    }
  }
  for (const Ref<Value>& o : outputs) o->MarkPending();
  graph = {};  // lets go of what only the trace held, so that it may be donated
  return Launch(device, known->recipe, known->program, &arguments, words, outputs);
}

Status FlushDevice(Device* device, const char* reason) {
  DeviceTrace& t = TraceOf(device);
  std::lock_guard lock(t.mu);
  return FlushLocked(device, &t, reason);
}

thread_local Capture* current_capture = nullptr;
thread_local int thread_mode = -1;
std::atomic<int (*)()> mode_source{nullptr};

}  // namespace

EagerMode CurrentMode() {
  int mode = thread_mode;
  if (mode < 0) {
    if (const auto source = mode_source.load(std::memory_order_relaxed)) mode = source();
  }
  return mode < 0 ? GetFlags().eager_mode() : static_cast<EagerMode>(mode);
}

void SetModeSource(int (*mode)()) { mode_source.store(mode, std::memory_order_relaxed); }

int ExchangeThreadMode(int mode) { return std::exchange(thread_mode, mode); }

int Graph::NewSlot(Ref<Value> value) {
  const int slot = static_cast<int>(slots.size());
  slot_by_value_[value.get()] = slot;
  slots.push_back({{}, std::move(value), false});
  return slot;
}

int Graph::SlotOf(const Call& call, const TensorArg& t, const Ref<Value>& value) {
  if (value) {
    if (const auto it = slot_by_value_.find(value.get()); it != slot_by_value_.end())
      return it->second;
  }
  const int slot = static_cast<int>(slots.size());
  if (value) slot_by_value_[value.get()] = slot;
  slots.push_back({BaseOf(call, t, value.get()), value, true});
  return slot;
}

Status Graph::Append(Call* call, CallState* state, const Expected& expected, Ref<Entry>* entry,
                     std::vector<CallResult>* results) {
  results->clear();
  TPU_RETURN_IF_ERROR(BuildKey(*call, state).With({call->overload->name, "", ""}));
  TPU_ASSIGN_OR_RETURN(*entry, FindEntry(*call, *state, expected));
  if (!*entry) return {};
  const Entry& e = **entry;
  Node node;
  node.entry = *entry;
  for (const tpu::exec::Slot& s : state->slots) {
    const auto t = std::ranges::find_if(call->tensors,
                                        [&](const TensorArg& a) { return a.storage == s.storage; });
    node.slot_of.push_back(SlotOf(*call, *t, s.value));
  }
  uint64_t born = Value::NextBorn();
  const auto make = [&](const runtime::ValueTypeRef& type) {
    auto v = Ref<Value>::Make(call->device, type, Value::State::kRecorded);
    v->born = born++;
    v->trace_slot = NewSlot(v);
    return v;
  };
  for (const Entry::Written& w : e.written) {
    Ref<Value> v = make(e.recipe->outputs[size_t(w.output)].type);
    node.written.push_back(v->trace_slot);
    state->slots[size_t(w.slot)].storage->value = std::move(v);
  }
  for (size_t i = 0; i < e.results.size(); ++i) {
    const int output = e.result_outputs[i];
    Ref<Value> v = output < 0 ? Ref<Value>() : make(e.results[i].type);
    node.fresh.push_back(output < 0 ? -1 : v->trace_slot);
    results->push_back({&e.results[i], std::move(v)});
  }
  key.push_back(reinterpret_cast<uint64_t>(&e));
  for (int s : node.slot_of) key.push_back(uint64_t(s));
  node.call = *call;
  node.state.views = state->views;
  node.state.starts = state->starts;
  nodes.push_back(std::move(node));
  return {};
}

Result<Ref<Recipe>> Graph::Compose(const std::vector<int>& outputs) const {
  for (int capacity = 8;; capacity *= 2) {
    Composer composer(nodes.front().call.device, capacity);
    std::vector<int> at(slots.size(), -1);  // the composer's slot of each of ours
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].external) at[i] = composer.AddSlot(slots[i].base);
    }
    Status added;
    for (const Node& n : nodes) {
      std::vector<int> slot_of, fresh;
      for (int s : n.slot_of) slot_of.push_back(at[size_t(s)]);
      for (size_t w = 0; w < n.written.size(); ++w) {
        const auto local = size_t(n.entry->written[w].slot);
        slot_of[local] = composer.CopySlot(slot_of[local]);
        at[size_t(n.written[w])] = slot_of[local];
      }
      std::vector<ResultSpec> expected = n.entry->results;
      added = composer.Add(n.call, slot_of, &expected, &fresh);
      if (!added.ok()) break;
      for (size_t i = 0; i < n.fresh.size(); ++i) {
        if (n.fresh[i] >= 0) at[size_t(n.fresh[i])] = fresh[i];
      }
    }
    if (composer.OutOfWords() && capacity < (1 << 20)) continue;
    TPU_RETURN_IF_ERROR(added);
    std::vector<int> composer_outputs;
    for (int o : outputs) composer_outputs.push_back(at[size_t(o)]);
    TPU_ASSIGN_OR_RETURN(Ref<Recipe> recipe, composer.Finish(composer_outputs));
    // The composer's external slots were added in our order; name ours instead.
    std::vector<int> ours;
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].external) ours.push_back(static_cast<int>(i));
    }
    for (ParamSource& p : recipe->params) {
      if (p.kind == ParamSource::Kind::kSlot) p.slot = ours[size_t(p.slot)];
    }
    return recipe;
  }
}

std::vector<uint32_t> Graph::Words(const Recipe& recipe) const {
  std::vector<const Call*> calls;
  std::vector<const CallState*> states;
  for (const Node& n : nodes) {
    calls.push_back(&n.call);
    states.push_back(&n.state);
  }
  std::vector<uint32_t> words;
  ResolveWords(recipe, calls, states, &words);
  return words;
}

namespace {

// Leaves `entry` null if the key is new and nothing is expected yet.
Status TryFuse(Call* call, const Expected& expected, Ref<Entry>* entry,
               std::vector<CallResult>* results) {
  Capture* const capture = Capture::OfThisThread();
  DeviceTrace& t = TraceOf(call->device);
  const std::lock_guard lock(t.mu);
  Graph* graph = capture ? capture->graph() : t.graph.get();
  if (graph == nullptr) {
    t.graph = Ref<Graph>::Make();
    graph = t.graph.get();
  }
  CallState state;
  FindSlots(call, &state);
  thread_local std::vector<Cutter::Operand> operands;
  operands.clear();
  for (Slot& s : state.slots) {
    s.value = s.storage->Get();
    if (s.value && s.value->state() == Value::State::kFailed) return s.value->error();
    operands.push_back({s.storage, s.value ? s.value->born : 0});
  }
  // Before there is anything: who finds a recorded value must find that it can be flushed.
  if (!capture) call->device->has_recorded.store(true, std::memory_order_release);
  TPU_RETURN_IF_ERROR(graph->Append(call, &state, expected, entry, results));
  if (!*entry || capture) return {};
  if (graph->nodes.size() == 1) t.began = Clock::now();
  const char* reason = t.cutter.Add((*entry)->hash, operands, (*entry)->recipe->result_bytes);
  if (reason == nullptr && graph->nodes.size() % 16 == 0 && Clock::now() - t.began > kMaxAge) {
    reason = "age";
  }
  if (reason == nullptr) return {};
  state.slots.clear();
  return FlushLocked(call->device, &t, reason);
}

}  // namespace

Status RunFuse(Call* call, Frontend* frontend, Ref<Entry>* entry,
               std::vector<CallResult>* results) {
  [[maybe_unused]] static const bool installed = (Device::SetFlusher(&FlushDevice), true);
  return AskOnMiss(call, frontend, entry, [&](const Expected& expected) {
    return TryFuse(call, expected, entry, results);
  });
}

Capture::Capture(Device* device)
    : device_(device), graph_(Ref<Graph>::Make()), outer_(current_capture) {
  current_capture = this;
}
Capture::~Capture() { current_capture = outer_; }
Capture* Capture::OfThisThread() { return current_capture; }

}  // namespace tpu::exec
