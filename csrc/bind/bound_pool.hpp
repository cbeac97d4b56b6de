// A pool as Python holds it: it knows its game, and which of its slots may be asked what.
#pragma once

#include <memory>
#include <vector>

#include "bind/rules.hpp"

namespace sparring {

class BoundPool {
 public:
  BoundPool(const Rules& of, const PoolOptions& options)
      : rules(of),
        games_(of.game->make_pool(of.config.data(), options)),
        slots_(static_cast<size_t>(options.slots), Slot::kIdle) {}

  AnyPool& operator*() const { return *games_; }
  AnyPool* operator->() const { return games_.get(); }

  // Throws if any slot is stepping: what it writes could be read, or changed, halfway.
  AnyPool& idle(const Call& call) const {
    for (size_t slot = 0; slot < slots_.size(); ++slot)
      if (slots_[slot] == Slot::kStepping) still_stepping(call, static_cast<int>(slot));
    return *games_;
  }
  // The same, and games have begun.
  AnyPool& started(const Call& call) const {
    call.demand(started_, "no game has started");
    return idle(call);
  }
  // A slot of games that have begun, which is not stepping.
  int ready(const Call& call, int slot) const {
    call.index(slot, "slot", games_->options().slots);
    call.demand(started_, "no game has started");
    if (slots_[static_cast<size_t>(slot)] == Slot::kStepping) still_stepping(call, slot);
    return slot;
  }

  // Actions were checked against what is legal now; a step may follow.
  void accepted(int slot) { slots_[static_cast<size_t>(slot)] = Slot::kAccepted; }
  void sent(const Call& call, int slot) {
    call.demand(slots_[static_cast<size_t>(slot)] == Slot::kAccepted, "no actions were accepted");
    slots_[static_cast<size_t>(slot)] = Slot::kStepping;
  }
  void received(int slot) { slots_[static_cast<size_t>(slot)] = Slot::kIdle; }
  // All games are others now, or none if `begun` is false.
  void changed(bool begun = true) {
    started_ = begun;
    slots_.assign(slots_.size(), Slot::kIdle);
  }

  i64 rows() const { return games_->games() * games_->rows(); }
  i64 rows(int slot) const {
    return (games_->slot_end(slot) - games_->slot_begin(slot)) * games_->rows();
  }
  // Numbers of an action, if it is of that kind.
  int numbers(const Call& call, bool box) const {
    call.demand(box == (games_->box() > 0), box ? "actions of this game are whole numbers"
                                                : "actions of this game are continuous");
    return box ? games_->box() : 1;
  }

  Rules rules;

 private:
  enum class Slot : u8 { kIdle, kAccepted, kStepping };

  [[noreturn]] static void still_stepping(const Call& call, int slot) {
    call.refuse("slot " + std::to_string(slot) + " is still stepping; call recv first");
  }

  std::unique_ptr<AnyPool> games_;
  std::vector<Slot> slots_;
  bool started_ = false;
};

// Game, row, seat, action, component, value, legal actions.
using RejectedActionRow = std::tuple<i64, i64, int, i64, int, f32, std::vector<int>>;

inline std::optional<RejectedActionRow> rejected_action_row(const RejectedAction& r) {
  if (r.game < 0) return std::nullopt;
  return RejectedActionRow{r.game, r.row, r.seat, r.action, r.component, r.value, r.legal};
}

}  // namespace sparring
