// Generalized advantage estimation along the links of a rollout, and V-trace, which is the same for
// decisions of another policy: what they brought is weighted by how much more often the present one
// would have made them.
#pragma once

#include "core/transitions.hpp"

namespace sparring {

// Truncated importance weights by place, as in V-trace (Espeholt et al. 2018); 1 for decisions of
// the policy that learns.
struct Weights {
  const f32* rho;    // of what a decision itself brought; null: 1 everywhere
  const f32* trace;  // of what came after it, the paper's c
};

// The advantages of one game, last decision first. A decision whose successor is not a sample of
// this rollout ends the sum there. `value` and `advantage` are by place. With weights and a lambda
// of 1, value + advantage is the paper's v.
SPARRING_FN inline void gae_of_game(const RolloutView& v, const Links& links, const f32* value,
                                    f32 lambda, f32* advantage, int game,
                                    const Weights& weights = {}) {
  const auto settle = [&](int place, int role) {
    f32 sum = 0;
    if (links.end[place] != kNotASample) {
      sum = links.paid[place] - value[place];
      const f32 discount = links.discount[place];
      if (links.end[place] == kTruncated) sum += discount * links.tail[place];
      if (links.end[place] == kToNext) {
        const int next = links.next[place];
        sum += discount * value[next];
        if (weights.rho) sum *= weights.rho[place];
        f32 far = v.lambda_of ? v.lambda_of[role] : lambda;
        if (weights.rho) far *= weights.trace[place];
        if (links.end[next] != kNotASample) sum += discount * far * advantage[next];
      } else if (weights.rho) {
        sum *= weights.rho[place];
      }
    }
    advantage[place] = sum;
  };
  for (int step = v.steps - 1; step >= 0; --step)
    for (int r = v.rows - 1; r >= 0; --r) {
      const int row = game * v.rows + r;
      settle(v.place(step, row), v.lambda_of ? v.role[step * v.games * v.rows + row] : 0);
    }
  const int open_count = v.seats * v.chains;
  for (int i = 0; i < open_count; ++i) settle(game * open_count + i, i % v.chains);
}

}  // namespace sparring
