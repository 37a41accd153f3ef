// Counters: the table of their names, snapshots, and the counts named at run time.
#include "base/counters.h"

#include <iterator>
#include <map>
#include <mutex>

namespace tpu {

constinit Counters counters;

namespace {

struct Row {
  std::string_view name;
  std::atomic<int64_t> Counters::* field;
};

constexpr Row kRows[] = {
    {"compiles", &Counters::compiles},
    {"compile_ns", &Counters::compile_ns},
    {"memory_hits", &Counters::memory_hits},
    {"disk_hits", &Counters::disk_hits},
    {"disk_writes", &Counters::disk_writes},
    {"disk_errors", &Counters::disk_errors},
    {"launches", &Counters::launches},
    {"queued_launches", &Counters::queued_launches},
    {"fallbacks", &Counters::fallbacks},
    {"host_reads", &Counters::host_reads},
    {"read_bytes", &Counters::read_bytes},
    {"uploads", &Counters::uploads},
    {"upload_bytes", &Counters::upload_bytes},
    {"pack_hits", &Counters::pack_hits},
    {"pack_uploads", &Counters::pack_uploads},
    {"donations", &Counters::donations},
    {"waits", &Counters::waits},
    {"flushes", &Counters::flushes},
    {"thread_handoffs", &Counters::thread_handoffs},
};
static_assert(sizeof(Counters) == std::size(kRows) * sizeof(std::atomic<int64_t>),
              "a field of Counters has no row");

struct Named {
  std::mutex mutex;
  std::map<std::string, int64_t, std::less<>> counts;
};

// Never destroyed: threads may count while the process ends.
Named& GetNamed() {
  static Named* const named = new Named;
  return *named;
}

}  // namespace

int64_t CountNamed(std::string_view name, int64_t by) {
  Named& named = GetNamed();
  std::lock_guard lock(named.mutex);
  auto it = named.counts.find(name);
  if (it == named.counts.end()) it = named.counts.emplace(name, 0).first;
  return it->second += by;
}

std::vector<std::pair<std::string, int64_t>> Snapshot() {
  std::vector<std::pair<std::string, int64_t>> out;
  out.reserve(std::size(kRows));
  for (const Row& row : kRows) {
    out.emplace_back(row.name, (counters.*row.field).load(std::memory_order_relaxed));
  }
  return out;
}

std::vector<std::pair<std::string, int64_t>> SnapshotNamed() {
  Named& named = GetNamed();
  std::lock_guard lock(named.mutex);
  return {named.counts.begin(), named.counts.end()};
}

void ResetCounters() {
  for (const Row& row : kRows) (counters.*row.field).store(0, std::memory_order_relaxed);
  Named& named = GetNamed();
  std::lock_guard lock(named.mutex);
  named.counts.clear();
}

}  // namespace tpu
