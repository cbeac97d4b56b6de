// A test game in which plain self-play is known to run in circles: both seats choose at once, and
// every choice loses against another one.
#pragma once

#include "core/bounds.hpp"
#include "core/describe.hpp"
#include "core/game.hpp"

namespace sparring::rock_paper_scissors {

struct Config {};

inline constexpr Feature kChoices[] = {{"rock"}, {"paper"}, {"scissors"}};
inline constexpr Section kRow[] = {{"own", kChoices}, {"other", kChoices}};

struct Game {
  using Config = rock_paper_scissors::Config;
  using Action = i32;  // rock, paper, scissors: each beats the one before it
  static constexpr int kMaxSeats = 2, kRows = 2, kRoles = 1, kActions = 3;
  static constexpr const char* kParts[] = {"result"};
  static constexpr const char* kBots[] = {"rock", "paper"};
  static constexpr const char* kEnds[] = {"shown"};

  u8 shown[2];  // 1 + action, 0 before
  i8 won;       // by the first seat

  SPARRING_FN static Shape shape(const Config&) {
    return {.seats = 2, .actions = 3, .obs_bytes = 16};
  }
  SPARRING_FN int seat(int row) const { return row; }
  SPARRING_FN int role(int) const { return 0; }
  SPARRING_FN f32 score(const Config&, int at) const {
    return static_cast<f32>(at == 0 ? won : -won);
  }
  SPARRING_FN void reset(const Config&, Rng&) { *this = Game{}; }
  SPARRING_FN void legal(const Config&, int, Legal<Game>& out) const { out.word[0] = 7; }

  // What each showed, the seat itself first: nothing at all before the one decision.
  SPARRING_FN void observe(const Config&, int me, u8* out) const {
    for (int i = 0; i < 3; ++i) {
      out[byte_of(kRow, "own") + i] = shown[me] == 1 + i;
      out[byte_of(kRow, "other") + i] = shown[1 - me] == 1 + i;
    }
  }

  SPARRING_FN void step(const Config&, const Action* actions, Rng&, Result& result) {
    for (int at = 0; at < 2; ++at) shown[at] = static_cast<u8>(1 + actions[at]);
    const int ahead = (actions[0] - actions[1] + 3) % 3;
    won = static_cast<i8>(ahead == 0 ? 0 : ahead == 1 ? 1 : -1);
    for (int at = 0; at < 2; ++at) result.add_reward(0, at, static_cast<f32>(at == 0 ? won : -won));
    result.terminate(0);
  }

  SPARRING_FN Action act(int bot, const Config&, int, const Legal<Game>&, Rng&) const {
    return bot;
  }

#if SPARRING_HOST
  static Spec spec(const Config&) {
    return {.name = "rock_paper_scissors",
            .title = "Rock, paper, scissors: a test game",
            .rules_version = 1,
            .blocks = blocks_of(kRow),
            .role_names = {"player"},
            .zero_sum = true,
            .chance = false};
  }
  static std::string action_name(const Config&, int action) { return kChoices[action].name; }
  void bounds(const Config&, Bounds& bounds) const {
    bounds.within("shown", shown, 0, 3);
    bounds.within("won", won, -1, 1);
  }
  const char* audit(const Config&) const {
    if (!shown[0] != !shown[1]) return "one of two has shown";
    const int ahead = (shown[0] - shown[1] + 3) % 3;
    return won != (ahead == 2 ? -1 : ahead) ? "the other one won" : nullptr;
  }
  bool ended(const Config&) const { return shown[0] > 0; }
  static std::vector<Field> state_fields() { return {SPARRING_STATE(shown), SPARRING_STATE(won)}; }
#endif
};

}  // namespace sparring::rock_paper_scissors
