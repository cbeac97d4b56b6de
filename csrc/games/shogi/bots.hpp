// Scripted players: one that takes what it can, and alpha-beta over material (section 9).
#pragma once

#include "games/shogi.hpp"

namespace sparring::shogi {

inline constexpr int kMated = -30000, kNever = -1000000;

// Goes through the legal moves of a position, captures and promotions first: they are the ones
// with a gain, and cut off most of the others.
class Walk {
 public:
  SPARRING_FN Walk() = default;
  SPARRING_FN Walk(const Targets& targets, Board other) : targets_(targets), other_(other) {
    rest_ = part(0);
  }

  // False when there are no more.
  SPARRING_FN bool next(int& label, int& to) {
    while (!rest_.any()) {
      if (++label_ == kLabels) {
        if (quiet_) return false;
        quiet_ = true;
        label_ = 0;
      }
      rest_ = part(label_);
    }
    label = label_;
    to = rest_.pop();
    return true;
  }
  SPARRING_FN bool is_quiet() const { return quiet_; }
  SPARRING_FN void stop() {
    quiet_ = true;
    label_ = kLabels - 1;
    rest_ = Board::none();
  }

 private:
  SPARRING_FN Board part(int label) const {
    const bool promotes = label >= kPromote && label < kDrop;
    const Board all = targets_.of[label];
    if (promotes) return quiet_ ? Board::none() : all;
    return quiet_ ? all - other_ : all & other_;
  }

  Targets targets_;
  Board other_;
  Board rest_;
  int label_ = 0;
  bool quiet_ = false;
};

// The best gain of the side to move; kMated if it has no move.
SPARRING_APART SPARRING_FN inline int best_gain(const Position& position) {
  Walk walk(position.targets(position.safety()), position.side[kOther]);
  int label, to, best = kMated;
  while (walk.next(label, to)) {
    best = max(best, gain_of(position, label, to));
    if (walk.is_quiet()) break;  // nothing that follows gains anything
  }
  return best;
}

// One move out of those that are equally good, each with the same chance.
class Choice {
 public:
  SPARRING_FN explicit Choice(Rng& rng) : rng_(rng) {}

  SPARRING_FN void offer(int action, int value) {
    if (value < best_) return;
    if (value > best_) equal_ = 0;
    best_ = value;
    if (rng_.below(++equal_) == 0) action_ = action;
  }
  SPARRING_FN int best() const { return best_; }
  SPARRING_FN int action() const { return action_; }

 private:
  Rng& rng_;
  int best_ = kNever, equal_ = 0, action_ = 0;
};

// greedy: a move after which the other has none, or else the largest gain. This is what alpha-beta
// finds with one ply, so that there is no other ab1.
SPARRING_APART SPARRING_FN inline int greedy_action(const Position& position,
                                                    const Targets& targets, Rng& rng) {
  Walk walk(targets, position.side[kOther]);
  Choice choice(rng);
  int label, to;
  while (walk.next(label, to)) {
    Position after = position;
    after.make(label, to);
    const bool wins = !after.can_move(after.safety());
    choice.offer(label * kSquares + to, wins ? -kMated : gain_of(position, label, to));
  }
  return choice.action();
}

// Alpha-beta without recursion: a frame per ply. The last ply is not made; the best gain of the
// side to move stands for it.
class Search {
 public:
  static constexpr int kDeepest = 2;  // plies that are made

  SPARRING_FN Search(const Position& root, const Targets& targets, int plies) : plies_(plies) {
    frame_[0] = {root, Walk(targets, root.side[kOther]), kNever, -kNever, kNever, 0};
  }

  SPARRING_FN int best_action(Rng& rng) {
    Choice choice(rng);
    Frame& root = frame_[0];
    int label, to;
    while (root.walk.next(label, to)) {
      // One below the best value so far: equal moves are told from worse ones.
      root.alpha = choice.best() == kNever ? kNever : choice.best() - 1;
      choice.offer(label * kSquares + to, value_after(label, to));
    }
    return choice.action();
  }

 private:
  struct Frame {
    Position position;
    Walk walk;
    int alpha, beta, best;
    int balance;  // of the side to move, compared with the root
  };

  // The value of a move of the root, for the root's side.
  SPARRING_FN int value_after(int label, int to) {
    int top = 0, value = 0;
    bool known = go(top, label, to, value);
    while (!known || top > 0) {
      if (known) take(frame_[top], value);
      known = go_on(top, value);
    }
    return value;
  }

  // The next move of the top frame, or its value for the frame below when there is none left.
  SPARRING_FN bool go_on(int& top, int& value) {
    Frame& at = frame_[top];
    int label, to;
    if (at.walk.next(label, to)) return go(top, label, to, value);
    const bool stuck = at.best == kNever;
    value = -(stuck ? kMated - (plies_ - top) : at.best);
    --top;
    return true;
  }

  // Makes a move of the top frame. At the last ply its value is known at once; otherwise the
  // position that it leads to becomes the top.
  SPARRING_FN bool go(int& top, int label, int to, int& value) {
    const Frame& at = frame_[top];
    const int balance = -(at.balance + gain_of(at.position, label, to));
    Position after = at.position;
    after.make(label, to);
    if (top + 1 == plies_) {
      const int gain = best_gain(after);
      value = -(gain == kMated ? kMated : balance + gain);
      return true;
    }
    const Targets targets = after.targets(after.safety());
    const Board other = after.side[kOther];
    frame_[top + 1] = {after, Walk(targets, other), -at.beta, -at.alpha, kNever, balance};
    ++top;
    return false;
  }

  SPARRING_FN static void take(Frame& at, int value) {
    at.best = max(at.best, value);
    at.alpha = max(at.alpha, value);
    if (at.alpha >= at.beta) at.walk.stop();
  }

  Frame frame_[kDeepest];
  int plies_;
};

// Bots: 0 greedy, then alpha-beta with two and three plies.
SPARRING_FN inline Game::Action Game::act(int bot, const Config&, int, const Legal<Game>&, Rng& rng,
                                          const u8*) const {
  const Targets targets = position.targets(safety());
  if (bot == 0) return greedy_action(position, targets, rng);
  Search search(position, targets, bot);
  return search.best_action(rng);
}

}  // namespace sparring::shogi
