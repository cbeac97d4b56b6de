// My game: who takes the last one wins.
//
// Two seats take one to three from a heap by turns. Change it into your game;
// docs/inside/add-a-game.md has the whole contract.
#pragma once

#include "core/bounds.hpp"
#include "core/describe.hpp"
#include "core/game.hpp"

namespace sparring::my_game {

// What can be set with --set heap=30; every member has its line in config_fields below.
struct Config {
  i32 heap = 21;
  i32 vary = 9;  // up to so many are missing from the heap, by lot; 0: no chance at all
};

inline constexpr int kMaxTaken = 3, kMaxHeap = 100;

// What one seat may know: the heap bit by bit, and whose turn it is. `observe` finds the bytes by
// these names, and `spec` tells them to people.
inline constexpr Feature kHeap[] = {{"1"}, {"2"}, {"4"}, {"8"}, {"16"}, {"32"}, {"64"}};
inline constexpr Feature kTurn[] = {{"to move"}};
inline constexpr Section kRow[] = {{"left", kHeap}, {"turn", kTurn}};
inline constexpr int kBits = 7;  // that hold kMaxHeap

struct Game {
  using Config = my_game::Config;
  using Action = i32;  // take 1 + action
  static constexpr int kMaxSeats = 2, kRows = 1, kRoles = 1, kActions = kMaxTaken;
  static constexpr const char* kParts[] = {"result"};
  static constexpr const char* kBots[] = {"greedy", "expert"};
  static constexpr const char* kEnds[] = {"heap taken"};

  // The whole state, without pointers and without padding: a copy of its bytes is a clone.
  u8 left, mover;

  SPARRING_FN static Shape shape(const Config&) {
    return {.seats = 2, .actions = kActions, .obs_bytes = padded(bytes_of(kRow))};
  }

  SPARRING_FN int seat(int) const { return mover; }
  SPARRING_FN int role(int) const { return 0; }
  SPARRING_FN f32 score(const Config&, int at) const {
    return left ? 0.0f : at == mover ? -1.0f : 1.0f;
  }

  // All chance comes from `rng`.
  SPARRING_FN void reset(const Config& config, Rng& rng) {
    *this = Game{};
    const int missing = config.vary ? rng.below(config.vary + 1) : 0;
    left = static_cast<u8>(config.heap - missing);
  }

  SPARRING_FN void legal(const Config&, int, Legal<Game>& out) const {
    out = Legal<Game>::none();
    for (int take = 1; take <= kMaxTaken && take <= left; ++take) out.set(take - 1);
  }

  SPARRING_FN void observe(const Config&, int me, u8* out) const {
    constexpr int heap = byte_of(kRow, "left");
    for (int bit = 0; bit < kBits; ++bit) out[heap + bit] = left >> bit & 1;
    out[byte_of(kRow, "turn", "to move")] = left && mover == me;
  }

  SPARRING_FN void step(const Config&, const Action* actions, Rng&, Result& result) {
    left = static_cast<u8>(left - 1 - actions[0]);
    if (!left) {
      result.add_reward(0, mover, 1.0f);
      result.add_reward(0, 1 - mover, -1.0f);
      result.terminate(0);
    }
    mover ^= 1;
  }

  // greedy takes as many as it can; expert leaves a multiple of four. The best bot comes last.
  SPARRING_FN Action act(int bot, const Config&, int, const Legal<Game>& legal, Rng& rng) const {
    if (bot == 0) return legal.count() - 1;
    const int over = left % (kMaxTaken + 1);
    return over ? over - 1 : legal.select(rng.below(legal.count()));
  }

#if SPARRING_HOST
  static Spec spec(const Config& config) {
    return {.name = "my_game",
            .title = "My game: who takes the last one wins",
            .rules_version = 1,
            .blocks = blocks_of(kRow),
            .role_names = {"player"},
            .zero_sum = true,
            .chance = config.vary > 0};
  }

  static std::string action_name(const Config&, int action) {
    return "take " + std::to_string(1 + action);
  }

  static std::vector<Field> config_fields() {
    return {SPARRING_CONFIG(heap, 10, kMaxHeap, "", "how many there are at the start"),
            SPARRING_CONFIG(vary, 0, 9, "", "most that are missing from the heap, by lot")};
  }

  static std::vector<Field> state_fields() { return {SPARRING_STATE(left), SPARRING_STATE(mover)}; }

  // What each field may hold: a state that comes from a file is checked before it is played. What
  // fields may hold together belongs into `const char* audit(const Config&) const`.
  void bounds(const Config& config, Bounds& bounds) const {
    bounds.within("left", left, 0, config.heap);
    bounds.within("mover", mover, 0, 1);
  }

  bool ended(const Config&) const { return left == 0; }

  std::string text(const Config&, int) const {
    return std::string(left, 'o') + " (" + std::to_string(left) + " left)\n";
  }
#endif
};

}  // namespace sparring::my_game
