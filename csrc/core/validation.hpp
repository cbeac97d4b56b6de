// Whether bytes that come from outside are a position of a game, and a table to play it at: all of
// it is checked before a rule reads it. Host only.
#pragma once

#include "core/bounds.hpp"
#include "core/table.hpp"

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
                "docs/add-a-game.md");
  Bounds bounds(&game, sizeof game);
  game.bounds(config, bounds);
  return bounds;
}

// Somebody is to move, and whoever is has an action that exists.
template <class G>
const char* check_rows(const G& game, const typename G::Config& config, const u8* extra) {
  const Shape shape = G::shape(config);
  bool somebody = false;
  for (int row = 0; row < G::kRows; ++row) {
    const int seat = game.seat(row);
    if (seat < 0) continue;
    somebody = true;
    if (seat >= shape.seats) return "a seat is to move that does not exist";
    if (game.role(row) < 0 || game.role(row) >= G::kRoles) return "a role that does not exist";
    if constexpr (kDiscrete<G>) {
      Legal<G> legal = Legal<G>::none();
      call_legal(game, config, row, legal, extra);
      if (!legal.any()) return "a seat is to move and cannot";
      bool beyond = false;
      legal.each([&](int action) { beyond |= action >= shape.actions; });
      if (beyond) return "a legal action that does not exist";
    }
  }
  return somebody ? nullptr : "nobody is to move";
}

// What is wrong with a position, "" if nothing: fields out of range, then bytes beside the game,
// then fields that contradict each other. over: whether its game is said to have ended.
template <Game G>
std::string check_position(const G& game, const typename G::Config& config, const u8* extra,
                           bool over = false) {
  if (std::string wrong = bounds_of(game, config).wrong(); !wrong.empty()) return wrong;
  static_assert(!HasExtraState<G> || ChecksExtraState<G>,
                "a game with bytes outside its struct checks them: const char* "
                "check_extra(const Config&, const u8* extra) const; docs/add-a-game.md");
  if constexpr (ChecksExtraState<G>)
    if (const char* wrong = game.check_extra(config, extra)) return wrong;
  if constexpr (requires { game.audit(config); })
    if (const char* wrong = game.audit(config)) return wrong;
  if constexpr (requires { game.ended(config); })
    if (game.ended(config) != over) return over ? "the game goes on" : "the game is over";
  const char* wrong = over ? nullptr : check_rows(game, config, extra);
  return wrong ? wrong : "";
}

template <class T, size_t N>
bool all_finite(const T (&values)[N]) {
  for (const T& value : values)
    if (!is_finite(value)) return false;
  return true;
}

template <class G>
inline constexpr int kBotCount = 0;
template <class G>
  requires requires { G::kBots; }
inline constexpr int kBotCount<G> = static_cast<int>(sizeof(G::kBots) / sizeof(G::kBots[0]));

// What is wrong with a table, "" if nothing. Its fields are taken apart, so that a new one cannot
// be forgotten here.
template <Game G>
std::string check_table(const Table<G>& table, const typename G::Config& config, const u8* extra,
                        bool over = false) {
  [[maybe_unused]] const auto& [game, episode, chance_drawn, bots_drawn, sampled, length, policies,
                                pending, skipped, player] = table;
  const int seats = G::shape(config).seats;
  u32 counted = 0;
  for (int seat = 0; seat < G::kMaxSeats; ++seat) {
    const int who = player[seat];
    if (seat >= seats) {
      if (who != kNoPlayer) return "somebody sits behind the last seat";
    } else if (who == kNoPlayer || bot_of(who) >= kBotCount<G>) {
      return "a seat is held by nobody who can play";
    }
    counted += who >= 0;
  }
  if (policies != counted) return "the seats of policies are miscounted";
  if (!all_finite(pending)) return "a reward that is not finite";
  return check_position(game, config, extra, over);
}

}  // namespace sparring
