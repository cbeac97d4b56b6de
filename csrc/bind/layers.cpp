// Perceptrons that learn; see nets/layers.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <string>

#include "bind/arrays.hpp"
#include "bind/engine.hpp"
#include "core/error.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sparring {
namespace {

// Column, columns, reads, weight, bias, in_stride, out_stride: see Piece.
using PieceRow = std::tuple<int, int, int, i64, i64, i64, i64>;
using LayerRow = std::tuple<int, int, std::vector<PieceRow>>;  // in, out, pieces
using TowerRow = std::tuple<int, std::vector<LayerRow>>;       // head column, layers

constexpr Call kMake("Layers");

// Where a piece's numbers end in the flat array of weights.
i64 end_of(const Piece& piece) {
  const i64 weights = piece.reads && piece.columns
                          ? piece.weight + (piece.reads - 1) * piece.in_stride +
                                (piece.columns - 1) * piece.out_stride + 1
                          : 0;
  return max(weights, piece.bias + piece.columns);
}

void check_piece(const Piece& piece, const LayerShape& layer) {
  kMake.demand(piece.column >= 0 && piece.columns >= 0 && piece.column <= layer.out - piece.columns,
               "a piece has columns that its layer has not");
  kMake.demand(piece.reads == 0 || piece.reads == layer.in,
               "a piece reads all inputs of its layer or none");
  for (const i64 number : {piece.weight, piece.bias, piece.in_stride, piece.out_stride})
    kMake.demand(number >= 0 && number <= kMaxWeights, "a piece lies outside the weights");
  kMake.demand(end_of(piece) <= kMaxWeights, "a piece lies outside the weights");
}

std::vector<TowerShape> towers_of(const std::vector<TowerRow>& rows) {
  std::vector<TowerShape> towers;
  for (const auto& [head_column, layers] : rows) {
    TowerShape& tower = towers.emplace_back();
    tower.head_column = head_column;
    for (const auto& [in, out, pieces] : layers) {
      LayerShape& layer = tower.layers.emplace_back();
      layer.in = in;
      layer.out = out;
      for (const auto& [column, columns, reads, weight, bias, in_stride, out_stride] : pieces)
        layer.pieces.push_back({column, columns, reads, weight, bias, in_stride, out_stride});
    }
  }
  return towers;
}

// A shape in which every layer reads what the one below puts out, and that has room for its rows.
LayersShape checked(LayersShape shape, const RowFormat& format) {
  kMake.between(shape.numbers, "numbers", max(format.features, 1), kMaxNumbers);
  kMake.demand(!shape.sparse || !shape.runs.empty(), "rows of numbers are not sparse");
  kMake.between(shape.head_width, "head_width", 1, kMaxNumbers);
  kMake.demand(!shape.towers.empty(), "there is no tower");
  i64 weights = 0;
  for (const TowerShape& tower : shape.towers) {
    kMake.demand(!tower.layers.empty(), "a tower has no layer");
    int below = shape.numbers;
    for (const LayerShape& layer : tower.layers) {
      kMake.demand(layer.in == below, "a layer reads another width than there is below");
      below = kMake.between(layer.out, "the width of a layer", 1, kMaxNumbers);
      weights += i64{layer.in + kPanel} * (layer.out + kPanel);
      kMake.demand(weights <= kMaxWeights, "a network has at most 2^30 weights");
      for (const Piece& piece : layer.pieces) check_piece(piece, layer);
    }
    kMake.demand(tower.head_column >= 0 && tower.head_column <= shape.head_width - below,
                 "a head lies outside what is put out");
  }
  return shape;
}

i64 weights_of(const LayersShape& shape) {
  i64 end = 0;
  for (const TowerShape& tower : shape.towers)
    for (const LayerShape& layer : tower.layers)
      for (const Piece& piece : layer.pieces) end = max(end, end_of(piece));
  return end;
}

// What SPARRING_KERNELS may name on this machine, the best last.
std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  for (const Kernels& some : kernels_here()) names.emplace_back(some.name);
  return names;
}

std::string kernels_used() {
  if (const Kernels* used = chosen_kernels()) return used->name;
  std::string names;
  for (const std::string& name : kernel_names()) names += (names.empty() ? "" : ", ") + name;
  throw ConfigError("SPARRING_KERNELS=" + std::string(std::getenv("SPARRING_KERNELS")) +
                    " cannot be used on this machine, which has " + names +
                    "; leave the variable away for the last of them");
}

class BoundLayers {
 public:
  BoundLayers(const std::vector<Run>& runs, int numbers, bool sparse, int activation,
              int head_width, const std::vector<TowerRow>& towers, int threads, bool bf16)
      : format_(row_format(kMake, runs)), workers_(threads) {
    const LayersShape shape =
        checked({format_.runs, numbers, sparse, activation_of(kMake, activation), head_width,
                 towers_of(towers)},
                format_);
    numbers_ = numbers;
    head_width_ = head_width;
    weights_ = weights_of(shape);
    engine_ = make_engine(shape, bf16);
    kernels_used();  // so that a wrong name is told here, not to a worker
  }

  void load(In<f32> weights) {
    const f32* from = Call("Layers.load").take_first(weights, "weights", weights_);
    nb::gil_scoped_release released;
    engine_->load(from, workers_);
  }

  void forward(In<u8> obs, MaybeIn<i64> index, Out<f32> out, bool keep) {
    constexpr Call call("Layers.forward");
    call.demand(!format_.runs.empty(), "these layers read numbers; call forward_numbers");
    const Rows<const u8> from = call.rows(obs, "obs");
    call.demand(from.columns >= format_.bytes, "the rows of obs are shorter than what is read");
    const Rows<f32> to = call.rows(out, "out");
    call.demand(to.columns == head_width_, "the rows of out have another width than the heads");
    const i64* places = call.take(index, "index", to.rows);
    if (places)
      call.within(places, to.rows, "index", 0, from.rows);
    else
      call.demand(from.rows == to.rows, "obs and out have other numbers of rows");
    run_forward({from.data, from.columns, nullptr, 0, places, to.rows}, to.data, keep);
  }

  void forward_numbers(In<f32> numbers, Out<f32> out, bool keep) {
    constexpr Call call("Layers.forward_numbers");
    call.demand(format_.runs.empty(), "these layers read bytes; call forward");
    const Rows<const f32> from = call.rows(numbers, "numbers");
    const Rows<f32> to = call.rows(out, "out");
    call.demand(from.rows == to.rows, "numbers and out have other numbers of rows");
    call.demand(from.columns >= numbers_, "the rows of numbers are shorter than what is read");
    call.demand(to.columns == head_width_, "the rows of out have another width than the heads");
    run_forward({nullptr, 0, from.data, from.columns, nullptr, to.rows}, to.data, keep);
  }

  void backward(In<f32> head_grad, MaybeOut<f32> weight_grad, MaybeOut<f32> input_grad, bool add) {
    constexpr Call call("Layers.backward");
    call.demand(kept_, "no batch was kept");
    call.demand(call.axis(head_grad, "head_grad", 2, 0) == engine_->rows(),
                "the gradient has other rows than the batch that was kept");
    const f32* above = call.take(head_grad, "head_grad", i64{engine_->rows()} * head_width_);
    f32* weights = weight_grad ? call.take_first(*weight_grad, "weight_grad", weights_) : nullptr;
    f32* inputs = call.take(input_grad, "input_grad", i64{engine_->rows()} * numbers_);
    nb::gil_scoped_release released;
    engine_->backward(above, weights, inputs, add, workers_);
  }

 private:
  void run_forward(const RowsIn& rows, f32* out, bool keep) {
    kept_ |= keep;
    nb::gil_scoped_release released;
    engine_->forward(rows, out, keep, workers_);
  }

  RowFormat format_;
  int numbers_ = 0, head_width_ = 0;
  i64 weights_ = 0;  // that are read
  bool kept_ = false;
  std::unique_ptr<Engine> engine_;
  Workers workers_;
};

}  // namespace

void bind_layers(nb::module_& m) {
  m.def("kernel_names", &kernel_names, "Inner loops of networks that this CPU can run, best last.");
  m.def("kernels_used", &kernels_used, "Which of them are used; SPARRING_KERNELS overrides it.");
  m.def("has_amx", &amx_usable,
        "Whether products in bfloat16 are to be had: the CPU has AMX, and SPARRING_KERNELS, where "
        "it is set, says amx.");
  nb::class_<BoundLayers>(m, "Layers", "A perceptron that learns.")
      .def(nb::init<const std::vector<Run>&, int, bool, int, int, const std::vector<TowerRow>&, int,
                    bool>(),
           "runs"_a, "numbers"_a, "sparse"_a, "activation"_a, "head_width"_a, "towers"_a,
           "threads"_a, "bf16"_a = false)
      .def("load", &BoundLayers::load, "weights"_a)
      .def("forward", &BoundLayers::forward, "obs"_a, "index"_a.none(), "out"_a, "keep"_a)
      .def("forward_numbers", &BoundLayers::forward_numbers, "numbers"_a, "out"_a, "keep"_a)
      .def("backward", &BoundLayers::backward, "head_grad"_a, "weight_grad"_a.none(),
           "input_grad"_a.none(), "add"_a);
}

}  // namespace sparring
