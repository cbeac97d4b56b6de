// Rollouts as transitions, and advantages along them; see core/transitions.hpp and core/gae.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "bind/rollouts.hpp"
#include "core/gae.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sparring {
namespace {

constexpr int kMaxRoles = 32;           // `ended_by` has a bit for each
constexpr i32 kMaxDecisions = 1 << 24;  // that an open one counts, forced ones included

// By role, or none at all.
template <class T>
const T* by_role(const Call& call, const std::vector<T>& values, const char* what, int roles) {
  if (values.empty()) return nullptr;
  call.demand(static_cast<int>(values.size()) == roles, what);
  return values.data();
}

// What the learner's own rows address.
void check_rows(const Call& call, const RolloutView& v, i64 rows) {
  bool wrong = false;
  for (i64 i = 0; i < rows; ++i)
    wrong |= (v.seat[i] >= v.seats) | ((v.policy[i] == v.learner) & (v.seat[i] >= 0) &
                                       ((v.role[i] < 0) | (v.role[i] >= v.roles)));
  call.demand(!wrong, "a row of the learner is of a seat or role that there is not");
}

void check_pending(const Call& call, const RolloutView& v) {
  for (int i = 0; i < v.pending_count(); ++i)
    call.demand(v.pending[i].row < 0 ||
                    (v.pending[i].role >= 0 && v.pending[i].role < v.roles &&
                     v.pending[i].decisions >= 0 && v.pending[i].decisions <= kMaxDecisions),
                "open holds a decision of a role or length that there is not");
}

void link_transitions(int seats, int roles, int chains, int learner, f32 gamma,
                      const std::vector<f32>& gamma_into, const std::vector<f32>& gamma_of,
                      const std::vector<u32>& ended_by, In<i8> seat, In<i8> role, In<i16> policy,
                      In<f32> reward, In<u8> terminated, In<u8> truncated, In<f32> final_value,
                      MaybeIn<i8> final_role, MaybeIn<u16> skipped, Out<u8> open, Out<u8> end,
                      Out<i32> next, Out<f32> link_reward, Out<f32> discount, Out<f32> bootstrap) {
  constexpr Call call("link_transitions");
  call.between(roles, "roles", 1, kMaxRoles);
  call.demand(chains == 1 || chains == roles, "chains is 1 or the number of roles");
  call.demand(static_cast<int>(gamma_into.size()) == roles, "gamma_into has one number per role");
  RolloutView v{};
  const RolloutSize size = rollout_of(call, v, seat, seats, chains);
  v.roles = roles;
  v.learner = learner;
  v.gamma = gamma;
  v.gamma_into = gamma_into.data();
  v.gamma_of = by_role(call, gamma_of, "gamma_of has one number per role, or none", roles);
  v.ended_by = by_role(call, ended_by, "ended_by has one number per role, or none", roles);
  v.role = call.take(role, "role", size.rows);
  v.policy = call.take(policy, "policy", size.rows);
  v.reward = call.take(reward, "reward", call.product("reward", {size.by_seat, roles}));
  v.terminated = call.take(terminated, "terminated", size.by_game);
  v.truncated = call.take(truncated, "truncated", size.by_game);
  v.final_value = call.take(final_value, "final_value", size.by_seat);
  v.final_role = call.take(final_role, "final_role", size.by_seat);
  v.skipped = call.take(skipped, "skipped", size.by_seat);
  u8* waiting = call.take(open, "pending", i64{v.pending_count()} * i64{sizeof(PendingTransition)});
  call.demand(reinterpret_cast<std::uintptr_t>(waiting) % alignof(PendingTransition) == 0,
              "open does not lie where its numbers could be read; copy it first");
  v.pending = reinterpret_cast<PendingTransition*>(waiting);
  const Links links = links_of(call, size.indices, end, next, link_reward, discount, bootstrap);
  nb::gil_scoped_release released;
  check_rows(call, v, size.rows);
  check_pending(call, v);
  for (int game = 0; game < v.games; ++game) link_game(v, links, game);
}

void estimate_advantages(int steps, int games, int rows, int seats, int chains, f32 gae_lambda,
                         const std::vector<f32>& lambda_of, MaybeIn<i8> role, In<f32> value,
                         Out<u8> end, Out<i32> next, Out<f32> reward, Out<f32> discount,
                         Out<f32> bootstrap, Out<f32> advantage, MaybeIn<f32> rho,
                         MaybeIn<f32> trace) {
  constexpr Call call("estimate_advantages");
  RolloutView v{};
  const RolloutSize size = size_rollout(call, v, steps, games, rows, seats, chains);
  v.lambda_of = lambda_of.empty() ? nullptr : lambda_of.data();
  v.role = call.take(role, "role", size.rows);
  call.demand(!v.lambda_of || v.role, "lambda_of needs the roles of rows");
  const f32* values = call.take(value, "value", size.indices);
  const Links links = links_of(call, size.indices, end, next, reward, discount, bootstrap);
  f32* found = call.take(advantage, "advantage", size.indices);
  const Weights weights{call.take(rho, "rho", size.indices),
                        call.take(trace, "trace", size.indices)};
  call.demand(!weights.rho == !weights.trace, "rho and trace go together: give both or none");
  nb::gil_scoped_release released;
  bool wrong = false;
  for (i64 i = 0; i < size.indices; ++i)
    wrong |= (links.end[i] == kToNext) &
             (static_cast<u32>(links.next[i]) >= static_cast<u32>(size.indices));
  call.demand(!wrong, "next names a place that there is not");
  if (v.lambda_of) {
    const i64 known = static_cast<i64>(lambda_of.size());
    call.demand(chains <= known, "lambda_of has fewer numbers than there are chains");
    call.within(v.role, size.rows, "role", 0, known);
  }
  for (int game = 0; game < games; ++game)
    gae_of_game(v, links, values, gae_lambda, found, game, weights);
}

}  // namespace

void bind_transitions(nb::module_& m) {
  m.def("link_transitions", &link_transitions, "seats"_a, "roles"_a, "chains"_a, "learner"_a,
        "gamma"_a, "gamma_into"_a, "gamma_of"_a, "ended_by"_a, "seat"_a, "role"_a, "policy"_a,
        "reward"_a, "terminated"_a, "truncated"_a, "final_value"_a, "final_role"_a.none(),
        "skipped"_a.none(), "pending"_a, "end"_a, "next"_a, "link_reward"_a, "discount"_a,
        "bootstrap"_a);
  m.def("estimate_advantages", &estimate_advantages, "steps"_a, "games"_a, "rows"_a, "seats"_a,
        "chains"_a, "gae_lambda"_a, "lambda_of"_a, "role"_a.none(), "value"_a, "end"_a, "next"_a,
        "reward"_a, "discount"_a, "bootstrap"_a, "advantage"_a, "rho"_a.none() = nb::none(),
        "trace"_a.none() = nb::none());
  m.attr("PENDING_BYTES") = sizeof(PendingTransition);
}

}  // namespace sparring
