// From what happened to what blue sees (section 8), and the observation row.
#pragma once

#include "games/cage2.hpp"

namespace sparring::cage2 {

// The four bits of `seen` that a host has: its activity, then its label.
inline constexpr Feature kHostFeatures[] = {
    {"active"}, {"exploit"}, {"unknown or privileged"}, {"user or privileged"}};
SPARRING_FN consteval u32 host_bit(const char* name) { return 1u << byte_of(kHostFeatures, name); }
static_assert(kScanned == host_bit("active") &&
              kAttacked == (host_bit("active") | host_bit("exploit")) &&
              kUnknown << 2 == host_bit("unknown or privileged") &&
              kUserLevel << 2 == host_bit("user or privileged"));

// Section 8.3. A decoy that was placed in the same step adds an entry without a port.
SPARRING_FN inline Activity classify(const Config& config, const Events& events, bool placed) {
  const bool many = events.connections + placed >= 3;
  if (many && events.ports >= 3) return kScanned;
  if (events.shell || (many && events.ports == 1)) return kAttacked;
  return placed && config.obs_rule == kOfficial ? kQuiet : kScanned;
}

// Green's scan touches every port that red can touch, except the one a shell calls back from.
SPARRING_FN inline Events together(const Events& green, const Events& red) {
  return {.host = red.host,
          .connections = green.connections + red.connections,
          .ports = green.ports + red.shell,
          .shell = red.shell};
}

// Section 8.4, with the scan history of section 11.
SPARRING_FN inline void Game::look(const Config& config, const BlueTurn& blue, const Events& green,
                                   const Events& red_events) {
  seen &= ~kActivityBits;
  Hosts scans = 0;
  const auto show = [&](const Events& events) {
    const int host = events.host;
    const Activity activity = classify(config, events, blue.decoy_on == host);
    if (activity == kQuiet) return;
    touched = static_cast<u16>(touched | just(host));
    seen |= u64{activity} << (4 * host);
    if (activity == kScanned)
      scans |= just(host);
    else
      seen = relabeled(seen, host, kUserLevel);
  };
  if (green.host >= 0 && green.host == red_events.host) {
    show(together(green, red_events));
  } else {
    if (green.host >= 0) show(green);
    if (red_events.host >= 0) show(red_events);
  }
  if (blue.malware_on >= 0) seen = relabeled(seen, blue.malware_on, kPrivileged);
  if (config.scan_history == kWinnerHosts) scans &= ~kUnitHosts[3];
  if (scans) {
    latest_scan = static_cast<u8>(lowest_bit(scans));
    was_scan = static_cast<u16>(was_scan | just(latest_scan));
  }
}

// 0 never, 1 earlier, 2 latest.
SPARRING_FN inline u8* put_history(const Game& game, int scan_history, u8* out) {
  u32 hosts = game.was_scan;
  int latest = game.latest_scan, count = kHosts;
  if (scan_history == kWinnerHosts) {  // Op_Host0 to Op_Host2 are left out
    hosts = (hosts & 0xf) | (hosts >> 7) << 4;
    latest -= latest > kOpHost2 ? 3 : 0;
    count -= 3;
  }
  for (int i = 0; i < count; ++i) out[i] = static_cast<u8>(hosts >> i & 1);
  if (game.latest_scan != kNone) out[latest] = 2;
  return out + count;
}

SPARRING_FN inline u8* put_decoys_left(const Game& game, u8* out) {
  for (int host = 0; host < kHosts; ++host)
    out[host] = static_cast<u8>(popcount(kOpenable.ports[host] & ~game.decoy_ports[host]));
  return out + kHosts;
}

SPARRING_FN inline void put_order(const Game& game, u8* out) {
  for (int place = 0; place < kUnits; ++place, out += kUnits)
    for (int unit = 0; unit < kUnits; ++unit) out[unit] = game.order[place] == unit;
}

SPARRING_FN inline void Game::observe(const Config& config, int, u8* SPARRING_RESTRICT out) const {
  expand_bits_over(Bits<64>{{seen}}, out);
  out += 4 * kHosts;
  if (config.scan_history) out = put_history(*this, config.scan_history, out);
  if (config.decoys_left) out = put_decoys_left(*this, out);
  if (config.orders) put_order(*this, out);
}

}  // namespace sparring::cage2
