// Layers with products in bfloat16 say what those in float32 say, and learn nearly the same. Where
// the CPU has no AMX there is nothing to test.
#include <cmath>
#include <cstdio>
#include <vector>

#include "core/rng.hpp"
#include "nets/amx_layers.hpp"
#include "tests/check.hpp"

#if SPARRING_HAS_AMX
using namespace sparring;

namespace {

using Floats = std::vector<f32>;

Floats drawn(i64 count, u64 seed, f32 most) {
  Rng rng(seed, 0, 0, Stream::kSampling);
  Floats numbers(static_cast<size_t>(count));
  for (f32& number : numbers) number = (static_cast<f32>(rng.below(2001)) / 1000.0f - 1.0f) * most;
  return numbers;
}

// A tower of such widths; weights of the first layer lie by feature, the others by column.
LayersShape shape_of(const std::vector<int>& widths, Type type, Activation activation, i64& size) {
  LayersShape shape;
  const int features = widths.front();
  if (type != Type::kF32) {
    const int half = features / 2;
    shape.runs = {{0, half, 0, type, 1}, {half, features - half, half, type, 7}};
  }
  shape.numbers = features;
  shape.sparse = false;
  shape.activation = activation;
  shape.head_width = widths.back();
  TowerShape tower{0, {}};
  size = 0;
  for (size_t l = 0; l + 1 < widths.size(); ++l) {
    const int in = widths[l], out = widths[l + 1];
    const i64 bias = size + i64{in} * out;
    tower.layers.push_back({in, out, {{0, out, in, size, bias, l ? 1 : out, l ? in : 1}}});
    size = bias + out;
  }
  shape.towers = {tower};
  return shape;
}

bool near(const Floats& found, const Floats& expected, double share) {
  double apart = 0, length = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    apart += std::pow(static_cast<double>(found[i]) - static_cast<double>(expected[i]), 2);
    length += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(apart) <= share * std::sqrt(length);
}

void run(ThreadPool& thread_pool, Job& job) {
  thread_pool.submit(job);
  thread_pool.wait(job, true);
}

template <class Kind>
void learn(ThreadPool& thread_pool, Kind& layers, const RowsIn& rows, const Floats& head_grad,
           Floats& out, Floats& grad, Floats* input_grad) {
  typename Kind::Forward forward(layers, rows, out.data(), true);
  run(thread_pool, forward);
  typename Kind::Backward backward(layers, head_grad.data(), grad.data(),
                                   input_grad ? input_grad->data() : nullptr, false);
  run(thread_pool, backward);
}

void check(int rows, const std::vector<int>& widths, Type type, Activation activation) {
  i64 size;
  const LayersShape shape = shape_of(widths, type, activation, size);
  const Floats weights = drawn(size, 1, 0.2f), numbers = drawn(i64{rows} * widths.front(), 2, 1);
  std::vector<u8> bytes(numbers.size());
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<u8>(numbers[i] > 0.8f ? 1 + i % 9 : 0);
  const bool by_number = type == Type::kF32;
  const RowsIn in{by_number ? nullptr : bytes.data(),
                  widths.front(),
                  numbers.data(),
                  widths.front(),
                  nullptr,
                  rows};
  const Floats head_grad = drawn(i64{rows} * widths.back(), 3, 1);
  Floats out[3], grad[3], input_grad[3];
  for (int i = 0; i < 3; ++i) {
    out[i].resize(head_grad.size());
    grad[i].resize(weights.size());
    input_grad[i].resize(numbers.size());
  }
  Layers plain(shape);
  plain.load(weights.data());
  ThreadPool alone(0), three(2);
  learn(alone, plain, in, head_grad, out[0], grad[0], by_number ? &input_grad[0] : nullptr);
  AmxLayers tiles(shape);
  AmxLayers::Load load(tiles, weights.data());
  run(three, load);
  learn(alone, tiles, in, head_grad, out[1], grad[1], by_number ? &input_grad[1] : nullptr);
  learn(three, tiles, in, head_grad, out[2], grad[2], by_number ? &input_grad[2] : nullptr);
  CHECK(out[1] == out[2] && grad[1] == grad[2] && input_grad[1] == input_grad[2]);
  CHECK(near(out[1], out[0], 1e-4));
  CHECK(near(grad[1], grad[0], 0.01));
  CHECK(near(input_grad[1], input_grad[0], 0.01));
}

}  // namespace

int main() {
  if (!amx_usable()) {
    std::puts("no AMX here: nothing is tested");
    return 0;
  }
  for (const int rows : {0, 1, 16, 17, 64, 150})
    for (const Activation activation : {Activation::kRelu, Activation::kTanh, Activation::kSilu}) {
      check(rows, {77, 40, 33, 7}, Type::kU8, activation);
      check(rows, {22, 64, 1}, Type::kF32, activation);
    }
  check(600, {531, 64, 87}, Type::kU8, Activation::kRelu);
  return 0;
}
#else
int main() { return 0; }
#endif
