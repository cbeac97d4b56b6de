// Which values every field of a game's state may have. Bytes that come from a file are held against
// this before a rule reads them. Host only.
#pragma once

#include "core/describe.hpp"

#if SPARRING_HOST
#include <cstdio>
#include <type_traits>

namespace sparring {

// A game declares each of its fields once, in `void bounds(const Config&, Bounds&) const`. The
// bytes that were declared are remembered, so that a test finds a field that was forgotten.
class Bounds {
 public:
  Bounds(const void* object, size_t bytes)
      : from_(static_cast<const u8*>(object)), declared_(bytes) {}

  // Every element of a number or an array, of any rank, lies in low..high. What is not a number
  // lies nowhere.
  template <class T, class Low, class High>
  void within(const char* name, const T& field, Low low, High high) {
    using Scalar = std::remove_all_extents_t<T>;
    using Limit = std::conditional_t<std::is_floating_point_v<Scalar>, f64, i64>;
    const Limit from = static_cast<Limit>(low), to = static_cast<Limit>(high);
    declare(field);
    if (!wrong_.empty() || holds(field, from, to)) return;
    wrong_ = std::string(name) + " is not in " + shown(from) + ".." + shown(to);
  }

  // No bit of a set, or of an array of sets, is at `count` or above.
  template <class T>
  void below(const char* name, const T& field, int count) {
    declare(field);
    if (wrong_.empty() && highest(field) >= count)
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
  static std::string shown(i64 value) { return std::to_string(value); }
  static std::string shown(f64 value) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
  }

  template <class T, class Limit>
  static bool holds(const T& field, Limit low, Limit high) {
    if constexpr (std::is_array_v<T>) {
      for (const auto& element : field)
        if (!holds(element, low, high)) return false;
      return true;
    } else if constexpr (std::is_same_v<T, bool>) {  // a byte from a file may be neither
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
      for (const auto& set : field) bit = most(bit, highest(set));
    else
      for (int w = 0; w < T::kWords; ++w)
        if (field.word[w]) bit = 64 * w + highest_bit(field.word[w]);
    return bit;
  }

  template <class T>
  void declare(const T& field) {
    const size_t at = static_cast<size_t>(reinterpret_cast<const u8*>(&field) - from_);
    for (size_t i = 0; i < sizeof(T) && at + i < declared_.size(); ++i) declared_[at + i] = 1;
  }

  const u8* from_;
  std::vector<u8> declared_;
  std::string wrong_;
};

}  // namespace sparring
#endif  // SPARRING_HOST
