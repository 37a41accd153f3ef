// The device's random generator.
#include "generator.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cstring>
#include <deque>
#include <mutex>

#include "device.h"

namespace tpu::torch_layer {

struct TpuGenerator::State {
  uint64_t seed = c10::default_rng_seed_val;
  uint64_t offset = 0;
};

TpuGenerator::TpuGenerator(c10::DeviceIndex index)
    : c10::GeneratorImpl(c10::Device(kTpu, index),
                         c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
      state_(std::make_shared<State>()) {}

c10::DeviceType TpuGenerator::device_type() { return kTpu; }

std::pair<uint64_t, uint64_t> TpuGenerator::Draw(uint64_t n) {
  const std::pair<uint64_t, uint64_t> now{state_->seed, state_->offset};
  state_->offset += (n + 3) / 4 * 4;
  return now;
}

void TpuGenerator::set_current_seed(uint64_t seed) { *state_ = {seed, 0}; }
void TpuGenerator::set_offset(uint64_t offset) { state_->offset = offset; }
uint64_t TpuGenerator::get_offset() const { return state_->offset; }
uint64_t TpuGenerator::current_seed() const { return state_->seed; }

uint64_t TpuGenerator::seed() {
  const uint64_t random = c10::detail::getNonDeterministicRandom();
  set_current_seed(random);
  return random;
}

void TpuGenerator::set_state(const c10::TensorImpl& state) {
  const at::Tensor t = at::Tensor::wrap_tensor_impl(
      c10::intrusive_ptr<c10::TensorImpl>::reclaim_copy(const_cast<c10::TensorImpl*>(&state)));
  TORCH_CHECK(
      t.device().is_cpu() && t.scalar_type() == at::kByte && t.is_contiguous() && t.numel() == 16,
      "a tpu generator's state is a contiguous uint8 CPU tensor of 16 bytes (seed, offset); got ",
      t.scalar_type(), t.sizes(), " on ", t.device());
  std::memcpy(&state_->seed, t.const_data_ptr<uint8_t>(), 8);
  std::memcpy(&state_->offset, t.const_data_ptr<uint8_t>() + 8, 8);
}

c10::intrusive_ptr<c10::TensorImpl> TpuGenerator::get_state() const {
  at::Tensor t = at::empty({16}, at::TensorOptions().dtype(at::kByte).device(at::kCPU));
  std::memcpy(t.mutable_data_ptr<uint8_t>(), &state_->seed, 8);
  std::memcpy(t.mutable_data_ptr<uint8_t>() + 8, &state_->offset, 8);
  return t.getIntrusivePtr();
}

void TpuGenerator::graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& state) {
  auto other = c10::dynamic_intrusive_pointer_cast<TpuGenerator>(state);
  TORCH_CHECK(other, "graphsafe_set_state: not a tpu generator");
  state_ = other->state_;
}

c10::intrusive_ptr<c10::GeneratorImpl> TpuGenerator::graphsafe_get_state() const {
  auto copy = c10::make_intrusive<TpuGenerator>(device().index());
  copy->state_ = state_;
  return copy;
}

TpuGenerator* TpuGenerator::clone_impl() const {
  auto* copy = new TpuGenerator(device().index());
  *copy->state_ = *state_;
  return copy;
}

const at::Generator& DefaultGenerator(c10::DeviceIndex index) {
  static auto* const mu = new std::mutex;
  static auto* const all = new std::deque<at::Generator>;
  if (index < 0) index = CurrentDevice();
  const int count = runtime::Runtime::DeviceCount();
  TORCH_CHECK(index < std::max(count, 1), "no default generator for tpu:", int(index),
              ": there are ", count, " devices");
  std::lock_guard lock(*mu);
  while (all->size() <= static_cast<size_t>(index)) {
    all->push_back(NewGenerator(static_cast<c10::DeviceIndex>(all->size())));
    all->back().seed();  // as CUDA's: a process that sets no seed gets a random one
  }
  return (*all)[static_cast<size_t>(index)];
}

at::Generator NewGenerator(c10::DeviceIndex index) {
  return at::make_generator<TpuGenerator>(index < 0 ? CurrentDevice() : index);
}

}  // namespace tpu::torch_layer
