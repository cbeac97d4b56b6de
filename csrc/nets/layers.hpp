// Forward and backward passes of perceptrons. Host only.
//
// Rows are split into blocks, each of which passes all layers while it is in the cache. Activations
// of a block are stored in panels, [columns / kPanel, rows of a block, kPanel], which is the layout
// of a factor in the forward product, the backward product and the weight gradient alike. The
// gradient of a tile of weights is summed by one thread over all rows in their order, so that the
// result is the same for any number of threads and any block size.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "core/thread_pool.hpp"
#include "nets/active.hpp"
#include "nets/panels.hpp"

namespace sparring {

// Adjacent columns of a layer, stored together in the flat weights. Weight (i, o) is at weight + i
// * in_stride + o * out_stride, the bias of o at bias + o. A piece without inputs is its bias.
struct Piece {
  int column, columns;
  int reads;  // number of inputs: all of the layer, or 0
  i64 weight, bias;
  i64 in_stride, out_stride;
};

struct LayerShape {
  int in, out;
  std::vector<Piece> pieces;
};

// Layers one after the other; the last one is the head, without an activation.
struct TowerShape {
  int head_column;  // first column of its head in the output
  std::vector<LayerShape> layers;
};

struct LayersShape {
  std::vector<FeatureRun> runs;  // empty: rows are numbers
  int numbers;                   // in a row
  bool sparse;                   // multiply nonzero features only
  Activation activation;
  int head_width;  // of all towers together
  std::vector<TowerShape> towers;
};

// A batch of byte rows or number rows; row r is at index[r], or at r without an index.
struct RowsIn {
  const u8* obs;
  i64 obs_bytes;
  const f32* numbers;
  i64 number_stride;
  const i64* index;
  int rows;

  i64 source(int row) const { return index ? index[row] : row; }

  // Prefetches a byte row: rows of a shuffled batch are far apart in memory.
  void prefetch(int row) const {
    constexpr i64 kLine = 64;
    if (!obs || row >= rows) return;
    for (i64 byte = 0; byte < obs_bytes; byte += kLine)
      __builtin_prefetch(obs + source(row) * obs_bytes + byte);
  }
};

// Whether the weights of a column are adjacent, as in torch, instead of those of an input.
inline bool is_column_major(const LayerShape& layer) {
  for (const Piece& piece : layer.pieces)
    if (piece.reads) return piece.in_stride == 1;
  return false;
}

// A layer packed for products: weight (i, column) is row i of panel column / kPanel, which begins
// at weight + panel * panel_step + i * row_step.
struct PackedLayer {
  int in, out;  // panels
  i64 panel_step, row_step;
  Numbers weight;
  Numbers transposed;  // transpose [in, out * kPanel, kPanel], made on demand
  Numbers bias;        // [out * kPanel]
  bool stale = true;   // `transposed` is older than `weight`
};

// Activations of a batch between layers, in blocks of `block` rows.
struct Between {
  int block = 0, blocks = 0;
  Numbers input;                             // panels of widened rows
  std::vector<std::vector<Numbers>> out;     // by tower and layer
  std::vector<std::vector<Numbers>> before;  // inputs of silu

  // Offset of a panel of a block, with `panels` panels per block.
  i64 at(int block_number, int panels, int panel) const {
    return (i64{block_number} * panels + panel) * block * kPanel;
  }
};

class Layers {
  struct Unit {
    size_t tower, layer;
    int panel;
  };

 public:
  explicit Layers(LayersShape shape) : shape_(std::move(shape)), plan_(shape_.runs) {
    for (const TowerShape& tower : shape_.towers) {
      std::vector<PackedLayer>& made = packed_.emplace_back();
      for (const LayerShape& layer : tower.layers) {
        const int in = panels_of(layer.in), out = panels_of(layer.out);
        const bool rows = made.empty() && shape_.sparse;  // features are read one by one
        made.push_back({in, out, rows ? kPanel : i64{in} * kPanel * kPanel,
                        rows ? i64{out} * kPanel : kPanel,
                        Numbers(static_cast<size_t>(in) * out * kPanel * kPanel), Numbers(),
                        Numbers(static_cast<size_t>(out) * kPanel)});
      }
    }
  }

  const LayersShape& shape() const { return shape_; }
  int rows() const { return kept_.rows; }  // of the last batch that was kept

  // Copies and packs the weights; later changes need another `Load`.
  class Load final : public Job {
   public:
    Load(Layers& layers, const f32* weights) : layers_(layers), weights_(weights) {
      for (size_t t = 0; t < layers.packed_.size(); ++t)
        for (size_t l = 0; l < layers.packed_[t].size(); ++l)
          for (int p = 0; p < layers.packed_[t][l].out; ++p) units_.push_back({t, l, p});
    }

    int open(int phase) override { return phase == 0 ? static_cast<int>(units_.size()) : -1; }
    void run(int, int chunk) override {
      const Unit& unit = units_[static_cast<size_t>(chunk)];
      PackedLayer& to = layers_.packed_[unit.tower][unit.layer];
      if (unit.panel == 0) to.stale = true;
      pack(layers_.shape_.towers[unit.tower].layers[unit.layer], weights_, unit.panel, to);
    }

   private:
    Layers& layers_;
    const f32* weights_;
    std::vector<Unit> units_;
  };

  void load(const f32* weights) {
    Load job(*this, weights);
    ThreadPool::run_alone(job);
  }

  // Outputs of the heads, out [rows, head_width]. keep: store activations for `Backward`.
  class Forward final : public Job {
   public:
    Forward(Layers& layers, const RowsIn& rows, f32* out, bool keep)
        : layers_(layers), rows_(rows), out_(out), keep_(keep), block_(block_for(rows.rows)) {
      if (!keep) return;
      layers.reserve_blocks(layers.between_, block_, blocks());
      layers.kept_ = rows;
      layers.active_.resize(max(layers.active_.size(), static_cast<size_t>(blocks())));
    }

    int open(int phase) override { return phase == 0 ? blocks() : -1; }
    void run(int, int block) override;

   private:
    static constexpr int kAhead = 4;  // rows
    int blocks() const { return (rows_.rows + block_ - 1) / block_; }
    void pass(int block, int count, Between& between, int place, ActiveRows& active);

    Layers& layers_;
    RowsIn rows_;
    f32* out_;
    bool keep_;
    int block_;
  };

  // Gradients of the weights and of the inputs for the stored batch, from the gradient of the
  // outputs [rows, head_width]. Either may be null. add: add to the present gradients.
  class Backward final : public Job {
   public:
    Backward(Layers& layers, const f32* head_grad, f32* weight_grad, f32* input_grad, bool add)
        : layers_(layers),
          head_grad_(head_grad),
          weight_grad_(weight_grad),
          input_grad_(input_grad),
          add_(add) {
      layers.reserve_blocks(layers.delta_, layers.between_.block, blocks());
      plan();
    }

    int open(int phase) override {
      if (phase == 0) return static_cast<int>(turns_.size());
      if (phase == 1) return blocks();
      return phase == 2 ? static_cast<int>(tiles_.size()) : -1;
    }
    void run(int phase, int chunk) override;

   private:
    static constexpr int kIn = 2, kOut = 4;  // panels of a tile, at most

    // Panels of a layer's weights whose gradients one chunk sums.
    struct Tile {
      size_t tower, layer;
      int in, in_count, out, out_count;
    };
    int blocks() const {
      const int block = layers_.between_.block;
      return block ? (layers_.kept_.rows + block - 1) / block : 0;
    }
    int count(int block) const {
      return min(layers_.between_.block, layers_.kept_.rows - block * layers_.between_.block);
    }
    void plan();
    void turn(const Unit& unit);
    void descend(int block);
    void descend_head(size_t tower, int block);
    void put_input_grad(size_t tower, int block, int panel, const f32* from);
    void dense_tile(const Tile& tile);
    void sparse_tile(const Tile& tile);
    void store(const LayerShape& layer, int in_panel, int out_panel, const f32* sum, i64 stride,
               bool transposed);
    void add_bias(const Tile& tile, int block, f32* sums);
    void store_bias(const Tile& tile, const f32* sums);

    Layers& layers_;
    const f32* head_grad_;
    f32* weight_grad_;
    f32* input_grad_;
    bool add_;
    std::vector<Unit> turns_;
    std::vector<Tile> tiles_;
  };

 private:
  // Enough blocks to balance the threads, and small enough for the cache.
  static int block_for(int rows) {
    constexpr int kMaxRows = 96, kMinRows = 16, kBlocks = 8;
    const int blocks = (rows + kMaxRows * kBlocks - 1) / (kMaxRows * kBlocks) * kBlocks;
    return max(kMinRows, (rows + blocks - 1) / max(blocks, 1));
  }

  static void pack(const LayerShape& layer, const f32* weights, int panel, PackedLayer& to);
  void reserve_blocks(Between& between, int block, int blocks) const;
  void widen(const RowsIn& rows, int row, f32* panels, i64 step) const;

  // Memory for one block, for a forward pass without `keep`.
  struct Scratch {
    Between between;
    ActiveRows active;
  };
  std::unique_ptr<Scratch> borrow();
  void give_back(std::unique_ptr<Scratch> scratch);

  LayersShape shape_;
  RowPlan plan_;
  std::vector<std::vector<PackedLayer>> packed_;  // by tower and layer
  Between between_, delta_;
  std::vector<ActiveRows> active_;  // by block
  RowsIn kept_{};
  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> scratch_;
};

inline void Layers::pack(const LayerShape& layer, const f32* weights, int panel, PackedLayer& to) {
  f32* rows = to.weight.data() + panel * to.panel_step;
  for (const Piece& piece : layer.pieces) {
    const int from = max(piece.column, panel * kPanel);
    const int end = min(piece.column + piece.columns, (panel + 1) * kPanel);
    if (from >= end) continue;
    const int skipped = from - piece.column, count = end - from;
    copy_numbers(to.bias.data() + from, weights + piece.bias + skipped, count);
    const Matrix source{weights + piece.weight + skipped * piece.out_stride, piece.in_stride,
                        piece.out_stride};
    copy_matrix(source, piece.reads, count, rows + from % kPanel, to.row_step);
  }
}

inline void Layers::reserve_blocks(Between& between, int block, int blocks) const {
  if (between.block == block && between.blocks >= blocks && !between.out.empty()) return;
  between.block = block;
  between.blocks = blocks;
  // Contents do not matter: padding is written with every batch.
  const auto reserve = [&](Numbers& numbers, int panels) {
    numbers.resize(static_cast<size_t>(
        max<i64>(between.at(blocks, panels, 0), static_cast<i64>(numbers.size()))));
  };
  between.out.resize(packed_.size());
  between.before.resize(packed_.size());
  for (size_t t = 0; t < packed_.size(); ++t) {
    between.out[t].resize(packed_[t].size());
    between.before[t].resize(packed_[t].size());
    for (size_t l = 0; l < packed_[t].size(); ++l) {
      reserve(between.out[t][l], packed_[t][l].out);
      if (shape_.activation == Activation::kSilu) reserve(between.before[t][l], packed_[t][l].out);
    }
  }
  if (!shape_.sparse) reserve(between.input, panels_of(shape_.numbers));
}

// Widens a row into panels that are `step` apart.
inline void Layers::widen(const RowsIn& rows, int row, f32* panels, i64 step) const {
  const int numbers = shape_.numbers;
  const bool bytes = !shape_.runs.empty();
  const f32* from = bytes ? nullptr : rows.numbers + rows.source(row) * rows.number_stride;
  for (int p = 0; p < panels_of(numbers); ++p) {
    const int count = bytes ? 0 : min(kPanel, numbers - p * kPanel);
    if (count) copy_numbers(panels + p * step, from + p * kPanel, count);
    for (int i = count; i < kPanel; ++i) panels[p * step + i] = 0;
  }
  if (!bytes) return;
  static thread_local ActiveRows active;
  active.clear();
  active.add(rows.obs + rows.source(row) * rows.obs_bytes, plan_);
  const ActiveBlock listed = active.view();
  for (int k = 0; k < listed.end[0]; ++k)
    panels[listed.index[k] / kPanel * step + listed.index[k] % kPanel] = listed.value[k];
}

inline std::unique_ptr<Layers::Scratch> Layers::borrow() {
  std::lock_guard lock(mutex_);
  if (scratch_.empty()) return std::make_unique<Scratch>();
  std::unique_ptr<Scratch> scratch = std::move(scratch_.back());
  scratch_.pop_back();
  return scratch;
}

inline void Layers::give_back(std::unique_ptr<Scratch> scratch) {
  std::lock_guard lock(mutex_);
  scratch_.push_back(std::move(scratch));
}

inline void Layers::Forward::run(int, int block) {
  const int count = min(block_, rows_.rows - block * block_);
  if (keep_)
    return pass(block, count, layers_.between_, block, layers_.active_[static_cast<size_t>(block)]);
  std::unique_ptr<Scratch> scratch = layers_.borrow();
  layers_.reserve_blocks(scratch->between, block_, 1);
  pass(block, count, scratch->between, 0, scratch->active);
  layers_.give_back(std::move(scratch));
}

// Runs one block through all layers; its activations become block `place` of `between`.
inline void Layers::Forward::pass(int block, int count, Between& between, int place,
                                  ActiveRows& active) {
  const LayersShape& shape = layers_.shape_;
  const int first = block * block_;
  const i64 step = i64{block_} * kPanel;  // between panels
  const int input_panels = panels_of(shape.numbers);
  active.clear();
  for (int r = 0; r < count; ++r) {
    rows_.prefetch(first + r + kAhead);
    if (shape.sparse)
      active.add(rows_.obs + rows_.source(first + r) * rows_.obs_bytes, layers_.plan_);
    else
      layers_.widen(rows_, first + r,
                    between.input.data() + between.at(place, input_panels, 0) + i64{r} * kPanel,
                    step);
  }
  for (size_t t = 0; t < shape.towers.size(); ++t) {
    const std::vector<LayerShape>& layers = shape.towers[t].layers;
    const f32* x = between.input.data() + between.at(place, input_panels, 0);
    for (size_t l = 0; l < layers.size(); ++l) {
      const PackedLayer& packed = layers_.packed_[t][l];
      const i64 at = between.at(place, packed.out, 0);
      f32* out = between.out[t][l].data() + at;
      if (l == 0 && shape.sparse)
        wide().gather_rows(active.view(), packed.weight.data(), packed.out * kPanel,
                           packed.bias.data(), out, step);
      for (int p = 0; p < packed.out; ++p) {
        f32* made = out + p * step;
        if (l || !shape.sparse)
          wide().multiply(x, block_, count, layers[l].in,
                          packed.weight.data() + p * packed.panel_step,
                          packed.bias.data() + i64{p} * kPanel, made);
        if (l + 1 == layers.size()) continue;
        if (shape.activation == Activation::kSilu)
          copy_numbers(between.before[t][l].data() + at + p * step, made, count * kPanel);
        wide().activate(shape.activation, made, i64{count} * kPanel);
      }
      x = out;
    }
    const int width = layers.back().out;
    for (int r = 0; r < count; ++r)
      for (int c = 0; c < width; c += kPanel)
        copy_numbers(out_ + i64{first + r} * shape.head_width + shape.towers[t].head_column + c,
                     x + c / kPanel * step + i64{r} * kPanel, min(kPanel, width - c));
  }
}

inline void Layers::Backward::plan() {
  const auto& packed = layers_.packed_;
  for (size_t t = 0; t < packed.size(); ++t)
    for (size_t l = 0; l < packed[t].size(); ++l) {
      PackedLayer& layer = layers_.packed_[t][l];
      if (layer.stale && (l || input_grad_)) {
        layer.transposed.resize(layer.weight.size());
        layer.stale = false;
        for (int p = 0; p < layer.in; ++p) turns_.push_back({t, l, p});
      }
      if (!weight_grad_) continue;
      const bool sparse = l == 0 && layers_.shape_.sparse;
      const int deep = sparse ? layer.in : kIn;
      for (int o = 0; o < layer.out; o += kOut)
        for (int i = 0; i < layer.in; i += deep)
          tiles_.push_back({t, l, i, min(deep, layer.in - i), o, min(kOut, layer.out - o)});
    }
}

inline void Layers::Backward::run(int phase, int chunk) {
  const size_t place = static_cast<size_t>(chunk);
  if (phase == 0) return turn(turns_[place]);
  if (phase == 1) return descend(chunk);
  const Tile& tile = tiles_[place];
  if (tile.layer == 0 && layers_.shape_.sparse)
    sparse_tile(tile);
  else
    dense_tile(tile);
}

// Transposes one panel of inputs of a layer's weights.
inline void Layers::Backward::turn(const Unit& unit) {
  PackedLayer& layer = layers_.packed_[unit.tower][unit.layer];
  for (int p = 0; p < layer.out; ++p)
    transpose(layer.weight.data() + p * layer.panel_step + unit.panel * kPanel * layer.row_step,
              layer.row_step, kPanel, kPanel,
              layer.transposed.data() + (i64{unit.panel} * layer.out + p) * kPanel * kPanel,
              kPanel);
}

// Gradients of the inputs of every layer, for one block of rows.
inline void Layers::Backward::descend(int block) {
  static constexpr f32 kNone[kPanel] = {};
  const LayersShape& shape = layers_.shape_;
  const int rows = count(block);
  Between& delta = layers_.delta_;
  const Between& between = layers_.between_;
  const i64 step = i64{delta.block} * kPanel;
  static thread_local Numbers held;
  held.resize(static_cast<size_t>(step));
  if (weight_grad_ && shape.sparse)
    layers_.active_[static_cast<size_t>(block)].sort(layers_.plan_.features());
  for (size_t t = 0; t < shape.towers.size(); ++t) {
    descend_head(t, block);
    for (size_t l = shape.towers[t].layers.size(); l-- > 0;) {
      if (l == 0 && !input_grad_) break;
      const PackedLayer& packed = layers_.packed_[t][l];
      const f32* from = delta.out[t][l].data() + delta.at(block, packed.out, 0);
      for (int p = 0; p < packed.in; ++p) {
        const i64 at = delta.at(block, packed.in, p);
        f32* to = l ? delta.out[t][l - 1].data() + at : held.data();
        wide().multiply(from, delta.block, rows, shape.towers[t].layers[l].out,
                        packed.transposed.data() + i64{p} * packed.out * kPanel * kPanel, kNone,
                        to);
        if (l)
          wide().slope(shape.activation, between.before[t][l - 1].data() + at,
                       between.out[t][l - 1].data() + at, to, i64{rows} * kPanel);
        else
          put_input_grad(t, block, p, to);
      }
    }
  }
}

inline void Layers::Backward::descend_head(size_t tower, int block) {
  const TowerShape& shape = layers_.shape_.towers[tower];
  Between& delta = layers_.delta_;
  const int width = shape.layers.back().out, panels = layers_.packed_[tower].back().out;
  for (int p = 0; p < panels; ++p) {
    const int columns = min(kPanel, width - p * kPanel);
    f32* to = delta.out[tower].back().data() + delta.at(block, panels, p);
    for (int r = 0; r < count(block); ++r, to += kPanel) {
      const i64 row = i64{block} * delta.block + r;
      copy_numbers(to,
                   head_grad_ + row * layers_.shape_.head_width + shape.head_column + p * kPanel,
                   columns);
      for (int c = columns; c < kPanel; ++c) to[c] = 0;
    }
  }
}

inline void Layers::Backward::put_input_grad(size_t tower, int block, int panel, const f32* from) {
  const int numbers = layers_.shape_.numbers, columns = min(kPanel, numbers - panel * kPanel);
  for (int r = 0; r < count(block); ++r, from += kPanel) {
    f32* to = input_grad_ + (i64{block} * layers_.delta_.block + r) * numbers + i64{panel} * kPanel;
    for (int c = 0; c < columns; ++c) to[c] = (tower ? to[c] : 0) + from[c];
  }
}

// Weight gradients of some panels of inputs and columns, summed over all rows.
inline void Layers::Backward::dense_tile(const Tile& tile) {
  constexpr i64 kSize = i64{kPanel} * kPanel;
  const size_t t = tile.tower, l = tile.layer;
  const PackedLayer& packed = layers_.packed_[t][l];
  const LayerShape& layer = layers_.shape_.towers[t].layers[l];
  const Between& between = layers_.between_;
  const Numbers& x = l ? between.out[t][l - 1] : between.input;
  const Numbers& delta = layers_.delta_.out[t][l];
  const bool transposed = is_column_major(layer);
  static thread_local Numbers sums;
  sums.assign(static_cast<size_t>(tile.in_count * tile.out_count * kSize), 0);
  f32 bias[kOut * kPanel] = {};
  for (int block = 0; block < blocks(); ++block) {
    f32* sum = sums.data();
    add_bias(tile, block, bias);
    for (int i = 0; i < tile.in_count; ++i)
      for (int o = 0; o < tile.out_count; ++o, sum += kSize) {
        const f32* below = x.data() + between.at(block, packed.in, tile.in + i);
        const f32* above = delta.data() + between.at(block, packed.out, tile.out + o);
        wide().outer(transposed ? above : below, transposed ? below : above, count(block), sum);
      }
  }
  const f32* sum = sums.data();
  for (int i = 0; i < tile.in_count; ++i)
    for (int o = 0; o < tile.out_count; ++o, sum += kSize)
      store(layer, tile.in + i, tile.out + o, sum, kPanel, transposed);
  store_bias(tile, bias);
}

// Weight gradients of all inputs for some panels of columns.
inline void Layers::Backward::sparse_tile(const Tile& tile) {
  const PackedLayer& packed = layers_.packed_[tile.tower][0];
  const Numbers& delta = layers_.delta_.out[tile.tower][0];
  const i64 step = i64{layers_.delta_.block} * kPanel, stride = i64{tile.out_count} * kPanel;
  static thread_local Numbers sums;
  sums.assign(static_cast<size_t>(packed.in * kPanel * stride), 0);
  f32 bias[kOut * kPanel] = {};
  for (int block = 0; block < blocks(); ++block) {
    add_bias(tile, block, bias);
    wide().scatter_rows(layers_.active_[static_cast<size_t>(block)].by_feature(),
                        delta.data() + layers_.delta_.at(block, packed.out, tile.out), step,
                        tile.out_count, sums.data());
  }
  for (int p = 0; p < packed.in; ++p)
    for (int o = 0; o < tile.out_count; ++o)
      store(layers_.shape_.towers[tile.tower].layers[0], p, tile.out + o,
            sums.data() + p * kPanel * stride + o * kPanel, stride, false);
  store_bias(tile, bias);
}

// sum: [inputs, columns] of these panels, or its transpose, with rows `stride` apart.
inline void Layers::Backward::store(const LayerShape& layer, int in_panel, int out_panel,
                                    const f32* sum, i64 stride, bool transposed) {
  const int first = out_panel * kPanel, inputs = min(kPanel, layer.in - in_panel * kPanel);
  for (const Piece& piece : layer.pieces) {
    const int from = max(piece.column, first);
    const int columns = min(piece.column + piece.columns, first + kPanel) - from;
    if (!piece.reads || columns <= 0) continue;
    f32* to = weight_grad_ + piece.weight + in_panel * kPanel * piece.in_stride +
              (from - piece.column) * piece.out_stride;
    if (transposed)
      put_matrix(sum + (from - first) * stride, stride, columns, inputs,
                 {to, piece.out_stride, piece.in_stride}, add_);
    else
      put_matrix(sum + from - first, stride, inputs, columns,
                 {to, piece.in_stride, piece.out_stride}, add_);
  }
}

// Sums a block's gradients by column, for the bias; only the first tile of a column needs it.
inline void Layers::Backward::add_bias(const Tile& tile, int block, f32* sums) {
  if (tile.in) return;
  const Between& delta = layers_.delta_;
  const f32* from = delta.out[tile.tower][tile.layer].data();
  const int panels = layers_.packed_[tile.tower][tile.layer].out;
  for (int o = 0; o < tile.out_count; ++o)
    wide().add_rows(from + delta.at(block, panels, tile.out + o), count(block), sums + o * kPanel);
}

inline void Layers::Backward::store_bias(const Tile& tile, const f32* sums) {
  if (tile.in) return;
  const int first = tile.out * kPanel, end = first + tile.out_count * kPanel;
  for (const Piece& piece : layers_.shape_.towers[tile.tower].layers[tile.layer].pieces) {
    const int from = max(piece.column, first);
    const int columns = min(piece.column + piece.columns, end) - from;
    if (columns > 0)
      put_matrix(sums + from - first, 0, 1, columns,
                 {weight_grad_ + piece.bias + from - piece.column, 0, 1}, add_);
  }
}

}  // namespace sparring
