// Device: capabilities, memory counts, the queue that keeps the order of calls, packed scalar
// arguments, the index-error record. Runtime: the process's plugin, client and devices.
// What it is not: a cache of programs by call (src/exec), nor a compiler.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "pjrt/pjrt.h"
#include "runtime/program.h"
#include "runtime/storage.h"
#include "runtime/value.h"

namespace tpu::runtime {

// What a device can do; asked here, never guessed from a platform's name. Each can be forced off by
// the flag disable_capabilities, which the tests use.
struct Capabilities {
  bool linear_layout = false;   // buffers are plain row-major bytes: equal sizes interchange
  bool host_readable = false;   // the opaque pointer can be read by the host
  bool inline_execute = false;  // small programs run on the calling thread
  bool native_64bit = true;     // f64, i64 and c128 are no emulation
  int programs_in_flight = 32;
};

// Process topology, read from the environment before the plugin's client exists.
struct ProcessTopology {
  int rank = 0, local_rank = 0, world_size = 1;
  static ProcessTopology FromEnvironment();
};

struct MemoryCounts {  // bytes and numbers of live values, as the device stores them
  std::atomic<int64_t> current{0}, peak{0}, allocated{0}, freed{0};
  std::atomic<int64_t> live{0}, live_peak{0}, num_allocs{0}, num_frees{0}, num_ooms{0};
  void Add(int64_t bytes);
  void Sub(int64_t bytes);
};

// Every value of a device that exists. A reference kept for synchronising would forbid donation, so
// the values themselves are listed.
class LiveValues {
 public:
  void Add(Value* v);
  void Remove(Value* v);
  std::vector<pjrt::Event> PendingEvents();
  // Of a value that gives its memory away; not while PendingEvents looks at it.
  pjrt::Buffer TakeBuffer(Value* v);

 private:
  std::mutex mu_;
  Value* head_ = nullptr;
};

class Device {
 public:
  Device(int index, pjrt::Client* client, Capabilities capabilities);
  ~Device();

  int index() const { return index_; }
  PJRT_Device* handle() const { return handle_; }
  pjrt::Client* client() const { return client_; }
  const Capabilities& capabilities() const { return capabilities_; }
  const pjrt::DeviceInfo& info() const;

  MemoryCounts memory;
  std::atomic<int64_t> memory_limit{0};  // 0: none
  std::atomic<int64_t> queued_bytes{0};  // of results of queued launches: not yet in `memory`
  // kResourceExhausted if `bytes` more would pass the limit, after dropping what can be dropped.
  Status CheckMemory(int64_t bytes);
  int64_t TotalMemory() const;  // the limit, else what the plugin or the host tells

  // --- Order. A call may run on its own thread only while nothing is queued before it.
  bool QueueEmpty() const { return queued_.load(std::memory_order_acquire) == 0; }
  // Runs `task` after all tasks queued before, on the device's drainer thread.
  void Enqueue(std::function<void()> task);
  // Blocks until every task queued so far has run and the device has finished what it was given;
  // then reports (once) the first error kept since the last report: a failed task or a bad index.
  Status Synchronize();
  // Runs what executors have recorded and not run yet, naming the reason. Called wherever the host
  // is about to look at values or order. exec sets the function; before that nothing is ever
  // recorded.
  using Flusher = Status (*)(Device*, const char* reason);
  static void SetFlusher(Flusher flush);
  std::atomic<bool> has_recorded{false};  // set by the flusher's owner
  Status Flush(const char* reason);
  // Keeps an error to be raised at the next synchronisation.
  void KeepError(Status error);
  LiveValues& live() { return live_; }

  // --- Packed run-time words. The buffer stays valid as long as the returned reference.
  Result<Ref<Value>> PackWords(std::span<const uint32_t> words);

  // --- Index errors. A program that indexes takes this record (i32[8]) and returns it.
  // Its words are exec's; the first says whether the rest is set.
  static constexpr int kIndexRecordWords = 8;
  std::mutex index_mu;                   // held from taking the record to putting the new one
  Ref<Value> index_record;               // null: clean
  std::atomic<bool> index_dirty{false};  // a program wrote it since the last check
  // Reads the record if it may hold something; resets it. `describe` turns it into an error.
  Status CheckIndexRecord();
  using IndexDescriber = std::function<Status(const std::array<int32_t, kIndexRecordWords>&)>;
  static void SetIndexDescriber(IndexDescriber describe);

  // --- Transfers.
  // Copies `bytes` of host memory into a new value. Returns when the source may change.
  Result<Ref<Value>> Upload(const void* data, ValueTypeRef type);
  // Blocks until `value` can be read; then gives its bytes: in place where host_readable (valid
  // while `value` lives), else in `staging`.
  Result<const void*> HostBytes(const Value& value, std::vector<char>* staging);

  void DropCaches();

 private:
  void Drain();

  const int index_;
  pjrt::Client* const client_;
  PJRT_Device* const handle_;
  const Capabilities capabilities_;

  std::atomic<int64_t> queued_{0};
  std::mutex queue_mu_;
  std::condition_variable queue_wake_;
  std::deque<std::function<void()>> queue_;
  std::thread drainer_;
  bool stop_ = false;

  std::mutex error_mu_;
  Status kept_error_;
  LiveValues live_;

  struct Pack {
    uint64_t hash;
    std::vector<uint32_t> words;
    Ref<Value> value;
  };
  std::mutex pack_mu_;
  std::list<Pack> pack_order_;  // most recent first
  std::unordered_multimap<uint64_t, std::list<Pack>::iterator> packs_;
};

// The process's runtime. Started by the first use of a device; questions of availability and count
// don't start it.
class Runtime {
 public:
  // Starts it if need be. Fails with the reason, each time it is asked until it succeeds.
  static Result<Runtime*> Get();
  static bool Started();
  // Where plugin packages may lie (site-packages folders). Set by the language front before Get.
  static void SetSearchDirs(std::vector<std::string> dirs);
  // How many devices there would be, without starting anything. 0 if there is no plugin.
  static int DeviceCount();
  // After a fork the child has no device threads: every Get fails from then on.
  static bool InForkedChild();
  // Waits for the devices and stops their threads. Called at exit by the language front.
  static void Shutdown();
  // Called once with the line that says which plugin runs.
  static void SetStartMessage(std::function<void(const std::string&)> show);

  pjrt::Client& client() { return *client_; }
  pjrt::Plugin& plugin() { return *client_->plugin(); }
  ProgramStore& programs() { return *programs_; }
  int num_devices() const { return static_cast<int>(devices_.size()); }
  Device* device(int i) const { return devices_[static_cast<size_t>(i)].get(); }
  const std::string& reason() const { return reason_; }  // why this plugin was chosen
  bool is_tpu() const { return is_tpu_; }
  // The options every eager compile gets: XLA debug options that this plugin knows.
  const pjrt::CompileOptions& eager_options() const { return eager_options_; }

 private:
  static Result<std::unique_ptr<Runtime>> Start();
  std::unique_ptr<pjrt::Client> client_;
  std::unique_ptr<ProgramStore> programs_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::string reason_;
  bool is_tpu_ = false;
  pjrt::CompileOptions eager_options_;
};

}  // namespace tpu::runtime
