// Liar's dice for two: dice under a cup each, bids that rise, and a doubt that ends the game.
#pragma once

#include "core/bounds.hpp"
#include "core/deal.hpp"
#include "core/describe.hpp"
#include "core/game.hpp"

namespace sparring::liars_dice {

struct Config {
  i32 dice = 1;   // of each seat
  i32 faces = 6;  // of a die; the highest is wild
  i32 deal = -1;  // a roll of all dice as a number: the first seat's first die is its lowest digit
};

inline constexpr int kFaces = 6, kMaxDice = 2, kQuantities = 2 * kMaxDice;
inline constexpr int kMaxDeals = 6 * 6 * 6 * 6;

// What a seat sees: its own dice, its place, and every bid; bids rise, so that their order is
// known. The bids come last: games with fewer dice have fewer of them.
inline constexpr Feature kCounts[] = {{"1", Type::kU8, kMaxDice}, {"2", Type::kU8, kMaxDice},
                                      {"3", Type::kU8, kMaxDice}, {"4", Type::kU8, kMaxDice},
                                      {"5", Type::kU8, kMaxDice}, {"6", Type::kU8, kMaxDice}};
inline constexpr Feature kTurn[] = {{"second seat"}, {"to move"}};
inline constexpr Feature kBid[] = {{"1"}, {"2"}, {"3"}, {"4"}, {"5"}, {"6"}};
inline constexpr Section kOneDie[] = {{"dice", kCounts}, {"turn", kTurn}, {"bids", kBid, 2}};
inline constexpr Section kTwoDice[] = {{"dice", kCounts}, {"turn", kTurn}, {"bids", kBid, 4}};

struct Game {
  using Config = liars_dice::Config;
  using Action = i32;  // a bid, kFaces * (quantity - 1) + face - 1, or behind all bids: a doubt
  static constexpr int kMaxSeats = 2, kRows = 1, kRoles = 1;
  static constexpr int kActions = kFaces * kQuantities + 1;
  static constexpr const char* kParts[] = {"result"};
  static constexpr const char* kBots[] = {"truthful", "careful"};
  static constexpr const char* kEnds[] = {"bid was true", "bid was a lie"};

  u32 bids;              // that were made, bit by bit
  u8 dice[2][kMaxDice];  // 1..faces, the smaller one first; 0: no die
  u8 doubted, spare[3];

  SPARRING_FN static int bid_count(const Config& config) { return 2 * config.dice * kFaces; }

  SPARRING_FN static Shape shape(const Config& config) {
    return {.seats = 2,
            .actions = bid_count(config) + 1,
            .obs_bytes = padded(config.dice == 1 ? bytes_of(kOneDie) : bytes_of(kTwoDice))};
  }

  SPARRING_FN int seat(int) const { return (popcount(bids) + doubted) & 1; }
  SPARRING_FN int role(int) const { return 0; }
  SPARRING_FN f32 score(const Config& config, int at) const {
    return doubted ? (at == winner(config) ? 1.0f : -1.0f) : 0.0f;
  }

  SPARRING_FN void reset(const Config& config, Rng& rng) {
    *this = Game{};
    int roll = config.deal < 0 ? rng.below(deals(config)) : config.deal;
    for (int at = 0; at < 2; ++at) {
      for (int i = 0; i < config.dice; ++i, roll /= config.faces)
        dice[at][i] = static_cast<u8>(1 + roll % config.faces);
      sort(config, at);
    }
  }

  SPARRING_FN static int deals(const Config& config) {
    int rolls = 1;
    for (int i = 0; i < 2 * config.dice; ++i) rolls *= config.faces;
    return rolls;
  }

  SPARRING_FN void sort(const Config& config, int at) {
    if (config.dice < 2 || dice[at][0] <= dice[at][1]) return;
    const u8 higher = dice[at][0];
    dice[at][0] = dice[at][1];
    dice[at][1] = higher;
  }

  SPARRING_FN void legal(const Config& config, int, Legal<Game>& out) const {
    for (int bid = last_bid() + 1; bid < bid_count(config); ++bid)
      if (bid % kFaces < config.faces) out.set(bid);
    if (bids) out.set(bid_count(config));
  }

  SPARRING_FN void observe(const Config& config, int me, u8* out) const {
    constexpr int held = byte_of(kOneDie, "dice"), made = byte_of(kOneDie, "bids");
    for (int face = 1; face <= kFaces; ++face)
      out[held + face - 1] = static_cast<u8>((dice[me][0] == face) + (dice[me][1] == face));
    for (int bid = 0; bid < bid_count(config); ++bid) out[made + bid] = bids >> bid & 1;
    out[byte_of(kOneDie, "turn", "second seat")] = me == 1;
    out[byte_of(kOneDie, "turn", "to move")] = !doubted && seat(0) == me;
  }

  SPARRING_FN void step(const Config& config, const Action* actions, Rng&, Result& result) {
    if (actions[0] < bid_count(config)) {
      bids |= u32{1} << actions[0];
      return;
    }
    doubted = 1;
    const int won = winner(config);
    result.add_reward(0, won, 1.0f);
    result.add_reward(0, 1 - won, -1.0f);
    result.terminate(won == bidder() ? 0 : 1);
  }

  SPARRING_FN int last_bid() const { return bids ? highest_bit(bids) : -1; }
  SPARRING_FN int bidder() const { return (popcount(bids) - 1) & 1; }

  // How many of a seat's dice count for a face: those that show it, and the wild ones.
  SPARRING_FN int matching(const Config& config, int at, int face) const {
    int count = 0;
    for (int i = 0; i < config.dice; ++i)
      count += dice[at][i] == face || dice[at][i] == config.faces;
    return count;
  }

  SPARRING_FN int winner(const Config& config) const {
    const int face = last_bid() % kFaces + 1, quantity = last_bid() / kFaces + 1;
    const bool lie = matching(config, 0, face) + matching(config, 1, face) < quantity;
    return lie ? 1 - bidder() : bidder();
  }

  // truthful bids what its own dice show and doubts everything else. careful also believes in one
  // matching die of the other, and bids as high as that.
  SPARRING_FN Action act(int bot, const Config& config, int, const Legal<Game>& legal,
                         Rng& rng) const {
    const int me = seat(0), doubt = bid_count(config);
    for (int bid = last_bid() + 1; bid < doubt; ++bid)
      if (legal.test(bid) && believed(config, me, bid, bot)) return bid;
    return bids ? doubt : legal.select(rng.below(legal.count()));
  }

  SPARRING_FN bool believed(const Config& config, int me, int bid, int more) const {
    return matching(config, me, bid % kFaces + 1) + more >= bid / kFaces + 1;
  }

  // Of several dice the head tells the lowest, the next and so on, from which no rolls follow.
  SPARRING_FN static constexpr int belief_size(const Config& config) {
    return config.dice == 1 ? config.faces : 0;
  }

  // belief: log-weights of the faces of the other's die. Behind the end nothing is left to guess:
  // the dice have decided.
  SPARRING_FN void resample_hidden(const Config& config, int me, Rng& rng,
                                   const f32* belief = nullptr) {
    if (doubted) return;
    const auto weight = [&](int i) { return weight_of(log_weight(belief[i])); };
    for (int i = 0; i < config.dice; ++i) {
      const int face = belief ? draw_by_weight(config.faces, weight, rng) : rng.below(config.faces);
      dice[1 - me][i] = static_cast<u8>(1 + face);
    }
    sort(config, 1 - me);
  }

#if SPARRING_HOST
  static Spec spec(const Config& config) {
    return {.name = "liars_dice",
            .title = "Liar's dice: bid higher, or doubt",
            .rules_version = 1,
            .blocks = config.dice == 1 ? blocks_of(kOneDie) : blocks_of(kTwoDice),
            .role_names = {"player"},
            .zero_sum = true,
            .chance = config.deal < 0};
  }

  static std::string action_name(const Config& config, int action) {
    if (action == bid_count(config)) return "doubt";
    return std::to_string(action / kFaces + 1) + "x" + std::to_string(action % kFaces + 1);
  }

  static std::vector<Field> config_fields() {
    return {SPARRING_CONFIG(dice, 1, kMaxDice, "", "dice of each seat"),
            SPARRING_CONFIG(faces, 2, kFaces, "", "faces of a die; the highest is wild"),
            SPARRING_CONFIG(deal, -1, kMaxDeals - 1, "",
                            "which of the equally likely rolls; -1: rolled")};
  }

  static std::string invalid(const Config& config) {
    return config.deal < deals(config)
               ? ""
               : "these dice have " + std::to_string(deals(config)) + " rolls; deal must be below";
  }

  static std::vector<Field> state_fields() {
    return {SPARRING_STATE(bids), SPARRING_STATE(dice), SPARRING_STATE(doubted)};
  }

  void bounds(const Config& config, Bounds& bounds) const {
    bounds.within("bids", bids, 0, (u32{1} << bid_count(config)) - 1);
    bounds.within("dice", dice, 0, config.faces);
    bounds.within("doubted", doubted, 0, 1);
    bounds.spare(spare);
  }

  const char* audit(const Config& config) const {
    for (int at = 0; at < 2; ++at) {
      if (dice[at][0] < 1 || (dice[at][1] > 0) != (config.dice == 2)) return "no such dice";
      if (config.dice == 2 && dice[at][0] > dice[at][1]) return "the smaller die comes first";
    }
    for (int bid = 0; bid < bid_count(config); ++bid)
      if ((bids >> bid & 1) && bid % kFaces >= config.faces) return "a bid on no face";
    return doubted && !bids ? "a doubt of nothing" : nullptr;
  }

  bool ended(const Config&) const { return doubted; }

  std::string text(const Config& config, int viewer) const {
    std::string told;
    for (int at = 0; at < 2; ++at) {
      (told += "seat ") += std::to_string(at) + ":";
      for (int i = 0; i < config.dice; ++i) {
        told += ' ';
        told += viewer < 0 || viewer == at || doubted ? static_cast<char>('0' + dice[at][i]) : '?';
      }
      told += '\n';
    }
    told += "bids:";
    for (int bid = 0; bid < bid_count(config); ++bid)
      if (bids >> bid & 1) (told += ' ') += action_name(config, bid);
    return told + (doubted ? " doubt\n" : "\n");
  }
#endif
};

}  // namespace sparring::liars_dice
