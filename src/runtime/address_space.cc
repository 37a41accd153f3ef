// Addresses for device storages: slots of size classes, a buddy system for runs of chunks.
#include "runtime/address_space.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <mutex>

namespace tpu::runtime {
namespace {

constexpr uint64_t kTiB = uint64_t{1} << 40;

uint64_t AddressLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return limit.rlim_cur;
}

std::string InUnits(uint64_t bytes) {
  if (bytes >= kTiB) return internal::Concat(bytes >> 40, " TiB");
  if (bytes >= uint64_t{1} << 30) return internal::Concat(bytes >> 30, " GiB");
  return internal::Concat(bytes, " bytes");
}

// Zeroed on first touch. By mmap, not calloc: the tables of small slots are large and mostly never
// touched, and huge pages would make the first touch cost 2 MiB.
void* MapTable(size_t bytes) {
  void* const table = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (table == MAP_FAILED) return nullptr;
  madvise(table, bytes, MADV_NOHUGEPAGE);
  return table;
}

}  // namespace

void AddressSpace::SpinLock::Wait() {
  for (int i = 0; i < 64; ++i) {
    if (!held_.load(std::memory_order_relaxed)) return;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  // The holder may have been preempted on this very core.
  sched_yield();
}

Result<std::unique_ptr<AddressSpace>> AddressSpace::Create(uint64_t bytes) {
  if (!std::has_single_bit(bytes) || bytes < kSmallestBytes) {
    return InvalidArgument("an address space of ", bytes, " bytes: want a power of two from 1 GiB");
  }
  const uint64_t half = AddressLimit() / 2;
  for (; bytes >= kSmallestBytes; bytes /= 4) {
    if (bytes > half) continue;
    // One chunk more than wanted, given back once the range is aligned to a chunk.
    const uint64_t chunk = bytes >> kChunkCountLog;
    const uint64_t mapped = bytes + chunk;
    void* const got =
        mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) continue;
    const auto start = reinterpret_cast<uintptr_t>(got);
    const uintptr_t base = (start + chunk - 1) & ~(chunk - 1);
    if (base > start) munmap(got, base - start);
    if (base < start + chunk) munmap(reinterpret_cast<void*>(base + bytes), start + chunk - base);
    madvise(reinterpret_cast<void*>(base), bytes, MADV_DONTDUMP);
    return std::unique_ptr<AddressSpace>(new AddressSpace(base, bytes));
  }
  return ResourceExhausted(
      "can't reserve ", InUnits(kSmallestBytes),
      " of address space for tensors; the limit of the process (ulimit -v) is ",
      InUnits(AddressLimit()));
}

Result<AddressSpace*> AddressSpace::Global() {
  static const auto* const made = new Result<std::unique_ptr<AddressSpace>>(Create());
  if (!made->ok()) return made->status();
  static AddressSpace* const global = [] {
    static AddressSpace* const space = made->value().get();
    // A child must not inherit a lock that another thread of the parent held.
    pthread_atfork([] { space->LockAll(); }, [] { space->UnlockAll(); },
                   [] { space->UnlockAll(); });
    return space;
  }();
  return global;
}

AddressSpace::AddressSpace(uintptr_t base, uint64_t bytes)
    : base_(base),
      bytes_(bytes),
      chunk_shift_(std::countr_zero(bytes) - kChunkCountLog),
      classes_(chunk_shift_ - kMinShift),
      // Space is cheap in a large range, scarce in a small one, and most sizes are powers of two.
      pad_(bytes >= kTiB ? 1 : 0),
      use_(new std::atomic<uint8_t>[kChunkCount]()),
      content_(new std::atomic<uintptr_t>[kChunkCount]()) {
  for (int i = 0; i < classes_; ++i) {
    // At most a thousandth of the range is held back by each class.
    size_classes_[i].hold =
        static_cast<uint32_t>(std::min<uint64_t>(1024, (bytes >> 10) >> (kMinShift + i)));
  }
  for (int order = 0; order <= kChunkCountLog; ++order) {
    const uint32_t places = kChunkCount >> order;
    buddies_.bits[order].reset(new uint64_t[(places + 63) / 64]());
  }
  SetBit(kChunkCountLog, 0, true);
}

AddressSpace::~AddressSpace() {
  for (uint32_t chunk = 0; chunk < kChunkCount; ++chunk) {
    const uint8_t use = use_[chunk].load(std::memory_order_relaxed);
    if (use == kUnused || (use & kRun) != 0) continue;
    const size_t slots = size_t{1} << (chunk_shift_ - kMinShift - (use - 1));
    munmap(reinterpret_cast<void*>(content_[chunk].load(std::memory_order_relaxed)),
           slots * sizeof(Slot));
  }
  munmap(reinterpret_cast<void*>(base_), bytes_);
}

Status AddressSpace::TooLarge(size_t nbytes) const {
  return ResourceExhausted("a storage of ", nbytes, " bytes does not fit in what is left of the ",
                           InUnits(bytes_), " of address space for tensors",
                           bytes_ < kDefaultBytes ? " (usually 16 TiB; ulimit -v limits it)" : "");
}

Result<uintptr_t> AddressSpace::Allocate(size_t nbytes, void* owner) {
  const auto tagged = reinterpret_cast<uintptr_t>(owner);
  if (tagged == 0 || (tagged & 1) != 0) {
    return Internal("the owner of an address is null or odd");
  }
  if (nbytes > bytes_ - pad_) return TooLarge(nbytes);
  const uint64_t size = std::max<uint64_t>(nbytes + pad_, uint64_t{1} << kMinShift);
  const int shift = 64 - std::countl_zero(size - 1);
  if (shift < chunk_shift_) return AllocateSmall(shift - kMinShift, tagged, nbytes);
  return AllocateRun(shift - chunk_shift_, tagged, nbytes);
}

bool AddressSpace::Free(uintptr_t address) {
  const uint64_t offset = address - base_;
  if (offset >= bytes_) return false;
  const uint8_t use = use_[offset >> chunk_shift_].load(std::memory_order_acquire);
  if (use == kUnused) return false;
  if ((use & kRun) != 0) return FreeRun(offset, use & ~kRun);
  return FreeSmall(offset, use - 1);
}

void* AddressSpace::Find(uintptr_t address) const {
  const uint64_t offset = address - base_;
  if (offset >= bytes_) return nullptr;
  const uint64_t chunk = offset >> chunk_shift_;
  const uint8_t use = use_[chunk].load(std::memory_order_acquire);
  if (use == kUnused) return nullptr;
  if ((use & kRun) != 0) {
    const uint64_t first = chunk >> (use & ~kRun) << (use & ~kRun);
    const uintptr_t owner = content_[first].load(std::memory_order_acquire);
    // Freed meanwhile, and perhaps made a chunk of slots: that would not be an owner.
    if (use_[chunk].load(std::memory_order_relaxed) != use) return nullptr;
    return reinterpret_cast<void*>(owner);
  }
  const uintptr_t slot = SlotAt(offset, kMinShift + use - 1).load(std::memory_order_acquire);
  return (slot & 1) != 0 ? nullptr : reinterpret_cast<void*>(slot);
}

int64_t AddressSpace::live() const {
  int64_t live = 0;
  for (int i = 0; i < classes_; ++i) {
    std::lock_guard lock(size_classes_[i].lock);
    live += size_classes_[i].live;
  }
  std::lock_guard lock(buddies_.lock);
  return live + buddies_.live;
}

AddressSpace::Slot& AddressSpace::SlotAt(uint64_t offset, int shift) const {
  const uint64_t within = offset & ((uint64_t{1} << chunk_shift_) - 1);
  auto* const slots =
      reinterpret_cast<Slot*>(content_[offset >> chunk_shift_].load(std::memory_order_relaxed));
  return slots[within >> shift];
}

bool AddressSpace::AddChunk(SizeClass& size_class, int index) {
  void* const table = MapTable((size_t{1} << (chunk_shift_ - kMinShift - index)) * sizeof(Slot));
  if (table == nullptr) return false;
  uint32_t chunk;
  {
    std::lock_guard lock(buddies_.lock);
    chunk = TakeRun(0);
  }
  if (chunk == kChunkCount) {
    munmap(table, (size_t{1} << (chunk_shift_ - kMinShift - index)) * sizeof(Slot));
    return false;
  }
  content_[chunk].store(reinterpret_cast<uintptr_t>(table), std::memory_order_relaxed);
  use_[chunk].store(static_cast<uint8_t>(1 + index), std::memory_order_release);
  size_class.next = uint64_t{chunk} << chunk_shift_;
  size_class.end = size_class.next + (uint64_t{1} << chunk_shift_);
  return true;
}

Result<uintptr_t> AddressSpace::AllocateSmall(int index, uintptr_t owner, size_t nbytes) {
  SizeClass& size_class = size_classes_[index];
  const int shift = kMinShift + index;
  std::lock_guard lock(size_class.lock);
  uint64_t offset;
  const bool fresh = size_class.free <= size_class.hold &&
                     (size_class.next < size_class.end || AddChunk(size_class, index));
  if (fresh) {
    offset = size_class.next;
    size_class.next += uint64_t{1} << shift;
  } else if (size_class.free > 0) {
    offset = size_class.head;
    size_class.head = SlotAt(offset, shift).load(std::memory_order_relaxed) >> 1 << kMinShift;
    --size_class.free;
  } else {
    return TooLarge(nbytes);
  }
  SlotAt(offset, shift).store(owner, std::memory_order_release);
  ++size_class.live;
  return base_ + offset;
}

bool AddressSpace::FreeSmall(uint64_t offset, int index) {
  SizeClass& size_class = size_classes_[index];
  const int shift = kMinShift + index;
  if ((offset & ((uint64_t{1} << shift) - 1)) != 0) return false;
  std::lock_guard lock(size_class.lock);
  Slot& slot = SlotAt(offset, shift);
  const uintptr_t owner = slot.load(std::memory_order_relaxed);
  if (owner == 0 || (owner & 1) != 0) return false;
  slot.store(1, std::memory_order_relaxed);
  if (size_class.free == 0) {
    size_class.head = offset;
  } else {
    SlotAt(size_class.tail, shift).store(offset >> kMinShift << 1 | 1, std::memory_order_relaxed);
  }
  size_class.tail = offset;
  ++size_class.free;
  --size_class.live;
  return true;
}

Result<uintptr_t> AddressSpace::AllocateRun(int order, uintptr_t owner, size_t nbytes) {
  std::lock_guard lock(buddies_.lock);
  const uint32_t first = order <= kChunkCountLog ? TakeRun(order) : kChunkCount;
  if (first == kChunkCount) return TooLarge(nbytes);
  content_[first].store(owner, std::memory_order_relaxed);
  for (uint32_t i = 0; i < 1u << order; ++i) {
    use_[first + i].store(static_cast<uint8_t>(kRun | order), std::memory_order_release);
  }
  ++buddies_.live;
  return base_ + (uint64_t{first} << chunk_shift_);
}

bool AddressSpace::FreeRun(uint64_t offset, int order) {
  if ((offset & ((uint64_t{1} << (chunk_shift_ + order)) - 1)) != 0) return false;
  const auto first = static_cast<uint32_t>(offset >> chunk_shift_);
  std::lock_guard lock(buddies_.lock);
  // Again, under the lock: two threads may free the same address.
  if (use_[first].load(std::memory_order_relaxed) != (kRun | order)) return false;
  for (uint32_t i = 0; i < 1u << order; ++i) {
    use_[first + i].store(kUnused, std::memory_order_relaxed);
  }
  content_[first].store(0, std::memory_order_release);
  GiveRun(first, order);
  --buddies_.live;
  return true;
}

uint32_t AddressSpace::TakeRun(int order) {
  int from = order;
  while (from <= kChunkCountLog && buddies_.count[from] == 0) ++from;
  if (from > kChunkCountLog) return kChunkCount;
  // The search goes on where the last one ended, so that a freed run is not at once used again.
  const uint32_t wanted = buddies_.rover[order] % kChunkCount;
  const uint32_t block = FindBit(from, wanted >> from);
  SetBit(from, block, false);
  uint32_t first = block << from;
  if (wanted >> from == block) first = wanted >> order << order;
  // What is left of the block: at each level the half that the run is not in.
  for (int level = from - 1; level >= order; --level) SetBit(level, (first >> level) ^ 1, true);
  buddies_.rover[order] = first + (1u << order);
  return first;
}

void AddressSpace::GiveRun(uint32_t chunk, int order) {
  uint32_t index = chunk >> order;
  while (order < kChunkCountLog && TestBit(order, index ^ 1)) {
    SetBit(order, index ^ 1, false);
    index >>= 1;
    ++order;
  }
  SetBit(order, index, true);
}

bool AddressSpace::TestBit(int order, uint32_t index) const {
  return (buddies_.bits[order][index / 64] >> (index % 64) & 1) != 0;
}

void AddressSpace::SetBit(int order, uint32_t index, bool on) {
  const uint64_t bit = uint64_t{1} << (index % 64);
  uint64_t& word = buddies_.bits[order][index / 64];
  word = on ? word | bit : word & ~bit;
  buddies_.count[order] += on ? 1 : -1;
}

// The first free run of the order at or after place `from`, going round. There is one.
uint32_t AddressSpace::FindBit(int order, uint32_t from) const {
  const uint64_t* const words = buddies_.bits[order].get();
  const uint32_t count = ((kChunkCount >> order) + 63) / 64;
  uint32_t at = from / 64;
  uint64_t word = words[at] & (~uint64_t{0} << (from % 64));
  while (word == 0) {
    at = (at + 1) % count;
    word = words[at];
  }
  return at * 64 + static_cast<uint32_t>(std::countr_zero(word));
}

void AddressSpace::LockAll() {
  // Classes before buddies, as AddChunk does.
  for (int i = 0; i < classes_; ++i) size_classes_[i].lock.lock();
  buddies_.lock.lock();
}

void AddressSpace::UnlockAll() {
  buddies_.lock.unlock();
  for (int i = 0; i < classes_; ++i) size_classes_[i].lock.unlock();
}

}  // namespace tpu::runtime
