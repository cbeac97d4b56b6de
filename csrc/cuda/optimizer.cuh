// Adam behind a clipped gradient, for every member of a population.
#pragma once

#include "cuda/number.cuh"

namespace sparring {

// The flat weights of all members [members, count] and their gradient. `scale` turns a weight as
// it is stored into the one that is computed with, and the gradient of the latter into that of the
// former.
struct WeightsView {
  f32* weight;
  Num* compute;
  const f32* grad;
  const f32* scale;  // [count]
  int count;
};

// Squares of the gradient, summed per block.
extern "C" __global__ void __launch_bounds__(256) square(WeightsView weights, f32* partials) {
  const f32* mine = weights.grad + i64{blockIdx.y} * weights.count;
  f32 sum = 0;
  for (i64 i = global_thread(); i < weights.count; i += i64{gridDim.x} * blockDim.x) {
    const f32 g = mine[i] * weights.scale[i];
    sum += g * g;
  }
  __shared__ f32 all[8];
  sum = warp_sum(sum);
  if (lane() == 0) all[threadIdx.x / kWarp] = sum;
  __syncthreads();
  if (threadIdx.x) return;
  f32 total = 0;
  for (f32 one : all) total += one;
  partials[blockIdx.y * gridDim.x + blockIdx.x] = total;
}

// What the optimizer does with one minibatch.
struct Plan {
  f32 active, shrink, rate, spread, norm;
};

// What decides that, by member.
struct PlanView {
  const f32* squares;  // [members, blocks]
  int blocks;
  const f32* lr;             // one of every `apart` numbers is a member's
  const f32* max_grad_norm;  // as lr
  int apart;
  f32 beta1, beta2;
  i32* adam_steps;
  const u8* stopped;  // learns no more in this update
  u8* diverged;
  Plan* plans;
};

// One block per member. A gradient that is not finite is never stepped on: the member is marked as
// diverged and its weights stay.
extern "C" __global__ void __launch_bounds__(256) plan_step(PlanView v) {
  __shared__ f32 all[8];
  const int member = static_cast<int>(blockIdx.x);
  f32 sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < v.blocks; i += 256)
    sum += v.squares[member * v.blocks + i];
  sum = warp_sum(sum);
  if (lane() == 0) all[threadIdx.x / kWarp] = sum;
  __syncthreads();
  if (threadIdx.x) return;
  f32 total = 0;
  for (f32 one : all) total += one;
  const f32 norm = sqrtf(total);
  if (!is_finite(norm)) v.diverged[member] = 1;
  if (v.stopped[member] || v.diverged[member]) {
    v.plans[member] = {};
    return;
  }
  const f32 step = static_cast<f32>(++v.adam_steps[member]);
  const i64 at = i64{member} * v.apart;
  v.plans[member] = {1, fminf(v.max_grad_norm[at] / (norm + 1e-6f), 1.0f),
                     v.lr[at] / (1 - powf(v.beta1, step)), 1 / sqrtf(1 - powf(v.beta2, step)),
                     norm};
}

// Adam's moments of the gradient [members, count], and the plan of this minibatch.
struct AdamView {
  f32* first;
  f32* second;
  f32 beta1, beta2, epsilon;
  const Plan* plans;  // [members]
};

// Adam on the float32 weights, which are then rounded to those that are computed with.
extern "C" __global__ void adam(WeightsView weights, AdamView v) {
  const Plan plan = v.plans[blockIdx.y];
  const int i = static_cast<int>(global_thread());
  if (plan.active == 0 || i >= weights.count) return;
  const i64 at = i64{blockIdx.y} * weights.count + i;
  const f32 g = weights.grad[at] * weights.scale[i] * plan.shrink;
  const f32 m = v.first[at] + (1 - v.beta1) * (g - v.first[at]);
  const f32 s = v.beta2 * v.second[at] + (1 - v.beta2) * g * g;
  v.first[at] = m;
  v.second[at] = s;
  weights.weight[at] -= plan.rate * m / (sqrtf(s) * plan.spread + v.epsilon);
  weights.compute[at] = rounded(weights.weight[at] * weights.scale[i]);
}

}  // namespace sparring
