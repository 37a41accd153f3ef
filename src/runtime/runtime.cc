// Runtime: starting the plugin, its client and the devices; what can be asked before that.
#include <pthread.h>

#include <cstdlib>

#include "base/counters.h"
#include "base/flags.h"
#include "runtime/device.h"
#include "runtime/disk_cache.h"

namespace tpu::runtime {
namespace {

struct Global {
  std::mutex mu;
  std::atomic<Runtime*> runtime{
      nullptr};  // never destroyed: plugin threads outlive static destructors
  std::vector<std::string> search_dirs;
  std::function<void(const std::string&)> show;
  std::atomic<bool> forked{false};
};
Global& G() {
  static Global* const g = new Global;
  return *g;
}

int EnvInt(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::atoi(text) : otherwise;
}

std::string EnvText(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

// XLA debug options under which programs give PyTorch's numbers; the names differ by version.
pjrt::CompileOptions EagerOptions(const pjrt::Client& client, bool is_tpu) {
  pjrt::CompileOptions o;
  o.portable = true;
  if (is_tpu) {
    o.optimization_level = 19;  // O1: a tenth of the compile time of O2 for single operators
    return o;
  }
  o.overrides["xla_allow_excess_precision"] = "False";
  o.overrides["xla_cpu_enable_fast_min_max"] = "False";
  // The YNN reductions drop NaN from max and min.
  o.overrides["xla_cpu_experimental_ynn_fusion_type"] =
      client.plugin()->minor_version() < 100
          ? "LIBRARY_FUSION_TYPE_DOT"
          : "LIBRARY_FUSION_TYPE_DOT,LIBRARY_FUSION_TYPE_INDIVIDUAL_CONVOLUTION";
  return o;
}

Capabilities Detect(bool is_tpu) {
  Capabilities c;
  const int64_t off = GetFlags().disabled_capabilities();
  c.linear_layout = !is_tpu && !(off & kDisableLinearLayout);
  c.host_readable = !is_tpu && !(off & kDisableHostReadable);
  c.inline_execute = !is_tpu && !(off & kDisableInlineExecute);
  c.native_64bit = !is_tpu && !(off & kDisableNative64Bit);
  return c;
}

// Everything that a compiled program depends on besides its text and options.
std::string CacheKeyPrefix(const pjrt::Client& client) {
  return client.plugin()->identity() + "\n" + client.platform_name() + "\n" +
         (client.num_devices() > 0 ? client.device_info(0).kind : "") + "\n" + HostCpuFeatures() +
         "\n" + EnvText("XLA_FLAGS") + "\n" + EnvText("LIBTPU_INIT_ARGS") + "\n";
}

}  // namespace

ProcessTopology ProcessTopology::FromEnvironment() {
  ProcessTopology t;
  t.rank = EnvInt("RANK", 0);
  t.local_rank = EnvInt("LOCAL_RANK", 0);
  t.world_size = EnvInt("WORLD_SIZE", 1);
  return t;
}

void Runtime::SetSearchDirs(std::vector<std::string> dirs) {
  std::lock_guard lock(G().mu);
  G().search_dirs = std::move(dirs);
}

void Runtime::SetStartMessage(std::function<void(const std::string&)> show) {
  std::lock_guard lock(G().mu);
  G().show = std::move(show);
}

bool Runtime::Started() { return G().runtime.load(std::memory_order_acquire) != nullptr; }
bool Runtime::InForkedChild() { return G().forked.load(std::memory_order_acquire); }

int Runtime::DeviceCount() {
  if (Runtime* rt = G().runtime.load(std::memory_order_acquire)) return rt->num_devices();
  std::vector<std::string> dirs;
  {
    std::lock_guard lock(G().mu);
    dirs = G().search_dirs;
  }
  const auto choice = pjrt::FindPlugin(GetFlags().plugin(), dirs);
  if (!choice.ok()) return 0;
  return static_cast<int>(GetFlags().devices());
}

Result<Runtime*> Runtime::Get() {
  if (InForkedChild()) {
    return Unavailable(
        "tpu can't be used in a forked child of a process that had started it; use the 'spawn' "
        "start method of multiprocessing");
  }
  if (Runtime* rt = G().runtime.load(std::memory_order_acquire)) return rt;
  std::lock_guard lock(G().mu);
  if (Runtime* rt = G().runtime.load(std::memory_order_acquire)) return rt;
  TPU_ASSIGN_OR_RETURN(std::unique_ptr<Runtime> rt, Start());
  if (G().show && !rt->is_tpu_) G().show(rt->reason_);
  pthread_atfork(nullptr, nullptr, [] { G().forked.store(true, std::memory_order_release); });
  G().runtime.store(rt.get(), std::memory_order_release);
  return rt.release();
}

Result<std::unique_ptr<Runtime>> Runtime::Start() {
  TPU_RETURN_IF_ERROR(FlagsStatus());
  const Flags& flags = GetFlags();
  if (flags.devices() == 0) {
    return Unavailable("no tpu device: TORCH_TPU_DEVICES is 0");
  }
  TPU_ASSIGN_OR_RETURN(const pjrt::PluginChoice choice,
                       pjrt::FindPlugin(flags.plugin(), G().search_dirs));
  FreezeStartupFlags();
  TPU_ASSIGN_OR_RETURN(pjrt::Plugin* const plugin, pjrt::Plugin::Load(choice.path));
  std::unique_ptr<Runtime> rt(new Runtime);
  rt->reason_ = choice.reason;
  rt->is_tpu_ = choice.is_tpu;
  pjrt::NamedValues options;
  if (!choice.is_tpu) {
    options["cpu_device_count"] = flags.devices();
    // On a shared host a hand-off to a pool costs ten times the launch and wins nothing.
    options["asynchronous"] = (flags.disabled_capabilities() & kDisableInlineExecute) != 0;
  }
  TPU_ASSIGN_OR_RETURN(rt->client_, pjrt::Client::Create(plugin, options));
  if (rt->client_->platform_name() == "cpu") rt->is_tpu_ = false;
  rt->eager_options_ = EagerOptions(*rt->client_, rt->is_tpu_);
  std::unique_ptr<DiskCache> disk;
  if (flags.cache() && !flags.cache_dir().empty()) {
    auto opened = DiskCache::Open(flags.cache_dir(), flags.cache_max_bytes());
    if (opened.ok()) {
      disk = std::move(opened).value();
    } else {
      Count(counters.disk_errors);
      if (G().show) G().show("the program cache is off: " + opened.status().ToString());
    }
  }
  rt->programs_ = std::make_unique<ProgramStore>(rt->client_.get(), CacheKeyPrefix(*rt->client_),
                                                 std::move(disk), int(flags.compile_threads()));
  const Capabilities capabilities = Detect(rt->is_tpu_);
  for (int i = 0; i < rt->client_->num_devices(); ++i) {
    rt->devices_.push_back(std::make_unique<Device>(i, rt->client_.get(), capabilities));
  }
  return rt;
}

void Runtime::Shutdown() {
  Runtime* rt = G().runtime.load(std::memory_order_acquire);
  if (rt == nullptr || InForkedChild()) return;
  for (auto& d : rt->devices_) (void)d->Synchronize();
}

}  // namespace tpu::runtime
