// Launch: one execution of a program, on the calling thread or from the device's queue.
#include <array>

#include "base/counters.h"
#include "base/timeline.h"
#include "exec/executor.h"

namespace tpu::exec {
namespace {

using runtime::Device;
using runtime::Program;
using runtime::Value;

// Pointers for one execution; on the stack for all but very wide programs.
template <class T>
class Array {
 public:
  explicit Array(size_t n) : size_(n) {
    if (n > inline_.size()) heap_.resize(n);
  }
  T* data() { return size_ > inline_.size() ? heap_.data() : inline_.data(); }
  T& operator[](size_t i) { return data()[i]; }
  std::span<T> span() { return {data(), size_}; }

 private:
  size_t size_;
  std::array<T, 24> inline_{};
  std::vector<T> heap_;
};

Result<Ref<Value>> CleanIndexRecord(Device* device) {
  static const int32_t kZeros[Device::kIndexRecordWords] = {};
  static const runtime::ValueTypeRef type =
      runtime::MakeValueType(DType::kI32, {Device::kIndexRecordWords});
  return device->Upload(kZeros, type);
}

using Note = std::shared_ptr<timeline::Event>;

// What a time line will say of a launch. Null while nobody records.
Note NoteLaunch(const Device* device, const Program& program, const Call* call) {
  if (!timeline::Recording()) return {};
  auto note = std::make_shared<timeline::Event>();
  note->device = device->index();
  note->name = call != nullptr ? call->overload->name : program.label();
  if (call != nullptr) note->detail = call->Describe();
  note->cause = timeline::CurrentCause();
  return note;
}

// The launch is over when `result`, one of its results, is there.
void Record(const Note& note, const pjrt::Buffer& result) {
  auto ready = result.ReadyEvent();
  if (!ready.ok()) return void(timeline::Add(*note));
  const uint64_t ticket = timeline::AddUnfinished(*note);
  const auto event = std::make_shared<pjrt::Event>(std::move(ready).value());
  event->OnReady([event, ticket](const Status&) { timeline::Finish(ticket); });
}

// All arguments are produced; nothing is queued before.
Status LaunchNow(Device* device, const Recipe& recipe, const Program& program,
                 const std::vector<Ref<Value>>& arguments, const Ref<Value>& words,
                 const std::vector<Ref<Value>>& outputs, const Note& note) {
  if (!program.error().ok()) return program.error();
  std::unique_lock<std::mutex> index_lock(device->index_mu, std::defer_lock);
  Array<PJRT_Buffer*> in(recipe.params.size()), out(recipe.outputs.size());
  Array<int64_t> keep(recipe.params.size());
  size_t kept = 0, donated = 0;
  for (size_t i = 0; i < recipe.params.size(); ++i) {
    const ParamSource& p = recipe.params[i];
    switch (p.kind) {
      case ParamSource::Kind::kSlot: {
        const Value& v = *arguments[i];
        if (v.state() == Value::State::kFailed) return v.error();
        if (!v.buffer().valid()) return Internal("an argument's buffer is gone");
        in[i] = v.buffer().get();
        if (p.donates) {
          v.use_count() > 1 ? void(keep[kept++] = static_cast<int64_t>(i)) : void(++donated);
        }
        break;
      }
      case ParamSource::Kind::kWords: in[i] = words->buffer().get(); break;
      case ParamSource::Kind::kIndexRecord:
        index_lock.lock();
        if (!device->index_record) {
          TPU_ASSIGN_OR_RETURN(device->index_record, CleanIndexRecord(device));
        }
        in[i] = device->index_record->buffer().get();
        break;
    }
  }
  pjrt::ExecuteArgs args;
  args.arguments = in.span();
  args.results = out.span();
  args.non_donatable = {keep.data(), kept};
  args.device = device->handle();
  if (note) note->start_ns = timeline::Now();
  const Status executed = program.executable().Execute(args);
  if (executed.code() == Code::kResourceExhausted) ++device->memory.num_ooms;
  TPU_RETURN_IF_ERROR(executed);
  Count(counters.launches);
  if (note) {
    note->end_ns = timeline::Now();
    note->thread = timeline::ThisThread();
  }
  if (donated > 0) {
    Count(counters.donations, static_cast<int64_t>(donated));
    for (size_t i = 0; i < recipe.params.size(); ++i) {
      if (recipe.params[i].donates && arguments[i]->use_count() == 1) arguments[i]->MarkDonated();
    }
  }
  const PJRT_Api* api = device->client()->api();
  // The record first: whoever is woken by a value must find what its program said of indices.
  for (size_t i = 0; i < recipe.outputs.size(); ++i) {
    if (recipe.outputs[i].kind != OutputSource::Kind::kIndexRecord) continue;
    device->index_record->MarkDonated();
    device->index_record =
        Ref<Value>::Make(device, device->index_record->type_ref(), Value::State::kPending);
    device->index_record->Fulfill(pjrt::Buffer(api, out[i]));
    device->index_dirty.store(true, std::memory_order_release);
  }
  size_t at = 0;
  for (size_t i = 0; i < recipe.outputs.size(); ++i) {
    if (recipe.outputs[i].kind != OutputSource::Kind::kValue) continue;
    pjrt::Buffer buffer(api, out[i]);
    if (note && at == 0) Record(note, buffer);
    outputs[at++]->Fulfill(std::move(buffer));
  }
  if (note && at == 0) timeline::Add(*note);
  return {};
}

}  // namespace

Status Launch(Device* device, const Ref<Recipe>& recipe, const Ref<Program>& program,
              std::vector<Ref<Value>>* arguments, Ref<Value> words,
              const std::vector<Ref<Value>>& outputs, const Call* call) {
  const Note note = NoteLaunch(device, *program, call);
  bool ready = program->done() && device->QueueEmpty();
  for (size_t i = 0; ready && i < arguments->size(); ++i) {
    ready = !(*arguments)[i] || (*arguments)[i]->state() != Value::State::kPending;
  }
  if (ready) {
    const Status s = LaunchNow(device, *recipe, *program, *arguments, words, outputs, note);
    if (!s.ok()) {
      for (const Ref<Value>& o : outputs) o->Fail(s);
    }
    return s;
  }
  if (note) note->queued = true;
  Count(counters.queued_launches);
  Count(counters.thread_handoffs);
  device->queued_bytes.fetch_add(recipe->result_bytes, std::memory_order_relaxed);
  device->Enqueue([device, recipe, program, args = std::move(*arguments), words = std::move(words),
                   outputs, note]() mutable {
    Status s = program->Wait();
    for (const Ref<Value>& a : args) {
      if (s.ok() && a) s = a->WaitProduced();
    }
    device->queued_bytes.fetch_sub(recipe->result_bytes, std::memory_order_relaxed);
    if (s.ok()) {
      s = LaunchNow(device, *recipe, *program, args, words, outputs, note)
              .With({program->label(), "", ""});
    }
    if (s.ok()) return;
    for (const Ref<Value>& o : outputs) o->Fail(s);
    device->KeepError(s);
  });
  arguments->clear();
  return {};
}

}  // namespace tpu::exec
