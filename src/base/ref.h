// Ref<T>: an intrusive counted pointer. Used where ownership really is shared and the count itself
// carries meaning: a device value whose only reference is the caller's may be donated.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace tpu {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void Retain() const { count_.fetch_add(1, std::memory_order_relaxed); }
  // True when the last reference is gone.
  bool Release() const { return count_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  uint32_t use_count() const { return count_.load(std::memory_order_acquire); }

 private:
  mutable std::atomic<uint32_t> count_{0};
};

template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* ptr) : ptr_(ptr) {
    if (ptr_) ptr_->Retain();
  }
  Ref(const Ref& other) : Ref(other.ptr_) {}
  Ref(Ref&& other) noexcept : ptr_(std::exchange(other.ptr_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(ptr_, other.ptr_);
    return *this;
  }
  ~Ref() {
    if (ptr_ && ptr_->Release()) delete ptr_;
  }

  template <class... Args>
  static Ref Make(Args&&... args) {
    return Ref(new T(std::forward<Args>(args)...));
  }

  // Gives up ownership without dropping the count; Adopt takes it back.
  T* Leak() { return std::exchange(ptr_, nullptr); }
  static Ref Adopt(T* ptr) {
    Ref out;
    out.ptr_ = ptr;
    return out;
  }

  T* get() const { return ptr_; }
  T* operator->() const { return ptr_; }
  T& operator*() const { return *ptr_; }
  explicit operator bool() const { return ptr_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) { return a.ptr_ == b.ptr_; }

 private:
  T* ptr_ = nullptr;
};

}  // namespace tpu
