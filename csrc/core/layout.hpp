// Layout of an observation, declared once: `observe` looks up the byte of a feature by its name,
// and `spec` describes the same names. A name that does not exist does not compile.
#pragma once

#include "core/fn.hpp"

namespace sparring {

enum class Type : u8 { kU8, kI8, kU16, kI16, kU32, kI32, kU64, kF32, kI64, kF64 };

SPARRING_FN constexpr int size_of(Type type) {
  switch (type) {
    case Type::kU8:
    case Type::kI8:
      return 1;
    case Type::kU16:
    case Type::kI16:
      return 2;
    case Type::kU64:
    case Type::kI64:
    case Type::kF64:
      return 8;
    default:
      return 4;
  }
}

// The types of features, in the order of a row's bytes.
inline constexpr Type kFeatureTypes[] = {Type::kU8, Type::kI8, Type::kI16, Type::kF32};

SPARRING_FN constexpr int padded(int bytes) { return (bytes + 15) / 16 * 16; }

// One number of an observation: its value is raw / divisor.
struct Feature {
  const char* name;
  Type type = Type::kU8;
  f32 divisor = 1;
};

// A named section of the observation: `rows` times the same features. In the bytes of a row all u8
// features come first, then i8, i16 and f32, each type in the order of the sections; the public
// order of features is by section, row by row.
struct Section {
  template <int N>
  SPARRING_FN constexpr Section(const char* section, const Feature (&features)[N],
                                int row_count = 1)
      : name(section), rows(row_count), feature(features), count(N) {}

  // Bytes of a type in one row of the section, in the features before `end`.
  SPARRING_FN constexpr int bytes(Type type, int end) const {
    int total = 0;
    for (int i = 0; i < end; ++i) total += feature[i].type == type ? size_of(type) : 0;
    return total;
  }
  SPARRING_FN constexpr int bytes(Type type = Type::kU8) const { return bytes(type, count); }

  // The section with its first `features` features only.
  SPARRING_FN constexpr Section first(int features) const {
    Section shorter = *this;
    shorter.count = features;
    return shorter;
  }

  const char* name;
  int rows;
  const Feature* feature;
  int count;
};

SPARRING_FN constexpr bool same_name(const char* a, const char* b) {
  for (; *a && *a == *b; ++a) ++b;
  return *a == *b;
}

int no_such_feature();  // never defined: a call means that a feature's name is misspelled

// Offset of a feature among the bytes of its type in one row of its section.
template <int N>
SPARRING_FN consteval int byte_of(const Feature (&features)[N], const char* name) {
  const Section all("", features);
  for (int i = 0; i < N; ++i)
    if (same_name(features[i].name, name)) return all.bytes(features[i].type, i);
  return no_such_feature();
}

// Bytes of a type in the first `end` sections.
template <int N>
SPARRING_FN constexpr int bytes_of(const Section (&sections)[N], Type type, int end = N) {
  int total = 0;
  for (int i = 0; i < end; ++i) total += sections[i].rows * sections[i].bytes(type);
  return total;
}

// Offset of the features of a type in a row of these sections.
template <int N>
SPARRING_FN constexpr int first_byte(const Section (&sections)[N], Type type) {
  int total = 0;
  for (const Type each : kFeatureTypes) {
    const int size = size_of(each), bytes = bytes_of(sections, each);
    if (bytes) total = (total + size - 1) / size * size;
    if (each == type) break;
    total += bytes;
  }
  return total;
}

// Offset of a feature in a row of these sections, for the first row of its section.
template <int N>
SPARRING_FN consteval int byte_of(const Section (&sections)[N], const char* section,
                                  const char* name) {
  for (int i = 0; i < N; ++i) {
    if (!same_name(sections[i].name, section)) continue;
    for (int f = 0; f < sections[i].count; ++f) {
      const Type type = sections[i].feature[f].type;
      if (same_name(sections[i].feature[f].name, name))
        return first_byte(sections, type) + bytes_of(sections, type, i) +
               sections[i].bytes(type, f);
    }
  }
  return no_such_feature();
}

// Offset of a section's first feature.
template <int N>
SPARRING_FN consteval int byte_of(const Section (&sections)[N], const char* section) {
  for (int i = 0; i < N; ++i) {
    const Type type = sections[i].feature[0].type;
    if (same_name(sections[i].name, section))
      return first_byte(sections, type) + bytes_of(sections, type, i);
  }
  return no_such_feature();
}

// Bytes of a row of these sections, before padding.
template <int N>
SPARRING_FN constexpr int bytes_of(const Section (&sections)[N]) {
  return first_byte(sections, Type::kF32) + bytes_of(sections, Type::kF32);
}

}  // namespace sparring
