// What a seat of Skull King cannot know, dealt anew.
#pragma once

#include "core/deal.hpp"
#include "games/skull_king.hpp"

namespace sparring::skull_king {

// Places of unseen cards besides the hands.
inline constexpr int kStockPlace = 8, kGonePlace = 9, kPlaces = 10;

// Who holds which card, by a belief: [card, seat relative to the observer], where 0 stands for
// nobody else: the stock, what was discarded, and the ghost.
struct CardBelief {
  const f32* belief;
  int classes;
  u8 seat_class[kPlaces];

  SPARRING_FN f32 of(const Deal<kCards>& deal, int slot) const {
    return log_weight(belief[deal.card[slot] * classes + seat_class[deal.place[slot]]]);
  }

  SPARRING_FN f32 swap(Deal<kCards>& deal, int a, int b) const {
    const f32 before = belief ? of(deal, a) + of(deal, b) : 0;
    deal.swap(a, b);
    return belief ? of(deal, a) + of(deal, b) - before : 0;
  }
};

// Suits that a seat has shown not to hold. Who drew from the stock by Bendt may have got them
// since.
SPARRING_FN inline int lacking(const Game& game, int seat) {
  const bool drew = game.played[seat].test(kBendt) && (game.gone.any() || game.phase == kDiscard);
  return drew ? 0 : game.void_suits[seat];
}

// Deals the cards anew that seat `me` has not seen.
SPARRING_APART SPARRING_FN inline void deal_unseen(Game& game, const Config& config, int me,
                                                   Rng& rng, const f32* belief) {
  const int players = config.num_players, seats = config.seats();
  const Cards known = game.priv[me];
  Deal<kCards> deal;
  CardBelief score{belief, players, {}};
  u8 lacks[kPlaces]{};
  int restricted = 0;
  const auto collect = [&](Cards& set, int place) {
    (set - known).each([&](int id) { deal.add(id, place); });
    set = set & known;
  };
  SPARRING_FOR (int s = 0; s < seats; ++s) {
    if (s == me) continue;
    if (s < players) {
      score.seat_class[s] = static_cast<u8>(wrap(s - me, players));
      restricted |= lacks[s] = static_cast<u8>(lacking(game, s));
    }
    collect(game.hand[s], s);
  }
  collect(game.stock, kStockPlace);
  collect(game.gone, kGonePlace);
  const auto allowed = [&](int id, int place) {
    return !kNumbered.test(id) || !(lacks[place] >> suit_of(id) & 1);
  };
  draw_deal(deal, rng, restricted != 0, allowed, belief != nullptr, score);
  SPARRING_FOR (int i = 0; i < deal.count; ++i) {
    const int place = deal.place[i];
    Cards& set = place == kStockPlace  ? game.stock
                 : place == kGonePlace ? game.gone
                                       : game.hand[place];
    set.set(deal.card[i]);
  }
}

// Deals everything that seat `me` cannot know anew: other hands, stock, unrevealed bids and loads.
// Suits that a seat has shown to lack stay out of its hand.
SPARRING_FN inline void Game::resample_hidden(const Config& config, int me, Rng& rng,
                                              const f32* belief) {
  const int players = config.num_players;
  deal_unseen(*this, config, me, rng, belief);
  SPARRING_FOR (int s = 0; s < players; ++s) {
    if (s == me) continue;
    if (phase == kBid && bid[s] >= 0 && !config.open_bids)
      bid[s] = static_cast<i8>(rng.below(cards + 1));
    const bool loaded = wrap(s - leader, players) < placed;
    if (phase == kCannon && loaded) cannon[s] = static_cast<u8>(rng.below(2));
    priv[s] = Cards::none();
  }
  if (!config.has_ghost()) return;
  const int next = cards - hand[2].count();
  int slot = next;
  hand[2].each([&](int id) { ghost_order[slot++] = static_cast<u8>(id); });
  SPARRING_FOR (; slot > next + 1; --slot) {
    const int other = next + rng.below(slot - next);
    const u8 kept = ghost_order[slot - 1];
    ghost_order[slot - 1] = ghost_order[other];
    ghost_order[other] = kept;
  }
}

}  // namespace sparring::skull_king
