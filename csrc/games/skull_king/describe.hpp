// Skull King for people: names, configuration fields, state fields, checks. Host only.
#pragma once

#include "games/skull_king.hpp"

#if SPARRING_HOST
namespace sparring::skull_king {

inline std::string card_name(int id) {
  static constexpr const char* kSuitNames[] = {"Black", "Green", "Purple", "Yellow"};
  static constexpr const char* kPirateNames[] = {"Rosie", "Bendt", "Rascal", "Juanita Jade",
                                                 "Harry"};
  if (kNumbered.test(id))
    return std::string(kSuitNames[suit_of(id)]) + " " + std::to_string(number_of(id));
  if (kPirates.test(id)) return std::string("Pirate ") + kPirateNames[id - kRosie];
  if (kMermaids.test(id)) return "Mermaid " + std::to_string(id - 2);
  if (kEscapes.test(id)) return "Escape " + std::to_string(id - 65);
  if (kLoots.test(id)) return "Loot " + std::to_string(id - 71);
  return id == kKingId     ? "Skull King"
         : id == kWhaleId  ? "White Whale"
         : id == kKrakenId ? "Kraken"
                           : "Tigress";
}

inline std::vector<Column> card_columns() {
  std::vector<Column> columns;
  for (int id = 0; id < kCards; ++id) columns.push_back({card_name(id)});
  return columns;
}

inline std::vector<Column> numbered_columns(const char* word, int from, int to) {
  std::vector<Column> columns;
  for (int i = from; i <= to; ++i) columns.push_back({word + std::to_string(i)});
  return columns;
}

inline Spec Game::spec(const Config& config) {
  const int seats = config.seats();
  std::vector<Block> blocks = {
      {"hand", 1, card_columns()},
      {"played", config.obs == kCompactObs ? 1 : seats, card_columns()},
      block_of({"trick", kTrickFeatures, seats}),
  };
  for (const Block& block : blocks_of(kTableRow)) blocks.push_back(block);
  blocks.push_back(block_of({"overbid", kOverbidFeatures}));
  blocks.push_back(block_of({"seat", kSeatFeatures, seats}));
  std::vector<std::string> bids = {"phase.bid"};
  if (config.extended()) {
    bids.push_back("extra phase.cannon");
    blocks.push_back(block_of({"extra phase", kExtraPhaseFeatures}));
    blocks.push_back({"known out", 1, card_columns()});
    blocks.push_back(block_of({"pending discards", kPendingFeatures}));
    blocks.push_back(block_of({"extra seat", kExtraSeatFeatures, seats}));
  }
  if (config.phase_embed) blocks.push_back(block_of({"stage", kStageFeatures}));
  if (config.history) {
    blocks.push_back({"history", 10, numbered_columns("seat ", 0, seats - 1)});
    blocks.push_back(block_of({"history leader", kLeaderFeatures, 10}));
  }
  return {.name = "skull_king",
          .title = "Skull King: bid your tricks, then take exactly those",
          .rules_version = 1,
          .blocks = blocks,
          .role_names = {"manager", "worker"},
          .role_features = {bids}};
}

// The whole game first, then by stage of the game and by round.
inline std::vector<Stat> Game::stats(const Config& config) {
  struct Measure {
    Counter counter;
    const char *name, *help;
  };
  static constexpr Measure kMeasures[] = {
      {kKept, "bid_kept", "rounds in which the bid came true"},
      {kOverTricks, "tricks_over", "tricks above the bid, per round"},
      {kUnderTricks, "tricks_under", "tricks missing from the bid, per round"},
      {kPoints, "round_score", "points per round"},
  };
  struct Span {
    std::string name, help;
    int from, to;
    bool detail;
  };
  const int last = config.round_count();
  std::vector<Span> spans = {{"", "", 1, last, false},
                             {"_early", ", rounds 1 to 3", 1, 3, false},
                             {"_mid", ", rounds 4 to 6", 4, 6, false},
                             {"_late", ", rounds 7 to 10", 7, 10, false}};
  for (int r = 1; r <= last; ++r)
    spans.push_back({"_round_" + std::to_string(r), ", round " + std::to_string(r), r, r, true});
  std::vector<Stat> stats;
  for (const Span& span : spans)
    for (const Measure& one : kMeasures) {
      Stat stat{one.name + span.name, {}, {}, one.help + span.help, span.detail};
      for (int r = span.from; r <= min(span.to, last); ++r) {
        stat.numerator.push_back(kEachRound * (r - 1) + one.counter);
        stat.denominator.push_back(kEachRound * (r - 1) + kPlayed);
      }
      if (!stat.denominator.empty()) stats.push_back(stat);
    }
  return stats;
}

inline std::string Game::action_name(const Config&, int action) {
  if (action < kPlayFirst) return "bid " + std::to_string(action);
  if (action == kPlayFirst + kTigressId) return "Tigress as pirate";
  if (action == kPlayTigressEscape) return "Tigress as escape";
  if (action < kRosieFirst) return card_name(action - kPlayFirst);
  if (action < kWagerFirst) {
    const int relative = action - kRosieFirst;
    return relative == 0 ? "lead yourself" : "let seat +" + std::to_string(relative) + " lead";
  }
  if (action < kHarryFirst) return "wager " + std::to_string(10 * (action - kWagerFirst));
  if (action < kGrapeshot) {
    const int change = action - kHarryFirst - 1;
    return change == 0 ? "keep the bid" : change < 0 ? "lower the bid" : "raise the bid";
  }
  return action == kGrapeshot ? "grapeshot" : "cannonball";
}

inline std::vector<Field> Game::config_fields() {
  return {
      SPARRING_CONFIG(num_players, 2, 8, "", "players at the table"),
      SPARRING_CONFIG(deck, 0, 2, "FULL74|STANDARD70|CLASSIC66", "which edition's cards"),
      SPARRING_CONFIG(ghost, 0, 1, "", "two players: a ghost plays the third hand"),
      SPARRING_CONFIG(scoring, 0, 1, "SKULL_KING|RASCAL", "how bids are paid"),
      SPARRING_CONFIG(cannonball, 0, 1, "", "RASCAL only: choose a load after the bids"),
      SPARRING_CONFIG(abilities, 0, 1, "", "winning pirates have powers"),
      SPARRING_CONFIG(dedupe, 0, 1, "", "of identical cards only the lowest id is legal"),
      SPARRING_CONFIG(episode, 0, 1, "GAME|ROUND", "a whole game or one round", true),
      SPARRING_CONFIG(start_round, 0, 10, "", "ROUND: which round; 0 draws it by round_weights",
                      true),
      SPARRING_CONFIG(round_weights, 0, 1e6, "", "ROUND: how often each round is drawn", true),
      SPARRING_CONFIG(rounds, 0, 10, "", "cards per round, up to ten; 0 ends the list"),
      SPARRING_CONFIG(kraken_lead, 0, 1, "WOULD_HAVE_WON|LEFT_OF_KRAKEN",
                      "who leads after a Kraken"),
      SPARRING_CONFIG(follow_rule, 0, 2, "OFFICIAL|FIRST_SUIT|SEED", "what has to be followed"),
      SPARRING_CONFIG(whale_loot, 0, 1, "", "a Loot in a Whale's trick makes an alliance"),
      SPARRING_CONFIG(tigress_bonus, 0, 1, "", "the Tigress as pirate counts in capture bonuses"),
      SPARRING_CONFIG(cap8, 8, 9, "", "largest hand with 8 players"),
      SPARRING_CONFIG(rascal_last, 0, 1, "", "Rascal's wager also after the last trick"),
      SPARRING_CONFIG(open_bids, 0, 1, "", "bids are seen as they are placed"),
      SPARRING_CONFIG(obs, 0, 1, "FULL|COMPACT", "COMPACT: played cards without who played them"),
      SPARRING_CONFIG(phase_embed, 0, 1, "", "append early / mid / late"),
      SPARRING_CONFIG(history, 0, 1, "", "append the round's cards trick by trick"),
      SPARRING_CONFIG(reward, 0, 7,
                      "SCORE_DELTA|SCORE_DELTA_ZS|RANK|WIN|SCORE_FINAL|MANAGER|WORKER|FLAT_SHAPED",
                      "which reward part is paid"),
  };
}

inline std::vector<Field> Game::state_fields() {
  return {
      SPARRING_STATE(hand),
      SPARRING_STATE(played),
      SPARRING_STATE(stock),
      SPARRING_STATE(gone),
      SPARRING_STATE(priv),
      SPARRING_STATE(bonus),
      SPARRING_STATE(total),
      SPARRING_STATE(trick_token),
      SPARRING_STATE(trick_seat),
      SPARRING_STATE(bid),
      SPARRING_STATE(won),
      SPARRING_STATE(sum_bid),
      SPARRING_STATE(sum_err),
      SPARRING_STATE(void_suits),
      SPARRING_STATE(wager),
      SPARRING_STATE(cannon),
      SPARRING_STATE(loot_by),
      SPARRING_STATE(loot_with),
      SPARRING_STATE(ghost_order),
      SPARRING_STATE(phase),
      SPARRING_STATE(actor),
      SPARRING_STATE(leader),
      SPARRING_STATE(first),
      SPARRING_STATE(round),
      SPARRING_STATE(last_round),
      SPARRING_STATE(cards),
      SPARRING_STATE(tricks_done),
      SPARRING_STATE(trick_size),
      SPARRING_STATE(follow),
      SPARRING_STATE(harry),
      SPARRING_STATE(pending),
      SPARRING_STATE(placed),
      SPARRING_STATE(history),
      SPARRING_STATE(history_leader),
      SPARRING_STATE(last_cards),
      SPARRING_STATE(last_bid),
      SPARRING_STATE(last_won),
      SPARRING_STATE(last_loot),
      SPARRING_STATE(last_loot_exact),
      SPARRING_STATE(last_bonus),
      SPARRING_STATE(last_points),
  };
}

// What is wrong with a configuration whose fields are each in range; "" if nothing.
inline std::string Game::invalid(const Config& config) {
  if (config.cannonball && config.scoring != kRascalScoring)
    return "cannonball=1 needs scoring=RASCAL";
  const int count = config.round_count();
  if (count == 0) return "rounds is empty; give 1 to 10 hand sizes";
  for (int r = count; r < 10; ++r)
    if (config.rounds[r]) return "rounds has a 0 before its end";
  if (config.start_round > count)
    return "start_round " + std::to_string(config.start_round) + " is past the last round, " +
           std::to_string(count);
  f32 sum = 0;
  for (int r = 0; r < count; ++r) sum += config.round_weights[r];
  if (!(sum > 0)) return "round_weights are all 0";
  return {};
}

// load_round of section 14.4: round, first leader, a score per player, then for every seat the
// number of its cards and their ids (the ghost's in the order it plays them). One more number tells
// of a start what is left to chance (ToDeal).
inline std::string Game::setup(const Config& config, const std::vector<i64>& data) {
  const int players = config.num_players, seats = config.seats();
  size_t at = 0;
  const auto next = [&]() -> i64 { return at < data.size() ? data[at++] : -1000; };
  const i64 number = next(), leads = next();
  if (number < 1 || number > config.round_count())
    return "round must be 1.." + std::to_string(config.round_count());
  if (leads < 0 || leads >= players)
    return "first_leader must be 0.." + std::to_string(players - 1);
  Game fresh{};
  const int start = static_cast<int>(number);
  fresh.last_round = static_cast<u8>(end_of(config, start));
  fresh.lead_first(config, start, static_cast<int>(leads));
  fresh.open_round(config, start);
  for (int s = 0; s < players; ++s) {
    const i64 points = next();
    if (points < -9999 || points > 9999) return "scores must lie in -9999..9999";
    fresh.total[s] = static_cast<i16>(points);
  }
  for (int s = 0; s < seats; ++s) {
    if (next() != fresh.cards)
      return "every hand of round " + std::to_string(start) + " needs " +
             std::to_string(fresh.cards) + " cards";
    for (int i = 0; i < fresh.cards; ++i) {
      const i64 id = next();
      if (id < 0 || id >= kCards || !fresh.stock.test(static_cast<int>(id)))
        return "card " + std::to_string(id) + " is not in the deck or was dealt twice";
      fresh.stock.clear(static_cast<int>(id));
      fresh.hand[s].set(static_cast<int>(id));
      if (s >= players) fresh.ghost_order[i] = static_cast<u8>(id);
    }
  }
  if (at < data.size()) {
    const i64 left = next();
    if (left < kNothing || left > kCardsAndLeader) return "what is left to chance must be 0..2";
    fresh.last_round = static_cast<u8>(fresh.last_round | left << 4);
  }
  if (at != data.size()) return "too many numbers";
  *this = fresh;
  return {};
}

}  // namespace sparring::skull_king
#endif  // SPARRING_HOST
