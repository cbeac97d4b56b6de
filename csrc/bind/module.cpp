// The Python extension: thin wrappers, no logic of its own.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <stdexcept>

#include "bind/arrays.hpp"
#include "bind/rules.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sparring {
namespace {

const char* type_name(Type type) {
  switch (type) {
    case Type::kU8:
      return "uint8";
    case Type::kI8:
      return "int8";
    case Type::kU16:
      return "uint16";
    case Type::kI16:
      return "int16";
    case Type::kU32:
      return "uint32";
    case Type::kI32:
      return "int32";
    case Type::kU64:
      return "uint64";
    default:
      return "float32";
  }
}

const AnyGame& find_game(const std::string& name) {
  for (const auto& game : registered_games())
    if (game->spec(game->default_config().data()).name == name) return *game;
  throw std::out_of_range("no game called " + name);
}

using FieldRow = std::tuple<std::string, std::string, int, f64, f64, std::string, std::string, bool,
                            std::vector<f64>>;

template <class T>
std::vector<f64> read_as(const u8* at, int count) {
  std::vector<f64> values;
  for (int i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, at + i * static_cast<int>(sizeof(T)), sizeof(T));
    values.push_back(static_cast<f64>(value));
  }
  return values;
}

std::vector<f64> read_field(const Field& field, const u8* base) {
  return field.type == Type::kF32 ? read_as<f32>(base + field.offset, field.count)
                                  : read_as<i32>(base + field.offset, field.count);
}

void write_field(const Field& field, u8* base, const std::vector<f64>& values) {
  if (static_cast<int>(values.size()) != field.count)
    throw std::invalid_argument(std::string(field.name) + " needs " + std::to_string(field.count) +
                                " values");
  for (size_t i = 0; i < values.size(); ++i) {
    u8* at = base + field.offset + 4 * i;
    const f32 real = static_cast<f32>(values[i]);
    const i32 whole = static_cast<i32>(values[i]);
    if (field.type == Type::kF32)
      std::memcpy(at, &real, 4);
    else
      std::memcpy(at, &whole, 4);
  }
}

Rules make_rules(const std::string& name, const std::vector<std::vector<f64>>& values) {
  const AnyGame& game = find_game(name);
  Rules rules{&game, game.default_config()};
  const std::vector<Field> fields = game.config_fields();
  if (values.size() != fields.size()) throw std::invalid_argument("one list per field is needed");
  for (size_t i = 0; i < fields.size(); ++i) write_field(fields[i], rules.config.data(), values[i]);
  if (const std::string wrong = game.invalid(rules.config.data()); !wrong.empty())
    throw std::invalid_argument(wrong);
  return rules;
}

std::vector<FieldRow> field_rows(const std::vector<Field>& fields, const u8* base) {
  std::vector<FieldRow> rows;
  for (const Field& f : fields)
    rows.emplace_back(f.name, type_name(f.type), f.count, f.low, f.high, f.words, f.help, f.live,
                      base ? read_field(f, base) : std::vector<f64>{});
  return rows;
}

// An array that lives in a pool; the view keeps the pool alive.
template <class T>
using View = nb::ndarray<nb::numpy, T>;

template <class T, class U>
View<T> view(nb::handle owner, U* data, std::initializer_list<size_t> shape) {
  return View<T>(data, shape, owner);
}

// Game, row, seat, action, component, value, legal actions.
using RefusalRow = std::tuple<i64, i64, int, i64, int, f32, std::vector<int>>;

std::optional<RefusalRow> refusal_row(const Refusal& r) {
  if (r.game < 0) return std::nullopt;
  return RefusalRow{r.game, r.row, r.seat, r.action, r.component, r.value, r.legal};
}

// Steps all games; says which action could not be played.
std::optional<RefusalRow> stepped(AnyPool& pool, const void* actions) {
  Refusal refused;
  {
    nb::gil_scoped_release released;
    refused = pool.answer_all(actions);
  }
  return refusal_row(refused);
}

// Runs the pool on random play inside C++; the yardstick for calls from Python.
f64 run_random(AnyPool& pool, int steps) {
  const i64 rows = pool.games() * pool.rows();
  const size_t width = pool.box() ? sizeof(f32) * static_cast<size_t>(pool.box()) : sizeof(i32);
  std::vector<u8> actions(static_cast<size_t>(rows) * width);
  const auto started = std::chrono::steady_clock::now();
  for (int step = 0; step < steps; ++step) {
    for (int slot = 0; slot < pool.options().slots; ++slot)
      pool.sample(
          slot, actions.data() + static_cast<size_t>(pool.slot_begin(slot) * pool.rows()) * width);
    pool.answer_all(actions.data());
  }
  return std::chrono::duration<f64>(std::chrono::steady_clock::now() - started).count();
}

void bind_rules(nb::module_& m) {
  nb::class_<Rules>(m, "Rules", "A game with a configuration.")
      .def(nb::init<const Rules&>())
      .def_prop_ro("name", [](const Rules& r) { return r.game->spec(r.config.data()).name; })
      .def_prop_ro("title", [](const Rules& r) { return r.game->spec(r.config.data()).title; })
      .def_prop_ro("rules_version",
                   [](const Rules& r) { return r.game->spec(r.config.data()).rules_version; })
      .def_prop_ro("seats", [](const Rules& r) { return r.game->shape(r.config.data()).seats; })
      .def_prop_ro("actions", [](const Rules& r) { return r.game->shape(r.config.data()).actions; })
      .def_prop_ro("obs_bytes",
                   [](const Rules& r) { return r.game->shape(r.config.data()).obs_bytes; })
      .def_prop_ro("box", [](const Rules& r) { return r.game->box(); })
      .def_prop_ro("legal_words", [](const Rules& r) { return r.game->legal_words(); })
      .def_prop_ro("rows", [](const Rules& r) { return r.game->rows(); })
      .def_prop_ro("zero_sum",
                   [](const Rules& r) { return r.game->spec(r.config.data()).zero_sum; })
      .def_prop_ro("chance", [](const Rules& r) { return r.game->spec(r.config.data()).chance; })
      .def_prop_ro("board", [](const Rules& r) { return r.game->spec(r.config.data()).board; })
      .def_prop_ro("roles", [](const Rules& r) { return r.game->spec(r.config.data()).role_names; })
      .def_prop_ro("told_by", [](const Rules& r) { return r.game->spec(r.config.data()).told_by; })
      .def_prop_ro("parts", [](const Rules& r) { return r.game->parts(); })
      .def_prop_ro("bots", [](const Rules& r) { return r.game->bots(); })
      .def_prop_ro("ends", [](const Rules& r) { return r.game->ends(); })
      .def_prop_ro("counters", [](const Rules& r) { return r.game->counters(); })
      .def_prop_ro(
          "stats",
          [](const Rules& r) {
            using Counters = std::vector<int>;
            std::vector<std::tuple<std::string, Counters, Counters, std::string, bool>> rows;
            for (const Stat& s : r.game->stats(r.config.data()))
              rows.emplace_back(s.name, s.above, s.below, s.help, s.detail);
            return rows;
          })
      .def_prop_ro("hides", [](const Rules& r) { return r.game->hides(); })
      .def_prop_ro("game_bytes", [](const Rules& r) { return r.game->game_bytes(); })
      .def_prop_ro("first_undeclared",
                   [](const Rules& r) { return r.game->first_undeclared(r.config.data()); })
      .def_prop_ro("has_goals", [](const Rules& r) { return r.game->goals() != nullptr; })
      .def_prop_ro("default_weights",
                   [](const Rules& r) { return r.game->default_weights(r.config.data()); })
      .def_prop_ro("config_bytes",
                   [](const Rules& r) {
                     return nb::bytes(reinterpret_cast<const char*>(r.config.data()),
                                      r.config.size());
                   })
      .def_prop_ro(
          "config_fields",
          [](const Rules& r) { return field_rows(r.game->config_fields(), r.config.data()); })
      .def_prop_ro("blocks",
                   [](const Rules& r) {
                     using ColumnRow = std::tuple<std::string, std::string, f32>;
                     std::vector<std::tuple<std::string, int, std::vector<ColumnRow>>> rows;
                     for (const Block& block : r.game->spec(r.config.data()).blocks) {
                       std::vector<ColumnRow> columns;
                       for (const Column& c : block.columns)
                         columns.emplace_back(c.name, type_name(c.type), c.divisor);
                       rows.emplace_back(block.name, block.rows, columns);
                     }
                     return rows;
                   })
      .def("action_name",
           [](const Rules& r, int action) { return r.game->action_name(r.config.data(), action); });
  m.def("game_names", [] {
    std::vector<std::string> names;
    for (const auto& game : registered_games())
      names.push_back(game->spec(game->default_config().data()).name);
    return names;
  });
  m.def("default_fields", [](const std::string& name) {
    const AnyGame& game = find_game(name);
    return field_rows(game.config_fields(), game.default_config().data());
  });
  m.def("make_rules", &make_rules, "name"_a, "values"_a);
}

void bind_state(nb::module_& m) {
  nb::class_<AnyState>(m, "State", "One game.")
      .def("clone", &AnyState::clone)
      .def("seat", &AnyState::seat, "row"_a = 0)
      .def("role", &AnyState::role, "row"_a = 0)
      .def("legal", &AnyState::legal, "row"_a = 0)
      .def("apply_discrete",
           [](AnyState& s, const std::vector<i32>& actions) {
             return refusal_row(s.apply(actions.data()));
           })
      .def("apply_box",
           [](AnyState& s, const std::vector<f32>& actions) {
             return refusal_row(s.apply(actions.data()));
           })
      .def("observe", [](const AnyState& s, int seat, Out<u8> out) { s.observe(seat, out.data()); })
      .def("score", &AnyState::score)
      .def("rewards", &AnyState::rewards)
      .def("skipped", &AnyState::skipped)
      .def_prop_ro("terminated", &AnyState::terminated)
      .def_prop_ro("truncated", &AnyState::truncated)
      .def_prop_ro("reason", &AnyState::reason)
      .def("text", &AnyState::text)
      .def("setup", &AnyState::setup)
      .def("sit_down",
           [](AnyState& s, In<u8> table, In<u8> side) {
             return s.sit_down({table.data(), table.data() + table.size()},
                               {side.data(), side.data() + side.size()});
           })
      .def("audit", &AnyState::audit)
      .def("ask", &AnyState::ask)
      .def("resample_hidden", &AnyState::resample_hidden)
      .def("serialize",
           [](const AnyState& s) {
             const std::vector<u8> raw = s.bytes();
             return nb::bytes(raw.data(), raw.size());
           })
      .def("load",
           [](AnyState& s, nb::bytes raw) {
             const u8* at = static_cast<const u8*>(raw.data());
             return s.load({at, at + raw.size()});
           })
      .def("check", &AnyState::check)
      .def("position",
           [](const AnyState& s) {
             const std::vector<u8> game = s.position(), side = s.side();
             return std::make_tuple(nb::bytes(game.data(), game.size()),
                                    nb::bytes(side.data(), side.size()));
           })
      .def("field", [](const AnyState& s, const Rules& rules, const std::string& name) {
        for (const Field& f : rules.game->state_fields())
          if (name == f.name) {
            const char* at = reinterpret_cast<const char*>(s.game_bytes()) + f.offset;
            return std::make_tuple(std::string(type_name(f.type)),
                                   nb::bytes(at, static_cast<size_t>(size_of(f.type) * f.count)));
          }
        throw std::out_of_range("no field called " + name);
      });
  m.def("state_field_names", [](const Rules& rules) {
    std::vector<std::string> names;
    for (const Field& f : rules.game->state_fields()) names.push_back(f.name);
    return names;
  });
  m.def(
      "make_state",
      [](const Rules& rules, u64 seed, u32 game, bool skip_forced,
         const std::vector<f32>& weights) {
        return rules.game->make_state(rules.config.data(), seed, game, skip_forced, weights);
      },
      "rules"_a, "seed"_a, "game"_a, "skip_forced"_a, "weights"_a);
}

void bind_pool(nb::module_& m) {
  using Self = nb::handle_t<AnyPool>;
  const auto self = [](Self h) -> AnyPool& { return *nb::inst_ptr<AnyPool>(h); };
  nb::class_<AnyPool> pool(m, "Pool", "Games stepped together.");
  const auto per_row = [&](const char* name, auto member) {
    pool.def_prop_ro(name, [=](Self h) {
      AnyPool& p = self(h);
      using T = std::remove_pointer_t<decltype((p.*member).data())>;
      return view<T>(h, (p.*member).data(), {size_t(p.games() * p.rows())});
    });
  };
  const auto per_game = [&](const char* name, auto member) {
    pool.def_prop_ro(name, [=](Self h) {
      AnyPool& p = self(h);
      using T = std::remove_pointer_t<decltype((p.*member).data())>;
      return view<T>(h, (p.*member).data(), {size_t(p.games())});
    });
  };
  const auto per_seat = [&](const char* name, auto member) {
    pool.def_prop_ro(name, [=](Self h) {
      AnyPool& p = self(h);
      using T = std::remove_pointer_t<decltype((p.*member).data())>;
      return view<T>(h, (p.*member).data(), {size_t(p.games()), size_t(p.shape().seats)});
    });
  };
  per_row("seat", &AnyPool::seat);
  per_row("role", &AnyPool::role);
  per_row("policy", &AnyPool::policy);
  per_game("final_game", &AnyPool::final_game);
  per_game("final_length", &AnyPool::final_length);
  per_game("final_reason", &AnyPool::final_reason);
  per_game("final_moves", &AnyPool::final_moves);
  per_game("left_out", &AnyPool::left_out);
  per_seat("final_score", &AnyPool::final_score);
  per_seat("final_policy", &AnyPool::final_policy);
  per_seat("skipped", &AnyPool::skipped);
  pool.def_prop_ro("obs",
                   [=](Self h) {
                     AnyPool& p = self(h);
                     const size_t rows = p.obs.size() ? size_t(p.games() * p.rows()) : 0;
                     return view<u8>(h, p.obs.data(), {rows, size_t(p.row_bytes())});
                   })
      .def_prop_ro("mask",
                   [=](Self h) {
                     AnyPool& p = self(h);
                     const size_t rows = p.options().observe ? size_t(p.games() * p.rows()) : 0;
                     return view<u8>(h, p.mask.data(), {rows, size_t(p.shape().actions)});
                   })
      .def_prop_ro("final_obs",
                   [=](Self h) {
                     AnyPool& p = self(h);
                     const size_t rows = p.obs.size() ? size_t(p.games()) : 0;
                     return view<u8>(h, p.final_obs.data(),
                                     {rows, size_t(p.shape().seats), size_t(p.row_bytes())});
                   })
      .def_prop_ro("final_mask",
                   [=](Self h) {
                     AnyPool& p = self(h);
                     const size_t rows = p.options().observe ? size_t(p.games()) : 0;
                     return view<u8>(h, p.final_mask.data(),
                                     {rows, size_t(p.shape().seats), size_t(p.shape().actions)});
                   })
      .def_prop_ro("reward",
                   [=](Self h) {
                     AnyPool& p = self(h);
                     return view<f32>(
                         h, p.reward.data(),
                         {size_t(p.games()), size_t(p.shape().seats), size_t(p.roles())});
                   })
      .def_prop_ro("terminated",
                   [=](Self h) {
                     AnyPool& p = self(h);
                     return view<bool>(h, reinterpret_cast<bool*>(p.terminated.data()),
                                       {size_t(p.games())});
                   })
      .def_prop_ro("record",
                   [=](Self h) {
                     AnyPool& p = self(h);
                     const size_t games = p.record.size() ? size_t(p.games()) : 0;
                     return view<u32>(h, p.record.data(), {games, size_t(p.shape().seats)});
                   })
      .def_prop_ro("truncated",
                   [=](Self h) {
                     AnyPool& p = self(h);
                     return view<bool>(h, reinterpret_cast<bool*>(p.truncated.data()),
                                       {size_t(p.games())});
                   })
      .def_prop_ro("tables",
                   [=](Self h) {
                     AnyPool& p = self(h);
                     return view<const u8>(h, p.tables(),
                                           {size_t(p.games()), size_t(p.table_bytes())});
                   })
      .def_prop_ro("side",
                   [=](Self h) {
                     AnyPool& p = self(h);
                     return view<const u8>(h, p.side.data(),
                                           {size_t(p.games()), size_t(p.side_bytes())});
                   })
      .def_prop_ro("memory",
                   [=](Self h) {
                     AnyPool& p = self(h);
                     return view<u8>(
                         h, p.memory.data(),
                         {size_t(p.games()), size_t(p.shape().seats), size_t(p.memory_bytes())});
                   })
      .def_prop_ro("legal",
                   [=](Self h) {
                     AnyPool& p = self(h);
                     return view<const u64>(
                         h, p.legal_bits(),
                         {size_t(p.games() * p.rows()), size_t(p.legal_words())});
                   })
      .def_prop_ro("setting",
                   [=](Self h) {
                     AnyPool& p = self(h);
                     return view<const u8>(h, p.setting_bytes(), {size_t(p.setting_size())});
                   })
      .def_prop_ro("seed", &AnyPool::seed)
      .def_prop_ro("array_bytes", &AnyPool::bytes)
      .def("final_count", [](const AnyPool& p, int slot) { return p.final_count[size_t(slot)]; })
      .def("slot_begin", &AnyPool::slot_begin)
      .def("slot_end", &AnyPool::slot_end)
      .def("reset", &AnyPool::reset, nb::call_guard<nb::gil_scoped_release>())
      .def("reseed", &AnyPool::reseed)
      .def("accept_discrete",
           [](AnyPool& p, int slot, In<i32> actions) {
             return refusal_row(p.accept(slot, actions.data()));
           })
      .def("accept_box",
           [](AnyPool& p, int slot, In<f32> actions) {
             return refusal_row(p.accept(slot, actions.data()));
           })
      .def("sample_discrete",
           [](AnyPool& p, int slot, Out<i32> out) {
             nb::gil_scoped_release released;
             p.sample(slot, out.data());
           })
      .def("sample_box",
           [](AnyPool& p, int slot, Out<f32> out) {
             nb::gil_scoped_release released;
             p.sample(slot, out.data());
           })
      .def("send", &AnyPool::send, nb::call_guard<nb::gil_scoped_release>())
      .def("recv", &AnyPool::recv, nb::call_guard<nb::gil_scoped_release>())
      .def("step_discrete", [](AnyPool& p, In<i32> actions) { return stepped(p, actions.data()); })
      .def("step_box", [](AnyPool& p, In<f32> actions) { return stepped(p, actions.data()); })
      .def("run_random", &run_random, nb::call_guard<nb::gil_scoped_release>())
      .def("digest", &AnyPool::digest, nb::call_guard<nb::gil_scoped_release>())
      .def("audit", &AnyPool::audit, nb::call_guard<nb::gil_scoped_release>())
      .def("check",
           [](const AnyPool& p, In<u8> tables, In<u8> sides) {
             const i64 count = i64(tables.size()) / p.table_bytes();
             if (i64(tables.size()) != count * p.table_bytes() ||
                 i64(sides.size()) != count * p.side_bytes())
               return std::string("they were saved by another build");
             return p.check(count, tables.data(), sides.data());
           })
      .def("load",
           [](AnyPool& p, u64 seed, In<u8> tables, In<u8> sides, In<u8> memories) {
             if (i64(tables.size()) != p.games() * p.table_bytes() ||
                 i64(sides.size()) != p.side.size() || i64(memories.size()) != p.memory.size())
               return std::string("they were saved by another build");
             return p.load(seed, tables.data(), sides.data(), memories.data());
           })
      .def("set_lineups", &AnyPool::set_lineups)
      .def("set_pots", &AnyPool::set_pots)
      .def("set_starts",
           [](AnyPool& p, In<f64> up_to, nb::bytes games, In<i32> side_of, nb::bytes sides) {
             const u8* side = static_cast<const u8*>(sides.data());
             return p.set_starts(
                 {up_to.data(), up_to.data() + up_to.size()}, static_cast<const u8*>(games.data()),
                 {side_of.data(), side_of.data() + side_of.size()}, {side, side + sides.size()});
           })
      .def_prop_ro("game_bytes", &AnyPool::game_bytes)
      .def_prop_ro("starts_offset", &AnyPool::starts_offset)
      .def("seated", &AnyPool::seated)
      .def("set_counting", &AnyPool::set_counting)
      .def("counts", &AnyPool::counts)
      .def("clear_counts", &AnyPool::clear_counts)
      .def("set_weights", &AnyPool::set_weights)
      .def("weights", &AnyPool::weights)
      .def("set_config", [](AnyPool& p, const Rules& rules) {
        std::memcpy(p.config_bytes(), rules.config.data(), rules.config.size());
      });
  m.def(
      "make_pool",
      [](const Rules& rules, i64 games, u64 seed, u32 first_game, int threads, int slots,
         bool skip_forced, bool observe, int memory, bool every_game, u32 opening_plies,
         bool records) {
        return rules.game->make_pool(rules.config.data(),
                                     {games, seed, first_game, threads, slots, skip_forced, observe,
                                      memory, every_game, opening_plies, records});
      },
      "rules"_a, "games"_a, "seed"_a, "first_game"_a, "threads"_a, "slots"_a, "skip_forced"_a,
      "observe"_a, "memory"_a, "every_game"_a, "opening_plies"_a, "records"_a = false);
  m.attr("MAX_LINEUPS") = kMaxLineups;
  m.attr("MAX_POTS") = kMaxPots;
  m.attr("MAX_POT_PLAYERS") = kMaxPotPlayers;
  m.attr("FIRST_POT") = kFirstPot;
  m.attr("MAX_THREADS") = kMaxThreads;
}

}  // namespace
}  // namespace sparring

namespace sparring {
void bind_goals(nb::module_& m);
void bind_layers(nb::module_& m);
void bind_learning(nb::module_& m);
void bind_replay(nb::module_& m);
void bind_replay_steps(nb::module_& m);
void bind_shogi(nb::module_& m);
void bind_updating(nb::module_& m);
}  // namespace sparring

NB_MODULE(_native, m) {
  m.doc() = "sparring's native core.";
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const sparring::Trouble& wrong) {
      PyErr_SetString(nb::module_::import_("sparring.errors").attr("ConfigError").ptr(),
                      wrong.what());
    }
  });
  sparring::bind_rules(m);
  sparring::bind_state(m);
  sparring::bind_pool(m);
  sparring::bind_goals(m);
  sparring::bind_layers(m);
  sparring::bind_learning(m);
  sparring::bind_replay(m);
  sparring::bind_replay_steps(m);
  sparring::bind_shogi(m);
  sparring::bind_updating(m);
}
