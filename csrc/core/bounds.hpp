// Which values every field of a game's state may have. Bytes that come from a file are held against
// this before a rule reads them. Host only.
#pragma once

#include "core/face.hpp"

#if SPARRING_HOST
#include <cmath>
#include <type_traits>

namespace sparring {

// A game declares each of its fields once, in `void bounds(const Config&, Bounds&) const`. The
// bytes that were declared are remembered, so that a test finds a field that was forgotten.
class Bounds {
 public:
  Bounds(const void* object, size_t bytes)
      : from_(static_cast<const u8*>(object)), declared_(bytes) {}

  // Every element of a number or an array, of any rank, lies in low..high.
  template <class T>
  void within(const char* name, const T& field, i64 low, i64 high) {
    declare(field);
    if (!wrong_.empty() || holds(field, low, high)) return;
    wrong_ = std::string(name) + " is not in " + std::to_string(low) + ".." + std::to_string(high);
  }

  // No bit is set at `count` or above.
  template <int N>
  void below(const char* name, const Bits<N>& field, int count) {
    declare(field);
    bool over = false;
    field.each([&](int bit) { over |= bit >= count; });
    if (wrong_.empty() && over)
      wrong_ = std::string(name) + " has a bit above " + std::to_string(count - 1);
  }

  // Every value will do, because no rule goes wrong with it.
  template <class T>
  void any(const T& field) {
    declare(field);
  }

  // Bytes that nobody uses are 0, so that equal states have equal bytes.
  template <class T>
  void spare(const T& field) {
    within("spare", field, 0, 0);
  }

  // What is wrong, "" if nothing.
  const std::string& wrong() const { return wrong_; }
  // The first byte that no declaration covers; the number of bytes if all are.
  size_t first_undeclared() const {
    size_t at = 0;
    while (at < declared_.size() && declared_[at]) ++at;
    return at;
  }

 private:
  template <class T>
  static bool holds(const T& field, i64 low, i64 high) {
    if constexpr (std::is_array_v<T>) {
      for (const auto& element : field)
        if (!holds(element, low, high)) return false;
      return true;
    } else if constexpr (std::is_floating_point_v<T>) {  // also refuses what is not a number
      return field >= static_cast<T>(low) && field <= static_cast<T>(high);
    } else if constexpr (std::is_unsigned_v<T>) {
      return high >= 0 && field <= static_cast<u64>(high) &&
             (low <= 0 || field >= static_cast<u64>(low));
    } else {
      return field >= low && field <= high;
    }
  }

  template <class T>
  void declare(const T& field) {
    const size_t at = static_cast<size_t>(reinterpret_cast<const u8*>(&field) - from_);
    for (size_t i = 0; i < sizeof(T); ++i) declared_.at(at + i) = true;
  }

  const u8* from_;
  std::vector<bool> declared_;
  std::string wrong_;
};

}  // namespace sparring
#endif  // SPARRING_HOST
