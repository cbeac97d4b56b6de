// A single game outside a pool, for interactive play, search and tests. Host only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/rejected_action.hpp"
#include "core/resample.hpp"
#include "core/validation.hpp"

namespace sparring {

class AnyState {
 public:
  virtual ~AnyState() = default;
  virtual std::unique_ptr<AnyState> clone() const = 0;
  virtual int seat(int row) const = 0;  // -1 when no seat is to move
  virtual int role(int row) const = 0;
  virtual std::vector<int> legal(int row) const = 0;
  virtual RejectedAction apply(const void* actions) = 0;
  virtual void observe(int seat, u8* out) const = 0;
  virtual f32 score(int seat) const = 0;
  virtual std::vector<f32> rewards() const = 0;  // [seats][roles], of the last apply
  virtual std::vector<u16> skipped() const = 0;
  virtual bool terminated() const = 0;
  virtual bool truncated() const = 0;
  virtual int reason() const = 0;
  virtual std::string text(int viewer) const = 0;
  virtual std::string setup(const std::vector<i64>& data) = 0;
  virtual std::string audit() const = 0;
  // The action that a bot chooses for the row; advances the random stream of bots.
  virtual std::vector<f32> ask(int bot, int row) = 0;
  // False if the game hides nothing. belief: see kBelieves; null: drawn uniformly.
  virtual bool resample_hidden(int seat, u64 seed, const f32* belief = nullptr) = 0;
  virtual std::vector<u8> bytes() const = 0;
  // Replaces the state by untrusted bytes. Returns the error, "" if there is none; after an error
  // nothing has changed.
  virtual std::string load(const std::vector<u8>& bytes) = 0;
  // The error that `load` returns for the bytes of this state.
  virtual std::string check() const = 0;
  virtual const u8* game_bytes() const = 0;
  // A position consists of the bytes of the game and of its extra state.
  virtual std::vector<u8> position() const = 0;
  virtual std::vector<u8> extra() const = 0;
  // The root of a search: a Setting<G>, an Env<G>, the number of the game.
  virtual const void* setting() const = 0;
  virtual const u8* env() const = 0;
  virtual u32 number() const = 0;
  // Replaces the state by an environment of a pool, and plays from there as the pool does. Returns
  // the error as `load` does.
  virtual std::string sit_down(const std::vector<u8>& env, const std::vector<u8>& extra) = 0;
};

template <Game G>
class State final : public AnyState {
 public:
  using Action = typename G::Action;

  State(const typename G::Config& config, u64 seed, u32 game, bool skip_forced,
        const std::vector<f32>& weights)
      : setting_(std::make_shared<SettingStorage<G>>()), game_(game) {
    setting_->config = config;
    setting_->shape = G::shape(config);
    setting_->seed = seed;
    setting_->skip_forced = skip_forced;
    set_weights<G>(*setting_, weights);
    setting_->lineups = 1;
    setting_->lineup = setting_->lineup_storage;
    setting_->mix = setting_->mix_storage;
    extra_.resize(static_cast<size_t>(extra_bytes<G>(config)));
    std::memset(static_cast<void*>(&saved_), 0, sizeof saved_);
    const bool begun = begin_episode(saved_.env, *setting_, game_, extra_.data(), saved_.legal);
    check_failure();
    if (!begun) raise(stuck_error<G>(config, game_, skip_forced));
  }

  std::unique_ptr<AnyState> clone() const override { return std::make_unique<State>(*this); }

  int seat(int row) const override { return over() ? -1 : saved_.env.game.seat(row); }
  int role(int row) const override { return saved_.env.game.role(row); }

  std::vector<int> legal(int row) const override {
    std::vector<int> actions;
    if (seat(row) >= 0) saved_.legal[row].each([&](int action) { actions.push_back(action); });
    return actions;
  }

  RejectedAction apply(const void* actions) override {
    const Action* given = static_cast<const Action*>(actions);
    for (int row = 0; row < G::kRows; ++row) {
      if (seat(row) < 0) continue;
      if (RejectedAction rejected = check_action(row, given[row]); rejected.game >= 0)
        return rejected;
    }
    const Result result = apply_actions(saved_.env, *setting_, game_, extra_.data(), saved_.legal,
                                        given, saved_.reward, saved_.skipped);
    saved_.terminated = result.terminated;
    saved_.truncated = result.truncated;
    saved_.reason = result.reason;
    if (over()) clear_legal(saved_);
    check_failure();
    if (result.stuck) raise(stuck_error<G>(setting_->config, game_, setting_->skip_forced));
    return {};
  }

  void observe(int at, u8* out) const override {
    call_observe(saved_.env.game, setting_->config, at, out, extra_.data());
    check_failure();
  }

  f32 score(int at) const override {
    const f32 points = saved_.env.game.score(setting_->config, at);
    check_failure();
    return points;
  }

  std::vector<f32> rewards() const override {
    return {saved_.reward,
            saved_.reward + setting_->shape.seats * counts_of<G>(setting_->config).roles};
  }
  std::vector<u16> skipped() const override {
    return {saved_.skipped, saved_.skipped + setting_->shape.seats};
  }
  bool terminated() const override { return saved_.terminated; }
  bool truncated() const override { return saved_.truncated; }
  int reason() const override { return saved_.reason; }

  std::string text(int viewer) const override {
    if constexpr (requires(const G& game) { game.text(setting_->config, viewer); })
      return saved_.env.game.text(setting_->config, viewer);
    else
      return {};
  }

  std::string setup(const std::vector<i64>& data) override {
    if constexpr (requires(G& game) { game.setup(setting_->config, data); }) {
      G game = saved_.env.game;
      if (std::string wrong = game.setup(setting_->config, data); !wrong.empty()) return wrong;
      std::memset(saved_.reward, 0, sizeof saved_.reward);
      std::memset(saved_.env.pending_reward, 0, sizeof saved_.env.pending_reward);
      std::memcpy(static_cast<void*>(&saved_.env.game), &game, sizeof game);
      saved_.terminated = saved_.truncated = 0;
      Result result = result_into(saved_.env.pending_reward, *setting_);
      u32 decisions_left = kMaxUnasked;
      play_until_policy(saved_.env, *setting_, game_, extra_.data(), saved_.legal, result,
                        decisions_left);
      if (result.stuck) raise(stuck_error<G>(setting_->config, game_, setting_->skip_forced));
      saved_.terminated = result.terminated;
      return {};
    } else {
      return "this game has no set-up";
    }
  }

  std::string audit() const override {
    if constexpr (requires(const G& game) { game.audit(setting_->config); }) {
      if (const char* broken = saved_.env.game.audit(setting_->config)) return broken;
    }
    return {};
  }

  std::vector<f32> ask(int bot, int row) override {
    Rng rng(setting_->seed, game_, saved_.env.episode, Stream::kBots, saved_.env.bot_draws);
    const Action action =
        bot_action(saved_.env, *setting_, row, bot == 0 ? kRandomBot : bot_player(bot - 1),
                   saved_.legal[row], rng, extra_.data());
    saved_.env.bot_draws = rng.drawn();
    check_failure();
    if constexpr (kDiscrete<G>)
      return {static_cast<f32>(action)};
    else
      return {std::begin(action.value), std::end(action.value)};
  }

  bool resample_hidden(int at, u64 seed, const f32* belief) override {
    if constexpr (requires { G::hides(setting_->config); })
      if (!G::hides(setting_->config)) return false;
    if constexpr (kResamples<G>) {
      Rng rng(seed, game_, saved_.env.episode, Stream::kChance);
      sparring::resample_hidden(saved_.env.game, setting_->config, at, rng, belief);
      for (int row = 0; row < G::kRows; ++row)  // the legal actions of another seat may change
        if (seat(row) >= 0)
          call_legal(saved_.env.game, setting_->config, row, saved_.legal[row], extra_.data());
      check_failure();
      return true;
    } else {
      return false;
    }
  }

  std::vector<u8> bytes() const override {
    const u8* raw = reinterpret_cast<const u8*>(&saved_);
    std::vector<u8> all(raw, raw + sizeof saved_);
    all.insert(all.end(), extra_.begin(), extra_.end());
    return all;
  }

  std::string load(const std::vector<u8>& bytes) override {
    if (bytes.size() != sizeof saved_ + extra_.size()) return "it was saved by another build";
    Saved saved;
    std::memcpy(static_cast<void*>(&saved), bytes.data(), sizeof saved);
    const std::vector<u8> extra(bytes.begin() + sizeof saved, bytes.end());
    if (std::string wrong = check(saved, extra); !wrong.empty()) return wrong;
    std::memcpy(static_cast<void*>(&saved_), &saved, sizeof saved);
    extra_ = extra;
    if (over()) clear_legal(saved_);
    return {};
  }

  std::string check() const override { return check(saved_, extra_); }

  const u8* game_bytes() const override { return reinterpret_cast<const u8*>(&saved_.env.game); }

  std::vector<u8> position() const override { return {game_bytes(), game_bytes() + sizeof(G)}; }
  std::vector<u8> extra() const override { return extra_; }
  const void* setting() const override { return static_cast<const Setting<G>*>(setting_.get()); }
  const u8* env() const override { return reinterpret_cast<const u8*>(&saved_.env); }
  u32 number() const override { return game_; }

  std::string sit_down(const std::vector<u8>& env, const std::vector<u8>& extra) override {
    if (env.size() != sizeof saved_.env || extra.size() != extra_.size())
      return "it is a table of another build";
    Saved saved;
    std::memset(static_cast<void*>(&saved), 0, sizeof saved);
    std::memcpy(static_cast<void*>(&saved.env), env.data(), sizeof saved.env);
    if (std::string wrong = check_env(saved.env, setting_->config, extra.data()); !wrong.empty())
      return wrong;
    find_turn(saved.env, *setting_, extra.data(), saved.legal);
    std::memcpy(static_cast<void*>(&saved_), &saved, sizeof saved);
    extra_ = extra;
    return {};
  }

 private:
  // Throws if rules that are loaded at run time have failed.
  void check_failure() const {
    if constexpr (requires { G::check_failure(setting_->config); })
      G::check_failure(setting_->config);
  }

  // The saved part of a state.
  struct Saved {
    Env<G> env;
    Legal<G> legal[G::kRows];
    f32 reward[G::kMaxSeats * G::kRoles];
    u16 skipped[G::kMaxSeats];
    u8 terminated, truncated, reason;
  };

  bool over() const { return saved_.terminated || saved_.truncated; }

  // After the end legal actions are not used; cleared, equal states have equal bytes.
  static void clear_legal(Saved& saved) {
    for (Legal<G>& legal : saved.legal) legal = Legal<G>::none();
  }

  // The structured binding names every field, so that a new field does not compile until it is
  // checked here.
  std::string check(const Saved& saved, const std::vector<u8>& extra) const {
    [[maybe_unused]] const auto& [env, legal, reward, skipped, terminated, truncated, reason] =
        saved;
    if (terminated > 1 || truncated > 1 || terminated + truncated > 1)
      return "terminated and truncated contradict each other";
    if (reason >= counts_of<G>(setting_->config).ends)
      return "the reason of the end does not exist";
    if (!all_finite(reward)) return "a reward is not finite";
    const bool ended = terminated || truncated;
    std::string wrong = check_env(env, setting_->config, extra.data(), ended);
    check_failure();
    if (!wrong.empty()) return wrong;
    if (ended) return {};
    Legal<G> expected[G::kRows];
    find_turn(env, *setting_, extra.data(), expected);
    for (int row = 0; row < G::kRows; ++row)
      if (!(expected[row] == legal[row])) return "the legal actions do not match the position";
    return {};
  }

  RejectedAction check_action(int row, const Action& action) const {
    const bool playable = is_playable<G>(saved_.legal[row], action, setting_->shape.actions);
    return playable ? RejectedAction{}
                    : rejected_action<G>(0, row, seat(row), saved_.legal[row], action);
  }

  std::shared_ptr<SettingStorage<G>> setting_;
  u32 game_;
  std::vector<u8> extra_;
  Saved saved_;
};

}  // namespace sparring
