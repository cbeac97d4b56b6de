// Perceptrons that learn, end to end: rows go in, what the heads say comes out, and gradients of
// all weights from those of the heads. Host only.
//
// What lies between layers lies in panels, [columns / kPanel, rows, kPanel]: as a factor of the
// next product, of the one before and of the gradient alike. Rows are split into blocks, each of
// which goes through all layers while it is near; a gradient is owned by the tile of weights that
// it belongs to and sums over all rows in their order. So every sum has one order, and the result
// is the same for any number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "core/crew.hpp"
#include "nets/activation.hpp"
#include "nets/first_layer.hpp"
#include "nets/wide.hpp"

namespace sparring {

// Columns of a layer whose numbers lie together. Weight (i, o) is at weight + i * in_stride +
// o * out_stride, the bias of o at bias + o. A piece that reads nothing is its bias.
struct Piece {
  int column, columns;
  int reads;  // numbers from below, all of them or 0
  i64 weight, bias;
  i64 in_stride, out_stride;
};

struct LayerShape {
  int in, out;
  std::vector<Piece> pieces;
};

// Layers one after the other; the last one is the head, without an activation.
struct TowerShape {
  int head_column;  // where its head lies in what is put out
  std::vector<LayerShape> layers;
};

struct LayersShape {
  std::vector<FeatureRun> runs;  // empty: rows are numbers
  int numbers;                   // in a row
  bool sparse;                   // multiply only what is not 0
  Activation activation;
  int head_width;  // of all towers together
  std::vector<TowerShape> towers;
};

// A batch: bytes or numbers; row r is at place index[r], or r where there is no index.
struct RowsIn {
  const u8* obs;
  i64 obs_bytes;
  const f32* numbers;
  i64 number_stride;
  const i64* index;
  int rows;

  i64 place(int row) const { return index ? index[row] : row; }
};

inline int panels_of(int columns) { return (columns + kPanel - 1) / kPanel; }

// A layer as products read it.
struct PackedLayer {
  int in, out;              // panels
  std::vector<f32> weight;  // [out, in * kPanel, kPanel]
  std::vector<f32> turned;  // [in, out * kPanel, kPanel]
  std::vector<f32> bias;    // [out * kPanel]
};

// What a batch leaves between layers, for `capacity` rows.
struct Between {
  int capacity = 0;
  std::vector<f32> input;                             // panels, where rows are widened
  std::vector<std::vector<std::vector<f32>>> out;     // by tower and layer
  std::vector<std::vector<std::vector<f32>>> before;  // of silu: what went in
};

// The features of a block of rows that are not 0.
struct ActiveRows {
  std::vector<int> index, end;  // end[r]: where row r's features stop
  std::vector<f32> value;
};

class Layers {
 public:
  static constexpr int kBlock = 64;  // rows that go through all layers together

  explicit Layers(LayersShape shape) : shape_(std::move(shape)) {
    for (const TowerShape& tower : shape_.towers) {
      std::vector<PackedLayer>& made = packed_.emplace_back();
      for (const LayerShape& layer : tower.layers) {
        const int in = panels_of(layer.in), out = panels_of(layer.out);
        const size_t size = static_cast<size_t>(in) * out * kPanel * kPanel;
        made.push_back({in, out, std::vector<f32>(size), std::vector<f32>(size),
                        std::vector<f32>(static_cast<size_t>(out) * kPanel)});
      }
    }
  }

  const LayersShape& shape() const { return shape_; }
  int rows() const { return kept_.rows; }  // of the last batch that was kept

  // Takes over weights; what they were changed to later is seen by the next `load`.
  void load(const f32* weights) {
    for (size_t t = 0; t < packed_.size(); ++t)
      for (size_t l = 0; l < packed_[t].size(); ++l)
        pack(shape_.towers[t].layers[l], weights, packed_[t][l]);
  }

  // What the heads say, out [rows, head_width]. keep: `backward` follows.
  class Forward final : public Job {
   public:
    Forward(Layers& layers, const RowsIn& rows, f32* out, bool keep)
        : layers_(layers), rows_(rows), out_(out), keep_(keep) {
      if (!keep) return;
      layers.make_room(layers.between_, rows.rows);
      layers.kept_ = rows;
      layers.active_.resize(static_cast<size_t>(blocks()));
    }

    int open(int phase) override { return phase == 0 ? blocks() : -1; }
    void run(int, int block) override;

   private:
    int blocks() const { return (rows_.rows + kBlock - 1) / kBlock; }

    Layers& layers_;
    RowsIn rows_;
    f32* out_;
    bool keep_;
  };

  // Gradients of the weights and of the numbers that went in, of the batch that was kept, from
  // those of what was put out [rows, head_width]. Either may be null. add: to what is there.
  class Backward final : public Job {
   public:
    Backward(Layers& layers, const f32* head_grad, f32* weight_grad, f32* input_grad, bool add)
        : layers_(layers),
          head_grad_(head_grad),
          weight_grad_(weight_grad),
          input_grad_(input_grad),
          add_(add) {
      layers.make_room(layers.delta_, layers.kept_.rows);
      if (!weight_grad) return;
      for (int t = 0; t < static_cast<int>(layers.packed_.size()); ++t)
        for (int l = 0; l < static_cast<int>(layers.packed_[static_cast<size_t>(t)].size()); ++l) {
          const PackedLayer& packed =
              layers.packed_[static_cast<size_t>(t)][static_cast<size_t>(l)];
          const int units = l == 0 && layers.shape_.sparse ? packed.out : packed.in;
          for (int unit = 0; unit < units; ++unit) units_.push_back({t, l, unit});
        }
    }

    int open(int phase) override {
      if (phase == 0) return (layers_.kept_.rows + kBlock - 1) / kBlock;
      return phase == 1 && weight_grad_ ? static_cast<int>(units_.size()) : -1;
    }
    void run(int phase, int chunk) override;

   private:
    struct Unit {
      int tower, layer, panel;
    };
    void descend(int block);
    void dense_unit(const Unit& unit);
    void sparse_unit(const Unit& unit);
    void store(const LayerShape& layer, int in_panel, int out_panel, const f32* sum);
    void store_bias(const LayerShape& layer, int out_panel, const f32* delta);

    Layers& layers_;
    const f32* head_grad_;
    f32* weight_grad_;
    f32* input_grad_;
    bool add_;
    std::vector<Unit> units_;
  };

 private:
  static void pack(const LayerShape& layer, const f32* weights, PackedLayer& to) {
    for (const Piece& piece : layer.pieces)
      for (int o = 0; o < piece.columns; ++o) {
        const int column = piece.column + o;
        to.bias[static_cast<size_t>(column)] = weights[piece.bias + o];
        for (int i = 0; i < piece.reads; ++i) {
          const f32 weight = weights[piece.weight + i * piece.in_stride + o * piece.out_stride];
          to.weight[at(to.in, column, i)] = weight;
          to.turned[at(to.out, i, column)] = weight;
        }
      }
  }

  // Where row i of panel column / kPanel lies.
  static size_t at(int depth_panels, int column, int i) {
    return (static_cast<size_t>(column / kPanel) * static_cast<size_t>(depth_panels) * kPanel +
            static_cast<size_t>(i)) *
               kPanel +
           static_cast<size_t>(column % kPanel);
  }

  void make_room(Between& between, int rows) const {
    if (between.capacity >= rows && !between.out.empty()) return;
    between.capacity = (rows + kBlock - 1) / kBlock * kBlock;
    const auto room = [&](int panels) {
      return std::vector<f32>(static_cast<size_t>(panels) * kPanel *
                              static_cast<size_t>(between.capacity));
    };
    between.out.clear();
    between.before.clear();
    for (const auto& tower : packed_) {
      auto& out = between.out.emplace_back();
      auto& before = between.before.emplace_back();
      for (const PackedLayer& layer : tower) {
        out.push_back(room(layer.out));
        before.push_back(room(shape_.activation == Activation::kSilu ? layer.out : 0));
      }
    }
    if (!shape_.sparse) between.input = room(panels_of(shape_.numbers));
  }

  // The numbers of a row into panels of `capacity` rows, at row `to`.
  void widen(const RowsIn& rows, int row, Between& between, int to) const {
    const auto put = [&](int column, f32 value) {
      between.input[(static_cast<size_t>(column / kPanel) * static_cast<size_t>(between.capacity) +
                     static_cast<size_t>(to)) *
                        kPanel +
                    static_cast<size_t>(column % kPanel)] = value;
    };
    if (shape_.runs.empty()) {
      const f32* from = rows.numbers + rows.place(row) * rows.number_stride;
      for (int i = 0; i < shape_.numbers; ++i) put(i, from[i]);
      return;
    }
    for (int p = 0; p < panels_of(shape_.numbers); ++p)
      for (int i = 0; i < kPanel; ++i) put(p * kPanel + i, 0);
    ActiveFeatures active;
    active.read(rows.obs + rows.place(row) * rows.obs_bytes, shape_.runs);
    for (size_t k = 0; k < active.index.size(); ++k) put(active.index[k], active.value[k]);
  }

  // One layer of a block, at rows `to` of `between`.
  void pass(Between& between, size_t tower, size_t layer, int to, int count,
            const ActiveRows* active) const;

  LayersShape shape_;
  std::vector<std::vector<PackedLayer>> packed_;  // by tower and layer
  Between between_, delta_;
  std::vector<ActiveRows> active_;  // by block
  RowsIn kept_{};
  static inline std::atomic<i64> made_ = 0;
  const i64 id_ = made_++;
};

inline void Layers::pass(Between& between, size_t tower, size_t layer, int to, int count,
                         const ActiveRows* active) const {
  const PackedLayer& packed = packed_[tower][layer];
  const i64 stride = between.capacity;
  f32* out = between.out[tower][layer].data();
  for (int p = 0; p < packed.out; ++p) {
    f32* made = out + (p * stride + to) * kPanel;
    const f32* weight = packed.weight.data() + i64{p} * packed.in * kPanel * kPanel;
    const f32* bias = packed.bias.data() + i64{p} * kPanel;
    if (layer == 0 && shape_.sparse) {
      int first = 0;
      for (int r = 0; r < count; ++r) {
        const int end = active->end[static_cast<size_t>(r)];
        const Active some{active->index.data() + first, active->value.data() + first, end - first};
        wide().gather(some, weight, kPanel, kPanel, bias, made + i64{r} * kPanel);
        first = end;
      }
    } else {
      const f32* x = layer ? between.out[tower][layer - 1].data() : between.input.data();
      wide().multiply(x + i64{to} * kPanel, stride, count, packed.in * kPanel, weight, bias, made);
    }
    if (layer + 1 == packed_[tower].size()) continue;
    const i64 numbers = i64{count} * kPanel;
    if (shape_.activation == Activation::kSilu)
      std::memcpy(between.before[tower][layer].data() + (p * stride + to) * kPanel, made,
                  sizeof(f32) * static_cast<size_t>(numbers));
    activate(shape_.activation, made, numbers);
  }
}

inline void Layers::Forward::run(int, int block) {
  const LayersShape& shape = layers_.shape_;
  const int first = block * kBlock, count = least(kBlock, rows_.rows - first);
  static thread_local Between scratch;
  static thread_local i64 owner = -1;  // an address may be another network's by now
  ActiveRows own;
  if (!keep_ && owner != layers_.id_) {
    scratch = Between{};
    layers_.make_room(scratch, kBlock);
    owner = layers_.id_;
  }
  Between& between = keep_ ? layers_.between_ : scratch;
  const int to = keep_ ? first : 0;
  ActiveRows& active = keep_ ? layers_.active_[static_cast<size_t>(block)] : own;
  if (shape.sparse) {
    active = ActiveRows{};
    ActiveFeatures features;
    for (int r = 0; r < count; ++r) {
      features.read(rows_.obs + rows_.place(first + r) * rows_.obs_bytes, shape.runs);
      active.index.insert(active.index.end(), features.index.begin(), features.index.end());
      active.value.insert(active.value.end(), features.value.begin(), features.value.end());
      active.end.push_back(static_cast<int>(active.index.size()));
    }
  } else {
    for (int r = 0; r < count; ++r) layers_.widen(rows_, first + r, between, to + r);
  }
  for (size_t t = 0; t < shape.towers.size(); ++t) {
    const size_t last = shape.towers[t].layers.size() - 1;
    for (size_t l = 0; l <= last; ++l) layers_.pass(between, t, l, to, count, &active);
    const f32* said = between.out[t][last].data();
    const int width = shape.towers[t].layers[last].out;
    for (int r = 0; r < count; ++r)
      for (int c = 0; c < width; ++c)
        out_[i64{first + r} * shape.head_width + shape.towers[t].head_column + c] =
            said[(i64{c / kPanel} * between.capacity + to + r) * kPanel + c % kPanel];
  }
}

inline void Layers::Backward::run(int phase, int chunk) {
  if (phase == 0) return descend(chunk);
  const Unit& unit = units_[static_cast<size_t>(chunk)];
  if (unit.layer == 0 && layers_.shape_.sparse)
    sparse_unit(unit);
  else
    dense_unit(unit);
}

// Gradients in front of every layer, for one block of rows.
inline void Layers::Backward::descend(int block) {
  const LayersShape& shape = layers_.shape_;
  const int first = block * kBlock, count = least(kBlock, layers_.kept_.rows - first);
  Between& delta = layers_.delta_;
  const i64 stride = delta.capacity;
  for (size_t t = 0; t < shape.towers.size(); ++t) {
    const TowerShape& tower = shape.towers[t];
    const size_t last = tower.layers.size() - 1;
    f32* head = delta.out[t][last].data();
    for (int r = 0; r < count; ++r)
      for (int c = 0; c < layers_.packed_[t][last].out * kPanel; ++c)
        head[(i64{c / kPanel} * stride + first + r) * kPanel + c % kPanel] =
            c < tower.layers[last].out
                ? head_grad_[i64{first + r} * shape.head_width + tower.head_column + c]
                : 0;
    static const std::vector<f32> none(kPanel);
    for (size_t l = last + 1; l-- > 0;) {
      if (l == 0 && !input_grad_) break;
      const PackedLayer& packed = layers_.packed_[t][l];
      const f32* from = delta.out[t][l].data() + i64{first} * kPanel;
      for (int p = 0; p < packed.in; ++p) {
        f32 held[kBlock * kPanel];
        const i64 place = (p * stride + first) * kPanel;
        f32* to = l ? delta.out[t][l - 1].data() + place : held;
        const f32* turned = packed.turned.data() + i64{p} * packed.out * kPanel * kPanel;
        wide().multiply(from, stride, count, packed.out * kPanel, turned, none.data(), to);
        if (l) {
          const i64 kept = (i64{p} * layers_.between_.capacity + first) * kPanel;
          const std::vector<f32>& before = layers_.between_.before[t][l - 1];
          slope(shape.activation, before.empty() ? nullptr : before.data() + kept,
                layers_.between_.out[t][l - 1].data() + kept, to, i64{count} * kPanel);
          continue;
        }
        for (int r = 0; r < count; ++r)
          for (int c = 0; c < least(kPanel, shape.numbers - p * kPanel); ++c) {
            f32& sum = input_grad_[i64{first + r} * shape.numbers + p * kPanel + c];
            sum = (t ? sum : 0) + held[r * kPanel + c];
          }
      }
    }
  }
}

// All columns of one panel of inputs.
inline void Layers::Backward::dense_unit(const Unit& unit) {
  constexpr int kRows = 2 * kBlock;  // what stays in the nearest cache
  const size_t t = static_cast<size_t>(unit.tower), l = static_cast<size_t>(unit.layer);
  const PackedLayer& packed = layers_.packed_[t][l];
  const LayerShape& layer = layers_.shape_.towers[t].layers[l];
  const Between& between = layers_.between_;
  const i64 stride = layers_.delta_.capacity, kept = between.capacity;
  const f32* x =
      (l ? between.out[t][l - 1].data() : between.input.data()) + unit.panel * kept * kPanel;
  const f32* delta = layers_.delta_.out[t][l].data();
  std::vector<f32> sums(static_cast<size_t>(packed.out) * kPanel * kPanel);
  for (int row = 0; row < layers_.kept_.rows; row += kRows)
    for (int p = 0; p < packed.out; ++p)
      wide().outer(x + i64{row} * kPanel, delta + (p * stride + row) * kPanel,
                   least(kRows, layers_.kept_.rows - row), sums.data() + i64{p} * kPanel * kPanel);
  for (int p = 0; p < packed.out; ++p) {
    store(layer, unit.panel, p, sums.data() + i64{p} * kPanel * kPanel);
    if (unit.panel == 0) store_bias(layer, p, delta + p * stride * kPanel);
  }
}

// All inputs of one panel of columns.
inline void Layers::Backward::sparse_unit(const Unit& unit) {
  const size_t t = static_cast<size_t>(unit.tower);
  const PackedLayer& packed = layers_.packed_[t][0];
  const LayerShape& layer = layers_.shape_.towers[t].layers[0];
  const f32* delta =
      layers_.delta_.out[t][0].data() + i64{unit.panel} * layers_.delta_.capacity * kPanel;
  std::vector<Four> sums(static_cast<size_t>(packed.in) * kPanel * kPanel / 4);
  i64 row = 0;
  const int blocks = (layers_.kept_.rows + kBlock - 1) / kBlock;
  for (int block = 0; block < blocks; ++block) {
    const ActiveRows& active = layers_.active_[static_cast<size_t>(block)];
    size_t k = 0;
    for (const int end : active.end) {
      Four fours[kPanel / 4];
      for (int c = 0; c < kPanel / 4; ++c) fours[c] = load_four(delta + row * kPanel + 4 * c);
      ++row;
      for (; k < static_cast<size_t>(end); ++k) {
        Four* to = &sums[static_cast<size_t>(active.index[k]) * (kPanel / 4)];
        const f32 value = active.value[k];
#pragma GCC unroll 8
        for (int c = 0; c < kPanel / 4; ++c) to[c] = fused(to[c], value, fours[c]);
      }
    }
  }
  for (int p = 0; p < packed.in; ++p)
    store(layer, p, unit.panel,
          reinterpret_cast<const f32*>(sums.data()) + i64{p} * kPanel * kPanel);
  store_bias(layer, unit.panel, delta);
}

inline void Layers::Backward::store(const LayerShape& layer, int in_panel, int out_panel,
                                    const f32* sum) {
  const int reads = least(kPanel, layer.in - in_panel * kPanel);
  for (const Piece& piece : layer.pieces) {
    if (!piece.reads) continue;
    const int from = most(piece.column, out_panel * kPanel);
    const int to = least(piece.column + piece.columns, (out_panel + 1) * kPanel);
    for (int i = 0; i < reads; ++i)
      for (int column = from; column < to; ++column) {
        f32& grad = weight_grad_[piece.weight + (in_panel * kPanel + i) * piece.in_stride +
                                 (column - piece.column) * piece.out_stride];
        grad = (add_ ? grad : 0) + sum[i * kPanel + column - out_panel * kPanel];
      }
  }
}

inline void Layers::Backward::store_bias(const LayerShape& layer, int out_panel, const f32* delta) {
  f32 sum[kPanel] = {};
  for (i64 row = 0; row < layers_.kept_.rows; ++row)
    for (int c = 0; c < kPanel; ++c) sum[c] += delta[row * kPanel + c];
  for (const Piece& piece : layer.pieces) {
    const int from = most(piece.column, out_panel * kPanel);
    const int to = least(piece.column + piece.columns, (out_panel + 1) * kPanel);
    for (int column = from; column < to; ++column) {
      f32& grad = weight_grad_[piece.bias + column - piece.column];
      grad = (add_ ? grad : 0) + sum[column - out_panel * kPanel];
    }
  }
}

}  // namespace sparring
