// Worlds: copies of a game in which everything that a seat cannot know is drawn anew.
#pragma once

#include "core/env.hpp"

namespace sparring {

// The random numbers of one world: a function of who asks when, and of the world's number.
SPARRING_FN inline Rng world_rng(u64 seed, u32 game, u32 episode, u32 ply, int seat, u32 world) {
  const auto stir = [](u64 key, u64 with) {
    key = (key ^ with) * 0x9E3779B97F4A7C15ull;
    return key ^ key >> 32;
  };
  const u64 key = stir(stir(seed, ply), u64{world} << 8 | static_cast<u8>(seat));
  return Rng(key, game, episode, Stream::kWorlds);
}

// A game that hides something can draw it anew.
template <class G>
inline constexpr bool kResamples = requires(G& game, const typename G::Config& config, Rng& rng) {
  game.resample_hidden(config, 0, rng);
};

// The numbers of a belief: log-weights in the layout of the game's `hidden` head. 0: the game takes
// none, and draws uniformly.
template <class G>
SPARRING_FN constexpr int belief_size(const typename G::Config& config) {
  if constexpr (requires { G::belief_size(config); })
    return G::belief_size(config);
  else
    return 0;
}

// Draws anew what seat `me` cannot know; nothing if the game hides nothing. belief: null for a
// uniform draw.
template <class G>
SPARRING_FN inline void resample_hidden(G& game, const typename G::Config& config, int me, Rng& rng,
                                        const f32* belief) {
  if constexpr (requires { G::belief_size(config); })
    game.resample_hidden(config, me, rng, belief);
  else if constexpr (kResamples<G>)
    game.resample_hidden(config, me, rng);
}

// Draws world number `world` of a decision into `game`, a copy of the environment's.
template <class G>
SPARRING_FN inline void draw_world(G& game, const Env<G>& env, const typename G::Config& config,
                                   u64 seed, u32 number, int seat, u32 world, const f32* belief) {
  Rng rng = world_rng(seed, number, env.episode, env.length, seat, world);
  resample_hidden(game, config, seat, rng, belief);
}

}  // namespace sparring
