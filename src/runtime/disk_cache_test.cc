// The disk cache never gives wrong bytes: damage of every kind, killed writers, many processes; and
// it trusts no folder or file that another user could have written.
#include "runtime/disk_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include "base/counters.h"

namespace tpu::runtime {
namespace {

constexpr int64_t kMiB = 1 << 20;

class DiskCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "disk_cache_XXXXXX";
    root_ = mkdtemp(pattern.data());
    dir_ = root_ + "/a/b";
  }
  void TearDown() override { ASSERT_EQ(std::system(("rm -rf '" + root_ + "'").c_str()), 0); }

  std::unique_ptr<DiskCache> Open(int64_t max_bytes = 64 * kMiB) {
    auto opened = DiskCache::Open(dir_, max_bytes);
    EXPECT_TRUE(opened.ok()) << opened.status().ToString();
    return opened.ok() ? std::move(opened).value() : nullptr;
  }

  std::vector<std::string> Files() const {
    std::vector<std::string> out;
    DIR* const dir = opendir(dir_.c_str());
    while (const dirent* item = dir != nullptr ? readdir(dir) : nullptr) {
      if (item->d_name[0] != '.') out.push_back(dir_ + "/" + item->d_name);
    }
    if (dir != nullptr) closedir(dir);
    return out;
  }

  std::string root_;
  std::string dir_;
};

std::string ReadFile(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

bool Exists(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0;
}

void SetAge(const std::string& path, time_t seconds) {
  const timespec then{time(nullptr) - seconds, 0};
  const timespec times[] = {then, then};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

// A payload that tells by itself whether it is whole and belongs to the key.
std::string Payload(const std::string& key, uint64_t seed) {
  std::mt19937_64 random(seed ^ std::hash<std::string>()(key));
  std::string out(8 + random() % 200000, '\0');
  for (size_t i = 8; i + 8 <= out.size(); i += 8) {
    const uint64_t word = random();
    std::memcpy(out.data() + i, &word, 8);
  }
  std::memcpy(out.data(), &seed, 8);
  return out;
}

bool Whole(const std::string& key, const std::string& payload) {
  uint64_t seed = 0;
  if (payload.size() < 8) return false;
  std::memcpy(&seed, payload.data(), 8);
  return payload == Payload(key, seed);
}

template <class Body>
pid_t Fork(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  return child;
}

int ExitStatus(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 200 + WTERMSIG(status);
}

TEST_F(DiskCacheTest, GivesBackWhatWasPut) {
  ResetCounters();
  const auto cache = Open();
  EXPECT_EQ(cache->Get("key"), std::nullopt);
  ASSERT_TRUE(cache->Put("key", "program").ok());
  ASSERT_TRUE(cache->Put("empty", "").ok());
  ASSERT_TRUE(cache->Put("", std::string("\0x", 2)).ok());
  EXPECT_EQ(cache->Get("key"), "program");
  EXPECT_EQ(cache->Get("empty"), "");
  EXPECT_EQ(cache->Get(""), std::string("\0x", 2));
  ASSERT_TRUE(cache->Put("key", "another").ok());
  EXPECT_EQ(Open()->Get("key"), "another");
  const DiskCache::Stats stats = cache->stats();
  EXPECT_EQ(stats.hits, 3);
  EXPECT_EQ(stats.misses, 1);
  EXPECT_EQ(stats.writes, 4);
  EXPECT_EQ(stats.damaged + stats.refused + stats.write_errors, 0);
  EXPECT_EQ(counters.disk_hits, 4);
  EXPECT_EQ(counters.disk_writes, 4);
  EXPECT_EQ(counters.disk_errors, 0);
}

TEST_F(DiskCacheTest, FolderAndFilesAreForTheUserAlone) {
  umask(0);
  ASSERT_TRUE(Open()->Put("key", "program").ok());
  struct stat info;
  for (const std::string& path : {root_ + "/a", dir_}) {
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700u) << path;
  }
  ASSERT_EQ(Files().size(), 1u);
  ASSERT_EQ(stat(Files()[0].c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  umask(022);
}

TEST_F(DiskCacheTest, EveryTruncationIsAMiss) {
  const auto cache = Open();
  const std::string payload(300, 'p');
  ASSERT_TRUE(cache->Put("key", payload).ok());
  const std::string path = cache->PathOf("key");
  const std::string good = ReadFile(path);
  ASSERT_GT(good.size(), payload.size());
  for (size_t length = 0; length < good.size(); ++length) {
    WriteFile(path, good.substr(0, length));
    EXPECT_EQ(cache->Get("key"), std::nullopt) << length;
    EXPECT_FALSE(Exists(path)) << length;
  }
  WriteFile(path, good + "x");
  EXPECT_EQ(cache->Get("key"), std::nullopt);
  EXPECT_EQ(cache->stats().damaged, static_cast<int64_t>(good.size() + 1));
  WriteFile(path, good);
  EXPECT_EQ(cache->Get("key"), payload);
}

TEST_F(DiskCacheTest, EveryAlteredBitIsAMiss) {
  const auto cache = Open();
  ASSERT_TRUE(cache->Put("key", std::string(100, 'p')).ok());
  const std::string path = cache->PathOf("key");
  const std::string good = ReadFile(path);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bad = good;
    bad[bit / 8] ^= static_cast<char>(1 << bit % 8);
    WriteFile(path, bad);
    EXPECT_EQ(cache->Get("key"), std::nullopt) << bit;
  }
  // What a file system leaves that lost power after the rename.
  WriteFile(path, std::string(good.size(), '\0'));
  EXPECT_EQ(cache->Get("key"), std::nullopt);
}

TEST_F(DiskCacheTest, AFileOfAnotherKeyIsAMiss) {
  const auto cache = Open();
  ASSERT_TRUE(cache->Put("key", "program").ok());
  ASSERT_EQ(rename(cache->PathOf("key").c_str(), cache->PathOf("other").c_str()), 0);
  EXPECT_EQ(cache->Get("other"), std::nullopt);
  EXPECT_EQ(cache->stats().damaged, 1);
}

TEST_F(DiskCacheTest, LinksAndOddFilesAreRefused) {
  const auto cache = Open();
  ASSERT_TRUE(cache->Put("key", "program").ok());
  const std::string path = cache->PathOf("key");
  ASSERT_EQ(rename(path.c_str(), (root_ + "/elsewhere").c_str()), 0);
  ASSERT_EQ(symlink((root_ + "/elsewhere").c_str(), path.c_str()), 0);
  EXPECT_EQ(cache->Get("key"), std::nullopt);
  EXPECT_NE(cache->stats().last_refusal.find("symbolic link"), std::string::npos);
  // Put replaces the link, not what it leads to.
  const std::string before = ReadFile(root_ + "/elsewhere");
  ASSERT_TRUE(cache->Put("key", "program 2").ok());
  EXPECT_EQ(cache->Get("key"), "program 2");
  EXPECT_EQ(ReadFile(root_ + "/elsewhere"), before);

  ASSERT_EQ(mkfifo(cache->PathOf("pipe").c_str(), 0600), 0);
  EXPECT_EQ(cache->Get("pipe"), std::nullopt);
  ASSERT_EQ(mkdir(cache->PathOf("folder").c_str(), 0700), 0);
  EXPECT_EQ(cache->Get("folder"), std::nullopt);
  EXPECT_FALSE(cache->Put("folder", "program").ok());
  ASSERT_EQ(chmod(path.c_str(), 0620), 0);
  EXPECT_EQ(cache->Get("key"), std::nullopt);
  EXPECT_TRUE(Exists(path));
  EXPECT_NE(cache->stats().last_refusal.find(path), std::string::npos);
  EXPECT_EQ(cache->stats().refused, 4);
}

TEST_F(DiskCacheTest, FoldersThatOthersMayWriteAreRefused) {
  Open();
  for (mode_t mode : {0770, 0702, 0720, 0777, 01777}) {
    ASSERT_EQ(chmod(dir_.c_str(), mode), 0);
    const auto opened = DiskCache::Open(dir_, kMiB);
    ASSERT_FALSE(opened.ok()) << mode;
    EXPECT_NE(opened.status().message().find(dir_), std::string::npos);
    EXPECT_NE(opened.status().message().find("(" + std::to_string(geteuid()) + ")"),
              std::string::npos)
        << opened.status().message();
  }
  ASSERT_EQ(chmod(dir_.c_str(), 0755), 0);
  EXPECT_NE(Open(), nullptr);
  ASSERT_EQ(symlink(dir_.c_str(), (root_ + "/link").c_str()), 0);
  for (const char* spelling : {"/link", "/link/", "/link//"}) {
    const auto linked = DiskCache::Open(root_ + spelling, kMiB);
    ASSERT_FALSE(linked.ok()) << spelling;
    EXPECT_NE(linked.status().message().find("symbolic link"), std::string::npos);
  }
  WriteFile(root_ + "/file", "");
  EXPECT_FALSE(DiskCache::Open(root_ + "/file", kMiB).ok());
  EXPECT_FALSE(DiskCache::Open(root_ + "/file/below", kMiB).ok());
  EXPECT_FALSE(DiskCache::Open("", kMiB).ok());
  // A link further up is the user's own affair.
  ASSERT_EQ(symlink((root_ + "/a").c_str(), (root_ + "/up").c_str()), 0);
  EXPECT_TRUE(DiskCache::Open(root_ + "/up/b", kMiB).ok());
}

TEST_F(DiskCacheTest, FoldersAndFilesOfOthersAreRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "giving files away needs root";
  const auto cache = Open();
  ASSERT_TRUE(cache->Put("key", "program").ok());
  ASSERT_EQ(chown(cache->PathOf("key").c_str(), 54321, 54321), 0);
  EXPECT_EQ(cache->Get("key"), std::nullopt);
  EXPECT_NE(cache->stats().last_refusal.find("54321"), std::string::npos);
  ASSERT_TRUE(cache->Put("key", "ours").ok());
  EXPECT_EQ(cache->Get("key"), "ours");
  ASSERT_EQ(chown(dir_.c_str(), 54321, 54321), 0);
  const auto opened = DiskCache::Open(dir_, kMiB);
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.status().message().find("54321"), std::string::npos);
  EXPECT_NE(opened.status().message().find(dir_), std::string::npos);
}

// As a user whom permissions bind.
TEST_F(DiskCacheTest, AReadOnlyFolderIsReadAndNotWritten) {
  constexpr uid_t kUser = 54321;
  ASSERT_TRUE(Open()->Put("key", "program").ok());
  if (geteuid() == 0) {
    for (const std::string& path : {root_, root_ + "/a", dir_, Files()[0]}) {
      ASSERT_EQ(chown(path.c_str(), kUser, kUser), 0);
    }
  }
  ASSERT_EQ(chmod(dir_.c_str(), 0500), 0);
  ASSERT_EQ(chmod((root_ + "/a").c_str(), 0500), 0);
  const int status = ExitStatus(Fork([&] {
    if (geteuid() == 0 && setuid(kUser) != 0) return 1;
    auto opened = DiskCache::Open(dir_, kMiB);
    if (!opened.ok()) return 2;
    DiskCache& cache = **opened;
    if (cache.Get("key") != "program") return 3;
    const Status put = cache.Put("new", "program");
    if (put.ok() || put.message().find(dir_) == std::string::npos) return 4;
    if (cache.Get("key") != "program" || cache.stats().write_errors != 1) return 5;
    if (cache.Clear().ok()) return 6;
    if (DiskCache::Open(root_ + "/a/new", kMiB).ok()) return 7;
    return 0;
  }));
  EXPECT_EQ(status, 0);
  ASSERT_EQ(chmod((root_ + "/a").c_str(), 0700), 0);
  ASSERT_EQ(chmod(dir_.c_str(), 0700), 0);
}

TEST_F(DiskCacheTest, AFullDiskIsAnErrorAndLeavesNothing) {
  ASSERT_TRUE(Open()->Put("old", "program").ok());
  const int status = ExitStatus(Fork([&] {
    // The nearest thing to a full disk: writes beyond 4096 bytes of a file fail.
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    auto opened = DiskCache::Open(dir_, kMiB);
    if (!opened.ok()) return 2;
    if ((*opened)->Put("new", std::string(10000, 'x')).ok()) return 3;
    if ((*opened)->Put("old", std::string(10000, 'x')).ok()) return 4;
    if ((*opened)->Get("new") || (*opened)->Get("old") != "program") return 5;
    return (*opened)->Put("small", "program").ok() ? 0 : 6;
  }));
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Files().size(), 2u);
}

TEST_F(DiskCacheTest, RemovesWhatWasNotUsedForLongest) {
  const auto cache = Open(kMiB);
  const std::string payload(100000, 'p');
  for (int i = 0; i < 10; ++i) {
    const std::string key = std::to_string(i);
    ASSERT_TRUE(cache->Put(key, payload).ok());
    SetAge(cache->PathOf(key), 1000 - i);
  }
  EXPECT_EQ(cache->stats().evictions, 0);
  EXPECT_EQ(cache->Get("0"), payload);  // now the youngest
  ASSERT_TRUE(cache->Put("10", payload).ok());
  // Down to four fifths: 8 programs of 100 kB, the new one among them.
  EXPECT_EQ(cache->stats().evictions, 3);
  EXPECT_LE(cache->stats().bytes, kMiB / 5 * 4);
  EXPECT_EQ(Files().size(), 8u);
  for (int i : {1, 2, 3}) EXPECT_FALSE(Exists(cache->PathOf(std::to_string(i)))) << i;
  for (int i : {0, 4, 9, 10}) EXPECT_EQ(cache->Get(std::to_string(i)), payload) << i;

  const Status large = cache->Put("large", std::string(kMiB, 'x'));
  EXPECT_EQ(large.code(), Code::kResourceExhausted);
  EXPECT_EQ(Files().size(), 8u);
  ASSERT_TRUE(cache->Clear().ok());
  EXPECT_TRUE(Files().empty());
  EXPECT_FALSE(Open(0)->Put("key", "").ok());
}

TEST_F(DiskCacheTest, LeavesOtherFilesAloneAndSweepsOldTemporaries) {
  const auto cache = Open();
  const std::string old_temporary = dir_ + "/tmp-0123.tpu1";
  const std::string new_temporary = dir_ + "/tmp-4567.tpu1";
  const std::string note = dir_ + "/README";
  for (const std::string& path : {old_temporary, new_temporary, note}) {
    WriteFile(path, std::string(1000, 'x'));
  }
  SetAge(old_temporary, 4000);
  SetAge(note, 4000);
  ASSERT_TRUE(cache->Put("key", "program").ok());
  EXPECT_FALSE(Exists(old_temporary));
  EXPECT_TRUE(Exists(new_temporary));
  ASSERT_TRUE(cache->Clear().ok());
  EXPECT_FALSE(Exists(new_temporary));
  EXPECT_TRUE(Exists(note));
}

TEST_F(DiskCacheTest, KilledWritersNeverLeaveADamagedProgram) {
  const auto cache = Open(8 * kMiB);
  std::mt19937_64 random(1);
  int hits = 0;
  for (uint64_t round = 0; round < 200; ++round) {
    const pid_t child = Fork([&] {
      auto mine = DiskCache::Open(dir_, 8 * kMiB);
      // Made beforehand, so that the time goes into writing.
      std::vector<std::pair<std::string, std::string>> programs;
      for (int i = 0; i < 20; ++i) {
        const std::string key = "key" + std::to_string(i);
        programs.emplace_back(key, Payload(key, round));
      }
      for (;;) {
        for (const auto& [key, payload] : programs) {
          if (!(*mine)->Put(key, payload).ok()) return 1;
        }
      }
    });
    std::this_thread::sleep_for(std::chrono::microseconds(2000 + random() % 8000));
    ASSERT_EQ(kill(child, SIGKILL), 0);
    ASSERT_EQ(ExitStatus(child), 200 + SIGKILL);
    for (int i = 0; i < 20; ++i) {
      const std::string key = "key" + std::to_string(i);
      const auto payload = cache->Get(key);
      hits += payload.has_value();
      ASSERT_TRUE(!payload || Whole(key, *payload)) << round << " " << key;
    }
  }
  EXPECT_GT(hits, 200);
  // Some were killed in the middle of a file.
  int halves = 0;
  for (const std::string& path : Files()) halves += path.find("/tmp-") != std::string::npos;
  EXPECT_GT(halves, 0);
  EXPECT_EQ(cache->stats().damaged, 0);
}

TEST_F(DiskCacheTest, ManyProcessesAndThreads) {
  constexpr int64_t kBound = 4 * kMiB;  // some 40 programs; 60 keys: evictions all the time
  std::vector<pid_t> children;
  for (uint64_t p = 0; p < 4; ++p) {
    children.push_back(Fork([&] {
      auto opened = DiskCache::Open(dir_, kBound);
      if (!opened.ok()) return 1;
      std::atomic<int> wrong{0};
      std::vector<std::thread> threads;
      for (uint64_t t = 0; t < 2; ++t) {
        threads.emplace_back([&, t] {
          std::mt19937_64 random(p * 2 + t);
          for (uint64_t i = 0; i < 200; ++i) {
            const std::string key = "key" + std::to_string(random() % 60);
            const auto payload = (*opened)->Get(key);
            if (payload && !Whole(key, *payload)) ++wrong;
            if (!payload && !(*opened)->Put(key, Payload(key, p << 32 | i)).ok()) ++wrong;
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      const DiskCache::Stats stats = (*opened)->stats();
      return wrong != 0 || stats.damaged != 0 || stats.evictions == 0 || stats.hits == 0 ? 2 : 0;
    }));
  }
  for (pid_t child : children) EXPECT_EQ(ExitStatus(child), 0);
  int64_t total = 0;
  for (const std::string& path : Files()) total += static_cast<int64_t>(ReadFile(path).size());
  // Each process may overshoot by what it writes between two looks.
  EXPECT_LT(total, kBound * 5 / 4);
}

TEST(HostCpuFeatures, DependOnModelAndInstructionsOnly) {
  const std::string one =
      "processor\t: 0\nmodel name\t: Some CPU @ 2GHz\ncpu MHz\t\t: 2000\nflags\t\t: sse avx2\n\n";
  const std::string features = HostCpuFeaturesFrom(one);
  EXPECT_EQ(features.rfind("Some CPU @ 2GHz ", 0), 0u);
  // More processors, another clock: the same.
  std::string two = one + one;
  two.replace(two.find("2000"), 4, "3100");
  EXPECT_EQ(HostCpuFeaturesFrom(two), features);
  std::string other = one;
  other.replace(other.find("avx2"), 4, "avx5");
  EXPECT_NE(HostCpuFeaturesFrom(other), features);
  EXPECT_NE(HostCpuFeaturesFrom("Features\t: fp asimd\n"), HostCpuFeaturesFrom(""));
  EXPECT_NE(HostCpuFeaturesFrom("model name\t:\n\nflags"), "");
  EXPECT_EQ(HostCpuFeatures(), HostCpuFeatures());
  EXPECT_NE(HostCpuFeatures(), HostCpuFeaturesFrom(""));
}

// Prints rather than fails: machines differ.
TEST_F(DiskCacheTest, Time) {
  const auto cache = Open();
  const std::string payload(4000, 'p');
  const std::string text(2000, 't');
  using Clock = std::chrono::steady_clock;
  using Microseconds = std::chrono::duration<double, std::micro>;
  constexpr int kRounds = 1000;
  const auto start = Clock::now();
  for (int i = 0; i < kRounds; ++i) {
    ASSERT_TRUE(cache->Put(text + std::to_string(i), payload).ok());
  }
  const auto middle = Clock::now();
  for (int i = 0; i < kRounds; ++i) ASSERT_TRUE(cache->Get(text + std::to_string(i)));
  const auto end = Clock::now();
  std::printf("4 kB: Put %.0f us, Get %.0f us\n", Microseconds(middle - start).count() / kRounds,
              Microseconds(end - middle).count() / kRounds);
}

}  // namespace
}  // namespace tpu::runtime
