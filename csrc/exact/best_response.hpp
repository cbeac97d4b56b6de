// Values of a policy in a tree, and of best responses to it.
#pragma once

#include <vector>

#include "exact/tree.hpp"

namespace sparring {

// The value of a game for every seat when all play these probabilities [infos][actions].
inline std::vector<f64> policy_values(const GameTree& tree, const f64* shares) {
  const int seats = tree.shape().seats, actions = tree.shape().actions;
  std::vector<f64> worth(tree.positions.size() * static_cast<size_t>(seats));
  const auto value = [&](i32 at, int seat) {
    return at < 0 ? tree.score(at, seat) : worth[static_cast<size_t>(at * i64{seats} + seat)];
  };
  for (size_t p = 0; p < tree.positions.size(); ++p) {
    const i32 info = tree.positions[p].info, *child = tree.children(static_cast<i32>(p));
    for (const i32 action : tree.legal[static_cast<size_t>(info)]) {
      const f64 share = shares[i64{info} * actions + action];
      for (int seat = 0; seat < seats; ++seat)
        worth[p * static_cast<size_t>(seats) + static_cast<size_t>(seat)] +=
            share * value(*child, seat);
      ++child;
    }
  }
  std::vector<f64> mean(static_cast<size_t>(seats));
  for (int seat = 0; seat < seats; ++seat)
    for (const i32 root : tree.roots)
      mean[static_cast<size_t>(seat)] += value(root, seat) / static_cast<f64>(tree.roots.size());
  return mean;
}

// A seat's best response to the others' probabilities. It knows them, and in every game what it saw
// and did; of the rest it knows how probable each position is. All its decisions are searched, each
// with the positions in which it may be: those that only the others can tell apart are kept once.
class BestResponse {
 public:
  BestResponse(const GameTree& tree, int seat, const f64* shares)
      : tree_(tree), seat_(seat), weight_(tree.positions.size()), group_(tree.seat.size(), -1) {
    pass_turns(shares);
  }

  f64 value() {
    Outcome start;
    for (const i32 root : tree_.roots)
      follow(root, 1.0 / static_cast<f64>(tree_.roots.size()), start);
    return worth_of(start, 0);
  }
  i64 decisions() const { return decisions_; }

 private:
  // A position in which the seat may be, and how probable chance and the others made it.
  struct Possible {
    i32 position;
    f64 weight;
  };
  // What follows: how much is paid before the seat's next decision, and where it may be then.
  struct Outcome {
    f64 paid = 0;
    std::vector<i32> touched;
  };
  // The seat's possible positions by information state, one after the other.
  struct Frame {
    std::vector<Possible> possible;
    std::vector<i32> ends;
    std::vector<i32> counts, infos;
    Outcome outcome;
  };

  static size_t at(i64 number) { return static_cast<size_t>(number); }

  // For every position of another seat, where the game stands when this seat decides next.
  void pass_turns(const f64* shares) {
    paid_.resize(tree_.positions.size());
    first_.push_back(0);
    for (size_t p = 0; p < tree_.positions.size(); ++p) {
      if (tree_.seat[at(tree_.positions[p].info)] != seat_) pass_turn(static_cast<i32>(p), shares);
      first_.push_back(static_cast<i64>(next_.size()));
    }
  }

  void pass_turn(i32 position, const f64* shares) {
    const i32 info = tree_.positions[at(position)].info, *child = tree_.children(position);
    Outcome outcome;
    for (const i32 action : tree_.legal[at(info)])
      follow(*child++, shares[i64{info} * tree_.shape().actions + action], outcome);
    paid_[at(position)] = outcome.paid;
    for (const i32 next : outcome.touched) {
      next_.push_back({next, weight_[at(next)]});
      weight_[at(next)] = 0;
    }
  }

  void follow(i32 position, f64 weight, Outcome& into) {
    if (weight == 0) return;
    if (position < 0) {
      into.paid += weight * tree_.score(position, seat_);
    } else if (tree_.seat[at(tree_.positions[at(position)].info)] == seat_) {
      reach(position, weight, into);
    } else {
      into.paid += weight * paid_[at(position)];
      for (i64 i = first_[at(position)]; i < first_[at(position) + 1]; ++i)
        reach(next_[at(i)].position, weight * next_[at(i)].weight, into);
    }
  }

  void reach(i32 position, f64 weight, Outcome& into) {
    f64& sum = weight_[at(position)];
    if (sum == 0 && weight > 0) into.touched.push_back(position);
    sum += weight;
  }

  // The value of what follows, times how probable it is.
  f64 worth_of(Outcome& outcome, size_t depth) {
    if (frames_.size() <= depth) frames_.push_back(std::make_unique<Frame>());
    Frame& frame = *frames_[depth];
    sort_by_info(outcome.touched, frame);
    f64 worth = outcome.paid;
    i32 begin = 0;
    for (const i32 end : frame.ends) {
      worth += best_action(frame, begin, end, depth);
      begin = end;
    }
    return worth;
  }

  // Moves the touched positions and their weights into the frame, sorted by information state.
  void sort_by_info(std::vector<i32>& touched, Frame& frame) {
    frame.counts.clear();
    frame.infos.clear();
    for (const i32 position : touched) {
      const i32 info = tree_.positions[at(position)].info;
      if (group_[at(info)] < 0) {
        group_[at(info)] = static_cast<i32>(frame.counts.size());
        frame.counts.push_back(0);
        frame.infos.push_back(info);
      }
      ++frame.counts[at(group_[at(info)])];
    }
    frame.ends.clear();
    i32 sum = 0;
    for (const i32 count : frame.counts) {
      frame.ends.push_back(sum);
      sum += count;
    }
    frame.possible.resize(touched.size());
    for (const i32 position : touched) {
      i32& place = frame.ends[at(group_[at(tree_.positions[at(position)].info)])];
      frame.possible[at(place++)] = {position, weight_[at(position)]};
      weight_[at(position)] = 0;
    }
    for (const i32 info : frame.infos) group_[at(info)] = -1;
    touched.clear();
  }

  f64 best_action(Frame& frame, i32 begin, i32 end, size_t depth) {
    ++decisions_;
    const i32 info = tree_.positions[at(frame.possible[at(begin)].position)].info;
    f64 best = 0;
    for (int choice = 0; choice < tree_.actions_in(info); ++choice) {
      Outcome& outcome = frame.outcome;
      outcome.paid = 0;
      for (i32 i = begin; i < end; ++i) {
        const Possible& one = frame.possible[at(i)];
        follow(tree_.children(one.position)[choice], one.weight, outcome);
      }
      const f64 worth = outcome.touched.empty() ? outcome.paid : worth_of(outcome, depth + 1);
      if (choice == 0 || worth > best) best = worth;
    }
    return best;
  }

  const GameTree& tree_;
  int seat_;
  std::vector<f64> weight_;  // of a position, while an outcome is gathered
  std::vector<i32> group_;   // of an information state, while positions are sorted
  std::vector<f64> paid_;
  std::vector<i64> first_;
  std::vector<Possible> next_;
  std::vector<std::unique_ptr<Frame>> frames_;
  i64 decisions_ = 0;
};

}  // namespace sparring
