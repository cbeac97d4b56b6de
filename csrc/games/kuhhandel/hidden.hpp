// What a seat of Kuhhandel cannot know, dealt anew.
#pragma once

#include "core/deal.hpp"
#include "games/kuhhandel.hpp"

namespace sparring::kuhhandel {

inline constexpr int kNotes = 55;  // that the box holds

// How many cards of a note every other seat has, by a belief: [seat relative to the observer - 1,
// note, count]. Counts are likely by it whatever the number of ways to deal them. Sums by seat and
// by note tie the counts, so that their product repeats evidence: its power is the share of counts
// that are free.
struct CountBelief {
  const f32* belief;
  int me, players;
  f32 free;
  Money known[kPlayers], hand[kPlayers];

  SPARRING_FN f32 of(int seat, int note, int count) const {
    const int away = wrap(seat - me, players) - 1;
    const int row = (away * kDenominations + note) * kCountClasses;
    return log_weight(belief[row + min(count, kCountClasses - 1)]);
  }

  // What giving a card away or taking it up changes: the belief in the count, and the number of
  // ways to deal the unknown cards, which one more divides by their count.
  SPARRING_FN f32 move(int seat, int note, int by, f64& ways) {
    const int count = count_of(hand[seat], note), unknown = count - count_of(known[seat], note);
    hand[seat] += by > 0 ? money_of(note, 1) : 0 - money_of(note, 1);
    ways *= by > 0 ? unknown + 1 : 1.0 / unknown;
    return of(seat, note, count + by) - of(seat, note, count);
  }

  SPARRING_FN f32 swap(Deal<kNotes>& deal, int a, int b) {
    const int from = deal.place[a], to = deal.place[b], given = deal.card[a], got = deal.card[b];
    deal.swap(a, b);
    if (from == to || given == got) return 0;
    f64 ways = 1;
    f32 gain = move(from, given, -1, ways);
    gain += move(to, got, -1, ways);
    gain += move(from, got, 1, ways);
    gain += move(to, given, 1, ways);
    return free * gain + static_cast<f32>(log2_of(ways) * 0.6931471805599453);
  }
};

// Deals the cards that `me` does not know anew among the hands they can be in.
SPARRING_APART SPARRING_FN inline void deal_unknown(Game& game, int players, int me, Rng& rng,
                                                    const f32* belief) {
  Deal<kNotes> deal;
  SPARRING_FOR (int j = 0; j < players; ++j)
    SPARRING_FOR (int d = 0; j != me && d < kDenominations; ++d)
      SPARRING_FOR (int left = count_of(game.hand(j) - game.known[me][j], d); left > 0; --left)
        deal.add(d, j);
  CountBelief score{belief, me, players, 0, {}, {}};
  int slot = deal.count, seats = 0, notes = 0;  // the first seat takes the last cards
  Money unknown = 0;
  SPARRING_FOR (int j = 0; j < players; ++j) {
    if (j == me) continue;
    score.known[j] = game.known[me][j];
    const int missing = cards_in(game.hand(j)) - cards_in(score.known[j]);
    unknown += game.hand(j) - score.known[j];
    seats += missing > 0;
    SPARRING_FOR (int left = missing; left > 0; --left) deal.place[--slot] = static_cast<u8>(j);
  }
  SPARRING_FOR (int d = 0; d < kDenominations; ++d) notes += count_of(unknown, d) > 0;
  if (notes > 0)
    score.free = static_cast<f32>((seats - 1) * (notes - 1)) / static_cast<f32>(seats * notes);
  deal.shuffle(rng);
  SPARRING_FOR (int j = 0; j < players; ++j) score.hand[j] = score.known[j];
  SPARRING_FOR (int i = 0; i < deal.count; ++i)
    score.hand[deal.place[i]] += money_of(deal.card[i], 1);
  if (belief) mix(deal, rng, [](int, int) { return true; }, score);
  SPARRING_FOR (int j = 0; j < players; ++j)
    if (j != me) game.known[j][j] = score.hand[j];
  // What the others know of each other has to stay true.
  SPARRING_FOR (int p = 0; p < players; ++p)
    SPARRING_FOR (int j = 0; j < players; ++j)
      if (p != me && p != j) game.known[p][j] = game.hand(j) - less(game.hand(j), game.known[p][j]);
}

SPARRING_FN inline Money random_pile(Money hand, int cards, Rng& rng) {
  Money pile = 0;
  SPARRING_FOR (; cards > 0; --cards) {
    int at = rng.below(cards_in(hand) - cards_in(pile)), d = 0;
    SPARRING_FOR (; at >= count_of(hand - pile, d); ++d) at -= count_of(hand - pile, d);
    pile += money_of(d, 1);
  }
  return pile;
}

// Chooses anew what others have in mind or face down; false if their hands do not allow the
// position.
SPARRING_APART SPARRING_FN inline bool redo_secrets(Game& game, const Config& config, int me,
                                                    Rng& rng) {
  const int actor = game.actor;
  if (config.bluff == kForbid)
    SPARRING_FOR (int p = 0; p < config.num_players; ++p)
      if (game.last_bid_tens[p] > tens_in(game.hand(p))) return false;
  if (game.turn != me) game.offer = random_pile(game.hand(game.turn), cards_in(game.offer), rng);
  if (game.ties > 0 && game.turn != me && game.target != me)
    game.tied_tens = static_cast<i16>(rng.below(95));
  if (actor == me) return true;
  if (game.phase == kBid || game.phase == kTensDigit) {
    const int lowest = game.high_tens + 2, limit = game.limit_tens(config, actor);
    if (game.phase == kBid) return limit > game.high_tens;
    if (lowest > limit) return false;
    game.hundreds = static_cast<u8>(lowest / 10 + rng.below(limit / 10 - lowest / 10 + 1));
    const Range digits = game.tens_digits(config);
    return digits.low < digits.high || !config.auto_forced;
  }
  if (!game.is_composing()) return true;
  if (game.phase == kPay && tens_in(game.hand(actor)) < game.high_tens) return false;
  game.start_pile(static_cast<Phase>(game.phase), actor);
  return !game.pile_is_complete(config);
}

// Draws anew everything that seat `me` cannot know: the deck's order, the others' unknown money,
// piles that lie face down, bids and piles that are being composed.
SPARRING_FN inline void Game::resample_hidden(const Config& config, int me, Rng& rng,
                                              const f32* belief) {
  shuffle(rng);
  SPARRING_FOR (int attempt = 0; attempt < 50; ++attempt) {
    Game other = *this;
    deal_unknown(other, config.num_players, me, rng, belief);
    if (!redo_secrets(other, config, me, rng)) continue;
    *this = other;
    return;
  }
}

}  // namespace sparring::kuhhandel
