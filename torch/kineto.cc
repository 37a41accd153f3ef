// The device's tracks in torch.profiler: one session of Kineto's turns on the time line of the core
// and makes activities of what it recorded.
// What it is not: a clock of the device. PJRT tells when a program's results are there, not when it
// began: it is taken to begin when it was launched, or when the one before it ended.
#include <libkineto.h>
#include <output_base.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/timeline.h"
#include "runtime/device.h"

namespace tpu::torch_layer {
namespace {

using libkineto::ActivityType;
using libkineto::GenericTraceActivity;
using timeline::Event;
using timeline::Kind;

constexpr size_t kMaxEvents = size_t{1} << 18;  // some 100 MB
constexpr auto kPatience = std::chrono::seconds(2);
// Ids of ours must not be those that PyTorch gives to operators, which count from 1.
constexpr int32_t kFirstId = 1 << 30;

// The rows of a device's track.
enum Row : int32_t { kPrograms = 0, kTransfers = 1, kCompiles = 2 };
constexpr const char* kRowNames[] = {"programs", "transfers", "compiles"};

const std::string& ProfilerName() {
  static const std::string name = "torch_tpu";
  return name;
}

libkineto::DeviceInfo Describe(int index) {
  const auto started =
      runtime::Runtime::Started() ? runtime::Runtime::Get() : Internal("not started");
  return {index, libkineto::kExceedMaxPid + index, "tpu:" + std::to_string(index),
          started.ok() ? (*started)->device(index)->info().kind : std::string()};
}

class Session final : public libkineto::IActivityProfilerSession {
 public:
  explicit Session(const std::set<ActivityType>& types)
      : device_(types.count(ActivityType::CONCURRENT_KERNEL) > 0),
        host_(types.count(ActivityType::PRIVATEUSE1_RUNTIME) > 0),
        annotations_(types.count(ActivityType::GPU_USER_ANNOTATION) > 0) {}

  // Only a profile that asks for the device pays for it.
  void start() override {
    if (device_) timeline::Start(kMaxEvents);
  }
  void stop() override {
    if (device_) recorded_ = timeline::Stop(kPatience);
  }
  std::vector<std::string> errors() override {
    if (recorded_.dropped == 0) return {};
    return {std::to_string(recorded_.dropped) + " events of tpu were dropped, the oldest first"};
  }

  void pushCorrelationId(uint64_t id) override {
    if (!timeline::Recording()) return;
    timeline::PushOperator(id, torch::autograd::get_current_graph_task_id() != -1);
  }
  void popCorrelationId() override { timeline::PopOperator(); }
  void pushUserCorrelationId(uint64_t id) override {
    if (timeline::Recording()) timeline::PushAnnotation(id);
  }
  void popUserCorrelationId() override {
    if (device_) timeline::PopAnnotation();
  }

  void processTrace(libkineto::ActivityLogger& logger) override {
    processTrace(logger, {}, 0, std::numeric_limits<int64_t>::max());
  }
  void processTrace(libkineto::ActivityLogger& logger, libkineto::getLinkedActivityCallback linked,
                    int64_t start, int64_t end) override;
  // The first device's. Without one Kineto names the tracks itself.
  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override {
    if (!device_) return {};
    return std::make_unique<libkineto::DeviceInfo>(Describe(0));
  }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override { return {}; }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override {
    return std::move(activities_);
  }

 private:
  GenericTraceActivity* NewActivity(ActivityType type, const std::string& name, int64_t start,
                                    int64_t end);
  void AddEvent(const Event& e, int64_t window_end);
  void AddLaunch(const Event& e, int64_t finished);
  void Place(GenericTraceActivity* a, int device, Row row);
  void PlaceOnThread(GenericTraceActivity* a, int64_t thread);
  void Link(GenericTraceActivity* a, const Event& e, bool to_operator);
  void Annotate(const GenericTraceActivity& a, const Event& e);
  void DescribeTracks(libkineto::ActivityLogger& logger, int64_t time);

  const bool device_, host_, annotations_;
  timeline::Recorded recorded_;
  std::unique_ptr<libkineto::CpuTraceBuffer> activities_;
  libkineto::getLinkedActivityCallback linked_;
  int32_t next_id_ = kFirstId;
  std::map<int, int64_t> busy_until_;   // each device
  std::set<std::pair<int, Row>> rows_;  // that have something
  std::map<std::tuple<int, int32_t, uint64_t>, GenericTraceActivity*> spans_;  // of annotations
};

GenericTraceActivity* Session::NewActivity(ActivityType type, const std::string& name,
                                           int64_t start, int64_t end) {
  activities_->emplace_activity(activities_->span, type, name);
  GenericTraceActivity* const a = activities_->activities.back().get();
  a->startTime = start;
  a->endTime = std::max(end, start + 1);  // shorter than the clock's tick is not nothing
  a->id = next_id_++;
  return a;
}

void Session::Place(GenericTraceActivity* a, int device, Row row) {
  a->device = std::max(device, 0);  // a compile is for all of them
  a->resource = row;
  rows_.insert({a->device, row});
  rows_.insert({a->device, kPrograms});
}

void Session::PlaceOnThread(GenericTraceActivity* a, int64_t thread) {
  a->device = libkineto::processId();
  a->resource = static_cast<int32_t>(thread);
  a->threadId = a->resource;
}

// A time that belongs to the operator is linked to it; PyTorch then counts it there. Work of
// another thread is only named.
void Session::Link(GenericTraceActivity* a, const Event& e, bool to_operator) {
  if (e.cause.op == 0) return;
  const auto* const op = linked_ ? linked_(static_cast<int32_t>(e.cause.op)) : nullptr;
  if (op == nullptr) return;
  if (to_operator) {
    a->linked = op;
  } else {
    a->addMetadataQuoted("operator", op->name());
  }
}

// The annotations of the user's around a piece of the device's work reach from its first such piece
// to its last, in the same row.
void Session::Annotate(const GenericTraceActivity& a, const Event& e) {
  if (!annotations_ || !linked_) return;
  for (const uint64_t id : e.cause.annotations) {
    GenericTraceActivity*& span = spans_[{a.device, a.resource, id}];
    if (span == nullptr) {
      const auto* const annotation = linked_(static_cast<int32_t>(id));
      if (annotation == nullptr) continue;
      span = NewActivity(ActivityType::GPU_USER_ANNOTATION, annotation->name(), a.startTime,
                         a.endTime);
      span->device = a.device;
      span->resource = a.resource;
      span->id = static_cast<int32_t>(id);
    }
    span->startTime = std::min(span->startTime, a.startTime);
    span->endTime = std::max(span->endTime, a.endTime);
  }
}

void Session::AddLaunch(const Event& e, int64_t finished) {
  // Programs of a device run in order. One that was done before an earlier one overtook it.
  int64_t& busy = busy_until_[e.device];
  const int64_t start = busy < finished ? std::max(e.start_ns, busy) : e.start_ns;
  busy = std::max(busy, finished);
  GenericTraceActivity* const on_device =
      NewActivity(ActivityType::CONCURRENT_KERNEL, e.name, start, finished);
  Place(on_device, e.device, kPrograms);
  Link(on_device, e, true);
  if (!e.detail.empty()) on_device->addMetadataQuoted("operands", e.detail);
  if (host_) {
    GenericTraceActivity* const call =
        NewActivity(ActivityType::PRIVATEUSE1_RUNTIME, "launch", e.start_ns, e.end_ns);
    PlaceOnThread(call, e.thread);
    Link(call, e, !e.queued);
    call->flow.id = on_device->flow.id = static_cast<uint32_t>(on_device->id);
    call->flow.type = on_device->flow.type = libkineto::kLinkAsyncCpuGpu;
    call->flow.start = 1;
  }
  Annotate(*on_device, e);
}

void Session::AddEvent(const Event& e, int64_t window_end) {
  GenericTraceActivity* a = nullptr;
  switch (e.kind) {
    case Kind::kLaunch:
      AddLaunch(e, e.finished_ns != 0 ? std::min(e.finished_ns, window_end)
                                      : std::min(e.end_ns, window_end));
      return;
    case Kind::kUpload:
    case Kind::kRead:
      a = NewActivity(ActivityType::GPU_MEMCPY,
                      e.kind == Kind::kUpload ? "Memcpy HtoD" : "Memcpy DtoH", e.start_ns,
                      e.end_ns);
      Place(a, e.device, kTransfers);
      Link(a, e, true);
      a->addMetadata("bytes", e.bytes);
      break;
    case Kind::kCompile:
    case Kind::kLoad:
      if (!host_) return;
      a = NewActivity(ActivityType::PRIVATEUSE1_RUNTIME,
                      (e.kind == Kind::kCompile ? "compile " : "load ") + e.name, e.start_ns,
                      e.end_ns);
      Place(a, e.device, kCompiles);
      Link(a, e, false);
      return;
    case Kind::kWait:
      if (!host_) return;
      a = NewActivity(ActivityType::PRIVATEUSE1_RUNTIME, e.name, e.start_ns, e.end_ns);
      PlaceOnThread(a, e.thread);
      Link(a, e, true);
      return;
  }
  Annotate(*a, e);
}

void Session::DescribeTracks(libkineto::ActivityLogger& logger, int64_t time) {
  std::set<int> devices;
  for (const auto& [device, row] : rows_) {
    if (device != 0 && devices.insert(device).second) {
      logger.handleDeviceInfo(Describe(device), time);
    }
    logger.handleResourceInfo({row, row, device, kRowNames[row]}, time);
  }
}

void Session::processTrace(libkineto::ActivityLogger& logger,
                           libkineto::getLinkedActivityCallback linked, int64_t start,
                           int64_t end) {
  if (!device_) return;
  linked_ = std::move(linked);
  activities_ = std::make_unique<libkineto::CpuTraceBuffer>();
  activities_->span = libkineto::TraceSpan(start, end, ProfilerName());
  activities_->gpuOpCount = -1;
  // A thread's events are recorded as they end, a launch as it is made.
  std::ranges::stable_sort(recorded_.events, {}, &Event::start_ns);
  for (const Event& e : recorded_.events) {
    if (e.start_ns >= start && e.start_ns <= end) AddEvent(e, end);
  }
  for (const auto& a : activities_->activities) a->log(logger);
  DescribeTracks(logger, start);
}

class Profiler final : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override { return ProfilerName(); }
  const std::set<ActivityType>& availableActivities() const override {
    static const std::set<ActivityType> types = {
        ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY,
        ActivityType::GPU_USER_ANNOTATION, ActivityType::PRIVATEUSE1_RUNTIME};
    return types;
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      const std::set<ActivityType>& types, const libkineto::Config&) override {
    return std::make_unique<Session>(types);
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      int64_t, int64_t, const std::set<ActivityType>& types,
      const libkineto::Config& config) override {
    return configure(types, config);
  }
};

REGISTER_PRIVATEUSE1_PROFILER(Profiler);

}  // namespace
}  // namespace tpu::torch_layer
