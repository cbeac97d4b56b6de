// A game whose rules are device functions of another program, such as rules written in Python. The
// linker finds them by name and inlines them. State, settings and results are those of
// core/scripted.hpp to the bit.
//
// Beside the sizes of cuda/pool.cuh it takes those of the script: SPARRING_SCRIPT_BYTES and
// SPARRING_SCRIPT_ACTIONS (of the core's type), _ROLES, _PARTS, _ENDS, _COUNTERS, _BOTS, _PAID
// (offset of the sums of the first part, -1: the rules score) and _LIMITS (bit e: end e is a
// limit). src/sparring/pygames gives them, and compiles the functions in on_gpu.py.
#pragma once

#include "core/game.hpp"
#include "core/script_layout.hpp"

namespace sparring {

// What a function of the rules gets; arrays are zero before the call. It returns 0, or 1 if it
// failed.
#define SPARRING_RULE(name)                                                                      \
  extern "C" __device__ i32 sparring_rule_##name(u8* state, const i32* flags, Rng* rng, u8* row, \
                                                 u8* mask, f32* reward, i32* count, i64 seat,    \
                                                 i64 action, i64 bot, i64* answer, f64* number)
SPARRING_RULE(reset);
SPARRING_RULE(legal);
SPARRING_RULE(observe);
SPARRING_RULE(step);
SPARRING_RULE(score);
SPARRING_RULE(bot);

// What the rules call.
extern "C" __device__ i64 sparring_draw_below(Rng* rng, i64 count) {
  return rng->below(static_cast<int>(count));
}
extern "C" __device__ f64 sparring_draw_uniform(Rng* rng) { return rng->uniform(); }

struct Scripted {
  using Config = ScriptConfig;
  using Action = i32;
  static constexpr int kMaxSeats = kScriptSeats, kRows = 1, kRoles = kScriptRoles,
                       kActions = SPARRING_SCRIPT_ACTIONS;
  static constexpr Counts kInUse = {SPARRING_SCRIPT_ROLES, SPARRING_SCRIPT_PARTS,
                                    SPARRING_SCRIPT_ENDS, SPARRING_SCRIPT_COUNTERS,
                                    SPARRING_SCRIPT_BOTS};
  static constexpr const char* kParts[kScriptParts] = {};
#if SPARRING_SCRIPT_COUNTERS
  static constexpr const char* kCounters[SPARRING_SCRIPT_COUNTERS] = {};
#endif

  alignas(8) u8 state[SPARRING_SCRIPT_BYTES];

  SPARRING_FN static Shape shape(const Config&) {
    return {.seats = SPARRING_SEATS, .actions = SPARRING_ACTIONS, .obs_bytes = SPARRING_OBS_BYTES};
  }
  SPARRING_FN static constexpr Counts counts(const Config&) { return kInUse; }

  SPARRING_FN int seat(int) const { return static_cast<i8>(state[kSeatByte]); }
  SPARRING_FN int role(int) const { return static_cast<i8>(state[kRoleByte]); }

  SPARRING_FN bool failed() const { return state[kFailedByte] != 0; }
  SPARRING_FN void forget_failure() { state[kFailedByte] = 0; }

  __device__ void reset(const Config& config, Rng& rng) {
    zero_bytes(state, sizeof state);
    note(Rule::kReset, sparring_rule_reset(state, config.flag, &rng, nullptr, nullptr, nullptr,
                                           nullptr, 0, 0, 0, nullptr, nullptr) ||
                           !turn_exists());
  }

  __device__ void legal(const Config& config, int, Legal<Scripted>& out) const {
    u8 mask[SPARRING_ACTIONS] = {};
    out = Legal<Scripted>::none();
    const bool wrong = sparring_rule_legal(mine(), config.flag, nullptr, nullptr, mask, nullptr,
                                           nullptr, seat(0), 0, 0, nullptr, nullptr);
    for (int i = 0; i < SPARRING_ACTIONS; ++i) out.word[i >> 6] |= u64{mask[i] != 0} << (i & 63);
    note(Rule::kLegal, wrong || !out.any());
    if (wrong || !out.any()) out.set(0);
  }

  __device__ void observe(const Config& config, int me, u8* out) const {
    zero_bytes(out, SPARRING_OBS_BYTES);
    note(Rule::kObserve, sparring_rule_observe(mine(), config.flag, nullptr, out, nullptr, nullptr,
                                               nullptr, me, 0, 0, nullptr, nullptr));
  }

  __device__ void step(const Config& config, const Action* actions, Rng& rng, Result& result) {
    constexpr int parts = kInUse.parts, counters = kInUse.counters, seats = SPARRING_SEATS;
    f32 reward[parts * seats] = {};
    i32 count[max(counters, 1) * seats] = {};
    i64 answer = 0;
    bool wrong = sparring_rule_step(state, config.flag, &rng, nullptr, nullptr, reward, count,
                                    seat(0), actions[0], 0, &answer, nullptr);
    wrong |= answer < 0 || answer > kInUse.ends || (answer == 0 && !turn_exists());
    for (int i = 0; i < parts * seats; ++i) wrong |= !is_finite(reward[i]);
    if (wrong) {
      note(Rule::kStep, true);
      state[kOverByte] = kEnded;
      return result.terminate(0);
    }
    for (int part = 0; part < parts; ++part)
      for (int at = 0; at < seats; ++at)
        if (const f32 amount = reward[part * seats + at]; amount != 0) {
          result.add_reward(part, at, amount);
          if (part == 0) pay(at, amount);
        }
    for (int counter = 0; counter < counters; ++counter)
      for (int at = 0; at < seats; ++at)
        if (const i32 amount = count[counter * seats + at])
          result.recorder.count(counter, at, amount);
    if (!answer) {
      state[kOverByte] = kGoesOn;
      return;
    }
    const int end = static_cast<int>(answer) - 1;
    const bool limit = (u32{SPARRING_SCRIPT_LIMITS} >> end) & 1;
    state[kOverByte] = limit ? kCut : kEnded;
    state[kReasonByte] = static_cast<u8>(end);
    if (limit)
      result.truncate(end);
    else
      result.terminate(end);
  }

  __device__ f32 score(const Config& config, int at) const {
#if SPARRING_SCRIPT_PAID >= 0
    return reinterpret_cast<const f32*>(state + SPARRING_SCRIPT_PAID)[at];
#else
    f64 number = 0;
    note(Rule::kScore, sparring_rule_score(mine(), config.flag, nullptr, nullptr, nullptr, nullptr,
                                           nullptr, at, 0, 0, nullptr, &number));
    return static_cast<f32>(number);
#endif
  }

#if SPARRING_SCRIPT_BOTS
  static constexpr const char* kBots[SPARRING_SCRIPT_BOTS] = {};

  __device__ Action act(int bot, const Config& config, int, const Legal<Scripted>& legal_actions,
                        Rng& rng) const {
    u8 mask[SPARRING_ACTIONS];
    for (int i = 0; i < SPARRING_ACTIONS; ++i) mask[i] = legal_actions.test(i);
    i64 answer = 0;
    const bool wrong = sparring_rule_bot(mine(), config.flag, &rng, nullptr, mask, nullptr, nullptr,
                                         seat(0), 0, bot, &answer, nullptr);
    if (!wrong && answer >= 0 && answer < SPARRING_ACTIONS &&
        legal_actions.test(static_cast<int>(answer)))
      return static_cast<Action>(answer);
    note(Rule::kBot, true);
    return legal_actions.lowest();
  }
#endif

 private:
  // A rule that may not change the state is trusted with it; `sparring check` tests that.
  __device__ u8* mine() const { return const_cast<u8*>(state); }

  // The first failure is kept; the pool freezes the game.
  __device__ void note(Rule rule, bool wrong) const {
    if (wrong && !failed()) mine()[kFailedByte] = static_cast<u8>(static_cast<int>(rule) + 1);
  }

  // Whether the seat and the role that the rules have set exist.
  __device__ bool turn_exists() const {
    return seat(0) >= 0 && seat(0) < SPARRING_SEATS && role(0) >= 0 && role(0) < kInUse.roles;
  }

  __device__ void pay(int at, f32 amount) {
#if SPARRING_SCRIPT_PAID >= 0
    reinterpret_cast<f32*>(state + SPARRING_SCRIPT_PAID)[at] += amount;
#endif
  }
};

}  // namespace sparring
