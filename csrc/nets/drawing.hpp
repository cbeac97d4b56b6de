// Actions drawn from what the heads of a network say, on threads: rows by `draw_masked` and
// `draw_gaussian`, each from random numbers of its own. Host only.
#pragma once

#include "core/thread_pool.hpp"
#include "nets/sampler.hpp"

namespace sparring {

// Rows [rows, width]: logits of `actions`, or means and spreads of `box` numbers; then the value.
struct Asked {
  const f32* said;
  int rows, width;
  const u8* mask;
  int actions, box;  // either is 0
  u64 seed;
  const u32* row;  // their numbers
  u32 episode, drawn;
  f32 value_unit;
};

struct Answered {
  i32* action;
  f32* numbers;  // of continuous actions [rows, box]
  f32 *log_prob, *value;
};

class DrawActions final : public Job {
 public:
  static constexpr int kRows = 32;  // per chunk

  DrawActions(const Asked& asked, const Answered& out) : asked_(asked), out_(out) {}

  int open(int phase) override { return phase == 0 ? (asked_.rows + kRows - 1) / kRows : -1; }

  void run(int, int chunk) override {
    const int last = least((chunk + 1) * kRows, asked_.rows);
    const u32 first = asked_.box ? asked_.drawn * gaussian_draws(asked_.box) : asked_.drawn;
    for (int r = chunk * kRows; r < last; ++r) {
      const f32* head = asked_.said + i64{r} * asked_.width;
      Rng rng(asked_.seed, asked_.row[r], asked_.episode, Stream::kSampling, first);
      out_.value[r] = head[asked_.width - 1] * asked_.value_unit;
      if (asked_.box) {
        out_.log_prob[r] =
            draw_gaussian(head, asked_.box, false, rng, out_.numbers + i64{r} * asked_.box);
        continue;
      }
      const u8* legal = asked_.mask + i64{r} * asked_.actions;
      const Drawn drawn = draw_masked(head, legal, asked_.actions, false, rng);
      out_.action[r] = drawn.action;
      out_.log_prob[r] = drawn.log_probability;
    }
  }

 private:
  Asked asked_;
  Answered out_;
};

}  // namespace sparring
