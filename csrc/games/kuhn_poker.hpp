// Kuhn poker: three cards, one bet. The smallest poker whose equilibria are known in closed form.
#pragma once

#include "core/bounds.hpp"
#include "core/deal.hpp"
#include "core/describe.hpp"
#include "core/game.hpp"

namespace sparring::kuhn_poker {

struct Config {
  i32 deal = -1;  // 0..5: the first seat holds card deal / 2, the second the deal % 2-th other one
};

inline constexpr int kPass = 0, kBet = 1;               // pass: check or fold; bet: bet or call
inline constexpr int kJack = 0, kQueen = 1, kKing = 2;  // by rank
inline constexpr int kDeals = 6;

// What a seat sees: its card, every move so far, its place, and whether it is to move; all it ever
// knew.
inline constexpr Feature kRanks[] = {{"jack"}, {"queen"}, {"king"}};
inline constexpr Feature kMoves[] = {{"pass"}, {"bet"}};
inline constexpr Feature kTurn[] = {{"second seat"}, {"to move"}};
inline constexpr Section kRow[] = {{"card", kRanks}, {"moves", kMoves, 3}, {"turn", kTurn}};

struct Game {
  using Config = kuhn_poker::Config;
  using Action = i32;
  static constexpr int kMaxSeats = 2, kRows = 1, kRoles = 1, kActions = 2;
  static constexpr const char* kParts[] = {"chips"};
  static constexpr const char* kBots[] = {"caller", "nash"};
  static constexpr const char* kEnds[] = {"showdown", "fold"};

  u8 cards[2];
  u8 moves[3], length;
  u8 chips[2];  // that each seat has put in
  i8 won;       // by the first seat, at the end
  u8 over;

  SPARRING_FN static Shape shape(const Config&) {
    return {.seats = 2, .actions = 2, .obs_bytes = padded(bytes_of(kRow))};
  }

  SPARRING_FN int seat(int) const { return length & 1; }
  SPARRING_FN int role(int) const { return 0; }
  SPARRING_FN f32 score(const Config&, int at) const {
    return static_cast<f32>(at == 0 ? won : -won);
  }

  SPARRING_FN void reset(const Config& config, Rng& rng) {
    *this = Game{};
    const int number = config.deal < 0 ? rng.below(kDeals) : config.deal;
    deal(number / 2, (number / 2 + 1 + number % 2) % 3);
  }

  SPARRING_FN void deal(int first, int second) {
    cards[0] = static_cast<u8>(first);
    cards[1] = static_cast<u8>(second);
    chips[0] = chips[1] = 1;
  }

  SPARRING_FN void legal(const Config&, int, Legal<Game>& out) const { out.word[0] = 3; }

  SPARRING_FN void observe(const Config&, int me, u8* out) const {
    constexpr int card = byte_of(kRow, "card"), pass = byte_of(kRow, "moves", "pass");
    constexpr int bet = byte_of(kRow, "moves", "bet");
    for (int rank = 0; rank < 3; ++rank) out[card + rank] = cards[me] == rank;
    for (int i = 0; i < 3; ++i) {
      out[pass + 2 * i] = i < length && moves[i] == kPass;
      out[bet + 2 * i] = i < length && moves[i] == kBet;
    }
    out[byte_of(kRow, "turn", "second seat")] = me == 1;
    out[byte_of(kRow, "turn", "to move")] = !over && seat(0) == me;
  }

  SPARRING_FN void step(const Config&, const Action* actions, Rng&, Result& result) {
    const int me = seat(0);
    const bool bet = actions[0] == kBet, faced = facing_a_bet();
    moves[length++] = static_cast<u8>(actions[0]);
    chips[me] = static_cast<u8>(chips[me] + bet);
    if (faced && !bet)
      finish(1 - me, 1, result);
    else if (faced || (length == 2 && !bet))
      finish(cards[0] > cards[1] ? 0 : 1, 0, result);
  }

  // caller never bets and never folds. nash plays the equilibrium that bets most: with a king
  // always, with a jack one time in three.
  SPARRING_FN Action act(int bot, const Config&, int, const Legal<Game>&, Rng& rng) const {
    const int me = seat(0), card = cards[me];
    const bool faced = facing_a_bet();
    if (bot == 0) return faced ? kBet : kPass;
    if (card == kKing) return kBet;
    if (card == kJack) return !faced && rng.below(3) == 0 ? kBet : kPass;
    if (!faced) return kPass;
    return rng.below(3) < (me == 0 ? 2 : 1) ? kBet : kPass;
  }

  SPARRING_FN bool facing_a_bet() const { return length > 0 && moves[length - 1] == kBet; }

  // The winner is paid what the other one has put in.
  SPARRING_FN void finish(int winner, int why, Result& result) {
    const int stake = chips[1 - winner];
    won = static_cast<i8>(winner == 0 ? stake : -stake);
    over = 1;
    result.add_reward(0, winner, static_cast<f32>(stake));
    result.add_reward(0, 1 - winner, static_cast<f32>(-stake));
    result.terminate(why);
  }

  SPARRING_FN static constexpr int belief_size(const Config&) { return 3; }

  // belief: log-weights of the other's card. Behind the end nothing is left to guess: the cards
  // have decided.
  SPARRING_FN void resample_hidden(const Config&, int me, Rng& rng, const f32* belief = nullptr) {
    if (over) return;
    const auto other = [&](int i) { return (cards[me] + 1 + i) % 3; };
    const auto weight = [&](int i) { return weight_of(log_weight(belief[other(i)])); };
    const int drawn = belief ? draw_by_weight(2, weight, rng) : rng.below(2);
    cards[1 - me] = static_cast<u8>(other(drawn));
  }

#if SPARRING_HOST
  static Spec spec(const Config& config) {
    return {.name = "kuhn_poker",
            .title = "Kuhn poker: three cards, one bet",
            .rules_version = 1,
            .blocks = blocks_of(kRow),
            .role_names = {"player"},
            .zero_sum = true,
            .chance = config.deal < 0};
  }

  static std::string action_name(const Config&, int action) { return kMoves[action].name; }

  static std::vector<Field> config_fields() {
    return {SPARRING_CONFIG(deal, -1, kDeals - 1, "",
                            "which of the 6 equally likely deals; -1: drawn")};
  }

  static std::vector<Field> state_fields() {
    return {SPARRING_STATE(cards), SPARRING_STATE(moves), SPARRING_STATE(length),
            SPARRING_STATE(chips), SPARRING_STATE(won),   SPARRING_STATE(over)};
  }

  void bounds(const Config&, Bounds& bounds) const {
    bounds.within("cards", cards, kJack, kKing);
    bounds.within("moves", moves, kPass, kBet);
    bounds.within("length", length, 0, 3);
    bounds.within("chips", chips, 1, 2);
    bounds.within("won", won, -2, 2);
    bounds.within("over", over, 0, 1);
  }

  // The moves played again lead here.
  const char* audit(const Config& config) const {
    if (cards[0] == cards[1]) return "no such deal";
    Game again{};
    again.deal(cards[0], cards[1]);
    Result unpaid{.reward = nullptr, .weight = nullptr, .roles = kRoles, .active_parts = 0};
    Rng none(0, 0, 0, Stream::kChance);
    for (int i = 0; i < length; ++i) {
      if (again.over) return "a move after the end";
      const Action move = moves[i];
      again.step(config, &move, none, unpaid);
    }
    return std::memcmp(this, &again, sizeof again) ? "its moves lead elsewhere" : nullptr;
  }

  bool ended(const Config&) const { return over; }

  std::string text(const Config&, int viewer) const {
    std::string told;
    for (int at = 0; at < 2; ++at) {
      told += "seat " + std::to_string(at) + ": ";
      told += viewer < 0 || viewer == at ? "JQK"[cards[at]] : '?';
      told += ", " + std::to_string(chips[at]) + (chips[at] == 1 ? " chip\n" : " chips\n");
    }
    told += "moves:";
    for (int i = 0; i < length; ++i) told += moves[i] == kBet ? " bet" : " pass";
    return told + "\n";
  }
#endif
};

}  // namespace sparring::kuhn_poker
