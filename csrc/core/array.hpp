// An array that is allocated once and never moves. On CPUs and in browsers.
#pragma once

#include <cstdlib>
#include <memory>
#include <new>

#include "core/error.hpp"

namespace sparring {

// Zeroed memory; pages take up RAM only once they are written.
template <class T>
class Array {
 public:
  Array() = default;
  explicit Array(i64 count)
      : data_(static_cast<T*>(std::calloc(static_cast<size_t>(max<i64>(count, 1)), sizeof(T)))),
        count_(count) {
    if (!data_) raise_out_of_memory();
  }
  T* data() const { return data_.get(); }
  i64 size() const { return count_; }
  T& operator[](i64 i) const { return data_.get()[i]; }

 private:
  struct Free {
    void operator()(T* data) const { std::free(data); }
  };

  [[noreturn]] static void raise_out_of_memory() {
#if defined(__wasm__)
    raise(ConfigError("the page has no memory left; give a smaller budget"));
#else
    throw std::bad_alloc();
#endif
  }

  std::unique_ptr<T[], Free> data_;
  i64 count_ = 0;
};

}  // namespace sparring
