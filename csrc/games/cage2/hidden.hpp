// What blue cannot know, drawn anew: for searches, which must not see it.
#pragma once

#include "games/cage2/blue.hpp"

namespace sparring::cage2 {

// Draws anew what blue cannot know: red's kind, plans, memory, and its access to hosts that have
// shown something.
SPARRING_FN inline void Game::resample_hidden(const Config& config, int, Rng& rng) {
  const auto some_of = [&](Hosts set) { return static_cast<u16>(rng.next() & set); };
  if (config.red == kMix) red = static_cast<u8>(drawn_red(config, rng));
  const Hosts open = touched & ~just(kDefender) & ~just(kUser0);
  const Hosts marked = every_fourth((seen & kCompromisedBits) >> 3);
  const u16 deep = some_of(open);
  privileged = static_cast<u16>(just(kUser0) | deep);
  removable = static_cast<u16>(some_of(open) & ~deep & (config.green ? touched : marked));
  stuck = static_cast<u16>(some_of(open) & ~deep & ~removable);
  malware = static_cast<u16>(deep | some_of(open));
  stage = static_cast<u8>(rng.below(15));
  prey = static_cast<u8>(kUser1 + rng.below(4));
  SPARRING_FOR (int host = 0; host < kHosts; ++host)
    known_ports[host] = static_cast<u8>(rng.below(2) ? open_ports(host) : 0);
  known_ip = static_cast<u16>(known_ip | just(kDefender) | some_of(kAllHosts));
  known_host = static_cast<u16>(known_host | some_of(known_ip));
  scanned = some_of(known_ip);
  exploited = some_of(known_ip & ~just(kDefender));  // Meander never runs out of targets
  escalated = some_of(known_host);
  mapped = some_of(known_ip);
  last_ip = last_host = kNone;
  const int known_nets = (subnets & 7) | rng.below(8);
  subnets = static_cast<u8>(known_nets | (rng.below(8) & known_nets) << 3);
  resample_last_move(rng);
}

// Red's last move as any that might have been, and what came of it. A red that sleeps, or has not
// had its turn yet, did nothing.
SPARRING_FN inline void Game::resample_last_move(Rng& rng) {
  const bool moved = steps > 0 && red != kSleepingRed;
  red_action = static_cast<u8>(moved ? kSweep + rng.below(kImpact) : kRedSleeps);
  red_target = kNone;
  if (red_action == kImpact)
    red_target = kOpServer0;
  else if (red_action != kRedSleeps)
    red_target = static_cast<u8>(rng.below(red_action == kSweep ? kSubnets : kHosts));
  red_port = red_noticed = kNone;
  if (red_action == kExploit) {
    const Ports open = open_ports(red_target);
    while (!(open >> (red_port = static_cast<u8>(rng.below(8))) & 1)) {
    }
    red_noticed = static_cast<u8>(rng.below(2));
  }
  u8 drawn = static_cast<u8>(rng.next() & (kEmptyScan | kStage12Played | kServiceKnown));
  if (!(flags & kServiceUp)) drawn |= kServiceKnown;
  if (red_action != kRedSleeps) drawn |= rng.below(2) ? kSucceeded : kFailed;
  flags = static_cast<u8>((flags & (kServiceUp | kServiceLinked)) | drawn);
}

}  // namespace sparring::cage2
