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
#include "core/trouble.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sparring {
namespace {

// Column, columns, reads, weight, bias, in_stride, out_stride: see Piece.
using PieceRow = std::tuple<int, int, int, i64, i64, i64, i64>;
using LayerRow = std::tuple<int, int, std::vector<PieceRow>>;  // in, out, pieces
using TowerRow = std::tuple<int, std::vector<LayerRow>>;       // head column, layers

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
  throw Trouble("SPARRING_KERNELS=" + std::string(std::getenv("SPARRING_KERNELS")) +
                " cannot be used on this machine, which has " + names +
                "; leave the variable away for the last of them");
}

class BoundLayers {
 public:
  BoundLayers(const std::vector<Run>& runs, int numbers, bool sparse, int activation,
              int head_width, const std::vector<TowerRow>& towers, int threads, bool bf16)
      : engine_(make_engine({feature_runs(runs), numbers, sparse,
                             static_cast<Activation>(activation), head_width, towers_of(towers)},
                            bf16)),
        workers_(threads) {
    kernels_used();  // so that a wrong name is told here, not to a worker
  }

  void load(In<f32> weights) {
    nb::gil_scoped_release released;
    engine_->load(weights.data(), workers_);
  }

  void forward(In<u8> obs, std::optional<In<i64>> index, Out<f32> out, bool keep) {
    run_forward({obs.data(), static_cast<i64>(obs.shape(1)), nullptr, 0,
                 index ? index->data() : nullptr, static_cast<int>(out.shape(0))},
                out.data(), keep);
  }

  void forward_numbers(In<f32> numbers, Out<f32> out, bool keep) {
    run_forward({nullptr, 0, numbers.data(), static_cast<i64>(numbers.shape(1)), nullptr,
                 static_cast<int>(out.shape(0))},
                out.data(), keep);
  }

  void backward(In<f32> head_grad, std::optional<Out<f32>> weight_grad,
                std::optional<Out<f32>> input_grad, bool add) {
    if (static_cast<int>(head_grad.shape(0)) != engine_->rows())
      throw nb::value_error("the gradient has other rows than the batch that was kept");
    nb::gil_scoped_release released;
    engine_->backward(head_grad.data(), weight_grad ? weight_grad->data() : nullptr,
                      input_grad ? input_grad->data() : nullptr, add, workers_);
  }

 private:
  void run_forward(const RowsIn& rows, f32* out, bool keep) {
    nb::gil_scoped_release released;
    engine_->forward(rows, out, keep, workers_);
  }

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
