// Addresses for device storages: unique, stable, following a storage's offset, in reserved and
// inaccessible memory, so that libraries can compare them and a stray host read faults at once.
// Any address inside an allocation leads back to its owner. What it is not: memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"

namespace tpu::runtime {

// Sizes are rounded up to powers of two from 64 bytes, and addresses are aligned to that size (to a
// chunk, where it is more). The range is cut into 65536 chunks. Below a chunk, each size class
// fills chunks of its own with equal slots; from a chunk up, a buddy system hands out runs of
// chunks. So a small range (`ulimit -v`) is still usable for any mix of sizes. All methods are
// thread safe; Find takes no lock.
class AddressSpace {
 public:
  static constexpr uint64_t kDefaultBytes = uint64_t{16} << 40;
  static constexpr uint64_t kSmallestBytes = uint64_t{1} << 30;

  // Reserves `bytes` (a power of two), or where that is not to be had a quarter, a sixteenth, ...
  // down to kSmallestBytes. Never more than half of RLIMIT_AS: the device's own memory counts too.
  static Result<std::unique_ptr<AddressSpace>> Create(uint64_t bytes = kDefaultBytes);
  // The one of the process, made at the first call, usable after fork; never destroyed.
  static Result<AddressSpace*> Global();

  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  // A fresh address for `nbytes` (0 gets its own too). `owner` is not null and even. A freed
  // address comes back late: others freed before it are used first.
  Result<uintptr_t> Allocate(size_t nbytes, void* owner);
  // False, and nothing happens, unless `address` is what Allocate returned and is not yet freed.
  bool Free(uintptr_t address);
  // The owner of the allocation that holds the address, else null. Where the range is large the
  // address one past the end still belongs to it: data_ptr() of an empty slice at the end. The
  // caller sees to it that the allocation is not freed meanwhile.
  void* Find(uintptr_t address) const;

  bool Contains(uintptr_t address) const { return address - base_ < bytes_; }
  uint64_t reserved_bytes() const { return bytes_; }
  int64_t live() const;  // allocations not yet freed

 private:
  static constexpr int kMinShift = 6;  // 64 bytes
  static constexpr int kChunkCountLog = 16;
  static constexpr uint32_t kChunkCount = 1u << kChunkCountLog;
  static constexpr int kMaxClasses = 32;
  // What a chunk is used for: nothing, slots of class k (1 + k), or a part of a run of 2^k chunks.
  static constexpr uint8_t kUnused = 0;
  static constexpr uint8_t kRun = 0x80;

  // Held for some 10 ns; a mutex would double the cost of Allocate and Free.
  class SpinLock {
   public:
    void lock() {
      while (held_.exchange(true, std::memory_order_acquire)) Wait();
    }
    void unlock() { held_.store(false, std::memory_order_release); }

   private:
    void Wait();
    std::atomic<bool> held_{false};
  };

  // A slot holds its owner (even), or 0 if never used, or, if free, the next free slot of its class
  // as 2 * (offset / 64) + 1.
  using Slot = std::atomic<uintptr_t>;

  struct alignas(64) SizeClass {
    mutable SpinLock lock;
    uint64_t next = 0;  // offset of the next slot never used, up to `end`
    uint64_t end = 0;
    uint64_t head = 0;  // free slots, oldest first, as offsets
    uint64_t tail = 0;
    uint32_t free = 0;
    uint32_t hold = 0;  // so many free slots are held back while fresh ones are to be had
    int64_t live = 0;
  };

  // Free runs of 2^order chunks: a bit for each place that one can have.
  struct Buddies {
    mutable SpinLock lock;
    std::array<std::unique_ptr<uint64_t[]>, kChunkCountLog + 1> bits;
    std::array<uint32_t, kChunkCountLog + 1> count{};
    std::array<uint32_t, kChunkCountLog + 1> rover{};  // where the search goes on, in chunks
    int64_t live = 0;
  };

  AddressSpace(uintptr_t base, uint64_t bytes);

  Slot& SlotAt(uint64_t offset, int shift) const;
  bool AddChunk(SizeClass& size_class, int index);
  Result<uintptr_t> AllocateSmall(int index, uintptr_t owner, size_t nbytes);
  Result<uintptr_t> AllocateRun(int order, uintptr_t owner, size_t nbytes);
  bool FreeSmall(uint64_t offset, int index);
  bool FreeRun(uint64_t offset, int order);
  // First chunk of a run, or kChunkCount. Under the lock of the buddies.
  uint32_t TakeRun(int order);
  void GiveRun(uint32_t chunk, int order);
  bool TestBit(int order, uint32_t index) const;
  void SetBit(int order, uint32_t index, bool on);
  uint32_t FindBit(int order, uint32_t from) const;
  Status TooLarge(size_t nbytes) const;

  void LockAll();
  void UnlockAll();

  const uintptr_t base_;
  const uint64_t bytes_;
  const int chunk_shift_;
  const int classes_;  // below a chunk
  const uint64_t pad_;
  std::array<SizeClass, kMaxClasses> size_classes_;
  Buddies buddies_;
  std::unique_ptr<std::atomic<uint8_t>[]> use_;  // of each chunk
  // Slots of a chunk, or of a run the owner. Slot tables are never unmapped while this lives: a
  // Find of a stale address may be reading one.
  std::unique_ptr<std::atomic<uintptr_t>[]> content_;
};

}  // namespace tpu::runtime
