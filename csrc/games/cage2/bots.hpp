// Scripted defenders (section 12.1). They remember nothing: what the originals keep in mind can be
// read off the position.
#pragma once

#include "games/cage2.hpp"

namespace sparring::cage2 {

enum Bot { kSleepBot, kCycle, kReactRemove, kReactRestore, kVectorReact };

SPARRING_FN constexpr bool is_idle(int action) {
  return action == kSleep || action == kMonitor || action == kAnalyse + kDefender;
}

// Monitor, then Restore of every host but User0, and again.
SPARRING_FN inline int cycle_action(const Game& game) {
  const int at = game.steps % kHosts;
  if (at == 0) return kMonitor;
  return kRestore + (at <= kUser0 ? at - 1 : at);
}

// Answers a shell that was noticed while it watched. What is noticed during an answer is lost, so
// its queue never holds more than one host.
SPARRING_FN inline int react_action(const Game& game, int family) {
  const bool alert = is_idle(game.last_action) && game.red_noticed == 1;
  return alert && game.red_target != kUser0 ? family + game.red_target : kMonitor;
}

// Restores the first host that looks compromised.
SPARRING_FN inline int vector_react_action(const Game& game) {
  const u64 compromised = game.seen & kCompromisedBits & ~(u64{8} << (4 * kUser0));
  return compromised ? kRestore + lowest_bit(compromised) / 4 : kSleep;
}

SPARRING_FN inline int bot_choice(const Game& game, int bot) {
  switch (bot) {
    case kCycle:
      return cycle_action(game);
    case kReactRemove:
      return react_action(game, kRemove);
    case kReactRestore:
      return react_action(game, kRestore);
    case kVectorReact:
      return vector_react_action(game);
    default:
      return kSleep;
  }
}

// A bot that wants what this game does not offer does nothing.
SPARRING_FN inline Game::Action Game::act(int bot, const Config& config, int,
                                          const Legal<Game>& legal, Rng&) const {
  const int wanted = bot_choice(*this, bot);
  if (config.actions == kAll) return legal.test(wanted) ? wanted : kSleep;
  for (int i = 0; i < kPlainActions; ++i)
    if (kPlain[i] == wanted && legal.test(i)) return i;
  return kWinnerIdle;
}

}  // namespace sparring::cage2
