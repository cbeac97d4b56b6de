// Kuhhandel's scripted players (section 17). They look only at what their seat may know, and
// compare integers or exact doubles, so that every machine plays alike.
//
// Bids and piles are named digit by digit, and a bot remembers nothing between two decisions. So
// it draws a whole bid or pile every time and, where it has already named a part of one, draws
// again until that part agrees: each is then as likely as if it had been drawn once.
#pragma once

#include "games/kuhhandel.hpp"

namespace sparring::kuhhandel {

enum Bot { kThrifty, kDealer };

inline constexpr int kHarmonics = 473;  // a list of bids has at most 471 entries

struct HarmonicTable {
  f64 sum[kHarmonics];  // of 1 / (i + 1) for i below the index
};

SPARRING_FN constexpr HarmonicTable make_harmonics() {
  HarmonicTable table{};
  for (int i = 1; i < kHarmonics; ++i) table.sum[i] = table.sum[i - 1] + 1.0 / i;
  return table;
}

inline constexpr HarmonicTable kHarmonic = make_harmonics();

// An index in first..last, drawn with weight 1 / (index + 1).
SPARRING_APART SPARRING_FN inline int thrifty_index(int first, int last, Rng& rng) {
  const f64 from = kHarmonic.sum[first], to = kHarmonic.sum[last + 1];
  const f64 at = from + static_cast<f64>(rng.next()) / 4294967296.0 * (to - from);
  while (first < last) {
    const int middle = (first + last) / 2;
    if (kHarmonic.sum[middle + 1] > at)
      last = middle;
    else
      first = middle + 1;
  }
  return first;
}

SPARRING_FN inline i32 bid_action(const Game& game, int bid_tens) {
  return bid_tens == game.high_tens + 1 ? kMinRaise : kNumberFirst + bid_tens / 10;
}

// Index 0 of a THRIFTY bidder's list is to pass, index i to raise by i tens.
SPARRING_FN inline i32 thrifty_bid(const Game& game, Rng& rng) {
  const int own = tens_in(game.hand(game.actor));
  const int raise = thrifty_index(0, max(0, own - game.high_tens), rng);
  return raise == 0 ? kPass : bid_action(game, game.high_tens + raise);
}

SPARRING_FN inline i32 thrifty_digit(const Game& game, const Legal<Game>& legal, Rng& rng) {
  const int from = 10 * game.hundreds, high = game.high_tens;
  const int first = max(high + 2, from);
  const int last = min(tens_in(game.hand(game.actor)), from + 9);
  if (first > last) return legal.lowest();
  return kNumberFirst + high + thrifty_index(first - high, last - high, rng) - from;
}

SPARRING_APART SPARRING_FN inline i32 thrifty_action(const Game& game, const Legal<Game>& legal,
                                                     Rng& rng) {
  switch (game.phase) {
    case kTurn:
      return legal.test(kAuction) ? kAuction : legal.select(rng.below(legal.count()));
    case kBid:
      return thrifty_bid(game, rng);
    case kTensDigit:
      return thrifty_digit(game, legal, rng);
    default:
      return legal.select(thrifty_index(0, legal.count() - 1, rng));
  }
}

// DEALER: parameters in hundredths, worths in 1200ths of a ten, chances in 2^24ths.
struct Dealer {
  const Game& game;
  const Config& config;

  static constexpr int kAuctionShare = 60, kSpendable = 70;  // fa, 1 - fr
  static constexpr i64 kUnit = 1200, kChance = i64{1} << 24;
  static constexpr int kTries = 10000;

  SPARRING_FN int denial_share() const { return config.num_players == 3 ? 35 : 65; }
  SPARRING_FN int refusal_share() const { return config.num_players == 3 ? 25 : 35; }
  SPARRING_FN int trade_share() const { return config.num_players == 3 ? 75 : 100; }

  // claim(p, a, c) of section 17, in twelfths.
  SPARRING_FN int claim(int at, int kind, int count) const {
    const int missing = 4 - game.animals[at][kind];
    if (missing == 0) return 0;
    const int gain = game.quartets_tens[at] + (game.quartets[at] + 1) * kQuartetTens[kind];
    return gain * min(count, missing) * (12 / missing);
  }

  SPARRING_APART SPARRING_FN i64 stake_worth(int me, int other, int kind, int count) const {
    return 100 * claim(me, kind, count) + denial_share() * claim(other, kind, count);
  }

  SPARRING_FN i64 lot_worth() const {
    int rival = 0;
    SPARRING_FOR (int at = 0; at < config.num_players; ++at)
      if (at != game.actor) rival = max(rival, claim(at, game.lot, 1));
    return 100 * claim(game.actor, game.lot, 1) + denial_share() * rival;
  }

  // What DEALER is ready to spend on the lot for a share of its worth, in 120000ths of a ten.
  SPARRING_APART SPARRING_FN i64 budget(int share) const {
    const i64 own = tens_in(game.hand(game.actor));
    return min(share * lot_worth(), kSpendable * kUnit * own);
  }

  SPARRING_FN i32 turn_action(const Legal<Game>& legal) const {
    int best = -1;
    i64 best_rank = -1;
    bool completes = false;
    const int me = game.actor;
    legal.each([&](int action) {
      if (action == kAuction) return;
      const int kind = (action - kTradeFirst) % kKinds;
      const int other = wrap(me + 1 + (action - kTradeFirst) / kKinds, config.num_players);
      const int mine = game.animals[me][kind], theirs = game.animals[other][kind];
      const int count = min(mine, theirs);
      i64 priority = 0;
      if (game.drawn == kDeck)
        priority = mine + count == 4 ? 4 : mine == theirs ? 3 : theirs + count == 4 ? 2 : 1;
      const i64 rank = priority << 32 | stake_worth(me, other, kind, count);
      if (rank <= best_rank) return;
      best = action;
      best_rank = rank;
      completes = mine + count == 4;
    });
    return game.drawn == kDeck || completes ? best : kAuction;
  }

  // The most that is bid: `budget` times U(.9, 1.1) = (9 + 2 * chance) / 10, in tens.
  SPARRING_FN static int drawn_cap(i64 budget, Rng& rng) {
    const i64 chance = rng.next() >> 8;
    return static_cast<int>(budget * (9 * kChance + 2 * chance) / (10 * kChance * 100 * kUnit));
  }

  SPARRING_FN i32 bid(Rng& rng) const {
    const int cap = drawn_cap(budget(kAuctionShare), rng), lowest = game.high_tens + 1;
    if (cap < lowest) return kPass;
    const int wanted = lowest + rng.below(cap - lowest + 1);
    const int payable = tens_in(auto_payment(game.hand(game.actor), wanted));
    return payable <= cap ? bid_action(game, payable) : kPass;
  }

  SPARRING_FN i32 digit(const Legal<Game>& legal, Rng& rng) const {
    const i64 ready = budget(kAuctionShare);
    const Money held = game.hand(game.actor);
    const int lowest = game.high_tens + 1, from = 10 * game.hundreds;
    const int first = max(lowest + 1, from), last = from + 9;
    SPARRING_FOR (int i = 0; i < kTries; ++i) {
      const int cap = drawn_cap(ready, rng);
      if (cap < lowest) continue;
      const int wanted = lowest + rng.below(cap - lowest + 1);
      if (wanted > last || wanted + kLarge <= first) continue;  // nobody overpays by 500
      const int payable = tens_in(auto_payment(held, wanted));
      if (payable >= first && payable <= min(last, cap)) return kNumberFirst + payable - from;
    }
    return legal.lowest();
  }

  SPARRING_FN i32 decide(const Legal<Game>& legal) const {
    if (!legal.test(kBuy)) return kSell;
    const i64 price = tens_in(auto_payment(game.hand(game.actor), game.high_tens));
    return price * 100 * kUnit <= budget(refusal_share()) ? kBuy : kSell;
  }

  // The AUTO set, less what is chosen already; if that was chosen otherwise, the best that is left.
  SPARRING_FN Money rest_of_payment() const {
    return auto_payment(below(game.hand(game.actor), game.pointer + 1),
                        game.high_tens - tens_in(game.chosen));
  }

  // What a pile may be worth at most is `stake` times U(.5, 1) = (1 + chance) / 2, in tens.
  SPARRING_FN i64 stake() const {
    const int other = game.actor == game.turn ? game.target : game.turn;
    return trade_share() * stake_worth(game.actor, other, game.traded, game.stake);
  }
  SPARRING_FN static i64 drawn_limit(i64 stake, Rng& rng) {
    const i64 chance = rng.next() >> 8;
    return stake * (kChance + chance) / (2 * kChance * 100 * kUnit);
  }

  SPARRING_FN static Money pile(Money held, i64 limit) {
    if (limit >= tens_in(held)) {
      const Money all = without_zeros(held);
      return all ? all : money_of(0, 1);
    }
    const Money laid = largest_pile(held, static_cast<int>(limit));
    return laid ? laid : money_of(lowest_bit(held) / 8, 1);
  }

  SPARRING_FN i32 count(const Legal<Game>& legal, Rng& rng) const {
    const i64 worth = stake();
    const Money held = game.hand(game.actor);
    const int named = 8 * (game.pointer + 1);  // the bits of counts not yet named lie below
    // A pile comes within a card of its limit unless it is all there is. So limits from which none
    // with this beginning can follow are told without making one.
    const int all = tens_in(held), begun = tens_in(game.chosen);
    const int min_limit = begun - kLarge;
    const int max_limit = begun + tens_in(below(held, game.pointer + 1)) + kLarge;
    SPARRING_FOR (int i = 0; i < kTries; ++i) {
      const i64 limit = drawn_limit(worth, rng);
      if (limit < all && (limit < min_limit || limit > max_limit)) continue;
      const Money whole = pile(held, limit);
      if (whole >> named == game.chosen >> named)
        return kNumberFirst + count_of(whole, game.pointer);
    }
    return legal.lowest();
  }

  SPARRING_APART SPARRING_FN i32 action(const Legal<Game>& legal, Rng& rng) const {
    switch (game.phase) {
      case kTurn:
        return turn_action(legal);
      case kBid:
        return bid(rng);
      case kTensDigit:
        return digit(legal, rng);
      case kDecide:
        return decide(legal);
      case kPay:
        return kNumberFirst + count_of(rest_of_payment(), game.pointer);
      case kRespond:
        return kCounterAction;
      default:
        return count(legal, rng);
    }
  }
};

SPARRING_FN inline Game::Action Game::act(int bot, const Config& config, int,
                                          const Legal<Game>& legal, Rng& rng, const u8*) const {
  return bot == kThrifty ? thrifty_action(*this, legal, rng)
                         : Dealer{*this, config}.action(legal, rng);
}

}  // namespace sparring::kuhhandel
