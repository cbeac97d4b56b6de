// Generalized advantage estimation along the links of a rollout, and V-trace, which adds importance
// weights for decisions of an older policy.
#pragma once

#include "core/transitions.hpp"

namespace sparring {

// Truncated importance weights of V-trace (Espeholt et al. 2018) by rollout index; 1 for decisions
// of the current policy.
struct Weights {
  const f32* rho;    // of the TD error of a decision; null: 1 everywhere
  const f32* trace;  // of the later TD errors, the paper's c
};

// The advantages of one game, last decision first. A successor that is not a sample of this rollout
// ends the sum. `value` and `advantage` are by rollout index. With weights and a lambda of 1, value
// + advantage is the paper's v.
SPARRING_FN inline void gae_of_game(const RolloutView& v, const Links& links, const f32* value,
                                    f32 lambda, f32* advantage, int game,
                                    const Weights& weights = {}) {
  const auto estimate = [&](int index, int role) {
    f32 sum = 0;
    if (links.end[index] != kNotASample) {
      sum = links.reward[index] - value[index];
      const f32 discount = links.discount[index];
      if (links.end[index] == kTruncated) sum += discount * links.bootstrap[index];
      if (links.end[index] == kToNext) {
        const int next = links.next[index];
        sum += discount * value[next];
        if (weights.rho) sum *= weights.rho[index];
        f32 decay = v.lambda_of ? v.lambda_of[role] : lambda;
        if (weights.rho) decay *= weights.trace[index];
        if (links.end[next] != kNotASample) sum += discount * decay * advantage[next];
      } else if (weights.rho) {
        sum *= weights.rho[index];
      }
    }
    advantage[index] = sum;
  };
  for (int step = v.steps - 1; step >= 0; --step)
    for (int r = v.rows - 1; r >= 0; --r) {
      const int row = game * v.rows + r;
      estimate(v.index(step, row), v.lambda_of ? v.role[step * v.games * v.rows + row] : 0);
    }
  const int pending_each = v.seats * v.chains;
  for (int i = 0; i < pending_each; ++i) estimate(game * pending_each + i, i % v.chains);
}

}  // namespace sparring
