// Compiled programs on disk, shared by all processes of a user. A lookup gives the very bytes that
// were put under the very key, or nothing: a damaged or foreign file is a miss.
// What it is not: durable (nothing is synced), nor a judge of keys; the caller puts everything into
// the key that the bytes depend on. Loading a program is running its code, so folders and files
// that another user owns or may write are refused.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tpu::runtime {

class DiskCache {
 public:
  struct Stats {
    int64_t hits = 0;
    int64_t misses = 0;   // damaged and refused included
    int64_t damaged = 0;  // truncated, altered, of another key or format; removed
    int64_t refused = 0;  // files that another user owns or may write, links, not plain files
    int64_t writes = 0;
    int64_t write_errors = 0;
    int64_t evictions = 0;
    int64_t bytes = 0;         // in the folder, as of the last look and this process's writes
    std::string last_refusal;  // says which file and why
  };

  // Makes the folder (mode 0700, parents too) if it is missing. Fails, naming folder and owner,
  // where it can't be trusted: a link, another owner, writable by group or others.
  static Result<std::unique_ptr<DiskCache>> Open(const std::string& dir, int64_t max_bytes);

  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  // What was put under `key`. Marks it as used just now. Also counts in tpu::counters: disk_hits,
  // disk_errors.
  std::optional<std::string> Get(std::string_view key);
  // Counts disk_writes and disk_errors. An error leaves what was there. Makes room beforehand by
  // removing the programs that were not used for longest, down to four fifths of max_bytes.
  Status Put(std::string_view key, std::string_view payload);
  // Removes every program, those of other processes too.
  Status Clear();

  Stats stats() const;
  const std::string& dir() const { return dir_; }
  // The file of a key, for messages.
  std::string PathOf(std::string_view key) const;

 private:
  DiskCache(std::string dir, int fd, int64_t max_bytes);

  std::optional<std::string> Read(const std::string& name, std::string_view key);
  Status Write(const std::string& name, std::string_view header, std::string_view payload);
  void Refuse(const std::string& name, std::string why);
  void Remove(const std::string& name);
  // Under mutex_.
  Status MakeRoom(int64_t bytes);

  const std::string dir_;
  const int fd_;
  const int64_t max_bytes_;
  mutable std::mutex mutex_;
  Stats stats_;
  int64_t writes_since_scan_ = -1;  // -1: never scanned
  int64_t bytes_since_scan_ = 0;
};

// Model and instruction list of this machine's processors: compiled programs depend on them. The
// name of the model, then a hash.
std::string HostCpuFeatures();
// The same from the text of a /proc/cpuinfo.
std::string HostCpuFeaturesFrom(std::string_view cpuinfo);

}  // namespace tpu::runtime
