// Cutter: where fuse mode cuts its trace, so that programs stay small and the second turn of a loop
// meets the programs of the first, whatever the loop's length.
// What it is not: a key. A cut in an unlucky place costs a compile, never a wrong program.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tpu::exec {

class Cutter {
 public:
  // What a call reads or writes: a storage, and when its contents were made (Value::born).
  struct Operand {
    const void* storage = nullptr;
    uint64_t born = 0;
  };
  static constexpr size_t kSoftLimit = 256, kHardLimit = 512;  // calls of a trace

  explicit Cutter(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // After each recorded call: why the trace should run now, or null. `hash`: of the call's key,
  // `bytes`: of the results it makes.
  const char* Add(uint64_t hash, std::span<const Operand> operands, int64_t bytes);
  // The trace has run. `repeat`: because Add said "repeat".
  void Cut(bool repeat);

 private:
  struct Node {
    uint64_t hash;
    uint32_t at, count;  // in operands_
  };
  // Whether call `i` does `period` calls later what call `i - period` did: the same operator on the
  // same contents, or on contents made as long before.
  bool Repeats(size_t i, size_t period) const;
  size_t FindPeriod() const;  // 0: the trace doesn't end in a loop

  const int64_t max_bytes_;
  int64_t bytes_ = 0;
  std::vector<Node> nodes_;  // the trace's, after the last period of the trace before it
  std::vector<Operand> operands_;
  size_t begin_ = 0;   // of the trace
  size_t period_ = 0;  // calls a turn of the loop that was found
  size_t left_ = 0;    // calls to the next cut of it
};

}  // namespace tpu::exec
