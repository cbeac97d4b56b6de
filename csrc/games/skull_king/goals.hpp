// Hindsight for Skull King (section 19): rounds relabeled as if the tricks won had been bid.
#pragma once

#include "games/skull_king.hpp"

namespace sparring::skull_king {

// The goal result of one seat: its finished round in 27 bits, not 0 because a round has cards. A
// seat that may change its bid (abilities) has none.
struct RoundResult {
  int cards;       // 4 bits
  int bid;         // 4 bits
  int tricks;      // 10 bits: bit t: the seat won trick t
  int bonus;       // 6 bits, in tens
  int loot_exact;  // 2 bits: alliances whose partner made its bid
  bool cannon;

  SPARRING_FN static RoundResult of(u32 packed) {
    const auto bits = [packed](int first, int count) {
      return static_cast<int>(packed >> first & ((1u << count) - 1));
    };
    return {bits(0, 4), bits(4, 4), bits(8, 10), bits(18, 6), bits(24, 2), bits(26, 1) != 0};
  }
  SPARRING_FN u32 packed() const {
    return static_cast<u32>(cards | bid << 4 | tricks << 8 | bonus << 18 | loot_exact << 24 |
                            int{cannon} << 26);
  }
  SPARRING_FN int won() const { return popcount(static_cast<u64>(tricks)); }
};

// Which tricks of the round a seat won, by trick.
SPARRING_FN inline int Game::tricks_of(int seat) const {
  int tricks = 0;
  SPARRING_FOR (int t = 0; t < tricks_done; ++t)
    if ((winners[t / 2] >> (t % 2 * 4) & 15) == seat + 1) tricks |= 1 << t;
  return tricks;
}

SPARRING_FN inline u32 Game::goal_result_of(const Config& config, int seat, int loot_exact) const {
  const RoundResult finished{cards,      bid[seat],        tricks_of(seat), bonus[seat] / 10,
                             loot_exact, cannon[seat] != 0};
  // In a round that was set up or loaded half played, the winners of the first tricks are unknown.
  const bool complete = finished.won() == won[seat];
  return config.abilities || !complete ? 0 : finished.packed();
}

// Offsets of the bytes of `observe_table` that depend on the observer's bid.
struct GoalBytes {
  int table;  // follow, phase, round, progress and own bid
  int seat;   // the observer's row of the seats
  int over;   // the sum of bids, followed by the tricks that are still needed

  SPARRING_FN static GoalBytes of(const Config& config) {
    const int table = Game::table_at(config), seat = table + kTableBytes;
    return {table, seat, seat + kSeatBytes * config.seats() + Game::later_bytes(config)};
  }
};

SPARRING_FN inline GoalDecision Game::goal_decision(const Config& config, const u8* obs) {
  const GoalBytes at = GoalBytes::of(config);
  const u8* table = obs + at.table;
  int number = 0;
  SPARRING_FOR (int r = 0; r < 10; ++r)
    if (table[byte_of(kTableRow, "round") + r]) number = r;
  const bool bids = table[byte_of(kTableRow, "phase", "bid")] != 0;
  const u8* extension = obs + at.seat + kSeatBytes * config.seats();
  const bool loads = config.extended() && extension[byte_of(kExtraPhaseFeatures, "cannon")] != 0;
  return {.role = bids || loads ? 0 : 1,
          .stage = number * kStages + table[byte_of(kTableRow, "progress", "tricks done")],
          .sets_goal = bids};
}

SPARRING_FN inline int Game::desired_goal(u32 goal_result) {
  return RoundResult::of(goal_result).bid;
}
SPARRING_FN inline int Game::achieved_goal(u32 goal_result) {
  return RoundResult::of(goal_result).won();
}

SPARRING_FN inline void Game::set_goal(const Config& config, u8* obs, int goal) {
  const GoalBytes at = GoalBytes::of(config);
  u8* bids = obs + at.table + byte_of(kTableRow, "own bid");
  u8 *seat = obs + at.seat, *over = obs + at.over;
  const int before = seat[seat_byte("bid")], took = seat[seat_byte("won")];
  SPARRING_FOR (int b = 0; b <= 10; ++b) bids[b] = b == goal;
  seat[seat_byte("bid")] = static_cast<u8>(goal);
  seat[seat_byte("exact")] = took == goal;
  seat[seat_byte("over")] = took > goal;
  over[0] = static_cast<u8>(over[0] + goal - before);
  over[1] = static_cast<u8>(goal - took);
}

// The reward parts that follow from a goal result; the same as `step` gives.
SPARRING_FN inline f32 Game::goal_reward(const Config& config, const f32* weight, int role,
                                         u32 packed, int goal, int from, int to) {
  const RoundResult round = RoundResult::of(packed);
  const auto weight_of = [&](int part) { return weight[part * kRoles + role]; };
  const int first = from % kStages, end = to - (from - first);
  f32 reward = 0;
  int took = 0;
  SPARRING_FOR (int t = 0; t < min(round.cards, end); ++t) {
    const bool wins = round.tricks >> t & 1;
    if (t >= first && weight_of(kWorker) != 0)
      reward += weight_of(kWorker) * worker_trick(goal - took, round.cards - t - 1, wins);
    took += wins;
  }
  if (end <= round.cards) return reward;
  const int error = absolute(goal - round.won());
  if (weight_of(kWorker) != 0) reward += weight_of(kWorker) * worker_round(error);
  if (weight_of(kManager) != 0)
    reward += weight_of(kManager) * manager_round(error, goal, round.cards);
  if (weight_of(kScoreDelta) != 0) {
    const int points = round_points(config, goal, round.won(), round.cards, 10 * round.bonus,
                                    20 * round.loot_exact, 0, round.cannon);
    reward += weight_of(kScoreDelta) * (static_cast<f32>(points) / 100.0f);
  }
  return reward;
}

#if SPARRING_HOST
// Why a configuration does not support hindsight; "" if it does.

inline std::string Game::hindsight_unsupported_reason(const Config& config) {
  if (config.abilities) return "abilities=1: pirates change bids and add wagers; set abilities=0";
  return {};
}
#endif

}  // namespace sparring::skull_king
