// The Python extension: thin wrappers, no logic of its own.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "bind/rules.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sparring {
namespace {

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
  constexpr Call call("make_rules");
  if (static_cast<int>(values.size()) != field.count)
    call.refuse(std::string(field.name) + " needs " + std::to_string(field.count) + " values");
  for (size_t i = 0; i < values.size(); ++i) {
    u8* at = base + field.offset + 4 * i;
    if (!(values[i] >= field.low && values[i] <= field.high))  // also what is not a number
      call.refuse(std::string(field.name) + " " + std::to_string(values[i]) + " is outside " +
                  std::to_string(field.low) + ".." + std::to_string(field.high));
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
    rows.emplace_back(f.name, type_name(f.type), f.count, f.low, f.high, f.value_names, f.help,
                      f.live, base ? read_field(f, base) : std::vector<f64>{});
  return rows;
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
      .def_prop_ro("role_features",
                   [](const Rules& r) { return r.game->spec(r.config.data()).role_features; })
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
              rows.emplace_back(s.name, s.numerator, s.denominator, s.help, s.detail);
            return rows;
          })
      .def_prop_ro("hides", [](const Rules& r) { return r.game->hides(); })
      .def_prop_ro("belief_size", [](const Rules& r) { return belief_size(r); })
      .def_prop_ro("win_part", [](const Rules& r) { return r.game->win_part(); })
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
      .def("action_name", [](const Rules& r, int action) {
        Call("Rules.action_name").index(action, "action", r.shape().actions);
        return r.game->action_name(r.config.data(), action);
      });
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

}  // namespace
}  // namespace sparring

namespace sparring {
void bind_exact(nb::module_& m);
void bind_goals(nb::module_& m);
void bind_layers(nb::module_& m);
void bind_learning(nb::module_& m);
void bind_pool(nb::module_& m);
void bind_replay(nb::module_& m);
void bind_replay_steps(nb::module_& m);
void bind_shogi(nb::module_& m);
void bind_scripts(nb::module_& m);
void bind_search(nb::module_& m);
void bind_state(nb::module_& m);
void bind_transitions(nb::module_& m);
void bind_updating(nb::module_& m);
}  // namespace sparring

NB_MODULE(_native, m) {
  m.doc() = "sparring's native core.";
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const sparring::ConfigError& wrong) {
      PyErr_SetString(nb::module_::import_("sparring.errors").attr("ConfigError").ptr(),
                      wrong.what());
    }
  });
  sparring::bind_rules(m);
  sparring::bind_scripts(m);
  sparring::bind_search(m);
  sparring::bind_state(m);
  sparring::bind_exact(m);
  sparring::bind_pool(m);
  sparring::bind_goals(m);
  sparring::bind_layers(m);
  sparring::bind_transitions(m);
  sparring::bind_learning(m);
  sparring::bind_replay(m);
  sparring::bind_replay_steps(m);
  sparring::bind_shogi(m);
  sparring::bind_updating(m);
}
