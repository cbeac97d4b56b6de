// The list of games, each behind one virtual interface that the bindings use. Host only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/describe_goals.hpp"
#include "core/pool.hpp"
#include "core/state.hpp"
#include "search/search.hpp"
#include "search/worlds.hpp"

namespace sparring {

class AnyGame {
 public:
  virtual ~AnyGame() = default;
  virtual std::vector<u8> default_config() const = 0;
  virtual std::vector<Field> config_fields() const = 0;
  virtual std::vector<Field> state_fields() const = 0;
  virtual std::string invalid(const u8* config) const = 0;
  virtual Spec spec(const u8* config) const = 0;
  virtual Shape shape(const u8* config) const = 0;
  virtual std::string action_name(const u8* config, int action) const = 0;
  virtual std::vector<f32> default_weights(const u8* config) const = 0;
  virtual std::vector<std::string> parts() const = 0;
  virtual std::vector<std::string> bots() const = 0;
  virtual std::vector<std::string> ends() const = 0;
  virtual std::vector<std::string> counters() const = 0;
  virtual std::vector<Stat> stats(const u8* config) const = 0;
  virtual int rows() const = 0;
  virtual int roles() const = 0;
  virtual int box() const = 0;
  virtual int legal_words() const = 0;
  virtual bool hides() const = 0;
  virtual int belief_size(const u8* config) const = 0;
  // Draws `worlds` games [worlds, game_bytes()] for a seat of an environment; see
  // core/resample.hpp.
  virtual void draw_worlds(const u8* config, const u8* env, u64 seed, u32 game, int seat,
                           const f32* belief, int worlds, u8* out) const = 0;
  virtual std::string win_part() const = 0;  // the part that pays wins and losses; "": none
  // Bytes of a game, and the first byte that its `bounds` do not declare (game_bytes if none).
  virtual i64 game_bytes() const = 0;
  virtual i64 first_undeclared(const u8* config) const = 0;
  // Null if the game has none.
  virtual const AnyGoals* goals() const = 0;
  virtual std::unique_ptr<AnyPool> make_pool(const u8* config, const PoolOptions&) const = 0;
  virtual std::unique_ptr<AnyState> make_state(const u8* config, u64 seed, u32 game,
                                               bool skip_forced,
                                               const std::vector<f32>& weights) const = 0;
  virtual std::unique_ptr<AnySearch> make_search(const u8* config, const SearchOptions& options,
                                                 i64 trees, u64 seed, int threads) const = 0;
  // Bytes of one tree.
  virtual i64 search_bytes(const u8* config, const SearchOptions& options) const = 0;
  // For games that hide something and have discrete actions; null for others.
  virtual std::unique_ptr<AnySearch> make_worlds(const u8* config, const WorldsOptions& options,
                                                 i64 roots, u64 seed, int threads) const = 0;
  // Bytes of one of so many roots; 0 for other games.
  virtual i64 worlds_bytes(const u8* config, const WorldsOptions& options, i64 roots) const = 0;
};

inline std::vector<std::unique_ptr<AnyGame>>& registered_games() {
  static std::vector<std::unique_ptr<AnyGame>> games;
  return games;
}

template <Game G>
class Registered : public AnyGame {
 public:
  using Config = typename G::Config;

  std::vector<u8> default_config() const override {
    const Config config{};
    const u8* raw = reinterpret_cast<const u8*>(&config);
    return {raw, raw + sizeof config};
  }
  std::vector<Field> config_fields() const override {
    if constexpr (requires { G::config_fields(); })
      return G::config_fields();
    else
      return {};
  }
  std::vector<Field> state_fields() const override {
    if constexpr (requires { G::state_fields(); })
      return G::state_fields();
    else
      return {};
  }
  std::string invalid(const u8* config) const override {
    if constexpr (requires { G::invalid(read(config)); }) {
      if (std::string error = G::invalid(read(config)); !error.empty()) return error;
    }
    const int bytes = padded(bytes_of(G::spec(read(config)).blocks));
    if (bytes != G::shape(read(config)).obs_bytes)
      return "the blocks fill " + std::to_string(bytes) + " bytes, shape() says " +
             std::to_string(G::shape(read(config)).obs_bytes);
    return {};
  }
  Spec spec(const u8* config) const override { return G::spec(read(config)); }
  Shape shape(const u8* config) const override { return G::shape(read(config)); }
  std::string action_name(const u8* config, int action) const override {
    if constexpr (requires { G::action_name(read(config), action); })
      return G::action_name(read(config), action);
    else
      return std::to_string(action);
  }
  // The first part has weight 1, the others 0, unless the game declares default weights.
  std::vector<f32> default_weights(const u8* config) const override {
    std::vector<f32> weights;
    for (int part = 0; part < kPartCount<G>; ++part) {
      f32 weight = part == 0;
      if constexpr (requires { G::default_weight(read(config), part); })
        weight = G::default_weight(read(config), part);
      weights.insert(weights.end(), G::kRoles, weight);
    }
    return weights;
  }
  std::vector<std::string> parts() const override { return names_of(G::kParts); }
  std::vector<std::string> bots() const override {
    std::vector<std::string> names = {"random"};
    if constexpr (requires { G::kBots; })
      for (const char* name : G::kBots) names.push_back(name);
    return names;
  }
  std::vector<std::string> ends() const override {
    if constexpr (requires { G::kEnds; })
      return names_of(G::kEnds);
    else
      return {"played out"};
  }
  std::vector<std::string> counters() const override {
    if constexpr (kCounterCount<G> > 0)
      return names_of(G::kCounters);
    else
      return {};
  }
  std::vector<Stat> stats(const u8* config) const override {
    if constexpr (requires { G::stats(read(config)); })
      return G::stats(read(config));
    else
      return {};
  }
  int rows() const override { return G::kRows; }
  int roles() const override { return G::kRoles; }
  int box() const override {
    if constexpr (kDiscrete<G>)
      return 0;
    else
      return static_cast<int>(sizeof(typename G::Action) / sizeof(f32));
  }
  int legal_words() const override { return Legal<G>::kWords; }
  std::string win_part() const override {
    if constexpr (kPaysWins<G>)
      return G::kParts[G::kWinPart];
    else
      return "";
  }
  bool hides() const override { return kResamples<G>; }
  int belief_size(const u8* config) const override {
    return sparring::belief_size<G>(read(config));
  }
  void draw_worlds(const u8* config, const u8* env_bytes, u64 seed, u32 number, int seat,
                   const f32* belief, int worlds, u8* out) const override {
    Env<G> env;
    std::memcpy(static_cast<void*>(&env), env_bytes, sizeof env);
    for (int world = 0; world < worlds; ++world, out += sizeof(G)) {
      G game = env.game;
      draw_world(game, env, read(config), seed, number, seat, static_cast<u32>(world), belief);
      std::memcpy(out, static_cast<const void*>(&game), sizeof game);
    }
  }
  i64 game_bytes() const override { return sizeof(G); }
  i64 first_undeclared(const u8* config) const override {
    const G game{};
    return static_cast<i64>(bounds_of(game, read(config)).first_undeclared());
  }
  const AnyGoals* goals() const override {
    if constexpr (HasGoals<G>) {
      static const GameGoals<G> kGoals;
      return &kGoals;
    } else {
      return nullptr;
    }
  }
  std::unique_ptr<AnyPool> make_pool(const u8* config, const PoolOptions& options) const override {
    auto pool = std::make_unique<Pool<G>>(read(config), options);
    pool->state().set_weights(default_weights(config));
    return pool;
  }
  std::unique_ptr<AnyState> make_state(const u8* config, u64 seed, u32 game, bool skip_forced,
                                       const std::vector<f32>& weights) const override {
    return std::make_unique<State<G>>(read(config), seed, game, skip_forced, weights);
  }
  std::unique_ptr<AnySearch> make_search(const u8* config, const SearchOptions& options, i64 trees,
                                         u64 seed, int threads) const override {
    return std::make_unique<Search<G>>(read(config), options, trees, seed, threads);
  }
  i64 search_bytes(const u8* config, const SearchOptions& options) const override {
    return tree_bytes<G>(read(config), complete_options<G>(read(config), options));
  }
  std::unique_ptr<AnySearch> make_worlds(const u8* config, const WorldsOptions& options, i64 roots,
                                         u64 seed, int threads) const override {
    if constexpr (kHasWorlds<G>)
      return std::make_unique<WorldsSearch<G>>(read(config), options, roots, seed, threads);
    else
      return nullptr;
  }
  i64 worlds_bytes(const u8* config, const WorldsOptions& options, i64 roots) const override {
    if constexpr (kHasWorlds<G>)
      return WorldsSearch<G>::bytes(read(config), options, roots);
    else
      return 0;
  }

 private:
  static const Config& read(const u8* config) { return *reinterpret_cast<const Config*>(config); }
};

template <Game G>
bool register_game() {
  registered_games().push_back(std::make_unique<Registered<G>>());
  return true;
}

}  // namespace sparring
