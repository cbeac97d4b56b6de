// State of a pool: the shared setting, the environments, their extra state and memory. A saved pool
// consists of these bytes. Host only.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/pool_arrays.hpp"
#include "core/rejected_action.hpp"
#include "core/validation.hpp"

namespace sparring {

// Addresses of a state's bytes. A GPU pool plays the same games from copies of them.
struct StateBytes {
  const u8* envs;
  i64 env_bytes, game_bytes;  // an Env begins with its game
  u8* config;
  const u8* setting;
  i64 setting_bytes;
  i64 starts_offset;  // of the setting's `Starts`; a GPU pool replaces the pointers in its copy
};

// Interface of a pool's state, the same for every game.
class AnyPoolState {
 public:
  AnyPoolState(PoolArrays& arrays, int extra_bytes)
      : extra(arrays.counted<u8>(arrays.games() * extra_bytes)),
        memory(arrays.counted<u8>(arrays.games() * arrays.shape().seats * arrays.memory_bytes())),
        extra_bytes_(extra_bytes) {}
  virtual ~AnyPoolState() = default;

  virtual StateBytes bytes() const = 0;
  virtual u64 seed() const = 0;
  // Sets the seed and clears all environments: a game may keep values from one episode to the next.
  virtual void reseed(u64 seed) = 0;
  // Returns the error of the first invalid of `count` environments, "" if all are valid. They may
  // come from elsewhere, such as a GPU.
  virtual std::string check(i64 count, const u8* envs, const u8* extras) const = 0;
  virtual std::string audit() const = 0;
  virtual int set_lineups(const std::vector<f64>& weights, const std::vector<i16>& players,
                          const std::vector<u8>& shuffle) = 0;
  // Fills the mixes, one after the other, with sizes[i] players each.
  virtual void set_mixes(const std::vector<int>& sizes, const std::vector<f64>& weights,
                         const std::vector<i16>& players) = 0;
  // Sets the positions in which episodes begin: cumulative weights, the initial position's first;
  // the bytes of the games; the row of `extras` of each. Returns the error of the first invalid
  // position, "" if all are valid; after an error nothing has changed.
  virtual std::string set_starts(std::vector<f64> cumulative_weight, const u8* games,
                                 std::vector<i32> extra_index, std::vector<u8> extras) = 0;
  // Number of seats that each policy holds in the running games, for policy ids below `policies`.
  virtual std::vector<i64> seated(int policies) const = 0;
  virtual void set_weights(const std::vector<f32>& weights) = 0;
  virtual std::vector<f32> weights() const = 0;

  int extra_bytes() const { return extra_bytes_; }

  Array<u8> extra;
  // [games, seats, memory_bytes]: memory of recurrent policies, cleared when an episode begins.
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
        envs(arrays.counted<Env<G>>(arrays.games())),
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
    return {.envs = reinterpret_cast<const u8*>(envs.data()),
            .env_bytes = sizeof(Env<G>),
            .game_bytes = sizeof(G),
            .config = reinterpret_cast<u8*>(&setting->config),
            .setting = shared,
            .setting_bytes = sizeof(SettingStorage<G>),
            .starts_offset = reinterpret_cast<const u8*>(&setting->starts) - shared};
  }
  u64 seed() const override { return setting->seed; }

  void reseed(u64 seed) override {
    setting->seed = seed;
    std::memset(static_cast<void*>(envs.data()), 0,
                static_cast<size_t>(envs.size()) * sizeof(Env<G>));
  }

  std::string check(i64 count, const u8* env_bytes, const u8* extras) const override {
    Env<G> env;
    for (i64 game = 0; game < count; ++game) {
      std::memcpy(static_cast<void*>(&env), env_bytes + game * i64{sizeof env}, sizeof env);
      const u8* env_extra = extras + game * extra_bytes();
      if (std::string error = check_env(env, config(), env_extra); !error.empty())
        return "game " + std::to_string(global(game)) + ": " + error;
    }
    return {};
  }

  // Loads saved bytes, as many as this state has. Returns the error of `check`, "" if there is
  // none; after an error nothing has changed.
  std::string load(u64 seed, const u8* env_bytes, const u8* extras, const u8* memories) {
    if (std::string error = check(envs.size(), env_bytes, extras); !error.empty()) return error;
    setting->seed = seed;
    copy_over(envs, env_bytes);
    copy_over(extra, extras);
    copy_over(memory, memories);
    return {};
  }

  std::string audit() const override {
    if constexpr (requires(const G& game) { game.audit(setting->config); }) {
      for (i64 game = 0; game < envs.size(); ++game)
        if (const char* error = envs[game].game.audit(config()))
          return "game " + std::to_string(global(game)) + ": " + error;
    }
    return {};
  }

  int set_lineups(const std::vector<f64>& weights, const std::vector<i16>& players,
                  const std::vector<u8>& shuffle) override {
    const size_t each = static_cast<size_t>(seats());
    f64 total = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      Lineup<G>& lineup = setting->lineup_storage[i];
      lineup.cumulative_weight = total += weights[i];
      lineup.shuffle = shuffle[i] != 0;
      for (size_t s = 0; s < each; ++s) lineup.player[s] = players[i * each + s];
    }
    return setting->lineups = static_cast<int>(weights.size());
  }

  void set_mixes(const std::vector<int>& sizes, const std::vector<f64>& weights,
                 const std::vector<i16>& players) override {
    size_t next = 0;
    for (size_t m = 0; m < sizes.size(); ++m) {
      Mix& mix = setting->mix_storage[m];
      f64 total = 0;
      mix.players = sizes[m];
      for (int i = 0; i < sizes[m]; ++i, ++next) {
        mix.cumulative_weight[i] = total += weights[next];
        mix.player[i] = players[next];
      }
    }
  }

  std::string set_starts(std::vector<f64> cumulative_weight, const u8* games,
                         std::vector<i32> extra_index, std::vector<u8> extras) override {
    std::vector<G> positions(extra_index.size());
    if (!positions.empty())
      std::memcpy(static_cast<void*>(positions.data()), games, positions.size() * sizeof(G));
    for (size_t i = 0; i < positions.size(); ++i) {
      const u8* position_extra =
          extras.data() + static_cast<size_t>(extra_index[i]) * size_t(extra_bytes());
      if (std::string error = check_position(positions[i], config(), position_extra);
          !error.empty())
        return std::to_string(i) + ": " + error;
    }
    start_weight_ = std::move(cumulative_weight);
    start_games_ = std::move(positions);
    start_extra_index_ = std::move(extra_index);
    start_extras_ = std::move(extras);
    setting->starts = {start_weight_.data(), start_games_.data(), start_extra_index_.data(),
                       start_extras_.data(), static_cast<i64>(start_games_.size())};
    return {};
  }

  std::vector<i64> seated(int policies) const override {
    std::vector<i64> counts(static_cast<size_t>(policies), 0);
    for (i64 game = 0; game < envs.size(); ++game)
      for (int s = 0; s < seats(); ++s)
        if (const int player = envs[game].player[s]; player >= 0 && player < policies)
          ++counts[static_cast<size_t>(player)];
    return counts;
  }

  void set_weights(const std::vector<f32>& weights) override {
    sparring::set_weights<G>(*setting, weights);
  }

  std::vector<f32> weights() const override {
    const Counts counts = counts_of<G>(config());
    return {setting->weight, setting->weight + counts.parts * counts.roles};
  }

  const std::unique_ptr<SettingStorage<G>> setting;
  const Array<Env<G>> envs;

 private:
  int seats() const { return setting->shape.seats; }

  template <class T>
  static void copy_over(const Array<T>& array, const u8* bytes) {
    if (array.size())
      std::memcpy(static_cast<void*>(array.data()), bytes, size_t(array.size()) * sizeof(T));
  }

  int memory_bytes_;
  std::vector<f64> start_weight_;
  std::vector<G> start_games_;
  std::vector<i32> start_extra_index_;
  std::vector<u8> start_extras_;
};

}  // namespace sparring
