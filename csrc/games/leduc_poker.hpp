// Leduc poker: six cards, two rounds of betting, one card for both. Small enough to solve exactly.
#pragma once

#include "core/bounds.hpp"
#include "core/deal.hpp"
#include "core/describe.hpp"
#include "core/game.hpp"

namespace sparring::leduc_poker {

struct Config {
  i32 deal = -1;  // 0..119: which card each seat and the table get (cards_of)
};

inline constexpr int kFold = 0, kCall = 1, kRaise = 2;  // call: check where there is nothing to pay
inline constexpr int kCards = 6, kDeals = 120;          // card / 2 is the rank: jack, queen, king
inline constexpr int kMoves = 4;                        // of a round at most: call raise raise call
inline constexpr int kRaises = 2;                       // of a round
inline constexpr int kMaxChips = 13;

// What a seat sees: its rank, the table's, every move so far, its place and the chips; all it ever
// knew. A fold ends the game, so that nobody sees one.
inline constexpr Feature kRanks[] = {{"jack"}, {"queen"}, {"king"}};
inline constexpr Feature kChosen[] = {{"call"}, {"raise"}};
inline constexpr Feature kTurn[] = {{"second seat"}, {"to move"}};
inline constexpr Feature kChips[] = {{"own", Type::kU8, kMaxChips},
                                     {"other", Type::kU8, kMaxChips}};
inline constexpr Section kRow[] = {{"card", kRanks},
                                   {"table", kRanks},
                                   {"first round", kChosen, kMoves},
                                   {"second round", kChosen, kMoves},
                                   {"turn", kTurn},
                                   {"chips", kChips}};

struct Game {
  using Config = leduc_poker::Config;
  using Action = i32;
  static constexpr int kMaxSeats = 2, kRows = 1, kRoles = 1, kActions = 3;
  static constexpr const char* kParts[] = {"chips"};
  static constexpr const char* kBots[] = {"caller", "solid"};
  static constexpr const char* kEnds[] = {"showdown", "fold"};

  u8 cards[3];  // of the first seat, the second, and the table
  u8 moves[2][kMoves], length[2];
  u8 chips[2];  // that each seat has put in
  u8 round, raises;
  i8 won;  // by the first seat, at the end
  u8 over;

  SPARRING_FN static Shape shape(const Config&) {
    return {.seats = 2, .actions = 3, .obs_bytes = padded(bytes_of(kRow))};
  }

  SPARRING_FN int seat(int) const { return length[round] & 1; }
  SPARRING_FN int role(int) const { return 0; }
  SPARRING_FN f32 score(const Config&, int at) const {
    return static_cast<f32>(at == 0 ? won : -won);
  }

  SPARRING_FN void reset(const Config& config, Rng& rng) {
    *this = Game{};
    deal_cards(config.deal < 0 ? rng.below(kDeals) : config.deal);
    chips[0] = chips[1] = 1;
  }

  // A deal is a number: 6 cards for the first seat times 5 for the second times 4 for the table.
  SPARRING_FN void deal_cards(int deal) {
    const int pick[3] = {deal / 20, deal / 4 % 5, deal % 4};
    for (int at = 0; at < 3; ++at) {
      Bits<kCards> left = {{(1u << kCards) - 1}};
      for (int earlier = 0; earlier < at; ++earlier) left.clear(cards[earlier]);
      cards[at] = static_cast<u8>(left.select(pick[at]));
    }
  }

  SPARRING_FN void legal(const Config&, int, Legal<Game>& out) const {
    out.set(kCall);
    if (owed() > 0) out.set(kFold);
    if (raises < kRaises) out.set(kRaise);
  }

  SPARRING_FN void observe(const Config&, int me, u8* out) const {
    constexpr int card = byte_of(kRow, "card"), table = byte_of(kRow, "table");
    constexpr int played[] = {byte_of(kRow, "first round"), byte_of(kRow, "second round")};
    constexpr int call = byte_of(kChosen, "call"), raise = byte_of(kChosen, "raise");
    for (int r = 0; r < 3; ++r) {
      out[card + r] = rank(me) == r;
      out[table + r] = round == 1 && rank(2) == r;
    }
    for (int at = 0; at < 2; ++at)
      for (int i = 0; i < kMoves; ++i) {
        u8* move = out + played[at] + 2 * i;
        move[call] = i < length[at] && moves[at][i] == kCall;
        move[raise] = i < length[at] && moves[at][i] == kRaise;
      }
    out[byte_of(kRow, "turn", "second seat")] = me == 1;
    out[byte_of(kRow, "turn", "to move")] = !over && seat(0) == me;
    out[byte_of(kRow, "chips", "own")] = chips[me];
    out[byte_of(kRow, "chips", "other")] = chips[1 - me];
  }

  SPARRING_FN void step(const Config&, const Action* actions, Rng&, Result& result) {
    const int me = seat(0), to_pay = owed();
    const Action action = actions[0];
    moves[round][length[round]++] = static_cast<u8>(action);
    if (action == kFold) return finish(1 - me, 1, result);
    const int more = action == kRaise ? (round == 0 ? 2 : 4) : 0;
    chips[me] = static_cast<u8>(chips[me] + to_pay + more);
    raises = static_cast<u8>(raises + (action == kRaise));
    if (action == kRaise || length[round] < 2) return;
    if (round == 1) return finish(winner(), 0, result);
    round = 1;
    raises = 0;
  }

  // caller never raises and never folds. solid raises with a pair, with a king, and now and then
  // with a jack; it pays with a queen in the first round, in the second with a pair or a king.
  SPARRING_FN Action act(int bot, const Config&, int, const Legal<Game>& legal, Rng& rng) const {
    if (bot == 0) return kCall;
    const int mine = rank(seat(0));
    const bool pair = round == 1 && mine == rank(2);
    const bool strong = pair || (mine == 2 && (round == 0 || !legal.test(kFold)));
    const bool bluff = mine == 0 && !legal.test(kFold) && rng.below(4) == 0;
    if ((strong || bluff) && legal.test(kRaise)) return kRaise;
    const bool weak = round == 0 ? mine == 0 : !pair && mine < 2;
    return weak && legal.test(kFold) ? kFold : kCall;
  }

  SPARRING_FN int rank(int at) const { return cards[at] / 2; }
  SPARRING_FN int owed() const { return chips[1 - seat(0)] - chips[seat(0)]; }

  // A pair with the table's card wins, else the higher card; -1: equal cards.
  SPARRING_FN int winner() const {
    for (int at = 0; at < 2; ++at)
      if (rank(at) == rank(2)) return at;
    return rank(0) == rank(1) ? -1 : rank(0) > rank(1) ? 0 : 1;
  }

  // The winner is paid what the other one has put in.
  SPARRING_FN void finish(int who, int why, Result& result) {
    const int stake = who < 0 ? 0 : chips[1 - who];
    won = static_cast<i8>(who == 0 ? stake : -stake);
    over = 1;
    for (int at = 0; at < 2; ++at) result.add_reward(0, at, static_cast<f32>(at == 0 ? won : -won));
    result.terminate(why);
  }

  SPARRING_FN static constexpr int belief_size(const Config&) { return 3; }

  // The other's card, and the table's as long as it lies face down. belief: log-weights of the
  // other's rank; the table's card is chance whatever was played. Behind the end nothing is left to
  // guess: the cards have decided.
  SPARRING_FN void resample_hidden(const Config&, int me, Rng& rng, const f32* belief = nullptr) {
    if (over) return;
    Bits<kCards> left = {{(1u << kCards) - 1}};
    left.clear(cards[me]);
    if (round == 1) left.clear(cards[2]);
    cards[1 - me] = static_cast<u8>(belief ? believed(left, rng, belief)
                                           : left.select(rng.below(left.count())));
    left.clear(cards[1 - me]);
    if (round == 0) cards[2] = static_cast<u8>(left.select(rng.below(left.count())));
  }

  // Draws a card by its rank; cards of a rank are alike.
  SPARRING_FN static int believed(const Bits<kCards>& left, Rng& rng, const f32* belief) {
    const auto card = [&](int rank) { return 2 * rank + !left.test(2 * rank); };
    const auto weight = [&](int rank) {
      return left.test(card(rank)) ? weight_of(log_weight(belief[rank])) : 0.0;
    };
    return card(draw_by_weight(3, weight, rng));
  }

#if SPARRING_HOST
  static Spec spec(const Config& config) {
    return {.name = "leduc_poker",
            .title = "Leduc poker: two rounds, one card for both",
            .rules_version = 1,
            .blocks = blocks_of(kRow),
            .role_names = {"player"},
            .zero_sum = true,
            .chance = config.deal < 0};
  }

  static std::string action_name(const Config&, int action) {
    return action == kFold ? "fold" : action == kCall ? "call" : "raise";
  }

  static std::vector<Field> config_fields() {
    return {SPARRING_CONFIG(deal, -1, kDeals - 1, "",
                            "which of the 120 equally likely deals; -1: drawn")};
  }

  static std::vector<Field> state_fields() {
    return {SPARRING_STATE(cards), SPARRING_STATE(moves), SPARRING_STATE(length),
            SPARRING_STATE(chips), SPARRING_STATE(round), SPARRING_STATE(raises),
            SPARRING_STATE(won),   SPARRING_STATE(over)};
  }

  void bounds(const Config&, Bounds& bounds) const {
    bounds.within("cards", cards, 0, kCards - 1);
    bounds.within("moves", moves, kFold, kRaise);
    bounds.within("length", length, 0, kMoves);
    bounds.within("chips", chips, 1, kMaxChips);
    bounds.within("round", round, 0, 1);
    bounds.within("raises", raises, 0, kRaises);
    bounds.within("won", won, -kMaxChips, kMaxChips);
    bounds.within("over", over, 0, 1);
  }

  // The moves played again lead here.
  const char* audit(const Config& config) const {
    Game again{};
    for (int at = 0; at < 3; ++at) {
      if (cards[at] == cards[(at + 1) % 3]) return "no such deal";
      again.cards[at] = cards[at];
    }
    again.chips[0] = again.chips[1] = 1;
    Result unpaid{.reward = nullptr, .weight = nullptr, .roles = kRoles, .active_parts = 0};
    Rng none(0, 0, 0, Stream::kChance);
    for (int at = 0; at < 2; ++at)
      for (int i = 0; i < length[at]; ++i) {
        const Action move = moves[at][i];
        Legal<Game> allowed = Legal<Game>::none();
        again.legal(config, 0, allowed);
        if (again.over || again.round != at || !allowed.test(move)) return "a move out of turn";
        again.step(config, &move, none, unpaid);
      }
    return std::memcmp(this, &again, sizeof again) ? "its moves lead elsewhere" : nullptr;
  }

  bool ended(const Config&) const { return over; }

  std::string text(const Config&, int viewer) const {
    std::string told = "table: ";
    told += viewer < 0 || round == 1 ? "JQK"[rank(2)] : '?';
    if (viewer < 0 && round == 0) told += ", face down";
    for (int at = 0; at < 2; ++at) {
      told += "\nseat " + std::to_string(at) + ": ";
      told += viewer < 0 || viewer == at ? "JQK"[rank(at)] : '?';
      told += ", " + std::to_string(chips[at]) + (chips[at] == 1 ? " chip" : " chips");
    }
    for (int at = 0; at <= round; ++at) {
      told += "\nround " + std::to_string(at + 1) + ":";
      for (int i = 0; i < length[at]; ++i) (told += ' ') += action_name({}, moves[at][i]);
    }
    return told + "\n";
  }
#endif
};

}  // namespace sparring::leduc_poker
