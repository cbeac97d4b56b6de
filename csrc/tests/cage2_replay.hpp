// CAGE-2 with recorded chance: a test sets the outcomes of the next step and then plays it, so that
// whole episodes of the reference simulator can be compared step by step. Only in test builds.
#pragma once

#include "games/cage2.hpp"

namespace sparring::cage2_replay {

// Recorded outcomes: host chosen by red's policy, port attacked, shell noticed, host green scans;
// -1 where nothing was drawn.
enum Outcome { kHost, kPort, kNoticed, kGreen, kOutcomes };

// Hands out what was recorded and notes when that was not possible.
struct Recorded {
  const i16* outcome;
  u16& impossible;

  SPARRING_FN int one_of(u32 set) { return checked(kHost, set); }
  SPARRING_FN int port_of(u32 ports) { return checked(kPort, ports); }
  SPARRING_FN bool is_shell_noticed() { return checked(kNoticed, 3) == 1; }
  SPARRING_FN int green() {
    if (outcome[kGreen] < 0) return 8;
    for (int i = 0; i < 8; ++i)
      if (cage2::kGreenHosts[i] == outcome[kGreen]) return i;
    impossible |= 1 << kGreen;
    return 8;
  }

  SPARRING_FN int checked(Outcome what, u32 possible) {
    const int value = outcome[what];
    if (value >= 0 && value < 32 && possible >> value & 1) return value;
    impossible = static_cast<u16>(impossible | 1 << what);
    return lowest_bit(possible);
  }
};

struct Game {
  using Config = cage2::Config;
  using Action = i32;
  static constexpr int kMaxSeats = 1, kRows = 1, kRoles = 1, kActions = cage2::Game::kActions;
  static constexpr const char* kParts[] = {"compromise", "impact", "restore", "order"};
  static constexpr const char* kEnds[] = {"step limit"};

  cage2::Game played;
  i16 outcome[kOutcomes];
  u16 impossible;  // outcomes that the rules could not have drawn
  u16 spare[3];

  SPARRING_FN static Shape shape(const Config& config) { return cage2::Game::shape(config); }
  SPARRING_FN static f32 default_weight(const Config& config, int part) {
    return cage2::Game::default_weight(config, part);
  }
  SPARRING_FN int seat(int) const { return 0; }
  SPARRING_FN int role(int) const { return 0; }
  SPARRING_FN f32 score(const Config& config, int at) const { return played.score(config, at); }
  SPARRING_FN void reset(const Config& config, Rng& rng) {
    *this = Game{};
    played.reset(config, rng);
    for (i16& value : outcome) value = -1;
  }
  SPARRING_FN void legal(const Config& config, int row, Legal<Game>& out) const {
    played.legal(config, row, out);
  }
  SPARRING_FN void observe(const Config& config, int me, u8* out) const {
    played.observe(config, me, out);
  }
  SPARRING_FN void step(const Config& config, const Action* actions, Rng&, Result& result) {
    Recorded recorded{outcome, impossible};
    played.advance(config, actions[0], recorded, result);
  }

#if SPARRING_HOST
  static Spec spec(const Config& config) {
    Spec spec = cage2::Game::spec(config);
    spec.name = "cage2_replay";
    return spec;
  }
  static std::vector<Field> config_fields() { return cage2::Game::config_fields(); }
  static std::vector<Field> state_fields() {
    std::vector<Field> fields = cage2::Game::state_fields();
    fields.push_back(SPARRING_STATE(outcome));
    fields.push_back(SPARRING_STATE(impossible));
    return fields;
  }
  static std::string invalid(const Config& config) { return cage2::Game::invalid(config); }
  static std::string action_name(const Config& config, int action) {
    return cage2::Game::action_name(config, action);
  }
  void bounds(const Config& config, Bounds& bounds) const {
    played.bounds(config, bounds);
    bounds.any(outcome);
    bounds.within("impossible", impossible, 0, (1 << kOutcomes) - 1);
    bounds.spare(spare);
  }
  const char* audit(const Config& config) const { return played.audit(config); }
  bool ended(const Config& config) const { return played.ended(config); }
  std::string setup(const Config&, const std::vector<i64>& data) {
    if (data.size() != kOutcomes) return "four outcomes are needed: host, port, noticed, green";
    for (size_t i = 0; i < kOutcomes; ++i) outcome[i] = static_cast<i16>(data[i]);
    return {};
  }
#endif
};
#if SPARRING_HOST
static_assert(offsetof(Game, played) == 0, "the fields of the game lie where they are expected");
#endif

}  // namespace sparring::cage2_replay
