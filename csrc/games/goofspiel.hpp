// Goofspiel: prizes come up one by one, both bid a card for each, the higher card takes it. The
// second seat bids without seeing the first seat's card, as if both bid at once.
#pragma once

#include "core/bounds.hpp"
#include "core/describe.hpp"
#include "core/game.hpp"

namespace sparring::goofspiel {

struct Config {
  i32 cards = 4;   // of each hand, and as many prizes
  i32 order = 0;   // of the prizes: descending, ascending, drawn
  i32 hidden = 1;  // 1: a seat sees who won a prize, not the other's card
  i32 deal = -1;   // which order, if they are drawn (deal_prizes)
};

inline constexpr int kMaxCards = 5, kMaxDeals = 120;
inline constexpr int kDescending = 0, kAscending = 1, kDrawn = 2;
inline constexpr int kMaxPoints = 15;

// What a seat sees: the prize, and of every round so far the prize, its own card and who won; the
// other's card, if that is open; both sums of points. All it ever knew.
inline constexpr Feature kCard[] = {{"1"}, {"2"}, {"3"}, {"4"}, {"5"}};
inline constexpr Feature kWon[] = {{"won"}, {"lost"}, {"equal"}};
inline constexpr Feature kPoints[] = {{"own", Type::kU8, kMaxPoints},
                                      {"other", Type::kU8, kMaxPoints}};
inline constexpr Feature kTurn[] = {{"second seat"}, {"to move"}};
inline constexpr Section kRow[] = {{"prizes", kCard, kMaxCards}, {"own", kCard, kMaxCards},
                                   {"other", kCard, kMaxCards},  {"rounds", kWon, kMaxCards},
                                   {"points", kPoints},          {"turn", kTurn}};

struct Game {
  using Config = goofspiel::Config;
  using Action = i32;  // a card, counted from 0
  static constexpr int kMaxSeats = 2, kRows = 1, kRoles = 1, kActions = kMaxCards;
  static constexpr const char* kParts[] = {"result"};
  static constexpr const char* kBots[] = {"low", "match"};

  u8 prizes[kMaxCards];  // 1..cards in their order; 0: no card
  u8 bids[2][kMaxCards];
  u8 round, points[2];
  u8 half;  // 1: the first seat has bid for this prize

  SPARRING_FN static Shape shape(const Config& config) {
    return {.seats = 2, .actions = config.cards, .obs_bytes = padded(bytes_of(kRow))};
  }

  SPARRING_FN int seat(int) const { return half; }
  SPARRING_FN int role(int) const { return 0; }
  SPARRING_FN f32 score(const Config& config, int at) const {
    if (round < config.cards || points[0] == points[1]) return 0.0f;
    return points[at] > points[1 - at] ? 1.0f : -1.0f;
  }

  SPARRING_FN void reset(const Config& config, Rng& rng) {
    *this = Game{};
    if (config.order == kDrawn)
      deal_prizes(config, config.deal < 0 ? rng.below(deals(config)) : config.deal);
    else
      for (int i = 0; i < config.cards; ++i)
        prizes[i] = static_cast<u8>(config.order == kAscending ? 1 + i : config.cards - i);
  }

  SPARRING_FN static int deals(const Config& config) {
    int orders = 1;
    for (int i = 2; i <= config.cards; ++i) orders *= i;
    return orders;
  }

  // A deal is a number: its remainder by the cards that are left picks the next prize.
  SPARRING_FN void deal_prizes(const Config& config, int deal) {
    Bits<kMaxCards> left = {{(u64{1} << config.cards) - 1}};
    for (int i = 0; i < config.cards; ++i) {
      const int card = left.select(deal % (config.cards - i));
      deal /= config.cards - i;
      left.clear(card);
      prizes[i] = static_cast<u8>(1 + card);
    }
  }

  SPARRING_FN u64 hand(const Config& config, int at) const {
    u64 held = (u64{1} << config.cards) - 1;
    for (int i = 0; i < round; ++i) held &= ~(u64{1} << (bids[at][i] - 1));
    return held;
  }

  SPARRING_FN void legal(const Config& config, int, Legal<Game>& out) const {
    out.word[0] = hand(config, half);
  }

  SPARRING_FN void observe(const Config& config, int me, u8* out) const {
    constexpr int prize = byte_of(kRow, "prizes"), own = byte_of(kRow, "own");
    constexpr int other = byte_of(kRow, "other"), result = byte_of(kRow, "rounds");
    for (int i = 0; i < kMaxCards; ++i) {
      const bool played = i < round, up = i <= round && i < config.cards;
      for (int card = 0; card < kMaxCards; ++card) {
        const int at = kMaxCards * i + card;
        out[prize + at] = up && prizes[i] == 1 + card;
        out[own + at] = i < bids_of(me) && bids[me][i] == 1 + card;
        out[other + at] = played && !config.hidden && bids[1 - me][i] == 1 + card;
      }
      out[result + 3 * i] = played && bids[me][i] > bids[1 - me][i];
      out[result + 3 * i + 1] = played && bids[me][i] < bids[1 - me][i];
      out[result + 3 * i + 2] = played && bids[me][i] == bids[1 - me][i];
    }
    out[byte_of(kRow, "points", "own")] = points[me];
    out[byte_of(kRow, "points", "other")] = points[1 - me];
    out[byte_of(kRow, "turn", "second seat")] = me == 1;
    out[byte_of(kRow, "turn", "to move")] = round < config.cards && half == me;
  }

  SPARRING_FN int bids_of(int at) const { return round + (half && at == 0); }

  // The last cards play themselves.
  SPARRING_FN void step(const Config& config, const Action* actions, Rng&, Result& result) {
    bid(actions[0]);
    if (half) return;
    if (round == config.cards - 1) {
      bid(lowest_bit(hand(config, 0)));
      bid(lowest_bit(hand(config, 1)));
    }
    if (round < config.cards) return;
    for (int at = 0; at < 2; ++at) result.add_reward(0, at, score(config, at));
    result.terminate();
  }

  SPARRING_FN void bid(int card) {
    bids[half][round] = static_cast<u8>(1 + card);
    half ^= 1;
    if (half) return;
    const int first = bids[0][round], second = bids[1][round];
    if (first != second) {
      u8& sum = points[first > second ? 0 : 1];
      sum = static_cast<u8>(sum + prizes[round]);
    }
    ++round;
  }

  // low bids its lowest card; match bids the card of the prize, the lowest if it is gone.
  SPARRING_FN Action act(int bot, const Config&, int, const Legal<Game>& legal, Rng&) const {
    const int same = prizes[round] - 1;
    return bot == 1 && legal.test(same) ? same : legal.lowest();
  }

  // The prizes that are not up yet, where they are drawn, and the other's cards, among all that
  // won and lost the same rounds: they are counted, then one is found again. Behind the end nothing
  // is left to guess.
  SPARRING_FN void resample_hidden(const Config& config, int me, Rng& rng) {
    if (round == config.cards) return;
    if (config.order == kDrawn)
      SPARRING_FOR (int i = config.cards - 1; i > round + 1; --i) {
        const int j = round + 1 + rng.below(i - round);
        const u8 kept = prizes[i];
        prizes[i] = prizes[j];
        prizes[j] = kept;
      }
    int ways = 1, fitting = 0, way = 0;
    for (int i = 0; i < bids_of(1 - me); ++i) ways *= config.cards;
    SPARRING_FOR (int each = 0; each < ways; ++each)
      fitting += fits(world(config, me, each), config, me);
    for (int drawn = rng.below(fitting);; ++way)
      if (fits(world(config, me, way), config, me) && drawn-- == 0) break;
    *this = world(config, me, way);
  }

  // The other bid so: a number whose digits are its cards.
  SPARRING_FN Game world(const Config& config, int me, int way) const {
    Game found = *this;
    for (int i = 0; i < bids_of(1 - me); ++i, way /= config.cards)
      found.bids[1 - me][i] = static_cast<u8>(1 + way % config.cards);
    return found;
  }

  // Whether the other bid each card once, and `me` saw in this world what it saw here.
  SPARRING_FN bool fits(const Game& world, const Config& config, int me) const {
    const auto sign = [](int a, int b) { return (a > b) - (a < b); };
    u64 used = 0;
    for (int i = 0; i < bids_of(1 - me); ++i) {
      const int mine = bids[me][i], theirs = bids[1 - me][i], card = world.bids[1 - me][i];
      if (used >> card & 1) return false;
      used |= u64{1} << card;
      if (i < round && (config.hidden ? sign(mine, theirs) != sign(mine, card) : theirs != card))
        return false;
    }
    return true;
  }

#if SPARRING_HOST
  static Spec spec(const Config& config) {
    return {.name = "goofspiel",
            .title = "Goofspiel: bid a card for every prize, unseen",
            .rules_version = 1,
            .blocks = blocks_of(kRow),
            .role_names = {"player"},
            .zero_sum = true,
            .chance = config.order == kDrawn && config.deal < 0};
  }

  static std::string action_name(const Config&, int action) { return std::to_string(action + 1); }

  static std::vector<Field> config_fields() {
    return {SPARRING_CONFIG(cards, 2, kMaxCards, "", "cards of each hand, and as many prizes"),
            SPARRING_CONFIG(order, 0, 2, "DESCENDING|ASCENDING|DRAWN", "order of the prizes"),
            SPARRING_CONFIG(hidden, 0, 1, "", "1: the other's card is not shown, only who won"),
            SPARRING_CONFIG(deal, -1, kMaxDeals - 1, "",
                            "which of the equally likely orders, if it is drawn; -1: drawn")};
  }

  static std::string invalid(const Config& config) {
    if (config.deal >= 0 && config.order != kDrawn) return "deal needs the order DRAWN";
    if (config.deal < deals(config)) return "";
    return "these prizes have " + std::to_string(deals(config)) + " orders; deal must be below";
  }

  static std::vector<Field> state_fields() {
    return {SPARRING_STATE(prizes), SPARRING_STATE(bids), SPARRING_STATE(round),
            SPARRING_STATE(points), SPARRING_STATE(half)};
  }

  void bounds(const Config& config, Bounds& bounds) const {
    bounds.within("prizes", prizes, 0, config.cards);
    bounds.within("bids", bids, 0, config.cards);
    bounds.within("round", round, 0, config.cards);
    bounds.within("points", points, 0, kMaxPoints);
    bounds.within("half", half, 0, 1);
  }

  // The bids played again lead here.
  const char* audit(const Config& config) const {
    Game again{};
    u64 seen = 0;
    for (int i = 0; i < config.cards; ++i) {
      again.prizes[i] = prizes[i];
      seen |= u64{1} << prizes[i];
      const int fixed = config.order == kAscending ? 1 + i : config.cards - i;
      if (config.order != kDrawn && prizes[i] != fixed) return "no such order of the prizes";
    }
    if (seen != (u64{1} << (config.cards + 1)) - 2) return "every prize comes once";
    if (round == config.cards - 1) return "the last cards play themselves";
    if (round == config.cards && half) return "a bid after the end";
    for (int i = 0; i < 2 * round + half; ++i) {
      const int card = bids[i % 2][i / 2];
      if (!card || !(again.hand(config, i % 2) >> (card - 1) & 1))
        return "a card that is not in the hand";
      again.bid(card - 1);
    }
    return std::memcmp(this, &again, sizeof again) ? "its bids lead elsewhere" : nullptr;
  }

  bool ended(const Config& config) const { return round == config.cards; }

  std::string text(const Config& config, int viewer) const {
    std::string told = "prizes:";
    for (int i = 0; i < config.cards; ++i) {
      told += ' ';
      const bool open = i <= round || viewer < 0 || config.order != kDrawn;
      told += open ? static_cast<char>('0' + prizes[i]) : '?';
    }
    for (int at = 0; at < 2; ++at) {
      (told += "\nseat ") += std::to_string(at) + ":";
      const bool open = viewer < 0 || viewer == at || ended(config);
      for (int i = 0; i < bids_of(at); ++i) {
        told += ' ';
        told += open || (!config.hidden && i < round) ? static_cast<char>('0' + bids[at][i]) : '?';
      }
      (told += ", ") += std::to_string(points[at]) + (points[at] == 1 ? " point" : " points");
    }
    return told + "\n";
  }
#endif
};

}  // namespace sparring::goofspiel
