// Skull King's cards, configuration, trick resolution and scoring, free of any table.
#pragma once

#include "core/game.hpp"
#include "games/skull_king/layout.hpp"

namespace sparring::skull_king {

inline constexpr int kCards = 74;
using Cards = Bits<kCards>;

enum Kind : u8 { kEscape, kLoot, kSuit, kMermaid, kPirate, kKing, kKraken, kWhale };

inline constexpr int kKingId = 0, kWhaleId = 1, kKrakenId = 2, kTigressId = 71;
inline constexpr int kRosie = 5, kBendt = 6, kRascal = 7, kJade = 8, kHarry = 9;

// A played card is a token: 1 + id, and one more for the Tigress played as an escape.
inline constexpr int kTigressPirate = 1 + kTigressId, kTigressEscape = 75, kTokens = 76;

SPARRING_FN constexpr Cards cards_from(int first, int last) {
  Cards set = Cards::none();
  for (int id = first; id <= last; ++id) set.set(id);
  return set;
}

inline constexpr Cards kSuits[4] = {cards_from(10, 23), cards_from(24, 37), cards_from(38, 51),
                                    cards_from(52, 65)};
inline constexpr Cards kMermaids = cards_from(3, 4), kPirates = cards_from(5, 9),
                       kNumbered = cards_from(10, 65), kEscapes = cards_from(66, 70),
                       kLoots = cards_from(72, 73);

SPARRING_FN constexpr int suit_of(int id) { return (id - 10) / 14; }
SPARRING_FN constexpr int number_of(int id) { return (id - 10) % 14 + 1; }

// What a token is and what the TRICK block of the observation says about it (section 16.2).
struct TokenTable {
  u8 kind[kTokens];
  u8 power[kTokens];  // who beats whom among cards that are neither suited nor a leviathan
  u8 suit[kTokens];
  u8 number[kTokens];
  u8 feature[kTokens][16];
};

SPARRING_FN constexpr TokenTable make_tokens() {
  TokenTable table{};
  for (int token = 1; token < kTokens; ++token) {
    const int id = token == kTigressEscape ? kTigressId : token - 1;
    u8* feature = table.feature[token];
    feature[trick_byte("present")] = 1;
    Kind kind = kEscape;
    if (id == kKingId) kind = kKing;
    if (id == kWhaleId) kind = kWhale;
    if (id == kKrakenId) kind = kKraken;
    if (kMermaids.test(id)) kind = kMermaid;
    if (kPirates.test(id) || token == kTigressPirate) kind = kPirate;
    if (kLoots.test(id)) kind = kLoot;
    if (kNumbered.test(id)) {
      kind = kSuit;
      table.suit[token] = static_cast<u8>(suit_of(id));
      table.number[token] = static_cast<u8>(number_of(id));
      feature[trick_byte("black") + suit_of(id)] = 1;
      feature[trick_byte("number")] = static_cast<u8>(number_of(id));
    }
    feature[trick_byte("pirate")] = kind == kPirate;
    feature[trick_byte("mermaid")] = kind == kMermaid;
    feature[trick_byte("king")] = kind == kKing;
    feature[trick_byte("escape")] = kind == kEscape || kind == kLoot;
    feature[trick_byte("loot")] = kind == kLoot;
    feature[trick_byte("kraken")] = kind == kKraken;
    feature[trick_byte("whale")] = kind == kWhale;
    feature[trick_byte("tigress")] = id == kTigressId;
    table.kind[token] = kind;
    if (kind == kMermaid) table.power[token] = 40;
    if (kind == kPirate) table.power[token] = 50;
    if (kind == kKing) table.power[token] = 60;
  }
  return table;
}

inline constexpr TokenTable kToken = make_tokens();

enum Deck : i32 { kFull74, kStandard70, kClassic66 };
enum Scoring : i32 { kSkullKingScoring, kRascalScoring };
enum Episode : i32 { kWholeGame, kOneRound };
enum KrakenLead : i32 { kWouldHaveWon, kLeftOfKraken };
enum FollowRule : i32 { kOfficial, kFirstSuit, kSeed };
enum Obs : i32 { kFullObs, kCompactObs };

struct Config {
  i32 num_players = 4;
  i32 deck = kFull74;
  i32 ghost = 1;
  i32 scoring = kSkullKingScoring;
  i32 cannonball = 0;
  i32 abilities = 0;
  i32 dedupe = 1;
  i32 episode = kWholeGame;
  i32 start_round = 0;
  f32 round_weights[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  i32 rounds[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};  // 0 ends the list
  i32 kraken_lead = kWouldHaveWon;
  i32 follow_rule = kOfficial;
  i32 whale_loot = 1;
  i32 tigress_bonus = 1;
  i32 cap8 = 8;
  i32 rascal_last = 0;
  i32 open_bids = 0;
  i32 obs = kFullObs;
  i32 phase_embed = 0;
  i32 history = 0;
  i32 reward = 0;  // a Part of section 18

  SPARRING_FN bool has_ghost() const { return num_players == 2 && ghost; }
  SPARRING_FN int seats() const { return has_ghost() ? 3 : num_players; }
  SPARRING_FN bool extended() const { return abilities || cannonball; }
  SPARRING_FN constexpr int deck_size() const {
    return deck == kFull74 ? 74 : deck == kStandard70 ? 70 : 66;
  }

  SPARRING_FN int round_count() const {
    int count = 0;
    while (count < 10 && rounds[count] > 0) ++count;
    return count;
  }

  // c(r) of section 2.
  SPARRING_FN int hand_size(int round) const {
    const int cap = num_players == 8 ? min(cap8, deck_size() / 8) : deck_size() / seats();
    return min(rounds[round - 1], min(cap, 10));
  }

  SPARRING_FN constexpr Cards deck_cards() const {
    constexpr Cards all = cards_from(0, 73), standard = all - cards_from(1, 2) - kLoots;
    constexpr Cards fourteens =
        cards_from(23, 23) | cards_from(37, 37) | cards_from(51, 51) | cards_from(65, 65);
    if (deck == kFull74) return all;
    return deck == kStandard70 ? standard : standard - fourteens;
  }
};

inline constexpr int kUndecided = 4, kNoSuit = 5;

struct TrickResult {
  int winner;  // position in the trick, -1 if it was destroyed
  int next_leader;
  bool by_whale;
};

// Who wins the cards laid so far, in play order.
SPARRING_APART SPARRING_FN inline TrickResult resolve(const u8* tokens, int count,
                                                      const Config& config) {
  int leviathan = -1, kraken = -1;
  int king = -1, pirate = -1, mermaid = -1, first_other = -1;
  int black = -1, black_number = 0, lead = -1, lead_suit = -1, lead_number = 0;
  int high = -1, high_number = 0;
  SPARRING_FOR (int i = 0; i < count; ++i) {
    const int token = tokens[i];
    const int kind = kToken.kind[token];
    if (kind >= kKraken) {
      leviathan = i;
      if (kind == kKraken) kraken = i;
      continue;
    }
    if (first_other < 0) first_other = i;
    if (kind == kSuit) {
      const int suit = kToken.suit[token], number = kToken.number[token];
      if (number > high_number) high = i, high_number = number;
      if (suit == 0 && number > black_number) black = i, black_number = number;
      if (lead_suit < 0) lead_suit = suit;
      if (suit == lead_suit && number > lead_number) lead = i, lead_number = number;
    } else if (kind == kPirate) {
      if (pirate < 0) pirate = i;
    } else if (kind == kMermaid) {
      if (mermaid < 0) mermaid = i;
    } else if (kind == kKing) {
      king = i;
    }
  }
  if (leviathan >= 0 && leviathan != kraken) {
    if (high < 0) return {-1, leviathan, true};
    return {high, high, true};
  }
  int best = first_other;
  if (king >= 0)
    best = mermaid >= 0 ? mermaid : king;
  else if (pirate >= 0)
    best = pirate;
  else if (mermaid >= 0)
    best = mermaid;
  else if (black >= 0)
    best = black;
  else if (lead >= 0)
    best = lead;
  if (leviathan < 0) return {best, best, false};
  if (config.kraken_lead == kLeftOfKraken) return {-1, wrap(kraken + 1, count), false};
  return {-1, best < 0 ? 0 : best, false};
}

// What the winner of a trick takes besides the trick itself (section 6).
struct Captures {
  int fourteens = 0, black_fourteens = 0;
  int mermaids = 0;   // by a pirate
  int pirates = 0;    // by the king
  int disguised = 0;  // Scary Mary as escape by the king: pays in the first edition
  int kings = 0;      // by a mermaid
};

SPARRING_FN inline Captures captures_of(const u8* tokens, int count, const TrickResult& trick,
                                        const Config& config) {
  Captures taken;
  int mermaids = 0, pirates = 0, kings = 0, disguised = 0;
  SPARRING_FOR (int i = 0; i < count; ++i) {
    const int token = tokens[i];
    if (kToken.number[token] == 14) {
      if (kToken.suit[token] == 0)
        ++taken.black_fourteens;
      else
        ++taken.fourteens;
    }
    mermaids += kToken.kind[token] == kMermaid;
    kings += kToken.kind[token] == kKing;
    disguised += token == kTigressEscape && config.tigress_bonus;
    if (token == kTigressPirate)
      pirates += config.tigress_bonus;
    else
      pirates += kToken.kind[token] == kPirate;
  }
  if (trick.by_whale) return taken;
  const int token = tokens[trick.winner];
  const int kind = kToken.kind[token];
  if (kind == kPirate && (token != kTigressPirate || config.tigress_bonus))
    taken.mermaids = mermaids;
  if (kind == kKing) {
    taken.pirates = pirates;
    taken.disguised = disguised;
  }
  if (kind == kMermaid) taken.kings = kings;
  return taken;
}

SPARRING_FN inline int bonus_points(const Captures& taken, const Config& config) {
  if (config.deck == kClassic66) return 30 * (taken.pirates + taken.disguised) + 50 * taken.kings;
  return 10 * taken.fourteens + 20 * taken.black_fourteens + 20 * taken.mermaids +
         30 * taken.pirates + 40 * taken.kings;
}

SPARRING_FN inline int round_points(const Config& config, int bid, int won, int cards, int capture,
                                    int loot, int wager, bool cannon) {
  const int error = absolute(won - bid);
  const int stake = error == 0 ? wager : -wager;
  if (config.scoring == kRascalScoring) {
    if (cannon) return (error == 0 ? 15 * cards + capture + loot : 0) + stake;
    if (error == 0) return 10 * cards + capture + loot + stake;
    return (error == 1 ? 5 * cards + capture / 2 : 0) + stake;
  }
  if (error == 0) return (bid == 0 ? 10 * cards : 20 * bid) + capture + loot + stake;
  return (bid == 0 ? -10 * cards : -10 * error) + stake;
}

// What manager and worker are paid (section 18). want: bid less tricks won before this one.
SPARRING_FN inline f32 worker_trick(int want, int left, bool wins) {
  if (wins) return want > 0 ? 3.0f : want == 0 ? -1.5f : -2.0f;
  return want <= left ? 0.5f : want > left + 1 ? -1.0f : 0.0f;
}

SPARRING_FN inline f32 worker_round(int error) { return error == 0 ? 5.0f : -2.0f; }

SPARRING_FN inline f32 manager_round(int error, int bid, int cards) {
  if (error == 0) return 5.0f + (bid == 0 ? 0.5f * static_cast<f32>(cards) : 0.0f);
  if (error == 1) return 1.0f;
  return error == 2 ? -1.0f : -2.0f - 0.5f * static_cast<f32>(error);
}

// Strength of a card in the shaped reward, in thousandths (section 18).
SPARRING_FN inline int shaped_strength(int id) {
  if (kNumbered.test(id)) return (suit_of(id) == 0 ? 500 : 200) + 25 * number_of(id);
  if (kPirates.test(id)) return 800;
  if (kMermaids.test(id)) return 350;
  if (kEscapes.test(id)) return 50;
  if (kLoots.test(id)) return 80;
  return id == kKingId ? 950 : id == kTigressId ? 550 : id == kWhaleId ? 400 : 250;
}

// Nearest integer to value/unit, ties to the even one.
SPARRING_FN inline i64 round_half_even(i64 value, i64 unit) {
  i64 whole = value / unit;
  if (value < 0 && whole * unit != value) --whole;
  const i64 twice = 2 * (value - whole * unit);
  if (twice > unit || (twice == unit && (whole & 1))) ++whole;
  return whole;
}

// Tricks that the shaped reward expects from a hand (section 18).
SPARRING_FN inline int shaped_estimate(const Cards& hand, int cards) {
  int total = 0, strong = 0, longest = 0;
  hand.each([&](int id) {
    total += shaped_strength(id);
    strong += shaped_strength(id) > 700;
  });
  SPARRING_FOR (int suit = 1; suit < 4; ++suit)
    longest = max(longest, (hand & kSuits[suit]).count());
  if (longest >= 3 && 10 * longest >= 6 * cards) total += 500;
  if ((hand & kMermaids).any() && strong >= 2) total -= 500;
  if (cards >= 5 && (hand & kPirates).count() >= 2) total += 300;
  total -= 400 * (hand & kEscapes).count();
  if (hand.test(kKingId)) total += 200;
  return max(0, static_cast<int>(round_half_even(total, 1000)));
}

}  // namespace sparring::skull_king
