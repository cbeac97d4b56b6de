// A small game as a whole: every position, every information state, and what a policy is worth
// there against itself and against best responses. Host only.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/error.hpp"
#include "core/state.hpp"

namespace sparring {

// What of a game the tree has to know.
struct TreeShape {
  int seats, rows, actions, obs_bytes;
};

inline constexpr int kMaxTreeDepth = 1000;  // it is built by a function that calls itself

struct TreeLimits {
  i64 positions;
  int depth;    // decisions of one game
  bool recall;  // keep positions apart to which different decisions led
};

// The last information state in which a seat decided, and its action there; -1 if there is none.
struct Sequence {
  i32 info = -1, action = -1;
};

// Positions with the same bytes are one, unless the tree recalls what led there. A position's
// number is above those of all that follow it. Ends are counted downwards from -1.
class GameTree {
 public:
  struct Position {
    i32 info;
    i64 first_child;  // one for each legal action of its information state
  };

  GameTree(const std::vector<const AnyState*>& deals, TreeShape shape, TreeLimits limits)
      : shape_(shape), limits_(limits) {
    for (const AnyState* deal : deals)
      roots.push_back(grow(*deal, {}, std::vector<Sequence>(static_cast<size_t>(shape.seats)), 0));
    known_ = {};
    known_infos_ = {};
    known_ends_ = {};
  }

  const TreeShape& shape() const { return shape_; }
  i32 infos() const { return static_cast<i32>(seat.size()); }
  int actions_in(i32 info) const { return static_cast<int>(legal[at(info)].size()); }
  const i32* children(i32 position) const {
    return &child[at(positions[at(position)].first_child)];
  }
  f64 score(i32 end, int of) const { return scores[at(~end) * at(shape_.seats) + at(of)]; }

  std::vector<i32> roots;  // equally likely
  std::vector<Position> positions;
  std::vector<i32> child;
  std::vector<f64> scores;  // [ends][seats]
  bool merged = false;      // different decisions of a seat led to one position

  // Of every information state, in the order in which they were met.
  std::vector<i32> seat;
  std::vector<Sequence> before;  // by one of the ways, where there are several
  std::vector<std::vector<i32>> legal;
  std::vector<u8> obs;  // [infos][obs_bytes]

 private:
  using Last = std::vector<Sequence>;
  struct Known {
    i32 number;
    u64 past;
  };

  template <class Number>
  static size_t at(Number number) {
    return static_cast<size_t>(number);
  }
  template <class T>
  static void append(std::string& key, const T* values, size_t count) {
    key.append(reinterpret_cast<const char*>(values), count * sizeof(T));
  }

  // The number of a position. chosen: actions of the first rows, which those who move at the same
  // time do not see. last: what every seat did last.
  i32 grow(const AnyState& state, const std::vector<i32>& chosen, const Last& last, int depth) {
    if (state.terminated() || state.truncated()) return end_of(state);
    const int row = static_cast<int>(chosen.size());
    if (row == shape_.rows) {
      const std::unique_ptr<AnyState> after = state.clone();
      after->apply(chosen.data());
      return grow(*after, {}, last, depth);
    }
    const int who = state.seat(row);
    if (who < 0) return grow(state, with(chosen, 0), last, depth);
    const Known fresh{kOpen, digest_of(last)};
    const auto [known, is_new] = known_.try_emplace(key_of(state, chosen, last), fresh);
    if (!is_new) return met_again(known->second, fresh.past);
    i32* const number = &known->second.number;  // stays where it is while the table grows
    return *number = expand(state, chosen, last, who, depth);
  }

  i32 expand(const AnyState& state, const std::vector<i32>& chosen, const Last& last, int who,
             int depth) {
    if (static_cast<i64>(known_.size()) > limits_.positions || depth >= limits_.depth)
      raise(ConfigError("is too large for an exact answer: more than " +
                        std::to_string(limits_.depth) + " decisions in a game or " +
                        std::to_string(limits_.positions) + " positions in all games"));
    const std::vector<int> actions = state.legal(static_cast<int>(chosen.size()));
    const i32 info = info_of(state, who, last[at(who)], actions);
    std::vector<i32> below;
    for (const int action : actions) {
      Last now = last;
      now[at(who)] = {info, action};
      below.push_back(grow(state, with(chosen, action), now, depth + 1));
    }
    positions.push_back({info, static_cast<i64>(child.size())});
    child.insert(child.end(), below.begin(), below.end());
    return static_cast<i32>(positions.size()) - 1;
  }

  i32 met_again(const Known& known, u64 past) {
    if (known.number == kOpen)
      raise(ConfigError("has positions that repeat, so its tree has no end"));
    merged |= known.past != past;
    return known.number;
  }

  static u64 digest_of(const Last& last) {
    std::string past;
    append(past, last.data(), last.size());
    return std::hash<std::string>()(past);
  }

  static std::vector<i32> with(std::vector<i32> chosen, i32 action) {
    chosen.push_back(action);
    return chosen;
  }

  std::string key_of(const AnyState& state, const std::vector<i32>& chosen,
                     const Last& last) const {
    std::string key;
    const std::vector<u8> game = state.position(), extra = state.extra();
    append(key, game.data(), game.size());
    append(key, extra.data(), extra.size());
    append(key, chosen.data(), chosen.size());
    if (limits_.recall) append(key, last.data(), last.size());
    return key;
  }

  i32 info_of(const AnyState& state, int who, const Sequence& last,
              const std::vector<int>& actions) {
    std::vector<u8> seen(at(shape_.obs_bytes));
    state.observe(who, seen.data());
    std::string key;
    append(key, &who, 1);
    if (limits_.recall) append(key, &last, 1);
    append(key, seen.data(), seen.size());
    const auto [known, is_new] = known_infos_.try_emplace(key, infos());
    if (is_new) {
      seat.push_back(who);
      before.push_back(last);
      legal.emplace_back(actions.begin(), actions.end());
      obs.insert(obs.end(), seen.begin(), seen.end());
    } else if (legal[at(known->second)] != actions) {
      raise(ConfigError("has different legal actions where a seat sees the same"));
    }
    return known->second;
  }

  // Ends with the same scores are one.
  i32 end_of(const AnyState& state) {
    std::vector<f64> of;
    for (int who = 0; who < shape_.seats; ++who) of.push_back(state.score(who));
    std::string key;
    append(key, of.data(), of.size());
    const i32 next = ~static_cast<i32>(scores.size() / at(shape_.seats));
    const auto [known, is_new] = known_ends_.try_emplace(key, next);
    if (is_new) scores.insert(scores.end(), of.begin(), of.end());
    return known->second;
  }

  static constexpr i32 kOpen = std::numeric_limits<i32>::min();

  TreeShape shape_;
  TreeLimits limits_;
  std::unordered_map<std::string, Known> known_;
  std::unordered_map<std::string, i32> known_infos_, known_ends_;
};

}  // namespace sparring
