// Hindsight on the host: loops over the functions of core/goals.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "bind/rollouts.hpp"
#include "bind/rules.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sparring {
namespace {

// Which of the places `among` are seen in hindsight, by lot.
void draw_hindsight(In<u32> goal_result, In<i64> among, u64 seed, u32 number, f32 share,
                    Out<u8> drawn) {
  constexpr Call call("draw_hindsight");
  const i64 known = call.size(goal_result, "goal_result"), count = call.size(among, "among");
  const u32* goal_results = call.take(goal_result, "goal_result", known);
  const i64* indices = call.take(among, "among", count);
  u8* out = call.take(drawn, "drawn", count);
  nb::gil_scoped_release released;
  call.within(indices, count, "among", 0, known);
  for (i64 i = 0; i < count; ++i)
    out[i] = is_goal_result(goal_results[indices[i]]) &&
             draws_hindsight(seed, static_cast<u32>(indices[i]), number, share);
}

void find_goal_results(int seats, int chains, In<i8> seat, In<u8> terminated, In<u8> truncated,
                       In<u32> goal_result, Out<u32> out) {
  constexpr Call call("find_goal_results");
  RolloutView v{};
  const RolloutSize size = rollout_of(call, v, seat, seats, chains);
  v.terminated = call.take(terminated, "terminated", size.by_game);
  v.truncated = call.take(truncated, "truncated", size.by_game);
  const u32* goal_results = call.take(goal_result, "goal_result", size.by_seat);
  u32* by_place = call.take(out, "out", size.indices);
  nb::gil_scoped_release released;
  for (int game = 0; game < v.games; ++game) goal_results_of_game(v, goal_results, by_place, game);
}

// A row that is at least as long as an observation.
template <class T>
T* row_of(const Call& call, const Goals& goals, const Given<T>& obs) {
  return call.take_first(obs, "obs", goals.shape.obs_bytes);
}

int goal_of(const Call& call, const Goals& goals, int goal) {
  call.index(goal, "goal", goals.shape.actions);
  call.index(goals.of->action(goal), "goal", goals.shape.actions);
  return goal;
}

f32 goal_reward(const Goals& goals, const std::vector<f32>& weights, int role, u32 goal_result,
                int goal, int first, int end) {
  constexpr Call call("Goals.goal_reward");
  check_weights(call, weights, goals.weights);
  call.index(role, "role", goals.roles);
  call.between(first, "first", 0, kLastStage);
  call.between(end, "end", 0, kLastStage);
  return goals.of->goal_reward(goals.config.data(), weights.data(), role, goal_result,
                               goal_of(call, goals, goal), first, end);
}

void relabel_rows(const Goals& goals, In<u32> goal_result, Out<u8> obs, In<u8> mask,
                  Out<i32> action, Out<u8> done) {
  constexpr Call call("Goals.relabel");
  const int rows = call.count(call.size(goal_result, "goal_result"), "rows"),
            actions = goals.shape.actions;
  const i64 bytes = rows ? call.size(obs, "obs") / rows : goals.shape.obs_bytes;
  call.demand(bytes >= goals.shape.obs_bytes, "the rows of obs are shorter than an observation");
  const u32* goal_results = call.take(goal_result, "goal_result", rows);
  u8* rows_out = call.take(obs, "obs", rows * bytes);
  const u8* masks = call.take(mask, "mask", i64{rows} * actions);
  i32* chosen = call.take(action, "action", rows);
  u8* changed = call.take(done, "done", rows);
  nb::gil_scoped_release released;
  for (i64 i = 0; i < rows; ++i)
    changed[i] = goals.of->relabel(goals.config.data(), goal_results[i], rows_out + i * bytes,
                                   masks + i * actions, chosen[i]);
}

}  // namespace

void bind_goals(nb::module_& m) {
  nb::class_<Goals>(m, "Goals", "Goals of a game, for hindsight.")
      .def("__init__",
           [](Goals* self, const Rules& rules) {
             if (!rules.game->goals()) throw std::invalid_argument("the game has no goals");
             new (self) Goals(rules);
           })
      .def_prop_ro("role", [](const Goals& g) { return g.of->role(); })
      .def_prop_ro("stages", [](const Goals& g) { return g.of->stages(); })
      .def_prop_ro("goal_parts", [](const Goals& g) { return g.of->goal_parts(); })
      .def_prop_ro("unsupported_reason",
                   [](const Goals& g) { return g.of->unsupported_reason(g.config.data()); })
      .def("desired_goal",
           [](const Goals& g, u32 goal_result) { return g.of->desired_goal(goal_result); })
      .def("achieved_goal",
           [](const Goals& g, u32 goal_result) { return g.of->achieved_goal(goal_result); })
      .def("action", [](const Goals& g,
                        int goal) { return g.of->action(goal_of(Call("Goals.action"), g, goal)); })
      .def("decision",
           [](const Goals& g, In<u8> obs) {
             const u8* at = row_of(Call("Goals.decision"), g, obs);
             const GoalDecision row = g.of->row(g.config.data(), at);
             return std::make_tuple(row.role, row.stage, row.sets_goal);
           })
      .def("set_goal",
           [](const Goals& g, Out<u8> obs, int goal) {
             constexpr Call call("Goals.set_goal");
             u8* at = row_of(call, g, obs);
             g.of->set_goal(g.config.data(), at, goal_of(call, g, goal));
           })
      .def("goal_reward", &goal_reward, "weights"_a, "role"_a, "goal_result"_a, "goal"_a, "first"_a,
           "end"_a)
      .def("relabel", &relabel_rows, "goal_result"_a, "obs"_a, "mask"_a, "action"_a, "done"_a);
  m.def("draw_hindsight", &draw_hindsight, "goal_result"_a, "among"_a, "seed"_a, "number"_a,
        "share"_a, "drawn"_a);
  m.def("find_goal_results", &find_goal_results, "seats"_a, "chains"_a, "seat"_a, "terminated"_a,
        "truncated"_a, "goal_result"_a, "out"_a);
  m.attr("UNKNOWN_GOAL_RESULT") = kUnknownGoalResult;
}

}  // namespace sparring
