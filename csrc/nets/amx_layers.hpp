// Perceptrons with products in bfloat16, for CPUs with AMX; otherwise as `Layers`
// (nets/layers.hpp). Weights, biases, sums, activations, their derivatives and gradients are
// float32; only the two factors of a product are rounded to bfloat16.
//
// Forward, a factor is two bfloat16 numbers, the rounded one and its rounding error, so that
// outputs are those of float32. With one number, one unit in a thousand would cross the corner of
// relu, which alone changes gradients by 4 %. Backward, where errors stay small and average out, a
// factor is one number.
//
// Rows pass all layers 32 at a time. Features are widened and multiplied densely: tiles do 16
// products in the time of one. That is as fast as summing the weights of nonzero features when 20
// of 531 are nonzero, and faster with more; it is slower with 43 of 2287. Bytes are exact in
// bfloat16; divisors of features are part of the weights. The gradient of a panel of weights is
// summed by one thread over all rows in their order, so that the result is the same for any number
// of threads.
#pragma once

#include "nets/amx.hpp"
#include "nets/layers.hpp"

#if SPARRING_HAS_AMX

namespace sparring {

class AmxLayers {
  // Panels of inputs of a layer.
  struct Unit {
    int tower, layer, panel, count;
  };

 public:
  static constexpr int kBlock = 64;  // rows of a chunk

  explicit AmxLayers(LayersShape shape) : shape_(std::move(shape)) {
    const auto exact = [](const FeatureRun& run) { return size_of(run.type) == 1; };
    fine_ = shape_.runs.empty() || !std::all_of(shape_.runs.begin(), shape_.runs.end(), exact);
    features_ = panels_of(shape_.numbers);
    find_stretches();
    for (const TowerShape& tower : shape_.towers) {
      std::vector<Packed>& made = packed_.emplace_back();
      for (const LayerShape& layer : tower.layers) {
        Packed& packed = made.emplace_back();
        packed.in = panels_of(layer.in);
        packed.out = panels_of(layer.out);
        packed.weight.resize(2 * static_cast<size_t>(packed.out) * static_cast<size_t>(packed.in));
        packed.transposed.resize(static_cast<size_t>(packed.out) * static_cast<size_t>(packed.in));
        packed.bias.resize(static_cast<size_t>(packed.out) * kPanel);
        widest_ = max(widest_, max(packed.in, packed.out));
      }
    }
  }

  const LayersShape& shape() const { return shape_; }
  int rows() const { return kept_rows_; }

  // Copies and packs the weights; later changes need another `Load`.
  class Load final : public Job {
   public:
    Load(AmxLayers& layers, const f32* weights)
        : layers_(layers), weights_(weights), units_(layers.units()) {}
    int open(int phase) override { return phase == 0 ? static_cast<int>(units_.size()) : -1; }
    void run(int, int chunk) override {
      const Unit& unit = units_[static_cast<size_t>(chunk)];
      for (int i = 0; i < unit.count; ++i) layers_.pack(unit, unit.panel + i, weights_);
    }

   private:
    AmxLayers& layers_;
    const f32* weights_;
    std::vector<Unit> units_;
  };

  // Outputs of the heads, out [rows, head_width]. keep: store activations for `Backward`.
  class Forward final : public Job {
   public:
    Forward(AmxLayers& layers, const RowsIn& rows, f32* out, bool keep)
        : layers_(layers), rows_(rows), out_(out), keep_(keep) {
      if (!keep) return;
      layers.reserve_blocks(rows.rows);
      layers.kept_rows_ = rows.rows;
    }
    int open(int phase) override { return phase == 0 ? (rows_.rows + kBlock - 1) / kBlock : -1; }
    void run(int, int chunk) override {
      layers_.each_group(chunk, rows_.rows,
                         [&](int group) { layers_.pass(rows_, group, out_, keep_); });
    }

   private:
    AmxLayers& layers_;
    RowsIn rows_;
    f32* out_;
    bool keep_;
  };

  // As `Layers::Backward`.
  class Backward final : public Job {
   public:
    Backward(AmxLayers& layers, const f32* head_grad, f32* weight_grad, f32* input_grad, bool add)
        : layers_(layers),
          head_grad_(head_grad),
          weight_grad_(weight_grad),
          input_grad_(input_grad),
          add_(add),
          units_(layers.units()) {}
    int open(int phase) override {
      if (phase == 0) return (layers_.kept_rows_ + kBlock - 1) / kBlock;
      return phase == 1 && weight_grad_ ? static_cast<int>(units_.size()) : -1;
    }
    void run(int phase, int chunk) override {
      if (phase == 0)
        layers_.each_group(chunk, layers_.kept_rows_, [&](int group) {
          layers_.descend(group, head_grad_, input_grad_, weight_grad_ != nullptr);
        });
      else
        layers_.add_up(units_[static_cast<size_t>(chunk)], weight_grad_, add_);
    }

   private:
    AmxLayers& layers_;
    const f32* head_grad_;
    f32* weight_grad_;
    f32* input_grad_;
    bool add_;
    std::vector<Unit> units_;
  };

 private:
  static constexpr int kGroup = amx::kSide;  // rows that go through all layers together
  static_assert(kPanel == amx::kSide && kBlock % kGroup == 0);
  // Panels of inputs whose weight gradients one chunk sums: each chunk loads all output gradients.
  static constexpr int kTogether = 2;
  using Blocks = std::vector<amx::Block>;

  // A layer packed for products, in pairs. Sizes are panels.
  struct Packed {
    int in, out;
    Blocks weight;      // [out, in, 2], rounded numbers and rounding errors
    Blocks transposed;  // [in, out]
    std::vector<f32> bias;
  };

  // Stored data of a layer for a batch. Gradients are laid out for the products of weight
  // gradients.
  struct LayerData {
    Blocks pairs;                   // [panels, stride], outputs
    std::vector<amx::Signs> signs;  // [groups, panels], of relu
    std::vector<amx::Sums> slopes;  // [groups, panels], of others
    Blocks delta;                   // [panels, stride], the gradient, transposed
    std::vector<f32> total;         // [groups, panels * kPanel], its sum over a group's rows
  };

  // Adjacent features at adjacent bytes.
  struct Stretch {
    int first, count, offset;
    Type type;
  };

  // Working memory of a thread.
  struct Scratch {
    Blocks input, input_rest, rows[2], rest[2];
    std::vector<f32> numbers;     // of a row
    std::vector<amx::Sums> wide;  // of panels of weights
    amx::Sums sums;

    void reserve(int panels) {
      for (Blocks* blocks : {&input, &input_rest, &rows[0], &rows[1], &rest[0], &rest[1]})
        if (blocks->size() < static_cast<size_t>(panels))
          blocks->resize(static_cast<size_t>(panels));
    }
  };

  static Scratch& scratch() {
    static thread_local Scratch held;
    return held;
  }

  void find_stretches() {
    scale_.assign(static_cast<size_t>(features_) * kPanel, shape_.runs.empty() ? 1.0f : 0.0f);
    for (const FeatureRun& run : shape_.runs) {
      std::fill_n(scale_.begin() + run.first, run.count, 1 / run.divisor);
      if (!stretches_.empty()) {
        Stretch& last = stretches_.back();
        const int size = size_of(last.type);
        if (last.type == run.type && last.first + last.count == run.first &&
            last.offset + last.count * size == run.offset) {
          last.count += run.count;
          continue;
        }
      }
      stretches_.push_back({run.first, run.count, run.offset, run.type});
    }
  }

  std::vector<Unit> units() const {
    std::vector<Unit> found;
    for (size_t t = 0; t < packed_.size(); ++t)
      for (size_t l = 0; l < packed_[t].size(); ++l)
        for (int panel = 0; panel < packed_[t][l].in; panel += kTogether)
          found.push_back({static_cast<int>(t), static_cast<int>(l), panel,
                           min(kTogether, packed_[t][l].in - panel)});
    return found;
  }

  template <class Do>
  void each_group(int chunk, int rows, Do&& act) const {
    constexpr int kGroups = kBlock / kGroup;
    amx::configure();
    const int groups = (rows + kGroup - 1) / kGroup;
    for (int g = chunk * kGroups; g < min((chunk + 1) * kGroups, groups); ++g) act(g);
    amx::release();
  }

  void reserve_blocks(int rows) {
    const int groups = (rows + kGroup - 1) / kGroup;
    if (groups <= groups_ && !layer_data_.empty()) return;
    groups_ = groups;
    stride_ = groups | 1;  // with an even stride panels would map to few cache sets
    const auto blocks = [](int a, int b) {
      return static_cast<size_t>(a) * static_cast<size_t>(b);
    };
    input_.resize(blocks(features_, stride_));
    layer_data_.resize(packed_.size());
    for (size_t t = 0; t < packed_.size(); ++t) {
      layer_data_[t].resize(packed_[t].size());
      for (size_t l = 0; l < packed_[t].size(); ++l) {
        LayerData& left = layer_data_[t][l];
        const int panels = packed_[t][l].out;
        left.delta.resize(blocks(panels, stride_));
        left.total.resize(blocks(panels * kPanel, groups));
        if (l + 1 == packed_[t].size()) continue;
        left.pairs.resize(blocks(panels, stride_));
        if (shape_.activation == Activation::kRelu)
          left.signs.resize(blocks(panels, groups));
        else
          left.slopes.resize(blocks(panels, groups));
      }
    }
  }

  size_t at(int panel, int group) const {
    return static_cast<size_t>(panel) * static_cast<size_t>(stride_) + static_cast<size_t>(group);
  }
  static size_t by_group(int group, int panels) {
    return static_cast<size_t>(group) * static_cast<size_t>(panels);
  }

  SPARRING_AMX void pack(const Unit& unit, int panel, const f32* weights);
  SPARRING_AMX void widen(const RowsIn& rows, int group, bool keep);
  SPARRING_AMX void pass(const RowsIn& rows, int group, f32* out, bool keep);
  SPARRING_AMX void descend(int group, const f32* head_grad, f32* input_grad, bool keep);
  SPARRING_AMX void add_up(const Unit& unit, f32* weight_grad, bool add);
  SPARRING_AMX void store(const Unit& unit, int panel, int out_panel, bool add, amx::Sums& sums,
                          f32* weight_grad) const;
  void store_bias(const Unit& unit, f32* weight_grad, bool add) const;
  // left: null without `keep`. place: index of the block in it.
  SPARRING_AMX void finish(const amx::Sums& sums, const f32* bias, amx::Block& rows,
                           amx::Block& rest, LayerData* left, size_t place) const {
    amx::Signs* signs = left && !left->signs.empty() ? &left->signs[place] : nullptr;
    amx::Sums* slopes = left && !left->slopes.empty() ? &left->slopes[place] : nullptr;
    if (shape_.activation == Activation::kRelu)
      amx::finish<Activation::kRelu>(sums, bias, rows, rest, signs, slopes);
    else if (shape_.activation == Activation::kTanh)
      amx::finish<Activation::kTanh>(sums, bias, rows, rest, signs, slopes);
    else
      amx::finish<Activation::kSilu>(sums, bias, rows, rest, signs, slopes);
  }

  LayersShape shape_;
  bool fine_;     // whether features need more precision than bfloat16
  int features_;  // panels of features
  std::vector<Stretch> stretches_;
  std::vector<f32> scale_;                          // by feature: 1 / divisor
  std::vector<std::vector<Packed>> packed_;         // by tower and layer
  std::vector<std::vector<LayerData>> layer_data_;  // by tower and layer
  Blocks input_;                                    // [features, stride], in pairs
  int widest_ = 0, groups_ = 0, stride_ = 0, kept_rows_ = 0;
};

// Weights are stored by column or by feature: adjacent weights stay adjacent in a block, and one of
// the two packed factors is transposed.
SPARRING_AMX inline void AmxLayers::pack(const Unit& unit, int panel, const f32* weights) {
  const size_t t = static_cast<size_t>(unit.tower), l = static_cast<size_t>(unit.layer);
  const LayerShape& layer = shape_.towers[t].layers[l];
  Packed& packed = packed_[t][l];
  const int first = panel * kPanel, reads = min(kPanel, layer.in - first);
  const bool by_column = layer.pieces[0].in_stride == 1;
  amx::Block rows, rest;
  amx::Sums& sums = scratch().sums;
  for (int p = 0; p < packed.out; ++p) {
    std::memset(&sums, 0, sizeof sums);
    for (const Piece& piece : layer.pieces) {
      const int from = max(piece.column, p * kPanel);
      const int to = min(piece.column + piece.columns, (p + 1) * kPanel);
      if (to <= from) continue;
      if (panel == 0)
        std::copy_n(weights + piece.bias + from - piece.column, to - from,
                    packed.bias.begin() + from);
      if (!piece.reads) continue;
      const f32* begin = weights + piece.weight + first * piece.in_stride +
                         (from - piece.column) * piece.out_stride;
      if (by_column && piece.in_stride == 1)
        for (int o = 0; o < to - from; ++o)
          amx::copy_row(begin + o * piece.out_stride, reads, sums.row(from - p * kPanel + o));
      else if (!by_column && piece.out_stride == 1 && from % kPanel == 0)
        for (int i = 0; i < reads; ++i)
          amx::copy_row(begin + i * piece.in_stride, to - from, sums.row(i));
      else
        for (int i = 0; i < reads; ++i)
          for (int o = 0; o < to - from; ++o) {
            const int column = from - p * kPanel + o;
            (by_column ? sums.row(column)[i] : sums.row(i)[column]) =
                begin[i * piece.in_stride + o * piece.out_stride];
          }
    }
    amx::round_to(sums, rows, &rest);
    amx::Block& transposed =
        packed.transposed[by_group(panel, packed.out) + static_cast<size_t>(p)];
    amx::Block* weight = &packed.weight[2 * (by_group(p, packed.in) + static_cast<size_t>(panel))];
    (by_column ? amx::pairs_of : amx::turned_pairs_of)(rows, transposed);
    if (l == 0) {
      (by_column ? amx::scale_columns : amx::scale_rows)(sums, scale_.data() + first);
      amx::round_to(sums, rows, &rest);
    }
    const auto lay_out = by_column ? amx::turned_pairs_of : amx::pairs_of;
    lay_out(rows, weight[0]);
    lay_out(rest, weight[1]);
  }
}

// Packs a group of rows for the first layer and, with `keep`, for its gradient.
SPARRING_AMX inline void AmxLayers::widen(const RowsIn& rows, int group, bool keep) {
  Scratch& mine = scratch();
  mine.numbers.assign(scale_.size(), 0);
  f32* numbers = mine.numbers.data();
  for (int r = 0; r < kGroup; ++r) {
    const int row = group * kGroup + r;
    if (row >= rows.rows) {
      mine.numbers.assign(scale_.size(), 0);
    } else if (shape_.runs.empty()) {
      std::memcpy(numbers, rows.numbers + rows.source(row) * rows.number_stride,
                  sizeof(f32) * static_cast<size_t>(shape_.numbers));
    } else {
      const u8* obs = rows.obs + rows.source(row) * rows.obs_bytes;
      for (const Stretch& some : stretches_)
        amx::widen(obs + some.offset, some.type, some.count, numbers + some.first);
    }
    for (size_t p = 0; p < static_cast<size_t>(features_); ++p)
      amx::round_row(numbers + p * kPanel, r, mine.input[p], fine_ ? &mine.input_rest[p] : nullptr);
  }
  if (!keep) return;
  for (int p = 0; p < features_; ++p)
    amx::pairs_of(mine.input[static_cast<size_t>(p)], input_[at(p, group)]);
}

SPARRING_AMX inline void AmxLayers::pass(const RowsIn& rows, int group, f32* out, bool keep) {
  Scratch& mine = scratch();
  mine.reserve(widest_);
  widen(rows, group, keep);
  const int count = min(kGroup, rows.rows - group * kGroup);
  for (size_t t = 0; t < packed_.size(); ++t) {
    const TowerShape& tower = shape_.towers[t];
    const amx::Block* x = mine.input.data();
    const amx::Block* x_rest = fine_ ? mine.input_rest.data() : nullptr;
    for (size_t l = 0; l < packed_[t].size(); ++l) {
      const Packed& packed = packed_[t][l];
      const bool head = l + 1 == packed_[t].size();
      LayerData* left = keep && !head ? &layer_data_[t][l] : nullptr;
      const size_t first = by_group(group, packed.out);
      amx::Block* made = mine.rows[l % 2].data();
      amx::Block* rest = mine.rest[l % 2].data();
      for (int p = 0; p < packed.out; ++p) {
        const f32* bias = packed.bias.data() + p * kPanel;
        amx::multiply_finely(x, x_rest, &packed.weight[2 * by_group(p, packed.in)], packed.in,
                             mine.sums);
        if (head) {
          f32* to = out + i64{group} * kGroup * shape_.head_width + tower.head_column + p * kPanel;
          for (int r = 0; r < count; ++r)
            amx::put_row(mine.sums.row(r), bias, tower.layers[l].out - p * kPanel, false,
                         to + i64{r} * shape_.head_width);
          continue;
        }
        finish(mine.sums, bias, made[p], rest[p], left, first + static_cast<size_t>(p));
        if (left) amx::pairs_of(made[p], left->pairs[at(p, group)]);
      }
      x = made;
      x_rest = rest;
    }
  }
}

// Gradients of the inputs of every layer, for a group of rows.
SPARRING_AMX inline void AmxLayers::descend(int group, const f32* head_grad, f32* input_grad,
                                            bool keep) {
  Scratch& mine = scratch();
  mine.reserve(widest_);
  const int count = min(kGroup, kept_rows_ - group * kGroup);
  const i64 row = i64{group} * kGroup;
  for (size_t t = 0; t < packed_.size(); ++t) {
    const TowerShape& tower = shape_.towers[t];
    const size_t last = tower.layers.size() - 1;
    amx::Block *from = mine.rows[0].data(), *to = mine.rows[1].data();
    for (int p = 0; p < packed_[t][last].out; ++p) {
      std::memset(&mine.sums, 0, sizeof mine.sums);
      for (int r = 0; r < count; ++r)
        amx::copy_row(head_grad + (row + r) * shape_.head_width + tower.head_column + p * kPanel,
                      tower.layers[last].out - p * kPanel, mine.sums.row(r));
      LayerData& left = layer_data_[t][last];
      amx::descend(
          mine.sums, nullptr, nullptr, from[p],
          &left.total[(by_group(group, packed_[t][last].out) + static_cast<size_t>(p)) * kPanel]);
      if (keep) amx::turned_of(from[p], left.delta[at(p, group)]);
    }
    for (size_t l = last + 1; l-- > 0;) {
      if (l == 0 && !input_grad) break;
      const Packed& packed = packed_[t][l];
      for (int p = 0; p < packed.in; ++p) {
        amx::multiply(from, &packed.transposed[by_group(p, packed.out)], packed.out, false,
                      mine.sums);
        if (l == 0) {
          for (int r = 0; r < count; ++r)
            amx::put_row(mine.sums.row(r), nullptr, shape_.numbers - p * kPanel, t > 0,
                         input_grad + (row + r) * shape_.numbers + p * kPanel);
          continue;
        }
        LayerData& left = layer_data_[t][l - 1];
        const size_t place = by_group(group, packed.in) + static_cast<size_t>(p);
        amx::descend(mine.sums, left.signs.empty() ? nullptr : &left.signs[place],
                     left.slopes.empty() ? nullptr : &left.slopes[place], to[p],
                     &left.total[place * kPanel]);
        if (keep) amx::turned_of(to[p], left.delta[at(p, group)]);
      }
      std::swap(from, to);
    }
  }
}

// The gradient of all columns' weights for one panel of inputs.
SPARRING_AMX inline void AmxLayers::add_up(const Unit& unit, f32* weight_grad, bool add) {
  constexpr int kGroups = 8;  // that fit the L1 cache

  const size_t t = static_cast<size_t>(unit.tower), l = static_cast<size_t>(unit.layer);
  const Packed& packed = packed_[t][l];
  const Blocks& x = l ? layer_data_[t][l - 1].pairs : input_;
  const int groups = (kept_rows_ + kGroup - 1) / kGroup;
  std::vector<amx::Sums>& wide = scratch().wide;  // [count, out]
  const size_t all = static_cast<size_t>(unit.count) * static_cast<size_t>(packed.out);
  if (wide.size() < all) wide.resize(all);
  if (groups == 0) std::fill_n(wide.begin(), all, amx::Sums{});
  amx::configure();
  for (int g = 0; g < groups; g += kGroups)
    for (int i = 0; i < unit.count; ++i)
      for (int p = 0; p < packed.out; ++p)
        amx::multiply(&layer_data_[t][l].delta[at(p, g)], &x[at(unit.panel + i, g)],
                      min(kGroups, groups - g), g > 0,
                      wide[by_group(i, packed.out) + static_cast<size_t>(p)]);
  amx::release();
  for (int i = 0; i < unit.count; ++i)
    for (int p = 0; p < packed.out; ++p)
      store(unit, unit.panel + i, p, add, wide[by_group(i, packed.out) + static_cast<size_t>(p)],
            weight_grad);
  if (unit.panel == 0) store_bias(unit, weight_grad, add);
}

// sums: [column, input] of a pair of panels.
SPARRING_AMX inline void AmxLayers::store(const Unit& unit, int panel, int out_panel, bool add,
                                          amx::Sums& sums, f32* weight_grad) const {
  const LayerShape& layer =
      shape_.towers[static_cast<size_t>(unit.tower)].layers[static_cast<size_t>(unit.layer)];
  const int first = panel * kPanel, reads = min(kPanel, layer.in - first);
  if (unit.layer == 0) amx::scale_columns(sums, scale_.data() + first);
  amx::Sums transposed;
  if (layer.pieces[0].in_stride != 1) amx::turned_of(sums, transposed);
  for (const Piece& piece : layer.pieces) {
    const int from = max(piece.column, out_panel * kPanel);
    const int to = min(piece.column + piece.columns, (out_panel + 1) * kPanel);
    if (!piece.reads || to <= from) continue;
    const int column = from - out_panel * kPanel;
    f32* grad = weight_grad + piece.weight + first * piece.in_stride +
                (from - piece.column) * piece.out_stride;
    if (piece.in_stride == 1)
      for (int o = 0; o < to - from; ++o)
        amx::put_row(sums.row(column + o), nullptr, reads, add, grad + o * piece.out_stride);
    else if (piece.out_stride == 1 && layer.pieces[0].in_stride != 1)
      for (int i = 0; i < reads; ++i)
        amx::put_row(transposed.row(i) + column, nullptr, to - from, add,
                     grad + i * piece.in_stride);
    else
      for (int o = 0; o < to - from; ++o)
        for (int i = 0; i < reads; ++i) {
          f32& sum = grad[i * piece.in_stride + o * piece.out_stride];
          sum = (add ? sum : 0) + sums.row(column + o)[i];
        }
  }
}

inline void AmxLayers::store_bias(const Unit& unit, f32* weight_grad, bool add) const {
  const size_t t = static_cast<size_t>(unit.tower), l = static_cast<size_t>(unit.layer);
  const size_t width = static_cast<size_t>(packed_[t][l].out) * kPanel;
  std::vector<f32> sums(width);
  const f32* total = layer_data_[t][l].total.data();
  for (int group = 0; group < (kept_rows_ + kGroup - 1) / kGroup; ++group, total += width)
    for (size_t c = 0; c < width; ++c) sums[c] += total[c];
  for (const Piece& piece : shape_.towers[t].layers[l].pieces)
    for (int o = 0; o < piece.columns; ++o) {
      f32& grad = weight_grad[piece.bias + o];
      grad = (add ? grad : 0) + sums[static_cast<size_t>(piece.column + o)];
    }
}

}  // namespace sparring
#endif
