// Finding loops, and cuts that depend on contents.
#include "exec/cuts.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"
#include "runtime/value.h"

namespace tpu::exec {
namespace {

constexpr size_t kFirstSearch = 64;  // calls before a loop is looked for, then at each doubling
constexpr size_t kLoopCalls = 128;   // turns of a short loop are run together, up to this
constexpr size_t kMinRepeated = 32;  // fewer equal calls are no loop
constexpr size_t kWindow = 4;        // calls that decide a cut by contents

}  // namespace

bool Cutter::Repeats(size_t i, size_t period) const {
  const Node &a = nodes_[i], &b = nodes_[i - period];
  if (a.hash != b.hash || a.count != b.count) return false;
  for (size_t k = 0; k < a.count; ++k) {
    const Operand &x = operands_[a.at + k], &y = operands_[b.at + k];
    const bool unchanged = x.storage == y.storage && x.born == y.born;
    if (!unchanged && x.born - y.born != period * runtime::Value::kBornPerCall) return false;
  }
  return true;
}

// The shortest period of which the trace ends in three turns, and in kMinRepeated calls.
size_t Cutter::FindPeriod() const {
  const size_t n = nodes_.size(), length = n - begin_;
  for (size_t period = 1; period * 3 <= length; ++period) {
    const size_t wanted = std::max(2 * period, kMinRepeated);
    if (period + wanted > length) break;
    size_t equal = 0;
    while (equal < wanted && Repeats(n - 1 - equal, period)) ++equal;
    if (equal == wanted) return period;
  }
  return 0;
}

const char* Cutter::Add(uint64_t hash, std::span<const Operand> operands, int64_t bytes) {
  nodes_.push_back(
      {hash, static_cast<uint32_t>(operands_.size()), static_cast<uint32_t>(operands.size())});
  operands_.insert(operands_.end(), operands.begin(), operands.end());
  bytes_ += bytes;
  if (period_ > 0) {
    if (Repeats(nodes_.size() - 1, period_)) {
      if (--left_ == 0) return "repeat";
      return bytes_ > max_bytes_ ? "bytes" : nullptr;
    }
    period_ = 0;  // the loop is over
  }
  if (bytes_ > max_bytes_) return "bytes";
  const size_t length = nodes_.size() - begin_;
  if (length >= kHardLimit) return "limit";
  if (length >= kFirstSearch && std::has_single_bit(length)) {
    period_ = FindPeriod();
    if (period_ > 0) return "repeat";
  }
  if (length < kSoftLimit) return nullptr;
  // Which calls came last decides, and less choosily the longer the trace: in a loop longer than
  // the limit, cuts fall on the same calls of each turn after a turn or two.
  uint64_t window = 0;
  for (size_t i = nodes_.size() - kWindow; i < nodes_.size(); ++i) {
    window = HashCombine(window, nodes_[i].hash);
  }
  const uint64_t mask = length < (kSoftLimit + kHardLimit) / 2 ? 63 : 7;
  return (window & mask) == 0 ? "limit" : nullptr;
}

void Cutter::Cut(bool repeat) {
  bytes_ = 0;
  if (!repeat) {
    period_ = 0;
    begin_ = 0;
    nodes_.clear();
    operands_.clear();
    return;
  }
  // One turn stays: what comes is compared with it.
  nodes_.erase(nodes_.begin(), nodes_.end() - static_cast<std::ptrdiff_t>(period_));
  const uint32_t first = nodes_.front().at;
  operands_.erase(operands_.begin(), operands_.begin() + first);
  for (Node& n : nodes_) n.at -= first;
  begin_ = nodes_.size();
  left_ = period_ * std::max<size_t>(1, kLoopCalls / period_);
}

}  // namespace tpu::exec
