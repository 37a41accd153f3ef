// ProgramStore: compile threads, the disk cache in front of them, and programs of equal text
// shared.
#include "runtime/program.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/counters.h"
#include "base/flags.h"
#include "base/timeline.h"
#include "runtime/wait.h"

namespace tpu::runtime {

namespace {

// One file for each call with a new key, whether or not another call had the same text:
// DIR/<process>-<number>-<operator>.mlir. A dump that can't be written costs no result; the
// counters show it.
void Dump(const ProgramRequest& request, const std::string& dir) {
  static std::atomic<int> number{0};
  std::string name = std::to_string(++number);
  name.insert(0, 6 - std::min<size_t>(6, name.size()), '0');
  name = std::to_string(getpid()) + "-" + name + "-";
  for (const char c : request.label.substr(0, request.label.find(' '))) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
    if (plain || name.back() != '-') name += plain ? c : '-';
  }
  std::error_code ignored;
  std::filesystem::create_directories(dir, ignored);
  std::ofstream file(dir + "/" + name + ".mlir");
  file << "// " << request.label << "\n" << request.text;
  if (!file.flush()) Count(counters.disk_errors);
}

}  // namespace

std::atomic<int64_t>& Program::TotalBytes() {
  static std::atomic<int64_t> bytes{0};
  return bytes;
}

bool Program::OverLimit() { return TotalBytes() > GetFlags().program_bytes_limit(); }

void Program::SetBytes(size_t bytes) {
  bytes_ = static_cast<int64_t>(bytes);
  TotalBytes() += bytes_;
}

Status Program::Wait() const {
  if (!done()) {
    Count(counters.waits);
    TPU_RETURN_IF_ERROR(WaitUntil([this] { return done(); }, "compiling " + label_));
  }
  return error_;
}

ProgramStore::ProgramStore(pjrt::Client* client, std::string key_prefix,
                           std::unique_ptr<DiskCache> disk, int threads)
    : client_(client), key_prefix_(std::move(key_prefix)), disk_(std::move(disk)) {
  for (int i = 0; i < std::max(1, threads); ++i) threads_.emplace_back([this] { Work(); });
}

ProgramStore::~ProgramStore() {
  {
    std::lock_guard lock(mu_);
    stop_ = true;
    jobs_.clear();
  }
  wake_.notify_all();
  for (std::thread& t : threads_) t.join();
}

Ref<Program> ProgramStore::Request(ProgramRequest request, ProgramSource* source) {
  ProgramSource ignored;
  if (source == nullptr) source = &ignored;
  if (const std::string dir = GetFlags().dump_dir(); !dir.empty()) Dump(request, dir);
  std::string key = key_prefix_ + request.options.Serialize() + "\n" + request.text;
  std::lock_guard lock(mu_);
  if (const auto it = by_text_.find(key); it != by_text_.end()) {
    Count(counters.memory_hits);
    *source = ProgramSource::kMemory;
    return it->second;
  }
  auto program = Ref<Program>::Make();
  program->text_ = std::move(request.text);
  program->label_ = std::move(request.label);
  if (by_text_.size() >= size_t(GetFlags().program_limit()) || Program::OverLimit()) DropUnused();
  if (disk_) {
    if (auto bytes = disk_->Get(key)) {
      const timeline::Span span(timeline::Kind::kLoad, -1, program->label_);
      auto loaded = client_->Deserialize(*bytes);
      if (loaded.ok()) {
        program->executable_ = std::move(loaded).value();
        program->SetBytes(bytes->size());
        program->done_.store(true, std::memory_order_release);
        by_text_.emplace(std::move(key), program);
        *source = ProgramSource::kDisk;
        return program;
      }
      Count(counters.disk_errors);  // of another build after all: compile it
    }
  }
  if (!request.may_compile) {
    *source = ProgramSource::kRefused;
    return {};
  }
  *source = ProgramSource::kCompiled;
  by_text_.emplace(key, program);
  jobs_.push_back({program, std::move(request.options), std::move(key),
                   timeline::Recording() ? timeline::CurrentCause() : timeline::Cause()});
  wake_.notify_one();
  return program;
}

// Programs that no entry holds any more.
void ProgramStore::DropUnused() {
  std::erase_if(by_text_, [](const auto& item) { return item.second->use_count() == 1; });
}

void ProgramStore::Clear() {
  std::lock_guard lock(mu_);
  DropUnused();
}

size_t ProgramStore::size() {
  std::lock_guard lock(mu_);
  return by_text_.size();
}

void ProgramStore::Work() {
  MarkOwnThread();
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mu_);
      wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
      if (stop_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    Compile(job);
  }
}

void ProgramStore::Compile(const Job& job) {
  Program* const program = job.program.get();
  const auto start = std::chrono::steady_clock::now();
  auto compiled = [&] {
    timeline::Span span(timeline::Kind::kCompile, -1, program->label_);
    span.SetCause(job.cause);
    return client_->Compile(program->text_, job.options);
  }();
  const auto spent = std::chrono::steady_clock::now() - start;
  Count(counters.compiles);
  const int64_t ns = std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count();
  Count(counters.compile_ns, ns);
  program->compile_ns_->store(ns, std::memory_order_relaxed);
  if (compiled.ok()) {
    program->executable_ = std::move(compiled).value();
  } else {
    program->error_ = compiled.status().Annotate("compiling " + program->label_ + ": ");
  }
  // Written before anybody may go on (1 ms against the compile's 30), so that a process that ends
  // right after its last result leaves every program to the next. A cache that can't be written
  // costs time, not correctness; the counters show it.
  if (program->error_.ok()) {
    if (auto bytes = program->executable_.Serialize(); bytes.ok()) {
      program->SetBytes(bytes->size());
      if (disk_) (void)disk_->Put(job.key, *bytes);
    }
  }
  program->done_.store(true, std::memory_order_release);
  NotifyWaiters();
}

}  // namespace tpu::runtime
