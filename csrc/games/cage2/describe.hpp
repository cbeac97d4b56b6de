// CAGE-2 for people: names, options, state fields, checks. Host only.
#pragma once

#include "games/cage2.hpp"
#include "games/cage2/blue.hpp"
#include "games/cage2/observation.hpp"
#include "games/cage2/red.hpp"

#if SPARRING_HOST

namespace sparring::cage2 {

inline constexpr const char* kHostNames[kHosts] = {
    "Defender",   "Enterprise0", "Enterprise1", "Enterprise2", "Op_Host0", "Op_Host1", "Op_Host2",
    "Op_Server0", "User0",       "User1",       "User2",       "User3",    "User4"};
inline constexpr const char* kFamilyNames[11] = {
    "Analyse",   "Remove",       "DecoyApache", "DecoyFemitter", "DecoyHarakaSMPT", "DecoySmss",
    "DecoySSHD", "DecoySvchost", "DecoyTomcat", "DecoyVsftpd",   "Restore"};
inline constexpr const char* kUnitNames[kUnits] = {"defender", "enterprise", "op_server", "op_host",
                                                   "user"};

inline Spec Game::spec(const Config& config) {
  std::vector<Block> blocks;
  for (const char* host : kHostNames) blocks.push_back(block_of({host, kHostFeatures}));
  std::vector<Column> scans, decoys, units;
  for (int host = 0; host < kHosts; ++host) {
    if (config.scan_history == kEveryHost || !(kUnitHosts[3] >> host & 1))
      scans.push_back({kHostNames[host]});
    decoys.push_back({kHostNames[host], Type::kU8, 4});
  }
  for (const char* unit : kUnitNames) units.push_back({unit});
  if (config.scan_history) blocks.push_back({"scan history", 1, scans});
  if (config.decoys_left) blocks.push_back({"decoys left", 1, decoys});
  if (config.orders) blocks.push_back({"order", kUnits, units});
  return {.name = "cage2",
          .title = "CAGE-2: defend a company network against a scripted attacker",
          .rules_version = 1,
          .blocks = blocks,
          .role_names = {"blue"}};
}

inline std::vector<Stat> Game::stats(const Config& config) {
  std::vector<Stat> stats = {
      {"hosts_lost", {kLost}, {kGames}, "hosts that red took over, per game"},
      {"hosts_held", {kHeld}, {kSteps}, "hosts in red's hands, User0 left out"},
      {"service_stopped", {kStopped}, {kGames}, "steps without the service, per game"},
      {"restores", {kRestores}, {kGames}, "hosts restored per game"},
      {"removes", {kRemoves}, {kGames}, "attempts to remove a session, per game"},
      {"decoys", {kPlacedDecoys}, {kGames}, "decoys placed per game"},
  };
  const Stat kept = {
      "order_kept", {kRepairsInOrder}, {kJudgedRepairs}, "repairs that follow the order"};
  if (config.orders) stats.insert(stats.begin(), kept);  // in front, where displays have room
  return stats;
}

inline std::string Game::action_name(const Config& config, int action) {
  if (config.actions == kWinner) {
    if (action >= kPlainActions)
      return std::string("Decoy ") + kHostNames[kListHost[action - kPlainActions]];
    action = kPlain[action];
  }
  if (action == kSleep) return "Sleep";
  if (action == kMonitor) return "Monitor";
  const int at = action - kAnalyse;
  return std::string(kFamilyNames[at / kHosts]) + " " + kHostNames[at % kHosts];
}

inline std::vector<Field> Game::config_fields() {
  return {
      SPARRING_CONFIG(preset, 0, 1, "FINAL|CHALLENGE",
                      "the simulator's newest version, or that of the leaderboard"),
      SPARRING_CONFIG(sticky_ports, 0, 2, "OFF|ON|PRESET",
                      "red never forgets a port it has seen; PRESET: as in CHALLENGE"),
      SPARRING_CONFIG(haraka_restore_bug, 0, 2, "OFF|ON|PRESET",
                      "a restored User3 or User4 is safe from Haraka; PRESET: as in CHALLENGE"),
      SPARRING_CONFIG(relink_on_restore, 0, 1, "",
                      "a restored Op_Server0 can be stopped again (not in the simulator)"),
      SPARRING_CONFIG(red, 0, 3, "B_LINE|MEANDER|SLEEP|MIX", "who attacks", true),
      SPARRING_CONFIG(mix, 0, 1e6, "", "MIX: weights of B_line, Meander and a red that sleeps",
                      true),
      SPARRING_CONFIG(green, 0, 1, "", "users scan hosts now and then"),
      SPARRING_CONFIG(max_steps, 1, 65535, "", "an episode is cut after so many"),
      SPARRING_CONFIG(actions, 0, 1, "ALL|WINNER", "all 145, or the 36 of the challenge's winner"),
      SPARRING_CONFIG(mask, 0, 1, "", "offer only what can have an effect, as far as blue knows"),
      SPARRING_CONFIG(obs_rule, 0, 1, "OFFICIAL|CARDIFF",
                      "OFFICIAL: placing a decoy can hide a scan of its host"),
      SPARRING_CONFIG(scan_history, 0, 2, "NONE|WINNER|ALL",
                      "append who was scanned: 10 hosts as the winner did, or all"),
      SPARRING_CONFIG(decoys_left, 0, 1, "", "append how many ports decoys could still open"),
      SPARRING_CONFIG(orders, 0, 2, "NONE|DRAWN|FIXED",
                      "append an order in which units are to be repaired"),
      SPARRING_CONFIG(order, 0, kUnits - 1, "",
                      "FIXED: units, first to last; 0 defender, 1 enterprise, 2 op_server, "
                      "3 op_host, 4 user",
                      true),
      SPARRING_CONFIG(order_bonus, -1e6, 1e6, "",
                      "paid for a repair in order, taken for one out of order"),
  };
}

inline std::vector<Field> Game::state_fields() {
  return {
      SPARRING_STATE(seen),        SPARRING_STATE(total_tenths), SPARRING_STATE(lists_used),
      SPARRING_STATE(privileged),  SPARRING_STATE(removable),    SPARRING_STATE(stuck),
      SPARRING_STATE(malware),     SPARRING_STATE(touched),      SPARRING_STATE(was_scan),
      SPARRING_STATE(known_ip),    SPARRING_STATE(known_host),   SPARRING_STATE(scanned),
      SPARRING_STATE(exploited),   SPARRING_STATE(escalated),    SPARRING_STATE(mapped),
      SPARRING_STATE(steps),       SPARRING_STATE(decoy_ports),  SPARRING_STATE(known_ports),
      SPARRING_STATE(red),         SPARRING_STATE(stage),        SPARRING_STATE(prey),
      SPARRING_STATE(flags),       SPARRING_STATE(subnets),      SPARRING_STATE(last_ip),
      SPARRING_STATE(last_host),   SPARRING_STATE(restored),     SPARRING_STATE(latest_scan),
      SPARRING_STATE(last_action), SPARRING_STATE(red_action),   SPARRING_STATE(red_target),
      SPARRING_STATE(red_port),    SPARRING_STATE(red_noticed),  SPARRING_STATE(order),
      SPARRING_STATE(repairs),     SPARRING_STATE(in_order),
  };
}

inline std::string Game::invalid(const Config& config) {
  if (config.red == kMix && config.mix[0] + config.mix[1] + config.mix[2] <= 0)
    return "mix=0,0,0 leaves no red to draw; give one of the three a weight";
  u32 units = 0;
  for (i32 unit : config.order) units |= 1u << unit;
  if (config.orders && units != (1u << kUnits) - 1)
    return "order must name each unit 0 to 4 once, for example order=1,2,4,3,0";
  return {};
}

// The host through which B_line came in, if it holds these.
inline int b_line_prey(Hosts taken) {
  if (const Hosts prey = taken & kPossiblePrey) return lowest_bit(prey);
  const bool from_below = taken & just(kEnterprise0) && !(taken & just(kEnterprise1));
  return from_below ? kUser3 : kUser1;
}

// Where B_line goes on once it holds some of the hosts of its plan; it knows their ports.
inline void resume_b_line(Game& game) {
  const Hosts taken = game.sessions() & ~just(kUser0);
  game.prey = static_cast<u8>(b_line_prey(taken));
  const int gateway = game.prey <= kUser2 ? kEnterprise1 : kEnterprise0;
  const int way[] = {game.prey, gateway, kEnterprise2, kOpServer0}, exploit_at[] = {2, 5, 9, 12};
  for (int i = 0; i < 4; ++i)
    if (taken >> way[i] & 1)
      game.stage = static_cast<u8>(exploit_at[i] + (game.privileged >> way[i] & 1));
  if (game.stage == 0) {
    game.prey = kNone;
    return;
  }
  game.flags |= kSucceeded;
  if (game.stage >= kOpServerExploit) game.flags |= kStage12Played;
  for (int i = 0; i < 4 && exploit_at[i] <= game.stage; ++i)
    game.known_ports[way[i]] = kGenuine[way[i]];
}

// Hosts that red has taken before the first step, and blue knows of: for each host 0 none, 1 a
// user's session, 2 root.
inline std::string Game::setup(const Config& config, const std::vector<i64>& data) {
  if (data.size() != kHosts) return "a start needs a level of access for each of the 13 hosts";
  Rng unused(0, 0, 0, Stream::kChance);
  Game fresh;
  fresh.reset(config, unused);
  for (int host = 0; host < kHosts; ++host) {
    const i64 level = data[static_cast<size_t>(host)];
    if (level < 0 || level > 2) return "a level of access must be 0..2";
    if (level == 0 || host == kUser0) continue;
    if (host == kDefender) return "red cannot be on Defender";
    for (u16* set : {&fresh.touched, &fresh.malware, &fresh.known_ip, &fresh.known_host,
                     &fresh.scanned, &fresh.exploited, &fresh.mapped})
      *set = with(*set, host);
    fresh.known_ports[host] = kGenuine[host];
    fresh.subnets |= static_cast<u8>(1 << subnet_of(host));
    open_user_session(fresh, host, true);
    fresh.seen = relabeled(fresh.seen, host, level == 2 ? kPrivileged : kUserLevel);
    if (level < 2) continue;
    escalate(fresh, host);
    fresh.escalated = with(fresh.escalated, host);
  }
  resume_b_line(fresh);
  if (const char* wrong = fresh.audit(config)) return wrong;
  *this = fresh;
  return {};
}

// All that blue can pay in a step: each host, the service and a Restore.
inline constexpr i32 kMaxTenths = 157;

inline void declare_or_none(const char* name, const u8& field, i64 low, i64 high, Bounds& bounds) {
  if (field == kNone) return bounds.any(field);
  bounds.within(name, field, low, high);
}

inline void Game::bounds(const Config& config, Bounds& bounds) const {
  bounds.within("seen", seen, 0, (i64{1} << (4 * kHosts)) - 1);
  bounds.within("total_tenths", total_tenths, -kMaxTenths * config.max_steps, 0);
  bounds.within("lists_used", lists_used, 0, (i64{1} << (3 * kLists)) - 1);
  for (const u16* hosts : {&privileged, &removable, &stuck, &malware, &touched, &was_scan})
    bounds.within("a set of hosts", *hosts, 0, kAllHosts);
  for (const u16* hosts : {&known_ip, &known_host, &scanned, &exploited, &escalated, &mapped})
    bounds.within("red's memory of hosts", *hosts, 0, kAllHosts);
  bounds.within("steps", steps, 0, config.max_steps);
  for (int host = 0; host < kHosts; ++host) bounds.any(decoy_ports[host]);
  for (size_t i = kHosts; i < sizeof decoy_ports; ++i) bounds.spare(decoy_ports[i]);
  bounds.any(known_ports);
  bounds.within("red", red, 0, kReds - 1);
  bounds.within("stage", stage, 0, kStages - 1);
  declare_or_none("prey", prey, kUser1, kUser4, bounds);
  bounds.within("flags", flags, 0, 2 * kFailed - 1);
  bounds.within("subnets", subnets, 0, (1 << (2 * kSubnets)) - 1);
  declare_or_none("last_ip", last_ip, 0, kHosts - 1, bounds);
  declare_or_none("last_host", last_host, 0, kHosts - 1, bounds);
  bounds.within("restored", restored, 0, 3);
  declare_or_none("latest_scan", latest_scan, 0, kHosts - 1, bounds);
  declare_or_none("last_action", last_action, 0, kAllActions - 1, bounds);
  bounds.within("red_action", red_action, kRedSleeps, kImpact);
  declare_or_none("red_target", red_target, 0, kHosts - 1, bounds);
  declare_or_none("red_port", red_port, kFtp, kSsh, bounds);
  declare_or_none("red_noticed", red_noticed, 0, 1, bounds);
  bounds.within("order", order, 0, kUnits - 1);
  bounds.any(repairs);
  bounds.any(in_order);
  bounds.spare(spare);
}

inline const char* audit_access(const Game& game, const Config& config) {
  const Hosts user0 = just(kUser0);
  if (!(game.privileged & user0)) return "red lost User0";
  if (game.privileged & (game.removable | game.stuck)) return "a host has two levels of access";
  if (game.sessions() & just(kDefender)) return "red is on Defender";
  if (game.sessions() & ~Hosts{game.touched} & ~user0)
    return "red is on a host that showed nothing";
  if (game.malware & ~game.touched) return "malware on a host that showed nothing";
  if (game.privileged & ~game.malware & ~user0) return "privileged access without malware";
  if (!config.green && game.removable & ~every_fourth((game.seen & kCompromisedBits) >> 3))
    return "a noticed shell on a host that looks clean";
  return nullptr;
}

inline const char* audit_service(const Game& game, const Config& config) {
  const bool up = game.flags & kServiceUp, linked = game.flags & kServiceLinked;
  if (!up && !linked) return "OTService stopped although nothing can stop it";
  if (!up && !(game.flags & kServiceKnown)) return "OTService stopped by a red that never saw it";
  if (config.relink_on_restore && !linked) return "OTService stayed unlinked";
  if (game.flags & kSucceeded && game.flags & kFailed) return "red both succeeded and failed";
  return nullptr;
}

// Red's last move has a target of its kind; only an exploit has a port and may be noticed.
inline const char* audit_last_move(const Game& game) {
  const bool moved = game.red_action != kRedSleeps;
  if (moved != (game.steps > 0 && game.red != kSleepingRed)) return "red moved out of turn";
  const bool on_target = game.red_action == kRedSleeps ? game.red_target == kNone
                         : game.red_action == kSweep   ? game.red_target < kSubnets
                         : game.red_action == kImpact  ? game.red_target == kOpServer0
                                                       : game.red_target < kHosts;
  if (!on_target) return "red's last move has no such target";
  if (game.red_port != kNone && game.red_action != kExploit) return "a port that nobody attacked";
  if (game.red_noticed != kNone && game.red_port == kNone) return "a shell from nowhere";
  return nullptr;
}

// Meander exploits some address when it can do nothing else. Defender is one that it never takes
// over; before Defender is known, each host that it holds leads on to the next.
inline const char* audit_meander(const Game& game) {
  const bool failed = game.flags & kFailed;
  const auto due = [&](u8 last) { return failed && last != kNone ? just(last) : Hosts{0}; };
  const int swept = game.subnets >> kSubnets;
  if (game.red != kMeander && (game.last_ip != kNone || game.last_host != kNone))
    return "an attacker other than Meander learns";
  if (game.last_ip != kNone && game.last_host != kNone) return "Meander made two moves at once";
  if (swept & ~game.subnets || !(game.subnets & 1 << kUserNet)) return "an unknown subnet swept";
  if (!(game.known_ip & just(kUser0))) return "red forgot User0";
  if (game.exploited & just(kDefender) & ~due(game.last_ip)) return "red is on Defender";
  if (game.known_ip & just(kDefender)) return nullptr;
  if (swept & 1 << kEnterpriseNet) return "a sweep missed Defender";
  if (swept & 1 << kUserNet && kSubnetHosts[kUserNet] & ~Hosts{game.known_ip})
    return "a sweep missed a user's host";
  if (game.exploited & ~game.known_host & ~due(game.last_ip))
    return "an exploit of a host that red does not know";
  for (Hosts rest = game.escalated & ~due(game.last_host); rest; rest &= rest - 1) {
    const int host = lowest_bit(rest);
    if (!(game.subnets >> subnet_of(host) & 1) || revealed_by(host) & ~Hosts{game.known_ip})
      return "an escalation revealed nothing";
  }
  return nullptr;
}

// What depends on options that a game keeps.
inline const char* audit_options(const Game& game, const Config& config) {
  u32 units = 0;
  for (const u8 unit : game.order) units |= 1u << unit;
  if (units != (config.orders ? (1u << kUnits) - 1 : 1u)) return "the order is none of units";
  for (int list = 0; list < kLists; ++list)
    if ((game.lists_used >> (3 * list) & 7) > (config.actions == kWinner ? kListSize[list] : 0))
      return "more decoys sent than a list has";
  if (game.restored && !config.has_haraka_bug()) return "a restored host is remembered";
  return nullptr;
}

// The invariants of section 13.4 that any position must satisfy; null if all hold.
inline const char* Game::audit(const Config& config) const {
  if (const char* wrong = audit_access(*this, config)) return wrong;
  if (const char* wrong = audit_service(*this, config)) return wrong;
  if (const char* wrong = audit_last_move(*this)) return wrong;
  if (const char* wrong = audit_meander(*this)) return wrong;
  if (const char* wrong = audit_options(*this, config)) return wrong;
  for (int host = 0; host < kHosts; ++host) {
    if (decoy_ports[host] & ~kOpenable.ports[host]) return "a decoy that cannot be there";
    if (label_of(seen, host) != kClean && !(touched >> host & 1)) return "a label from nowhere";
    if (known_ports[host] && (known_ports[host] & kGenuine[host]) != kGenuine[host])
      return "red's memory of a scan lacks a genuine port";
    if (known_ports[host] & ~(kGenuine[host] | kOpenable.ports[host]))
      return "red remembers a port that cannot be open";
    if ((seen >> (4 * host) & 3) == 2) return "an activity that does not exist";
  }
  if (latest_scan == kNone ? was_scan != 0 : !(was_scan >> latest_scan & 1))
    return "the latest scan is not one of the scans";
  if (total_tenths < -kMaxTenths * steps) return "blue paid more than there is to pay";
  for (int unit = 0; unit < kUnits; ++unit)
    if (in_order[unit] > repairs[unit]) return "more repairs in order than repairs";
  return nullptr;
}

}  // namespace sparring::cage2
#endif  // SPARRING_HOST
