// Kuhhandel's money, animals and configuration, free of any table.
#pragma once

#include "core/game.hpp"

namespace sparring::kuhhandel {

inline constexpr int kPlayers = 5, kKinds = 10, kDeck = 40, kDenominations = 6;
inline constexpr int kDonkey = 6;

// Amounts are counted in tens everywhere: all money and all values are multiples of ten.
inline constexpr u8 kQuartetTens[kKinds] = {1, 4, 9, 16, 25, 35, 50, 65, 80, 100};
inline constexpr u8 kTens[kDenominations] = {0, 1, 5, 10, 20, 50};
inline constexpr u8 kBox[kDenominations] = {10, 20, 10, 5, 5, 5};  // cards there are

// A hand or a pile of money: byte d counts the cards of denomination d, so that piles add and
// compare as one number. No byte comes near 128: a box holds at most 20 cards of a kind.
using Money = u64;
inline constexpr Money kEachOne = 0x010101010101;

SPARRING_FN constexpr Money money_of(int denomination, int count) {
  return static_cast<Money>(count) << (8 * denomination);
}

SPARRING_FN constexpr Money start_hand() {
  return money_of(0, 2) | money_of(1, 4) | money_of(2, 1);
}

SPARRING_FN constexpr int count_of(Money money, int denomination) {
  return static_cast<int>(money >> (8 * denomination) & 0xff);
}

SPARRING_FN constexpr Money below(Money money, int denomination) {
  return money & ((Money{1} << (8 * denomination)) - 1);
}

SPARRING_FN constexpr Money without_zeros(Money money) { return money & ~Money{0xff}; }

SPARRING_FN constexpr int cards_in(Money money) {
  return static_cast<int>(money * 0x0101010101010101 >> 56);
}

// The sum in tens: the counts are spread to 16 bits, where one product adds them up, weighted,
// in its highest part.
SPARRING_FN constexpr int tens_in(Money money) {
  constexpr u64 kWide = 0x00ff00ff00ff00ff;
  constexpr u64 kOdd = u64{kTens[1]} << 48 | u64{kTens[3]} << 32 | u64{kTens[5]} << 16;
  constexpr u64 kEven = u64{kTens[2]} << 32 | u64{kTens[4]} << 16;
  return static_cast<int>(((money & kWide) * kEven + (money >> 8 & kWide) * kOdd) >> 48);
}

// What is certainly left of `money` after `taken`: max(0, a - b) for every denomination.
SPARRING_FN constexpr Money less(Money money, Money taken) {
  constexpr u64 kHigh = 0x8080808080808080;
  const u64 difference = (money | kHigh) - taken;
  const u64 kept = (difference & kHigh) >> 7;  // 1 where nothing had to be borrowed
  return difference & (kept * 0x7f);
}

// Whether `part` can be taken from `money`.
SPARRING_FN constexpr bool holds(Money money, Money part) { return less(part, money) == 0; }

static_assert(tens_in(start_hand()) == 9 && cards_in(start_hand()) == 7);
static_assert(tens_in(0x0505050a140a) == 470 && cards_in(0x0505050a140a) == 55);  // the box
static_assert(less(0x0302, 0x0104) == 0x0200 && holds(0x0302, 0x0202) && !holds(0x0302, 0x0003));

// Every card but the 500 is worth a multiple of the next smaller one. Whoever takes such cards from
// the largest down therefore comes as near to a sum as they can, and with the fewest cards: two or
// more small ones that make up a larger one that is left could be changed for it.
struct Pile {
  Money cards;
  int tens, left;  // its worth; what is missing to the sum

  SPARRING_FN int rank() const { return tens << 8 | cards_in(cards); }
};

// As many of the hand's cards up to 200 as come nearest to `max_tens` from below.
SPARRING_FN inline Pile small_pile(Money hand, int max_tens) {
  Pile pile{0, 0, max_tens};
  for (int d = 4; d >= 1; --d) {
    const int count = min(count_of(hand, d), pile.left / kTens[d]);
    pile.cards |= money_of(d, count);
    pile.left -= count * kTens[d];
  }
  pile.tens = max_tens - pile.left;
  return pile;
}

inline constexpr int kLarge = kTens[kDenominations - 1];

// The payment of pay_mode AUTO (K5): least overpaid, then fewest cards, then larger cards.
// The hand must be worth the price.
SPARRING_APART SPARRING_FN inline Money auto_payment(Money hand, int price_tens) {
  if (price_tens <= 0 || tens_in(hand) < price_tens) return 0;
  const Money rest = below(hand, 5);
  const int rest_tens = tens_in(rest);
  // A set that overpays by 500 or more could leave a card out. Who pays 1000 or more in smaller
  // cards and has two 500s left could change them.
  const int largest = min(count_of(hand, 5), (price_tens + kLarge - 1) / kLarge);
  Money best = 0;
  int best_rank = 1 << 30;
  SPARRING_FOR (int a = largest; a >= max(0, largest - 2); --a) {
    const int due = max(0, price_tens - a * kLarge);
    if (due > rest_tens) break;
    // What is kept of the rest is as much as can be; the others pay that sum exactly.
    const int paid = rest_tens - small_pile(rest, rest_tens - due).tens;
    const Pile pile = small_pile(rest, paid);
    const int rank = a * (kLarge << 8 | 1) + pile.rank();
    if (rank < best_rank) best = pile.cards | money_of(5, a), best_rank = rank;
  }
  return best;
}

// The largest sum up to a limit, with the fewest cards, then larger cards.
SPARRING_APART SPARRING_FN inline Money largest_pile(Money hand, int limit_tens) {
  const Money rest = below(hand, 5);
  const int largest = min(count_of(hand, 5), limit_tens / kLarge);
  Money best = 0;
  int best_rank = -1;
  // Who leaves two 500s that fit has less than 1000 in smaller cards, or could change them.
  SPARRING_FOR (int a = largest; a >= max(0, largest - 1); --a) {
    const Pile pile = small_pile(rest, limit_tens - a * kLarge);
    const int rank = (a * kLarge + pile.tens) << 8 | (0xff - cards_in(pile.cards) - a);
    if (rank > best_rank) best = pile.cards | money_of(5, a), best_rank = rank;
  }
  return best;
}

enum Bluff : i32 { kExclude, kCap, kForbid };
enum PassMode : i32 { kSoft, kHard };
enum PayMode : i32 { kChoice, kAuto };
enum TieMoney : i32 { kExchange, kTakeBack };
enum AtLimit : i32 { kCut, kScore };
enum Reward : i32 {
  kRewardRank,
  kRewardWin,
  kRewardScoreZs,
  kRewardPotential,
  kRewardSeed,
  kRewardSeedAggressive,
  kRewardSeedWinOnly
};

// The flags of section 9, by their names there.
struct Config {
  i32 num_players = 3;
  i32 bluff = kExclude;
  i32 pass_mode = kSoft;
  i32 pay_mode = kChoice;
  i32 open_pay = 0;
  i32 empty_offer = 0;
  i32 tie_money = kExchange;
  i32 tie_rounds = 2;
  i32 zeros_return = 0;
  i32 edition = 2;
  i32 max_decisions = 4000;
  i32 at_limit = kCut;
  i32 auto_forced = 1;
  i32 history = 0;
  i32 reward = kRewardRank;
  f32 potential_gamma = 1;
};

}  // namespace sparring::kuhhandel
