// Worlds on the GPU: one thread draws one world of a row, through the same header as the CPU.
//
// NVRTC compiles this file after a game's header, with the name of its type (SPARRING_GAME).
// src/sparring/pools/cuda/worlds.py launches the kernel.
#pragma once

#include "core/resample.hpp"

namespace sparring {

using G = SPARRING_GAME;

// The decisions whose hidden information is drawn. `each` consecutive games share a setting.
struct WorldsView {
  const Env<G>* envs;
  const SettingStorage<G>* settings;
  int each;
  const i64* row;  // [rows], of the pool
  int rows, worlds;
  u64 seed;
  const f32* belief;  // [rows, belief_size]; null: uniform
  G* out;             // [rows, worlds]
};

extern "C" __global__ void draw_worlds(WorldsView view) {
  const i64 thread = i64{blockIdx.x} * blockDim.x + threadIdx.x;
  const int at = static_cast<int>(thread / view.worlds);
  if (at >= view.rows) return;
  const int game = static_cast<int>(view.row[at] / G::kRows);
  const Env<G>& env = view.envs[game];
  const Setting<G>& setting = view.settings[game / view.each];
  const int seat = env.game.seat(static_cast<int>(view.row[at] % G::kRows));
  G drawn = env.game;
  if (seat >= 0)
    draw_world(drawn, env, setting.config, view.seed,
               setting.first_game + static_cast<u32>(game % view.each), seat,
               static_cast<u32>(thread % view.worlds),
               view.belief ? view.belief + at * belief_size<G>(setting.config) : nullptr);
  view.out[thread] = drawn;
}

}  // namespace sparring
