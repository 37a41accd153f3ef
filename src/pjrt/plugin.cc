// Plugin: loading a PJRT shared object and checking that it can be used.
#include "pjrt/plugin.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "pjrt/call.h"
#include "pjrt/named_values.h"
#include "pjrt/pjrt.h"

namespace tpu::pjrt {
namespace {

bool ReadAt(int fd, void* out, size_t bytes, uint64_t offset) {
  auto* at = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t n = pread(fd, at, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    offset += static_cast<uint64_t>(n);
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

std::string Hex(const unsigned char* bytes, size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    out += kDigits[bytes[i] >> 4];
    out += kDigits[bytes[i] & 15];
  }
  return out;
}

// The build id among the notes of one segment.
std::string BuildIdInNotes(const std::string& notes) {
  const auto padded = [](size_t n) { return (n + 3) & ~size_t{3}; };
  size_t at = 0;
  while (at + sizeof(Elf64_Nhdr) <= notes.size()) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof(note));
    const size_t name = at + sizeof(note);
    const size_t desc = name + padded(note.n_namesz);
    if (desc + note.n_descsz > notes.size()) return {};
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes.data() + name, "GNU", 4) == 0) {
      return Hex(reinterpret_cast<const unsigned char*>(notes.data()) + desc, note.n_descsz);
    }
    at = desc + padded(note.n_descsz);
  }
  return {};
}

// Closes the file it owns.
class File {
 public:
  explicit File(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&&) = delete;
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

// Takes the file opened before dlopen: an upgrade that replaces the path must not be taken for
// what is loaded.
std::shared_future<std::string> Identify(File file) {
  std::string build_id = ElfBuildId(file.fd());
  if (!build_id.empty()) {
    std::promise<std::string> ready;
    ready.set_value(std::move(build_id));
    return ready.get_future().share();
  }
  return std::async(std::launch::async, [file = std::move(file)] { return FileHash(file.fd()); })
      .share();
}

bool IsLibtpu(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return path.find("libtpu", slash == std::string::npos ? 0 : slash) != std::string::npos;
}

// What must stand in the environment before the plugin's initialisers run. The user's own values
// win.
void PrepareEnvironment(const std::string& path) {
  setenv("TF_CPP_MIN_LOG_LEVEL", "3", 0);
  if (IsLibtpu(path) && !TpuChipsPresent()) {
    // Without the first, start-up away from Google Cloud waits for a metadata server; without the
    // second, a second process fails on a lock file.
    setenv("TPU_SKIP_MDS_QUERY", "1", 0);
    setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "1", 0);
  }
}

Result<const PJRT_Api*> OpenApi(const std::string& path) {
  PrepareEnvironment(path);
  // Never closed: a plugin's threads outlive its last client.
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return Unavailable("can't load the PJRT plugin ", path, ": ", why ? why : "no reason given");
  }
  dlerror();
  void* symbol = dlsym(handle, "GetPjrtApi");
  if (symbol == nullptr) {
    const char* why = dlerror();
    return Unavailable(path, " is not a PJRT plugin: ", why ? why : "GetPjrtApi is null");
  }
  const PJRT_Api* api = reinterpret_cast<const PJRT_Api* (*)()>(symbol)();
  TPU_RETURN_IF_ERROR(CheckApi(api, path));
  return api;
}

}  // namespace

Status CheckApi(const PJRT_Api* api, const std::string& path) {
  if (api == nullptr) return Unavailable("GetPjrtApi of ", path, " returned null");
  if (api->struct_size < offsetof(abi::Table, Error_Destroy)) {
    return Unavailable(path, " is not a usable PJRT plugin: its function table has ",
                       api->struct_size, " bytes");
  }
  const int major = api->pjrt_api_version.major_version;
  const int minor = api->pjrt_api_version.minor_version;
  if (major != abi::kMajor || minor < Plugin::kMinMinor) {
    return Unavailable("the PJRT plugin ", path, " has API ", major, ".", minor,
                       "; this build needs ", abi::kMajor, ".", Plugin::kMinMinor, " or newer: ",
                       major > abi::kMajor ? "update torch-tpu" : "update the plugin");
  }
  // Errors can't be read without these, so they are asked for once and here.
  if (!HasSlot<&abi::Table::Error_Destroy>(api) || !HasSlot<&abi::Table::Error_Message>(api) ||
      !HasSlot<&abi::Table::Error_GetCode>(api)) {
    return Unavailable("the PJRT plugin ", path, " lacks the error functions");
  }
  return Status::Ok();
}

std::string ElfBuildId(int fd) {
  Elf64_Ehdr header;
  if (!ReadAt(fd, &header, sizeof(header), 0)) return {};
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phentsize != sizeof(Elf64_Phdr)) {
    return {};
  }
  constexpr uint64_t kMostNotes = 1 << 20;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    const uint64_t at = header.e_phoff + static_cast<uint64_t>(i) * sizeof(segment);
    if (!ReadAt(fd, &segment, sizeof(segment), at)) return {};
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMostNotes) continue;
    std::string notes(segment.p_filesz, '\0');
    if (!ReadAt(fd, notes.data(), notes.size(), segment.p_offset)) continue;
    std::string id = BuildIdInNotes(notes);
    if (!id.empty()) return id;
  }
  return {};
}

// FNV-1a over 64-bit words in four lanes: at memory speed, and only against accidents.
std::string FileHash(int fd) {
  constexpr uint64_t kPrime = 0x100000001b3;
  constexpr size_t kLanes = 4;
  constexpr size_t kChunk = size_t{1} << 18;
  struct stat info{};
  if (fd < 0 || fstat(fd, &info) != 0) return {};
  const auto size = static_cast<uint64_t>(info.st_size);
  std::array<uint64_t, kLanes> lanes;
  for (size_t k = 0; k < kLanes; ++k) lanes[k] = 0xcbf29ce484222325 + k;
  std::vector<uint64_t> chunk(kChunk / sizeof(uint64_t));
  for (uint64_t at = 0; at < size; at += kChunk) {
    const size_t bytes = static_cast<size_t>(std::min<uint64_t>(kChunk, size - at));
    if (bytes < kChunk) std::fill(chunk.begin(), chunk.end(), 0);
    if (!ReadAt(fd, chunk.data(), bytes, at)) return {};
    for (size_t i = 0; i < chunk.size(); i += kLanes) {
      for (size_t k = 0; k < kLanes; ++k) {
        uint64_t& lane = lanes[k];
        lane = (lane ^ chunk[i + k]) * kPrime;
        lane ^= lane >> 29;  // multiplication alone never carries high bits down
      }
    }
  }
  uint64_t hash = size;
  for (uint64_t lane : lanes) {
    hash = (hash ^ lane) * kPrime;
    hash ^= hash >> 32;
  }
  std::array<unsigned char, 8> bytes;
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(hash >> (56 - 8 * i));
  return "hash-" + Hex(bytes.data(), bytes.size());
}

Result<Plugin*> Plugin::Load(const std::string& path) {
  // One table for the process, as the plugins themselves are; both live to its end.
  static std::mutex* const mutex = new std::mutex;
  static auto* const loaded = new std::map<std::string, Plugin*>;
  std::array<char, PATH_MAX> real;
  if (realpath(path.c_str(), real.data()) == nullptr) {
    return Unavailable("can't load the PJRT plugin ", path, ": ", std::strerror(errno));
  }
  const std::string canonical = real.data();
  std::lock_guard lock(*mutex);
  if (auto it = loaded->find(canonical); it != loaded->end()) return it->second;

  File file(canonical);
  TPU_ASSIGN_OR_RETURN(const PJRT_Api* api, OpenApi(canonical));
  std::unique_ptr<Plugin> plugin(new Plugin);
  plugin->api_ = api;
  plugin->path_ = canonical;
  plugin->minor_ = api->pjrt_api_version.minor_version;
  plugin->identity_ = Identify(std::move(file));
  abi::PluginInitializeArgs initialize;
  if (Status status = Call<&abi::Table::Plugin_Initialize>(api, &initialize); !status.ok()) {
    return Unavailable("the PJRT plugin ", canonical, " failed to start: ", status.message());
  }
  // Attributes are facts for people and for choosing a program version; a plugin may have none.
  abi::PluginAttributesArgs attributes;
  if (Call<&abi::Table::Plugin_Attributes>(api, &attributes).ok()) {
    plugin->attributes_ = FromAbi(attributes.attributes, attributes.num_attributes);
  }
  return loaded->emplace(canonical, plugin.release()).first->second;
}

}  // namespace tpu::pjrt
