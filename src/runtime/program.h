// Program: one compiled (or compiling, or failed) executable. ProgramStore: from StableHLO text to
// programs, through the disk cache and a pool of compile threads.
// What it is not: the cache by structural key; that is src/exec's, which holds Programs.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/ref.h"
#include "base/status.h"
#include "base/timeline.h"
#include "pjrt/pjrt.h"
#include "runtime/disk_cache.h"

namespace tpu::runtime {

// Where a program came from.
enum class ProgramSource : uint8_t {
  kMemory,  // one of equal text was there
  kDisk,
  kCompiled,  // or compiling
  kRefused,   // it would have to be compiled, which the request doesn't allow
};

class Program : public RefCounted {
 public:
  // True once compiled or failed.
  bool done() const { return done_.load(std::memory_order_acquire); }
  // Blocks until done (see runtime/wait.h for what interrupts it); the compile's error if it
  // failed.
  Status Wait() const;
  const pjrt::LoadedExecutable& executable() const { return executable_; }  // after a good Wait
  const Status& error() const { return error_; }                            // after done
  const std::string& text() const { return text_; }
  const std::string& label() const { return label_; }  // of the first call that asked for it
  // Nanoseconds in the compiler; 0 until then. Outlives the program.
  std::shared_ptr<const std::atomic<int64_t>> compile_ns() const { return compile_ns_; }
  ~Program() { TotalBytes() -= bytes_; }
  // Of all programs in memory, as serialized: what `program_bytes_limit` bounds.
  static std::atomic<int64_t>& TotalBytes();
  static bool OverLimit();

 private:
  friend class ProgramStore;
  void SetBytes(size_t bytes);
  int64_t bytes_ = 0;
  const std::shared_ptr<std::atomic<int64_t>> compile_ns_ =
      std::make_shared<std::atomic<int64_t>>(0);
  std::string text_;
  std::string label_;  // op name and shapes, for progress and errors
  std::atomic<bool> done_{false};
  pjrt::LoadedExecutable executable_;
  Status error_;
};

struct ProgramRequest {
  std::string text;
  std::string label;
  pjrt::CompileOptions options;
  bool may_compile = true;
};

class ProgramStore {
 public:
  ProgramStore(pjrt::Client* client, std::string key_prefix, std::unique_ptr<DiskCache> disk,
               int threads);
  ~ProgramStore();

  // Returns at once; the compile (or load from disk) goes to the pool. A program found on disk is
  // loaded on the calling thread (0.8 ms), since the caller would only wait for it. Null only if
  // the request may not compile.
  Ref<Program> Request(ProgramRequest request, ProgramSource* source = nullptr);
  DiskCache* disk() const { return disk_.get(); }
  void Clear();  // drops programs that nobody holds
  size_t size();

 private:
  void Work();
  void DropUnused();  // mu_ is held

  struct Job {
    Ref<Program> program;
    pjrt::CompileOptions options;
    std::string key;
    timeline::Cause cause;
  };
  void Compile(const Job& job);
  pjrt::Client* const client_;
  const std::string key_prefix_;
  const std::unique_ptr<DiskCache> disk_;
  std::mutex mu_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  std::unordered_map<std::string, Ref<Program>> by_text_;  // prefix, options and text
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tpu::runtime
