// Laser hockey: constants, symmetry and what always holds, whatever the players do.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/pool.hpp"
#include "core/validation.hpp"
#include "games/laser_hockey.hpp"
#include "games/laser_hockey_discrete.hpp"
#include "tests/check.hpp"

using namespace sparring;
using namespace sparring::laser_hockey;
using Continuously = laser_hockey::Game;

static_assert(sizeof(Continuously) == 112, "the state has no padding");

constexpr bool is_near(f32 got, f32 wanted) {
  return got - wanted < 1e-5f * wanted && wanted - got < 1e-5f * wanted;
}

// Section 3.2.
static_assert(is_near(kRacketMass, 58.0f) && is_near(kRacketInertia, 3.7094955f));
static_assert(is_near(kPuckMass, 1.0323623f) && is_near(kPuckInertia, 0.0242318f));
static_assert(is_near(-kRacketCenter, 0.1223755f) && is_near(kPuckRadius, 0.2166667f));
static_assert(is_near(kPuckOnRacket.friction, 0.3162278f) && is_near(kPuckOnWall.friction, 0.1f));

// Section 3.1: the walls where the specification has them.
void walls() {
  const auto spans = [](int wall, f32 low_x, f32 high_x, f32 low_y, f32 high_y) {
    const laser_hockey::Bounds& bounds = kWall[wall].bounds;
    return std::abs(bounds.low.x - 5 - low_x) < 1e-5f &&
           std::abs(bounds.high.x - 5 - high_x) < 1e-5f &&
           std::abs(bounds.low.y - 4 - low_y) < 1e-5f &&
           std::abs(bounds.high.y - 4 - high_y) < 1e-5f;
  };
  CHECK(spans(kTop, -4.166667f, 4.166667f, 3.333333f, 3.666667f));
  CHECK(spans(kBottom, -4.166667f, 4.166667f, -3.666667f, -3.333333f));
  CHECK(spans(kLeftUpper, -4.25f, -3.916667f, 1.25f, 3.583333f));
  CHECK(spans(kLeftLower, -4.25f, -3.916667f, -3.583333f, -1.25f));
  CHECK(spans(kRightUpper, 3.916667f, 4.25f, 1.25f, 3.583333f));
  CHECK(spans(kRightLower, 3.916667f, 4.25f, -3.583333f, -1.25f));
  CHECK(spans(kLeftGoal, -4.416667f, -4.083333f, -1.25f, 1.25f));
  CHECK(spans(kRightGoal, 4.083333f, 4.416667f, -1.25f, 1.25f));
}

void sine_and_cosine() {
  for (int i = -40000; i <= 40000; ++i) {
    const f32 angle = static_cast<f32>(i) * 0.005f;
    const SinCos got = sincos_of(angle);
    CHECK(std::abs(got.sin - std::sin(f64{angle})) < 1.5e-7);
    CHECK(std::abs(got.cos - std::cos(f64{angle})) < 1.5e-7);
  }
}

// One game without a pool around it.
template <class G>
struct Bare {
  Config config;
  G game{};
  Rng rng{1, 0, 0, Stream::kChance};
  f32 reward[2]{};
  f32 weight[4] = {10, 1, 0, 0};

  Result step(const typename G::Action* actions) {
    reward[0] = reward[1] = 0;
    Result result{.reward = reward, .weight = weight, .roles = 1, .active_parts = 15};
    game.step(config, actions, rng, result);
    return result;
  }
};

Box<4> draw_action(Rng& rng) {
  Box<4> action;
  for (f32& value : action.value) value = rng.uniform() * 2 - 1;
  return action;
}

// The same match seen from the other side: everything rotated by half a turn, players exchanged.
void rotate(Continuously& game) {
  std::swap(game.body[kLeft], game.body[kRight]);
  std::swap(game.turn[kLeft], game.turn[kRight]);
  std::swap(game.keep[0], game.keep[1]);
  for (Body& body : game.body) {
    body.center = kCenter + kCenter - body.center;
    body.velocity = -body.velocity;
  }
}

// The right player's numbers are the left one's, exchanged and turned, to the bit.
void the_right_player_sees_the_same() {
  Bare<Continuously> bare;
  Rng rng(4, 0, 0, Stream::kSampling);
  bare.game.reset(bare.config, bare.rng);
  for (int step = 0; step < 60; ++step) {
    const Box<4> given[2] = {draw_action(rng), draw_action(rng)};
    if (bare.step(given).over()) break;
    f32 left[20], right[20];
    bare.game.observe(bare.config, 0, reinterpret_cast<u8*>(left));
    bare.game.observe(bare.config, 1, reinterpret_cast<u8*>(right));
    for (int i = 0; i < 18; ++i) {
      const int from = i < 6 ? i + 6 : i < 12 ? i - 6 : i < 16 ? i : 33 - i;
      const bool same_sign = i == 2 || i == 5 || i == 8 || i == 11 || i >= 16;
      CHECK(right[i] == (same_sign ? left[from] : -left[from]));
    }
  }
}

// Half a turn exchanges the two views; where bodies collide, rounding makes a difference.
void both_sides_are_alike() {
  std::vector<f32> errors;
  Rng rng(3, 0, 0, Stream::kSampling);
  for (int round = 0; round < 400; ++round) {
    Bare<Continuously> one;
    one.rng = Rng(static_cast<u64>(round), 0, 0, Stream::kChance);
    one.game.reset(one.config, one.rng);
    one.game.body[kPuck].velocity = {rng.uniform() * 40 - 20, rng.uniform() * 40 - 20};
    Bare<Continuously> other = one;
    rotate(other.game);
    f32 seen[20], mirrored[20];
    for (int step = 0; step < 20; ++step) {
      one.game.observe(one.config, 0, reinterpret_cast<u8*>(seen));
      other.game.observe(other.config, 1, reinterpret_cast<u8*>(mirrored));
      const Box<4> given[2] = {draw_action(rng), draw_action(rng)};
      const Box<4> swapped[2] = {given[1], given[0]};
      if (one.step(given).over() || other.step(swapped).over()) break;
    }
    f32 worst = 0;
    for (int i = 0; i < 16; ++i) worst = std::max(worst, std::abs(seen[i] - mirrored[i]));
    errors.push_back(worst);
  }
  std::sort(errors.begin(), errors.end());
  CHECK(errors[errors.size() / 2] <= 1e-4f);
  CHECK(errors[errors.size() * 9 / 10] <= 1e-2f);
}

void nothing_moves_by_itself() {
  Bare<Continuously> bare;
  bare.game.reset(bare.config, bare.rng);
  const Continuously before = bare.game;
  const Box<4> nothing[2]{};
  for (int step = 0; step < 100; ++step) CHECK(!bare.step(nothing).over());
  CHECK(std::memcmp(bare.game.body, before.body, sizeof before.body) == 0);
}

// A puck that meets only walls never gains energy, spin included.
void walls_give_no_energy() {
  Rng rng(5, 0, 0, Stream::kSampling);
  int bounces = 0;
  for (int round = 0; round < 300; ++round) {
    Bare<Continuously> bare;
    bare.game.reset(bare.config, bare.rng);
    bare.game.place_racket(kLeft, kCenter + Vec{-3.3f, -2.5f}, 0);
    bare.game.place_racket(kRight, kCenter + Vec{3.3f, -2.5f}, 0);
    Body& puck = bare.game.body[kPuck];
    puck.center = kCenter + Vec{rng.uniform() * 6 - 3, rng.uniform() * 3};
    puck.velocity = {rng.uniform() * 50 - 25, rng.uniform() * 50 - 25};
    puck.spin = rng.uniform() * 40 - 20;
    const auto energy = [&] {
      return kPuckMass * dot(puck.velocity, puck.velocity) + kPuckInertia * puck.spin * puck.spin;
    };
    const Box<4> nothing[2]{};
    for (int step = 0; step < 30; ++step) {
      const f32 before = energy();
      const Vec flying = puck.velocity;
      const bool over = bare.step(nothing).over();
      if (over || bare.game.touching & (kOnLeft | kOnRight)) break;
      CHECK(energy() <= before * (1 + 1e-5f));
      CHECK(std::abs(bare.game.place(kPuck).y) <= 3.13f);
      bounces += flying.x * puck.velocity.x < 0 || flying.y * puck.velocity.y < 0;
    }
  }
  CHECK(bounces > 300);
}

// Section 18, for one side; `me` looks from his own side, so that one test serves both.
void check_bounds(const Continuously& game, const Config& config, int me) {
  f32 seen[20];
  game.observe(config, me, reinterpret_cast<u8*>(seen));
  // Without continuous collision a racket enters a wall for the length of a step.
  const f32 deeper = config.profile == kFast ? 0.1f : 0.0f;
  // The training modes may start the right racket beyond the center line.
  const f32 farthest = game.mode != kNormal && me == 1 ? 0.75f : -0.2f;
  CHECK(seen[0] >= -3.75f - deeper && seen[0] <= farthest);
  CHECK(std::abs(seen[1]) <= 3.25f + deeper && std::abs(seen[2]) <= 2.7f);
  CHECK(std::hypot(seen[3], seen[4]) <= 20 && std::abs(seen[5]) <= 55);
  CHECK(std::abs(seen[13]) <= 3.13f);
  if (game.mode == kNormal) CHECK(std::hypot(seen[14], seen[15]) <= (config.keep_mode ? 75 : 60));
}

// How a player without a script behaves: every step anew, or the same extreme for a while.
enum Habit { kRestless, kBangBang };

void check_matches(const Config& config, Habit habit, int matches) {
  Rng rng(7, 0, static_cast<u32>(habit), Stream::kSampling);
  Bare<Continuously> bare;
  bare.config = config;
  for (int match = 0; match < matches; ++match) {
    bare.game.reset(config, bare.rng);
    Box<4> given[2]{};
    for (int step = 1;; ++step) {
      if (habit == kRestless || step % 12 == 1) {
        for (Box<4>& action : given) action = draw_action(rng);
        if (habit == kBangBang)
          for (Box<4>& action : given)
            for (f32& value : action.value) value = value < 0 ? -1.0f : 1.0f;
      }
      u8 kept[2] = {bare.game.keep[0], bare.game.keep[1]};
      const Result result = bare.step(given);
      CHECK_TEXT(check_position(bare.game, config, nullptr, result.over()), "");
      check_bounds(bare.game, config, 0);
      check_bounds(bare.game, config, 1);
      const Vec puck = bare.game.place(kPuck);
      const bool inside = in_goal(puck + kCenter, kLeftGoal) || in_goal(puck + kCenter, kRightGoal);
      CHECK(result.over() || inside || std::abs(puck.x) <= 3.86f);
      for (int at = 0; at < 2; ++at) {
        const u8 now = bare.game.keep[at];
        const bool released = kept[at] <= 2 || given[at].value[3] > 0.5f;
        CHECK((now == 0 && released) || now + 1 == kept[at] || (now == kCaught && kept[at] <= 2) ||
              (now == kCaught && given[at].value[3] > 0.5f));
      }
      CHECK((bare.game.winner != 0) == result.terminated);
      CHECK(bare.reward[0] <= 10 && bare.reward[1] <= 10);
      if (result.over()) {
        CHECK(result.terminated || step == (bare.game.mode == kNormal ? 251 : 81));
        break;
      }
    }
  }
}

// Every mode, profile, bot and kind of action; the sanitizers watch.
template <class G>
void bots_play_everything() {
  Rng rng(11, 0, 0, Stream::kSampling);
  for (int round = 0; round < 24; ++round) {
    Config config;
    config.mode = rng.below(4);
    config.keep_mode = rng.below(2);
    config.profile = rng.below(2);
    config.serve = rng.below(4);
    config.clear_keep_on_reset = rng.below(2);
    config.safe_spawn = rng.below(2);
    config.timeout_as_terminated = rng.below(2);
    config.fineness = 2 + rng.below(10);
    CHECK(G::invalid(config).empty());
    Pool<G> pool(config, {.games = 8, .seed = 5, .threads = 2});
    pool.state().set_weights({10, 1, 1, 1});
    const auto bot = [&] { return static_cast<i16>(kRandomBot - rng.below(4)); };
    pool.state().set_lineups({1.0, 1.0}, {0, bot(), bot(), bot()}, {1, 1});
    pool.reset();
    std::vector<typename G::Action> actions(16);
    for (int step = 0; step < 300; ++step) {
      pool.sample(0, actions.data());
      CHECK(pool.accept(0, actions.data()).game < 0);
      pool.step_all();
      CHECK(pool.state().audit().empty());
    }
  }
}

// A new seed starts over, although the serve and the bots' phase go on from match to match.
void a_seed_repeats() {
  Config config;
  config.serve = kAlternating;
  config.clear_keep_on_reset = 0;
  Pool<Continuously> pool(config, {.games = 16, .seed = 9});
  pool.state().set_lineups({1.0}, {bot_player(kStrong), bot_player(kWeak)}, {0});
  const u64 seeds[] = {9, 9, 10};
  u64 digest[3];
  for (int run = 0; run < 3; ++run) {
    pool.state().reseed(seeds[run]);
    pool.reset();
    for (int step = 0; step < 400; ++step) pool.step_all();
    digest[run] = pool.digest();
  }
  CHECK(digest[0] == digest[1]);
  CHECK(digest[0] != digest[2]);
}

// A puck that was kicked, a kept one, a goal: bytes that are not a match are told from these.
void crafted_positions_are_refused() {
  const Config config;
  Rng chance(17, 0, 0, Stream::kChance);
  Continuously match{};
  match.reset(config, chance);
  const auto refused = [&](auto&& change) {
    Continuously odd = match;
    change(odd);
    const std::string wrong = check_position(odd, config, nullptr);
    return wrong.substr(0, wrong.find(" is not in"));
  };
  constexpr f32 kNan = std::numeric_limits<f32>::quiet_NaN();
  CHECK_TEXT(refused([](Continuously&) {}), "");
  CHECK_TEXT(refused([](Continuously& odd) { odd.body[kLeft].angle = 1e12f; }), "angle");
  CHECK_TEXT(refused([](Continuously& odd) { odd.body[kPuck].center.x = kNan; }), "center x");
  CHECK_TEXT(refused([](Continuously& odd) { odd.body[kPuck].center.y = 2000; }),
             "a body is farther than it can have come");
  CHECK_TEXT(refused([](Continuously& odd) { odd.body[kPuck].velocity = {100, 100}; }),
             "a body is faster than physics allows");
  CHECK_TEXT(refused([](Continuously& odd) { odd.turn[kRight].sin = 1; }),
             "a racket is turned by another angle than its own");
  CHECK_TEXT(refused([](Continuously& odd) { odd.kick.x = kNan; }), "kick x");
  CHECK_TEXT(refused([](Continuously& odd) { odd.phase[1] = 1e30f; }), "phase");
  CHECK_TEXT(refused([](Continuously& odd) { odd.keep[0] = 16; }), "keep");
  CHECK_TEXT(refused([](Continuously& odd) { odd.keep[0] = 1; }), "a kept puck was not let go");
  CHECK_TEXT(refused([](Continuously& odd) { odd.winner = 1; }),
             "the winner's puck missed the goal");
  CHECK_TEXT(refused([](Continuously& odd) { odd.time = 251; }), "the game is over");
}

int main() {
  CHECK_EQUAL(bounds_of(Continuously{}, {}).first_undeclared(), sizeof(Continuously));
  crafted_positions_are_refused();
  walls();
  sine_and_cosine();
  the_right_player_sees_the_same();
  both_sides_are_alike();
  nothing_moves_by_itself();
  walls_give_no_energy();
  for (int profile : {kExact, kFast})
    for (int keep : {0, 1})
      for (int mode : {int{kNormal}, kMixture})
        for (Habit habit : {kRestless, kBangBang}) {
          Config config;
          config.mode = mode;
          config.profile = profile;
          config.keep_mode = keep;
          check_matches(config, habit, 60);
        }
  bots_play_everything<Continuously>();
  bots_play_everything<laser_hockey_discrete::Game>();
  a_seed_repeats();
}
