// CAGE Challenge 2: one defender (blue) of a small company network against a scripted attacker
// (red). The state, one step and its reward; the sides are in cage2/blue.hpp and cage2/red.hpp.
// Section numbers are those of the specification; docs/games/cage2.md describes the game.
#pragma once

#include "core/bounds.hpp"
#include "core/describe.hpp"
#include "core/game.hpp"
#include "games/cage2/network.hpp"

namespace sparring::cage2 {

// The observation is one word of four bits per host, Defender lowest: two bits of activity in
// this step, then two bits of what blue believes of the host (section 8.1).
enum Activity : u32 { kQuiet = 0, kScanned = 1, kAttacked = 3 };
enum Label : u32 { kClean = 0, kUnknown = 1, kUserLevel = 2, kPrivileged = 3 };
inline constexpr u64 kEveryHostOnce = 0x1111111111111;  // the lowest bit of every host
inline constexpr u64 kActivityBits = 3 * kEveryHostOnce, kCompromisedBits = 8 * kEveryHostOnce;

enum RedAction : u8 { kRedSleeps, kSweep, kScan, kExploit, kEscalate, kImpact };

enum Flag : u8 {
  kServiceUp = 1,       // OTService runs
  kServiceLinked = 2,   // and Impact can stop it
  kServiceKnown = 4,    // to red
  kEmptyScan = 8,       // red's last scan reached nothing
  kStage12Played = 16,  // of B_line
  kSucceeded = 32,      // red's last action
  kFailed = 64          // neither: red slept, or has not moved yet
};

// Reward parts. The first three add up to the challenge's own reward.
enum Part { kCompromise, kServiceStopped, kRestoring, kOrderKept };

// What is counted: hosts that red took over (User0 is its own from the start), hosts that it holds
// by step, steps without the service, what blue did; repairs under an order, and those that follow
// it.
enum Counter {
  kLost,
  kHeld,
  kStopped,
  kRestores,
  kRemoves,
  kPlacedDecoys,
  kGames,
  kSteps,
  kJudgedRepairs,
  kRepairsInOrder
};

// What blue's action means for the rest of the step.
struct BlueTurn {
  int decoy_on = -1;       // host that got a decoy
  int malware_on = -1;     // host on which Analyse found something
  int restore_tenths = 0;  // what it costs
  int order = 0;           // a repair in the prescribed order: 1, out of it: -1
};

struct RedMove {
  int action;
  int target;  // a host, or a subnet for kSweep
};

// What monitoring records on one host in one step (section 8.2).
struct Events {
  int host = -1;
  int connections = 0;
  int ports = 0;       // distinct local ones
  bool shell = false;  // a shell called back to red's port
};

// Chance as the rules ask for it. Tests put recorded outcomes in its place.
struct Chance {
  Rng& rng;

  // 0..7: green scans that entry of kGreenHosts; 8..15: it does nothing.
  SPARRING_FN int green() { return rng.below(16); }

  // One of a set, all alike; no draw where there is no choice.
  SPARRING_FN int one_of(u32 set) {
    if ((set & (set - 1)) == 0) return lowest_bit(set);
    for (int skip = rng.below(popcount(set)); skip > 0; --skip) set &= set - 1;
    return lowest_bit(set);
  }

  // Red's favorite port three times out of four, otherwise one of the others.
  SPARRING_FN int port_of(Ports ports) {
    Ports others = ports & (ports - 1);
    if (others == 0) return lowest_bit(ports);
    const int count = popcount(others);
    int skip = rng.below(4 * count) - 3 * count;
    if (skip < 0) return lowest_bit(ports);
    for (; skip > 0; --skip) others &= others - 1;
    return lowest_bit(others);
  }

  SPARRING_FN bool is_shell_noticed() { return rng.below(20) != 0; }
};

struct Game {
  using Config = cage2::Config;
  using Action = i32;
  static constexpr int kMaxSeats = 1, kRows = 1, kRoles = 1, kActions = kAllActions;
  static constexpr const char* kParts[] = {"compromise", "impact", "restore", "order"};
  static constexpr const char* kBots[] = {"sleep", "cycle", "react_remove", "react_restore",
                                          "vreact"};
  static constexpr const char* kEnds[] = {"step limit"};
  static constexpr const char* kCounters[] = {"lost",   "held",  "stopped", "restores", "removes",
                                              "decoys", "games", "steps",   "repairs",  "in order"};

  u64 seen;          // the observation, four bits per host
  i32 total_tenths;  // the challenge's reward so far
  u32 lists_used;    // decoys sent from the winner's lists, three bits for each
  // Red's access by host: a privileged one has no other level, and User0 is always privileged.
  u16 privileged, removable, stuck;
  u16 malware;
  u16 touched;   // showed activity or got a decoy since its last Restore, as far as blue can tell
  u16 was_scan;  // showed a scan in this episode
  u16 known_ip, known_host, scanned, exploited, escalated, mapped;  // Meander's memory
  u16 steps;
  u8 decoy_ports[16];      // by host: ports open because of decoys alone; 13 are used
  u8 known_ports[kHosts];  // red's memory of scans; 0: never scanned
  u8 red;                  // B_line, Meander or asleep
  u8 stage, prey;          // B_line's progress and first victim
  u8 flags;
  u8 subnets;             // Meander: bits 0-2 known, 3-5 swept
  u8 last_ip, last_host;  // Meander: what the last exploit or escalation was about
  u8 restored;            // bit 0 User3, bit 1 User4: restored in this episode
  u8 latest_scan;         // host of the latest scan that blue saw
  u8 last_action;         // blue's, of the 145
  u8 red_action, red_target, red_port, red_noticed;  // red's last move; kNone where it has none
  u8 order[kUnits];                                  // units, the one to be repaired first in front
  u8 repairs[kUnits], in_order[kUnits];              // by unit, in this episode
  u8 spare[4];                                       // no padding: equal states have equal bytes

  SPARRING_FN static Shape shape(const Config& config) {
    const int bytes = 4 * kHosts + history_bytes(config) + (config.decoys_left ? kHosts : 0) +
                      (config.orders ? kUnits * kUnits : 0);
    return {.seats = 1,
            .actions = config.actions == kWinner ? kWinnerActions : kAllActions,
            .obs_bytes = padded(bytes)};
  }

  SPARRING_FN static int history_bytes(const Config& config) {
    return config.scan_history == kNoHistory ? 0 : config.scan_history == kWinnerHosts ? 10 : 13;
  }

  SPARRING_FN static f32 default_weight(const Config& config, int part) {
    return part == kOrderKept ? config.order_bonus : 1.0f;
  }

  SPARRING_FN int seat(int) const { return 0; }
  SPARRING_FN int role(int) const { return 0; }
  SPARRING_FN f32 score(const Config&, int) const { return static_cast<f32>(total_tenths) / 10.0f; }

  // Draws: red, if several are possible; then the order, if it is drawn.
  SPARRING_FN void reset(const Config& config, Rng& rng) {
    *this = Game{};
    privileged = known_ip = known_host = static_cast<u16>(just(kUser0));
    flags = kServiceUp | kServiceLinked;
    subnets = 1 << kUserNet;
    prey = last_ip = last_host = latest_scan = last_action = kNone;
    red_target = red_port = red_noticed = kNone;
    draw_foe(config, rng);
  }

  // Who attacks and what is asked of blue are drawn for starts, too, in which nobody has moved.
  SPARRING_FN void begin_from(const Config& config, const Game& start, Rng& rng) {
    *this = start;
    if (steps == 0) draw_foe(config, rng);
  }

  SPARRING_FN void draw_foe(const Config& config, Rng& rng) {
    red = static_cast<u8>(config.red == kMix ? drawn_red(config, rng) : config.red);
    if (config.orders) take_order(config, rng);
  }

  // The last red with a weight also takes what rounding leaves.
  SPARRING_FN static int drawn_red(const Config& config, Rng& rng) {
    f32 total = 0;
    for (f32 weight : config.mix) total += weight;
    f32 left = rng.uniform() * total;
    int drawn = kBLine;
    for (int kind = 0; kind < kReds; ++kind) {
      if (config.mix[kind] <= 0) continue;
      drawn = kind;
      left -= config.mix[kind];
      if (left < 0) break;
    }
    return drawn;
  }

  SPARRING_FN void take_order(const Config& config, Rng& rng) {
    for (int i = 0; i < kUnits; ++i) order[i] = static_cast<u8>(config.order[i]);
    if (config.orders == kFixed) return;
    for (int i = 0; i + 1 < kUnits; ++i) {
      const int j = i + rng.below(kUnits - i);
      const u8 kept = order[i];
      order[i] = order[j];
      order[j] = kept;
    }
  }

  SPARRING_FN void step(const Config& config, const Action* actions, Rng& rng, Result& result) {
    Chance chance{rng};
    advance(config, actions[0], chance, result);
  }

  // Blue, green, red; then the reward and what blue sees (section 9).
  template <class Draws>
  SPARRING_FN void advance(const Config& config, int action, Draws& draws, Result& result) {
    const BlueTurn blue = play_blue(config, full_action(config, action));
    Events green;
    if (config.green) green = play_green(draws);
    const Hosts held_before = privileged;
    const Events red_events = play_red(config, draws);
    const int held = pay(blue, result);
    look(config, blue, green, red_events);
    if (++steps >= config.max_steps) result.truncate();
    if (result.recorder.counts) count_step(blue, privileged & ~held_before, held, result);
  }

  // In a step red takes over one host at most, and blue does one thing. Adding nothing is cheaper
  // than to look whether there is something to add.
  SPARRING_FN void count_step(const BlueTurn& blue, Hosts lost, int held,
                              const Result& result) const {
    const Recorder& recorder = result.recorder;
    const bool restores = blue.restore_tenths != 0;
    const bool removes = last_action >= kRemove && last_action < kDecoy;
    recorder.count(restores  ? kRestores
                   : removes ? kRemoves
                             : kPlacedDecoys,
                   0, restores || removes || blue.decoy_on >= 0);
    recorder.count(kHeld, 0, held);
    if (lost) recorder.count(kLost, 0);
    if (!(flags & kServiceUp)) recorder.count(kStopped, 0);
    if (blue.order) {
      recorder.count(kJudgedRepairs, 0);
      recorder.count(kRepairsInOrder, 0, blue.order > 0);
    }
    if (!result.truncated) return;
    recorder.count(kGames, 0);
    recorder.count(kSteps, 0, steps);
  }

  // Returns how many hosts red holds, User0 left out.
  SPARRING_FN int pay(const BlueTurn& blue, Result& result) {
    const int cheap = popcount(privileged & kCheapHosts), dear = popcount(privileged & kDearHosts);
    const int compromise = cheap + 10 * dear;
    const int stopped = flags & kServiceUp ? 0 : 100;
    total_tenths -= compromise + stopped + blue.restore_tenths;
    if (compromise) result.add_reward(kCompromise, 0, static_cast<f32>(-compromise) / 10.0f);
    if (stopped) result.add_reward(kServiceStopped, 0, -10.0f);
    if (blue.restore_tenths) result.add_reward(kRestoring, 0, -1.0f);
    if (blue.order) result.add_reward(kOrderKept, 0, static_cast<f32>(blue.order));
    return cheap + dear;
  }

  SPARRING_FN Hosts sessions() const { return privileged | removable | stuck; }
  SPARRING_FN Ports open_ports(int host) const { return kGenuine[host] | decoy_ports[host]; }

  // cage2/blue.hpp
  SPARRING_FN void legal(const Config& config, int row, Legal<Game>& out) const;
  SPARRING_FN int full_action(const Config& config, int action);
  SPARRING_FN BlueTurn play_blue(const Config& config, int action);

  // cage2/red.hpp
  template <class Draws>
  SPARRING_FN Events play_green(Draws& draws) const;
  template <class Draws>
  SPARRING_FN Events play_red(const Config& config, Draws& draws);

  // cage2/observation.hpp
  SPARRING_FN void look(const Config& config, const BlueTurn& blue, const Events& green,
                        const Events& red_events);
  SPARRING_FN void observe(const Config& config, int me, u8* out) const;

  // cage2/bots.hpp
  SPARRING_FN Action act(int bot, const Config& config, int row, const Legal<Game>& legal,
                         Rng& rng) const;

  // cage2/hidden.hpp
  SPARRING_FN void resample_hidden(const Config& config, int me, Rng& rng);
  SPARRING_FN void resample_last_move(Rng& rng);

#if SPARRING_HOST
  static Spec spec(const Config& config);
  static std::vector<Stat> stats(const Config& config);
  static std::vector<Field> config_fields();
  static std::vector<Field> state_fields();
  static std::string invalid(const Config& config);
  static std::string action_name(const Config& config, int action);
  std::string setup(const Config& config, const std::vector<i64>& data);
  void bounds(const Config& config, Bounds& bounds) const;
  const char* audit(const Config& config) const;
  bool ended(const Config& config) const { return steps >= config.max_steps; }
#endif
};

}  // namespace sparring::cage2

#include "games/cage2/blue.hpp"
#include "games/cage2/bots.hpp"
#include "games/cage2/describe.hpp"
#include "games/cage2/hidden.hpp"
#include "games/cage2/observation.hpp"
#include "games/cage2/red.hpp"
