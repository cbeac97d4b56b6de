// Games stepped together to Python; see core/pool.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cmath>

#include "bind/bound_pool.hpp"
#include "bind/memory.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sparring {
namespace {

using Self = nb::handle_t<BoundPool>;

// An array that lives in a pool; the view keeps the pool alive. One of `const` cannot be written.
template <class T>
using View = nb::ndarray<nb::numpy, T>;

template <class T>
View<T> view(nb::handle owner, T* data, std::initializer_list<size_t> shape) {
  return View<T>(data, shape, owner);
}

// Also refuses an object that Python made without its constructor.
AnyPool& pool_of(Self h) {
  if (!nb::inst_ready(h)) throw nb::type_error("Pool: the object was never made; call make_pool");
  return **nb::inst_ptr<BoundPool>(h);
}

std::optional<RejectedActionRow> accept(BoundPool& p, int group, const void* actions) {
  const RejectedAction rejected = p->accept(group, actions);
  if (rejected.game < 0) p.accepted(group);
  return rejected_action_row(rejected);
}

// Steps all games; says which action could not be played.
std::optional<RejectedActionRow> stepped(BoundPool& p, AnyPool& games, const void* actions) {
  p.changed();
  RejectedAction rejected;
  {
    nb::gil_scoped_release released;
    rejected = games.check_and_step_all(actions);
  }
  return rejected_action_row(rejected);
}

// Runs the pool on random play inside C++; the yardstick for calls from Python.
f64 run_random(BoundPool& p, int steps) {
  constexpr Call call("Pool.run_random");
  call.count(steps, "steps");
  AnyPool& pool = p.started(call);
  p.changed();
  const size_t width = pool.box() ? sizeof(f32) * static_cast<size_t>(pool.box()) : sizeof(i32);
  std::vector<u8> actions(static_cast<size_t>(p.rows()) * width);
  nb::gil_scoped_release released;
  const auto started = std::chrono::steady_clock::now();
  for (int step = 0; step < steps; ++step) {
    for (int group = 0; group < pool.options().groups; ++group)
      pool.sample(group, actions.data() +
                             static_cast<size_t>(pool.group_begin(group) * pool.rows()) * width);
    pool.check_and_step_all(actions.data());
  }
  return std::chrono::duration<f64>(std::chrono::steady_clock::now() - started).count();
}

void check_weight(const Call& call, f64 weight) {
  call.demand(std::isfinite(weight) && weight >= 0, "a weight is not finite, or negative");
}

// A player that can sit down: a policy, a bot of the game or, in a line-up, a mix.
void check_player(const Call& call, const BoundPool& p, int player, bool mixes) {
  const int bots = static_cast<int>(p.rules.game->bots().size());
  if (player >= 0 || (mixes && is_mix(player))) return;
  call.between(player, "player", kRandomBot - bots + 1, kRandomBot);
}

int set_lineups(BoundPool& p, const std::vector<f64>& weights, const std::vector<i16>& players,
                const std::vector<u8>& shuffle) {
  constexpr Call call("Pool.set_lineups");
  AnyPool& pool = p.idle(call);
  call.between(static_cast<i64>(weights.size()), "the number of line-ups", 1, kMaxLineups);
  call.demand(players.size() == weights.size() * static_cast<size_t>(pool.shape().seats) &&
                  shuffle.size() == weights.size(),
              "every line-up needs a player for every seat, and whether they are shuffled");
  for (const f64 weight : weights) check_weight(call, weight);
  for (const i16 player : players) check_player(call, p, player, true);
  return pool.state().set_lineups(weights, players, shuffle);
}

void set_mixes(BoundPool& p, const std::vector<int>& sizes, const std::vector<f64>& weights,
               const std::vector<i16>& players) {
  constexpr Call call("Pool.set_mixes");
  AnyPool& pool = p.idle(call);
  call.between(static_cast<i64>(sizes.size()), "the number of mixes", 0, kMaxMixes);
  i64 needed = 0;
  for (const int size : sizes) needed += call.between(size, "the size of a mix", 0, kMaxMixPlayers);
  call.demand(
      static_cast<i64>(weights.size()) == needed && static_cast<i64>(players.size()) == needed,
      "every player of a mix needs a weight");
  for (const f64 weight : weights) check_weight(call, weight);
  for (const i16 player : players) check_player(call, p, player, false);
  pool.state().set_mixes(sizes, weights, players);
}

std::string set_starts(BoundPool& p, In<f64> cumulative_weight, nb::bytes games,
                       In<i32> extra_index, nb::bytes extras) {
  constexpr Call call("Pool.set_starts");
  AnyPool& pool = p.idle(call);
  const int count = call.count(call.size(extra_index, "extra_index"), "starts");
  // Without starts there is nothing to draw.
  const i64 sums = call.size(cumulative_weight, "cumulative_weight");
  call.demand(sums == count + 1 || (sums == 0 && count == 0),
              "every start needs a weight, and so does the usual one");
  const f64* weights = call.take(cumulative_weight, "cumulative_weight", sums);
  for (i64 i = 0; i < sums; ++i)
    call.demand(std::isfinite(weights[i]) && weights[i] >= (i ? weights[i - 1] : 0),
                "cumulative_weight adds up weights, which are finite and not negative");
  call.demand(static_cast<i64>(games.size()) == count * pool.state().bytes().game_bytes,
              "the starts have another number of bytes than such games");
  const i64 each = pool.state().extra_bytes();
  call.demand(each ? static_cast<i64>(extras.size()) % each == 0 : true,
              "the bytes beside games are not whole lines");
  const i32* lines = call.take(extra_index, "extra_index", count);
  if (each) call.within(lines, count, "extra_index", 0, static_cast<i64>(extras.size()) / each);
  const u8* extra = static_cast<const u8*>(extras.data());
  return pool.state().set_starts({weights, weights + sums}, static_cast<const u8*>(games.data()),
                                 {lines, lines + count}, {extra, extra + extras.size()});
}

// Flags that may change while games run.
void set_config(BoundPool& p, const Rules& rules) {
  constexpr Call call("Pool.set_config");
  AnyPool& pool = p.idle(call);
  check_same(call, p.rules, rules);
  std::memcpy(pool.state().bytes().config, rules.config.data(), rules.config.size());
}

constexpr int kMaxMemory = 1 << 20, kMemoryStep = 16;

std::unique_ptr<BoundPool> make_pool(const Rules& rules, i64 games, u64 seed, u32 first_game,
                                     int threads, int groups, bool skip_forced, bool observe,
                                     int memory, bool every_game, u32 opening_plies,
                                     bool goal_results) {
  constexpr Call call("make_pool");
  call.between(games, "games", 1, std::numeric_limits<i32>::max());
  call.between(threads, "threads", 1, kMaxThreads);
  call.between(groups, "groups", 1, games);
  call.between(memory, "memory", 0, kMaxMemory);
  call.demand(memory % kMemoryStep == 0, "memory is not a multiple of 16 bytes");
  call.demand(!goal_results || rules.game->goals(), "the game has no goals to keep records of");
  const PoolOptions options{games,   seed,   first_game, threads,       groups,      skip_forced,
                            observe, memory, every_game, opening_plies, goal_results};
  PoolOptions one = options;
  one.games = one.groups = one.threads = 1;
  const f64 each = static_cast<f64>(rules.game->make_pool(rules.config.data(), one)->bytes());
  const f64 machine = machine_memory();
  call.demand(!machine || each * static_cast<f64>(games) <= machine,
              "so many games do not fit into this machine's memory");
  return std::make_unique<BoundPool>(rules, options);
}

// Arrays that only the pool writes are shown as such: what is legal, and whose turn it is, decides
// which actions are played.
void bind_views(nb::class_<BoundPool>& pool) {
  const auto per_row = [&](const char* name, auto member) {
    pool.def_prop_ro(name, [=](Self h) {
      AnyPool& p = pool_of(h);
      using T = std::remove_pointer_t<decltype((p.*member).data())>;
      return view<const T>(h, (p.*member).data(), {size_t(p.games() * p.rows())});
    });
  };
  const auto per_game = [&](const char* name, auto member) {
    pool.def_prop_ro(name, [=](Self h) {
      AnyPool& p = pool_of(h);
      using T = std::remove_pointer_t<decltype((p.*member).data())>;
      return view<const T>(h, (p.*member).data(), {size_t(p.games())});
    });
  };
  const auto per_seat = [&](const char* name, auto member) {
    pool.def_prop_ro(name, [=](Self h) {
      AnyPool& p = pool_of(h);
      using T = std::remove_pointer_t<decltype((p.*member).data())>;
      return view<const T>(h, (p.*member).data(), {size_t(p.games()), size_t(p.shape().seats)});
    });
  };
  const auto flag = [&](const char* name, auto member) {
    pool.def_prop_ro(name, [=](Self h) {
      AnyPool& p = pool_of(h);
      return view<const bool>(h, reinterpret_cast<const bool*>((p.*member).data()),
                              {size_t(p.games())});
    });
  };
  per_row("seat", &AnyPool::seat);
  per_row("role", &AnyPool::role);
  per_row("policy", &AnyPool::policy);
  per_game("final_game", &AnyPool::final_game);
  per_game("final_length", &AnyPool::final_length);
  per_game("final_reason", &AnyPool::final_reason);
  per_game("final_action_hash", &AnyPool::final_moves);
  per_seat("final_score", &AnyPool::final_score);
  per_seat("final_policy", &AnyPool::final_policy);
  per_seat("skipped", &AnyPool::skipped);
  flag("terminated", &AnyPool::terminated);
  flag("truncated", &AnyPool::truncated);
  pool.def_prop_ro("left_out",
                   [](Self h) {
                     AnyPool& p = pool_of(h);
                     return view<u8>(h, p.left_out.data(), {size_t(p.games())});
                   })
      .def_prop_ro("obs",
                   [](Self h) {
                     AnyPool& p = pool_of(h);
                     const size_t rows = p.obs.size() ? size_t(p.games() * p.rows()) : 0;
                     return view<u8>(h, p.obs.data(), {rows, size_t(p.row_bytes())});
                   })
      .def_prop_ro("mask",
                   [](Self h) {
                     AnyPool& p = pool_of(h);
                     const size_t rows = p.options().observe ? size_t(p.games() * p.rows()) : 0;
                     return view<u8>(h, p.mask.data(), {rows, size_t(p.shape().actions)});
                   })
      .def_prop_ro("final_obs",
                   [](Self h) {
                     AnyPool& p = pool_of(h);
                     const size_t rows = p.obs.size() ? size_t(p.games()) : 0;
                     return view<u8>(h, p.final_obs.data(),
                                     {rows, size_t(p.shape().seats), size_t(p.row_bytes())});
                   })
      .def_prop_ro("final_mask",
                   [](Self h) {
                     AnyPool& p = pool_of(h);
                     const size_t rows = p.options().observe ? size_t(p.games()) : 0;
                     return view<u8>(h, p.final_mask.data(),
                                     {rows, size_t(p.shape().seats), size_t(p.shape().actions)});
                   })
      .def_prop_ro("reward",
                   [](Self h) {
                     AnyPool& p = pool_of(h);
                     return view<const f32>(
                         h, p.reward.data(),
                         {size_t(p.games()), size_t(p.shape().seats), size_t(p.roles())});
                   })
      .def_prop_ro("goal_result",
                   [](Self h) {
                     AnyPool& p = pool_of(h);
                     const size_t games = p.goal_result.size() ? size_t(p.games()) : 0;
                     return view<const u32>(h, p.goal_result.data(),
                                            {games, size_t(p.shape().seats)});
                   })
      .def_prop_ro("envs",
                   [](Self h) {
                     AnyPool& p = pool_of(h);
                     const StateBytes at = p.state().bytes();
                     return view<const u8>(h, at.envs, {size_t(p.games()), size_t(at.env_bytes)});
                   })
      .def_prop_ro("extra",
                   [](Self h) {
                     AnyPool& p = pool_of(h);
                     const AnyPoolState& state = p.state();
                     return view<const u8>(h, state.extra.data(),
                                           {size_t(p.games()), size_t(state.extra_bytes())});
                   })
      .def_prop_ro("memory",
                   [](Self h) {
                     AnyPool& p = pool_of(h);
                     return view<u8>(
                         h, p.state().memory.data(),
                         {size_t(p.games()), size_t(p.shape().seats), size_t(p.memory_bytes())});
                   })
      .def_prop_ro("legal",
                   [](Self h) {
                     AnyPool& p = pool_of(h);
                     const int words = nb::inst_ptr<BoundPool>(h)->rules.game->legal_words();
                     return view<const u64>(h, p.legal_bits(),
                                            {size_t(p.games() * p.rows()), size_t(words)});
                   })
      .def_prop_ro("setting", [](Self h) {
        AnyPool& p = pool_of(h);
        const StateBytes at = p.state().bytes();
        return view<const u8>(h, at.setting, {size_t(at.setting_bytes)});
      });
}

constexpr const char* kOtherBuild = "they were saved by another build";

// Worlds of the seats that are to act in rows, [rows, worlds, bytes of a game].
void draw_worlds(const BoundPool& p, In<i64> rows, u64 seed, int worlds, MaybeIn<f32> belief,
                 Out<u8> out) {
  constexpr Call call("Pool.draw_worlds");
  AnyPool& games = p.started(call);
  const AnyGame& game = *p.rules.game;
  const i64 count = call.size(rows, "rows"),
            bytes = call.product("worlds", {worlds, game.game_bytes()});
  const i64 width = belief_size(p.rules);
  const i64* row = call.take(rows, "rows", count);
  const f32* weights = call.take(belief, "belief", count * width);
  u8* drawn = call.take(out, "out", call.product("rows", {count, bytes}));
  for (i64 i = 0; i < count; ++i) {
    call.index(row[i], "row", p.rows());
    call.demand(games.seat[row[i]] >= 0, "no seat is to act in a row");
  }
  const StateBytes at = games.state().bytes();
  nb::gil_scoped_release released;
  for (i64 i = 0; i < count; ++i) {
    const i64 number = row[i] / games.rows();
    game.draw_worlds(p.rules.config.data(), at.envs + number * at.env_bytes, seed,
                     games.options().first_game + static_cast<u32>(number), games.seat[row[i]],
                     weights ? weights + i * width : nullptr, worlds, drawn + i * bytes);
  }
}

// What is wrong with tables from outside, which need not be as many as the pool's.
std::string check_envs(const BoundPool& p, In<u8> envs, In<u8> extras) {
  constexpr Call call("Pool.check");
  const AnyPoolState& state = p->state();
  const i64 each = state.bytes().env_bytes;
  const i64 bytes = call.size(envs, "envs"), count = bytes / each;
  if (bytes != count * each || call.size(extras, "extras") != count * state.extra_bytes())
    return kOtherBuild;
  return state.check(count, call.take(envs, "envs", bytes),
                     call.take(extras, "extras", count * state.extra_bytes()));
}

// Goes on from tables from outside, all of them or none.
std::string load_envs(BoundPool& p, u64 seed, In<u8> envs, In<u8> extras, In<u8> memories) {
  constexpr Call call("Pool.load");
  AnyPool& games = p.idle(call);
  const AnyPoolState& state = games.state();
  const i64 bytes = games.games() * state.bytes().env_bytes;
  if (call.size(envs, "envs") != bytes || call.size(extras, "extras") != state.extra.size() ||
      call.size(memories, "memories") != state.memory.size())
    return kOtherBuild;
  std::string wrong = games.load(seed, call.take(envs, "envs", bytes),
                                 call.take(extras, "extras", state.extra.size()),
                                 call.take(memories, "memories", state.memory.size()));
  if (wrong.empty()) p.changed();
  return wrong;
}

void bind_steps(nb::class_<BoundPool>& pool) {
  pool.def("reset",
           [](BoundPool& p) {
             AnyPool& games = p.idle(Call("Pool.reset"));
             p.changed();
             nb::gil_scoped_release released;
             games.reset();
           })
      .def("reseed",
           [](BoundPool& p, u64 seed) {
             p.idle(Call("Pool.reseed")).state().reseed(seed);
             p.changed(false);
           })
      .def("accept_discrete",
           [](BoundPool& p, int group, In<i32> actions) {
             constexpr Call call("Pool.accept_discrete");
             const i64 count = p.rows(p.ready(call, group)) * p.numbers(call, false);
             return accept(p, group, call.take(actions, "actions", count));
           })
      .def("accept_box",
           [](BoundPool& p, int group, In<f32> actions) {
             constexpr Call call("Pool.accept_box");
             const i64 count = p.rows(p.ready(call, group)) * p.numbers(call, true);
             return accept(p, group, call.take(actions, "actions", count));
           })
      .def("sample_discrete",
           [](BoundPool& p, int group, Out<i32> out) {
             constexpr Call call("Pool.sample_discrete");
             const i64 count = p.rows(p.ready(call, group)) * p.numbers(call, false);
             i32* to = call.take(out, "out", count);
             nb::gil_scoped_release released;
             p->sample(group, to);
           })
      .def("sample_box",
           [](BoundPool& p, int group, Out<f32> out) {
             constexpr Call call("Pool.sample_box");
             const i64 count = p.rows(p.ready(call, group)) * p.numbers(call, true);
             f32* to = call.take(out, "out", count);
             nb::gil_scoped_release released;
             p->sample(group, to);
           })
      .def("send",
           [](BoundPool& p, int group) {
             constexpr Call call("Pool.send");
             p.sent(call, p.ready(call, group));
             nb::gil_scoped_release released;
             p->send(group);
           })
      .def("recv",
           [](BoundPool& p, int group) {
             Call("Pool.recv").index(group, "slot", p->options().groups);
             p.received(group);
             nb::gil_scoped_release released;
             p->recv(group);
           })
      .def("step_discrete",
           [](BoundPool& p, In<i32> actions) {
             constexpr Call call("Pool.step_discrete");
             AnyPool& games = p.started(call);
             return stepped(p, games,
                            call.take(actions, "actions", p.rows() * p.numbers(call, false)));
           })
      .def("step_box",
           [](BoundPool& p, In<f32> actions) {
             constexpr Call call("Pool.step_box");
             AnyPool& games = p.started(call);
             return stepped(p, games,
                            call.take(actions, "actions", p.rows() * p.numbers(call, true)));
           })
      .def("run_random", &run_random)
      .def("check", &check_envs, "envs"_a, "extras"_a)
      .def("load", &load_envs, "seed"_a, "envs"_a, "extras"_a, "memories"_a);
}

// A number of one slot.
template <auto kOf>
auto of_group(const char* name) {
  return [name](const BoundPool& p, int group) {
    Call(name).index(group, "slot", p->options().groups);
    return kOf(*p, group);
  };
}

}  // namespace

void bind_pool(nb::module_& m) {
  nb::class_<BoundPool> pool(m, "Pool", "Games stepped together.");
  bind_views(pool);
  bind_steps(pool);
  pool.def_prop_ro("seed", [](const BoundPool& p) { return p->state().seed(); })
      .def_prop_ro("array_bytes", [](const BoundPool& p) { return p->bytes(); })
      .def("final_count",
           of_group<[](const AnyPool& p, int group) { return p.final_count[size_t(group)]; }>(
               "Pool.final_count"))
      .def("group_begin",
           of_group<[](const AnyPool& p, int group) { return p.group_begin(group); }>(
               "Pool.slot_begin"))
      .def("group_end", of_group<[](const AnyPool& p, int group) { return p.group_end(group); }>(
                            "Pool.slot_end"))
      .def("digest",
           [](const BoundPool& p) {
             const AnyPool& games = p.idle(Call("Pool.digest"));
             nb::gil_scoped_release released;
             return games.digest();
           })
      .def("audit",
           [](const BoundPool& p) {
             const AnyPoolState& state = p.idle(Call("Pool.audit")).state();
             nb::gil_scoped_release released;
             return state.audit();
           })
      .def("set_lineups", &set_lineups)
      .def("set_mixes", &set_mixes)
      .def("set_starts", &set_starts)
      .def("draw_worlds", &draw_worlds, "rows"_a, "seed"_a, "worlds"_a, "belief"_a.none(), "out"_a)
      .def_prop_ro("game_bytes", [](const BoundPool& p) { return p->state().bytes().game_bytes; })
      .def_prop_ro("starts_offset",
                   [](const BoundPool& p) { return p->state().bytes().starts_offset; })
      .def("seated",
           [](const BoundPool& p, int policies) {
             constexpr Call call("Pool.seated");
             call.between(policies, "policies", 0, std::numeric_limits<i16>::max() + 1);
             return p.idle(call).state().seated(policies);
           })
      .def("set_counting",
           [](BoundPool& p, bool on, i16 player) {
             p.idle(Call("Pool.set_counting")).counters.count_for(on, player);
           })
      .def("counts", [](const BoundPool& p) { return p.idle(Call("Pool.counts")).counters.sums(); })
      .def("clear_counts", [](BoundPool& p) { p.idle(Call("Pool.clear_counts")).counters.clear(); })
      .def("set_weights",
           [](BoundPool& p, const std::vector<f32>& weights) {
             constexpr Call call("Pool.set_weights");
             check_weights(call, weights, p.rules.weights());
             p.idle(call).state().set_weights(weights);
           })
      .def("weights", [](const BoundPool& p) { return p->state().weights(); })
      .def("set_config", &set_config);
  m.def("make_pool", &make_pool, "rules"_a, "games"_a, "seed"_a, "first_game"_a, "threads"_a,
        "groups"_a, "skip_forced"_a, "observe"_a, "memory"_a, "every_game"_a, "opening_plies"_a,
        "goal_results"_a = false);
  m.attr("MAX_LINEUPS") = kMaxLineups;
  m.attr("MAX_MIXES") = kMaxMixes;
  m.attr("MAX_MIX_PLAYERS") = kMaxMixPlayers;
  m.attr("FIRST_MIX") = kFirstMix;
  m.attr("MAX_THREADS") = kMaxThreads;
}

}  // namespace sparring
