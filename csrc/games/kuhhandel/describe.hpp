// Kuhhandel for people: names, configuration fields, state fields, checks. Host only.
#pragma once

#include "games/kuhhandel.hpp"

#if SPARRING_HOST
#include <utility>

namespace sparring::kuhhandel {

inline Spec Game::spec(const Config& config) {
  std::vector<Block> blocks =
      with_row(config.num_players, [](const auto& row) { return blocks_of(row); });
  if (config.history) blocks.push_back(block_of({"history", kEventFeatures, kEvents}));
  return {.name = "kuhhandel",
          .title = "Kuhhandel: bid for animals, bluff in cow trades, complete quartets",
          .rules_version = 1,
          .blocks = blocks,
          .role_names = {"turn", "bidder"},
          .role_features = {{"phase.turn"}}};
}

inline std::vector<Stat> Game::stats(const Config&) {
  return {
      {"auctions_won", {kLotsWon}, {kLots}, "animals of others' auctions that were won"},
      {"price_paid", {kMoneyPaid}, {kLotsWon, kLotsKept}, "money laid down for an animal"},
      {"bluffs", {kBluffs}, {kOffers}, "offers of a trade that are worth nothing"},
      {"bluff_bids", {kBluffBids}, {kBids}, "bids above the own money"},
      {"trades_won", {kTradesWon}, {kTrades}, "trades that brought animals"},
      {"quartets", {kQuartets}, {kGames}, "quartets at the end of a game"},
  };
}

inline std::string Game::action_name(const Config&, int action) {
  if (action == kAuction) return "auction";
  if (action < kPass) {
    const int choice = action - kTradeFirst;
    return std::string("trade ") + kKindFeatures[choice % kKinds].name + " with seat +" +
           std::to_string(1 + choice / kKinds);
  }
  static constexpr const char* kNames[] = {"pass", "raise by 10", "sell",
                                           "buy",  "accept",      "counter"};
  if (action < kNumberFirst) return kNames[action - kPass];
  return std::to_string(action - kNumberFirst);
}

inline std::vector<Field> Game::config_fields() {
  return {
      SPARRING_CONFIG(num_players, 3, 5, "", "players at the table"),
      SPARRING_CONFIG(bluff, 0, 2, "EXCLUDE|CAP|FORBID",
                      "who bid more than he has: is out, bids within his money, cannot"),
      SPARRING_CONFIG(pass_mode, 0, 1, "SOFT|HARD", "HARD: a pass is final for this auction"),
      SPARRING_CONFIG(pay_mode, 0, 1, "CHOICE|AUTO", "AUTO: the best cards are paid by themselves"),
      SPARRING_CONFIG(open_pay, 0, 1, "", "everybody sees the cards of a payment"),
      SPARRING_CONFIG(empty_offer, 0, 1, "", "trades: a pile may have no card"),
      SPARRING_CONFIG(tie_money, 0, 1, "EXCHANGE|TAKE_BACK", "equal piles change hands or not"),
      SPARRING_CONFIG(tie_rounds, 1, 2, "", "the challenger wins tie number 1 or 2 of a trade"),
      SPARRING_CONFIG(zeros_return, 0, 1, "", "zeros go back to their owner after a trade"),
      SPARRING_CONFIG(edition, 2, 2, "", "of the rules; there is only this one"),
      SPARRING_CONFIG(max_decisions, 2, 65535, "", "a game is stopped after so many"),
      SPARRING_CONFIG(at_limit, 0, 1, "CUT|SCORE",
                      "CUT: a stopped game is truncated; SCORE: it ends and is paid"),
      SPARRING_CONFIG(auto_forced, 0, 1, "", "counts and digits without a choice are not asked"),
      SPARRING_CONFIG(history, 0, 1, "", "append the last 64 public events"),
      SPARRING_CONFIG(reward, 0, 6,
                      "RANK|WIN|SCORE_ZS|POTENTIAL|SEED|SEED_AGGRESSIVE|SEED_WIN_ONLY",
                      "which reward is paid"),
      SPARRING_CONFIG(potential_gamma, 0, 1, "", "POTENTIAL: discount of the learner"),
  };
}

inline std::vector<Field> Game::state_fields() {
  return {
      SPARRING_STATE(known),     SPARRING_STATE(in_play),       SPARRING_STATE(offer),
      SPARRING_STATE(chosen),    SPARRING_STATE(high_tens),     SPARRING_STATE(last_bid_tens),
      SPARRING_STATE(tied_tens), SPARRING_STATE(quartets_tens), SPARRING_STATE(owns),
      SPARRING_STATE(decisions), SPARRING_STATE(deck),          SPARRING_STATE(animals),
      SPARRING_STATE(unseen),    SPARRING_STATE(quartets),      SPARRING_STATE(drawn),
      SPARRING_STATE(donkeys),   SPARRING_STATE(phase),         SPARRING_STATE(actor),
      SPARRING_STATE(turn),      SPARRING_STATE(lot),           SPARRING_STATE(high_bidder),
      SPARRING_STATE(passed),    SPARRING_STATE(exposed),       SPARRING_STATE(hundreds),
      SPARRING_STATE(target),    SPARRING_STATE(traded),        SPARRING_STATE(stake),
      SPARRING_STATE(ties),      SPARRING_STATE(pointer),       SPARRING_STATE(events),
  };
}

// A position before a turn: who has it, ten counts of animals per player, six counts of money per
// player, then the cards of the deck from the top. All money is known to everybody.
inline std::string Game::setup(const Config& config, const std::vector<i64>& data) {
  const int players = config.num_players;
  size_t at = 0;
  const auto next = [&]() -> i64 { return at < data.size() ? data[at++] : -1; };
  Game fresh{};
  fresh.clear_auction();
  fresh.clear_trade();
  const i64 first = next();
  if (first < 0 || first >= players) return "turn must be 0.." + std::to_string(players - 1);
  fresh.turn = fresh.actor = static_cast<u8>(first);
  int owned[kKinds] = {};
  Result unpaid{.reward = nullptr, .weight = nullptr, .roles = 1, .active_parts = 0};
  Step step{config, unpaid, nullptr};
  for (int p = 0; p < players; ++p) {
    for (int kind = 0; kind < kKinds; ++kind) {
      const i64 count = next();
      if (count < 0 || count > 4) return "every player needs ten counts of animals, 0..4";
      owned[kind] += static_cast<int>(count);
      if (count) fresh.add_animals(step, p, kind, static_cast<int>(count));
    }
  }
  for (int p = 0; p < players; ++p) {
    Money held = 0;
    for (int d = 0; d < kDenominations; ++d) {
      const i64 count = next();
      if (count < 0 || count > kBox[d])
        return "every player needs six counts of money, none above what the box holds";
      held += money_of(d, static_cast<int>(count));
    }
    fresh.in_play += held;
    for (int q = 0; q < players; ++q) fresh.known[q][p] = held;
  }
  const size_t left = data.size() - at;
  if (left > kDeck) return "the deck has at most 40 cards";
  fresh.drawn = static_cast<u8>(kDeck - left);
  for (size_t i = fresh.drawn; i < kDeck; ++i) {
    const i64 kind = next();
    if (kind < 0 || kind >= kKinds) return "a card of the deck must be 0..9";
    fresh.deck[i] = static_cast<u8>(kind);
    ++fresh.unseen[kind];
  }
  for (int kind = 0; kind < kKinds; ++kind)
    if (owned[kind] + fresh.unseen[kind] != 4)
      return std::string("there must be four of ") + kKindFeatures[kind].name + ", with the deck";
  fresh.donkeys = static_cast<u8>(4 - fresh.unseen[kDonkey]);
  for (int d = 0; d < kDenominations; ++d)
    if (count_of(fresh.in_play, d) > kBox[d])
      return std::string("the box has fewer cards of ") + kOwnMoneyFeatures[d].name;
  if (!is_money(max_in_play(fresh, players)))
    return "donkeys would bring more money than there is; draw some of them before";
  if (left == 0 && !fresh.can_trade(config, fresh.turn)) return "this player can do nothing";
  *this = fresh;
  return {};
}

}  // namespace sparring::kuhhandel
#endif  // SPARRING_HOST
