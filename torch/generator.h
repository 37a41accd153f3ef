// The device's random generator: {seed, offset} on the host. Draws hand both to a program as
// run-time words, so reading or setting the state never waits for a device.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

#include "exec/call.h"

namespace tpu::torch_layer {

class TpuGenerator final : public c10::GeneratorImpl {
 public:
  explicit TpuGenerator(c10::DeviceIndex index);
  static c10::DeviceType device_type();

  // Takes `n` counters: the state for this draw, {seed, offset}. The caller holds mutex_.
  std::pair<uint64_t, uint64_t> Draw(uint64_t n);

  void set_current_seed(uint64_t seed) override;
  void set_offset(uint64_t offset) override;
  uint64_t get_offset() const override;
  uint64_t current_seed() const override;
  uint64_t seed() override;
  void set_state(const c10::TensorImpl& state) override;  // 16 bytes: seed, offset
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;
  void graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& state) override;
  c10::intrusive_ptr<c10::GeneratorImpl> graphsafe_get_state() const override;

 private:
  struct State;
  TpuGenerator* clone_impl() const override;
  std::shared_ptr<State> state_;  // shared only by graph-safe copies, which PyTorch defines so
};

// How many counters a random call draws: enough for every element it may make.
uint64_t DrawCount(const exec::Call& call);

const at::Generator& DefaultGenerator(c10::DeviceIndex index);  // -1: the current device's
at::Generator NewGenerator(c10::DeviceIndex index);

}  // namespace tpu::torch_layer
