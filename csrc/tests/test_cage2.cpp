// CAGE-2: what holds in every episode, whoever attacks and however blue plays (section 13.4).
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/pool.hpp"
#include "core/validation.hpp"
#include "games/cage2.hpp"
#include "tests/cage2_replay.hpp"
#include "tests/check.hpp"

using namespace sparring;
using namespace sparring::cage2;
using Cage2 = cage2::Game;

static_assert(std::has_unique_object_representations_v<Cage2>,
              "the state has no padding, so its bytes can be compared");
static_assert(sizeof(Cage2) <= 128, "two cache lines");

struct Reward {
  f32 value = 0;
  f32 weight[4] = {1, 1, 1, 0};
  Result result() { return {.reward = &value, .weight = weight, .roles = 1, .active_parts = 7}; }
};

// Plays one step; returns the reward in tenths.
int play(Cage2& game, const Config& config, int action, Rng& rng) {
  Reward reward;
  Result result = reward.result();
  game.step(config, &action, rng, result);
  CHECK_EQUAL(result.truncated, game.steps >= config.max_steps);
  CHECK(!result.terminated);
  return static_cast<int>(std::lround(10 * reward.value));
}

std::vector<Config> many_configs() {
  std::vector<Config> configs;
  for (int i = 0; i < 96; ++i) {
    Config config;
    config.red = i % 3;
    config.green = i / 3 % 2;
    config.preset = i / 6 % 2;
    config.obs_rule = i / 12 % 2;
    config.actions = i / 24 % 2;
    config.mask = i / 48 % 2;
    config.orders = i % 5 % 3;
    config.relink_on_restore = i % 7 == 0;
    config.scan_history = i % 11 % 3;
    configs.push_back(config);
  }
  return configs;
}

int any_legal(const Cage2& game, const Config& config, Rng& rng) {
  Legal<Cage2> legal;
  game.legal(config, 0, legal);
  CHECK(legal.any());
  return legal.select(rng.below(legal.count()));
}

// Section 9, host by host.
int formula_tenths(const Cage2& game, int action) {
  static constexpr int kValue[kHosts] = {1, 10, 10, 10, 1, 1, 1, 10, 0, 1, 1, 1, 1};
  int tenths = 0;
  for (int host = 0; host < kHosts; ++host)
    if (game.privileged >> host & 1) tenths -= kValue[host];
  if (!(game.flags & kServiceUp)) tenths -= 100;
  return action >= kRestore ? tenths - 10 : tenths;
}

void check_step(const Cage2& was, const Cage2& now, const Config& config, int reward) {
  CHECK_TEXT(check_position(now, config, nullptr, now.steps >= config.max_steps), "");
  CHECK_EQUAL(reward, formula_tenths(now, now.last_action));
  CHECK(reward <= 0 && reward >= -157);
  CHECK_EQUAL(now.total_tenths, was.total_tenths + reward);
  const int restored = now.last_action >= kRestore ? now.last_action - kRestore : -1;
  const int analyzed =
      now.last_action >= kAnalyse && now.last_action < kRemove ? now.last_action - kAnalyse : -1;
  for (int host = 0; host < kHosts; ++host) {
    const bool had = was.malware >> host & 1, has = now.malware >> host & 1;
    CHECK(has || !had || host == restored);  // only Restore clears malware
    const bool newly_privileged =
        label_of(now.seen, host) == kPrivileged && label_of(was.seen, host) != kPrivileged;
    CHECK(!newly_privileged || (host == analyzed && had));
    const bool scan = now.red_action == kScan && now.red_target == host &&
                      !(now.flags & kEmptyScan) && now.red != kSleepingRed;
    CHECK(!was.known_ports[host] || now.known_ports[host]);
    CHECK(was.known_ports[host] || !now.known_ports[host] || scan);
    CHECK(!scan || now.known_ports[host]);
  }
  if (!(was.flags & kServiceLinked)) CHECK(now.flags & kServiceUp);
}

// Random blue against every red under many options.
void invariants() {
  u32 number = 0;
  for (const Config& config : many_configs()) {
    for (int episode = 0; episode < 40; ++episode, ++number) {
      Rng chance(11, number, 1, Stream::kChance), choice(11, number, 1, Stream::kSampling);
      Cage2 game;
      game.reset(config, chance);
      CHECK_TEXT(check_position(game, config, nullptr), "");
      for (int step = 0; step < config.max_steps; ++step) {
        const Cage2 was = game;
        const int reward = play(game, config, any_legal(game, config, choice), chance);
        check_step(was, game, config, reward);
      }
    }
  }
}

// What does not matter for the future of a position.
Cage2 without_records(Cage2 game) {
  game.last_action = kNone;
  game.total_tenths = 0;
  return game;
}

bool same_position(const Cage2& a, const Cage2& b) {
  const Cage2 x = without_records(a), y = without_records(b);
  return std::memcmp(&x, &y, sizeof x) == 0;
}

// Monitor is Sleep, and so is every action that the mask leaves out, except that a Restore costs.
void masked_actions_do_nothing() {
  i64 masked = 0, offered = 0;
  for (Config config : many_configs()) {
    config.actions = kAll;
    for (u32 episode = 0; episode < 6; ++episode) {
      Rng chance(5, episode, 1, Stream::kChance), choice(5, episode, 1, Stream::kSampling);
      Cage2 game;
      game.reset(config, chance);
      for (int step = 0; step < 60; ++step) {
        Legal<Cage2> useful;
        put_useful(game, config, useful);
        const Rng draws = chance;
        Cage2 slept = game;
        Rng sleeping = draws;
        play(slept, config, kSleep, sleeping);
        for (int action = 0; action < kAllActions; ++action) {
          if (useful.test(action)) {
            ++offered;
            continue;
          }
          Cage2 other = game;
          Rng same = draws;
          play(other, config, action, same);
          CHECK(same_position(other, slept));
          ++masked;
        }
        // A careful mask would be worth nothing: half of the steps use what it offers.
        config.mask = step % 2;
        play(game, config, any_legal(game, config, choice), chance);
      }
    }
  }
  CHECK(masked > offered);
}

// Every action that the mask can offer makes a difference somewhere.
void offered_actions_do_something() {
  Legal<Cage2> different = Legal<Cage2>::none();
  Config config;
  config.preset = kChallenge;
  config.mask = 1;
  for (u32 episode = 0; episode < 1500; ++episode) {
    Rng chance(9, episode, 1, Stream::kChance), choice(9, episode, 1, Stream::kSampling);
    config.red = static_cast<i32>(episode % 2);
    Cage2 game;
    game.reset(config, chance);
    for (int step = 0; step < 100; ++step) {
      // Mostly asleep, so that red gets everywhere.
      const int action = choice.below(3) ? int{kSleep} : any_legal(game, config, choice);
      Cage2 slept = game;
      Rng same = chance;
      play(slept, config, kSleep, same);
      play(game, config, action, chance);
      if (!same_position(game, slept)) different.set(action);
    }
  }
  for (int action = kAnalyse; action < kAllActions; ++action) {
    const int family = (action - kAnalyse) / kHosts, host = (action - kAnalyse) % kHosts;
    const bool is_decoy = family >= 2 && family < 10;
    if (is_decoy && !can_place(Cage2{}, family - 2, host)) continue;
    if (action == kAnalyse + kDefender) continue;  // nothing ever gets onto it
    CHECK(different.test(action));
  }
}

// The 36 actions lead to the 145 as the winner's program sends them.
void winners_lists() {
  Config config;
  config.actions = kWinner;
  config.red = kSleepingRed;
  Rng chance(1, 0, 1, Stream::kChance);
  Cage2 game;
  game.reset(config, chance);
  const int enterprise0 = kPlainActions, user2 = kPlainActions + 4, restore_enterprise0 = 0;
  const int script[] = {user2,       user2,       enterprise0,         enterprise0, enterprise0,
                        enterprise0, enterprise0, restore_enterprise0, enterprise0, user2};
  const int sent[] = {51, 116, 55, 107, 120, 29, 55, 133, 55, 38};
  for (size_t i = 0; i < std::size(script); ++i) {
    play(game, config, script[i], chance);
    CHECK_EQUAL(int{game.last_action}, sent[i]);
  }
  config.mask = 1;
  Legal<Cage2> legal;
  for (int i = 0; i < 4; ++i) {
    game.legal(config, 0, legal);
    // One was placed since the Restore, and Apache, the last, finds its port taken by Vsftpd.
    CHECK_EQUAL(legal.test(enterprise0), i < 2);
    play(game, config, enterprise0, chance);
  }
}

// Blue's repairs are judged by what was compromised when they were made.
void orders_of_repair() {
  Config config;
  config.orders = kFixed;
  const i32 order[kUnits] = {4, 1, 2, 3, 0};  // users first
  std::copy(std::begin(order), std::end(order), config.order);
  config.red = kSleepingRed;
  Rng chance(1, 0, 1, Stream::kChance);
  Cage2 game;
  game.reset(config, chance);
  game.privileged = static_cast<u16>(game.privileged | just(kEnterprise1) | just(kUser1));
  Reward reward;
  reward.weight[kOrderKept] = 1;
  const auto paid = [&](int action) {
    reward.value = 0;
    Result result = reward.result();
    result.active_parts = 1u << kOrderKept;
    game.step(config, &action, chance, result);
    return static_cast<int>(reward.value);
  };
  CHECK_EQUAL(paid(kRestore + kEnterprise1), -1);  // User1 should have come first
  CHECK_EQUAL(paid(kRestore + kUser0), 0);         // no repair: red stays there
  CHECK_EQUAL(paid(kRemove + kUser1), 0);          // Remove does not help
  CHECK_EQUAL(paid(kRestore + kUser1), 1);
  CHECK_EQUAL(paid(kRestore + kUser1), 0);  // nothing is left to repair
  CHECK_EQUAL(int{game.repairs[1]}, 1);
  CHECK_EQUAL(int{game.in_order[1]}, 0);
  CHECK_EQUAL(int{game.repairs[4]}, 1);
  CHECK_EQUAL(int{game.in_order[4]}, 1);
}

// Bit tricks against plain loops.
void packed_sets() {
  Rng rng(3, 0, 0, Stream::kSampling);
  for (int i = 0; i < 2000; ++i) {
    const u64 word = u64{rng.next()} << 32 | rng.next();
    u32 fourth = 0, bits = 0;
    for (int host = 0; host < kHosts; ++host)
      fourth |= static_cast<u32>(word >> (4 * host) & 1) << host;
    CHECK_EQUAL(every_fourth(word & kEveryHostOnce), fourth);
    const int port = rng.below(8);
    for (int byte = 0; byte < 8; ++byte)
      bits |= static_cast<u32>(word >> (8 * byte + port) & 1) << byte;
    CHECK_EQUAL(column(word, port), bits);
  }
}

// The last observation of an episode that is cut is kept, and what blue may do in it.
void the_cut_is_a_truncation() {
  Config config;
  config.max_steps = 7;
  PoolOptions options;
  options.games = 3;
  Pool<Cage2> pool(config, options);
  pool.reset();
  const std::vector<i32> sleep(3, kSleep);
  for (int step = 0; step < 7; ++step) {
    CHECK_EQUAL(pool.accept(0, sleep.data()).game, -1);
    pool.step_all();
  }
  CHECK_EQUAL(pool.final_count[0], 3);
  for (int game = 0; game < 3; ++game) {
    CHECK(pool.truncated[game] && !pool.terminated[game]);
    CHECK_EQUAL(pool.final_length[game], 7);
    CHECK_EQUAL(int{pool.final_mask[i64{game} * kAllActions + kSleep]}, 1);
  }
}

// Starts, games with hidden things drawn anew, and the games that go on from there: whatever can
// be saved would be loaded again.
void positions_of_games_are_sound() {
  u32 number = 0;
  for (Config config : many_configs()) {
    config.red = static_cast<i32>(number % 4);
    config.mix[kSleepingRed] = 1;
    for (int episode = 0; episode < 8; ++episode, ++number) {
      Rng chance(12, number, 1, Stream::kChance), choice(12, number, 1, Stream::kSampling);
      Cage2 game;
      game.reset(config, chance);
      if (episode % 2) {
        std::vector<i64> levels(kHosts);
        for (size_t host = 1; host < kHosts; ++host) levels[host] = choice.below(3);
        CHECK_TEXT(game.setup(config, levels), "");
      }
      while (game.steps < config.max_steps) {
        CHECK_TEXT(check_position(game, config, nullptr), "");
        Cage2 drawn = game;
        drawn.resample_hidden(config, 0, choice);
        CHECK_TEXT(check_position(drawn, config, nullptr), "");
        if (choice.below(30) == 0) game = drawn;
        play(game, config, any_legal(game, config, choice), chance);
      }
      CHECK_TEXT(check_position(game, config, nullptr, true), "");
    }
  }
}

// What the rules take for granted: an index that they write to, a loop that finds an end, a set
// that is not empty.
void crafted_positions_are_refused() {
  Config config;
  config.red = kMeander;
  config.orders = kDrawn;
  config.scan_history = kEveryHost;
  Rng chance(13, 0, 1, Stream::kChance);
  Cage2 game;
  game.reset(config, chance);
  for (int step = 0; step < 30; ++step) play(game, config, kSleep, chance);
  CHECK_TEXT(check_position(game, config, nullptr), "");
  const auto refused = [&](auto&& change) {
    Cage2 odd = game;
    change(odd);
    return check_position(odd, config, nullptr);
  };
  CHECK_TEXT(refused([](Cage2& odd) { odd.latest_scan = 100; }), "latest_scan is not in 0..12");
  CHECK_TEXT(refused([](Cage2& odd) { odd.last_ip = 107; }), "last_ip is not in 0..12");
  CHECK_TEXT(refused([](Cage2& odd) { odd.red_target = 13; }), "red_target is not in 0..12");
  CHECK_TEXT(refused([](Cage2& odd) {
               odd.red_action = kExploit;
               odd.red_target = kNone;
             }),
             "red's last move has no such target");
  CHECK_TEXT(refused([](Cage2& odd) { odd.order[0] = odd.order[1]; }),
             "the order is none of units");
  CHECK_TEXT(refused([](Cage2& odd) { odd.seen |= u64{1} << 52; }),
             "seen is not in 0..4503599627370495");
  CHECK_TEXT(refused([](Cage2& odd) { odd.exploited = kAllHosts; }), "red is on Defender");
  CHECK_TEXT(refused([](Cage2& odd) { odd.known_ip = odd.exploited = 1 << kUser0; }),
             "a sweep missed Defender");
  CHECK_TEXT(refused([](Cage2& odd) { odd.stage = kStages; }), "stage is not in 0..14");
  CHECK_TEXT(refused([](Cage2& odd) { odd.prey = kEnterprise0; }), "prey is not in 9..12");
  CHECK_TEXT(refused([](Cage2& odd) { odd.known_ports[kUser1] = 0xff; }),
             "red remembers a port that cannot be open");
  CHECK_TEXT(refused([](Cage2& odd) { odd.decoy_ports[15] = 1; }), "spare is not in 0..0");
  CHECK_TEXT(refused([&](Cage2& odd) { odd.steps = static_cast<u16>(config.max_steps); }),
             "the game is over");
}

int main() {
  CHECK_EQUAL(bounds_of(Cage2{}, {}).first_undeclared(), sizeof(Cage2));
  CHECK_EQUAL(bounds_of(cage2_replay::Game{}, {}).first_undeclared(), sizeof(cage2_replay::Game));
  packed_sets();
  invariants();
  masked_actions_do_nothing();
  offered_actions_do_something();
  winners_lists();
  orders_of_repair();
  the_cut_is_a_truncation();
  positions_of_games_are_sound();
  crafted_positions_are_refused();
  std::puts("ok");
}
