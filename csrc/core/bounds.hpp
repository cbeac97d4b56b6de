// Allowed values of every field of a game's state. Bytes from a file are checked against them
// before a rule reads the state. Host only.
#pragma once

#include "core/describe.hpp"

#if SPARRING_HOST
#include <cstdio>
#include <type_traits>

namespace sparring {

// A game declares each field once, in `void bounds(const Config&, Bounds&) const`. Bounds records
// which bytes were declared, so that a test finds undeclared fields.
class Bounds {
 public:
  Bounds(const void* object, size_t bytes)
      : object_(static_cast<const u8*>(object)), declared_(bytes) {}

  // A number, or every element of an array of any rank, is in low..high. NaN is in no range.
  template <class T, class Low, class High>
  void within(const char* name, const T& field, Low low, High high) {
    using Scalar = std::remove_all_extents_t<T>;
    using Limit = std::conditional_t<std::is_floating_point_v<Scalar>, f64, i64>;
    const Limit min_value = static_cast<Limit>(low), max_value = static_cast<Limit>(high);
    declare(field);
    if (!error_.empty() || is_within(field, min_value, max_value)) return;
    error_ = std::string(name) + " is not in " + to_text(min_value) + ".." + to_text(max_value);
  }

  // A bit set, or every set of an array, has members below `count` only.
  template <class T>
  void below(const char* name, const T& field, int count) {
    declare(field);
    if (error_.empty() && highest(field) >= count)
      error_ = std::string(name) + " has a bit above " + std::to_string(count - 1);
  }

  // Any value is allowed.
  template <class T>
  void any(const T& field) {
    declare(field);
  }

  // Unused bytes are 0, so that equal states have equal bytes.
  template <class T>
  void spare(const T& field) {
    within("spare", field, 0, 0);
  }

  // The first violation, "" if none.
  const std::string& error() const { return error_; }
  // The first byte that no declaration covers; the number of bytes if all are covered.
  size_t first_undeclared() const {
    size_t byte = 0;
    while (byte < declared_.size() && declared_[byte]) ++byte;
    return byte;
  }

 private:
  static std::string to_text(i64 value) { return std::to_string(value); }
  static std::string to_text(f64 value) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
  }

  template <class T, class Limit>
  static bool is_within(const T& field, Limit low, Limit high) {
    if constexpr (std::is_array_v<T>) {
      for (const auto& element : field)
        if (!is_within(element, low, high)) return false;
      return true;
    } else if constexpr (std::is_same_v<T, bool>) {  // a byte from a file may be neither 0 nor 1
      const int byte = *reinterpret_cast<const u8*>(&field);
      return byte >= low && byte <= high;
    } else if constexpr (std::is_same_v<T, u64>) {
      return high >= 0 && field <= static_cast<u64>(high) &&
             (low <= 0 || field >= static_cast<u64>(low));
    } else {
      return static_cast<Limit>(field) >= low && static_cast<Limit>(field) <= high;
    }
  }

  template <class T>
  static int highest(const T& field) {
    int bit = -1;
    if constexpr (std::is_array_v<T>)
      for (const auto& set : field) bit = max(bit, highest(set));
    else
      for (int w = 0; w < T::kWords; ++w)
        if (field.word[w]) bit = 64 * w + highest_bit(field.word[w]);
    return bit;
  }

  template <class T>
  void declare(const T& field) {
    const size_t offset = static_cast<size_t>(reinterpret_cast<const u8*>(&field) - object_);
    for (size_t i = 0; i < sizeof(T) && offset + i < declared_.size(); ++i)
      declared_[offset + i] = 1;
  }

  const u8* object_;
  std::vector<u8> declared_;
  std::string error_;
};

}  // namespace sparring
#endif  // SPARRING_HOST
