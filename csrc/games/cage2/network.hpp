// CAGE-2's network: hosts, services, exploits, decoys and actions as tables, and the options.
// Section numbers are those of the specification; docs/games/cage2.md describes the game.
#pragma once

#include "core/game.hpp"

namespace sparring::cage2 {

// Alphabetical, as in observations, actions and all sets of hosts (section 1).
enum Host : int {
  kDefender,
  kEnterprise0,
  kEnterprise1,
  kEnterprise2,
  kOpHost0,
  kOpHost1,
  kOpHost2,
  kOpServer0,
  kUser0,
  kUser1,
  kUser2,
  kUser3,
  kUser4
};
inline constexpr int kHosts = 13, kNone = 0xff;

using Hosts = u32;  // bit h: host h
SPARRING_FN constexpr Hosts just(int host) { return Hosts{1} << host; }

enum Subnet : int { kUserNet, kEnterpriseNet, kOperationalNet };
inline constexpr int kSubnets = 3;
inline constexpr Hosts kSubnetHosts[kSubnets] = {0x1f00, 0x000f, 0x00f0};
inline constexpr Hosts kAllHosts = 0x1fff, kWindows = 0x070c;
// The three hosts that open the way to the operational subnet; Defender does not.
inline constexpr Hosts kEnterpriseHosts = 0x000e, kOperationalHosts = 0x00f0;

SPARRING_FN constexpr int subnet_of(int host) {
  return host >= kUser0 ? kUserNet : host >= kOpHost0 ? kOperationalNet : kEnterpriseNet;
}

// What a privileged red session costs per step, in tenths of a point (section 9).
inline constexpr Hosts kCheapHosts = 0x1e71, kDearHosts = 0x008e;

// Ports that red can exploit, in its order of preference (section 1).
enum Port : int { kFtp, kSmtp, kSql, kHttps, kHttp, kSmb, kRdp, kSsh };
using Ports = u32;  // bit x: port x
inline constexpr u8 kGenuine[kHosts] = {0x80, 0x80, 0xf8, 0xf8, 0x80, 0x80, 0x80,
                                        0x80, 0x81, 0x81, 0x60, 0x5a, 0x9e};

// Listening connections and distinct ports of a host without decoys (section 2).
inline constexpr u8 kConnections[kHosts] = {4, 1, 7, 7, 1, 1, 1, 1, 2, 2, 4, 4, 5};
inline constexpr u8 kDistinctPorts[kHosts] = {3, 1, 7, 7, 1, 1, 1, 1, 2, 2, 4, 4, 5};

// What an exploit of a genuine service leads to. One hexadecimal digit per port, FTP lowest.
enum Outcome : int { kNoService, kUserShell, kPrivilegedShell, kSshSession, kSshRefused };
inline constexpr u32 kOutcomes[kHosts] = {
    0x40000000, 0x30000000, 0x32011000, 0x32011000, 0x30000000, 0x30000000, 0x30000000,
    0x30000000, 0x30000002, 0x30000002, 0x01200000, 0x00011020, 0x30011220};
SPARRING_FN constexpr int outcome_of(int host, int port) {
  return static_cast<int>(kOutcomes[host] >> (4 * port) & 0xf);
}

// The address that escalating on a host reveals besides its own (section 2).
SPARRING_FN constexpr Hosts revealed_by(int host) {
  switch (host) {
    case kUser1:
    case kUser2:
      return just(kEnterprise1);
    case kUser3:
    case kUser4:
      return just(kEnterprise0);
    case kEnterprise2:
      return just(kOpServer0);
    default:
      return 0;
  }
}

// Blue's actions (section 4): two without a host, then 13 for each family.
inline constexpr int kSleep = 0, kMonitor = 1, kAnalyse = 2, kRemove = 15, kDecoy = 28,
                     kRestore = 132, kAllActions = 145;

enum Decoy : int { kApache, kFemitter, kHaraka, kSmss, kSshd, kSvchost, kTomcat, kVsftpd };
inline constexpr int kDecoys = 8;
// Vsftpd opens 80 although it looks at 21: a slip of the simulator that is part of the game.
inline constexpr u8 kDecoyPort[kDecoys] = {kHttp, kFtp, kSmtp, kSmb, kSsh, kRdp, kHttps, kHttp};
inline constexpr Hosts kDecoyHosts[kDecoys] = {
    kAllHosts, kWindows,  kAllHosts & ~kWindows, kWindows, kAllHosts,
    kWindows,  kAllHosts, kAllHosts & ~kWindows};

// Hosts on which a decoy fits as long as no other decoy has its port.
struct FittingTable {
  u16 hosts[kDecoys];
};
SPARRING_FN constexpr FittingTable make_fitting() {
  FittingTable table{};
  for (int decoy = 0; decoy < kDecoys; ++decoy)
    for (int host = 0; host < kHosts; ++host)
      if ((kDecoyHosts[decoy] >> host & 1) &&
          (decoy == kVsftpd || !(kGenuine[host] >> kDecoyPort[decoy] & 1)))
        table.hosts[decoy] |= static_cast<u16>(just(host));
  return table;
}
inline constexpr FittingTable kFitting = make_fitting();

// Ports that decoys can open on a host in addition to the genuine ones.
struct OpenableTable {
  u8 ports[kHosts];
};
SPARRING_FN constexpr OpenableTable make_openable() {
  OpenableTable table{};
  for (int host = 0; host < kHosts; ++host)
    for (int decoy = 0; decoy < kDecoys; ++decoy)
      if (kDecoyHosts[decoy] >> host & 1)
        table.ports[host] |= static_cast<u8>(1 << kDecoyPort[decoy] & ~kGenuine[host]);
  return table;
}
inline constexpr OpenableTable kOpenable = make_openable();

// The winner's 36 actions (section 11): plain ones, then a list of decoys for each of nine hosts.
inline constexpr int kPlainActions = 27, kLists = 9, kListLength = 4, kWinnerActions = 36;
inline constexpr u8 kPlain[kPlainActions] = {133, 134, 135, 139, 3,  4,  5,  9,   16,
                                             17,  18,  22,  11,  12, 13, 14, 141, 142,
                                             143, 144, 132, 2,   15, 24, 25, 26,  27};
inline constexpr u8 kListHost[kLists] = {kEnterprise0, kEnterprise1, kEnterprise2,
                                         kUser1,       kUser2,       kUser3,
                                         kUser4,       kDefender,    kOpServer0};
inline constexpr u8 kListSize[kLists] = {4, 1, 1, 4, 4, 2, 1, 4, 4};
inline constexpr u8 kList[kLists][kListLength] = {
    {55, 107, 120, 29}, {43},      {44},  {37, 115, 76, 102},
    {51, 116, 38, 90},  {130, 91}, {131}, {54, 106, 28, 119},
    {61, 35, 113, 126}};
// Nothing ever gets onto Defender, so analyzing it is that set's way to do nothing.
inline constexpr int kWinnerIdle = 21;
static_assert(kPlain[kWinnerIdle] == kAnalyse + kDefender);

// Host groups whose order of repair can be prescribed.
inline constexpr int kUnits = 5;
inline constexpr Hosts kUnitHosts[kUnits] = {0x0001, 0x000e, 0x0080, 0x0070, 0x1f00};
SPARRING_FN constexpr int unit_of(int host) {
  return host == kDefender      ? 0
         : host <= kEnterprise2 ? 1
         : host <= kOpHost2     ? 3
         : host == kOpServer0   ? 2
                                : 4;
}

enum Preset : i32 { kFinal, kChallenge };
enum Switch : i32 { kOff, kOn, kAsPreset };
enum ObsRule : i32 { kOfficial, kCardiff };
enum Red : i32 { kBLine, kMeander, kSleepingRed, kMix };
enum ActionSet : i32 { kAll, kWinner };
enum ScanHistory : i32 { kNoHistory, kWinnerHosts, kEveryHost };
enum Orders : i32 { kNoOrders, kDrawn, kFixed };
inline constexpr int kReds = 3;

struct Config {
  i32 preset = kFinal;
  i32 sticky_ports = kAsPreset;
  i32 haraka_restore_bug = kAsPreset;
  i32 relink_on_restore = 0;
  i32 red = kMix;
  f32 mix[kReds] = {1, 1, 0};
  i32 green = 0;
  i32 max_steps = 100;
  i32 actions = kAll;
  i32 mask = 0;
  i32 obs_rule = kOfficial;
  i32 scan_history = kNoHistory;
  i32 decoys_left = 0;
  i32 orders = kNoOrders;
  i32 order[kUnits] = {0, 1, 2, 3, 4};
  f32 order_bonus = 0;

  SPARRING_FN bool has_sticky_ports() const {
    return sticky_ports == kAsPreset ? preset == kChallenge : sticky_ports == kOn;
  }
  SPARRING_FN bool has_haraka_bug() const {
    return haraka_restore_bug == kAsPreset ? preset == kChallenge : haraka_restore_bug == kOn;
  }
};

}  // namespace sparring::cage2
