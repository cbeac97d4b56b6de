// Hindsight on the host: loops over the functions of core/goals.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "bind/arrays.hpp"
#include "bind/rules.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sparring {
namespace {

// Which of the places `among` are seen in hindsight, by lot.
void draw_hindsight(In<u32> record, In<i64> among, u64 seed, u32 number, f32 share, Out<u8> drawn) {
  nb::gil_scoped_release released;
  for (size_t i = 0; i < among.size(); ++i) {
    const i64 place = among.data()[i];
    drawn.data()[i] = is_record(record.data()[place]) &&
                      drawn_for_hindsight(seed, static_cast<u32>(place), number, share);
  }
}

void find_records(int seats, int chains, nb::ndarray<const i8, nb::ndim<3>, nb::c_contig> seat,
                  In<u8> terminated, In<u8> truncated, In<u32> record, Out<u32> out) {
  RolloutView v{};
  v.steps = static_cast<int>(seat.shape(0));
  v.games = static_cast<int>(seat.shape(1));
  v.rows = static_cast<int>(seat.shape(2));
  v.seats = seats;
  v.chains = chains;
  v.seat = seat.data();
  v.terminated = terminated.data();
  v.truncated = truncated.data();
  nb::gil_scoped_release released;
  for (int game = 0; game < v.games; ++game) record_of_game(v, record.data(), out.data(), game);
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
      .def("action", [](const Goals& g, int goal) { return g.of->action(goal); })
      .def("row",
           [](const Goals& g, In<u8> obs) {
             const GoalRow row = g.of->row(g.config.data(), obs.data());
             return std::make_tuple(row.role, row.stage, row.asks);
           })
      .def("set_goal", [](const Goals& g, Out<u8> obs,
                          int goal) { g.of->set_goal(g.config.data(), obs.data(), goal); })
      .def(
          "paid_for",
          [](const Goals& g, const std::vector<f32>& weights, int role, u32 record, int goal,
             int from, int to) {
            return g.of->paid_for(g.config.data(), weights.data(), role, record, goal, from, to);
          },
          "weights"_a, "role"_a, "record"_a, "goal"_a, "first"_a, "end"_a)
      .def(
          "relabel",
          [](const Goals& g, In<u32> record, Out<u8> obs, In<u8> mask, Out<i32> action,
             Out<u8> done) {
            const i64 rows = static_cast<i64>(record.size());
            const i64 bytes = rows ? static_cast<i64>(obs.size()) / rows : 0;
            const i64 actions = rows ? static_cast<i64>(mask.size()) / rows : 0;
            nb::gil_scoped_release released;
            for (i64 i = 0; i < rows; ++i)
              done.data()[i] =
                  g.of->relabel(g.config.data(), record.data()[i], obs.data() + i * bytes,
                                mask.data() + i * actions, action.data()[i]);
          },
          "record"_a, "obs"_a, "mask"_a, "action"_a, "done"_a);
  m.def("draw_hindsight", &draw_hindsight, "record"_a, "among"_a, "seed"_a, "number"_a, "share"_a,
        "drawn"_a);
  m.def("find_records", &find_records, "seats"_a, "chains"_a, "seat"_a, "terminated"_a,
        "truncated"_a, "record"_a, "out"_a);
  m.attr("UNKNOWN_RECORD") = kUnknownRecord;
}

}  // namespace sparring
