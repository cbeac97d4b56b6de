// A game whose rules are functions that a program brings along while it runs, such as rules written
// in Python. The functions have C's calling convention and get the bytes of the state; all else of
// the contract (core/game.hpp) is here. Host only.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/registry.hpp"
#include "core/script_layout.hpp"

namespace sparring {

// A field of the state with its allowed values.
struct ScriptField {
  std::string name;
  Type type;
  int offset, count;
  f64 low, high;
};

// A call that failed, with what it was given, so that it can be repeated.
struct ScriptFailure {
  int rule = -1;
  i64 argument = 0;  // the seat, or the action of a step
  int bot = 0;
  std::string reason;  // of the core; "": the function itself failed
  std::vector<u8> state;
  std::vector<i32> flags;
  std::vector<u32> rng;
};

// Python makes its exception of it, from the failure of the script.
class ScriptError : public std::runtime_error {
 public:
  explicit ScriptError(int of) : std::runtime_error("the rules of a game failed"), script(of) {}
  int script;
};

// What a function of the rules gets. Arrays are zero before the call.
struct ScriptCall {
  u8* state;
  const i32* flags;
  Rng* rng;     // reset, step, bots, resample
  u8* row;      // observe
  u8* mask;     // legal fills it, bots read it: [actions]
  f32* reward;  // step: [parts][seats]
  i32* count;   // step: [counters][seats]
  f64 number;   // score returns it
  i64 seat, action, bot;
  i64 answer;  // step: 0, or the number of the end from 1 on; bots: the action; valid: 0 or 1
};

// 0: done; anything else: failed.
using ScriptFunction = i32 (*)(ScriptCall*);

struct Script {
  int id = 0;
  Shape shape{};
  Counts counts{};
  int state_bytes = 0;
  int paid_offset =
      -1;              // of f32[seats], the sums of the first part: the score where rules give none
  u32 truncating = 0;  // bit e: end e is a limit
  Spec spec;
  std::vector<ScriptField> fields;
  ScriptFunction function[static_cast<int>(Rule::kCount)]{};

  bool has(Rule rule) const { return function[static_cast<int>(rule)] != nullptr; }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }

  // Keeps the first failure. state, drawn: as they were before the call.
  void fail(Rule rule, const ScriptCall& call, const u8* state, u32 drawn,
            std::string reason) const {
    const std::lock_guard lock(mutex_);
    if (failed_) return;
    failure_ = {.rule = static_cast<int>(rule),
                .argument = rule == Rule::kStep ? call.action : call.seat,
                .bot = static_cast<int>(call.bot),
                .reason = std::move(reason),
                .state = {state, state + state_bytes},
                .flags = {call.flags, call.flags + kScriptFlags},
                .rng = {}};
    if (call.rng) {
      const Rng first = call.rng->at(drawn);
      failure_.rng.resize(sizeof first / sizeof(u32));
      std::memcpy(failure_.rng.data(), &first, sizeof first);
    }
    failed_ = true;
  }

  ScriptFailure take_failure() const {
    const std::lock_guard lock(mutex_);
    failed_ = false;
    return std::move(failure_);
  }

 private:
  mutable std::atomic<bool> failed_ = false;
  mutable std::mutex mutex_;
  mutable ScriptFailure failure_;
};

static_assert(sizeof(Rng) == 48 && alignof(Rng) == 8);  // read by src/sparring/pygames/compiled.py

template <int kBytes, int kMost>
struct Scripted {
  using Config = ScriptConfig;
  using Action = i32;
  static constexpr int kMaxSeats = kScriptSeats, kRows = 1, kRoles = kScriptRoles, kActions = kMost;
  // The script has the names.
  static constexpr const char* kParts[kScriptParts] = {};
  static constexpr const char* kBots[kScriptBots] = {};
  static constexpr const char* kEnds[kScriptEnds] = {};
  static constexpr const char* kCounters[kScriptCounters] = {};

  alignas(8) u8 state[kBytes];

  static Shape shape(const Config& config) { return config.script->shape; }
  static Counts counts(const Config& config) { return config.script->counts; }
  static Spec spec(const Config& config) { return config.script->spec; }
  static bool hides(const Config& config) { return config.script->has(Rule::kResample); }
  static bool failed(const Config& config) { return config.script->failed(); }
  static void check_failure(const Config& config) {
    if (config.script->failed()) throw ScriptError(config.script->id);
  }

  int seat(int) const { return static_cast<i8>(state[kSeatByte]); }
  int role(int) const { return static_cast<i8>(state[kRoleByte]); }

  void reset(const Config& config, Rng& rng) {
    std::memset(state, 0, sizeof state);
    u8 before[kBytes] = {};
    ScriptCall call = call_of(config);
    call.rng = &rng;
    if (!run(config, Rule::kReset, call, before) ||
        !check_turn(config, Rule::kReset, call, before, 0))
      std::memset(state, 0, sizeof state);
  }

  void legal(const Config& config, int, Legal<Scripted>& out) const {
    u8 mask[padded_actions()];
    out = Legal<Scripted>::none();
    const int actions = config.script->shape.actions;
    std::memset(mask, 0, static_cast<size_t>((actions + 7) / 8 * 8));
    ScriptCall call = call_of(config);
    call.mask = mask;
    call.seat = seat(0);
    if (run(config, Rule::kLegal, call, state)) {
      for (int i = 0; i < actions; i += 8) {
        u64 eight = load8(mask + i);
        eight = (eight | (eight >> 4)) & 0x0f0f0f0f0f0f0f0full;
        eight = (eight | (eight >> 2)) & 0x0303030303030303ull;
        eight = (eight | (eight >> 1)) & 0x0101010101010101ull;
        out.word[i >> 6] |= ((eight * 0x0102040810204080ull) >> 56) << (i & 63);
      }
      if (!out.any()) config.script->fail(Rule::kLegal, call, state, 0, "no action is legal");
    }
    if (!out.any()) out.set(0);
  }

  void observe(const Config& config, int me, u8* out) const {
    std::memset(out, 0, static_cast<size_t>(config.script->shape.obs_bytes));
    ScriptCall call = call_of(config);
    call.row = out;
    call.seat = me;
    run(config, Rule::kObserve, call, state);
  }

  void step(const Config& config, const Action* actions, Rng& rng, Result& result) {
    const Script& script = *config.script;
    const int seats = script.shape.seats, parts = script.counts.parts,
              counters = script.counts.counters;
    f32 reward[kScriptParts * kMaxSeats];
    i32 count[kScriptCounters * kMaxSeats];
    u8 before[kBytes];
    std::memset(reward, 0, static_cast<size_t>(parts * seats) * sizeof(f32));
    if (counters) std::memset(count, 0, static_cast<size_t>(counters * seats) * sizeof(i32));
    std::memcpy(before, state, static_cast<size_t>(script.state_bytes));
    const u32 drawn = rng.drawn();
    ScriptCall call = call_of(config);
    call.action = actions[0];
    call.rng = &rng;
    call.reward = reward;
    call.count = count;
    const bool done =
        run(config, Rule::kStep, call, before) && check_step(config, call, before, drawn);
    if (!done) {  // whoever asked for the step raises the failure
      std::memcpy(state, before, static_cast<size_t>(script.state_bytes));
      state[kOverByte] = kEnded;
      return result.terminate(0);
    }
    for (int part = 0; part < parts; ++part)
      for (int at = 0; at < seats; ++at)
        if (const f32 amount = reward[part * seats + at]; amount != 0) {
          result.add_reward(part, at, amount);
          if (part == 0 && script.paid_offset >= 0) pay(script, at, amount);
        }
    for (int counter = 0; counter < counters; ++counter)
      for (int at = 0; at < seats; ++at)
        if (const i32 amount = count[counter * seats + at])
          result.recorder.count(counter, at, amount);
    if (!call.answer) {
      state[kOverByte] = kGoesOn;
      return;
    }
    const int end = static_cast<int>(call.answer) - 1;
    const bool limit = (script.truncating >> end) & 1;
    state[kOverByte] = limit ? kCut : kEnded;
    state[kReasonByte] = static_cast<u8>(end);
    if (limit)
      result.truncate(end);
    else
      result.terminate(end);
  }

  f32 score(const Config& config, int at) const {
    const Script& script = *config.script;
    if (script.paid_offset >= 0) return paid(script, at);
    ScriptCall call = call_of(config);
    call.seat = at;
    run(config, Rule::kScore, call, state);
    return static_cast<f32>(call.number);
  }

  Action act(int bot, const Config& config, int, const Legal<Scripted>& legal_actions,
             Rng& rng) const {
    u8 mask[padded_actions()];
    expand_bits(legal_actions, config.script->shape.actions, mask);
    const u32 drawn = rng.drawn();
    ScriptCall call = call_of(config);
    call.mask = mask;
    call.seat = seat(0);
    call.bot = bot;
    call.rng = &rng;
    const int lowest = legal_actions.lowest();
    if (!run(config, Rule::kBot, call, state)) return lowest;
    if (call.answer >= 0 && call.answer < config.script->shape.actions &&
        legal_actions.test(static_cast<int>(call.answer)))
      return static_cast<Action>(call.answer);
    config.script->fail(
        Rule::kBot, call, state, drawn,
        "the bot chose action " + std::to_string(call.answer) + ", which is not legal");
    return lowest;
  }

  void resample_hidden(const Config& config, int me, Rng& rng) {
    if (!hides(config)) return;
    ScriptCall call = call_of(config);
    call.seat = me;
    call.rng = &rng;
    u8 before[kBytes];
    std::memcpy(before, state, sizeof state);
    if (!run(config, Rule::kResample, call, before)) std::memcpy(state, before, sizeof state);
  }

  void bounds(const Config& config, Bounds& found) const {
    const Script& script = *config.script;
    found.within("seat", state[kSeatByte], 0, script.shape.seats - 1);
    found.within("role", state[kRoleByte], 0, script.counts.roles - 1);
    found.within("over", state[kOverByte], 0, int{kCut});
    found.within("the reason of the end", state[kReasonByte], 0, script.counts.ends - 1);
    int next = kReasonByte + 1;
    for (const ScriptField& field : script.fields) {
      spare(found, next, field.offset);
      const int size = size_of(field.type);
      for (int i = 0; i < field.count; ++i) within(found, field, field.offset + i * size);
      next = field.offset + field.count * size;
    }
    spare(found, next, kBytes);
  }

  const char* audit(const Config& config) const {
    if (!config.script->has(Rule::kValid)) return nullptr;
    ScriptCall call = call_of(config);
    if (!run(config, Rule::kValid, call, state)) return "valid() failed";
    return call.answer ? nullptr : "valid() returned False";
  }

  bool ended(const Config&) const { return state[kOverByte] != kGoesOn; }

 private:
  static constexpr int padded_actions() { return (kMost + 7) / 8 * 8; }

  // A rule that may not change the state is trusted with it; `sparring check` tests that.
  ScriptCall call_of(const Config& config) const {
    ScriptCall call{};
    call.state = const_cast<u8*>(state);
    call.flags = config.flag;
    return call;
  }

  // Calls a rule; false: it failed, or an earlier call did. before: the state, which it may change.
  static bool run(const Config& config, Rule rule, ScriptCall& call, const u8* before) {
    const Script& script = *config.script;
    if (script.failed()) return false;
    const u32 drawn = call.rng ? call.rng->drawn() : 0;
    if (script.function[static_cast<int>(rule)](&call) == 0) return true;
    script.fail(rule, call, before, drawn, "");
    return false;
  }

  // Whether what a step did is allowed.
  bool check_step(const Config& config, const ScriptCall& call, const u8* before, u32 drawn) const {
    const Script& script = *config.script;
    if (call.answer < 0 || call.answer > script.counts.ends) {
      script.fail(Rule::kStep, call, before, drawn,
                  "step returned the end " + std::to_string(call.answer) +
                      "; ends are numbered from 1 to " + std::to_string(script.counts.ends));
      return false;
    }
    const int amounts = script.counts.parts * script.shape.seats;
    if (!std::all_of(call.reward, call.reward + amounts, is_finite)) {
      script.fail(Rule::kStep, call, before, drawn, "step paid a reward that is not finite");
      return false;
    }
    return call.answer || check_turn(config, Rule::kStep, call, before, drawn);
  }

  // Whether the seat and the role that the rules have set exist.
  bool check_turn(const Config& config, Rule rule, const ScriptCall& call, const u8* before,
                  u32 drawn) const {
    const Script& script = *config.script;
    const auto check = [&](const char* name, int value, int count) {
      if (value >= 0 && value < count) return true;
      script.fail(rule, call, before, drawn,
                  std::string("state.") + name + " is " + std::to_string(value) + "; " + name +
                      "s are 0 to " + std::to_string(count - 1));
      return false;
    };
    return check("seat", seat(0), script.shape.seats) &&
           check("role", role(0), script.counts.roles);
  }

  f32 paid(const Script& script, int at) const {
    f32 sum;
    std::memcpy(&sum, state + script.paid_offset + at * 4, sizeof sum);
    return sum;
  }
  void pay(const Script& script, int at, f32 amount) {
    const f32 sum = paid(script, at) + amount;
    std::memcpy(state + script.paid_offset + at * 4, &sum, sizeof sum);
  }

  void spare(Bounds& found, int from, int to) const {
    for (int i = from; i < to; ++i) found.spare(state[i]);
  }

  template <class T, class Limit>
  void within_as(Bounds& found, const ScriptField& field, int offset) const {
    found.within(field.name.c_str(), reinterpret_cast<const T&>(state[offset]),
                 static_cast<Limit>(field.low), static_cast<Limit>(field.high));
  }

  void within(Bounds& found, const ScriptField& field, int offset) const {
    switch (field.type) {
      case Type::kI8:
        return within_as<i8, i64>(found, field, offset);
      case Type::kI16:
        return within_as<i16, i64>(found, field, offset);
      case Type::kI32:
        return within_as<i32, i64>(found, field, offset);
      case Type::kI64:
        return within_as<i64, i64>(found, field, offset);
      case Type::kF32:
        return within_as<f32, f64>(found, field, offset);
      default:
        return within_as<f64, f64>(found, field, offset);
    }
  }
};

// A script as a game of the registry, with the names that the type does not have.
class AnyScripted {
 public:
  virtual ~AnyScripted() = default;
  Script script;
  std::vector<std::string> part_names, bot_names, end_names, counter_names, action_names;
  std::vector<f32> part_weights;
  std::vector<Stat> statistics;
  std::vector<std::string> flag_texts;  // name, words and help of each flag, which Fields point to
  std::vector<Field> flags;
  std::vector<i32> flag_values;
};

template <class G>
class RegisteredScript final : public Registered<G>, public AnyScripted {
 public:
  std::vector<u8> default_config() const override {
    ScriptConfig config;
    config.script = &script;
    std::copy(flag_values.begin(), flag_values.end(), config.flag);
    const u8* raw = reinterpret_cast<const u8*>(&config);
    return {raw, raw + sizeof config};
  }
  std::vector<Field> config_fields() const override { return flags; }
  std::vector<Field> state_fields() const override {
    std::vector<Field> found;
    for (const ScriptField& field : script.fields)
      found.push_back({.name = field.name.c_str(),
                       .type = field.type,
                       .offset = field.offset,
                       .count = field.count,
                       .low = field.low,
                       .high = field.high,
                       .value_names = "",
                       .help = "",
                       .live = false});
    return found;
  }
  std::string action_name(const u8*, int action) const override {
    return action_names[static_cast<size_t>(action)];
  }
  std::vector<f32> default_weights(const u8*) const override { return part_weights; }
  std::vector<std::string> parts() const override { return part_names; }
  std::vector<std::string> bots() const override { return bot_names; }
  std::vector<std::string> ends() const override { return end_names; }
  std::vector<std::string> counters() const override { return counter_names; }
  std::vector<Stat> stats(const u8*) const override { return statistics; }
  int roles() const override { return script.counts.roles; }
  bool hides() const override { return script.has(Rule::kResample); }
};

// Sizes of states and action sets for which the core is built; a script takes the smallest.
struct ScriptSize {
  int state_bytes, actions;
  std::unique_ptr<AnyGame> (*make)(AnyScripted*& script);
};

inline std::vector<ScriptSize>& script_sizes() {
  static std::vector<ScriptSize> sizes;
  return sizes;
}

template <int kBytes, int kMost>
bool offer_script_size() {
  script_sizes().push_back({kBytes, kMost, [](AnyScripted*& script) -> std::unique_ptr<AnyGame> {
                              auto game =
                                  std::make_unique<RegisteredScript<Scripted<kBytes, kMost>>>();
                              script = game.get();
                              return game;
                            }});
  return true;
}

}  // namespace sparring
