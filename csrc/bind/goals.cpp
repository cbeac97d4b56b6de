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
void draw_hindsight(In<u32> record, In<i64> among, u64 seed, u32 number, f32 share, Out<u8> drawn) {
  constexpr Call call("draw_hindsight");
  const i64 known = call.size(record, "record"), count = call.size(among, "among");
  const u32* records = call.take(record, "record", known);
  const i64* places = call.take(among, "among", count);
  u8* out = call.take(drawn, "drawn", count);
  nb::gil_scoped_release released;
  call.within(places, count, "among", 0, known);
  for (i64 i = 0; i < count; ++i)
    out[i] = is_record(records[places[i]]) &&
             drawn_for_hindsight(seed, static_cast<u32>(places[i]), number, share);
}

void find_records(int seats, int chains, In<i8> seat, In<u8> terminated, In<u8> truncated,
                  In<u32> record, Out<u32> out) {
  constexpr Call call("find_records");
  RolloutView v{};
  const RolloutSize size = rollout_of(call, v, seat, seats, chains);
  v.terminated = call.take(terminated, "terminated", size.by_game);
  v.truncated = call.take(truncated, "truncated", size.by_game);
  const u32* records = call.take(record, "record", size.by_seat);
  u32* by_place = call.take(out, "out", size.places);
  nb::gil_scoped_release released;
  for (int game = 0; game < v.games; ++game) record_of_game(v, records, by_place, game);
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

f32 paid_for(const Goals& goals, const std::vector<f32>& weights, int role, u32 record, int goal,
             int first, int end) {
  constexpr Call call("Goals.paid_for");
  check_weights(call, weights, goals.weights);
  call.index(role, "role", goals.roles);
  call.between(first, "first", 0, kLastStage);
  call.between(end, "end", 0, kLastStage);
  return goals.of->paid_for(goals.config.data(), weights.data(), role, record,
                            goal_of(call, goals, goal), first, end);
}

void relabel_rows(const Goals& goals, In<u32> record, Out<u8> obs, In<u8> mask, Out<i32> action,
                  Out<u8> done) {
  constexpr Call call("Goals.relabel");
  const int rows = call.count(call.size(record, "record"), "rows"), actions = goals.shape.actions;
  const i64 bytes = rows ? call.size(obs, "obs") / rows : goals.shape.obs_bytes;
  call.demand(bytes >= goals.shape.obs_bytes, "the rows of obs are shorter than an observation");
  const u32* records = call.take(record, "record", rows);
  u8* seen = call.take(obs, "obs", rows * bytes);
  const u8* masks = call.take(mask, "mask", i64{rows} * actions);
  i32* chosen = call.take(action, "action", rows);
  u8* changed = call.take(done, "done", rows);
  nb::gil_scoped_release released;
  for (i64 i = 0; i < rows; ++i)
    changed[i] = goals.of->relabel(goals.config.data(), records[i], seen + i * bytes,
                                   masks + i * actions, chosen[i]);
}

}  // namespace

void bind_goals(nb::module_& m) {
  nb::class_<Goals>(m, "Goals", "What decisions would have been right for.")
      .def("__init__",
           [](Goals* self, const Rules& rules) {
             if (!rules.game->goals()) throw std::invalid_argument("the game has no goals");
             new (self) Goals(rules);
           })
      .def_prop_ro("role", [](const Goals& g) { return g.of->role(); })
      .def_prop_ro("stages", [](const Goals& g) { return g.of->stages(); })
      .def_prop_ro("pays", [](const Goals& g) { return g.of->pays(); })
      .def_prop_ro("refusal", [](const Goals& g) { return g.of->refusal(g.config.data()); })
      .def("made", [](const Goals& g, u32 record) { return g.of->made(record); })
      .def("achieved", [](const Goals& g, u32 record) { return g.of->achieved(record); })
      .def("action", [](const Goals& g,
                        int goal) { return g.of->action(goal_of(Call("Goals.action"), g, goal)); })
      .def("row",
           [](const Goals& g, In<u8> obs) {
             const u8* at = row_of(Call("Goals.row"), g, obs);
             const GoalRow row = g.of->row(g.config.data(), at);
             return std::make_tuple(row.role, row.stage, row.asks);
           })
      .def("set_goal",
           [](const Goals& g, Out<u8> obs, int goal) {
             constexpr Call call("Goals.set_goal");
             u8* at = row_of(call, g, obs);
             g.of->set_goal(g.config.data(), at, goal_of(call, g, goal));
           })
      .def("paid_for", &paid_for, "weights"_a, "role"_a, "record"_a, "goal"_a, "first"_a, "end"_a)
      .def("relabel", &relabel_rows, "record"_a, "obs"_a, "mask"_a, "action"_a, "done"_a);
  m.def("draw_hindsight", &draw_hindsight, "record"_a, "among"_a, "seed"_a, "number"_a, "share"_a,
        "drawn"_a);
  m.def("find_records", &find_records, "seats"_a, "chains"_a, "seat"_a, "terminated"_a,
        "truncated"_a, "record"_a, "out"_a);
  m.attr("UNKNOWN_RECORD") = kUnknownRecord;
}

}  // namespace sparring
