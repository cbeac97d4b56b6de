// All that the games of a pool go on from: what they share, their tables, the bytes beside them.
// Saving a pool is writing these bytes. Host only.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/pool_arrays.hpp"
#include "core/rejected_action.hpp"
#include "core/validation.hpp"

namespace sparring {

// Where the bytes of a state lie. A GPU pool plays the same games from copies of them.
struct StateBytes {
  const u8* tables;
  i64 table_bytes, game_bytes;  // a table begins with its game
  u8* config;
  const u8* setting;
  i64 setting_bytes;
  i64 starts_offset;  // of the setting's `Starts`, whose pointers a GPU pool replaces by its own
};

// What a state looks like from outside, whatever the game.
class AnyPoolState {
 public:
  AnyPoolState(PoolArrays& arrays, int extra_bytes)
      : extra(arrays.counted<u8>(arrays.games() * extra_bytes)),
        memory(arrays.counted<u8>(arrays.games() * arrays.shape().seats * arrays.memory_bytes())),
        extra_bytes_(extra_bytes) {}
  virtual ~AnyPoolState() = default;

  virtual StateBytes bytes() const = 0;
  virtual u64 seed() const = 0;
  // Forgets all tables: a game may carry something from one episode to the next.
  virtual void reseed(u64 seed) = 0;
  // What is wrong with one of `count` tables and the bytes beside them, "" if nothing. They need
  // not be those of this pool: a GPU has its own.
  virtual std::string check(i64 count, const u8* tables, const u8* extras) const = 0;
  virtual std::string audit() const = 0;
  virtual int set_lineups(const std::vector<f64>& weights, const std::vector<i16>& players,
                          const std::vector<u8>& shuffle) = 0;
  // Fills the mixes, one after the other, with so many players each.
  virtual void set_mixes(const std::vector<int>& sizes, const std::vector<f64>& weights,
                         const std::vector<i16>& players) = 0;
  // Positions in which games begin from now on: cumulative weights, the usual start's first; the
  // bytes of the games; for each the line of `extras` that goes with it. Returns what is wrong with
  // one of them; then nothing has changed.
  virtual std::string set_starts(std::vector<f64> up_to, const u8* games,
                                 std::vector<i32> extra_index, std::vector<u8> extras) = 0;
  // Seats of the running games, by policies below `policies`.
  virtual std::vector<i64> seated(int policies) const = 0;
  virtual void set_weights(const std::vector<f32>& weights) = 0;
  virtual std::vector<f32> weights() const = 0;

  int extra_bytes() const { return extra_bytes_; }

  Array<u8> extra;
  // [games, seats, memory_bytes]: outside the games, cleared when one begins anew.
  Array<u8> memory;

 private:
  int extra_bytes_;
};

template <Game G>
class PoolState final : public AnyPoolState {
 public:
  using Config = typename G::Config;

  PoolState(PoolArrays& arrays, const Config& config)
      : AnyPoolState(arrays, sparring::extra_bytes<G>(config)),
        setting(std::make_unique<SettingStorage<G>>()),
        tables(arrays.counted<Table<G>>(arrays.games())),
        memory_bytes_(arrays.memory_bytes()) {
    const PoolOptions& options = arrays.options();
    setting->lineup = setting->lineup_storage;
    setting->mix = setting->mix_storage;
    setting->config = config;
    setting->shape = arrays.shape();
    setting->seed = options.seed;
    setting->first_game = options.first_game;
    setting->skip_forced = options.skip_forced;
    setting->every_game = options.every_game;
    setting->opening_plies = options.opening_plies;
    set_lineups({1.0}, std::vector<i16>(static_cast<size_t>(seats()), 0), {0});
  }

  const Config& config() const { return setting->config; }
  u32 global(i64 game) const { return setting->first_game + static_cast<u32>(game); }
  u8* extra_of(i64 game) const { return extra.data() + game * extra_bytes(); }
  u8* memory_of(i64 game, int seat) const {
    return memory.data() + (game * seats() + seat) * memory_bytes_;
  }

  StateBytes bytes() const override {
    u8* shared = reinterpret_cast<u8*>(setting.get());
    return {.tables = reinterpret_cast<const u8*>(tables.data()),
            .table_bytes = sizeof(Table<G>),
            .game_bytes = sizeof(G),
            .config = reinterpret_cast<u8*>(&setting->config),
            .setting = shared,
            .setting_bytes = sizeof(SettingStorage<G>),
            .starts_offset = reinterpret_cast<const u8*>(&setting->starts) - shared};
  }
  u64 seed() const override { return setting->seed; }

  void reseed(u64 seed) override {
    setting->seed = seed;
    std::memset(static_cast<void*>(tables.data()), 0,
                static_cast<size_t>(tables.size()) * sizeof(Table<G>));
  }

  std::string check(i64 count, const u8* given, const u8* extras) const override {
    Table<G> table;
    for (i64 game = 0; game < count; ++game) {
      std::memcpy(static_cast<void*>(&table), given + game * i64{sizeof table}, sizeof table);
      const u8* with = extras + game * extra_bytes();
      if (std::string wrong = check_table(table, config(), with); !wrong.empty())
        return "game " + std::to_string(global(game)) + ": " + wrong;
    }
    return {};
  }

  // Takes all of these, which come from outside and are as long as the own arrays. What is wrong
  // with one of them, as `check` says it; then nothing has changed.
  std::string load(u64 seed, const u8* given, const u8* extras, const u8* memories) {
    if (std::string wrong = check(tables.size(), given, extras); !wrong.empty()) return wrong;
    setting->seed = seed;
    copy_over(tables, given);
    copy_over(extra, extras);
    copy_over(memory, memories);
    return {};
  }

  std::string audit() const override {
    if constexpr (requires(const G& game) { game.audit(setting->config); }) {
      for (i64 game = 0; game < tables.size(); ++game)
        if (const char* broken = tables[game].game.audit(config()))
          return "game " + std::to_string(global(game)) + ": " + broken;
    }
    return {};
  }

  int set_lineups(const std::vector<f64>& weights, const std::vector<i16>& players,
                  const std::vector<u8>& shuffle) override {
    const size_t each = static_cast<size_t>(seats());
    f64 total = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      Lineup<G>& lineup = setting->lineup_storage[i];
      lineup.up_to = total += weights[i];
      lineup.shuffle = shuffle[i] != 0;
      for (size_t s = 0; s < each; ++s) lineup.player[s] = players[i * each + s];
    }
    return setting->lineups = static_cast<int>(weights.size());
  }

  void set_mixes(const std::vector<int>& sizes, const std::vector<f64>& weights,
                 const std::vector<i16>& players) override {
    size_t from = 0;
    for (size_t p = 0; p < sizes.size(); ++p) {
      Mix& mix = setting->mix_storage[p];
      f64 total = 0;
      mix.players = sizes[p];
      for (int i = 0; i < sizes[p]; ++i, ++from) {
        mix.up_to[i] = total += weights[from];
        mix.player[i] = players[from];
      }
    }
  }

  std::string set_starts(std::vector<f64> up_to, const u8* games, std::vector<i32> extra_index,
                         std::vector<u8> extras) override {
    std::vector<G> found(extra_index.size());
    if (!found.empty())
      std::memcpy(static_cast<void*>(found.data()), games, found.size() * sizeof(G));
    for (size_t i = 0; i < found.size(); ++i) {
      const u8* with = extras.data() + static_cast<size_t>(extra_index[i]) * size_t(extra_bytes());
      if (std::string wrong = check_position(found[i], config(), with); !wrong.empty())
        return std::to_string(i) + ": " + wrong;
    }
    start_up_to_ = std::move(up_to);
    start_games_ = std::move(found);
    start_extra_index_ = std::move(extra_index);
    start_extras_ = std::move(extras);
    setting->starts = {start_up_to_.data(), start_games_.data(), start_extra_index_.data(),
                       start_extras_.data(), static_cast<i64>(start_games_.size())};
    return {};
  }

  std::vector<i64> seated(int policies) const override {
    std::vector<i64> found(static_cast<size_t>(policies), 0);
    for (i64 game = 0; game < tables.size(); ++game)
      for (int s = 0; s < seats(); ++s)
        if (const int player = tables[game].player[s]; player >= 0 && player < policies)
          ++found[static_cast<size_t>(player)];
    return found;
  }

  void set_weights(const std::vector<f32>& weights) override {
    sparring::set_weights<G>(*setting, weights);
  }

  std::vector<f32> weights() const override {
    return {std::begin(setting->weight), std::end(setting->weight)};
  }

  const std::unique_ptr<SettingStorage<G>> setting;
  const Array<Table<G>> tables;

 private:
  int seats() const { return setting->shape.seats; }

  template <class T>
  static void copy_over(const Array<T>& array, const u8* bytes) {
    if (array.size())
      std::memcpy(static_cast<void*>(array.data()), bytes, size_t(array.size()) * sizeof(T));
  }

  int memory_bytes_;
  std::vector<f64> start_up_to_;
  std::vector<G> start_games_;
  std::vector<i32> start_extra_index_;
  std::vector<u8> start_extras_;
};

}  // namespace sparring
