// Blue's actions and which of them can do anything (sections 4 and 11).
#pragma once

#include "games/cage2.hpp"

namespace sparring::cage2 {

SPARRING_FN inline u16 with(u16 set, int host) { return static_cast<u16>(set | just(host)); }
SPARRING_FN inline u16 without(u16 set, int host) { return static_cast<u16>(set & ~just(host)); }

SPARRING_FN inline u32 label_of(u64 seen, int host) {
  return static_cast<u32>(seen >> (4 * host + 2) & 3);
}
SPARRING_FN inline u64 relabeled(u64 seen, int host, u32 label) {
  return (seen & ~(u64{3} << (4 * host + 2))) | u64{label} << (4 * host + 2);
}

// Plain action, or the next decoy of a list; a list that is used up sends its first one again.
SPARRING_FN inline int Game::full_action(const Config& config, int action) {
  if (config.actions == kAll) return action;
  if (action < kPlainActions) return kPlain[action];
  const int list = action - kPlainActions;
  const u32 used = lists_used >> (3 * list) & 7;
  if (used >= kListSize[list]) return kList[list][0];
  lists_used += 1u << (3 * list);
  return kList[list][used];
}

// The list of a host starts anew once the host is restored.
SPARRING_FN inline u32 lists_after_restore(u32 lists_used, int host) {
  for (int list = 0; list < kLists; ++list)
    if (kListHost[list] == host) lists_used &= ~(7u << (3 * list));
  return lists_used;
}

// Whether a decoy finds its port free. Vsftpd looks at a port that is always free.
SPARRING_FN inline bool can_place(const Game& game, int decoy, int host) {
  return (kDecoyHosts[decoy] >> host & 1) &&
         (decoy == kVsftpd || !(game.open_ports(host) >> kDecoyPort[decoy] & 1));
}

// A repair follows the order if no unit that comes earlier holds a compromised host.
SPARRING_FN inline int judge_repair(Game& game, Hosts compromised, int host) {
  const int unit = unit_of(host);
  bool kept = true;
  for (int i = 0; game.order[i] != unit; ++i)
    kept &= (compromised & kUnitHosts[game.order[i]]) == 0;
  if (game.repairs[unit] < 0xff) {
    ++game.repairs[unit];
    game.in_order[unit] = static_cast<u8>(game.in_order[unit] + kept);
  }
  return kept ? 1 : -1;
}

SPARRING_FN inline void restore(Game& game, const Config& config, int host) {
  game.removable = without(game.removable, host);
  game.stuck = without(game.stuck, host);
  game.malware = without(game.malware, host);
  game.touched = without(game.touched, host);
  game.decoy_ports[host] = 0;
  game.lists_used = lists_after_restore(game.lists_used, host);
  game.seen = relabeled(game.seen, host, kClean);
  if (host != kUser0) game.privileged = without(game.privileged, host);
  if (host == kOpServer0) {
    game.flags |= kServiceUp;
    // The simulator forgets the service's process, so that nothing can stop it any more.
    if (!config.relink_on_restore) game.flags &= static_cast<u8>(~kServiceLinked);
  }
  if (host >= kUser3 && config.has_haraka_bug())
    game.restored |= static_cast<u8>(1 << (host - kUser3));
}

SPARRING_FN inline BlueTurn Game::play_blue(const Config& config, int action) {
  BlueTurn turn;
  last_action = static_cast<u8>(action);
  if (action < kAnalyse) return turn;
  const int family = (action - kAnalyse) / kHosts, host = (action - kAnalyse) % kHosts;
  // User0 stays in red's hands whatever blue does: repairing it is no repair.
  const Hosts compromised = config.orders ? sessions() & ~just(kUser0) : 0;
  if (action < kRemove) {
    if (malware >> host & 1) turn.malware_on = host;
  } else if (action < kDecoy) {
    if ((compromised & removable) >> host & 1) turn.order = judge_repair(*this, compromised, host);
    removable = without(removable, host);
    if (label_of(seen, host) != kClean) seen = relabeled(seen, host, kUnknown);
  } else if (action < kRestore) {
    const int decoy = family - 2;
    if (can_place(*this, decoy, host)) {
      turn.decoy_on = host;
      decoy_ports[host] |= static_cast<u8>(1 << kDecoyPort[decoy] & ~kGenuine[host]);
      touched = with(touched, host);
    }
  } else {
    turn.restore_tenths = 10;
    if (compromised >> host & 1) turn.order = judge_repair(*this, compromised, host);
    restore(*this, config, host);
  }
  return turn;
}

// Bit `port` of eight bytes as eight bits: the product moves byte i's bit to bit i of the top.
SPARRING_FN constexpr u32 column(u64 bytes, int port) {
  return static_cast<u32>((bytes >> port & 0x0101010101010101) * 0x0102040810204080 >> 56);
}

// The lowest of every four bits, together.
SPARRING_FN constexpr Hosts every_fourth(u64 bits) {
  bits = (bits | bits >> 3) & 0x0303030303030303;
  bits = (bits | bits >> 6) & 0x000f000f000f000f;
  bits = (bits | bits >> 12) & 0x000000ff000000ff;
  return static_cast<Hosts>(bits | bits >> 24) & kAllHosts;
}

SPARRING_FN inline void put_family(Legal<Game>& out, int first, Hosts hosts) {
  out.word[first >> 6] |= u64{hosts} << (first & 63);
  if ((first & 63) + kHosts > 64) out.word[(first >> 6) + 1] |= u64{hosts} >> (64 - (first & 63));
}

// All of the 145 but those after which everything is surely as after Sleep, as far as blue can
// tell; a Restore of that kind would only cost.
SPARRING_FN inline void put_useful(const Game& game, const Config& config, Legal<Game>& out) {
  out = Legal<Game>::none();
  out.set(kSleep);
  const Hosts touched = game.touched;
  // Without green, every shell that Remove can kill has shown on its host.
  const Hosts marked = every_fourth((game.seen & kCompromisedBits) >> 3);
  put_family(out, kAnalyse, touched);
  put_family(out, kRemove, config.green ? touched : marked);
  const u64 low = load8(game.decoy_ports), high = load8(game.decoy_ports + 8);
  for (int decoy = 0; decoy < kVsftpd; ++decoy) {
    const int port = kDecoyPort[decoy];
    const Hosts taken = column(low, port) | column(high, port) << 8;
    put_family(out, kDecoy + kHosts * decoy, kFitting.hosts[decoy] & ~taken);
  }
  put_family(out, kDecoy + kHosts * kVsftpd, kFitting.hosts[kVsftpd]);
  Hosts restorable = touched;
  if (game.flags & kServiceLinked && !config.relink_on_restore) restorable |= just(kOpServer0);
  if (config.has_haraka_bug()) restorable |= (~Hosts{game.restored} & 3) << kUser3;
  put_family(out, kRestore, restorable);
}

SPARRING_FN inline void Game::legal(const Config& config, int, Legal<Game>& out) const {
  if (!config.mask) {
    out.word[0] = config.actions == kAll ? ~u64{0} : (u64{1} << kWinnerActions) - 1;
    out.word[1] = config.actions == kAll ? ~u64{0} : 0;
    out.word[2] = config.actions == kAll ? (u64{1} << (kAllActions - 128)) - 1 : 0;
    return;
  }
  if (config.actions == kAll) return put_useful(*this, config, out);
  Legal<Game> useful;
  put_useful(*this, config, useful);
  out = Legal<Game>::none();
  out.set(kWinnerIdle);
  for (int i = 0; i < kPlainActions; ++i)
    if (useful.test(kPlain[i])) out.set(i);
  for (int list = 0; list < kLists; ++list) {
    const u32 used = lists_used >> (3 * list) & 7;
    if (used < kListSize[list] && useful.test(kList[list][used])) out.set(kPlainActions + list);
  }
}

}  // namespace sparring::cage2
