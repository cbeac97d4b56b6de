// Games whose rules are written in Python; see core/scripted.hpp.
#include "core/scripted.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>

#include "bind/rules.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sparring {
namespace {

std::vector<AnyScripted*>& scripts() {
  static std::vector<AnyScripted*> all;
  return all;
}

AnyScripted& script_called(int id) {
  constexpr Call call("script");
  return *scripts()[static_cast<size_t>(call.index(id, "id", static_cast<i64>(scripts().size())))];
}

template <class T>
T entry(const nb::dict& from, const char* name) {
  return nb::cast<T>(from[name]);
}

Type type_named(const std::string& name) {
  for (const Type type : {Type::kU8, Type::kI8, Type::kU16, Type::kI16, Type::kU32, Type::kI32,
                          Type::kU64, Type::kF32, Type::kI64, Type::kF64})
    if (name == type_name(type)) return type;
  throw std::invalid_argument("no type called " + name);
}

using ColumnRow = std::tuple<std::string, std::string, f32>;
using BlockRow = std::tuple<std::string, int, std::vector<ColumnRow>>;
using FieldOfState = std::tuple<std::string, std::string, int, int, f64, f64>;
using FlagRow = std::tuple<std::string, std::string, std::string, f64, f64, bool, int>;
using StatRow = std::tuple<std::string, std::vector<int>, std::vector<int>, std::string>;

Spec spec_of(const nb::dict& given) {
  Spec spec{.name = entry<std::string>(given, "name"),
            .title = entry<std::string>(given, "title"),
            .rules_version = entry<int>(given, "version"),
            .blocks = {},
            .role_names = entry<std::vector<std::string>>(given, "roles"),
            .board = entry<std::vector<int>>(given, "board"),
            .zero_sum = entry<bool>(given, "zero_sum"),
            .chance = entry<bool>(given, "chance"),
            .role_features = entry<std::vector<std::vector<std::string>>>(given, "role_features")};
  for (const auto& [name, rows, columns] : entry<std::vector<BlockRow>>(given, "blocks")) {
    Block block{name, rows, {}};
    for (const auto& [column, type, divisor] : columns)
      block.columns.push_back({column, type_named(type), divisor});
    spec.blocks.push_back(block);
  }
  return spec;
}

void take_names(AnyScripted& game, const nb::dict& given) {
  using Names = std::vector<std::string>;
  game.part_names = entry<Names>(given, "parts");
  game.bot_names = entry<Names>(given, "bots");
  game.end_names = entry<Names>(given, "ends");
  game.counter_names = entry<Names>(given, "counters");
  game.action_names = entry<Names>(given, "action_names");
  game.part_weights = entry<std::vector<f32>>(given, "weights");
  for (const auto& [name, above, below, help] : entry<std::vector<StatRow>>(given, "stats"))
    game.statistics.push_back({name, above, below, help});
}

void take_flags(AnyScripted& game, const nb::dict& given) {
  const auto rows = entry<std::vector<FlagRow>>(given, "flags");
  game.flag_texts.reserve(rows.size() * 3);  // Fields point to the texts
  for (const auto& [name, words, help, low, high, live, value] : rows) {
    for (const std::string& text : {name, words, help}) game.flag_texts.push_back(text);
    const std::string* texts = &game.flag_texts[game.flag_texts.size() - 3];
    const size_t offset = offsetof(ScriptConfig, flag) + game.flags.size() * sizeof(i32);
    game.flags.push_back(
        field<i32>(texts[0].c_str(), offset, low, high, texts[1].c_str(), texts[2].c_str(), live));
    game.flag_values.push_back(value);
  }
}

void take_functions(Script& script, const std::vector<u64>& addresses) {
  constexpr size_t count = static_cast<size_t>(Rule::kCount);
  if (addresses.size() != count)
    throw std::invalid_argument(std::to_string(count) + " functions are needed");
  for (size_t i = 0; i < count; ++i)
    script.function[i] = reinterpret_cast<ScriptFunction>(addresses[i]);
}

// Adds a game to the registry for the rest of the program; returns the number of its script.
int register_script(const nb::typed<nb::dict, nb::str, nb::any>& given,
                    const std::vector<u64>& functions) {
  constexpr Call call("register_script");
  const int bytes = entry<int>(given, "state_bytes"), actions = entry<int>(given, "actions");
  const ScriptSize* found = nullptr;
  for (const ScriptSize& size : script_sizes())
    if (size.state_bytes >= bytes && size.actions >= actions &&
        (!found || size.state_bytes < found->state_bytes ||
         (size.state_bytes == found->state_bytes && size.actions < found->actions)))
      found = &size;
  call.demand(found, "the state or the actions are too many");
  AnyScripted* game = nullptr;
  std::unique_ptr<AnyGame> made = found->make(game);
  take_names(*game, given);
  take_flags(*game, given);
  Script& script = game->script;
  script.id = static_cast<int>(scripts().size());
  script.spec = spec_of(given);
  const int seats = entry<int>(given, "seats"), blocks = padded(bytes_of(script.spec.blocks));
  const auto count = [](const auto& names) { return static_cast<int>(names.size()); };
  script.shape = {.seats = seats, .actions = actions, .obs_bytes = blocks};
  script.counts = {.roles = count(script.spec.role_names),
                   .parts = count(game->part_names),
                   .ends = count(game->end_names),
                   .counters = count(game->counter_names),
                   .bots = count(game->bot_names) - 1};
  call.between(seats, "seats", 1, kScriptSeats);
  call.between(script.counts.roles, "roles", 1, kScriptRoles);
  call.between(script.counts.parts, "parts", 1, kScriptParts);
  call.between(script.counts.ends, "ends", 1, kScriptEnds);
  call.between(script.counts.counters, "counters", 0, kScriptCounters);
  call.between(script.counts.bots, "bots", 0, kScriptBots);
  call.between(count(game->flags), "flags", 0, kScriptFlags);
  script.state_bytes = bytes;
  script.paid_offset = entry<int>(given, "paid_offset");
  script.truncating = entry<u32>(given, "truncating");
  for (const auto& [name, type, offset, length, low, high] :
       entry<std::vector<FieldOfState>>(given, "fields"))
    script.fields.push_back({name, type_named(type), offset, length, low, high});
  take_functions(script, functions);
  scripts().push_back(game);
  registered_games().push_back(std::move(made));
  return script.id;
}

using FailureRow =
    std::tuple<int, i64, int, std::string, nb::bytes, std::vector<i32>, std::vector<u32>>;

FailureRow take_failure(int id) {
  const ScriptFailure failure = script_called(id).script.take_failure();
  const char* state = reinterpret_cast<const char*>(failure.state.data());
  return {failure.rule,
          failure.argument,
          failure.bot,
          failure.reason,
          nb::bytes(state, failure.state.size()),
          failure.flags,
          failure.rng};
}

std::vector<std::tuple<int, int>> sizes() {
  std::vector<std::tuple<int, int>> found;
  for (const ScriptSize& size : script_sizes()) found.emplace_back(size.state_bytes, size.actions);
  return found;
}

}  // namespace

// ScriptError becomes the exception that Python makes of the failed call.
void translate_script_error(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const ScriptError& failed) {
    try {
      const nb::object error =
          nb::module_::import_("sparring.pygames.failures").attr("explain")(failed.script);
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
    } catch (nb::python_error& other) {
      other.restore();
    }
  }
}

void bind_scripts(nb::module_& m) {
  nb::register_exception_translator(&translate_script_error);
  m.def("register_script", &register_script, "given"_a, "functions"_a);
  m.def("take_script_failure", &take_failure, "script"_a);
  m.def("script_sizes", &sizes);
}

}  // namespace sparring
