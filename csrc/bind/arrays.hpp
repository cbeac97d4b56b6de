// What Python hands to the bindings, and the one place in which it is checked. Native code trusts
// nobody: the numbers of an array are to be had only from a `Call`, by a name and the size that is
// needed, and whatever addresses memory passes through `index` or `within`. What is wrong is said
// in one line: "estimate_advantages: value has 5 numbers, 8 are needed".
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/fn.hpp"

namespace sparring {

// A NumPy array without gaps, or whatever was given instead of one. Numbers are never converted,
// and only an array that is read is copied if it has gaps: what is written into a copy is lost.
template <class T>
class Given {
 public:
  using Array = nanobind::ndarray<T, nanobind::c_contig, nanobind::device::cpu>;

  Given() = default;
  explicit Given(Array array) : array_(std::move(array)) {}
  explicit Given(nanobind::object other) : other_(std::move(other)) {}

 private:
  friend class Call;
  Array array_;
  nanobind::object other_;  // null if there is an array
};

template <class T>
using In = Given<const T>;
template <class T>
using Out = Given<T>;
template <class T>
using MaybeIn = std::optional<In<T>>;
template <class T>
using MaybeOut = std::optional<Out<T>>;

// Rows that lie one after the other.
template <class T>
struct Rows {
  T* data;
  int rows, columns;

  i64 size() const { return i64{rows} * columns; }
};

// A call from Python by its name, and what it demands of its arguments.
class Call {
 public:
  explicit constexpr Call(const char* name) : name_(name) {}

  [[noreturn, gnu::cold]] void refuse(const std::string& why) const {
    throw nanobind::value_error(line({why}).c_str());
  }
  void demand(bool right, const char* why) const {
    if (!right) [[unlikely]]
      refuse(why);
  }

  // The numbers of an array that has to have `count` of them; null where none was given.
  template <class T>
  T* take(const Given<T>& given, const char* what, i64 count) const {
    const auto& array = array_of(given, what);
    const i64 size = static_cast<i64>(array.size());
    if (size != count) [[unlikely]]
      wrong_size(what, size, " numbers, ", count);
    return array.data();
  }
  template <class T>
  T* take(const std::optional<Given<T>>& given, const char* what, i64 count) const {
    return given ? take(*given, what, count) : nullptr;
  }

  // The same of an array that may have more than is needed.
  template <class T>
  T* take_first(const Given<T>& given, const char* what, i64 count) const {
    const auto& array = array_of(given, what);
    const i64 size = static_cast<i64>(array.size());
    if (size < count) [[unlikely]]
      wrong_size(what, size, " numbers, at least ", count);
    return array.data();
  }

  template <class T>
  i64 size(const Given<T>& given, const char* what) const {
    return static_cast<i64>(array_of(given, what).size());
  }

  // The length of an axis of an array with so many axes.
  template <class T>
  int axis(const Given<T>& given, const char* what, size_t axes, size_t axis) const {
    const auto& array = array_of(given, what);
    if (array.ndim() != axes) [[unlikely]]
      wrong_size(what, static_cast<i64>(array.ndim()), " axes, ", static_cast<i64>(axes));
    return count(static_cast<i64>(array.shape(axis)), what);
  }

  template <class T>
  Rows<T> rows(const Given<T>& given, const char* what) const {
    const int rows = axis(given, what, 2, 0), columns = axis(given, what, 2, 1);
    return {array_of(given, what).data(), rows, columns};
  }

  // IndexError unless there is such a one of `end`.
  int index(i64 value, const char* what, i64 end) const {
    if (value < 0 || value >= end) [[unlikely]]
      outside(what, -1, value, 0, end);
    return static_cast<int>(value);
  }

  int between(i64 value, const char* what, i64 low, i64 high) const {
    if (value < low || value > high) [[unlikely]]
      refuse(line_of({what, " ", number(value), " is outside ", number(low), "..", number(high)}));
    return static_cast<int>(value);
  }

  // A number of things that `int` can number.
  int count(i64 value, const char* what) const { return between(value, what, 0, kMost); }

  // A product of counts that `int` can number, so that nothing computed from them overflows.
  int product(const char* what, std::initializer_list<i64> factors) const {
    i64 all = 1;
    for (const i64 factor : factors) all = count(all * count(factor, what), what);
    return static_cast<int>(all);
  }

  // All of an array's numbers lie in low..end-1: one pass, which the compiler makes vectors of.
  template <class T>
  void within(const T* values, i64 size, const char* what, i64 low, i64 end) const {
    static_assert(std::is_signed_v<T>);
    constexpr i64 kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
    const T bottom = static_cast<T>(max(low, kLow)), top = static_cast<T>(min(end - 1, kHigh));
    bool wrong = size > 0 && end <= low;
    for (i64 i = 0; i < size; ++i) wrong |= (values[i] < bottom) | (values[i] > top);
    if (!wrong) [[likely]]
      return;
    for (i64 i = 0; i < size; ++i)
      if (values[i] < bottom || values[i] > top || end <= low)
        outside(what, i, values[i], low, end);
  }

 private:
  using Words = std::initializer_list<std::string>;
  static constexpr i64 kMost = std::numeric_limits<i32>::max();

  static std::string number(i64 value) { return std::to_string(value); }
  static std::string line_of(Words words) {
    std::string all;
    for (const std::string& word : words) all += word;
    return all;
  }
  std::string line(Words words) const { return line_of({name_, ": ", line_of(words)}); }

  [[noreturn, gnu::cold, gnu::noinline]] void wrong_size(const char* what, i64 has,
                                                         const char* things, i64 needed) const {
    refuse(line_of({what, " has ", number(has), things, number(needed), " are needed"}));
  }

  // at: where in an array the value stands, -1 if it is no array's.
  [[noreturn, gnu::cold, gnu::noinline]] void outside(const char* what, i64 at, i64 value, i64 low,
                                                      i64 end) const {
    const std::string which = at < 0 ? line_of({what, " ", number(value)})
                                     : line_of({what, "[", number(at), "], ", number(value), ","});
    const std::string range = line_of({" is outside ", number(low), "..", number(end - 1)});
    throw nanobind::index_error(
        line({which, end <= low ? " is not there: there is none" : range}).c_str());
  }

  template <class T>
  const auto& array_of(const Given<T>& given, const char* what) const {
    if (given.other_.is_valid()) [[unlikely]]
      not_an_array(given.other_, what, std::is_const_v<T>, kind_of<std::remove_const_t<T>>());
    if (reinterpret_cast<std::uintptr_t>(given.array_.data()) % alignof(T)) [[unlikely]]
      refuse(line_of({what, " does not lie where its numbers could be read; copy it first"}));
    return given.array_;
  }

  template <class T>
  static std::string kind_of() {
    const char* kind = std::is_floating_point_v<T> ? "float" : std::is_signed_v<T> ? "int" : "uint";
    return line_of({kind, number(8 * sizeof(T))});
  }

  [[noreturn, gnu::cold, gnu::noinline]] void not_an_array(const nanobind::object& other,
                                                           const char* what, bool read,
                                                           const std::string& kind) const {
    std::string got = Py_TYPE(other.ptr())->tp_name;
    if (nanobind::hasattr(other, "dtype"))
      got += " of " + nanobind::cast<std::string>(other.attr("dtype").attr("__str__")());
    throw nanobind::type_error(line({what, read ? " must be an" : " must be a writable",
                                     " array of ", kind, " without gaps, not ", got})
                                   .c_str());
  }

  const char* name_;
};

}  // namespace sparring

namespace nanobind::detail {

// Takes anything, so that `Call` can say what is wrong with it.
template <class T>
struct type_caster<sparring::Given<T>> {
  using Inner = make_caster<typename sparring::Given<T>::Array>;
  NB_TYPE_CASTER(sparring::Given<T>, Inner::Name)

  bool from_python(handle src, uint32_t, cleanup_list* cleanup) noexcept {
    Inner inner;
    if (inner.from_python(src, 0, cleanup) || (std::is_const_v<T> && copied(src, inner, cleanup)))
      value = sparring::Given<T>(std::move(inner.value));
    else
      value = sparring::Given<T>(borrow<object>(src));
    return true;
  }

 private:
  // Takes a copy without gaps of an array that has some and is of the right kind.
  static bool copied(handle src, Inner& inner, cleanup_list* cleanup) noexcept {
    make_caster<ndarray<T, device::cpu>> any;
    if (!any.from_python(src, 0, cleanup)) return false;
    try {
      const object copy = module_::import_("numpy").attr("ascontiguousarray")(src);
      return inner.from_python(copy, 0, cleanup);
    } catch (const python_error&) {
      return false;
    }
  }
};

}  // namespace nanobind::detail
