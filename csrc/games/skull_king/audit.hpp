// Which positions of Skull King there are: what its fields may hold, each by itself and together.
// A position that passes can be shown, asked and played to its end. Host only.
#pragma once

#include "games/skull_king.hpp"

#if SPARRING_HOST
namespace sparring::skull_king {

inline constexpr int kMaxBonus = 310;  // for all cards that can be captured

inline void Game::bounds(const Config& config, Bounds& bounds) const {
  const int players = config.num_players, seats = config.seats(), rounds = config.round_count();
  bounds.below("hand", hand, kCards);
  bounds.below("played", played, kCards);
  bounds.below("stock", stock, kCards);
  bounds.below("gone", gone, kCards);
  bounds.below("priv", priv, kCards);
  bounds.within("bonus", bonus, 0, kMaxBonus);
  bounds.any(total);
  bounds.within("trick_token", trick_token, 0, kTokens - 1);
  bounds.within("trick_seat", trick_seat, 0, seats - 1);
  bounds.within("bid", bid, -1, 10);
  bounds.within("won", won, 0, 10);
  bounds.any(sum_bid);
  bounds.any(sum_err);
  bounds.within("void_suits", void_suits, 0, 15);
  bounds.within("wager", wager, 0, config.abilities ? 20 : 0);
  bounds.within("cannon", cannon, 0, config.cannonball ? 1 : 0);
  bounds.within("loot_by", loot_by, -1, players - 1);
  bounds.within("loot_with", loot_with, -1, players - 1);
  bounds.within("ghost_order", ghost_order, 0, kCards - 1);
  bounds.within("phase", phase, kBid, kOver);
  bounds.within("actor", actor, 0, seats - 1);
  bounds.within("leader", leader, 0, seats - 1);
  bounds.within("first", first, 0, players - 1);
  bounds.within("round", round, 1, rounds);
  bounds.within("cards", cards, 1, 10);
  bounds.within("tricks_done", tricks_done, 0, 10);
  bounds.within("trick_size", trick_size, 0, seats - 1);
  bounds.within("follow", follow, 0, kNoSuit);
  bounds.within("harry", harry, -1, config.abilities ? players - 1 : -1);
  bounds.within("pending", pending, 0, 2);
  bounds.within("ghost_next", ghost_next, 0, 1);
  bounds.within("placed", placed, 0, players - 1);
  bounds.within("winning", winning, -1, seats - 1);
  bounds.within("winning_power", winning_power, 0, 60);
  bounds.within("lead_suit", lead_suit, 0, 4);
  bounds.any(trick_kinds);
  bounds.within("history", history, 0, kTokens - 1);
  bounds.within("history_leader", history_leader, -1, seats - 1);
  bounds.within("last_cards", last_cards, 0, 10);
  bounds.within("last_bid", last_bid, -1, 10);
  bounds.within("last_won", last_won, 0, 10);
  bounds.within("last_loot", last_loot, 0, 2);
  bounds.within("last_loot_exact", last_loot_exact, 0, 2);
  bounds.within("last_round", last_round, 0, kCardsAndLeader << 4 | 15);
  bounds.any(winners);
  bounds.within("last_bonus", last_bonus, 0, kMaxBonus);
  bounds.any(last_points);
}

// The cards of the tricks that are finished.
inline Cards taken_cards(const Game& game, int seats) {
  Cards all = Cards::none();
  for (int s = 0; s < seats; ++s) all = all | game.played[s];
  for (int i = 0; i < game.trick_size; ++i) {
    const int token = game.trick_token[i];
    if (token > 0) all.clear(token == kTigressEscape ? kTigressId : token - 1);
  }
  return all;
}

// The most that capturing a card pays (section 6).
inline int max_bonus(int id, const Config& config) {
  if (kNumbered.test(id)) return number_of(id) == 14 ? (suit_of(id) == 0 ? 20 : 10) : 0;
  if (kMermaids.test(id)) return 20;
  if (kPirates.test(id) || id == kTigressId) return 30;
  return id == kKingId ? (config.deck == kClassic66 ? 50 : 40) : 0;
}

// Every card is in one place, and every hand has as many as it should.
inline const char* audit_cards(const Game& game, const Config& config) {
  const int seats = config.seats();
  Cards all = game.stock | game.gone;
  int count = game.stock.count() + game.gone.count();
  for (int s = 0; s < 8; ++s) {
    all = all | game.hand[s] | game.played[s];
    count += game.hand[s].count() + game.played[s].count();
    if (s >= seats && (game.hand[s].any() || game.played[s].any()))
      return "cards of a seat that does not exist";
    if (!config.abilities && game.priv[s].any()) return "somebody knows cards of the stock";
    if ((game.priv[s] - config.deck_cards()).any()) return "somebody knows cards of another deck";
  }
  if (!(all == config.deck_cards()) || count != config.deck_size())
    return "cards were lost or doubled";
  for (int s = 0; s < seats; ++s) {
    int played = game.tricks_done;
    for (int i = 0; i < game.trick_size; ++i) played += game.trick_seat[i] == s;
    const int drawn = game.phase == kDiscard && s == game.actor ? game.pending : 0;
    if (game.played[s].count() != played || game.hand[s].count() != game.cards - played + drawn)
      return "a hand has the wrong number of cards";
  }
  if (!config.has_ghost()) return nullptr;
  Cards ghost = Cards::none();
  for (int t = game.played[2].count(); t < game.cards; ++t) ghost.set(game.ghost_order[t]);
  return ghost == game.hand[2] ? nullptr : "the ghost plays other cards than it holds";
}

// Tricks, captures and alliances of this round are those of cards that were played.
inline const char* audit_tricks(const Game& game, const Config& config) {
  const int seats = config.seats();
  const Cards taken = taken_cards(game, seats);
  int won = 0, bonus = 0, most_paid = 0;
  taken.each([&](int id) { most_paid += max_bonus(id, config); });
  for (int s = 0; s < 8; ++s) {
    won += game.won[s];
    bonus += game.bonus[s];
    if (s >= seats && (game.won[s] || game.bonus[s])) return "a seat won that does not exist";
  }
  const int destroyed = game.tricks_done - won;
  if (destroyed < 0 || destroyed > taken.test(kKrakenId) + taken.test(kWhaleId))
    return "tricks do not add up";
  if (bonus > most_paid) return "a bonus above what was captured";
  int by_seat[16]{};
  for (int t = 0; t < 10; ++t) {
    const int winner = game.winners[t / 2] >> (t % 2 * 4) & 15;
    if (winner > seats || (winner && t >= game.tricks_done)) return "a trick has no such winner";
    ++by_seat[winner];
  }
  for (int s = 0; s < seats; ++s)
    if (by_seat[s + 1] > game.won[s]) return "a seat won other tricks";
  for (int i = 0; i < 2; ++i) {
    const int by = game.loot_by[i], with = game.loot_with[i];
    if ((by < 0) != (with < 0) || (by >= 0 && by == with)) return "an alliance with nobody";
    if (by >= 0 && !game.played[by].test(72 + i)) return "an alliance without a Loot";
  }
  return nullptr;
}

// The trick that lies on the table, laid again card by card, leads to the same.
inline const char* audit_trick(const Game& game, const Config& config) {
  if (game.phase != kPlay && game.trick_size > 0) return "a trick lies where nobody plays";
  Game again = game;
  again.clear_trick();
  again.actor = game.leader;
  for (int i = 0; i < game.trick_size; ++i) {
    const int token = game.trick_token[i], by = game.trick_seat[i];
    const int id = token == kTigressEscape ? kTigressId : token - 1;
    if (by != again.actor || id < 0 || !game.played[by].test(id)) return "the trick is another";
    again.lay(config, token);
  }
  const bool same =
      again.winning == game.winning && again.winning_power == game.winning_power &&
      again.lead_suit == game.lead_suit && again.trick_kinds == game.trick_kinds &&
      again.follow == game.follow &&
      std::memcmp(again.void_suits, game.void_suits, sizeof game.void_suits) == 0 &&
      std::memcmp(again.history, game.history, sizeof game.history) == 0 &&
      std::memcmp(again.history_leader, game.history_leader, sizeof game.history_leader) == 0;
  if (!same) return "the trick says something else";
  return game.phase == kPlay && again.actor != game.actor ? "another seat is to play" : nullptr;
}

// Bids, and loads after them, go round from the leader.
inline const char* audit_bids(const Game& game, const Config& config) {
  const int players = config.num_players;
  const bool committing = game.phase <= kCannon;
  if (game.placed && !committing) return "bids are placed after they all were";
  for (int s = 0; s < 8; ++s) {
    const bool in = s < players && (!committing || wrap(s - game.leader, players) < game.placed);
    const bool bids = s < players && (game.phase != kBid || in);
    if (bids ? game.bid[s] < 0 || game.bid[s] > game.cards : game.bid[s] != -1)
      return "a bid is missing, or too many are there";
    if (game.cannon[s] && (!in || game.phase == kBid)) return "a load before its bid";
  }
  if (!committing) return nullptr;
  if (game.leader != (game.first + game.round - 1) % players) return "another seat leads the round";
  return game.actor != wrap(game.leader + game.placed, players) ? "another seat is to bid"
                                                                : nullptr;
}

// Whether the tricks that are done and whoever is to act fit the phase.
inline bool fits_phase(const Game& game, const Config& config) {
  const int left = game.cards - game.tricks_done;
  const bool begun = game.tricks_done > 0;
  // A pirate's power is the winner's, who leads next.
  const bool winner = config.abilities && begun && game.actor == game.leader;
  switch (game.phase) {
    case kBid:
      return !begun;
    case kCannon:
      return config.cannonball && !begun;
    case kPlay:
      return left > 0;
    case kRosiePick:
    case kDiscard:
      return winner && left > 0;
    case kWager:
      return winner && (left > 0 || config.rascal_last);
    case kHarryBid:
      return left == 0 && game.actor == game.harry;
    default:
      return left == 0;
  }
}

// The invariants of section 22 that any position must satisfy; null if all hold.
inline const char* Game::audit(const Config& config) const {
  if (cards != config.hand_size(round)) return "wrong hand size";
  if (tricks_done > cards) return "more tricks than cards";
  if (const int last = last_round & 15; last && (last < round || last > config.round_count()))
    return "the episode should have ended before this round";
  if ((phase == kDiscard) != (pending > 0)) return "a discard that nobody has to make";
  if (phase != kOver && actor >= config.num_players) return "the ghost is to decide";
  if (!fits_phase(*this, config)) return "the phase does not fit the tricks";
  if (const char* wrong = audit_cards(*this, config)) return wrong;
  if (const char* wrong = audit_tricks(*this, config)) return wrong;
  if (const char* wrong = audit_bids(*this, config)) return wrong;
  return audit_trick(*this, config);
}

}  // namespace sparring::skull_king
#endif  // SPARRING_HOST
