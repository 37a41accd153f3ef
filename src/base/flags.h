// Typed flags: one table says name, environment variable, type, default and meaning of each.
// The environment is read once, at the first use, and only gives the starting value; a bad variable
// keeps the default and is reported by FlagsStatus(), which the first use of a device asks.
// What it is not: a place for anything that changes numerics.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tpu {

enum class FallbackMode : unsigned char { kWarn, kSilent, kError };
enum class EagerMode : unsigned char { kStrict, kDebug, kFuse };

// Bits of Flags::disabled_capabilities().
inline constexpr int64_t kDisableLinearLayout = 1;
inline constexpr int64_t kDisableHostReadable = 2;
inline constexpr int64_t kDisableInlineExecute = 4;
inline constexpr int64_t kDisableNative64Bit = 8;

// Rows of the table, in its order.
enum class FlagId : unsigned char {
  kPlugin,
  kDevices,
  kCache,
  kCacheDir,
  kCacheMaxBytes,
  kFallback,
  kProgramLimit,
  kProgramBytesLimit,
  kCompileThreads,
  kDisableCapabilities,
  kLogLevel,
  kMemoryLimit,
  kEagerMode,
  kExplain,
  kDumpDir,
};
inline constexpr int kFlagCount = static_cast<int>(FlagId::kDumpDir) + 1;

// Current values. Reading one is a relaxed load; the strings take a lock and copy.
class Flags {
 public:
  int64_t devices() const { return Load(FlagId::kDevices); }
  bool cache() const { return Load(FlagId::kCache) != 0; }
  int64_t cache_max_bytes() const { return Load(FlagId::kCacheMaxBytes); }
  FallbackMode fallback() const { return static_cast<FallbackMode>(Load(FlagId::kFallback)); }
  int64_t program_limit() const { return Load(FlagId::kProgramLimit); }
  int64_t program_bytes_limit() const { return Load(FlagId::kProgramBytesLimit); }
  int64_t compile_threads() const { return Load(FlagId::kCompileThreads); }
  int64_t disabled_capabilities() const { return Load(FlagId::kDisableCapabilities); }
  int64_t log_level() const { return Load(FlagId::kLogLevel); }
  int64_t memory_limit() const { return Load(FlagId::kMemoryLimit); }
  EagerMode eager_mode() const { return static_cast<EagerMode>(Load(FlagId::kEagerMode)); }
  bool explain() const { return Load(FlagId::kExplain) != 0; }
  std::string plugin() const;
  std::string dump_dir() const;   // empty: nothing is dumped
  std::string cache_dir() const;  // absolute, or empty where the user has no home

 private:
  friend struct FlagTable;
  int64_t Load(FlagId id) const {
    return values_[static_cast<int>(id)].load(std::memory_order_relaxed);
  }
  std::array<std::atomic<int64_t>, kFlagCount> values_{};  // a string's is unused
};

namespace internal {
extern std::atomic<const Flags*> flags;
const Flags& InitFlags();
// Forgets every value and reads the environment again.
void ResetFlagsForTest();
}  // namespace internal

inline const Flags& GetFlags() {
  const Flags* flags = internal::flags.load(std::memory_order_acquire);
  return flags != nullptr ? *flags : internal::InitFlags();
}

// What is wrong with the environment, all of it in one message; Ok if nothing is. Setting a flag
// takes back the complaint about its variable.
Status FlagsStatus();

// Sets a flag from text, as its environment variable would. Bytes take K, M, G, T (binary).
Status SetFlag(std::string_view name, std::string_view value);
// The value as text that SetFlag would take.
Result<std::string> GetFlag(std::string_view name);

// From here on the flags that only count when a device starts (plugin, devices, ...) can't change:
// SetFlag says so rather than doing nothing. The runtime calls it before it loads the plugin.
void FreezeStartupFlags();

struct FlagRow {
  std::string name;
  std::string variable;
  std::string type;  // "int 0..1024", "on|off", "string", ...
  std::string value;
  std::string default_value;
  std::string source;  // "default", "environment" or "set"
  std::string doc;
};
std::vector<FlagRow> ListFlags();

}  // namespace tpu
