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
        groups_(static_cast<size_t>(options.groups), Group::kIdle) {}

  AnyPool& operator*() const { return *games_; }
  AnyPool* operator->() const { return games_.get(); }

  // Throws if any slot is stepping: what it writes could be read, or changed, halfway.
  AnyPool& idle(const Call& call) const {
    for (size_t group = 0; group < groups_.size(); ++group)
      if (groups_[group] == Group::kStepping) still_stepping(call, static_cast<int>(group));
    return *games_;
  }
  // The same, and games have begun.
  AnyPool& started(const Call& call) const {
    call.demand(started_, "no game has started");
    return idle(call);
  }
  // A slot of games that have begun, which is not stepping.
  int ready(const Call& call, int group) const {
    call.index(group, "group", games_->options().groups);
    call.demand(started_, "no game has started");
    if (groups_[static_cast<size_t>(group)] == Group::kStepping) still_stepping(call, group);
    return group;
  }

  // Actions were checked against what is legal now; a step may follow.
  void accepted(int group) { groups_[static_cast<size_t>(group)] = Group::kAccepted; }
  void sent(const Call& call, int group) {
    call.demand(groups_[static_cast<size_t>(group)] == Group::kAccepted,
                "no actions were accepted");
    groups_[static_cast<size_t>(group)] = Group::kStepping;
  }
  void received(int group) { groups_[static_cast<size_t>(group)] = Group::kIdle; }
  // All games are others now, or none if `begun` is false.
  void changed(bool begun = true) {
    started_ = begun;
    groups_.assign(groups_.size(), Group::kIdle);
  }

  i64 rows() const { return games_->games() * games_->rows(); }
  i64 rows(int group) const {
    return (games_->group_end(group) - games_->group_begin(group)) * games_->rows();
  }
  // Numbers of an action, if it is of that kind.
  int numbers(const Call& call, bool box) const {
    call.demand(box == (games_->box() > 0), box ? "actions of this game are whole numbers"
                                                : "actions of this game are continuous");
    return box ? games_->box() : 1;
  }

  Rules rules;

 private:
  enum class Group : u8 { kIdle, kAccepted, kStepping };

  [[noreturn]] static void still_stepping(const Call& call, int group) {
    call.refuse("group " + std::to_string(group) + " is still stepping; call recv first");
  }

  std::unique_ptr<AnyPool> games_;
  std::vector<Group> groups_;
  bool started_ = false;
};

// Game, row, seat, action, component, value, legal actions.
using RejectedActionRow = std::tuple<i64, i64, int, i64, int, f32, std::vector<int>>;

inline std::optional<RejectedActionRow> rejected_action_row(const RejectedAction& r) {
  if (r.game < 0) return std::nullopt;
  return RejectedActionRow{r.game, r.row, r.seat, r.action, r.component, r.value, r.legal};
}

}  // namespace sparring
