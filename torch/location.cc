// The locator.
#include "location.h"

#include <atomic>

namespace tpu::torch_layer {
namespace {
std::atomic<std::string (*)()> the_locator{nullptr};
}

void SetLocator(std::string (*locator)()) { the_locator.store(locator); }

std::string UserLocation() {
  auto* const locator = the_locator.load();
  return locator == nullptr ? std::string() : locator();
}

}  // namespace tpu::torch_layer
