// Exact values of small games to Python; see exact/tree.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "bind/bound_state.hpp"
#include "exact/best_response.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sparring {
namespace {

std::unique_ptr<GameTree> make_tree(const std::vector<const BoundState*>& deals, i64 positions,
                                    int depth, bool recall) {
  constexpr Call call("make_tree");
  call.demand(!deals.empty(), "at least one deal is needed");
  const Rules& rules = deals[0]->rules();
  call.demand(rules.game->box() == 0, "the game has continuous actions");
  const Shape shape = rules.shape();
  const TreeShape needed{shape.seats, rules.game->rows(), shape.actions, shape.obs_bytes};
  std::vector<const AnyState*> states;
  for (const BoundState* deal : deals) {
    call.demand(deal != nullptr, "None is no deal");
    const Shape its = deal->rules().shape();
    call.demand(deal->rules().game == rules.game && its.seats == shape.seats &&
                    its.actions == shape.actions && its.obs_bytes == shape.obs_bytes,
                "the deals are of different rules");
    states.push_back(&**deal);
  }
  const TreeLimits limits{call.between(positions, "positions", 1, i64{1} << 30),
                          call.between(depth, "depth", 1, kMaxTreeDepth), recall};
  nb::gil_scoped_release released;
  return std::make_unique<GameTree>(states, needed, limits);
}

template <class T>
auto array_of(const std::vector<T>& numbers, size_t columns) {
  T* copy = new T[numbers.size() + 1];
  std::copy(numbers.begin(), numbers.end(), copy);
  nb::capsule owner(copy, [](void* data) noexcept { delete[] static_cast<T*>(data); });
  return nb::ndarray<nb::numpy, T>(copy, {numbers.size() / columns, columns}, owner);
}

constexpr auto kCopied = nb::rv_policy::move;  // it is no part of the tree

std::vector<i32> befores(const GameTree& tree) {
  std::vector<i32> pairs;
  for (const Sequence& last : tree.before) pairs.insert(pairs.end(), {last.info, last.action});
  return pairs;
}

std::vector<u8> masks(const GameTree& tree) {
  const size_t actions = static_cast<size_t>(tree.shape().actions);
  std::vector<u8> mask(tree.legal.size() * actions);
  for (size_t info = 0; info < tree.legal.size(); ++info)
    for (const i32 action : tree.legal[info])
      mask[info * actions + static_cast<size_t>(action)] = 1;
  return mask;
}

const f64* shares_of(const Call& call, const GameTree& tree, const In<f64>& shares) {
  return call.take(shares, "shares", i64{tree.infos()} * tree.shape().actions);
}

}  // namespace

void bind_exact(nb::module_& m) {
  nb::class_<GameTree>(m, "Tree", "A small game as a whole.")
      .def_prop_ro("seat", [](const GameTree& t) { return t.seat; })
      .def_prop_ro(
          "before", [](const GameTree& t) { return array_of(befores(t), 2); }, kCopied)
      .def_prop_ro(
          "obs",
          [](const GameTree& t) {
            return array_of(t.obs, static_cast<size_t>(t.shape().obs_bytes));
          },
          kCopied)
      .def_prop_ro(
          "mask",
          [](const GameTree& t) {
            return array_of(masks(t), static_cast<size_t>(t.shape().actions));
          },
          kCopied)
      .def_prop_ro("positions", [](const GameTree& t) { return t.positions.size(); })
      .def_ro("merged", &GameTree::merged)
      .def(
          "values",
          [](const GameTree& t, In<f64> shares) {
            const f64* given = shares_of(Call("Tree.values"), t, shares);
            nb::gil_scoped_release released;
            return policy_values(t, given);
          },
          "shares"_a, "Value of the game for every seat.")
      .def(
          "best_response",
          [](const GameTree& t, int seat, In<f64> shares) {
            constexpr Call call("Tree.best_response");
            const f64* given = shares_of(call, t, shares);
            call.index(seat, "seat", t.shape().seats);
            nb::gil_scoped_release released;
            BestResponse response(t, seat, given);
            const f64 value = response.value();
            return std::make_tuple(value, response.decisions());
          },
          "seat"_a, "shares"_a, "Value of a best response, and its decisions.");
  m.def("make_tree", &make_tree, "deals"_a, "positions"_a, "depth"_a, "recall"_a);
}

}  // namespace sparring
