// BuildKey and the views it plans.
#include "exec/key.h"

#include <algorithm>
#include <cstring>

#include "shape/view.h"

namespace tpu::exec {
namespace {

using runtime::Storage;

uint64_t Bits(double d) {
  uint64_t u;
  std::memcpy(&u, &d, sizeof u);
  return u;
}

constexpr uint64_t kFlagCovers = 1, kFlagConj = 2, kFlagNeg = 4, kFlagUnset = 8, kFlagBase = 16;

class KeyBuilder {
 public:
  KeyBuilder(const Call& call, CallState* state) : call_(call), s_(state), key_(state->key) {}

  Status Build() {
    const Overload& o = *call_.overload;
    key_.push_back(uint64_t{o.id} | uint64_t(call_.default_dtype) << 32 |
                   uint64_t{call_.device->capabilities().linear_layout} << 40 |
                   uint64_t(call_.args.size()) << 48);
    s_->views.resize(call_.tensors.size());
    for (size_t i = 0; i < call_.args.size(); ++i) {
      TPU_RETURN_IF_ERROR(AddArg(call_.args[i], o.arg_static[i], IsTarget(static_cast<int>(i))));
    }
    return {};
  }

 private:
  bool IsTarget(int arg) const {
    for (int t : call_.overload->targets) {
      if (t == arg) return true;
    }
    return false;
  }

  Status AddArg(const Arg& a, bool is_static, bool target) {
    const uint64_t tag = uint64_t(a.kind);
    switch (a.kind) {
      case Arg::Kind::kNone: key_.push_back(tag); break;
      case Arg::Kind::kTensor: return AddTensor(a.at, target);
      case Arg::Kind::kTensors:
        key_.push_back(tag | uint64_t{a.count} << 8);
        for (uint32_t k = 0; k < a.count; ++k) TPU_RETURN_IF_ERROR(AddTensor(a.at + k, target));
        break;
      case Arg::Kind::kHostTensor:
        key_.push_back(tag | uint64_t(a.dtype) << 8 | uint64_t{a.wrapped} << 16 |
                       uint64_t(a.number.kind) << 24);
        if (is_static) AddNumber(a.number);
        break;
      case Arg::Kind::kNumber:
        key_.push_back(tag | uint64_t(a.number.kind) << 8 | uint64_t{a.is_default} << 16);
        if (is_static) AddNumber(a.number);
        break;
      case Arg::Kind::kInt:
        key_.push_back(tag);
        key_.push_back(static_cast<uint64_t>(a.i));
        break;
      case Arg::Kind::kInts:
        key_.push_back(tag | uint64_t{a.count} << 8);
        for (uint32_t k = 0; k < a.count; ++k) {
          key_.push_back(static_cast<uint64_t>(call_.ints[a.at + k]));
        }
        break;
      case Arg::Kind::kType: key_.push_back(tag | uint64_t(a.dtype) << 8); break;
      case Arg::Kind::kString: {
        const std::string& text = call_.strings[a.at];
        key_.push_back(tag | uint64_t(text.size()) << 8);
        for (size_t at = 0; at < text.size(); at += 8) {
          uint64_t w = 0;
          std::memcpy(&w, text.data() + at, std::min<size_t>(8, text.size() - at));
          key_.push_back(w);
        }
        break;
      }
    }
    return {};
  }

  void AddNumber(const Number& n) {
    key_.push_back(n.kind == Number::Kind::kFloat || n.kind == Number::Kind::kComplex
                       ? Bits(n.d)
                       : static_cast<uint64_t>(n.AsInt()));
    if (n.kind == Number::Kind::kComplex) key_.push_back(Bits(n.imag));
  }

  Status AddTensor(uint32_t index, bool target) {
    const TensorArg& t = call_.tensors[index];
    if (t.storage == nullptr) {
      key_.push_back(uint64_t(Arg::Kind::kTensor));
      return {};
    }
    const runtime::Value* value = s_->slots[size_t(t.slot)].value.get();
    const bool linear = call_.device->capabilities().linear_layout;
    uint64_t flags = (t.covers ? kFlagCovers : 0) | (t.conj ? kFlagConj : 0) |
                     (t.neg ? kFlagNeg : 0) | (value == nullptr ? kFlagUnset : 0);
    const bool base_word = value != nullptr && (!linear || value->type().dtype != t.dtype ||
                                                value->type().numel != NumElementsOf(t));
    if (base_word) flags |= kFlagBase;
    const size_t head = key_.size();
    key_.push_back(uint64_t(Arg::Kind::kTensor) | uint64_t(t.dtype) << 8 | flags << 16 |
                   uint64_t(uint16_t(t.rank)) << 24 | uint64_t(uint32_t(t.slot)) << 32);
    const DimsView sizes = call_.Sizes(t), strides = call_.Strides(t);
    for (int64_t d : sizes) key_.push_back(static_cast<uint64_t>(d));
    if (base_word) {
      const runtime::ValueType& type = value->type();
      key_.push_back(uint64_t(type.dtype) | uint64_t(linear ? 1 : type.dims.size()) << 8);
      if (linear) {
        key_.push_back(static_cast<uint64_t>(type.numel));
      } else {
        for (int64_t d : type.dims) key_.push_back(static_cast<uint64_t>(d));
      }
    }
    if (t.covers) return {};
    for (int64_t d : strides) key_.push_back(static_cast<uint64_t>(d));
    key_.push_back(t.storage->nbytes());
    return PlanView(t, value, index, target, head);
  }

  static int64_t NumElementsOf(const TensorArg& t) {
    return static_cast<int64_t>(t.storage->nbytes()) / ItemSize(t.dtype);
  }

  Status PlanView(const TensorArg& t, const runtime::Value* value, uint32_t index, bool target,
                  size_t head) {
    const Base base = BaseOf(call_, t, value);
    const Dims dims = BaseDimsAs(base, t.dtype);
    const shape::View view{Dims(call_.Sizes(t).begin(), call_.Sizes(t).end()),
                           Dims(call_.Strides(t).begin(), call_.Strides(t).end()), t.offset};
    ViewStarts& v = s_->views[index];
    v = {};
    if (!target || call_.overload->reads_targets) {
      TPU_ASSIGN_OR_RETURN(const shape::ReadPlan plan, shape::Decompose(view, dims));
      v.read_at = static_cast<uint32_t>(s_->starts.size());
      v.read_count = static_cast<uint32_t>(plan.starts.size());
      s_->starts.insert(s_->starts.end(), plan.starts.begin(), plan.starts.end());
      key_[head] |= uint64_t(plan.variant & 0xff) << 48;
    }
    if (target) {
      TPU_ASSIGN_OR_RETURN(const shape::WritePlan plan, shape::Invert(view, dims));
      v.write_at = static_cast<uint32_t>(s_->starts.size());
      v.write_count = static_cast<uint32_t>(plan.starts.size());
      s_->starts.insert(s_->starts.end(), plan.starts.begin(), plan.starts.end());
      key_[head] |= uint64_t(plan.variant & 0xff) << 56;
    }
    return {};
  }

  const Call& call_;
  CallState* const s_;
  std::vector<uint64_t>& key_;
};

}  // namespace

void CallState::Clear() {
  key.clear();
  slots.clear();
  views.clear();
  starts.clear();
}

Dims BaseDims(const runtime::Device& device, const runtime::ValueType& type) {
  if (device.capabilities().linear_layout) return {type.numel};
  return type.dims;
}

Base BaseOf(const Call& call, const TensorArg& t, const runtime::Value* value) {
  if (value == nullptr) {
    return {t.dtype, {static_cast<int64_t>(t.storage->nbytes()) / ItemSize(t.dtype)}, true};
  }
  return {value->type().dtype, BaseDims(*call.device, value->type()), false};
}

Dims BaseDimsAs(const Base& base, DType dtype) {
  const int64_t from = ItemSize(base.dtype), to = ItemSize(dtype);
  if (from == to) return base.dims;
  return {NumElements(base.dims) * from / to};
}

void FindSlots(Call* call, CallState* state) {
  const Overload& o = *call->overload;
  auto& slots = state->slots;
  for (TensorArg& t : call->tensors) {
    if (t.storage == nullptr) continue;
    size_t k = 0;
    while (k < slots.size() && slots[k].storage != t.storage) ++k;
    if (k == slots.size()) slots.push_back({t.storage, {}, false});
    t.slot = static_cast<int32_t>(k);
  }
  for (int target : o.targets) {
    if (target < 0) continue;
    const Arg& a = call->args[size_t(target)];
    const uint32_t n = a.kind == Arg::Kind::kTensor    ? 1
                       : a.kind == Arg::Kind::kTensors ? a.count
                                                       : 0;
    for (uint32_t k = 0; k < n; ++k) {
      const TensorArg& t = call->tensors[a.at + k];
      if (t.storage != nullptr) slots[size_t(t.slot)].target = true;
    }
  }
}

Status BuildKey(const Call& call, CallState* state) { return KeyBuilder(call, state).Build(); }

}  // namespace tpu::exec
