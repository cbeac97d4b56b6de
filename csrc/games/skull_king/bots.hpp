// Skull King's scripted players (section 20). They look only at what their seat may know, and
// compare integers or exact-enough doubles, so that every machine plays alike.
#pragma once

#include "games/skull_king.hpp"

namespace sparring::skull_king {

enum Bot { kRuleEasy, kRuleMedium, kRuleHard, kCaptain };

// The bid-time worth of a card for RULE, in hundredths.
SPARRING_FN inline int rule_worth(int id) {
  if (kNumbered.test(id)) {
    const int n = number_of(id);
    if (suit_of(id) == 0) return n >= 10 ? 70 : n >= 6 ? 40 : 20;
    return n >= 12 ? 30 : n >= 8 ? 15 : 0;
  }
  if (kPirates.test(id)) return 60;
  if (kMermaids.test(id)) return 40;
  if (kEscapes.test(id)) return 0;
  if (kLoots.test(id)) return 5;
  return id == kKingId ? 90 : id == kTigressId ? 35 : id == kWhaleId ? 20 : 15;
}

// RULE's strength of a card in play, in 140ths.
SPARRING_FN inline int rule_strength(int id, bool whale_strong) {
  if (kNumbered.test(id)) return suit_of(id) == 0 ? 56 + 4 * number_of(id) : 14 + 3 * number_of(id);
  if (kPirates.test(id)) return 119;
  if (kMermaids.test(id)) return 105;
  if (kEscapes.test(id)) return 0;
  if (kLoots.test(id)) return 7;
  if (id == kWhaleId) return whale_strong ? 84 : 49;
  return id == kKingId ? 140 : id == kTigressId ? 77 : 35;
}

// CAPTAIN's value of keeping a card, in 1400ths.
SPARRING_FN inline int captain_value(int id) {
  if (kNumbered.test(id))
    return suit_of(id) == 0 ? 630 + 35 * number_of(id) : 70 + 40 * number_of(id);
  if (kPirates.test(id)) return 1330;
  if (kMermaids.test(id)) return 1190;
  if (kEscapes.test(id)) return 0;
  if (kLoots.test(id)) return 14;
  if (id == kWhaleId) return 84;
  return id == kKingId ? 1400 : id == kTigressId ? 1260 : 70;
}

// Cards that may still turn up, counted once for all cards that they threaten.
struct Unseen {
  Cards cards;
  int king, tigress, mermaids, pirates, black;

  SPARRING_FN explicit Unseen(const Cards& set)
      : cards(set),
        king(set.test(kKingId)),
        tigress(set.test(kTigressId)),
        mermaids((set & kMermaids).count()),
        pirates((set & kPirates).count()),
        black((set & kSuits[0]).count()) {}
};

// Those of the suit of a numbered card that are higher.
SPARRING_FN inline Cards higher_than(int id) {
  const int suit = suit_of(id);
  Cards higher = kNumbered;
  higher.word[0] &= id < 63 ? ~u64{0} << (id + 1) : 0;
  higher.word[1] &= id < 63 ? ~u64{0} : ~u64{0} << (id - 63);
  const int last = 23 + 14 * suit;
  higher.word[0] &= last < 63 ? (u64{2} << last) - 1 : ~u64{0};
  higher.word[1] &= last < 64 ? 0 : (u64{2} << (last - 64)) - 1;
  return higher;
}

// How many unseen cards would beat this one later, in tenths.
SPARRING_FN inline int captain_threat(int id, const Unseen& unseen) {
  if (id == kKingId) return 10 * unseen.mermaids;
  if (kPirates.test(id) || id == kTigressId) return 10 * unseen.king;
  if (kMermaids.test(id)) return 10 * unseen.pirates + 5 * unseen.tigress;
  const int specials = 10 * (unseen.king + unseen.mermaids + unseen.pirates) + 5 * unseen.tigress;
  const int higher = 10 * (unseen.cards & higher_than(id)).count();
  return higher + specials + (suit_of(id) == 0 ? 0 : 6 * unseen.black);
}

SPARRING_FN inline f64 power(f64 base, int exponent) {
  f64 value = 1;
  SPARRING_FOR (int i = 0; i < exponent; ++i) value *= base;
  return value;
}

// The legal cards as a set; both Tigress actions are the Tigress.
SPARRING_FN inline Cards cards_of(const Legal<Game>& legal) {
  Cards set;
  set.word[0] = legal.word[0] >> kPlayFirst | legal.word[1] << (64 - kPlayFirst);
  set.word[1] = legal.word[1] >> kPlayFirst & 0x3ff;
  return set;
}

SPARRING_FN inline bool whale_is_strong(const Cards& legal) {
  int high = 0;
  (legal & kNumbered).each([&](int id) { high += number_of(id) >= 12; });
  return high >= 2;
}

// The card with the greatest (sign = 1) or least (sign = -1) worth; ties go to the lowest id.
template <class Worth>
SPARRING_FN inline int extreme_card(const Cards& set, int sign, Worth&& worth) {
  int best = -1, best_worth = 0;
  set.each([&](int id) {
    const int value = sign * worth(id);
    if (best < 0 || value > best_worth) best = id, best_worth = value;
  });
  return best;
}

SPARRING_APART SPARRING_FN inline int rule_bid(const Game& game, int level, Rng& rng) {
  i64 worth = 0;
  game.hand[game.actor].each([&](int id) { worth += rule_worth(id); });
  const i64 spread = level == kRuleEasy ? 100 : level == kRuleMedium ? 50 : 20;
  const i64 one = i64{1} << 31;
  const i64 noisy = worth * one + (static_cast<i64>(rng.next()) - one) * spread;
  const i64 bid = round_half_even(noisy, 100 * one);
  return static_cast<int>(min<i64>(max<i64>(bid, 0), game.cards));
}

SPARRING_APART SPARRING_FN inline int rule_card(const Game& game, int level, const Cards& legal,
                                                Rng& rng) {
  enum Plan { kWinIt, kLoseIt, kMiddle };
  const int need = game.need(game.actor);
  const int rest = game.cards - game.tricks_done - 1;
  int plan = kMiddle;
  if (need > rest || need <= 0)
    plan = kLoseIt;
  else if (need == rest || need > rest / 2)
    plan = kWinIt;
  // 30 % of EASY's plans are a coin with three sides.
  if (level == kRuleEasy && u64{rng.next()} * 10 < u64{3} << 32) plan = rng.below(3);
  const bool whale = whale_is_strong(legal);
  const auto strength = [&](int id) { return rule_strength(id, whale); };
  if (plan == kWinIt) return extreme_card(legal, 1, strength);
  if (plan == kLoseIt) return extreme_card(legal, -1, strength);
  Cards left = legal;
  SPARRING_FOR (int skip = legal.count() / 2; skip > 0; --skip)
    left.clear(extreme_card(left, -1, strength));
  return extreme_card(left, -1, strength);
}

// CAPTAIN's chance that a card of a fresh deck takes a trick, by deck, players and card; 0 for
// those that it does not count on.
struct BidTable {
  f64 chance[3][7][kCards];
};

SPARRING_FN constexpr BidTable make_bids() {
  BidTable table{};
  for (int kind = 0; kind < 3; ++kind) {
    Config config;
    config.deck = kind;
    const Cards deck = config.deck_cards();
    for (int id = 0; id < kCards; ++id) {
      if (kEscapes.test(id) || kLoots.test(id) || id == kKrakenId || id == kWhaleId) continue;
      int higher = 0, black = 0;
      for (int other = 10; other <= 65; ++other) {
        black += deck.test(other) && suit_of(other) == 0;
        higher += deck.test(other) && suit_of(other) == suit_of(id) && other > id;
      }
      int threat = 10 * higher + 10 * (1 + 2 + 5) + 5;  // king, mermaids, pirates and the Tigress
      if (kNumbered.test(id) && suit_of(id) != 0) threat += 6 * black;
      if (id == kKingId) threat = 10 * 2;
      if (kPirates.test(id) || id == kTigressId) threat = 10;
      if (kMermaids.test(id)) threat = 10 * 5 + 5;
      const f64 lost =
          static_cast<f64>(threat + 20) / static_cast<f64>(10 * (config.deck_size() - 1));
      f64 chance = 1;
      for (int others = 1; others < 8; ++others) {
        chance *= 1 - lost;
        table.chance[kind][others - 1][id] = chance;
      }
    }
  }
  return table;
}

inline constexpr BidTable kBids = make_bids();

SPARRING_APART SPARRING_FN inline int captain_bid(const Game& game, const Config& config) {
  const f64* chance = kBids.chance[config.deck][config.num_players - 2];
  const f64 suited = game.cards <= 2 ? 0.6875 : 0.55;
  f64 expected = 0;
  game.hand[game.actor].each([&](int id) {
    f64 share = 1;
    if (id == kTigressId) share = 0.6;
    if (kNumbered.test(id)) share = suit_of(id) == 0 ? 0.95 : suited;
    expected += chance[id] * share;
  });
  const int bid = static_cast<int>(0.95 * expected + 0.5 + 1e-9);
  return min(max(bid, 0), static_cast<int>(game.cards));
}

// One way to play a card, with CAPTAIN's chance that it takes the trick.
struct Option {
  i32 action;
  int value;
  f64 wins;
};

SPARRING_FN inline f64 captain_chance(const Game& game, const Config& config, int token,
                                      const Unseen& unseen, int pool) {
  const int kind = kToken.kind[token];
  if (kind >= kKraken || !game.would_win(config, token)) return 0;
  const int after = config.seats() - game.trick_size - 1;
  if (kind <= kLoot) return after == 0 ? 1 : 0.02;
  const int threat = captain_threat(token - 1, unseen) + (after > 0 ? 10 : 0);
  return power(1 - min(1.0, static_cast<f64>(threat) / static_cast<f64>(10 * pool)), after);
}

SPARRING_APART SPARRING_FN inline i32 captain_play(const Game& game, const Config& config,
                                                   const Cards& legal) {
  constexpr f64 kHair = 1e-9;  // thresholds include the values that lie exactly on them
  const int me = game.actor;
  const int need = game.need(me), left = game.cards - game.tricks_done;
  const bool last = game.trick_size + 1 == config.seats();
  Cards seen = game.hand[me];
  SPARRING_FOR (int s = 0; s < config.seats(); ++s) seen = seen | game.played[s];
  const Unseen unseen(config.deck_cards() - seen);
  const int pool = max(1, unseen.cards.count());

  Option option[11];
  int count = 0;
  f64 lowest = 2;
  const auto add = [&](int action, int token, int value) {
    const f64 wins = captain_chance(game, config, token, unseen, pool);
    option[count++] = {action, value, wins};
    lowest = min(lowest, wins);
  };
  legal.each([&](int id) {
    const int value = captain_value(id);
    int action = kPlayFirst + id, token = id + 1;
    SPARRING_FOR (int ways = id == kTigressId ? 2 : 1; ways > 0; --ways) {
      add(action, token, value);
      action = kPlayTigressEscape, token = kTigressEscape;
    }
  });

  // Options come in card order, so keeping the first of equals breaks ties by lowest id.
  enum By { kSurest, kShed, kCheapest, kMiddling };
  int best = -1;
  const auto choose = [&](f64 from, f64 to, By by) {
    int best_key = 0;
    SPARRING_FOR (int i = 0; i < count; ++i) {
      const Option& o = option[i];
      if (o.wins < from || o.wins > to) continue;
      int key = o.value;
      if (by == kMiddling) key = absolute(o.value - 350);
      if (by == kShed)
        key = o.action == kPlayFirst + kTigressId || o.action == kPlayTigressEscape ? -420 : -key;
      const bool surer = by == kSurest && best >= 0 && o.wins != option[best].wins;
      if (best < 0 || (surer ? o.wins > option[best].wins : key < best_key))
        best = i, best_key = key;
    }
  };
  constexpr f64 kAny = 2;  // more than any chance
  f64 from = 0, to = kAny;
  By by = kSurest;
  if (need <= 0 || need > left) {
    to = lowest + 0.03 + kHair, by = kShed;
  } else if (need < left) {
    from = (last ? 0.99 : 0.62) - kHair, by = kCheapest;
  }
  choose(from, to, by);
  if (best < 0) choose(0, lowest + 0.05 + kHair, 2 * need > left ? kCheapest : kMiddling);
  return option[best].action;
}

// Neither the original bots nor CAPTAIN were described for the optional abilities; these are the
// plain choices (docs/games/skull_king.md).
SPARRING_APART SPARRING_FN inline i32 ability_choice(const Game& game, bool captain,
                                                     const Legal<Game>& legal) {
  const int need = game.need(game.actor);
  if (game.phase == kRosiePick) return kRosieFirst + (need > 0 ? 0 : 1);
  if (game.phase == kWager) return kWagerFirst;
  if (game.phase == kHarryBid) {
    int best = 0;
    SPARRING_FOR (int change : {-1, 1})
      if (legal.test(kHarryFirst + 1 + change) && absolute(need + change) < absolute(need + best))
        best = change;
    return kHarryFirst + 1 + best;
  }
  const Cards held = cards_of(legal);
  const bool whale = whale_is_strong(held);
  const int card = extreme_card(held, need > 0 ? -1 : 1, [&](int id) {
    return captain ? captain_value(id) : rule_strength(id, whale);
  });
  return kPlayFirst + card;
}

SPARRING_FN inline Game::Action Game::act(int bot, const Config& config, int,
                                          const Legal<Game>& legal, Rng& rng) const {
  if (phase == kBid)
    return bot == kCaptain ? captain_bid(*this, config) : rule_bid(*this, bot, rng);
  if (phase == kCannon) return kGrapeshot;
  if (phase != kPlay) return ability_choice(*this, bot == kCaptain, legal);
  if (bot == kCaptain) return captain_play(*this, config, cards_of(legal));
  const int card = rule_card(*this, bot, cards_of(legal), rng);
  if (card == kTigressId && need(actor) <= 0) return kPlayTigressEscape;
  return kPlayFirst + card;
}

}  // namespace sparring::skull_king
