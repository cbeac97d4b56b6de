// Links and advantages of a rollout small enough to do by hand.
#include <vector>

#include "core/gae.hpp"
#include "tests/check.hpp"

using namespace sparring;

int main() {
  // One game, two seats in turn, four steps; seat 1 is paid while seat 0 has just moved.
  const std::vector<i8> seat = {0, 1, 0, 1}, role = {0, 0, 0, 0};
  const std::vector<i16> policy = {0, 0, 0, 0};
  const std::vector<f32> value = {0, 0, 1, 2, 3, 4};  // two carried places first
  const std::vector<f32> reward = {0, 0, 1, 0, 0, 10, 0, -1};
  const std::vector<u8> terminated = {0, 0, 0, 1}, truncated = {0, 0, 0, 0};
  const std::vector<f32> final_value(8, 0);
  std::vector<Open> open(2, Open{-1, 0, 0, 0});
  std::vector<u8> end(6);
  std::vector<i32> next(6);
  std::vector<f32> paid(6), discount(6), tail(6), advantage(6);
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
  view.open = open.data();
  const Links links{end.data(), next.data(), paid.data(), discount.data(), tail.data()};
  link_game(view, links, 0);
  gae_of_game(view, links, value.data(), 1, advantage.data(), 0);
  CHECK(end[2] == kToNext && next[2] == 4 && paid[2] == 1);
  CHECK(end[3] == kToNext && next[3] == 5 && paid[3] == 10);
  CHECK(end[4] == kTerminated && paid[4] == 0);
  CHECK(end[5] == kTerminated && paid[5] == -1);
  CHECK(advantage[5] == -5.0f && advantage[4] == -3.0f);
  CHECK(advantage[3] == 10 + 0.5f * 4 - 2 + 0.5f * -5);
  CHECK(advantage[2] == 1 + 0.5f * 3 - 1 + 0.5f * -3);
  CHECK(open[0].row == -1 && open[1].row == -1);
}
