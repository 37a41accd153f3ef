// Device: the queue, memory, packed words, transfers, index records.
#include "runtime/device.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/counters.h"
#include "base/flags.h"
#include "base/hash.h"
#include "base/timeline.h"
#include "runtime/wait.h"

namespace tpu::runtime {
namespace {

constexpr size_t kMaxPacks = 4096;
std::mutex describer_mu;
Device::IndexDescriber* describer = nullptr;  // never freed: asked at exit too

void Raise(std::atomic<int64_t>& peak, int64_t to) {
  int64_t seen = peak.load(std::memory_order_relaxed);
  while (to > seen && !peak.compare_exchange_weak(seen, to, std::memory_order_relaxed)) {
  }
}

}  // namespace

void MemoryCounts::Add(int64_t bytes) {
  Raise(peak, current.fetch_add(bytes, std::memory_order_relaxed) + bytes);
  Raise(live_peak, live.fetch_add(1, std::memory_order_relaxed) + 1);
  allocated.fetch_add(bytes, std::memory_order_relaxed);
  num_allocs.fetch_add(1, std::memory_order_relaxed);
}

void MemoryCounts::Sub(int64_t bytes) {
  current.fetch_sub(bytes, std::memory_order_relaxed);
  live.fetch_sub(1, std::memory_order_relaxed);
  freed.fetch_add(bytes, std::memory_order_relaxed);
  num_frees.fetch_add(1, std::memory_order_relaxed);
}

Device::Device(int index, pjrt::Client* client, Capabilities capabilities)
    : index_(index), client_(client), handle_(client->device(index)), capabilities_(capabilities) {
  memory_limit = GetFlags().memory_limit();
}

Device::~Device() {
  {
    std::lock_guard lock(queue_mu_);
    stop_ = true;
  }
  queue_wake_.notify_all();
  if (drainer_.joinable()) drainer_.join();
}

const pjrt::DeviceInfo& Device::info() const { return client_->device_info(index_); }

Status Device::CheckMemory(int64_t bytes) {
  const int64_t limit = memory_limit.load(std::memory_order_relaxed);
  if (limit <= 0) return {};
  const int64_t taken =
      memory.current.load(std::memory_order_relaxed) + queued_bytes.load(std::memory_order_relaxed);
  if (taken + bytes <= limit) return {};
  DropCaches();
  WaitUntilUninterrupted([this] { return QueueEmpty(); });
  const int64_t current = memory.current.load(std::memory_order_relaxed);
  if (current + bytes <= limit) return {};
  memory.num_ooms.fetch_add(1, std::memory_order_relaxed);
  return ResourceExhausted("tpu:", index_, " out of memory: tried to allocate ", bytes, " bytes; ",
                           current, " of ", limit, " bytes are in use");
}

int64_t Device::TotalMemory() const {
  if (const int64_t limit = memory_limit.load(std::memory_order_relaxed); limit > 0) return limit;
  if (auto stats = client_->DeviceMemoryStats(index_); stats.ok() && stats->limit > 0) {
    return stats->limit;
  }
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
}

void Device::Enqueue(std::function<void()> task) {
  std::lock_guard lock(queue_mu_);
  queued_.fetch_add(1, std::memory_order_acq_rel);
  queue_.push_back(std::move(task));
  if (!drainer_.joinable()) drainer_ = std::thread([this] { Drain(); });
  queue_wake_.notify_one();
}

void Device::Drain() {
  MarkOwnThread();
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(queue_mu_);
      queue_wake_.wait(lock, [this] { return stop_ || !queue_.empty(); });
      if (queue_.empty()) return;  // stopped, and nothing is owed
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    task();
    task = nullptr;  // what it held must be free before the queue counts as empty
    queued_.fetch_sub(1, std::memory_order_acq_rel);
    NotifyWaiters();
  }
}

Status Device::Synchronize() {
  const timeline::Span span(timeline::Kind::kWait, index_, "synchronize");
  TPU_RETURN_IF_ERROR(Flush("synchronize"));
  TPU_RETURN_IF_ERROR(WaitUntil([this] { return QueueEmpty(); }, "waiting for tpu"));
  Status first;
  for (pjrt::Event& e : live_.PendingEvents()) {
    const Status s = e.Await();
    if (first.ok()) first = s;
  }
  {
    std::lock_guard lock(error_mu_);
    if (!kept_error_.ok()) first = std::exchange(kept_error_, {});
  }
  const Status index = CheckIndexRecord();
  return first.ok() ? index : first;
}

namespace {
std::atomic<Device::Flusher> flusher{nullptr};
}  // namespace

void Device::SetFlusher(Flusher flush) { flusher.store(flush, std::memory_order_release); }

Status Device::Flush(const char* reason) {
  if (!has_recorded.load(std::memory_order_acquire)) return {};
  const Flusher flush = flusher.load(std::memory_order_acquire);
  return flush ? flush(this, reason) : Status();
}

void Device::KeepError(Status error) {
  std::lock_guard lock(error_mu_);
  if (kept_error_.ok()) kept_error_ = std::move(error);
}

Result<Ref<Value>> Device::PackWords(std::span<const uint32_t> words) {
  const uint64_t hash =
      HashBytes({reinterpret_cast<const char*>(words.data()), words.size_bytes()});
  std::lock_guard lock(pack_mu_);
  const auto [begin, end] = packs_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (std::ranges::equal(it->second->words, words)) {
      Count(counters.pack_hits);
      pack_order_.splice(pack_order_.begin(), pack_order_, it->second);
      return it->second->value;
    }
  }
  Count(counters.pack_uploads);
  Pack pack{hash, {words.begin(), words.end()}, {}};
  auto buffer =
      client_->FromHost(pack.words.data(), DType::kU32, Dims{static_cast<int64_t>(words.size())},
                        {}, pjrt::HostBufferSemantics::kImmutableOnlyDuringCall, handle_, nullptr);
  if (!buffer.ok()) return buffer.status();
  pack.value =
      Ref<Value>::Make(this, MakeValueType(DType::kU32, {static_cast<int64_t>(words.size())}),
                       Value::State::kPending);
  pack.value->Fulfill(std::move(buffer).value());
  const Ref<Value> value = pack.value;
  pack_order_.push_front(std::move(pack));
  packs_.emplace(hash, pack_order_.begin());
  if (pack_order_.size() > kMaxPacks) {
    const auto last = std::prev(pack_order_.end());
    const auto [b, e] = packs_.equal_range(last->hash);
    for (auto it = b; it != e; ++it) {
      if (it->second == last) {
        packs_.erase(it);
        break;
      }
    }
    pack_order_.pop_back();
  }
  return value;
}

void Device::SetIndexDescriber(IndexDescriber describe) {
  std::lock_guard lock(describer_mu);
  describer = new IndexDescriber(std::move(describe));
}

Status Device::CheckIndexRecord() {
  if (!index_dirty.load(std::memory_order_acquire)) return {};
  std::array<int32_t, kIndexRecordWords> words{};
  {
    std::lock_guard lock(index_mu);
    if (!index_record) return {};
    std::vector<char> staging;
    TPU_ASSIGN_OR_RETURN(const void* const bytes, HostBytes(*index_record, &staging));
    std::memcpy(words.data(), bytes, sizeof words);
    index_dirty.store(false, std::memory_order_release);
    if (words[0] != 0) index_record = {};
  }
  if (words[0] == 0) return {};
  std::lock_guard lock(describer_mu);
  return describer ? (*describer)(words) : OutOfRange("an index was out of range");
}

Result<Ref<Value>> Device::Upload(const void* data, ValueTypeRef type) {
  TPU_RETURN_IF_ERROR(CheckMemory(type->bytes));
  Count(counters.uploads);
  Count(counters.upload_bytes, type->bytes);
  const timeline::Span span(timeline::Kind::kUpload, index_, "upload", type->bytes);
  TPU_ASSIGN_OR_RETURN(
      pjrt::Buffer buffer,
      client_->FromHost(data, type->dtype, type->dims, {},
                        pjrt::HostBufferSemantics::kImmutableOnlyDuringCall, handle_, nullptr));
  auto value = Ref<Value>::Make(this, std::move(type), Value::State::kPending);
  value->Fulfill(std::move(buffer));
  return value;
}

Result<const void*> Device::HostBytes(const Value& value, std::vector<char>* staging) {
  if (value.state() == Value::State::kRecorded) TPU_RETURN_IF_ERROR(Flush("host read"));
  TPU_RETURN_IF_ERROR(value.WaitReady());
  Count(counters.host_reads);
  Count(counters.read_bytes, value.type().bytes);
  const timeline::Span span(timeline::Kind::kRead, index_, "read", value.type().bytes);
  if (capabilities_.host_readable) return value.buffer().HostPointer();
  staging->resize(static_cast<size_t>(value.type().bytes));
  TPU_ASSIGN_OR_RETURN(const pjrt::Event done,
                       value.buffer().ToHost(staging->data(), staging->size()));
  TPU_RETURN_IF_ERROR(done.Await());
  return static_cast<const void*>(staging->data());
}

void Device::DropCaches() {
  std::list<Pack> dropped;
  std::lock_guard lock(pack_mu_);
  packs_.clear();
  dropped.swap(pack_order_);
}

}  // namespace tpu::runtime
