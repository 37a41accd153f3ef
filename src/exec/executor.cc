// Strict execution: keys, entries, misses.
#include "exec/executor.h"

#include <algorithm>

#include "base/counters.h"
#include "base/flags.h"
#include "base/hash.h"
#include "exec/explain.h"

namespace tpu::exec {

using runtime::Device;
using runtime::Program;
using runtime::Value;

size_t EntryCache::KeyHash::operator()(const std::vector<uint64_t>* key) const {
  return HashWords(*key);
}

EntryCache& EntryCache::Get() {
  static EntryCache* const cache = new EntryCache;
  return *cache;
}

Ref<Entry> EntryCache::Find(const std::vector<uint64_t>& key) {
  std::lock_guard lock(mu_);
  const auto it = entries_.find(&key);
  if (it == entries_.end()) return {};
  it->second->last_used.store(++tick_, std::memory_order_relaxed);
  return it->second;
}

Ref<Entry> EntryCache::Insert(Ref<Entry> entry) {
  std::lock_guard lock(mu_);
  // Two threads may miss one key at once. The map's key lies in its entry, so that entry must stay.
  entry = entries_.try_emplace(&entry->key, entry).first->second;
  entry->last_used.store(++tick_, std::memory_order_relaxed);
  if (entries_.size() > size_t(GetFlags().program_limit()) || Program::OverLimit()) Evict();
  return entry;
}

// Drops the least recently used quarter: one sort for many evictions.
void EntryCache::Evict() {
  std::vector<std::pair<uint64_t, const std::vector<uint64_t>*>> order;
  for (const auto& [key, entry] : entries_) {
    order.emplace_back(entry->last_used.load(std::memory_order_relaxed), key);
  }
  const size_t drop = order.size() / 4;
  std::nth_element(order.begin(), order.begin() + std::ptrdiff_t(drop), order.end());
  for (size_t i = 0; i < drop; ++i) entries_.erase(order[i].second);
}

void EntryCache::Clear() {
  std::lock_guard lock(mu_);
  entries_.clear();
}

size_t EntryCache::size() {
  std::lock_guard lock(mu_);
  return entries_.size();
}

Result<Ref<Recipe>> ComposeCall(const Call& call, const CallState& state,
                                std::vector<ResultSpec>* expected, std::vector<int>* fresh,
                                std::vector<Entry::Written>* written) {
  const std::vector<ResultSpec> given = *expected;
  for (int capacity = 8;; capacity *= 2) {
    *expected = given;
    fresh->clear();
    written->clear();
    Composer composer(call.device, capacity);
    std::vector<int> slot_of;
    for (const Slot& s : state.slots) {
      const auto t = std::ranges::find_if(
          call.tensors, [&](const TensorArg& a) { return a.storage == s.storage; });
      slot_of.push_back(composer.AddSlot(BaseOf(call, *t, s.value.get())));
    }
    const Status added = composer.Add(call, slot_of, expected, fresh);
    if (composer.OutOfWords() && capacity < (1 << 20)) continue;
    TPU_RETURN_IF_ERROR(added);
    std::vector<int> outputs;
    for (size_t s = 0; s < state.slots.size(); ++s) {
      if (!composer.Written(slot_of[s])) continue;
      written->push_back({static_cast<int>(s), static_cast<int>(outputs.size())});
      outputs.push_back(slot_of[s]);
    }
    for (int& f : *fresh) {
      if (f < 0) continue;  // undefined
      outputs.push_back(f);
      f = static_cast<int>(outputs.size()) - 1;
    }
    TPU_ASSIGN_OR_RETURN(Ref<Recipe> recipe, composer.Finish(outputs));
    return recipe;
  }
}

namespace {

// Lowers one call: what every mode needs of a new key.
Result<Ref<Entry>> MakeEntry(const Call& call, const CallState& state,
                             const std::vector<ResultSpec>& expected) {
  auto entry = Ref<Entry>::Make();
  entry->key = state.key;
  entry->hash = HashWords(state.key);
  entry->location = call.location;
  entry->cause = ExplainCall(call);
  entry->results = expected;
  TPU_ASSIGN_OR_RETURN(entry->recipe, ComposeCall(call, state, &entry->results,
                                                  &entry->result_outputs, &entry->written));
  Recipe& r = *entry->recipe;
  for (const OutputSource& o : r.outputs)
    entry->indexes |= o.kind == OutputSource::Kind::kIndexRecord;
  if (entry->indexes) std::atomic_ref(call.overload->checks).store(true, std::memory_order_relaxed);
  entry->works = entry->indexes;
  for (const OutputSource& o : r.outputs) entry->works |= o.type != nullptr && o.type->numel > 0;
  return entry;
}

}  // namespace

Result<Ref<Entry>> FindEntry(const Call& call, const CallState& state, const Expected& expected) {
  if (Ref<Entry> entry = EntryCache::Get().Find(state.key)) {
    if (!expected) Count(counters.memory_hits);
    return entry;
  }
  const ops::OpDef& row = *call.overload->row;
  if (row.status == ops::StatusKind::kRefused) {
    return Unimplemented(row.name, " is not supported on tpu: ", row.note);
  }
  if (!expected) return Ref<Entry>();
  TPU_ASSIGN_OR_RETURN(Ref<Entry> entry, MakeEntry(call, state, *expected));
  return EntryCache::Get().Insert(std::move(entry));
}

namespace {

std::mutex request_mu;

// Asks for the program of an entry that other modes may have made without one.
Status EnsureProgram(Entry* entry, const Call& call) {
  if (!entry->works) return {};
  std::lock_guard lock(request_mu);
  if (entry->program) return {};
  TPU_ASSIGN_OR_RETURN(entry->program,
                       RequestProgram(entry->recipe->text, {call.overload->name, call.Describe(),
                                                            entry->location, entry->cause}));
  entry->recipe->text.clear();
  return {};
}

}  // namespace

void ResolveWords(const Recipe& recipe, std::span<const Call* const> calls,
                  std::span<const CallState* const> states, std::vector<uint32_t>* words) {
  words->clear();
  for (const WordSource& w : recipe.words) {
    const Call& call = *calls[size_t(w.call)];
    const CallState& state = *states[size_t(w.call)];
    switch (w.kind) {
      case WordSource::Kind::kNumber: {
        AppendNumberWords(call.args[size_t(w.index)].number, w.dtype, words);
        break;
      }
      case WordSource::Kind::kReadStart:
        words->push_back(static_cast<uint32_t>(
            state.starts[state.views[size_t(w.index)].read_at + uint32_t(w.k)]));
        break;
      case WordSource::Kind::kWriteStart:
        words->push_back(static_cast<uint32_t>(
            state.starts[state.views[size_t(w.index)].write_at + uint32_t(w.k)]));
        break;
      case WordSource::Kind::kSeed:
        words->push_back(static_cast<uint32_t>(call.seed));
        words->push_back(static_cast<uint32_t>(call.seed >> 32));
        words->push_back(static_cast<uint32_t>(call.seed_offset));
        words->push_back(static_cast<uint32_t>(call.seed_offset >> 32));
        break;
      case WordSource::Kind::kChecks: words->push_back(static_cast<uint32_t>(w.index)); break;
      case WordSource::Kind::kSite: words->push_back(SiteOf(call.location)); break;
    }
  }
  words->resize(recipe.num_words, 0);
}

namespace {

// Locks of the storages a call writes, taken in address order so that two threads can't deadlock.
class TargetLocks {
 public:
  explicit TargetLocks(const std::vector<Slot>& slots) {
    size_t n = 0;
    for (const Slot& s : slots) n += s.target;
    if (n == 1) {
      for (const Slot& s : slots) {
        if (s.target) one_ = std::unique_lock(s.storage->mu);
      }
    } else if (n > 1) {
      std::vector<runtime::Storage*> order;
      for (const Slot& s : slots) {
        if (s.target) order.push_back(s.storage);
      }
      std::ranges::sort(order);
      for (runtime::Storage* s : order) many_.emplace_back(s->mu);
    }
  }

 private:
  std::unique_lock<std::mutex> one_;
  std::vector<std::unique_lock<std::mutex>> many_;
};

Status RunEntry(Call* call, CallState* state, const Ref<Entry>& entry,
                std::vector<CallResult>* results) {
  const Recipe& r = *entry->recipe;
  results->clear();
  if (!entry->works) {
    for (const ResultSpec& spec : entry->results) results->push_back({&spec, {}});
    return {};
  }
  Ref<Value> words;
  if (r.num_words > 0) {
    thread_local std::vector<uint32_t> packed;
    const Call* calls[] = {call};
    const CallState* states[] = {state};
    ResolveWords(r, calls, states, &packed);
    TPU_ASSIGN_OR_RETURN(words, call->device->PackWords(packed));
  }
  if (r.result_bytes > 0 && call->device->memory_limit.load(std::memory_order_relaxed) > 0) {
    const Status fits = call->device->CheckMemory(r.result_bytes);
    if (!fits.ok()) return fits.With({call->overload->name, call->Describe(), ""});
  }
  // Kept between calls, so that a hit allocates nothing for them; emptied by the guard.
  thread_local std::vector<Ref<Value>> outputs, arguments;
  struct Empty {
    ~Empty() {
      outputs.clear();
      arguments.clear();
    }
  } empty;
  for (const OutputSource& o : r.outputs) {
    if (o.kind == OutputSource::Kind::kValue) {
      outputs.push_back(Ref<Value>::Make(call->device, o.type, Value::State::kPending));
    }
  }
  arguments.resize(r.params.size());
  // A target that this program doesn't write (running statistics in evaluation) stays as it is.
  for (Slot& s : state->slots) s.target = false;
  for (const Entry::Written& w : entry->written) state->slots[size_t(w.slot)].target = true;
  // A written storage lets go of its old contents, so that the only reference left may be donated.
  for (size_t i = 0; i < r.params.size(); ++i) {
    const ParamSource& p = r.params[i];
    if (p.kind != ParamSource::Kind::kSlot) continue;
    Slot& slot = state->slots[size_t(p.slot)];
    if (!slot.target) {
      arguments[i] = slot.value;
      continue;
    }
    slot.storage->value = {};
    arguments[i] = std::move(slot.value);
    slot.value = {};
  }
  const Status launched = Launch(call->device, entry->recipe, entry->program, &arguments,
                                 std::move(words), outputs, call);
  for (const Entry::Written& w : entry->written) {
    state->slots[size_t(w.slot)].storage->value = outputs[size_t(w.output)];
  }
  if (!launched.ok()) {
    // What a failed launch did not consume goes back to its storage.
    for (size_t i = 0; i < r.params.size(); ++i) {
      if (i >= arguments.size() || !arguments[i]) continue;
      const Slot& slot = state->slots[size_t(r.params[i].slot)];
      if (slot.target && !arguments[i]->buffer().IsDeleted()) slot.storage->value = arguments[i];
    }
    return launched.With({call->overload->name, call->Describe(), ""});
  }
  for (size_t i = 0; i < entry->results.size(); ++i) {
    const int output = entry->result_outputs[i];
    results->push_back({&entry->results[i], output < 0 ? Ref<Value>() : outputs[size_t(output)]});
  }
  return {};
}

// Leaves `entry` null if the key is new and nothing is expected yet.
Status TryStrict(Call* call, const Expected& expected, Ref<Entry>* entry,
                 std::vector<CallResult>* results) {
  thread_local CallState state;
  struct Release {  // references must not outlive the call in thread-local state
    ~Release() { state.slots.clear(); }
  } release;
  std::optional<TargetLocks> locks;
  for (bool recorded = true; recorded;) {
    locks.reset();
    // Before any lock is taken: recording holds the trace's lock while it takes storages'.
    TPU_RETURN_IF_ERROR(call->device->Flush("strict call"));
    state.Clear();
    FindSlots(call, &state);
    locks.emplace(state.slots);
    recorded = false;  // by a thread in fuse mode, since the flush
    for (Slot& s : state.slots) {
      s.value = s.target ? s.storage->value : s.storage->Get();
      if (!s.value) continue;
      if (s.value->state() == Value::State::kFailed) return s.value->error();
      recorded |= s.value->state() == Value::State::kRecorded;
    }
    if (recorded && !call->device->has_recorded.load(std::memory_order_acquire)) {
      return InvalidArgument("a tensor made while a graph was captured has no value outside of it")
          .With({call->overload->name, call->Describe(), ""});
    }
  }
  TPU_RETURN_IF_ERROR(BuildKey(*call, &state).With({call->overload->name, "", ""}));
  TPU_ASSIGN_OR_RETURN(*entry, FindEntry(*call, state, expected));
  if (!*entry) return {};
  if (!(*entry)->requested.load(std::memory_order_acquire)) {
    TPU_RETURN_IF_ERROR(EnsureProgram(entry->get(), *call));
    (*entry)->requested.store(true, std::memory_order_release);
  }
  return RunEntry(call, &state, *entry, results);
}

}  // namespace

Status RunStrict(Call* call, Frontend* frontend, Ref<Entry>* entry,
                 std::vector<CallResult>* results) {
  return AskOnMiss(call, frontend, entry, [&](const Expected& expected) {
    return TryStrict(call, expected, entry, results);
  });
}

}  // namespace tpu::exec
