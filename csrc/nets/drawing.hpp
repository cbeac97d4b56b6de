// Sampling of actions from the outputs of a network's heads, on threads; every row has its own
// random stream. Host only.
#pragma once

#include "core/thread_pool.hpp"
#include "nets/sampler.hpp"

namespace sparring {

// Outputs [rows, width]: logits of `actions`, or means and log standard deviations of `box`
// numbers; then the value.
struct ActingInputs {
  const f32* outputs;
  int rows, width;
  const u8* mask;
  int actions, box;  // either is 0
  u64 seed;
  const u32* row;  // ids of the rows' random streams
  u32 episode, drawn;
  f32 value_scale;
};

struct SampledActions {
  i32* action;
  f32* numbers;  // of continuous actions [rows, box]
  f32 *log_prob, *value;
};

class DrawActions final : public Job {
 public:
  static constexpr int kRows = 32;  // per chunk

  DrawActions(const ActingInputs& inputs, const SampledActions& out) : inputs_(inputs), out_(out) {}

  int open(int phase) override { return phase == 0 ? (inputs_.rows + kRows - 1) / kRows : -1; }

  void run(int, int chunk) override {
    const int last = min((chunk + 1) * kRows, inputs_.rows);
    const u32 first = inputs_.box ? inputs_.drawn * gaussian_draws(inputs_.box) : inputs_.drawn;
    for (int r = chunk * kRows; r < last; ++r) {
      const f32* head = inputs_.outputs + i64{r} * inputs_.width;
      Rng rng(inputs_.seed, inputs_.row[r], inputs_.episode, Stream::kSampling, first);
      out_.value[r] = head[inputs_.width - 1] * inputs_.value_scale;
      if (inputs_.box) {
        out_.log_prob[r] =
            draw_gaussian(head, inputs_.box, false, rng, out_.numbers + i64{r} * inputs_.box);
        continue;
      }
      const u8* legal = inputs_.mask + i64{r} * inputs_.actions;
      const Drawn drawn = draw_masked(head, legal, inputs_.actions, false, rng);
      out_.action[r] = drawn.action;
      out_.log_prob[r] = drawn.log_probability;
    }
  }

 private:
  ActingInputs inputs_;
  SampledActions out_;
};

}  // namespace sparring
