// Convolutions against the plain loops that define them, alone and with a thread_pool.
#include <cmath>
#include <vector>

#include "core/rng.hpp"
#include "core/thread_pool.hpp"
#include "nets/convolution.hpp"
#include "tests/check.hpp"

using namespace sparring;

namespace {

using Numbers = std::vector<f32>;

Numbers drawn(size_t count, u64 seed) {
  Rng rng(seed, 0, 0, Stream::kSampling);
  Numbers numbers(count);
  for (f32& number : numbers) number = static_cast<f32>(rng.below(2001)) / 1000.0f - 1.0f;
  return numbers;
}

bool alike(const Numbers& a, const Numbers& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (std::abs(a[i] - b[i]) > 1e-4f * (1 + std::abs(b[i]))) return false;
  return a.size() == b.size();
}

struct Case {
  Boards size;
  int rows, in, out;

  // Calls f(input, weight, output) with the indices that meet in a product.
  template <class F>
  void each(const F& f) const {
    for (int row = 0; row < rows; ++row)
      for (int y = 0; y < size.height; ++y)
        for (int x = 0; x < size.width; ++x)
          for (int tap = 0; tap < kTaps; ++tap) {
            const int from_y = y + tap / 3 - 1, from_x = x + tap % 3 - 1;
            if (from_y < 0 || from_y >= size.height || from_x < 0 || from_x >= size.width) continue;
            const int to = (row * size.squares() + y * size.width + x) * out;
            const int from = (row * size.squares() + from_y * size.width + from_x) * in;
            for (int i = 0; i < in; ++i)
              for (int o = 0; o < out; ++o)
                f(static_cast<size_t>(from + i), static_cast<size_t>((tap * in + i) * out + o),
                  static_cast<size_t>(to + o));
          }
  }
};

void check_case(const Case& at, ThreadPool* thread_pool) {
  const auto run = [&](Job& job) {
    if (!thread_pool) return ThreadPool::run_alone(job);
    thread_pool->submit(job);
    thread_pool->wait(job, true);
  };
  const size_t squares = static_cast<size_t>(at.rows * at.size.squares());
  const size_t out = static_cast<size_t>(at.out),
               weights = static_cast<size_t>(kTaps * at.in) * out;
  const Numbers x = drawn(squares * static_cast<size_t>(at.in), 1), weight = drawn(weights, 2);
  const Numbers bias = drawn(out, 3), onto = drawn(squares * out, 4),
                mask = drawn(squares * out, 5);
  Numbers wanted(squares * out), made(squares * out);
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = bias[i % out] + onto[i];
  at.each([&](size_t from, size_t by, size_t to) { wanted[to] += x[from] * weight[by]; });
  for (size_t i = 0; i < wanted.size(); ++i)
    wanted[i] = mask[i] > 0 && wanted[i] > 0 ? wanted[i] : 0;
  Convolve convolve(at.size, at.rows, x.data(), at.in, weight.data(), bias.data(), at.out,
                    {onto.data(), mask.data(), true}, made.data());
  run(convolve);
  CHECK(alike(made, wanted));

  Numbers weight_wanted(weights), bias_wanted(out), weight_grad(weights), bias_grad(out);
  at.each([&](size_t from, size_t by, size_t to) { weight_wanted[by] += x[from] * onto[to]; });
  for (size_t i = 0; i < onto.size(); ++i) bias_wanted[i % out] += onto[i];
  KernelGradient gradient(at.size, at.rows, x.data(), at.in, onto.data(), at.out,
                          weight_grad.data(), bias_grad.data());
  run(gradient);
  CHECK(alike(weight_grad, weight_wanted));
  CHECK(alike(bias_grad, bias_wanted));
}

// The stem reads bytes; as numbers they are an ordinary convolution's input.
void check_stem() {
  const Case at{{3, 4}, 70, 2, 8};
  const int squares = at.size.squares(), planes = at.in * squares, numbers = 3;
  const std::vector<FeatureRun> runs = {{0, planes, 0, Type::kU8, 1.0f},
                                        {planes, numbers, planes, Type::kU8, 2.0f}};
  const int bytes = planes + numbers;
  Rng rng(7, 0, 0, Stream::kSampling);
  std::vector<u8> obs(static_cast<size_t>(at.rows * bytes));
  for (u8& byte : obs) byte = rng.below(4) ? 0 : static_cast<u8>(1 + rng.below(3));
  const size_t out = static_cast<size_t>(at.out);
  const Numbers weight = drawn(static_cast<size_t>(kTaps * at.in) * out, 1), bias = drawn(out, 2);
  const Numbers number_weight = drawn(numbers * out, 3);
  const size_t total = static_cast<size_t>(at.rows * squares) * out;
  const Numbers grad = drawn(total, 4);
  Numbers wanted(total), made(total), input(static_cast<size_t>(at.rows * planes));
  Numbers number_wanted(numbers * out), bias_wanted(out);
  for (int row = 0; row < at.rows; ++row) {
    const u8* line = &obs[static_cast<size_t>(row * bytes)];
    for (int square = 0; square < squares; ++square) {
      const size_t place = static_cast<size_t>(row * squares + square);
      for (int i = 0; i < at.in; ++i)
        input[place * static_cast<size_t>(at.in) + static_cast<size_t>(i)] =
            line[i * squares + square];
      for (size_t o = 0; o < out; ++o) {
        wanted[place * out + o] = bias[o];
        bias_wanted[o] += grad[place * out + o];
        for (size_t n = 0; n < numbers; ++n) {
          const f32 number = static_cast<f32>(line[static_cast<size_t>(planes) + n]) / 2;
          wanted[place * out + o] += number * number_weight[n * out + o];
          number_wanted[n * out + o] += number * grad[place * out + o];
        }
      }
    }
  }
  at.each([&](size_t from, size_t by, size_t to) { wanted[to] += input[from] * weight[by]; });
  for (f32& one : wanted) one = one > 0 ? one : 0;
  const StemInput stem{at.size, at.rows, obs.data(), bytes, runs, at.in, at.out};
  StemForward forward(stem, weight.data(), number_weight.data(), bias.data(), made.data());
  ThreadPool::run_alone(forward);
  CHECK(alike(made, wanted));

  Numbers weight_wanted(weight.size()), weight_grad(weight.size());
  Numbers number_grad(number_weight.size()), bias_grad(out);
  at.each([&](size_t from, size_t by, size_t to) { weight_wanted[by] += input[from] * grad[to]; });
  StemGradient backward(stem, numbers, grad.data(), weight_grad.data(), number_grad.data(),
                        bias_grad.data());
  ThreadPool::run_alone(backward);
  CHECK(alike(weight_grad, weight_wanted));
  CHECK(alike(number_grad, number_wanted));
  CHECK(alike(bias_grad, bias_wanted));
}

}  // namespace

int main() {
  ThreadPool thread_pool(2);
  for (ThreadPool* with : {static_cast<ThreadPool*>(nullptr), &thread_pool}) {
    check_case({{9, 9}, 5, 8, 24}, with);
    check_case({{9, 9}, 67, 4, 4}, with);  // more than one chunk
    check_case({{3, 5}, 3, 5, 36}, with);  // inputs that do not come in threes, two blocks of out
    check_case({{1, 2}, 2, 1, 12}, with);
  }
  check_stem();
  return 0;
}
