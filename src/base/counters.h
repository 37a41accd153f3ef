// Always-on counters of what the runtime did: tests assert by them which path ran, users read them
// through torch_tpu.info(). What it is not: a profiler; nothing here has a time line.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tpu {

// Every field is in the table of counters.cc (checked when compiled). Counted with Count().
struct Counters {
  std::atomic<int64_t> compiles{0};         // programs that the plugin compiled
  std::atomic<int64_t> compile_ns{0};       // time in those compiles, summed over threads
  std::atomic<int64_t> memory_hits{0};      // calls whose program was in memory
  std::atomic<int64_t> disk_hits{0};        // programs read from the disk cache
  std::atomic<int64_t> disk_writes{0};      // programs written to it
  std::atomic<int64_t> disk_errors{0};      // damaged or refused files, failed writes
  std::atomic<int64_t> launches{0};         // executions, inline and queued
  std::atomic<int64_t> queued_launches{0};  // of these, executed from the queue of a device
  std::atomic<int64_t> fallbacks{0};        // ops that ran on the CPU
  std::atomic<int64_t> host_reads{0};       // transfers from a device to the host
  std::atomic<int64_t> read_bytes{0};
  std::atomic<int64_t> uploads{0};  // transfers from the host to a device
  std::atomic<int64_t> upload_bytes{0};
  std::atomic<int64_t> pack_hits{0};     // scalar packs that were resident
  std::atomic<int64_t> pack_uploads{0};  // scalar packs that had to be uploaded
  std::atomic<int64_t> donations{0};     // buffers given to a program for its result
  std::atomic<int64_t> waits{0};         // times a thread waited for a device
  std::atomic<int64_t> flushes{0};       // recorded programs that were cut and run
  std::atomic<int64_t> thread_handoffs{0};
};

extern Counters counters;

inline void Count(std::atomic<int64_t>& counter, int64_t by = 1) {
  counter.fetch_add(by, std::memory_order_relaxed);
}

// Counts under a name made at run time: "fallback.aten::foo", "flush.item". Takes a lock. Returns
// the count after it, so that 1 means the first time.
int64_t CountNamed(std::string_view name, int64_t by = 1);

// The fields of Counters in the order of the struct, zeros included.
std::vector<std::pair<std::string, int64_t>> Snapshot();
// The named counts, sorted by name.
std::vector<std::pair<std::string, int64_t>> SnapshotNamed();

// Zeroes the fields and drops the named counts.
void ResetCounters();

}  // namespace tpu
