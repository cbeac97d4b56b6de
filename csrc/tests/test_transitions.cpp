// Links and advantages of a rollout small enough to do by hand.
#include <vector>

#include "core/gae.hpp"
#include "tests/check.hpp"

using namespace sparring;

// One seat that bids (role 0), plays (role 1) and bids again; every role is a chain of its own.
void check_roles() {
  const std::vector<i8> seat = {0, 0, 0}, role = {0, 1, 0};
  const std::vector<i16> policy = {0, 0, 0};
  const std::vector<f32> reward = {1, 10, 2, 20, 4, 40};  // [steps, roles]
  const std::vector<u8> terminated = {0, 0, 0}, truncated = {0, 0, 0};
  const std::vector<f32> final_value(3, 0), gamma_into = {0, 1};
  std::vector<PendingTransition> pending(2, PendingTransition{-1, 0, 0, 0});
  std::vector<u8> end(5);
  std::vector<i32> next(5);
  std::vector<f32> link_reward(5), discount(5), bootstrap(5);
  RolloutView view{};
  view.steps = 3;
  view.games = view.rows = view.seats = 1;
  view.roles = view.chains = 2;
  view.gamma = 1;
  view.gamma_into = gamma_into.data();
  view.seat = seat.data();
  view.role = role.data();
  view.policy = policy.data();
  view.reward = reward.data();
  view.terminated = terminated.data();
  view.truncated = truncated.data();
  view.final_value = final_value.data();
  view.pending = pending.data();
  const Links links{end.data(), next.data(), link_reward.data(), discount.data(), bootstrap.data()};
  link_game(view, links, 0);
  // The first bid is paid as bids are until the next one; the play up to there, and nothing behind.
  CHECK(end[2] == kToNext && next[2] == 4 && link_reward[2] == 3 && discount[2] == 0);
  CHECK(end[3] == kToNext && next[3] == 4 && link_reward[3] == 20 && discount[3] == 0);
  CHECK(end[4] == kNotASample && pending[0].row == 4 && pending[0].reward == 4 &&
        pending[1].row == -1);
}

int main() {
  check_roles();
  // One game, two seats in turn, four steps; seat 1 is paid while seat 0 has just moved.
  const std::vector<i8> seat = {0, 1, 0, 1}, role = {0, 0, 0, 0};
  const std::vector<i16> policy = {0, 0, 0, 0};
  const std::vector<f32> value = {0, 0, 1, 2, 3, 4};  // two carried places first
  const std::vector<f32> reward = {0, 0, 1, 0, 0, 10, 0, -1};
  const std::vector<u8> terminated = {0, 0, 0, 1}, truncated = {0, 0, 0, 0};
  const std::vector<f32> final_value(8, 0);
  std::vector<PendingTransition> pending(2, PendingTransition{-1, 0, 0, 0});
  std::vector<u8> end(6);
  std::vector<i32> next(6);
  std::vector<f32> link_reward(6), discount(6), bootstrap(6), advantage(6);
  const f32 gamma = 0.5f;
  RolloutView view{};
  view.steps = 4;
  view.games = view.rows = view.roles = view.chains = 1;
  view.seats = 2;
  view.gamma = gamma;
  view.gamma_into = &gamma;
  view.seat = seat.data();
  view.role = role.data();
  view.policy = policy.data();
  view.reward = reward.data();
  view.terminated = terminated.data();
  view.truncated = truncated.data();
  view.final_value = final_value.data();
  view.pending = pending.data();
  const Links links{end.data(), next.data(), link_reward.data(), discount.data(), bootstrap.data()};
  link_game(view, links, 0);
  gae_of_game(view, links, value.data(), 1, advantage.data(), 0);
  CHECK(end[2] == kToNext && next[2] == 4 && link_reward[2] == 1);
  CHECK(end[3] == kToNext && next[3] == 5 && link_reward[3] == 10);
  CHECK(end[4] == kTerminated && link_reward[4] == 0);
  CHECK(end[5] == kTerminated && link_reward[5] == -1);
  CHECK(advantage[5] == -5.0f && advantage[4] == -3.0f);
  CHECK(advantage[3] == 10 + 0.5f * 4 - 2 + 0.5f * -5);
  CHECK(advantage[2] == 1 + 0.5f * 3 - 1 + 0.5f * -3);
  CHECK(pending[0].row == -1 && pending[1].row == -1);
}
