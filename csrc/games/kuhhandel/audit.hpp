// Which positions of Kuhhandel there are: what its fields may hold, each by itself and together.
// A position that passes can be shown, asked and played to its end. Host only.
#pragma once

#include "games/kuhhandel.hpp"
#include "games/kuhhandel/observation.hpp"

#if SPARRING_HOST
namespace sparring::kuhhandel {

inline constexpr int kAllTens = 470;  // the whole box
inline constexpr int kMaxCards = 20;  // of a denomination

inline void Game::bounds(const Config& config, Bounds& bounds) const {
  const int players = config.num_players, seats = (1 << players) - 1;
  // Money is counted byte by byte, see audit_money.
  bounds.any(known);
  bounds.any(in_play);
  bounds.any(offer);
  bounds.any(chosen);
  bounds.within("high_tens", high_tens, 0, kAllTens);
  bounds.within("last_bid_tens", last_bid_tens, 0, kAllTens);
  bounds.within("tied_tens", tied_tens, 0, kAllTens);
  bounds.within("quartets_tens", quartets_tens, 0, 385);
  bounds.within("owns", owns, 0, (1 << kKinds) - 1);
  bounds.within("decisions", decisions, 0, config.max_decisions);
  bounds.within("deck", deck, 0, kKinds - 1);
  bounds.within("animals", animals, 0, 4);
  bounds.within("unseen", unseen, 0, 4);
  bounds.within("quartets", quartets, 0, kKinds);
  bounds.within("drawn", drawn, 0, kDeck);
  bounds.within("donkeys", donkeys, 0, 4);
  bounds.within("phase", phase, kTurn, kDone);
  bounds.within("actor", actor, 0, players - 1);
  bounds.within("turn", turn, 0, players - 1);
  bounds.within("lot", lot, -1, kKinds - 1);
  bounds.within("high_bidder", high_bidder, -1, players - 1);
  bounds.within("passed", passed, 0, seats);
  bounds.within("exposed", exposed, 0, seats);
  bounds.within("hundreds", hundreds, 0, kAllTens / 10);
  bounds.within("target", target, -1, players - 1);
  bounds.within("traded", traded, -1, kKinds - 1);
  bounds.within("stake", stake, 0, 2);
  bounds.within("ties", ties, 0, config.tie_rounds - 1);
  bounds.within("pointer", pointer, 0, kDenominations - 1);
  bounds.within("events", events, 0, config.history ? 2 * kEvents - 1 : 0);
  bounds.spare(spare);
}

// Public events: what happened, who did it to whom, and amounts.
inline const char* Game::check_extra(const Config& config, const u8* extra) const {
  const auto seat = [&](int at) { return at >= -1 && at < config.num_players; };
  for (const u8* entry = extra; entry < extra + extra_bytes(config); entry += kEventBytes) {
    const int event = two_at(entry + byte_of(kEventFeatures, "event"));
    if (event < kNoEvent || event > kDonkeyEvent) return "an event that does not exist";
    const bool amounts = event == kExposed;  // in place of the other seat
    if (!seat(two_at(entry + byte_of(kEventFeatures, "by"))) ||
        (!amounts && !seat(two_at(entry + byte_of(kEventFeatures, "other")))))
      return "an event of a seat that does not exist";
    if (event == kTrade && !seat(two_at(entry + byte_of(kEventFeatures, "e"))))
      return "a trade that nobody won";
    for (int column = 2; column < kEventBytes / 2; ++column)
      if (const int number = two_at(entry + 2 * column); number < -1 || number > kAllTens)
        return "an event about more than there is";
  }
  return nullptr;
}

// Whether this is as much as can be counted, bid and named; the two highest bytes are nobody's.
// A position that was set up may have other cards than the box.
inline bool is_money(Money money) {
  for (int d = 0; d < kDenominations; ++d)
    if (count_of(money, d) > kMaxCards) return false;
  return money >> (8 * kDenominations) == 0 && tens_in(money) <= kAllTens;
}

// The money that will have been in play with that of the donkeys to come.
inline Money max_in_play(const Game& game, int players) {
  Money money = game.in_play;
  for (int donkey = game.donkeys; donkey < 4; ++donkey) money += money_of(2 + donkey, players);
  return money;
}

inline const char* audit_money(const Game& game, int players) {
  if (!is_money(game.in_play) || !is_money(game.offer) || !is_money(game.chosen))
    return "more money than there is";
  for (int p = 0; p < kPlayers; ++p)
    for (int j = 0; j < kPlayers; ++j) {
      if (!is_money(game.known[p][j])) return "more money than there is";
      if ((p >= players || j >= players) && game.known[p][j])
        return "money of a seat that does not exist";
    }
  Money sum = 0;
  for (int j = 0; j < players; ++j) {
    sum += game.hand(j);
    for (int p = 0; p < players; ++p)
      if (!holds(game.hand(j), game.known[p][j])) return "somebody knows money that is not there";
  }
  if (sum != game.in_play) return "money was lost or doubled";
  return is_money(max_in_play(game, players)) ? nullptr : "donkeys would bring too much money";
}

inline const char* audit_animals(const Game& game, int players) {
  int in_deck[kKinds] = {};
  for (int i = game.drawn; i < kDeck; ++i) ++in_deck[game.deck[i]];
  for (int kind = 0; kind < kKinds; ++kind) {
    int count = in_deck[kind] + (game.lot == kind);
    for (int p = 0; p < kPlayers; ++p) count += game.animals[p][kind];
    if (count != 4) return "animals were lost or doubled";
    if (in_deck[kind] != game.unseen[kind]) return "the unseen animals are miscounted";
  }
  if (game.donkeys != 4 - game.unseen[kDonkey]) return "the donkeys are miscounted";
  for (int p = 0; p < kPlayers; ++p) {
    int owns = 0, quartets = 0, tens = 0;
    for (int kind = 0; kind < kKinds; ++kind) {
      owns |= (game.animals[p][kind] > 0) << kind;
      quartets += game.animals[p][kind] == 4;
      tens += game.animals[p][kind] == 4 ? kQuartetTens[kind] : 0;
    }
    if (p >= players && owns) return "animals of a seat that does not exist";
    if (owns != game.owns[p] || quartets != game.quartets[p] || tens != game.quartets_tens[p])
      return "a player's quartets are miscounted";
  }
  return nullptr;
}

inline const char* audit_auction(const Game& game, const Config& config) {
  const bool auction = game.is_auction();
  const int high = game.high_tens, bidder = game.high_bidder;
  if ((high > 0) != (bidder >= 0)) return "a bid without a bidder";
  if (!auction && (high || game.passed || game.exposed)) return "bids outside of an auction";
  if (high > tens_in(game.in_play)) return "a bid above all money";
  if (bidder == game.turn) return "the auctioneer has bid";
  if (bidder >= 0 && game.last_bid_tens[bidder] != high) return "the high bid is another";
  if ((game.passed >> game.turn & 1) || (bidder >= 0 && game.passed >> bidder & 1))
    return "somebody passed who could not";
  for (int p = 0; p < kPlayers; ++p) {
    if (game.last_bid_tens[p] > high || (p >= config.num_players && game.last_bid_tens[p]))
      return "a bid above the highest";
    if (config.bluff == kForbid && game.last_bid_tens[p] > tens_in(game.hand(p)))
      return "a bid above the bidder's money";
  }
  if (game.phase != kTensDigit && game.hundreds) return "half a bid";
  if (game.phase != kBid && game.phase != kTensDigit) return nullptr;
  const int out = game.passed | 1 << game.turn | (bidder >= 0 ? 1 << bidder : 0);
  if (out >> game.actor & 1) return "a seat bids that is out";
  if (game.limit_tens(config, game.actor) <= high) return "a seat bids that cannot";
  const Range digits = game.tens_digits(config);
  return game.phase == kTensDigit && digits.low > digits.high ? "half a bid" : nullptr;
}

inline const char* audit_trade(const Game& game) {
  if ((game.target < 0) != (game.traded < 0)) return "half a trade";
  if (game.target < 0)
    return game.stake || game.ties || game.tied_tens || game.offer ? "half a trade" : nullptr;
  if (game.target == game.turn) return "a trade with oneself";
  const int stake =
      min(game.animals[game.turn][game.traded], game.animals[game.target][game.traded]);
  if (stake == 0 || stake != game.stake) return "a trade about other animals";
  if (game.ties == 0 && game.tied_tens) return "a tie that was none";
  if (game.phase == kRespond && game.ties) return "an answer to a tie";
  if (game.phase == kOffer && game.offer) return "a second offer";
  return holds(game.hand(game.turn), game.offer) ? nullptr : "an offer of cards that are not there";
}

// A pile is named from the largest denomination down to that under the pointer.
inline const char* audit_pile(const Game& game) {
  if (!game.is_composing()) return game.chosen || game.pointer ? "half a pile" : nullptr;
  const Money held = game.hand(game.actor), open = below(held, game.pointer + 1);
  if (!holds(held, game.chosen) || below(game.chosen, game.pointer + 1))
    return "a choice of cards that are not there";
  if (count_of(held, game.pointer) == 0) return "a choice without cards";
  if (game.phase != kPay) return nullptr;
  const int owed = game.high_tens - tens_in(game.chosen);
  if (game.pointer == 0 || owed <= 0) return "a payment that is complete";
  return owed > tens_in(open) ? "a price that cannot be paid" : nullptr;
}

// Whether whoever is to act is the one whom the phase asks.
inline bool fits_phase(const Game& game) {
  switch (game.phase) {
    case kTurn:
    case kOffer:
      return game.actor == game.turn;
    case kDecide:
      return game.actor == game.turn && game.high_bidder >= 0;
    case kPay:
      return game.high_bidder >= 0 && (game.actor == game.turn || game.actor == game.high_bidder);
    case kRespond:
    case kCounter:
      return game.actor == game.target;
    default:
      return true;
  }
}

inline const char* audit_phase(const Game& game, const Config& config) {
  const bool trade = game.phase >= kOffer && game.phase <= kCounter;
  const bool stopped = game.phase == kDone && game.decisions >= config.max_decisions;
  if (trade != (game.target >= 0) || (!stopped && game.is_auction() != (game.lot >= 0)))
    return "auction and trade do not fit the phase";
  if (!fits_phase(game)) return "another seat is to act";
  int quartets = 0;
  for (int p = 0; p < config.num_players; ++p) quartets += game.quartets[p];
  if (game.phase == kDone && !stopped && quartets != kKinds)
    return "the game ended before all quartets were complete";
  return nullptr;
}

// The invariants of section 19 that any position must satisfy; null if all hold.
inline const char* Game::audit(const Config& config) const {
  if (const char* wrong = audit_money(*this, config.num_players)) return wrong;
  if (const char* wrong = audit_animals(*this, config.num_players)) return wrong;
  if (const char* wrong = audit_phase(*this, config)) return wrong;
  if (const char* wrong = audit_auction(*this, config)) return wrong;
  if (const char* wrong = audit_trade(*this)) return wrong;
  return audit_pile(*this);
}

}  // namespace sparring::kuhhandel
#endif  // SPARRING_HOST
