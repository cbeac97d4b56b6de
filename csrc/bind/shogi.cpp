// Shogi from SFEN to Python: what needs a position and no game.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <map>
#include <string>
#include <tuple>

#include "bind/arrays.hpp"
#include "games/shogi.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sparring {
namespace {

constexpr int kMaxDepth = 64;
constexpr int kDeclarations = 3;

shogi::Position read(const std::string& sfen) {
  const shogi::Sfen found = shogi::SfenReader::read(sfen);
  if (!found.wrong.empty()) throw nb::value_error(found.wrong.c_str());
  return found.position;
}

shogi::Position read_playable(const std::string& sfen) {
  const shogi::Sfen found = shogi::SfenReader::read(sfen);
  if (!found.unplayable.empty()) throw nb::value_error(found.unplayable.c_str());
  return read(sfen);
}

std::map<std::string, int> moves(const std::string& sfen) {
  const shogi::Position position = read(sfen);
  std::map<std::string, int> named;
  for (const int action : shogi::actions_of(position.targets(position.safety())))
    named[shogi::usi_of(position, action)] = action;
  return named;
}

u64 perft(const std::string& sfen, int depth) {
  Call("shogi_perft").between(depth, "depth", 0, kMaxDepth);
  const shogi::Position position = read_playable(sfen);
  nb::gil_scoped_release released;
  return shogi::perft(position, depth);
}

std::tuple<int, int, int> camp(const std::string& sfen, int rule) {
  Call("shogi_camp").index(rule, "rule", kDeclarations);
  shogi::Game game;
  game.start_from(read(sfen), 1);
  const shogi::Camp own = game.camp();
  return {own.pieces, own.points, static_cast<int>(game.claimed({.declaration = rule}))};
}

}  // namespace

void bind_shogi(nb::module_& m) {
  m.def("shogi_moves", &moves, "sfen"_a);
  m.def("shogi_perft", &perft, "sfen"_a, "depth"_a);
  m.def("shogi_camp", &camp, "sfen"_a, "rule"_a);
}

}  // namespace sparring
