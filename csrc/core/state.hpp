// One game on its own, for exploring, searching and testing. Host only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/rejected_action.hpp"
#include "core/validation.hpp"

namespace sparring {

class AnyState {
 public:
  virtual ~AnyState() = default;
  virtual std::unique_ptr<AnyState> clone() const = 0;
  virtual int seat(int row) const = 0;  // -1 when nobody decides
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
  // The action a bot would choose for the row; draws from the game's bot stream.
  virtual std::vector<f32> ask(int bot, int row) = 0;
  // False if the game hides nothing.
  virtual bool resample_hidden(int seat, u64 seed) = 0;
  virtual std::vector<u8> bytes() const = 0;
  // Goes on from such bytes, whoever wrote them. What is wrong with them, "" if nothing; then
  // nothing has changed.
  virtual std::string load(const std::vector<u8>& bytes) = 0;
  // What `load` would say of the bytes of this state.
  virtual std::string check() const = 0;
  virtual const u8* game_bytes() const = 0;
  // What a game goes on from: its own bytes, and those beside it.
  virtual std::vector<u8> position() const = 0;
  virtual std::vector<u8> extra() const = 0;
  // Goes on from a table of a pool, and from there plays what the pool plays. What is wrong, as
  // for `load`.
  virtual std::string sit_down(const std::vector<u8>& table, const std::vector<u8>& extra) = 0;
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
    std::memset(static_cast<void*>(&held_), 0, sizeof held_);
    if (!begin(held_.table, *setting_, game_, extra_.data(), held_.legal))
      raise(stuck_error<G>(config, game_, skip_forced));
  }

  std::unique_ptr<AnyState> clone() const override { return std::make_unique<State>(*this); }

  int seat(int row) const override { return over() ? -1 : held_.table.game.seat(row); }
  int role(int row) const override { return held_.table.game.role(row); }

  std::vector<int> legal(int row) const override {
    std::vector<int> actions;
    if (seat(row) >= 0) held_.legal[row].each([&](int action) { actions.push_back(action); });
    return actions;
  }

  RejectedAction apply(const void* actions) override {
    const Action* given = static_cast<const Action*>(actions);
    for (int row = 0; row < G::kRows; ++row) {
      if (seat(row) < 0) continue;
      if (RejectedAction refused = refuse(row, given[row]); refused.game >= 0) return refused;
    }
    const Result result = answer(held_.table, *setting_, game_, extra_.data(), held_.legal, given,
                                 held_.reward, held_.skipped);
    held_.terminated = result.terminated;
    held_.truncated = result.truncated;
    held_.reason = result.reason;
    if (over()) clear_legal(held_);
    if (result.stuck) raise(stuck_error<G>(setting_->config, game_, setting_->skip_forced));
    return {};
  }

  void observe(int at, u8* out) const override {
    call_observe(held_.table.game, setting_->config, at, out, extra_.data());
  }

  f32 score(int at) const override { return held_.table.game.score(setting_->config, at); }

  std::vector<f32> rewards() const override {
    return {held_.reward, held_.reward + setting_->shape.seats * G::kRoles};
  }
  std::vector<u16> skipped() const override {
    return {held_.skipped, held_.skipped + setting_->shape.seats};
  }
  bool terminated() const override { return held_.terminated; }
  bool truncated() const override { return held_.truncated; }
  int reason() const override { return held_.reason; }

  std::string text(int viewer) const override {
    if constexpr (requires(const G& game) { game.text(setting_->config, viewer); })
      return held_.table.game.text(setting_->config, viewer);
    else
      return {};
  }

  std::string setup(const std::vector<i64>& data) override {
    if constexpr (requires(G& game) { game.setup(setting_->config, data); }) {
      G game = held_.table.game;
      if (std::string wrong = game.setup(setting_->config, data); !wrong.empty()) return wrong;
      std::memset(held_.reward, 0, sizeof held_.reward);
      std::memset(held_.table.pending, 0, sizeof held_.table.pending);
      std::memcpy(static_cast<void*>(&held_.table.game), &game, sizeof game);
      held_.terminated = held_.truncated = 0;
      Result result = result_into(held_.table.pending, *setting_);
      u32 patience = kMaxUnasked;
      settle(held_.table, *setting_, game_, extra_.data(), held_.legal, result, patience);
      if (result.stuck) raise(stuck_error<G>(setting_->config, game_, setting_->skip_forced));
      held_.terminated = result.terminated;
      return {};
    } else {
      return "this game has no set-up";
    }
  }

  std::string audit() const override {
    if constexpr (requires(const G& game) { game.audit(setting_->config); }) {
      if (const char* broken = held_.table.game.audit(setting_->config)) return broken;
    }
    return {};
  }

  std::vector<f32> ask(int bot, int row) override {
    Rng rng(setting_->seed, game_, held_.table.episode, Stream::kBots, held_.table.bots_drawn);
    const Action action =
        bot_action(held_.table, *setting_, row, bot == 0 ? kRandomBot : bot_player(bot - 1),
                   held_.legal[row], rng, extra_.data());
    held_.table.bots_drawn = rng.drawn();
    if constexpr (kDiscrete<G>)
      return {static_cast<f32>(action)};
    else
      return {std::begin(action.value), std::end(action.value)};
  }

  bool resample_hidden(int at, u64 seed) override {
    if constexpr (requires(G& game, Rng& rng) {
                    game.resample_hidden(setting_->config, at, rng);
                  }) {
      Rng rng(seed, game_, held_.table.episode, Stream::kChance);
      held_.table.game.resample_hidden(setting_->config, at, rng);
      for (int row = 0; row < G::kRows; ++row)  // another seat's options may be others now
        if (seat(row) >= 0)
          call_legal(held_.table.game, setting_->config, row, held_.legal[row], extra_.data());
      return true;
    } else {
      return false;
    }
  }

  std::vector<u8> bytes() const override {
    const u8* raw = reinterpret_cast<const u8*>(&held_);
    std::vector<u8> all(raw, raw + sizeof held_);
    all.insert(all.end(), extra_.begin(), extra_.end());
    return all;
  }

  std::string load(const std::vector<u8>& bytes) override {
    if (bytes.size() != sizeof held_ + extra_.size()) return "it was saved by another build";
    Held held;
    std::memcpy(static_cast<void*>(&held), bytes.data(), sizeof held);
    const std::vector<u8> extra(bytes.begin() + sizeof held, bytes.end());
    if (std::string wrong = check(held, extra); !wrong.empty()) return wrong;
    std::memcpy(static_cast<void*>(&held_), &held, sizeof held);
    extra_ = extra;
    if (over()) clear_legal(held_);
    return {};
  }

  std::string check() const override { return check(held_, extra_); }

  const u8* game_bytes() const override { return reinterpret_cast<const u8*>(&held_.table.game); }

  std::vector<u8> position() const override { return {game_bytes(), game_bytes() + sizeof(G)}; }
  std::vector<u8> extra() const override { return extra_; }

  std::string sit_down(const std::vector<u8>& table, const std::vector<u8>& extra) override {
    if (table.size() != sizeof held_.table || extra.size() != extra_.size())
      return "it is a table of another build";
    Held held;
    std::memset(static_cast<void*>(&held), 0, sizeof held);
    std::memcpy(static_cast<void*>(&held.table), table.data(), sizeof held.table);
    if (std::string wrong = check_table(held.table, setting_->config, extra.data()); !wrong.empty())
      return wrong;
    look(held.table, *setting_, extra.data(), held.legal);
    std::memcpy(static_cast<void*>(&held_), &held, sizeof held);
    extra_ = extra;
    return {};
  }

 private:
  // All that a copy of the bytes has to carry.
  struct Held {
    Table<G> table;
    Legal<G> legal[G::kRows];
    f32 reward[G::kMaxSeats * G::kRoles];
    u16 skipped[G::kMaxSeats];
    u8 terminated, truncated, reason;
  };

  bool over() const { return held_.terminated || held_.truncated; }

  // Nobody looks at them behind the end: equal states have equal bytes.
  static void clear_legal(Held& held) {
    for (Legal<G>& legal : held.legal) legal = Legal<G>::none();
  }

  // All that `load` has to know. The fields are taken apart, so that none can be forgotten.
  std::string check(const Held& held, const std::vector<u8>& extra) const {
    [[maybe_unused]] const auto& [table, legal, reward, skipped, terminated, truncated, reason] =
        held;
    if (terminated > 1 || truncated > 1 || terminated + truncated > 1)
      return "terminated and truncated contradict each other";
    if (reason >= kEndCount<G>) return "an end that the game does not have";
    if (!all_finite(reward)) return "a reward that is not finite";
    const bool ended = terminated || truncated;
    if (std::string wrong = check_table(table, setting_->config, extra.data(), ended);
        !wrong.empty())
      return wrong;
    if (ended) return {};
    Legal<G> found[G::kRows];
    look(table, *setting_, extra.data(), found);
    for (int row = 0; row < G::kRows; ++row)
      if (!(found[row] == legal[row])) return "the legal actions are others";
    return {};
  }

  RejectedAction refuse(int row, const Action& action) const {
    const bool fine = is_playable<G>(held_.legal[row], action, setting_->shape.actions);
    return fine ? RejectedAction{}
                : rejected_action<G>(0, row, seat(row), held_.legal[row], action);
  }

  std::shared_ptr<SettingStorage<G>> setting_;
  u32 game_;
  std::vector<u8> extra_;
  Held held_;
};

}  // namespace sparring
