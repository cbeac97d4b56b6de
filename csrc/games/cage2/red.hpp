// The scripted attackers and what their actions do (sections 3, 5, 6), and green (section 7).
#pragma once

#include "games/cage2.hpp"

namespace sparring::cage2 {

// B_line's plan (section 6.1). Stages that attack its first victim or the enterprise host behind
// it name those; where an action fails, the plan goes back.
inline constexpr int kStages = 15, kOpServerExploit = 12, kPrey = 0xfd, kGateway = 0xfe;
inline constexpr u8 kStageAction[kStages] = {kSweep,    kScan,     kExploit, kEscalate, kScan,
                                             kExploit,  kEscalate, kSweep,   kScan,     kExploit,
                                             kEscalate, kScan,     kExploit, kEscalate, kImpact};
inline constexpr u8 kStageTarget[kStages] = {
    kUserNet,     kPrey,      kPrey,          kPrey,        kGateway,
    kGateway,     kGateway,   kEnterpriseNet, kEnterprise2, kEnterprise2,
    kEnterprise2, kOpServer0, kOpServer0,     kOpServer0,   kOpServer0};
inline constexpr u8 kStageAfterFailure[kStages] = {0, 1, 2, 2, 2, 2, 5, 5, 5, 5, 9, 9, 9, 12, 13};
inline constexpr Hosts kPossiblePrey = 0x1e00;

template <class Draws>
SPARRING_FN inline RedMove b_line_move(Game& game, Draws& draws) {
  int stage = game.flags & kSucceeded ? min(game.stage + 1, kStages - 1)
                                      : int{kStageAfterFailure[game.stage]};
  if (stage == kOpServerExploit) {
    // Until it has once attacked the server, an empty scan sends B_line back to its start.
    if (game.flags & kEmptyScan && !(game.flags & kStage12Played))
      stage = 1;
    else
      game.flags |= kStage12Played;
  }
  game.stage = static_cast<u8>(stage);
  if (stage >= 1 && game.prey == kNone) game.prey = static_cast<u8>(draws.one_of(kPossiblePrey));
  int target = kStageTarget[stage];
  if (target == kPrey) target = game.prey;
  if (target == kGateway) target = game.prey <= kUser2 ? kEnterprise1 : kEnterprise0;
  return {kStageAction[stage], target};
}

// Meander learns from the outcome of its last exploit or escalation (section 6.2, 1 and 2).
SPARRING_FN inline void meander_learn(Game& game) {
  const bool failed = game.flags & kFailed;
  if (game.last_ip != kNone) {
    if (!failed) {
      game.mapped = with(game.mapped, game.last_ip);
    } else {
      game.exploited = without(game.exploited, game.last_ip);
      Hosts forgotten = game.escalated & kOperationalHosts;
      if (!forgotten) forgotten = game.escalated & kEnterpriseHosts;
      game.escalated = static_cast<u16>(game.escalated & ~forgotten);
      game.exploited = static_cast<u16>(game.exploited & ~forgotten);
    }
    game.last_ip = kNone;
  }
  if (game.last_host != kNone) {
    if (failed) {
      game.escalated = without(game.escalated, game.last_host);
      if (game.mapped >> game.last_host & 1)
        game.exploited = without(game.exploited, game.last_host);
    }
    game.last_host = kNone;
  }
}

// Impact if it can, then sweep, scan, escalate, exploit, each as long as there is a target.
template <class Draws>
SPARRING_FN inline RedMove meander_move(Game& game, Draws& draws) {
  meander_learn(game);
  if (game.escalated >> kOpServer0 & 1) {
    game.last_host = kOpServer0;
    return {kImpact, kOpServer0};
  }
  if (const u32 unswept = game.subnets & 7 & ~(game.subnets >> 3)) {
    const int subnet = lowest_bit(unswept);
    game.subnets |= static_cast<u8>(8 << subnet);
    return {kSweep, subnet};
  }
  if (const Hosts unscanned = game.known_ip & ~game.scanned) {
    const int host = draws.one_of(unscanned);
    game.scanned = with(game.scanned, host);
    return {kScan, host};
  }
  const Hosts lost = game.mapped & ~game.exploited;
  if (const Hosts ready = game.known_host & ~game.escalated & ~lost) {
    const int host = draws.one_of(ready);
    game.escalated = with(game.escalated, host);
    game.last_host = static_cast<u8>(host);
    return {kEscalate, host};
  }
  const int host = draws.one_of(game.known_ip & ~game.exploited);
  game.exploited = with(game.exploited, host);
  game.last_ip = static_cast<u8>(host);
  return {kExploit, host};
}

// Operational hosts are reachable through any session on an enterprise host (section 3).
SPARRING_FN inline bool is_reachable(const Game& game, int host) {
  return !(kOperationalHosts >> host & 1) || (game.sessions() & kEnterpriseHosts);
}

SPARRING_FN inline Events scan_events(const Game& game, int host) {
  const int decoys = popcount(game.decoy_ports[host]);
  return {.host = host,
          .connections = kConnections[host] + decoys,
          .ports = kDistinctPorts[host] + decoys};
}

SPARRING_FN inline bool sweep(Game& game, int subnet) {
  if (subnet == kOperationalNet && !(game.sessions() & kEnterpriseHosts)) return false;
  game.known_ip = static_cast<u16>(game.known_ip | kSubnetHosts[subnet]);
  return true;
}

// Never fails; what cannot be reached gives an empty result.
SPARRING_FN inline void scan(Game& game, const Config& config, int host, Events& events) {
  if (!is_reachable(game, host)) {
    game.flags |= kEmptyScan;
    return;
  }
  const Ports remembered = config.has_sticky_ports() ? game.known_ports[host] : 0;
  game.known_ports[host] = static_cast<u8>(remembered | game.open_ports(host));
  events = scan_events(game, host);
}

SPARRING_FN inline void make_privileged(Game& game, int host) {
  game.privileged = with(game.privileged, host);
  game.removable = without(game.removable, host);
  game.stuck = without(game.stuck, host);
}

// A session at user level matters only where red is not privileged yet (section 5.6).
SPARRING_FN inline void open_user_session(Game& game, int host, bool is_removable) {
  if (game.privileged >> host & 1) return;
  if (is_removable)
    game.removable = with(game.removable, host);
  else
    game.stuck = with(game.stuck, host);
}

// Section 5.3, steps 4 to 6.
template <class Draws>
SPARRING_FN inline bool attack_port(Game& game, int host, int port, Draws& draws, Events& events) {
  const int outcome = outcome_of(host, port);
  if (outcome == kNoService) {
    if (!(game.decoy_ports[host] >> port & 1)) return false;  // nothing listens there any more
    events = {.host = host, .connections = port == kSsh ? 10 : 2, .ports = 1};
    return false;
  }
  if (port == kSsh) {
    const bool enters = outcome == kSshSession;
    events = {.host = host, .connections = 10 + enters, .ports = 1};
    if (enters) open_user_session(game, host, false);
    return enters;
  }
  if (port == kSmtp && host >= kUser3 && game.restored >> (host - kUser3) & 1) {
    events = {.host = host, .connections = 1, .ports = 1};
    return false;
  }
  const bool noticed = draws.is_shell_noticed();
  game.red_noticed = noticed;
  events = {.host = host, .connections = 1 + noticed, .ports = 1 + noticed, .shell = noticed};
  game.malware = with(game.malware, host);
  if (outcome == kPrivilegedShell)
    make_privileged(game, host);
  else
    open_user_session(game, host, noticed);
  return true;
}

template <class Draws>
SPARRING_FN inline bool exploit(Game& game, int host, Draws& draws, Events& events) {
  if (game.known_ports[host] == 0) return false;
  const int port = draws.port_of(game.known_ports[host]);
  game.red_port = static_cast<u8>(port);
  if (!is_reachable(game, host)) return false;
  if (!attack_port(game, host, port, draws, events)) return false;
  game.known_host = with(game.known_host, host);
  return true;
}

SPARRING_FN inline bool escalate(Game& game, int host) {
  if (!(game.sessions() >> host & 1)) return false;
  if (!(game.privileged >> host & 1)) {
    make_privileged(game, host);
    game.malware = with(game.malware, host);
  }
  game.subnets |= static_cast<u8>(1 << subnet_of(host));
  game.known_ip = static_cast<u16>(game.known_ip | just(host) | revealed_by(host));
  if (host == kOpServer0) game.flags |= kServiceKnown;
  return true;
}

// Reports success even where the service is no longer linked and keeps running (section 5.5).
SPARRING_FN inline bool impact(Game& game) {
  if (!(game.sessions() >> kOpServer0 & 1) || !(game.flags & kServiceKnown)) return false;
  if (game.flags & kServiceLinked) game.flags &= static_cast<u8>(~kServiceUp);
  return true;
}

template <class Draws>
SPARRING_FN inline bool execute(Game& game, const Config& config, RedMove move, Draws& draws,
                                Events& events) {
  switch (move.action) {
    case kSweep:
      return sweep(game, move.target);
    case kScan:
      scan(game, config, move.target, events);
      return true;
    case kExploit:
      return exploit(game, move.target, draws, events);
    case kEscalate:
      return escalate(game, move.target);
    default:
      return impact(game);
  }
}

template <class Draws>
SPARRING_FN inline Events Game::play_red(const Config& config, Draws& draws) {
  Events events;
  if (red == kSleepingRed) return events;
  const RedMove move = red == kBLine ? b_line_move(*this, draws) : meander_move(*this, draws);
  flags &= static_cast<u8>(~(kSucceeded | kFailed | kEmptyScan));
  red_action = static_cast<u8>(move.action);
  red_target = static_cast<u8>(move.target);
  red_port = red_noticed = kNone;
  flags |= execute(*this, config, move, draws, events) ? kSucceeded : kFailed;
  return events;
}

// Green scans a user or enterprise host every other step on average.
inline constexpr u8 kGreenHosts[8] = {kUser0, kUser1,       kUser2,       kUser3,
                                      kUser4, kEnterprise0, kEnterprise1, kEnterprise2};

template <class Draws>
SPARRING_FN inline Events Game::play_green(Draws& draws) const {
  const int choice = draws.green();
  return choice < 8 ? scan_events(*this, kGreenHosts[choice]) : Events{};
}

}  // namespace sparring::cage2
