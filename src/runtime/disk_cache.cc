// The cache of compiled programs on disk: file format, trust, eviction.
//
// A file is a Header and the payload. Writers make a temporary file in the same folder and rename
// it, so that readers see whole files only, whatever dies when; the checksums are for disks that
// lost power or were full. All access goes through the descriptor of the folder that was checked.
#include "runtime/disk_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/counters.h"
#include "base/hash.h"
#include "base/sha256.h"

namespace tpu::runtime {
namespace {

// Part of every name: a process with another format neither reads nor removes ours.
constexpr std::string_view kSuffix = ".tpu1";
constexpr std::string_view kTemporary = "tmp-";
constexpr uint64_t kMagic = 0x31304350'55505443u;  // "CTPUPC01"; other byte orders don't match
constexpr uint32_t kVersion = 1;
constexpr time_t kTemporaryLife = 3600;  // seconds; a writer needs milliseconds

struct Header {
  uint64_t magic;
  uint32_t version;
  uint32_t header_bytes;
  Sha256Digest key;
  uint64_t key_bytes;
  uint64_t payload_bytes;
  uint64_t payload_hash;
  uint64_t header_hash;  // of all before it
};
static_assert(sizeof(Header) == 80, "no padding: the bytes are hashed and written");

uint64_t HeaderHash(const Header& header) {
  return HashBytes({reinterpret_cast<const char*>(&header), offsetof(Header, header_hash)});
}

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

std::string ErrorText(int error) {
  std::array<char, 256> buffer;
  return strerror_r(error, buffer.data(), buffer.size());
}

std::string UserName(uid_t uid) {
  passwd entry;
  passwd* found = nullptr;
  std::array<char, 4096> buffer;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    return internal::Concat(found->pw_name, " (", uid, ")");
  }
  return internal::Concat("user ", uid);
}

// Why what `info` describes can't be trusted; empty if it can.
std::string Distrust(const struct stat& info) {
  if (info.st_uid != geteuid()) {
    return internal::Concat("belongs to ", UserName(info.st_uid), ", not to ", UserName(geteuid()));
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return internal::Concat("of ", UserName(info.st_uid), " can be written by others");
  }
  return {};
}

bool ReadAll(int fd, char* to, size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = read(fd, to, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

// Zero or the error.
int WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return 0;
}

std::string NameOf(const Sha256Digest& key) { return Hex(key) + std::string(kSuffix); }

bool IsProgram(std::string_view name) {
  return name.size() == 64 + kSuffix.size() && name.ends_with(kSuffix) &&
         name.find_first_not_of("0123456789abcdef") == 64;
}

bool IsTemporary(std::string_view name) {
  return name.starts_with(kTemporary) && name.ends_with(kSuffix);
}

struct Entry {
  std::string name;
  timespec used;
  int64_t bytes;
};

// Programs and temporary files of the folder. An entry that vanishes meanwhile is left out.
Result<std::vector<Entry>> List(int dir_fd) {
  Fd again(openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* const dir = again.get() < 0 ? nullptr : fdopendir(again.get());
  if (dir == nullptr) return Unavailable("can't list it: ", ErrorText(errno));
  again.release();
  std::vector<Entry> out;
  while (const dirent* item = readdir(dir)) {
    const std::string_view name = item->d_name;
    if (!IsProgram(name) && !IsTemporary(name)) continue;
    struct stat info;
    if (fstatat(dir_fd, item->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    out.push_back({std::string(name), info.st_mtim, info.st_size});
  }
  closedir(dir);
  return out;
}

// Zero or the error. Every missing folder of the path is made for the user alone.
int MakeFolders(const std::string& dir) {
  for (size_t at = 1; at != std::string::npos;) {
    at = dir.find('/', at);
    const std::string path = dir.substr(0, at);
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
      const int error = errno;
      struct stat info;
      // A read-only or foreign parent that is there already is no obstacle.
      if (stat(path.c_str(), &info) != 0) return error;
    }
    if (at != std::string::npos) ++at;
  }
  return 0;
}

}  // namespace

Result<std::unique_ptr<DiskCache>> DiskCache::Open(const std::string& dir, int64_t max_bytes) {
  std::string path = dir;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::string what = "the program cache folder '" + path + "' ";
  if (path.empty()) {
    return Unavailable("there is no folder for the program cache; set TORCH_TPU_CACHE_DIR");
  }
  if (const int error = MakeFolders(path); error != 0) {
    return Unavailable(what, "can't be made: ", ErrorText(error));
  }
  Fd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd.get() < 0) {
    const int error = errno;
    struct stat info;
    if (lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) {
      return Unavailable(what, "of ", UserName(info.st_uid),
                         " is a symbolic link; set TORCH_TPU_CACHE_DIR to where it leads");
    }
    return Unavailable(what, "can't be opened: ", ErrorText(error));
  }
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return Unavailable(what, ErrorText(errno));
  if (const std::string why = Distrust(info); !why.empty()) {
    return Unavailable(what, why, "; programs in it would run as you, so it is not used");
  }
  return std::unique_ptr<DiskCache>(new DiskCache(path, fd.release(), max_bytes));
}

DiskCache::DiskCache(std::string dir, int fd, int64_t max_bytes)
    : dir_(std::move(dir)), fd_(fd), max_bytes_(max_bytes) {}

DiskCache::~DiskCache() { close(fd_); }

std::string DiskCache::PathOf(std::string_view key) const {
  return dir_ + "/" + NameOf(Sha256Of(key));
}

DiskCache::Stats DiskCache::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

std::optional<std::string> DiskCache::Get(std::string_view key) {
  std::optional<std::string> payload = Read(NameOf(Sha256Of(key)), key);
  std::lock_guard lock(mutex_);
  ++(payload ? stats_.hits : stats_.misses);
  if (payload) Count(counters.disk_hits);
  return payload;
}

std::optional<std::string> DiskCache::Read(const std::string& name, std::string_view key) {
  // O_NONBLOCK: opening a pipe must not hang.
  Fd fd(openat(fd_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0) {
    if (errno == ELOOP) Refuse(name, "is a symbolic link");
    return std::nullopt;
  }
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return std::nullopt;
  std::string why = S_ISREG(info.st_mode) ? Distrust(info) : "is not a plain file";
  if (!why.empty()) {
    Refuse(name, std::move(why));
    return std::nullopt;
  }
  Header header;
  const auto file_bytes = static_cast<uint64_t>(info.st_size);
  if (file_bytes < sizeof header ||
      !ReadAll(fd.get(), reinterpret_cast<char*>(&header), sizeof header) ||
      header.magic != kMagic || header.version != kVersion ||
      header.header_bytes != sizeof header || header.header_hash != HeaderHash(header) ||
      header.key != Sha256Of(key) || header.key_bytes != key.size() ||
      header.payload_bytes != file_bytes - sizeof header) {
    Remove(name);
    return std::nullopt;
  }
  std::string payload(header.payload_bytes, '\0');
  if (!ReadAll(fd.get(), payload.data(), payload.size()) ||
      HashBytes(payload) != header.payload_hash) {
    Remove(name);
    return std::nullopt;
  }
  // Marks it as used. Fails on a read-only file system, where nothing is evicted either.
  (void)futimens(fd.get(), nullptr);
  return payload;
}

void DiskCache::Refuse(const std::string& name, std::string why) {
  Count(counters.disk_errors);
  std::lock_guard lock(mutex_);
  ++stats_.refused;
  stats_.last_refusal = dir_ + "/" + name + " " + why;
}

void DiskCache::Remove(const std::string& name) {
  // Another process may have put a good file in its place meanwhile; then that is compiled again.
  unlinkat(fd_, name.c_str(), 0);
  Count(counters.disk_errors);
  std::lock_guard lock(mutex_);
  ++stats_.damaged;
}

Status DiskCache::Put(std::string_view key, std::string_view payload) {
  Header header{};
  header.magic = kMagic;
  header.version = kVersion;
  header.header_bytes = sizeof header;
  header.key = Sha256Of(key);
  header.key_bytes = key.size();
  header.payload_bytes = payload.size();
  header.payload_hash = HashBytes(payload);
  header.header_hash = HeaderHash(header);
  const auto bytes = static_cast<int64_t>(sizeof header + payload.size());

  Status status;
  if (bytes > max_bytes_ / 5 * 4) {
    status = ResourceExhausted("a program of ", payload.size(), " bytes is too large for ",
                               max_bytes_, " (TORCH_TPU_CACHE_MAX_BYTES)");
  } else {
    std::lock_guard lock(mutex_);
    status = MakeRoom(bytes);
  }
  if (status.ok()) {
    status =
        Write(NameOf(header.key), {reinterpret_cast<const char*>(&header), sizeof header}, payload);
  }
  std::lock_guard lock(mutex_);
  if (!status.ok()) {
    Count(counters.disk_errors);
    ++stats_.write_errors;
    return status.Annotate("the program cache folder '" + dir_ + "': ");
  }
  Count(counters.disk_writes);
  ++stats_.writes;
  ++writes_since_scan_;
  bytes_since_scan_ += bytes;
  stats_.bytes += bytes;
  return {};
}

Status DiskCache::Write(const std::string& name, std::string_view header,
                        std::string_view payload) {
  // Random, not the process id: containers share folders but not ids.
  std::array<uint64_t, 2> random{};
  if (getrandom(random.data(), sizeof random, 0) != sizeof random) {
    return Unavailable("no random name: ", ErrorText(errno));
  }
  std::array<char, 33> hex;
  std::snprintf(hex.data(), hex.size(), "%016llx%016llx",
                static_cast<unsigned long long>(random[0]),
                static_cast<unsigned long long>(random[1]));
  const std::string temporary = internal::Concat(kTemporary, hex.data(), kSuffix);
  Fd fd(openat(fd_, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (fd.get() < 0) return Unavailable("can't write in it: ", ErrorText(errno));
  int error = WriteAll(fd.get(), header);
  if (error == 0) error = WriteAll(fd.get(), payload);
  // Closing may report what writing did not (quotas, network file systems).
  if (close(fd.release()) != 0 && error == 0) error = errno;
  if (error == 0 && renameat(fd_, temporary.c_str(), fd_, name.c_str()) != 0) error = errno;
  if (error == 0) return {};
  unlinkat(fd_, temporary.c_str(), 0);
  return Unavailable("can't write in it: ", ErrorText(error));
}

Status DiskCache::MakeRoom(int64_t bytes) {
  // Looking costs time in a large folder, and other processes write too: look at the first write,
  // then when a 32nd of the bound or 512 programs were written, or the bound seems reached.
  const bool look = writes_since_scan_ < 0 || writes_since_scan_ >= 512 ||
                    bytes_since_scan_ + bytes > max_bytes_ / 32 ||
                    stats_.bytes + bytes > max_bytes_;
  if (!look) return {};
  TPU_ASSIGN_OR_RETURN(std::vector<Entry> entries, List(fd_));
  const time_t now = time(nullptr);
  int64_t total = 0;
  std::erase_if(entries, [&](const Entry& entry) {
    if (IsTemporary(entry.name)) {
      // Left behind by a process that was killed.
      const bool stale = now - entry.used.tv_sec > kTemporaryLife;
      if (stale) unlinkat(fd_, entry.name.c_str(), 0);
      if (!stale) total += entry.bytes;
      return true;
    }
    total += entry.bytes;
    return false;
  });
  if (total + bytes > max_bytes_) {
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return std::tie(a.used.tv_sec, a.used.tv_nsec, a.name) <
             std::tie(b.used.tv_sec, b.used.tv_nsec, b.name);
    });
    for (const Entry& entry : entries) {
      if (total + bytes <= max_bytes_ / 5 * 4) break;
      // Gone already: another process makes room too.
      if (unlinkat(fd_, entry.name.c_str(), 0) != 0 && errno != ENOENT) {
        return Unavailable("can't remove old programs: ", ErrorText(errno));
      }
      total -= entry.bytes;
      ++stats_.evictions;
    }
  }
  stats_.bytes = total;
  writes_since_scan_ = 0;
  bytes_since_scan_ = 0;
  return {};
}

Status DiskCache::Clear() {
  std::lock_guard lock(mutex_);
  const std::string what = "the program cache folder '" + dir_ + "' can't be emptied: ";
  const Result<std::vector<Entry>> entries = List(fd_);
  if (!entries.ok()) return entries.status().Annotate(what);
  int error = 0;
  for (const Entry& entry : *entries) {
    if (unlinkat(fd_, entry.name.c_str(), 0) != 0 && errno != ENOENT) error = errno;
  }
  stats_.bytes = 0;
  writes_since_scan_ = -1;
  return error == 0 ? Status::Ok() : Unavailable(what, ErrorText(error));
}

std::string HostCpuFeaturesFrom(std::string_view cpuinfo) {
  // x86, then Arm. A machine may have several kinds of cores, so all lines are taken, each once.
  constexpr std::string_view kKeys[] = {
      "vendor_id",       "cpu family",  "model",    "model name",       "flags",
      "CPU implementer", "CPU variant", "CPU part", "CPU architecture", "Features"};
  std::set<std::string> lines;
  std::string name = "unknown processor";
  while (!cpuinfo.empty()) {
    const size_t end = cpuinfo.find('\n');
    const std::string_view line = cpuinfo.substr(0, end);
    cpuinfo = end == std::string_view::npos ? std::string_view() : cpuinfo.substr(end + 1);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    if (std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys)) continue;
    lines.emplace(line);
    if (key == "model name") name = line.substr(std::min(line.size(), colon + 2));
  }
  Sha256 sha;
  for (const std::string& line : lines) {
    sha.Update(line);
    sha.Update("\n");
  }
  utsname machine{};
  if (uname(&machine) == 0) sha.Update(machine.machine);
  return name + " " + Hex(sha.Finish()).substr(0, 32);
}

std::string HostCpuFeatures() {
  std::string text;
  Fd fd(open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC));
  std::array<char, 16384> buffer;
  while (fd.get() >= 0) {
    const ssize_t got = read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  return HostCpuFeaturesFrom(text);
}

}  // namespace tpu::runtime
