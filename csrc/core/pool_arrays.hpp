// The arrays that a pool writes and everybody reads: made once, never moved. Host only.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/table.hpp"

namespace sparring {

// Zeroed memory whose untouched pages cost nothing.
template <class T>
class Array {
 public:
  Array() = default;
  explicit Array(i64 count)
      : data_(static_cast<T*>(std::calloc(static_cast<size_t>(most<i64>(count, 1)), sizeof(T)))),
        count_(count) {
    if (!data_) throw std::bad_alloc();
  }
  T* data() const { return data_.get(); }
  i64 size() const { return count_; }
  T& operator[](i64 i) const { return data_.get()[i]; }

 private:
  struct Free {
    void operator()(T* data) const { std::free(data); }
  };
  std::unique_ptr<T[], Free> data_;
  i64 count_ = 0;
};

struct PoolOptions {
  i64 games = 1;
  u64 seed = 0;
  u32 first_game = 0;
  int threads = 1;
  int slots = 1;
  bool skip_forced = false;
  bool observe = true;   // write observations and byte masks
  int memory_bytes = 0;  // per (game, seat), behind the observation in every row
  bool every_game = false;
  u32 opening_plies = 0;
  bool records = false;  // keep what came of goals
};

// What a step of the games brought, and how large it all is. R = games * rows per game.
class PoolArrays {
 public:
  PoolArrays(const PoolOptions& options, Shape shape, int rows, int roles)
      : options_(options), shape_(shape), rows_(rows), roles_(roles) {
    // More could not be numbered, and all sizes below this fit into 64 bits.
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
    if (options.records) record = counted<u32>(n * seats);
    terminated = counted<u8>(n);
    truncated = counted<u8>(n);
    final_game = counted<i32>(n);
    final_score = counted<f32>(n * seats);
    final_policy = counted<i16>(n * seats);
    final_length = counted<i32>(n);
    final_reason = counted<u8>(n);
    final_moves = counted<u64>(n);
    left_out = counted<u8>(n);
    final_count.assign(static_cast<size_t>(options.slots), 0);
  }

  const PoolOptions& options() const { return options_; }
  const Shape& shape() const { return shape_; }
  int rows() const { return rows_; }
  int roles() const { return roles_; }
  int memory_bytes() const { return options_.memory_bytes; }
  int row_bytes() const { return shape_.obs_bytes + options_.memory_bytes; }
  i64 games() const { return options_.games; }
  i64 bytes() const { return bytes_; }  // of all arrays, once every page was touched

  i64 slot_begin(int slot) const { return options_.games * slot / options_.slots; }
  i64 slot_end(int slot) const { return options_.games * (slot + 1) / options_.slots; }

  // Makes an array that `bytes` knows of.
  template <class T>
  Array<T> counted(i64 count) {
    bytes_ += count * i64{sizeof(T)};
    return Array<T>(count);
  }

  // Decisions per row.
  Array<u8> obs, mask;
  Array<i8> seat, role;
  Array<i16> policy;
  // Per game.
  Array<f32> reward;
  Array<u16> skipped;
  Array<u32> record;
  Array<u8> terminated, truncated;
  // Games that just ended, compacted to the front of their slot in game order.
  Array<u8> final_obs, final_mask;
  Array<i32> final_game, final_length;
  Array<f32> final_score;
  Array<i16> final_policy;
  Array<u8> final_reason;
  Array<u64> final_moves;
  std::vector<i64> final_count;
  Array<u8> left_out;  // by game, not 0: nothing in it is counted

 protected:
  // A fresh start has been paid nothing and has ended nothing.
  void clear_results(i64 from, i64 to) {
    const i64 seats = shape_.seats, paid = seats * roles_;
    std::fill(&reward[from * paid], &reward[0] + to * paid, 0.0f);
    std::fill(&skipped[from * seats], &skipped[0] + to * seats, u16{0});
    if (record.size()) std::fill(&record[from * seats], &record[0] + to * seats, u32{0});
    std::fill(&terminated[from], &terminated[0] + to, u8{0});
    std::fill(&truncated[from], &truncated[0] + to, u8{0});
  }

 private:
  i64 bytes_ = 0;
  PoolOptions options_;
  Shape shape_;
  int rows_, roles_;
};

// Sums of a game's counters. Every chunk of games adds up its own, a few cache lines, so that no
// thread waits for another and nothing is added atomically; sums of whole numbers do not depend on
// the chunks.
class PoolCounters {
 public:
  explicit PoolCounters(int counters) : counters_(counters), each_((counters + 7) / 8 * 8) {}

  void make_chunks(i64 chunks) { sums_ = Array<i64>(chunks * each_); }

  // Counts for the seats of a player, or for nobody's.
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
    std::vector<i64> found(static_cast<size_t>(counters_), 0);
    for (i64 at = 0; at < sums_.size(); ++at)
      if (at % each_ < counters_) found[static_cast<size_t>(at % each_)] += sums_[at];
    return found;
  }

  void clear() { std::fill(sums_.data(), sums_.data() + sums_.size(), 0); }

 private:
  i64 counters_, each_;
  Array<i64> sums_;  // [chunks, each_]
  bool on_ = true;
  i16 player_ = 0;
};

}  // namespace sparring
