// How large the arrays of a rollout have to be.
#pragma once

#include "bind/arrays.hpp"
#include "core/transitions.hpp"

namespace sparring {

struct RolloutSize {
  i64 rows, by_game, by_seat, indices;
};

inline RolloutSize size_rollout(const Call& call, RolloutView& v, int steps, int games, int rows,
                                int seats, int chains) {
  v.steps = call.count(steps, "steps");
  v.games = call.count(games, "games");
  v.rows = call.between(rows, "rows", 1, std::numeric_limits<i32>::max());
  v.seats = call.between(seats, "seats", 1, std::numeric_limits<i32>::max());
  v.chains = call.between(chains, "chains", 1, std::numeric_limits<i32>::max());
  RolloutSize size{};
  size.rows = call.product("steps * games * rows", {steps, games, rows});
  size.by_game = call.product("steps * games", {steps, games});
  size.by_seat = call.product("steps * games * seats", {steps, games, seats});
  const i64 pending_count = call.product("games * seats * chains", {games, seats, chains});
  size.indices = call.count(pending_count + size.rows, "places");
  return size;
}

// The same of rows [steps, games, rows], whose seats are told.
inline RolloutSize rollout_of(const Call& call, RolloutView& v, const In<i8>& seat, int seats,
                              int chains) {
  const int steps = call.axis(seat, "seat", 3, 0), games = call.axis(seat, "seat", 3, 1);
  const RolloutSize size =
      size_rollout(call, v, steps, games, call.axis(seat, "seat", 3, 2), seats, chains);
  v.seat = call.take(seat, "seat", size.rows);
  return size;
}

inline Links links_of(const Call& call, i64 indices, const Out<u8>& end, const Out<i32>& next,
                      const Out<f32>& reward, const Out<f32>& discount, const Out<f32>& bootstrap) {
  return {call.take(end, "end", indices), call.take(next, "next", indices),
          call.take(reward, "reward", indices), call.take(discount, "discount", indices),
          call.take(bootstrap, "bootstrap", indices)};
}

}  // namespace sparring
