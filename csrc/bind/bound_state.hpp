// A single game as Python holds it.
#pragma once

#include <memory>
#include <vector>

#include "bind/bound_pool.hpp"

namespace sparring {

// A state together with what it may be asked about; clones share that.
class BoundState {
 public:
  BoundState(const Rules& rules, u64 seed, u32 game, bool skip_forced,
             const std::vector<f32>& weights)
      : limits_(std::make_shared<Limits>(rules)),
        state_(rules.game->make_state(rules.config.data(), seed, game, skip_forced, weights)) {}

  BoundState clone() const { return BoundState(limits_, state_->clone()); }
  AnyState& operator*() const { return *state_; }
  AnyState* operator->() const { return state_.get(); }

  const Rules& rules() const { return limits_->rules; }
  int obs_bytes() const { return limits_->shape.obs_bytes; }
  int row(const Call& call, int row) const { return call.index(row, "row", limits_->rows); }
  int seat(const Call& call, int seat) const {
    return call.index(seat, "seat", limits_->shape.seats);
  }
  int viewer(const Call& call, int viewer) const {
    return call.between(viewer, "viewer", -1, limits_->shape.seats - 1);
  }

  // Plays an action of every row, each of so many numbers.
  template <class T>
  std::optional<RejectedActionRow> apply(const Call& call, const std::vector<T>& actions,
                                         int numbers) {
    call.demand(numbers > 0, "the game has actions of another kind");
    const size_t needed = static_cast<size_t>(limits_->rows * numbers);
    if (actions.size() != needed)
      call.refuse(std::to_string(actions.size()) + " numbers were given, " +
                  std::to_string(needed) + " are needed");
    call.demand(!state_->terminated() && !state_->truncated(), "the game is over");
    return rejected_action_row(state_->apply(actions.data()));
  }
  int box() const { return limits_->box; }

  std::vector<f32> ask(int bot, int row) {
    constexpr Call call("State.bot_action");
    call.index(bot, "bot", limits_->bots);
    call.index(row, "row", limits_->rows);
    call.demand(state_->seat(row) >= 0, "nobody is to act");
    return state_->ask(bot, row);
  }

 private:
  struct Limits {
    explicit Limits(const Rules& of)
        : rules(of),
          shape(of.shape()),
          rows(of.game->rows()),
          box(of.game->box()),
          bots(static_cast<int>(of.game->bots().size())) {}
    Rules rules;
    Shape shape;
    int rows, box, bots;
  };

  BoundState(std::shared_ptr<const Limits> limits, std::unique_ptr<AnyState> state)
      : limits_(std::move(limits)), state_(std::move(state)) {}

  std::shared_ptr<const Limits> limits_;
  std::unique_ptr<AnyState> state_;
};

}  // namespace sparring
