// What PPO does besides passes: the loss, Adam and draws give the same bits by any vectors and any
// number of threads, and the gradient is the slope of the loss.
#include <cmath>
#include <vector>

#include "learn/adam.hpp"
#include "learn/ppo_loss.hpp"
#include "nets/drawing.hpp"
#include "tests/check.hpp"

using namespace sparring;

namespace {

using Floats = std::vector<f32>;

Floats drawn(size_t count, u64 seed, f32 most) {
  Rng rng(seed, 0, 0, Stream::kSampling);
  Floats numbers(count);
  for (f32& number : numbers) number = (static_cast<f32>(rng.below(2001)) / 1000.0f - 1.0f) * most;
  return numbers;
}

void run(Job& job, int threads) {
  if (threads == 1) return ThreadPool::run_alone(job);
  ThreadPool thread_pool(threads - 1);
  thread_pool.submit(job);
  thread_pool.wait(job, true);
}

// Decisions of 21 actions, of which every third or so is legal.
struct Batch {
  static constexpr int kRows = 150, kActions = 21, kWidth = kActions + 1;

  Batch() : mask(kRows * kActions), action(kRows), place(kRows), row(kRows) {
    Rng rng(5, 0, 0, Stream::kSampling);
    for (int r = 0; r < kRows; ++r) {
      const size_t at = static_cast<size_t>(r);
      place[at] = kRows - 1 - r;
      row[at] = static_cast<u32>(r);
      for (int a = 0; a < kActions; ++a)
        mask[at * kActions + static_cast<size_t>(a)] = rng.below(3) == 0;
      action[at] = static_cast<i32>(rng.below(kActions));
      mask[at * kActions + static_cast<size_t>(action[at])] = 1;
    }
  }

  Decisions decisions() const {
    return {kRows, place.data(), place.data(), mask.data(), kActions, action.data(), nullptr, 0};
  }
  OldPolicyData old_data() const {
    return {log_prob.data(), value.data(), advantage.data(), returns.data(), nullptr};
  }

  std::vector<u8> mask;
  std::vector<i32> action;
  std::vector<i64> place;
  std::vector<u32> row;
  Floats outputs = drawn(kRows * kWidth, 1, 2), log_prob = drawn(kRows, 2, 1);
  Floats value = drawn(kRows, 3, 1), advantage = drawn(kRows, 4, 1), returns = drawn(kRows, 5, 1);
};

constexpr PolicyHparams kHparams{0.2f, 0.3f, 0.5f, 0.05f};

f64 total_of(const Batch& batch, const Floats& outputs, Floats& grad, int threads) {
  const Decisions decisions = batch.decisions();
  PolicyLoss job(decisions, batch.old_data(), kHparams, outputs.data(), grad.data());
  run(job, threads);
  const PolicySums sums = job.sums();
  return (sums.policy + 0.5 * sums.value - 0.05 * sums.entropy) / Batch::kRows;
}

void test_loss() {
  const Batch batch;
  Floats grad(batch.outputs.size()), other(batch.outputs.size());
  const f64 total = total_of(batch, batch.outputs, grad, 1);
  for (const int threads : {2, 3}) {
    CHECK(total_of(batch, batch.outputs, other, threads) == total);
    CHECK(other == grad);
  }
  f64 worst = 0;
  for (const size_t at : {size_t{0}, size_t{21}, size_t{500}, size_t{1234}, size_t{3000}}) {
    Floats up = batch.outputs, down = batch.outputs;
    up[at] += 1e-2f;
    down[at] -= 1e-2f;
    const f64 slope = (total_of(batch, up, other, 1) - total_of(batch, down, other, 1)) / 2e-2;
    worst = std::fmax(worst, std::abs(slope - static_cast<f64>(grad[at])));
  }
  CHECK(worst < 1e-5);
}

void test_vectors() {
  const Batch batch;
  const int padded = padded_to_sums(Batch::kActions);
  Floats chance(static_cast<size_t>(padded)), below(chance), first;
  f32 top, sum = 0;
  for (const int lanes : {4, 8, 16}) {
    const f32 found =
        rowwise_of(lanes).masked_exp(batch.outputs.data(), batch.mask.data(), Batch::kActions,
                                     padded, chance.data(), below.data(), top);
    if (first.empty()) {
      first = chance;
      sum = found;
    }
    CHECK(found == sum);
    CHECK(chance == first);
  }
}

void test_adam() {
  const Floats grad = drawn(50'001, 7, 1e-2f);
  Floats first;
  for (const int threads : {1, 3}) {
    Floats weight = drawn(grad.size(), 8, 1), mean(grad.size()), square(grad.size());
    for (i64 step = 1; step <= 3; ++step) {
      AdamStep job(
          {grad.data(), weight.data(), mean.data(), square.data(), static_cast<i64>(grad.size())},
          {1e-3, 1e-5, 0.5, step});
      run(job, threads);
      CHECK(job.norm() > 0);
    }
    if (first.empty()) first = weight;
    CHECK(weight == first);
  }
}

void test_draws() {
  const Batch batch;
  std::vector<i32> first;
  for (const int threads : {1, 3}) {
    std::vector<i32> action(Batch::kRows);
    Floats log_prob(Batch::kRows), value(Batch::kRows);
    DrawActions job({batch.outputs.data(), Batch::kRows, Batch::kWidth, batch.mask.data(),
                     Batch::kActions, 0, 9, batch.row.data(), 1, 2, 0.5f},
                    {action.data(), nullptr, log_prob.data(), value.data()});
    run(job, threads);
    for (size_t r = 0; r < Batch::kRows; ++r)
      CHECK(batch.mask[r * Batch::kActions + static_cast<size_t>(action[r])]);
    if (first.empty()) first = action;
    CHECK(action == first);
  }
}

}  // namespace

int main() {
  test_loss();
  test_vectors();
  test_adam();
  test_draws();
  return 0;
}
