// A counted pointer whose count lives in the object: one word, no control block.
//
// Threads: counts are plain integers. Tensors, storages and recipes belong to the thread that
// issues operators of their session; workers only ever see raw addresses.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

namespace tidemark {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void add_ref() { ++refs_; }
  void release_ref() {
    if (--refs_ == 0) dispose();
  }
  int64_t ref_count() const { return refs_; }

 protected:
  virtual ~RefCounted() = default;
  // The last reference is gone. Types that form long chains override this to destroy themselves
  // without recursion.
  virtual void dispose() { delete this; }

 private:
  int64_t refs_ = 0;
};

template <class T>
class IntrusivePtr {
 public:
  IntrusivePtr() = default;
  IntrusivePtr(T* object) : object_(object) {  // NOLINT: adopting `new T` reads best unadorned
    if (object_) object_->add_ref();
  }
  IntrusivePtr(const IntrusivePtr& other) : IntrusivePtr(other.object_) {}
  IntrusivePtr(IntrusivePtr&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)) {}
  template <class Derived>  // NOLINTNEXTLINE(google-explicit-constructor): as Derived* does
  requires std::is_convertible_v<Derived*, T*> IntrusivePtr(const IntrusivePtr<Derived>& other)
      : IntrusivePtr(other.get()) {}
  IntrusivePtr& operator=(IntrusivePtr other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~IntrusivePtr() {
    if (object_) object_->release_ref();
  }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(const IntrusivePtr& other) const { return object_ == other.object_; }

 private:
  T* object_ = nullptr;
};

template <class T, class... Args>
IntrusivePtr<T> make_intrusive(Args&&... args) {
  return IntrusivePtr<T>(new T(std::forward<Args>(args)...));
}

}  // namespace tidemark
