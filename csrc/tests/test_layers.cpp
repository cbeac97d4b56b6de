// Every kind of kernels, and the passes built on them, give what plain sums in double give.
#include <cmath>
#include <vector>

#include "core/rng.hpp"
#include "nets/layers.hpp"
#include "tests/check.hpp"

using namespace sparring;

namespace {

using Doubles = std::vector<double>;

Numbers drawn(i64 count, u64 seed) {
  Rng rng(seed, 0, 0, Stream::kSampling);
  Numbers numbers(static_cast<size_t>(count));
  for (f32& number : numbers) number = static_cast<f32>(rng.below(2001)) / 1000.0f - 1.0f;
  return numbers;
}

bool near(double a, double b, double within) {
  return std::abs(a - b) <= within * (1 + std::abs(b));
}

void check_multiply(const Wide& wide, int rows, int depth) {
  const int stride = rows + 3, panels = panels_of(depth);
  const Numbers x = drawn(i64{panels} * stride * kPanel, 1), bias = drawn(kPanel, 2);
  const Numbers weight = drawn(i64{depth} * kPanel, 3);
  Numbers out(static_cast<size_t>(rows * kPanel));
  wide.multiply(x.data(), stride, rows, depth, weight.data(), bias.data(), out.data());
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < kPanel; ++c) {
      double sum = bias[static_cast<size_t>(c)];
      for (int k = 0; k < depth; ++k)
        sum += double{x[static_cast<size_t>((k / kPanel * stride + r) * kPanel + k % kPanel)]} *
               weight[static_cast<size_t>(k * kPanel + c)];
      CHECK(near(out[static_cast<size_t>(r * kPanel + c)], sum, 1e-5));
    }
}

void check_outer(const Wide& wide, int rows) {
  const Numbers x = drawn(i64{rows} * kPanel, 1), delta = drawn(i64{rows} * kPanel, 2);
  Numbers sum(kPanel * kPanel, 1.0f), column(kPanel, 1.0f);
  wide.outer(x.data(), delta.data(), rows, sum.data());
  wide.add_rows(delta.data(), rows, column.data());
  for (int c = 0; c < kPanel; ++c) {
    double all = 1;
    for (int r = 0; r < rows; ++r) all += delta[static_cast<size_t>(r * kPanel + c)];
    CHECK(near(column[static_cast<size_t>(c)], all, 1e-5));
    for (int i = 0; i < kPanel; ++i) {
      double product = 1;
      for (int r = 0; r < rows; ++r)
        product += double{x[static_cast<size_t>(r * kPanel + i)]} *
                   delta[static_cast<size_t>(r * kPanel + c)];
      CHECK(near(sum[static_cast<size_t>(i * kPanel + c)], product, 1e-5));
    }
  }
}

void check_activations(const Wide& wide) {
  const Wide plain = kernels_here().front().wide;
  const auto x = [] {
    Numbers numbers = drawn(77, 1);
    for (f32& number : numbers) number *= 20;
    numbers[0] = -40;
    return numbers;
  }();
  for (const Activation kind : {Activation::kRelu, Activation::kTanh, Activation::kSilu}) {
    Numbers out = x, narrow = x, grad(x.size(), 2.0f), narrow_grad = grad;
    wide.activate(kind, out.data(), static_cast<i64>(x.size()));
    plain.activate(kind, narrow.data(), static_cast<i64>(x.size()));
    CHECK(out == narrow);
    wide.slope(kind, x.data(), out.data(), grad.data(), static_cast<i64>(x.size()));
    plain.slope(kind, x.data(), narrow.data(), narrow_grad.data(), static_cast<i64>(x.size()));
    CHECK(grad == narrow_grad);
    for (size_t i = 0; i < x.size(); ++i) {
      const double in = x[i], sigmoid = 1 / (1 + std::exp(-in));
      double wanted = in < 0 ? 0 : in, slope = in > 0 ? 1 : 0;
      if (kind == Activation::kTanh) wanted = std::tanh(in), slope = 1 - wanted * wanted;
      if (kind == Activation::kSilu)
        wanted = in * sigmoid, slope = sigmoid * (1 + in * (1 - sigmoid));
      CHECK(near(out[i], wanted, 2e-6));
      CHECK(near(grad[i], 2 * slope, 2e-5));
    }
  }
}

const std::vector<FeatureRun> kRuns{{0, 21, 0, Type::kU8, 1},   {21, 2, 21, Type::kU8, 7},
                                    {23, 1, 40, Type::kI8, 3},  {24, 30, 50, Type::kU8, 1},
                                    {54, 2, 42, Type::kI16, 9}, {56, 1, 46, Type::kF32, 1}};
constexpr int kFeatures = 57, kRowBytes = 80;

// Most bytes are 0; those that no feature reads are not.
std::vector<u8> observations(int rows) {
  Rng rng(5, 0, 0, Stream::kSampling);
  std::vector<u8> bytes(static_cast<size_t>(rows * kRowBytes), 0xff);
  for (int r = 0; r < rows; ++r)
    for (const FeatureRun& run : kRuns)
      for (int i = 0; i < run.count; ++i) {
        u8* at = bytes.data() + r * kRowBytes + run.offset;
        const int raw = rng.below(3) ? 0 : static_cast<int>(rng.below(8));
        const f32 number = static_cast<f32>(raw);
        const i16 word = static_cast<i16>(-3 * raw);
        if (run.type == Type::kF32)
          std::memcpy(at + 4 * i, &number, 4);
        else if (run.type == Type::kI16)
          std::memcpy(at + 2 * i, &word, 2);
        else
          at[i] = static_cast<u8>(run.type == Type::kI8 ? -raw : raw);
      }
  return bytes;
}

void check_lists(const Wide& wide) {
  const std::vector<u8> bytes = observations(40);
  ActiveFeatures wanted;
  std::vector<FeatureRun> runs;
  for (const FeatureRun& run : kRuns)
    if (run.type == Type::kU8) runs.push_back(run);
  const RowPlan plan(runs);
  for (int r = 0; r < 40; ++r) {
    const u8* row = bytes.data() + r * kRowBytes;
    wanted.read(row, runs);
    std::vector<int> index(plan.capacity());
    Numbers value(plan.capacity());
    const size_t count =
        static_cast<size_t>(wide.list_bytes(row, plan.table(), index.data(), value.data()));
    CHECK_EQUAL(count, wanted.index.size());
    for (size_t k = 0; k < count; ++k) {
      CHECK_EQUAL(index[k], wanted.index[k]);
      CHECK(value[k] == wanted.value[k]);
    }
  }
}

void check_sparse(const Wide& wide, int columns) {
  const std::vector<u8> bytes = observations(9);
  const RowPlan plan(kRuns);
  ActiveRows active;
  for (int r = 0; r < 9; ++r) active.add(bytes.data() + r * kRowBytes, plan);
  const ActiveBlock rows = active.view();
  const i64 step = 11 * kPanel;
  const Numbers weight = drawn(i64{kFeatures} * columns, 1), bias = drawn(columns, 2);
  Numbers out(static_cast<size_t>(columns / kPanel * step)),
      sum(static_cast<size_t>(kFeatures * columns), 1.0f);
  wide.gather_rows(rows, weight.data(), columns, bias.data(), out.data(), step);
  active.sort(kFeatures);
  wide.scatter_rows(active.by_feature(), out.data(), step, columns / kPanel, sum.data());
  Doubles sums(sum.size(), 1.0);
  for (int r = 0, first = 0; r < rows.rows; first = rows.end[r++])
    for (int c = 0; c < columns; ++c) {
      const f32 made = out[static_cast<size_t>(c / kPanel * step + r * kPanel + c % kPanel)];
      double wanted = bias[static_cast<size_t>(c)];
      for (int k = first; k < rows.end[r]; ++k) {
        wanted += double{rows.value[k]} * weight[static_cast<size_t>(rows.index[k] * columns + c)];
        sums[static_cast<size_t>(rows.index[k] * columns + c)] += double{rows.value[k]} * made;
      }
      CHECK(near(made, wanted, 1e-4));
    }
  for (size_t i = 0; i < sums.size(); ++i) CHECK(near(sum[i], sums[i], 1e-4));
}

// Two towers, the second of whose heads has a part that reads nothing.
LayersShape shape_of(bool bytes, bool sparse) {
  i64 at = 0;
  const auto piece = [&](int column, int columns, int reads, bool by_column) {
    const Piece made{column,
                     columns,
                     reads,
                     at,
                     at + i64{columns} * reads,
                     by_column ? 1 : columns,
                     by_column ? reads : 1};
    at += i64{columns} * (reads + 1);
    return made;
  };
  LayersShape shape{
      bytes ? kRuns : std::vector<FeatureRun>{}, kFeatures, sparse, Activation::kTanh, 45, {}};
  shape.towers.push_back({0,
                          {{kFeatures, 40, {piece(0, 40, kFeatures, false)}},
                           {40, 33, {piece(0, 33, 40, true)}},
                           {33, 36, {piece(0, 20, 33, true), piece(20, 16, 33, true)}}}});
  shape.towers.push_back({36,
                          {{kFeatures, 64, {piece(0, 64, kFeatures, false)}},
                           {64, 9, {piece(0, 5, 64, true), piece(5, 4, 0, true)}}}});
  return shape;
}

i64 size_of(const LayersShape& shape) {
  const Piece& last = shape.towers.back().layers.back().pieces.back();
  return last.bias + last.columns;
}

struct Found {
  Numbers out, weight_grad, input_grad;
  bool operator==(const Found&) const = default;
};

// One batch after a larger one, whose traces must not be seen.
Found pass(const LayersShape& shape, const RowsIn& rows, const Numbers& weights,
           const Numbers& head_grad, int threads) {
  Layers layers(shape);
  ThreadPool thread_pool(threads - 1);
  const auto run = [&](Job& job) {
    thread_pool.submit(job);
    thread_pool.wait(job, true);
  };
  Found found{Numbers(static_cast<size_t>(rows.rows * shape.head_width)), Numbers(weights.size()),
              Numbers(static_cast<size_t>(rows.rows * kFeatures))};
  for (const int count : {rows.rows, rows.rows / 2, rows.rows}) {
    RowsIn some = rows;
    some.rows = count;
    Layers::Load load(layers, weights.data());
    run(load);
    Layers::Forward forward(layers, some, found.out.data(), true);
    run(forward);
    const Numbers outputs = found.out;
    Layers::Forward unkept(layers, rows, found.out.data(), false);
    run(unkept);
    CHECK(
        std::equal(outputs.begin(), outputs.begin() + count * shape.head_width, found.out.begin()));
    Layers::Backward backward(layers, head_grad.data(), found.weight_grad.data(),
                              found.input_grad.data(), false);
    run(backward);
  }
  return found;
}

// What one tower puts out and hands down for one row, in double.
void pass_plainly(const LayersShape& shape, const TowerShape& tower, const Doubles& row,
                  const Numbers& weights, const f32* head_grad, const f32* outputs, Doubles& grad,
                  Doubles& input_grad) {
  static_cast<void>(shape);
  std::vector<Doubles> x{row};
  for (const LayerShape& layer : tower.layers) {
    Doubles out(static_cast<size_t>(layer.out));
    for (const Piece& piece : layer.pieces)
      for (int o = 0; o < piece.columns; ++o) {
        double sum = weights[static_cast<size_t>(piece.bias + o)];
        for (int i = 0; i < piece.reads; ++i)
          sum += x.back()[static_cast<size_t>(i)] *
                 weights[static_cast<size_t>(piece.weight + i * piece.in_stride +
                                             o * piece.out_stride)];
        const bool head = &layer == &tower.layers.back();
        out[static_cast<size_t>(piece.column + o)] = head ? sum : std::tanh(sum);
      }
    x.push_back(out);
  }
  for (size_t c = 0; c < x.back().size(); ++c) CHECK(near(outputs[c], x.back()[c], 1e-4));
  Doubles delta(head_grad, head_grad + tower.layers.back().out);
  for (size_t l = tower.layers.size(); l-- > 0;) {
    Doubles below(x[l].size());
    for (const Piece& piece : tower.layers[l].pieces)
      for (int o = 0; o < piece.columns; ++o) {
        const double here = delta[static_cast<size_t>(piece.column + o)];
        grad[static_cast<size_t>(piece.bias + o)] += here;
        for (int i = 0; i < piece.reads; ++i) {
          const size_t at =
              static_cast<size_t>(piece.weight + i * piece.in_stride + o * piece.out_stride);
          grad[at] += here * x[l][static_cast<size_t>(i)];
          below[static_cast<size_t>(i)] += here * weights[at];
        }
      }
    for (size_t i = 0; l && i < below.size(); ++i) below[i] *= 1 - x[l][i] * x[l][i];
    delta = below;
  }
  for (size_t i = 0; i < delta.size(); ++i) input_grad[i] += delta[i];
}

void check_passes(bool bytes, bool sparse, int rows) {
  const LayersShape shape = shape_of(bytes, sparse);
  const std::vector<u8> obs = observations(rows);
  Numbers numbers(static_cast<size_t>(rows * kFeatures)), weights = drawn(size_of(shape), 7);
  for (f32& weight : weights) weight *= 0.2f;
  for (int r = 0; r < rows; ++r) {
    ActiveFeatures active;
    active.read(obs.data() + r * kRowBytes, kRuns);
    for (size_t k = 0; k < active.index.size(); ++k)
      numbers[static_cast<size_t>(r * kFeatures + active.index[k])] = active.value[k];
  }
  std::vector<i64> index(static_cast<size_t>(rows));
  for (int r = 0; r < rows; ++r) index[static_cast<size_t>(r)] = rows - 1 - r;
  const Numbers head_grad = drawn(i64{rows} * shape.head_width, 8);
  const RowsIn in = bytes ? RowsIn{obs.data(), kRowBytes, nullptr, 0, index.data(), rows}
                          : RowsIn{nullptr, 0, numbers.data(), kFeatures, index.data(), rows};
  const Found found = pass(shape, in, weights, head_grad, 1);
  for (const int threads : {2, 3}) CHECK(pass(shape, in, weights, head_grad, threads) == found);

  Doubles grad(weights.size());
  for (int r = 0; r < rows; ++r) {
    const f32* row = numbers.data() + index[static_cast<size_t>(r)] * kFeatures;
    Doubles input_grad(kFeatures);
    for (const TowerShape& tower : shape.towers) {
      const i64 at = i64{r} * shape.head_width + tower.head_column;
      pass_plainly(shape, tower, Doubles(row, row + kFeatures), weights, head_grad.data() + at,
                   found.out.data() + at, grad, input_grad);
    }
    for (size_t i = 0; i < kFeatures; ++i)
      CHECK(near(found.input_grad[static_cast<size_t>(r * kFeatures) + i], input_grad[i], 1e-4));
  }
  for (size_t i = 0; i < grad.size(); ++i) CHECK(near(found.weight_grad[i], grad[i], 1e-4));
}

}  // namespace

int main() {
  for (const Kernels& some : kernels_here()) {
    for (int rows = 1; rows <= 26; ++rows) check_multiply(some.wide, rows, 45);
    for (const int depth : {0, 1, 32, 64, 96}) check_multiply(some.wide, 13, depth);
    for (const int rows : {0, 1, 2, 50}) check_outer(some.wide, rows);
    check_activations(some.wide);
    check_lists(some.wide);
    for (const int columns : {32, 64, 96, 160, 288, 512}) check_sparse(some.wide, columns);
  }
  for (const int rows : {1, 2, 17, 130, 301}) {
    check_passes(true, true, rows);
    check_passes(true, false, rows);
    check_passes(false, false, rows);
  }
  return 0;
}
