// Bytes of states, changed by lot: each is refused in one line, or shown, asked and played on.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/state.hpp"
#include "tests/check.hpp"

#if defined(__SANITIZE_ADDRESS__)
extern "C" void __sanitizer_set_death_callback(void (*callback)());
#endif

namespace sparring {

// The case that runs, told by whatever ends the program.
inline volatile int running_case = -1;

inline void tell_case() {
  char line[64];
  const int length = std::snprintf(line, sizeof line, "in case %d\n", int{running_case});
  if (write(2, line, static_cast<size_t>(length)) < 0) return;
}

inline void tell_signal(int number) {
  tell_case();
  _exit(128 + number);
}

inline void watch_cases() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_set_death_callback(tell_case);
  ::signal(SIGALRM, tell_signal);
#else
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM})
    ::signal(number, tell_signal);
#endif
}

#define DEMAND(condition, text)                                                         \
  do {                                                                                  \
    if (!(condition)) {                                                                 \
      std::fprintf(stderr, "%s:%d: not true: %s: %s\n", __FILE__, __LINE__, #condition, \
                   std::string(text).c_str());                                          \
      tell_case();                                                                      \
      std::exit(1);                                                                     \
    }                                                                                   \
  } while (false)

template <Game G>
class MutatedStates {
 public:
  // Runs the cases from `first` on. Each can be run alone.
  void run(int first, int count) {
    watch_cases();
    for (int number = first; number < first + count; ++number) {
      running_case = number;
      alarm(120);
      one(number);
    }
    alarm(0);
    std::printf("%s: %d cases, %d refused, %d accepted, %d played to their end\n",
                G::spec({}).name.c_str(), count, refused_, accepted_, finished_);
  }

 private:
  using Config = typename G::Config;
  using Bytes = std::vector<u8>;
  static constexpr int kFamily = 25;  // cases that share a game, which is played once
  static constexpr int kSteps = 30;
  static constexpr int kWholeGame = 20000;

  void one(int number) {
    if (number / kFamily != family_) play_family(number / kFamily);
    Rng rng(2, static_cast<u32>(number), 0, Stream::kSampling);
    const size_t which = static_cast<size_t>(rng.below(static_cast<int>(bytes_.size())));
    const Bytes mutant = mutate(number, bytes_[which], rng);
    State<G> state = *start_;
    const Bytes before = state.bytes();
    const std::string wrong = state.load(mutant);
    if (!wrong.empty()) {
      DEMAND(wrong.find('\n') == std::string::npos, wrong);
      DEMAND(state.bytes() == before, "a refused state changed something");
      ++refused_;
      return;
    }
    ++accepted_;
    DEMAND(state.check().empty(), state.check());
    show(state, number);
    try {
      const bool whole = number % 10 == 0 && ends_;
      play_on(state, whole ? kWholeGame : kSteps, rng);
      if (!whole) return;
      DEMAND(over(state), "a game without an end was accepted");
      ++finished_;
    } catch (const ConfigError&) {  // nobody is asked any more, which is told
    }
  }

  // Plays a game by lot, with other flags in every second family, and keeps its positions, each of
  // which is one that may be loaded.
  void play_family(int family) {
    family_ = family;
    Rng rng(1, static_cast<u32>(family), 0, Stream::kSampling);
    config_ = Config{};
    for (int tries = 0; family % 2 && tries < 20; ++tries) {
      Config drawn{};
      draw_flags(drawn, rng);
      if (!allowed(drawn)) continue;
      config_ = drawn;
      break;
    }
    std::vector<f32> weights(size_t{kPartCount<G>} * G::kRoles, 1.0f);
    start_ = std::make_unique<State<G>>(config_, static_cast<u64>(family), 0, false, weights);
    State<G> state = *start_;
    bytes_ = {state.bytes()};
    for (int step = 0; step < kWholeGame && !over(state); ++step) {
      play_one(state, rng);
      DEMAND(state.check().empty(), state.check());
      // Of long games some positions, more of those near the end.
      if (bytes_.size() > 200) bytes_.erase(bytes_.begin() + rng.below(200));
      bytes_.push_back(state.bytes());
    }
    ends_ = over(state);
    show(state, family);
  }

  static void draw_flags(Config& config, Rng& rng) {
    if constexpr (requires { G::config_fields(); }) {
      for (const Field& field : G::config_fields()) {
        u8* at = reinterpret_cast<u8*>(&config) + field.offset;
        for (int i = 0; i < field.count; ++i, at += 4) {
          if (rng.below(2)) continue;  // its default
          const f64 span = min(field.high - field.low, 1000.0);
          const i32 whole = static_cast<i32>(field.low) + rng.below(static_cast<int>(span) + 1);
          const f32 real = static_cast<f32>(field.low + span * f64{rng.uniform()});
          if (field.type == Type::kF32)
            std::memcpy(at, &real, 4);
          else
            std::memcpy(at, &whole, 4);
        }
      }
    }
  }

  static bool allowed(const Config& config) {
    if constexpr (requires { G::invalid(config); }) return G::invalid(config).empty();
    return true;
  }

  Bytes mutate(int number, const Bytes& from, Rng& rng) const {
    Bytes bytes = from;
    const int size = static_cast<int>(bytes.size());
    // One byte after the other, so that none is left out; every eighth case changes several, every
    // other eighth takes a stretch out of another position.
    const int kind = number % 8;
    if (kind == 6) {
      for (int changes = 2 + rng.below(7); changes > 0; --changes)
        change(bytes[static_cast<size_t>(rng.below(size))], rng);
    } else if (kind == 7) {
      const Bytes& other = bytes_[static_cast<size_t>(rng.below(static_cast<int>(bytes_.size())))];
      const auto [at, length] = stretch(size, rng);
      std::copy(other.begin() + at, other.begin() + at + length, bytes.begin() + at);
    } else {
      change(bytes[static_cast<size_t>((number / 8 * 6 + kind) % size)], rng);
    }
    return bytes;
  }

  static void change(u8& byte, Rng& rng) {
    const int way = rng.below(6);
    if (way == 0) byte = 0;
    if (way == 1) byte = 255;
    if (way == 2) ++byte;
    if (way == 3) --byte;
    if (way == 4) byte ^= static_cast<u8>(1 << rng.below(8));
    if (way == 5) byte = static_cast<u8>(rng.below(256));
  }

  // A field of the game, or any bytes.
  static std::pair<int, int> stretch(int size, Rng& rng) {
    if constexpr (requires { G::state_fields(); }) {
      const std::vector<Field> fields = G::state_fields();
      const Field& field = fields[static_cast<size_t>(rng.below(static_cast<int>(fields.size())))];
      if (rng.below(2)) return {field.offset, size_of(field.type) * field.count};
    }
    const int at = rng.below(size);
    return {at, 1 + rng.below(min(size - at, 64))};
  }

  static bool over(const State<G>& state) { return state.terminated() || state.truncated(); }

  // Everything that can be asked of a position without playing on; of bots another one each time,
  // because some think for long.
  void show(const State<G>& state, int number) const {
    const Shape shape = G::shape(config_);
    Bytes row(static_cast<size_t>(shape.obs_bytes));
    for (int seat = 0; seat < shape.seats; ++seat) {
      state.text(seat);
      state.observe(seat, row.data());
      state.score(seat);
      State<G> other = state;
      if (other.resample_hidden(seat, 7, nullptr)) DEMAND(other.check().empty(), other.check());
    }
    state.text(-1);
    State<G> asked = state;
    for (int at = 0; at < G::kRows; ++at)
      if (asked.seat(at) >= 0) asked.ask(number % (kBotCount<G> + 1), at);
    DEMAND(state.role(0) >= 0 && state.role(0) < G::kRoles, "a role that does not exist");
    DEMAND(state.reason() < kEndCount<G>, "an end that does not exist");
    state.rewards();
    state.skipped();
  }

  static void play_one(State<G>& state, Rng& rng) {
    typename G::Action actions[G::kRows]{};
    const int bot = rng.below(8) ? 0 : rng.below(kBotCount<G> + 1);
    for (int row = 0; row < G::kRows; ++row) {
      if (state.seat(row) < 0) continue;
      const std::vector<f32> chosen = state.ask(bot, row);
      if constexpr (kDiscrete<G>)
        actions[row] = static_cast<i32>(chosen[0]);
      else
        std::copy(chosen.begin(), chosen.end(), actions[row].value);
    }
    DEMAND(state.apply(actions).game < 0, "a bot's action was refused");
  }

  static void play_on(State<G>& state, int steps, Rng& rng) {
    for (; steps > 0 && !over(state); --steps) {
      play_one(state, rng);
      DEMAND(state.check().empty(), state.check());
    }
  }

  int family_ = -1;
  Config config_{};
  std::unique_ptr<State<G>> start_;
  std::vector<Bytes> bytes_;
  bool ends_ = false;  // whether the game that was played did
  int refused_ = 0, accepted_ = 0, finished_ = 0;
};

}  // namespace sparring
