// The arrays that a pool writes for its callers, allocated once and never moved. Host only.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "core/array.hpp"
#include "core/env.hpp"
#include "core/error.hpp"

namespace sparring {

struct PoolOptions {
  i64 games = 1;
  u64 seed = 0;
  u32 first_game = 0;
  int threads = 1;
  int groups = 1;
  bool skip_forced = false;
  bool observe = true;   // write observations and byte masks
  int memory_bytes = 0;  // per (game, seat), appended to the observation in every row
  bool every_game = false;
  u32 opening_plies = 0;
  bool goal_results = false;  // record the results of goals
};

// Results of a step. Arrays "per row" have games * rows entries.
class PoolArrays {
 public:
  PoolArrays(const PoolOptions& options, Shape shape, int rows, int roles)
      : options_(options), shape_(shape), rows_(rows), roles_(roles) {
    // Games are numbered by i32; with so many all sizes fit into 64 bits.
    if (options.games > std::numeric_limits<i32>::max())
      throw ConfigError("a pool holds at most 2147483647 games, not " +
                        std::to_string(options.games));
    const i64 n = options.games, r = n * rows;
    const i64 seats = shape.seats;
    seat = counted<i8>(r);
    role = counted<i8>(r);
    policy = counted<i16>(r);
    if (options.observe) {
      obs = counted<u8>(r * row_bytes());
      mask = counted<u8>(r * shape.actions);
      final_obs = counted<u8>(n * seats * row_bytes());
      final_mask = counted<u8>(n * seats * shape.actions);
    }
    reward = counted<f32>(n * seats * roles);
    skipped = counted<u16>(n * seats);
    if (options.goal_results) goal_result = counted<u32>(n * seats);
    terminated = counted<u8>(n);
    truncated = counted<u8>(n);
    final_game = counted<i32>(n);
    final_score = counted<f32>(n * seats);
    final_policy = counted<i16>(n * seats);
    final_length = counted<i32>(n);
    final_reason = counted<u8>(n);
    final_moves = counted<u64>(n);
    left_out = counted<u8>(n);
    final_count.assign(static_cast<size_t>(options.groups), 0);
  }

  const PoolOptions& options() const { return options_; }
  const Shape& shape() const { return shape_; }
  int rows() const { return rows_; }
  int roles() const { return roles_; }
  int memory_bytes() const { return options_.memory_bytes; }
  int row_bytes() const { return shape_.obs_bytes + options_.memory_bytes; }
  i64 games() const { return options_.games; }
  i64 bytes() const { return bytes_; }  // of all arrays

  i64 group_begin(int group) const { return options_.games * group / options_.groups; }
  i64 group_end(int group) const { return options_.games * (group + 1) / options_.groups; }

  // Allocates an array that `bytes` includes.
  template <class T>
  Array<T> counted(i64 count) {
    bytes_ += count * i64{sizeof(T)};
    return Array<T>(count);
  }

  // Per row.
  Array<u8> obs, mask;
  Array<i8> seat, role;
  Array<i16> policy;
  // Per game.
  Array<f32> reward;
  Array<u16> skipped;
  Array<u32> goal_result;
  Array<u8> terminated, truncated;
  // Games that just ended, compacted to the front of their slot in game order.
  Array<u8> final_obs, final_mask;
  Array<i32> final_game, final_length;
  Array<f32> final_score;
  Array<i16> final_policy;
  Array<u8> final_reason;
  Array<u64> final_moves;
  std::vector<i64> final_count;
  Array<u8> left_out;  // [games], nonzero: not counted in statistics

 protected:
  // Clears rewards and ends, as after a reset.
  void clear_results(i64 from, i64 to) {
    const i64 seats = shape_.seats, rewards = seats * roles_;
    std::fill(&reward[from * rewards], &reward[0] + to * rewards, 0.0f);
    std::fill(&skipped[from * seats], &skipped[0] + to * seats, u16{0});
    if (goal_result.size())
      std::fill(&goal_result[from * seats], &goal_result[0] + to * seats, u32{0});
    std::fill(&terminated[from], &terminated[0] + to, u8{0});
    std::fill(&truncated[from], &truncated[0] + to, u8{0});
  }

 private:
  i64 bytes_ = 0;
  PoolOptions options_;
  Shape shape_;
  int rows_, roles_;
};

// Sums of a game's counters. Every chunk of games has its own sums in its own cache lines, so that
// threads need no atomics; sums of integers do not depend on the division into chunks.
class PoolCounters {
 public:
  explicit PoolCounters(int counters) : counters_(counters), each_((counters + 7) / 8 * 8) {}

  void make_chunks(i64 chunks) { sums_ = Array<i64>(chunks * each_); }

  // Counts the seats of a player, or none.
  void count_for(bool on, i16 player) {
    on_ = on;
    player_ = player;
  }

  Counting of_chunk(i64 chunk) const {
    if (counters_ == 0 || !on_) return {};
    return {&sums_[chunk * each_], player_};
  }

  // Since the last `clear`, by counter.
  std::vector<i64> sums() const {
    std::vector<i64> totals(static_cast<size_t>(counters_), 0);
    for (i64 i = 0; i < sums_.size(); ++i)
      if (i % each_ < counters_) totals[static_cast<size_t>(i % each_)] += sums_[i];
    return totals;
  }

  void clear() { std::fill(sums_.data(), sums_.data() + sums_.size(), 0); }

 private:
  i64 counters_, each_;
  Array<i64> sums_;  // [chunks, each_]
  bool on_ = true;
  i16 player_ = 0;
};

}  // namespace sparring
