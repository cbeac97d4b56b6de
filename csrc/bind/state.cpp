// One game to Python; see core/state.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>

#include "bind/bound_state.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sparring {
namespace {

// Goes on from a game of a pool; what is wrong with it, as for `load`.
std::string sit_down(BoundState& state, const BoundPool& pool, i64 game) {
  constexpr Call call("State.load_from_pool");
  check_same(call, pool.rules, state.rules());
  AnyPool& from = pool.started(call);
  call.index(game, "game", from.games());
  const AnyPoolState& saved = from.state();
  const i64 bytes = saved.bytes().env_bytes, extra_bytes = saved.extra_bytes();
  const u8* env = saved.bytes().envs + game * bytes;
  const u8* extra = saved.extra.data() + game * extra_bytes;
  return state->sit_down({env, env + bytes}, {extra, extra + extra_bytes});
}

void draw_worlds(const BoundState& state, int seat, u64 seed, int worlds, MaybeIn<f32> belief,
                 Out<u8> out) {
  constexpr Call call("State.draw_worlds");
  const Rules& rules = state.rules();
  state.seat(call, seat);
  const i64 bytes = call.product("worlds", {worlds, rules.game->game_bytes()});
  rules.game->draw_worlds(rules.config.data(), state->env(), seed, state->number(), seat,
                          call.take(belief, "belief", belief_size(rules)), worlds,
                          call.take(out, "out", bytes));
}

std::tuple<std::string, nb::bytes> field_named(const BoundState& state, const Rules& rules,
                                               const std::string& name) {
  Call("State.field")
      .demand(rules.game == state.rules().game, "these are the rules of another game");
  for (const Field& f : rules.game->state_fields())
    if (name == f.name) {
      const char* at = reinterpret_cast<const char*>(state->game_bytes()) + f.offset;
      return {type_name(f.type), nb::bytes(at, static_cast<size_t>(size_of(f.type) * f.count))};
    }
  throw std::out_of_range("no field called " + name);
}

}  // namespace

void bind_state(nb::module_& m) {
  using State = BoundState;
  nb::class_<State>(m, "State", "One game.")
      .def("clone", &State::clone)
      .def(
          "seat", [](const State& s, int row) { return s->seat(s.row(Call("State.seat"), row)); },
          "row"_a = 0)
      .def(
          "role", [](const State& s, int row) { return s->role(s.row(Call("State.role"), row)); },
          "row"_a = 0)
      .def(
          "legal",
          [](const State& s, int row) { return s->legal(s.row(Call("State.legal"), row)); },
          "row"_a = 0)
      .def("apply_discrete",
           [](State& s, const std::vector<i32>& actions) {
             return s.apply(Call("State.apply_discrete"), actions, s.box() ? 0 : 1);
           })
      .def("apply_box",
           [](State& s, const std::vector<f32>& actions) {
             return s.apply(Call("State.apply_box"), actions, s.box());
           })
      .def("observe",
           [](const State& s, int seat, Out<u8> out) {
             constexpr Call call("State.observe");
             s.seat(call, seat);
             s->observe(seat, call.take(out, "out", s.obs_bytes()));
           })
      .def("score",
           [](const State& s, int seat) { return s->score(s.seat(Call("State.score"), seat)); })
      .def("rewards", [](const State& s) { return s->rewards(); })
      .def("skipped", [](const State& s) { return s->skipped(); })
      .def_prop_ro("terminated", [](const State& s) { return s->terminated(); })
      .def_prop_ro("truncated", [](const State& s) { return s->truncated(); })
      .def_prop_ro("reason", [](const State& s) { return s->reason(); })
      .def("text",
           [](const State& s, int viewer) { return s->text(s.viewer(Call("State.text"), viewer)); })
      .def("setup", [](State& s, const std::vector<i64>& data) { return s->setup(data); })
      .def("load_from_pool", &sit_down, "pool"_a, "game"_a)
      .def("audit", [](const State& s) { return s->audit(); })
      .def("bot_action", &State::ask)
      .def(
          "resample_hidden",
          [](State& s, int seat, u64 seed, MaybeIn<f32> belief) {
            constexpr Call call("State.resample_hidden");
            s.seat(call, seat);
            const int size = belief_size(s.rules());
            return s->resample_hidden(seat, seed, call.take(belief, "belief", size));
          },
          "seat"_a, "seed"_a, "belief"_a = nb::none())
      .def("draw_worlds", &draw_worlds, "seat"_a, "seed"_a, "worlds"_a, "belief"_a.none(), "out"_a)
      .def("serialize",
           [](const State& s) {
             const std::vector<u8> raw = s->bytes();
             return nb::bytes(raw.data(), raw.size());
           })
      .def("load",
           [](State& s, nb::bytes raw) {
             const u8* at = static_cast<const u8*>(raw.data());
             return s->load({at, at + raw.size()});
           })
      .def("check", [](const State& s) { return s->check(); })
      .def("position",
           [](const State& s) {
             const std::vector<u8> game = s->position(), extra = s->extra();
             return std::make_tuple(nb::bytes(game.data(), game.size()),
                                    nb::bytes(extra.data(), extra.size()));
           })
      .def("field", &field_named);
  m.def(
      "state_fields",
      [](const Rules& rules) {
        std::vector<std::tuple<std::string, int, int>> fields;
        for (const Field& f : rules.game->state_fields())
          fields.emplace_back(f.name, f.offset, size_of(f.type) * f.count);
        return fields;
      },
      "Name, first byte and number of bytes of each field; an environment begins with its game.");
  m.def(
      "make_state",
      [](const Rules& rules, u64 seed, u32 game, bool skip_forced,
         const std::vector<f32>& weights) {
        check_weights(Call("make_state"), weights, rules.weights());
        return BoundState(rules, seed, game, skip_forced, weights);
      },
      "rules"_a, "seed"_a, "game"_a, "skip_forced"_a, "weights"_a);
}

}  // namespace sparring
