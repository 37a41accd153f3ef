// Address space: uniqueness, owners found from any address inside, late reuse, exhaustion, limits
// of the process, threads, and time.
#include "runtime/address_space.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

namespace tpu::runtime {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

// They take most of the address space for themselves, and the signals too.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitizer = true;
#else
constexpr bool kSanitizer = false;
#endif

std::unique_ptr<AddressSpace> Make(uint64_t bytes = AddressSpace::kDefaultBytes) {
  auto made = AddressSpace::Create(bytes);
  EXPECT_TRUE(made.ok()) << made.status().ToString();
  return std::move(made).value();
}

// What a sanitizer left may be less than the room these tests need.
bool Cramped(const AddressSpace& space) {
  return kSanitizer && space.reserved_bytes() < AddressSpace::kDefaultBytes;
}

// Owners need only be even and not null.
void* Owner(uint64_t number) { return reinterpret_cast<void*>(number * 16 + 16); }

// Runs `body` in a forked child under a limit of its address space; returns its exit status.
template <class Body>
int UnderLimit(uint64_t bytes, Body body) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{bytes, bytes};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(100);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 200 + WTERMSIG(status);
}

TEST(AddressSpace, FindsTheOwnerFromAnyAddressInside) {
  const auto space = Make();
  if (Cramped(*space)) GTEST_SKIP() << space->reserved_bytes() << " bytes of address space";
  if (!kSanitizer) {
    EXPECT_EQ(space->reserved_bytes(), AddressSpace::kDefaultBytes);
  }
  std::vector<std::pair<uintptr_t, size_t>> made;
  std::vector<size_t> sizes = {0, 0, 1, 63, 64, 65, 100, 4096, 1 << 20, 3 << 20};
  for (int shift = 26; shift < 38; ++shift) sizes.push_back((size_t{1} << shift) + 12345);
  for (size_t size : sizes) {
    const auto got = space->Allocate(size, Owner(made.size()));
    ASSERT_TRUE(got.ok()) << size << got.status().ToString();
    EXPECT_EQ(*got % 64, 0u);
    made.emplace_back(*got, size);
  }
  EXPECT_EQ(space->live(), static_cast<int64_t>(made.size()));
  for (size_t i = 0; i < made.size(); ++i) {
    const auto [at, size] = made[i];
    for (size_t inside : {size_t{0}, size / 3, size / 2, size > 0 ? size - 1 : 0, size}) {
      EXPECT_EQ(space->Find(at + inside), Owner(i)) << size << " + " << inside;
    }
  }
  EXPECT_EQ(space->Find(0), nullptr);
  EXPECT_EQ(space->Find(reinterpret_cast<uintptr_t>(&made)), nullptr);
  for (const auto& [at, size] : made) {
    EXPECT_TRUE(space->Free(at));
    EXPECT_EQ(space->Find(at), nullptr);
    EXPECT_EQ(space->Find(at + size / 2), nullptr);
    EXPECT_FALSE(space->Free(at)) << "freed twice";
  }
  EXPECT_EQ(space->live(), 0);
}

TEST(AddressSpace, TheEndBelongsToTheAllocation) {
  const auto space = Make();
  if (Cramped(*space)) GTEST_SKIP() << space->reserved_bytes() << " bytes of address space";
  for (size_t size : {size_t{0}, size_t{64}, size_t{128}, size_t{1} << 27, size_t{1} << 28}) {
    const uintptr_t first = *space->Allocate(size, Owner(1));
    const uintptr_t second = *space->Allocate(size, Owner(2));
    EXPECT_EQ(space->Find(first + size), Owner(1)) << size;
    EXPECT_EQ(space->Find(second + size), Owner(2)) << size;
  }
}

TEST(AddressSpace, RefusesWhatItDidNotHandOut) {
  const auto space = Make();
  const uintptr_t small = *space->Allocate(1000, Owner(1));
  const uintptr_t large = *space->Allocate(kGiB, Owner(2));
  EXPECT_FALSE(space->Free(small + 64));
  EXPECT_FALSE(space->Free(small + 1024));
  EXPECT_FALSE(space->Free(large + 64));
  EXPECT_FALSE(space->Free(large + (kGiB / 2)));
  EXPECT_FALSE(space->Free(0));
  EXPECT_FALSE(space->Allocate(8, nullptr).ok());
  EXPECT_FALSE(space->Allocate(8, reinterpret_cast<void*>(17)).ok());
  EXPECT_EQ(space->Find(small), Owner(1));
  EXPECT_EQ(space->Find(large + kGiB - 1), Owner(2));
  EXPECT_EQ(space->live(), 2);
}

TEST(AddressSpace, StrayReadsFault) {
  if (kSanitizer) GTEST_SKIP();
  const auto space = Make();
  const uintptr_t at = *space->Allocate(4096, Owner(1));
  EXPECT_EXIT(
      {
        volatile char byte = *reinterpret_cast<volatile char*>(at);
        (void)byte;
      },
      testing::KilledBySignal(SIGSEGV), "");
}

TEST(AddressSpace, FreedAddressesComeBackLate) {
  for (size_t size : {size_t{100}, size_t{1} << 20, size_t{1} << 30}) {
    const auto space = Make();
    if (Cramped(*space)) GTEST_SKIP() << space->reserved_bytes() << " bytes of address space";
    const uintptr_t stale = *space->Allocate(size, Owner(1));
    EXPECT_TRUE(space->Free(stale));
    int until_reuse = 0;
    for (; until_reuse < 100000; ++until_reuse) {
      const uintptr_t next = *space->Allocate(size, Owner(2));
      EXPECT_TRUE(space->Free(next));
      if (next == stale) break;
    }
    EXPECT_GE(until_reuse, 500) << size;
    // Slots do come back, so that the tables stay small.
    if (size == 100) {
      EXPECT_LT(until_reuse, 2000);
    }
  }
}

TEST(AddressSpace, LimitsOfSize) {
  const auto space = Make(kGiB);
  const auto whole = space->Allocate(kGiB, Owner(1));
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(space->Find(*whole + kGiB - 1), Owner(1));
  const auto none = space->Allocate(1, Owner(2));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), Code::kResourceExhausted);
  EXPECT_NE(none.status().message().find("1 GiB"), std::string::npos) << none.status().message();
  EXPECT_NE(none.status().message().find("ulimit -v"), std::string::npos);
  EXPECT_TRUE(space->Free(*whole));
  EXPECT_TRUE(space->Allocate(1, Owner(2)).ok());
  EXPECT_FALSE(space->Allocate(kGiB, Owner(1)).ok());
  EXPECT_FALSE(space->Allocate(kGiB + 1, Owner(1)).ok());
  EXPECT_FALSE(space->Allocate(SIZE_MAX, Owner(1)).ok());
  EXPECT_FALSE(Make()->Allocate(SIZE_MAX, Owner(1)).ok());
  EXPECT_FALSE(AddressSpace::Create(3 * kGiB).ok());
}

TEST(AddressSpace, FillsAndEmptiesASmallRange) {
  const auto space = Make(kGiB);
  for (int round = 0; round < 3; ++round) {
    std::vector<uintptr_t> made;
    for (;;) {
      const auto got = space->Allocate(1 << 20, Owner(made.size()));
      if (!got.ok()) break;
      made.push_back(*got);
    }
    EXPECT_EQ(made.size(), 1024u) << round;
    for (size_t i = 0; i < made.size(); ++i) EXPECT_EQ(space->Find(made[i] + 77777), Owner(i));
    for (uintptr_t at : made) EXPECT_TRUE(space->Free(at));
  }
}

// Against an ordered map, over sizes of all classes.
void RandomWalk(AddressSpace& space, int steps, int max_shift) {
  std::mt19937_64 random(static_cast<uint64_t>(max_shift));
  std::map<uintptr_t, std::pair<size_t, void*>> live;
  for (int step = 0; step < steps; ++step) {
    if (live.size() < 200 || random() % 2 == 0) {
      const size_t size = random() % (size_t{1} << (random() % static_cast<uint64_t>(max_shift)));
      void* const owner = Owner(static_cast<uint64_t>(step));
      const auto got = space.Allocate(size, owner);
      if (!got.ok()) continue;
      auto after = live.lower_bound(*got);
      if (after != live.end()) {
        ASSERT_LE(*got + size, after->first);
      }
      if (after != live.begin()) {
        --after;
        ASSERT_LE(after->first + after->second.first, *got);
      }
      ASSERT_TRUE(live.emplace(*got, std::pair(size, owner)).second);
    } else {
      auto victim = std::next(live.begin(), static_cast<int64_t>(random() % live.size()));
      const auto [size, owner] = victim->second;
      ASSERT_EQ(space.Find(victim->first + (size > 0 ? random() % size : 0)), owner);
      ASSERT_TRUE(space.Free(victim->first));
      ASSERT_EQ(space.Find(victim->first), nullptr);
      live.erase(victim);
    }
  }
  ASSERT_EQ(space.live(), static_cast<int64_t>(live.size()));
  for (const auto& [at, what] : live) ASSERT_EQ(space.Find(at), what.second);
}

TEST(AddressSpace, RandomWalks) {
  RandomWalk(*Make(), 50000, 36);
  RandomWalk(*Make(kGiB), 50000, 26);
  RandomWalk(*Make(4 * kGiB), 50000, 31);
}

TEST(AddressSpace, ManyThreads) {
  const auto space = Make(16 * kGiB);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&space, &wrong, t] {
      std::mt19937_64 random(t);
      std::vector<std::pair<uintptr_t, void*>> live;
      for (uint64_t i = 0; i < 50000; ++i) {
        if (live.size() < 50 || random() % 2 == 0) {
          void* const owner = Owner(t << 32 | i);
          const auto got = space->Allocate(size_t{1} << (random() % 24), owner);
          if (got.ok()) live.emplace_back(*got, owner);
        } else {
          std::swap(live[random() % live.size()], live.back());
          const auto [at, owner] = live.back();
          if (space->Find(at) != owner || !space->Free(at)) ++wrong;
          live.pop_back();
        }
      }
      for (const auto& [at, owner] : live) {
        if (space->Find(at) != owner || !space->Free(at)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(space->live(), 0);
}

TEST(AddressSpace, SmallerUnderALimit) {
  if (kSanitizer) GTEST_SKIP();
  const auto reserved = [](uint64_t limit) {
    return UnderLimit(limit, [] {
      auto made = AddressSpace::Create();
      if (!made.ok()) {
        const std::string& message = made.status().message();
        return made.status().code() == Code::kResourceExhausted &&
                       message.find("ulimit -v") != std::string::npos
                   ? 99
                   : 98;
      }
      // Usable, and most of the limit is left for memory.
      AddressSpace& space = **made;
      const auto got = space.Allocate(space.reserved_bytes() / 4, Owner(1));
      if (!got.ok() || space.Find(*got + 5) != Owner(1)) return 97;
      const auto huge = space.Allocate(space.reserved_bytes() + 1, Owner(1));
      const bool smaller = space.reserved_bytes() < AddressSpace::kDefaultBytes;
      if (huge.ok() ||
          (huge.status().message().find("ulimit -v") != std::string::npos) != smaller) {
        return 96;
      }
      for (int i = 0; i < 1000; ++i) {
        if (!space.Allocate(static_cast<size_t>(i) * 100, Owner(2)).ok()) return 95;
      }
      if (malloc(size_t{200} << 20) == nullptr) return 94;
      return std::countr_zero(space.reserved_bytes());
    });
  };
  EXPECT_EQ(reserved(RLIM_INFINITY), 44);
  EXPECT_EQ(reserved(uint64_t{33} << 40), 44);
  EXPECT_EQ(reserved(uint64_t{20} << 40), 42);
  EXPECT_EQ(reserved(64 * kGiB), 34);
  EXPECT_EQ(reserved(16 * kGiB), 32);
  EXPECT_EQ(reserved(8 * kGiB), 32);
  EXPECT_EQ(reserved(3 * kGiB), 30);
  EXPECT_EQ(reserved(kGiB), 99);
}

TEST(AddressSpace, GlobalWorksInAForkedChild) {
  const auto space = AddressSpace::Global();
  ASSERT_TRUE(space.ok());
  EXPECT_EQ(*AddressSpace::Global(), *space);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) (*space)->Free(*(*space)->Allocate(100, Owner(1)));
  });
  for (int i = 0; i < 100; ++i) {
    const int status = UnderLimit(RLIM_INFINITY, [&] {
      alarm(10);
      for (int k = 0; k < 10; ++k) {
        if (!(*space)->Free(*(*space)->Allocate(100, Owner(2)))) return 1;
      }
      return 0;
    });
    ASSERT_EQ(status, 0);
  }
  stop = true;
  busy.join();
}

// Prints rather than fails: machines differ.
TEST(AddressSpace, Time) {
  const auto space = Make();
  for (size_t size : {size_t{16}, size_t{4096}, size_t{1} << 24, size_t{1} << 30}) {
    constexpr int kRounds = 1000000;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kRounds; ++i) space->Free(*space->Allocate(size, Owner(1)));
    const auto middle = std::chrono::steady_clock::now();
    const uintptr_t at = *space->Allocate(size, Owner(1));
    uintptr_t sum = 0;
    for (int i = 0; i < kRounds; ++i) {
      sum += reinterpret_cast<uintptr_t>(space->Find(at + static_cast<size_t>(i) % size));
    }
    const auto end = std::chrono::steady_clock::now();
    EXPECT_EQ(sum, kRounds * reinterpret_cast<uintptr_t>(Owner(1)));
    using Nanoseconds = std::chrono::duration<double, std::nano>;
    std::printf("%zu bytes: Allocate + Free %.0f ns, Find %.1f ns\n", size,
                Nanoseconds(middle - start).count() / kRounds,
                Nanoseconds(end - middle).count() / kRounds);
  }
}

}  // namespace
}  // namespace tpu::runtime
