// Kuhn poker for three: four cards, one bet. The smallest poker in which two can squeeze a third.
#pragma once

#include "core/bounds.hpp"
#include "core/deal.hpp"
#include "core/describe.hpp"
#include "core/game.hpp"

namespace sparring::kuhn_poker_3 {

struct Config {
  i32 deal = -1;  // 0..23: which card each seat gets (deal_cards)
};

inline constexpr int kPass = 0, kBet = 1;  // pass: check or fold; bet: bet or call
inline constexpr int kSeats = 3, kCards = 4, kDeals = 24;
inline constexpr int kMaxMoves = 5;  // pass pass bet, and two answers

// What a seat sees: its card, every move so far, its place, and whether it is to move; all it ever
// knew.
inline constexpr Feature kRanks[] = {{"jack"}, {"queen"}, {"king"}, {"ace"}};
inline constexpr Feature kMoves[] = {{"pass"}, {"bet"}};
inline constexpr Feature kTurn[] = {{"first seat"}, {"second seat"}, {"third seat"}, {"to move"}};
inline constexpr Section kRow[] = {{"card", kRanks}, {"moves", kMoves, kMaxMoves}, {"turn", kTurn}};

struct Game {
  using Config = kuhn_poker_3::Config;
  using Action = i32;
  static constexpr int kMaxSeats = kSeats, kRows = 1, kRoles = 1, kActions = 2;
  static constexpr const char* kParts[] = {"chips"};
  static constexpr const char* kBots[] = {"caller", "solid"};
  static constexpr const char* kEnds[] = {"showdown", "fold"};

  u8 cards[kSeats];  // 0..3: jack, queen, king, ace
  u8 moves[kMaxMoves], length;
  u8 chips[kSeats];  // that each seat has put in
  i8 won[kSeats];    // at the end
  u8 over;

  SPARRING_FN static Shape shape(const Config&) {
    return {.seats = kSeats, .actions = 2, .obs_bytes = padded(bytes_of(kRow))};
  }

  SPARRING_FN int seat(int) const { return length % kSeats; }
  SPARRING_FN int role(int) const { return 0; }
  SPARRING_FN f32 score(const Config&, int at) const { return static_cast<f32>(won[at]); }

  SPARRING_FN void reset(const Config& config, Rng& rng) {
    *this = Game{};
    deal_cards(config.deal < 0 ? rng.below(kDeals) : config.deal);
    for (int at = 0; at < kSeats; ++at) chips[at] = 1;
  }

  // A deal is a number: 4 cards for the first seat times 3 for the second times 2 for the third.
  SPARRING_FN void deal_cards(int deal) {
    const int pick[kSeats] = {deal / 6, deal / 2 % 3, deal % 2};
    Bits<kCards> left = {{(1u << kCards) - 1}};
    for (int at = 0; at < kSeats; ++at) {
      cards[at] = static_cast<u8>(left.select(pick[at]));
      left.clear(cards[at]);
    }
  }

  SPARRING_FN void legal(const Config&, int, Legal<Game>& out) const { out.word[0] = 3; }

  SPARRING_FN void observe(const Config&, int me, u8* out) const {
    constexpr int card = byte_of(kRow, "card"), pass = byte_of(kRow, "moves", "pass");
    constexpr int bet = byte_of(kRow, "moves", "bet"), turn = byte_of(kRow, "turn");
    for (int rank = 0; rank < kCards; ++rank) out[card + rank] = cards[me] == rank;
    for (int i = 0; i < kMaxMoves; ++i) {
      out[pass + 2 * i] = i < length && moves[i] == kPass;
      out[bet + 2 * i] = i < length && moves[i] == kBet;
    }
    for (int at = 0; at < kSeats; ++at) out[turn + at] = me == at;
    out[byte_of(kRow, "turn", "to move")] = !over && seat(0) == me;
  }

  // Everybody passes, or somebody bets and the two others answer.
  SPARRING_FN void step(const Config&, const Action* actions, Rng&, Result& result) {
    const int me = seat(0);
    moves[length++] = static_cast<u8>(actions[0]);
    chips[me] = static_cast<u8>(chips[me] + (actions[0] == kBet));
    const int first = first_bet();
    if (length == (first < 0 ? kSeats : first + kSeats)) finish(result);
  }

  // The move that bet first; -1 if nobody did.
  SPARRING_FN int first_bet() const {
    for (int i = 0; i < length; ++i)
      if (moves[i] == kBet) return i;
    return -1;
  }

  // The highest card wins all chips: among all who bet, or among all if nobody did.
  SPARRING_FN void finish(Result& result) {
    const int most = first_bet() < 0 ? 1 : 2;
    int winner = -1, stayed = 0;
    for (int at = 0; at < kSeats; ++at) {
      if (chips[at] < most) continue;
      ++stayed;
      if (winner < 0 || cards[at] > cards[winner]) winner = at;
    }
    const int pot = chips[0] + chips[1] + chips[2];
    over = 1;
    for (int at = 0; at < kSeats; ++at) {
      won[at] = static_cast<i8>((at == winner ? pot : 0) - chips[at]);
      result.add_reward(0, at, static_cast<f32>(won[at]));
    }
    result.terminate(stayed > 1 ? 0 : 1);
  }

  // caller never bets and never folds. solid bets an ace, and a jack now and then; it calls with an
  // ace, and with a king if nobody else did.
  SPARRING_FN Action act(int bot, const Config&, int, const Legal<Game>&, Rng& rng) const {
    const int card = cards[seat(0)], first = first_bet();
    if (bot == 0) return first < 0 ? kPass : kBet;
    if (card == 3) return kBet;
    if (first < 0) return card == 0 && rng.below(6) == 0 ? kBet : kPass;
    return card == 2 && length == first + 1 ? kBet : kPass;
  }

  SPARRING_FN static constexpr int belief_size(const Config&) { return 2 * kCards; }

  // belief: log-weights of the cards of the next seat, and of the one behind it. Behind the end
  // nothing is left to guess: the cards have decided.
  SPARRING_FN void resample_hidden(const Config&, int me, Rng& rng, const f32* belief = nullptr) {
    if (over) return;
    Bits<kCards> left = {{(1u << kCards) - 1}};
    left.clear(cards[me]);
    if (belief) return believe(me, left, rng, belief);
    for (int at = 0; at < kSeats; ++at) {
      if (at == me) continue;
      cards[at] = static_cast<u8>(left.select(rng.below(left.count())));
      left.clear(cards[at]);
    }
  }

  // Draws a pair of different cards.
  SPARRING_FN void believe(int me, const Bits<kCards>& left, Rng& rng, const f32* belief) {
    const auto weight = [&](int i) {
      const int next = i / kCards, behind = i % kCards;
      if (next == behind || !left.test(next) || !left.test(behind)) return 0.0;
      return weight_of(log_weight(belief[next]) + log_weight(belief[kCards + behind]));
    };
    const int drawn = draw_by_weight(kCards * kCards, weight, rng);
    cards[(me + 1) % kSeats] = static_cast<u8>(drawn / kCards);
    cards[(me + 2) % kSeats] = static_cast<u8>(drawn % kCards);
  }

#if SPARRING_HOST
  static Spec spec(const Config& config) {
    return {.name = "kuhn_poker_3",
            .title = "Kuhn poker for three: four cards, one bet",
            .rules_version = 1,
            .blocks = blocks_of(kRow),
            .role_names = {"player"},
            .chance = config.deal < 0};
  }

  static std::string action_name(const Config&, int action) { return kMoves[action].name; }

  static std::vector<Field> config_fields() {
    return {SPARRING_CONFIG(deal, -1, kDeals - 1, "",
                            "which of the 24 equally likely deals; -1: drawn")};
  }

  static std::vector<Field> state_fields() {
    return {SPARRING_STATE(cards), SPARRING_STATE(moves), SPARRING_STATE(length),
            SPARRING_STATE(chips), SPARRING_STATE(won),   SPARRING_STATE(over)};
  }

  void bounds(const Config&, Bounds& bounds) const {
    bounds.within("cards", cards, 0, kCards - 1);
    bounds.within("moves", moves, kPass, kBet);
    bounds.within("length", length, 0, kMaxMoves);
    bounds.within("chips", chips, 1, 2);
    bounds.within("won", won, -2, 4);
    bounds.within("over", over, 0, 1);
  }

  // The moves played again lead here.
  const char* audit(const Config& config) const {
    Game again{};
    for (int at = 0; at < kSeats; ++at) {
      if (cards[at] == cards[(at + 1) % kSeats]) return "no such deal";
      again.cards[at] = cards[at];
      again.chips[at] = 1;
    }
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
    for (int at = 0; at < kSeats; ++at) {
      told += "seat " + std::to_string(at) + ": ";
      told += viewer < 0 || viewer == at ? "JQKA"[cards[at]] : '?';
      told += ", " + std::to_string(chips[at]) + (chips[at] == 1 ? " chip\n" : " chips\n");
    }
    told += "moves:";
    for (int i = 0; i < length; ++i) told += moves[i] == kBet ? " bet" : " pass";
    return told + "\n";
  }
#endif
};

}  // namespace sparring::kuhn_poker_3
