// Description of a game: names, configuration fields, observation blocks, statistics. Host only;
// the rules never depend on it.
#pragma once

#include "core/game.hpp"

#if SPARRING_HOST
#include <string>
#include <vector>

namespace sparring {

// A `Feature` (core/layout.hpp) whose name is built at run time.
struct Column {
  std::string name;
  Type type = Type::kU8;
  f32 divisor = 1;
};

// A `Section` (core/layout.hpp) whose name is built at run time.
struct Block {
  std::string name;
  int rows;
  std::vector<Column> columns;
};

inline Block block_of(const Section& section) {
  Block block{section.name, section.rows, {}};
  for (int i = 0; i < section.count; ++i) {
    const Feature& feature = section.feature[i];
    block.columns.push_back({feature.name, feature.type, feature.divisor});
  }
  return block;
}

template <int N>
std::vector<Block> blocks_of(const Section (&sections)[N]) {
  std::vector<Block> blocks;
  for (const Section& section : sections) blocks.push_back(block_of(section));
  return blocks;
}

// A member of a Config or of a game's state, read and written from Python by name.
struct Field {
  const char* name;
  Type type;
  int offset;
  int count;                // 1 for a scalar
  f64 low, high;            // allowed range (configuration only)
  const char* value_names;  // "A|B|C" for values 0, 1, 2; "" for numbers
  const char* help;
  bool live;  // can change while games run; takes effect at each game's next reset
};

// The scalar type of a member: of a number, an array of any rank, or a bit set.
template <class T>
struct Scalar {
  using Of = T;
};
template <class T, size_t N>
struct Scalar<T[N]> : Scalar<T> {};
template <int N>
struct Scalar<Bits<N>> {
  using Of = u64;
};

template <class T>
constexpr Type type_of() {
  static_assert(sizeof(T) <= 8);
  if constexpr (kSame<T, f32>) return Type::kF32;
  if constexpr (sizeof(T) == 8) return Type::kU64;
  if constexpr (sizeof(T) == 4) return T(-1) < T(0) ? Type::kI32 : Type::kU32;
  if constexpr (sizeof(T) == 2) return T(-1) < T(0) ? Type::kI16 : Type::kU16;
  return T(-1) < T(0) ? Type::kI8 : Type::kU8;
}

template <class Member>
Field field(const char* name, size_t offset, f64 low = 0, f64 high = 0,
            const char* value_names = "", const char* help = "", bool live = false) {
  using Of = typename Scalar<Member>::Of;
  constexpr size_t bytes = sizeof(Member), each = sizeof(Of);
  return {name,
          type_of<Of>(),
          static_cast<int>(offset),
          static_cast<int>(bytes / each),
          low,
          high,
          value_names,
          help,
          live};
}

template <class Member, class... More>
Field config_field(const char* name, size_t offset, More... more) {
  using Of = typename Scalar<Member>::Of;
  static_assert(kSame<Of, i32> || kSame<Of, f32>, "a Config is made of i32 and f32");
  return field<Member>(name, offset, more...);
}

// A field of the Config or Game in scope, under the name of the member.
#define SPARRING_CONFIG(member, ...) \
  ::sparring::config_field<decltype(Config::member)>(#member, offsetof(Config, member), __VA_ARGS__)
#define SPARRING_STATE(member) \
  ::sparring::field<decltype(Game::member)>(#member, offsetof(Game, member))

// A statistic of play: the sum of some of the game's kCounters divided by the sum of others.
struct Stat {
  std::string name;
  std::vector<int> numerator, denominator;
  std::string help;
  bool detail = false;  // one of many, such as a single round: logged, but not printed in tables
};

struct Spec {
  std::string name;
  std::string title;
  int rules_version;
  std::vector<Block> blocks;
  std::vector<std::string> role_names;
  // Rows and columns of the board, if any: blocks with rows * columns features are planes.
  std::vector<int> board = {};
  // Two seats whose rewards sum to 0 in every part.
  bool zero_sum = false;
  // Whether the rules draw random numbers: cards, dice, the first player.
  bool chance = true;
  // By role, features ("block.column") that are nonzero in rows of that role only. A row belongs to
  // the first role with a nonzero feature, else to the last role. Empty: rows do not show the role.
  std::vector<std::vector<std::string>> role_features = {};
};

// Bytes of an observation row with these blocks, before padding.
inline int bytes_of(const std::vector<Block>& blocks) {
  int total = 0;
  for (Type type : kFeatureTypes) {
    const int size = size_of(type);
    total = (total + size - 1) / size * size;
    for (const Block& block : blocks)
      for (const Column& column : block.columns)
        if (column.type == type) total += size * block.rows;
  }
  return total;
}

template <class Array>
std::vector<std::string> names_of(const Array& array) {
  return {std::begin(array), std::end(array)};
}

}  // namespace sparring
#endif  // SPARRING_HOST
