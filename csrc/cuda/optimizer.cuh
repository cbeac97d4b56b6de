// Adam with gradient clipping, for every member of a population.
#pragma once

#include "cuda/number.cuh"

namespace sparring {

// The flat weights of all members [members, count] and their gradient. A stored weight times
// `scale` is the weight that the network computes with; its gradient times `scale` is that of the
// stored weight.
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

// Parameters of Adam for one minibatch of a member.
struct StepParams {
  f32 active;        // 0: no step
  f32 grad_scale;    // gradient clipping
  f32 step_size;     // learning rate with bias correction
  f32 second_scale;  // bias correction of the second moment's root
  f32 norm;          // of the gradient
};

// Inputs of StepParams, by member.
struct StepParamsView {
  const f32* squares;  // [members, blocks]
  int blocks;
  const f32* lr;             // lr[member * hparams_stride]
  const f32* max_grad_norm;  // as lr
  int hparams_stride;
  f32 beta1, beta2;
  i32* adam_steps;
  const u8* stopped;  // early stopping: no more steps in this update
  u8* diverged;
  StepParams* step_params;
};

// One block per member. A member whose gradient is not finite is marked as diverged, and its
// weights stay.
extern "C" __global__ void __launch_bounds__(256) compute_step_params(StepParamsView v) {
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
    v.step_params[member] = {};
    return;
  }
  const f32 step = static_cast<f32>(++v.adam_steps[member]);
  const i64 hparams = i64{member} * v.hparams_stride;
  v.step_params[member] = {1, fminf(v.max_grad_norm[hparams] / (norm + 1e-6f), 1.0f),
                           v.lr[hparams] / (1 - powf(v.beta1, step)),
                           1 / sqrtf(1 - powf(v.beta2, step)), norm};
}

// Adam's moments of the gradient [members, count], and the parameters of this minibatch.
struct AdamView {
  f32* first;
  f32* second;
  f32 beta1, beta2, epsilon;
  const StepParams* step_params;  // [members]
};

// Adam on the float32 weights, which are then rounded to the weights that the network computes
// with.
extern "C" __global__ void adam(WeightsView weights, AdamView v) {
  const StepParams params = v.step_params[blockIdx.y];
  const int i = static_cast<int>(global_thread());
  if (params.active == 0 || i >= weights.count) return;
  const i64 index = i64{blockIdx.y} * weights.count + i;
  const f32 g = weights.grad[index] * weights.scale[i] * params.grad_scale;
  const f32 m = v.first[index] + (1 - v.beta1) * (g - v.first[index]);
  const f32 s = v.beta2 * v.second[index] + (1 - v.beta2) * g * g;
  v.first[index] = m;
  v.second[index] = s;
  weights.weight[index] -= params.step_size * m / (sqrtf(s) * params.second_scale + v.epsilon);
  weights.compute[index] = rounded(weights.weight[index] * weights.scale[i]);
}

}  // namespace sparring
