// The table of flags, their parsing and printing.
#include "base/flags.h"

#include <pwd.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <optional>

namespace tpu {
namespace {

enum class Type : unsigned char { kString, kPath, kInt, kBytes, kSwitch, kChoice, kSet };
enum class Source : unsigned char { kDefault, kEnvironment, kSet };

struct Row {
  FlagId id;
  std::string_view name;
  std::string_view variable;
  Type type;
  std::string_view default_value;  // kPath: worked out from the user's home
  std::string_view choices;        // kChoice, kSet: words between '|'
  int64_t min;                     // kInt, kBytes
  int64_t max;
  bool startup;  // only looked at when a device starts
  std::string_view doc;
};

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

constexpr std::array<Row, kFlagCount> kRows = {{
    {FlagId::kPlugin, "plugin", "TORCH_TPU_PLUGIN", Type::kString, "", "", 0, 0, true,
     "PJRT plugin: a file, or the name of a package; empty finds one"},
    {FlagId::kDevices, "devices", "TORCH_TPU_DEVICES", Type::kInt, "1", "", 0, 1024, true,
     "devices that a CPU plugin makes; 0 means no device"},
    {FlagId::kCache, "cache", "TORCH_TPU_CACHE", Type::kSwitch, "on", "off|on", 0, 0, false,
     "keep compiled programs on disk"},
    {FlagId::kCacheDir, "cache_dir", "TORCH_TPU_CACHE_DIR", Type::kPath, "", "", 0, 0, false,
     "folder of the compiled programs"},
    {FlagId::kCacheMaxBytes, "cache_max_bytes", "TORCH_TPU_CACHE_MAX_BYTES", Type::kBytes,
     "4294967296", "", 0, kMax, false, "size that the folder may reach"},
    {FlagId::kFallback, "fallback", "TORCH_TPU_FALLBACK", Type::kChoice, "warn",
     "warn|silent|error", 0, 0, false,
     "what an op without a lowering does: runs on the CPU, or raises"},
    {FlagId::kProgramLimit, "program_limit", "TORCH_TPU_PROGRAM_LIMIT", Type::kInt, "4096", "", 1,
     kMax, false, "compiled programs kept in memory"},
    {FlagId::kProgramBytesLimit, "program_bytes_limit", "TORCH_TPU_PROGRAM_BYTES_LIMIT",
     Type::kBytes, "1073741824", "", 1, kMax, false, "bytes of compiled programs kept in memory"},
    {FlagId::kCompileThreads, "compile_threads", "TORCH_TPU_COMPILE_THREADS", Type::kInt, "2", "",
     1, 256, true, "threads that compile"},
    {FlagId::kDisableCapabilities, "disable_capabilities", "TORCH_TPU_DISABLE_CAPABILITIES",
     Type::kSet, "", "linear_layout|host_readable|inline_execute|native_64bit", 0, 0, true,
     "device capabilities to do without, separated by commas (for tests)"},
    {FlagId::kLogLevel, "log_level", "TORCH_TPU_LOG", Type::kInt, "1", "", 0, 3, false,
     "0 errors, 1 and warnings, 2 and what happens, 3 everything"},
    {FlagId::kMemoryLimit, "memory_limit", "TORCH_TPU_MEMORY_LIMIT", Type::kBytes, "0", "", 0, kMax,
     false, "bytes that the live buffers of a device may take; 0 is no limit"},
    {FlagId::kEagerMode, "eager_mode", "TORCH_TPU_EAGER_MODE", Type::kChoice, "strict",
     "strict|debug|fuse", 0, 0, false, "when the work of a call runs"},
    {FlagId::kExplain, "explain", "TORCH_TPU_EXPLAIN", Type::kSwitch, "off", "off|on", 0, 0, false,
     "print each new program with its cause"},
    {FlagId::kDumpDir, "dump_dir", "TORCH_TPU_DUMP_DIR", Type::kString, "", "", 0, 0, false,
     "folder that gets the StableHLO text of each new call; empty: none"},
}};

constexpr bool RowsInOrder() {
  for (int i = 0; i < kFlagCount; ++i) {
    if (static_cast<int>(kRows[i].id) != i) return false;
  }
  return true;
}
static_assert(RowsInOrder(), "the table follows FlagId");

// Strings and bookkeeping; the numbers are in Flags, outside the lock.
struct State {
  std::mutex mutex;
  Flags flags;
  std::array<std::string, kFlagCount> texts;
  std::array<Source, kFlagCount> sources{};
  std::array<std::string, kFlagCount> errors;  // of the environment
  bool frozen = false;
};

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    out.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return out;
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::optional<int64_t> IndexOf(std::string_view choices, std::string_view word) {
  const std::vector<std::string_view> words = Split(choices, '|');
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == word) return static_cast<int64_t>(i);
  }
  return std::nullopt;
}

// "4096", and for bytes "4G" or "4GiB" too.
std::optional<int64_t> ParseInt(std::string_view text, bool bytes) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit(rest, static_cast<size_t>(end - rest));
  if (unit.empty()) return number;
  constexpr std::string_view kUnits = "KMGT";
  const size_t power = kUnits.find(unit[0]);
  if (!bytes || power == std::string_view::npos) return std::nullopt;
  if (unit.size() > 1 && unit.substr(1) != "iB" && unit.substr(1) != "B") return std::nullopt;
  if (__builtin_mul_overflow(number, int64_t{1} << (10 * (power + 1)), &number)) {
    return std::nullopt;
  }
  return number;
}

std::optional<int64_t> ParseSwitch(std::string_view text) {
  if (text == "on" || text == "1" || text == "true") return 1;
  if (text == "off" || text == "0" || text == "false") return 0;
  return std::nullopt;
}

std::optional<int64_t> ParseSet(std::string_view choices, std::string_view text) {
  int64_t mask = 0;
  for (std::string_view word : Split(text, ',')) {
    word = Trim(word);
    if (word.empty()) continue;
    const std::optional<int64_t> index = IndexOf(choices, word);
    if (!index) return std::nullopt;
    mask |= int64_t{1} << *index;
  }
  return mask;
}

std::optional<int64_t> Parse(const Row& row, std::string_view text) {
  switch (row.type) {
    case Type::kString:
    case Type::kPath: return 0;
    case Type::kSwitch: return ParseSwitch(text);
    case Type::kChoice: return IndexOf(row.choices, text);
    case Type::kSet: return ParseSet(row.choices, text);
    case Type::kInt:
    case Type::kBytes: {
      const std::optional<int64_t> number = ParseInt(text, row.type == Type::kBytes);
      if (!number || *number < row.min || *number > row.max) return std::nullopt;
      return number;
    }
  }
  return std::nullopt;
}

bool IsText(const Row& row) { return row.type == Type::kString || row.type == Type::kPath; }

std::string TypeText(const Row& row) {
  std::string out;
  switch (row.type) {
    case Type::kString: return "string";
    case Type::kPath: return "path";
    case Type::kSwitch: return "on|off";
    case Type::kChoice: return std::string(row.choices);
    case Type::kSet: return "list of " + std::string(row.choices);
    case Type::kInt: out = "int "; break;
    case Type::kBytes: out = "bytes "; break;
  }
  out += std::to_string(row.min) + "..";
  if (row.max != kMax) out += std::to_string(row.max);
  return out;
}

std::string ValueText(const Row& row, int64_t value) {
  const std::vector<std::string_view> words = Split(row.choices, '|');
  switch (row.type) {
    case Type::kSwitch:
    case Type::kChoice: return std::string(words[value]);
    case Type::kSet: {
      std::string out;
      for (size_t i = 0; i < words.size(); ++i) {
        if ((value >> i & 1) == 0) continue;
        if (!out.empty()) out += ',';
        out += words[i];
      }
      return out;
    }
    default: return std::to_string(value);
  }
}

// $XDG_CACHE_HOME/torch_tpu or ~/.cache/torch_tpu; empty where there is no home.
std::string DefaultCacheDir() {
  // The XDG rules say to ignore a relative path.
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return std::string(cache) + "/torch_tpu";
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.cache/torch_tpu";
  passwd entry;
  passwd* found = nullptr;
  std::array<char, 4096> buffer;
  if (getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found) != 0 || !found) return {};
  if (found->pw_dir == nullptr || found->pw_dir[0] != '/') return {};
  return std::string(found->pw_dir) + "/.cache/torch_tpu";
}

// Relative paths mean the folder that the process is in now, not the one it is in later.
std::string Absolute(std::string_view path) {
  if (path.empty() || path[0] == '/') return std::string(path);
  std::array<char, 4096> here;
  if (getcwd(here.data(), here.size()) == nullptr) return std::string(path);
  return std::string(here.data()) + "/" + std::string(path);
}

std::string DefaultText(const Row& row) {
  return row.type == Type::kPath ? DefaultCacheDir() : std::string(row.default_value);
}

}  // namespace

// Friend of Flags: the only code that writes values. All under the lock of the state.
struct FlagTable {
  static State& Get() {
    static State* const state = [] {
      State* made = new State;  // never destroyed: threads may read flags while the process ends
      ReadEnvironment(*made);
      return made;
    }();
    return *state;
  }

  static void Store(State& state, const Row& row, int64_t value, std::string_view text) {
    const int i = static_cast<int>(row.id);
    if (row.type == Type::kPath) {
      state.texts[i] = Absolute(text);
    } else if (row.type == Type::kString) {
      state.texts[i] = text;
    }
    state.flags.values_[i].store(value, std::memory_order_relaxed);
  }

  static void ReadEnvironment(State& state) {
    for (int i = 0; i < kFlagCount; ++i) {
      const Row& row = kRows[i];
      const std::string fallback = DefaultText(row);
      Store(state, row, Parse(row, fallback).value_or(0), fallback);
      state.sources[i] = Source::kDefault;
      state.errors[i].clear();
      const char* variable = std::getenv(std::string(row.variable).c_str());
      const std::string_view text = Trim(variable == nullptr ? "" : variable);
      if (text.empty()) continue;  // an empty variable is an unset one
      if (const std::optional<int64_t> value = Parse(row, text)) {
        Store(state, row, *value, text);
        state.sources[i] = Source::kEnvironment;
      } else {
        state.errors[i] = internal::Concat("environment variable ", row.variable, " is '", text,
                                           "'; it takes ", TypeText(row));
      }
    }
  }

  static int64_t Number(const State& state, int i) {
    return state.flags.values_[i].load(std::memory_order_relaxed);
  }

  static std::string Text(const State& state, const Row& row) {
    const int i = static_cast<int>(row.id);
    return IsText(row) ? state.texts[i] : ValueText(row, Number(state, i));
  }

  static std::string String(FlagId id) {
    State& state = Get();
    std::lock_guard lock(state.mutex);
    return state.texts[static_cast<int>(id)];
  }

  static Result<const Row*> Find(std::string_view name) {
    std::string names;
    for (const Row& row : kRows) {
      if (row.name == name) return &row;
      if (!names.empty()) names += ", ";
      names += row.name;
    }
    return InvalidArgument("there is no flag '", name, "'; the flags are ", names);
  }
};

std::string Flags::plugin() const { return FlagTable::String(FlagId::kPlugin); }
std::string Flags::dump_dir() const { return FlagTable::String(FlagId::kDumpDir); }
std::string Flags::cache_dir() const { return FlagTable::String(FlagId::kCacheDir); }

namespace internal {

constinit std::atomic<const Flags*> flags{nullptr};

const Flags& InitFlags() {
  const Flags& made = FlagTable::Get().flags;
  flags.store(&made, std::memory_order_release);
  return made;
}

void ResetFlagsForTest() {
  State& state = FlagTable::Get();
  std::lock_guard lock(state.mutex);
  state.frozen = false;
  FlagTable::ReadEnvironment(state);
}

}  // namespace internal

Status FlagsStatus() {
  State& state = FlagTable::Get();
  std::lock_guard lock(state.mutex);
  std::string all;
  for (const std::string& error : state.errors) {
    if (error.empty()) continue;
    if (!all.empty()) all += "; ";
    all += error;
  }
  return all.empty() ? Status::Ok() : InvalidArgument(all);
}

Status SetFlag(std::string_view name, std::string_view value) {
  TPU_ASSIGN_OR_RETURN(const Row* row, FlagTable::Find(name));
  const std::string_view text = Trim(value);
  const std::optional<int64_t> parsed = Parse(*row, text);
  if (!parsed) {
    return InvalidArgument("flag ", name, " can't be '", value, "'; it takes ", TypeText(*row));
  }
  State& state = FlagTable::Get();
  std::lock_guard lock(state.mutex);
  const int i = static_cast<int>(row->id);
  const bool same = IsText(*row) ? state.texts[i] == text : FlagTable::Number(state, i) == *parsed;
  if (row->startup && state.frozen && !same) {
    return InvalidArgument("flag ", name, " can't be changed to '", value,
                           "' after a device has started; set it earlier, or ", row->variable,
                           " in the environment");
  }
  FlagTable::Store(state, *row, *parsed, text);
  state.sources[i] = Source::kSet;
  state.errors[i].clear();
  return {};
}

Result<std::string> GetFlag(std::string_view name) {
  TPU_ASSIGN_OR_RETURN(const Row* row, FlagTable::Find(name));
  State& state = FlagTable::Get();
  std::lock_guard lock(state.mutex);
  return FlagTable::Text(state, *row);
}

void FreezeStartupFlags() {
  State& state = FlagTable::Get();
  std::lock_guard lock(state.mutex);
  state.frozen = true;
}

std::vector<FlagRow> ListFlags() {
  constexpr std::string_view kSources[] = {"default", "environment", "set"};
  State& state = FlagTable::Get();
  std::lock_guard lock(state.mutex);
  std::vector<FlagRow> out;
  for (const Row& row : kRows) {
    const int i = static_cast<int>(row.id);
    out.push_back({std::string(row.name), std::string(row.variable), TypeText(row),
                   FlagTable::Text(state, row), DefaultText(row),
                   std::string(kSources[static_cast<int>(state.sources[i])]),
                   std::string(row.doc)});
  }
  return out;
}

}  // namespace tpu
