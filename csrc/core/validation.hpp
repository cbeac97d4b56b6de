// Validation of untrusted bytes: is this a valid position of a game, and a valid `Env` around it?
// Every field is checked before a rule reads it. Host only.
#pragma once

#include "core/bounds.hpp"
#include "core/env.hpp"

namespace sparring {

template <class G>
concept HasBounds = requires(const G& game, const typename G::Config& config, Bounds& bounds) {
  game.bounds(config, bounds);
};

template <class G>
concept ChecksExtraState =
    requires(const G& game, const typename G::Config& config, const u8* extra) {
      { game.check_extra(config, extra) } -> Same<const char*>;
    };

template <class G>
Bounds bounds_of(const G& game, const typename G::Config& config) {
  static_assert(HasBounds<G>,
                "a game declares every field: void bounds(const Config&, Bounds&) const; "
                "docs/inside/add-a-game.md");
  Bounds bounds(&game, sizeof game);
  game.bounds(config, bounds);
  return bounds;
}

// At least one seat is to move, and each seat to move has legal actions within range.
template <class G>
const char* check_rows(const G& game, const typename G::Config& config, const u8* extra) {
  const Shape shape = G::shape(config);
  bool any_to_move = false;
  for (int row = 0; row < G::kRows; ++row) {
    const int seat = game.seat(row);
    if (seat < 0) continue;
    any_to_move = true;
    if (seat >= shape.seats) return "the seat to move does not exist";
    if (game.role(row) < 0 || game.role(row) >= counts_of<G>(config).roles)
      return "the role does not exist";
    if constexpr (kDiscrete<G>) {
      Legal<G> legal = Legal<G>::none();
      call_legal(game, config, row, legal, extra);
      if (!legal.any()) return "the seat to move has no legal action";
      bool out_of_range = false;
      legal.each([&](int action) { out_of_range |= action >= shape.actions; });
      if (out_of_range) return "a legal action does not exist";
    }
  }
  return any_to_move ? nullptr : "no seat is to move";
}

// Returns the error of a position, "" if it is valid: fields out of range, then invalid extra
// state, then fields that contradict each other. over: whether the saved state says that the game
// ended.
template <Game G>
std::string check_position(const G& game, const typename G::Config& config, const u8* extra,
                           bool over = false) {
  if (std::string error = bounds_of(game, config).error(); !error.empty()) return error;
  static_assert(!HasExtraState<G> || ChecksExtraState<G>,
                "a game with extra state checks it: const char* "
                "check_extra(const Config&, const u8* extra) const; docs/inside/add-a-game.md");
  if constexpr (ChecksExtraState<G>)
    if (const char* error = game.check_extra(config, extra)) return error;
  if constexpr (requires { game.audit(config); })
    if (const char* error = game.audit(config)) return error;
  if constexpr (requires { game.ended(config); })
    if (game.ended(config) != over)
      return over ? "marked as over, but the game goes on" : "the game is over";
  const char* error = over ? nullptr : check_rows(game, config, extra);
  return error ? error : "";
}

template <class T, size_t N>
bool all_finite(const T (&values)[N]) {
  for (const T& value : values)
    if (!is_finite(value)) return false;
  return true;
}

// Returns the error of an Env, "" if it is valid. The structured binding names every field, so that
// a new field does not compile until it is handled here.
template <Game G>
std::string check_env(const Env<G>& env, const typename G::Config& config, const u8* extra,
                      bool over = false) {
  [[maybe_unused]] const auto& [game, episode, chance_draws, bot_draws, sample_draws, length,
                                policy_seats, pending_reward, skipped, player] = env;

  const int seats = G::shape(config).seats;
  u32 counted = 0;
  for (int seat = 0; seat < G::kMaxSeats; ++seat) {
    const int id = player[seat];
    if (seat >= seats) {
      if (id != kNoPlayer) return "a seat that is not in use has a player";
    } else if (id == kNoPlayer || bot_of(id) >= counts_of<G>(config).bots) {
      return "a seat is held by nobody who can play";
    }
    counted += id >= 0;
  }
  if (policy_seats != counted) return "the number of policy seats is wrong";
  if (!all_finite(pending_reward)) return "a reward is not finite";
  return check_position(game, config, extra, over);
}

}  // namespace sparring
