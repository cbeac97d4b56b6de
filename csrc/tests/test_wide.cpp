// Every width of vectors gives what the plain loops give, and what the narrowest gives.
#include <cmath>
#include <vector>

#include "core/rng.hpp"
#include "nets/grouped.hpp"
#include "tests/check.hpp"

using namespace sparring;

namespace {

using Numbers = std::vector<f32>;

Numbers drawn(int count, u64 seed) {
  Rng rng(seed, 0, 0, Stream::kSampling);
  Numbers numbers(static_cast<size_t>(count));
  for (f32& number : numbers) number = static_cast<f32>(rng.below(2001)) / 1000.0f - 1.0f;
  return numbers;
}

bool near(f32 a, f32 b) { return std::abs(a - b) <= 1e-5f * (1 + std::abs(b)); }

void check_product(int rows, int depth, int columns) {
  const Numbers x = drawn(rows * depth, 1), weight = drawn(depth * columns, 2);
  const Numbers bias = drawn(columns, 3);
  for (const int lanes : {4, 8, 16}) {
    Numbers out(static_cast<size_t>(rows * columns));
    wide_of(lanes).product(x.data(), rows, depth, weight.data(), bias.data(), columns, out.data());
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c) {
        f32 sum = bias[static_cast<size_t>(c)];
        for (int k = 0; k < depth; ++k)
          sum += x[static_cast<size_t>(r * depth + k)] *
                 weight[static_cast<size_t>((c / kPanel * depth + k) * kPanel + c % kPanel)];
        CHECK(near(out[static_cast<size_t>(r * columns + c)], sum));
      }
  }
}

void check_gather(int columns, int stride) {
  const std::vector<int> index{1, 4, 5, 11};
  const Numbers value = drawn(4, 1), weight = drawn(12 * stride, 2), bias = drawn(stride, 3);
  Numbers narrow(static_cast<size_t>(columns));
  const Active active{index.data(), value.data(), 4};
  wide_of(4).gather(active, weight.data(), stride, columns, bias.data(), narrow.data());
  for (int c = 0; c < columns; ++c) {
    f32 sum = bias[static_cast<size_t>(c)];
    for (size_t k = 0; k < 4; ++k)
      sum += value[k] * weight[static_cast<size_t>(index[k] * stride + c)];
    CHECK(near(narrow[static_cast<size_t>(c)], sum));
  }
  for (const int lanes : {8, 16}) {
    Numbers out(static_cast<size_t>(columns));
    wide_of(lanes).gather(active, weight.data(), stride, columns, bias.data(), out.data());
    CHECK(out == narrow);  // to the bit: a run goes on the same on another machine
  }
}

}  // namespace

int main() {
  for (int rows = 1; rows <= 19; ++rows) check_product(rows, 33, 96);
  check_product(8, 1, 32);
  for (const int columns : {0, 32, 64, 96, 128, 160, 288}) check_gather(columns, columns + 7);
  return 0;
}
