// What learners need from the native core: the first layer, convolutions, sampling.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bind/arrays.hpp"
#include "bind/workers.hpp"
#include "nets/convolution.hpp"
#include "nets/first_layer.hpp"
#include "nets/grouped.hpp"
#include "nets/sampler.hpp"
#include "nets/tanh.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sparring {
namespace {

template <class T>
void widen_run(const u8* row, int count, f32 divisor, f32* out) {
  T raw;
  for (int i = 0; i < count; ++i) {
    std::memcpy(&raw, row + i * static_cast<int>(sizeof(T)), sizeof(T));
    out[i] = static_cast<f32>(raw);
  }
  if (divisor == 1) return;
  for (int i = 0; i < count; ++i) out[i] /= divisor;
}

// Observation bytes become numbers.
void widen(In<u8> obs, Out<f32> out, const std::vector<Run>& runs) {
  constexpr Call call("widen");
  const RowFormat format = row_format(call, runs);
  const Rows<const u8> from = call.rows(obs, "obs");
  const Rows<f32> to = call.rows(out, "out");
  call.demand(from.rows == to.rows, "obs and out have other numbers of rows");
  call.demand(from.columns >= format.bytes, "the rows of obs are shorter than what is read");
  call.demand(to.columns >= format.features, "the rows of out have too little room");
  for (i64 r = 0; r < from.rows; ++r)
    for (const FeatureRun& run : format.runs) {
      const u8* at = from.data + r * from.columns + run.offset;
      f32* wide = to.data + r * to.columns + run.first;
      if (run.type == Type::kU8) widen_run<u8>(at, run.count, run.divisor, wide);
      if (run.type == Type::kI8) widen_run<i8>(at, run.count, run.divisor, wide);
      if (run.type == Type::kI16) widen_run<i16>(at, run.count, run.divisor, wide);
      if (run.type == Type::kF32) widen_run<f32>(at, run.count, run.divisor, wide);
    }
}

// Rows of bytes that are as long as what is read of them.
Rows<const u8> rows_of_bytes(const Call& call, const In<u8>& obs, const RowFormat& format) {
  const Rows<const u8> rows = call.rows(obs, "obs");
  call.demand(rows.columns >= format.bytes, "the rows of obs are shorter than what is read");
  return rows;
}

// The first layer of a network over the observation bytes of one game.
class FirstLayer {
 public:
  FirstLayer(const std::vector<Run>& runs, int threads)
      : format_(row_format(Call("FirstLayer"), runs)), workers_(threads) {}

  void forward(In<u8> obs, In<f32> weight, In<f32> bias, Out<f32> out) {
    constexpr Call call("FirstLayer.forward");
    const Rows<const u8> rows = rows_of_bytes(call, obs, format_);
    const Rows<const f32> by_feature = call.rows(weight, "weight");
    const int width = call.between(by_feature.columns, "the width of weight", 1, kMaxNumbers);
    call.demand(by_feature.rows >= format_.features, "weight has fewer rows than features");
    const f32* shift = call.take(bias, "bias", width);
    f32* to = call.take(out, "out", i64{rows.rows} * width);
    nb::gil_scoped_release released;
    FirstLayerForward job(rows.data, rows.rows, rows.columns, format_.runs, by_feature.data, shift,
                          width, to);
    workers_.run(job);
  }

  void tanh(In<f32> in, Out<f32> out) {
    constexpr Call call("FirstLayer.tanh");
    const i64 count = call.size(in, "in_");
    const f32* from = call.take(in, "in_", count);
    f32* to = call.take(out, "out", count);
    nb::gil_scoped_release released;
    TanhJob job(from, count, to);
    workers_.run(job);
  }

  void backward(In<u8> obs, In<f32> grad, Out<f32> weight_grad, Out<f32> bias_grad) {
    constexpr Call call("FirstLayer.backward");
    const Rows<const u8> rows = rows_of_bytes(call, obs, format_);
    const Rows<const f32> above = call.rows(grad, "grad");
    const int width = call.between(above.columns, "the width of grad", 1, kMaxNumbers);
    call.demand(above.rows == rows.rows, "obs and grad have other numbers of rows");
    f32* by_feature = call.take_first(weight_grad, "weight_grad", i64{format_.features} * width);
    f32* shift = call.take(bias_grad, "bias_grad", width);
    nb::gil_scoped_release released;
    FirstLayerBackward job(rows.data, rows.rows, rows.columns, format_.runs, above.data, width,
                           by_feature, shift);
    workers_.run(job);
  }

 private:
  RowFormat format_;
  Workers workers_;
};

// Frozen perceptrons of one shape; see nets/grouped.hpp.
class GroupedLayers {
 public:
  GroupedLayers(const std::vector<Run>& runs, int features, const std::vector<int>& widths,
                int head, int activation, int slots, int threads)
      : format_(row_format(kCall, runs)),
        shape_{format_.runs, features, widths, head, activation_of(kCall, activation), slots},
        workers_(threads) {
    kCall.between(features, "features", format_.features, kMaxNumbers);
    kCall.between(slots, "slots", 0, std::numeric_limits<i16>::max());
    kCall.demand(!widths.empty(), "a network has at least a head");
    for (const int width : widths)
      kCall.demand(width % kPanel == 0 && kCall.between(width, "a width", 1, kMaxNumbers),
                   "widths are multiples of 32");
    kCall.between(head, "head", 1, widths.back());
    kCall.demand(shape_.size() <= kMaxWeights, "a network has at most 2^30 weights");
  }

  i64 size() const { return shape_.size(); }

  void forward(In<u8> obs, In<i16> slot, In<f32> weights, Out<f32> out) {
    constexpr Call call("GroupedLayers.forward");
    const Rows<const u8> rows = rows_of_bytes(call, obs, format_);
    const i16* slots = call.take(slot, "slot", rows.rows);
    const f32* numbers = call.take(weights, "weights", shape_.slots * size());
    f32* to = call.take(out, "out", i64{rows.rows} * shape_.head);
    nb::gil_scoped_release released;
    GroupedForward job(shape_, numbers, rows.data, rows.columns, slots, rows.rows, to);
    workers_.run(job);
  }

 private:
  static constexpr Call kCall{"GroupedLayers"};

  RowFormat format_;
  GroupedShape shape_;
  Workers workers_;
};

// The convolutions of a network over one game's board.
class Convolutions {
 public:
  Convolutions(int height, int width, int planes, const std::vector<Run>& runs, int threads)
      : size_{kCall.between(height, "height", 1, kMaxSide),
              kCall.between(width, "width", 1, kMaxSide)},
        planes_(kCall.between(planes, "planes", 0, kMaxNumbers / size_.squares())),
        format_(row_format(kCall, runs)),
        workers_(threads) {
    // The stem reads planes first, and numbers of the whole board behind them.
    bool numbers = false;
    for (const FeatureRun& run : format_.runs) {
      kCall.demand(!numbers || run.first >= planes_ * size_.squares(),
                   "planes come before numbers of the whole board");
      numbers |= run.first + run.count > planes_ * size_.squares();
    }
  }

  void apply(In<f32> x, In<f32> weight, MaybeIn<f32> bias, MaybeIn<f32> onto, MaybeIn<f32> mask,
             bool relu, Out<f32> out) {
    constexpr Call call("Convolutions.apply");
    const Kernel kernel = kernel_of(call, weight, "weight");
    const int rows = call.axis(x, "x", 4, 0);
    const f32* from = call.take(x, "x", board(call, rows, kernel.in));
    const i64 made = board(call, rows, kernel.out);
    const f32* numbers = call.take(weight, "weight", kernel.size());
    const f32* shift = call.take(bias, "bias", kernel.out);
    const Finish finish{call.take(onto, "onto", made), call.take(mask, "mask", made), relu};
    f32* to = call.take(out, "out", made);
    nb::gil_scoped_release released;
    Convolve job(size_, rows, from, kernel.in, numbers, shift, kernel.out, finish, to);
    workers_.run(job);
  }

  void kernel_gradient(In<f32> x, In<f32> grad, Out<f32> weight_grad, Out<f32> bias_grad) {
    constexpr Call call("Convolutions.kernel_gradient");
    const Kernel kernel = kernel_of(call, weight_grad, "weight_grad");
    const int rows = call.axis(x, "x", 4, 0);
    const f32* from = call.take(x, "x", board(call, rows, kernel.in));
    const f32* above = call.take(grad, "grad", board(call, rows, kernel.out));
    f32* numbers = call.take(weight_grad, "weight_grad", kernel.size());
    f32* shift = call.take(bias_grad, "bias_grad", kernel.out);
    nb::gil_scoped_release released;
    KernelGradient job(size_, rows, from, kernel.in, above, kernel.out, numbers, shift);
    workers_.run(job);
  }

  void stem(In<u8> obs, In<f32> weight, In<f32> number_weight, In<f32> bias, Out<f32> out) {
    constexpr Call call("Convolutions.stem");
    const Kernel kernel = stem_kernel(call, weight, "weight");
    const StemInput input = input_of(call, obs, kernel.out);
    const f32* numbers = call.take(weight, "weight", kernel.size());
    const f32* by_number = call.take_first(number_weight, "number_weight", numbers_size(kernel));
    const f32* shift = call.take(bias, "bias", kernel.out);
    f32* to = call.take(out, "out", board(call, static_cast<int>(input.rows), kernel.out));
    nb::gil_scoped_release released;
    StemForward job(input, numbers, by_number, shift, to);
    workers_.run(job);
  }

  void stem_gradient(In<u8> obs, In<f32> grad, Out<f32> weight_grad, Out<f32> number_grad,
                     Out<f32> bias_grad) {
    constexpr Call call("Convolutions.stem_gradient");
    const Kernel kernel = stem_kernel(call, weight_grad, "weight_grad");
    const StemInput input = input_of(call, obs, kernel.out);
    const Rows<f32> by_number = call.rows(number_grad, "number_grad");
    call.demand(by_number.columns == kernel.out && by_number.size() >= numbers_size(kernel),
                "number_grad has other numbers or channels than the stem");
    const f32* above =
        call.take(grad, "grad", board(call, static_cast<int>(input.rows), kernel.out));
    f32* numbers = call.take(weight_grad, "weight_grad", kernel.size());
    f32* shift = call.take(bias_grad, "bias_grad", kernel.out);
    nb::gil_scoped_release released;
    StemGradient job(input, by_number.rows, above, numbers, by_number.data, shift);
    workers_.run(job);
  }

 private:
  static constexpr Call kCall{"Convolutions"};
  static constexpr int kMaxSide = 1024;

  struct Kernel {
    int in, out;
    i64 size() const { return i64{kTaps} * in * out; }
  };

  template <class T>
  Kernel kernel_of(const Call& call, const Given<T>& weight, const char* what) const {
    call.demand(call.axis(weight, what, 4, 0) == kReach && call.axis(weight, what, 4, 1) == kReach,
                "kernels are [3, 3, in, out]");
    const Kernel kernel{call.axis(weight, what, 4, 2), call.axis(weight, what, 4, 3)};
    call.demand(kernel.out >= kChannelStep && kernel.out % kChannelStep == 0,
                "channels that are put out come in fours");
    call.product("a board's channels", {size_.padded(), max(kernel.in, kernel.out)});
    return kernel;
  }

  template <class T>
  Kernel stem_kernel(const Call& call, const Given<T>& weight, const char* what) const {
    const Kernel kernel = kernel_of(call, weight, what);
    call.demand(kernel.in == planes_, "the kernel reads another number of planes");
    return kernel;
  }

  // Numbers of so many boards.
  i64 board(const Call& call, int rows, int channels) const {
    return i64{rows} * call.product("a board's channels", {size_.squares(), channels});
  }

  // Weights of the numbers that hold for the whole board.
  i64 numbers_size(const Kernel& kernel) const {
    return i64{max(format_.features - planes_ * size_.squares(), 0)} * kernel.out;
  }

  StemInput input_of(const Call& call, const In<u8>& obs, int out) const {
    const Rows<const u8> rows = rows_of_bytes(call, obs, format_);
    return {size_, rows.rows, rows.data, rows.columns, format_.runs, planes_, out};
  }

  Boards size_;
  int planes_;
  RowFormat format_;
  Workers workers_;
};

// Row r draws number `drawn` of the sampling stream (seed, row_id[r], episode), whatever batch it
// comes in.
void sample_masked(In<f32> logits, In<u8> mask, u64 seed, In<u32> row_id, u32 episode, u32 drawn,
                   bool greedy, MaybeIn<f32> epsilon, Out<i32> action, Out<f32> log_probability) {
  constexpr Call call("sample_masked");
  const Rows<const f32> heads = call.rows(logits, "logits");
  const int actions = heads.columns;
  const u8* masks = call.take(mask, "mask", heads.size());
  const u32* ids = call.take(row_id, "row_id", heads.rows);
  const f32* lots = call.take(epsilon, "epsilon", heads.rows);
  i32* chosen = call.take(action, "action", heads.rows);
  f32* log_prob = call.take(log_probability, "log_probability", heads.rows);
  nb::gil_scoped_release released;
  for (i64 r = 0; r < heads.rows; ++r) {
    Rng rng(seed, ids[r], episode, Stream::kSampling, drawn);
    const u8* legal = masks + r * actions;
    const Drawn result = draw_masked(heads.data + r * actions, legal, actions, greedy, rng);
    chosen[r] = result.action;
    log_prob[r] = result.log_probability;
    if (!lots) continue;
    Rng chance = exploring_rng(seed, ids[r], episode, drawn, 0);
    if (explores(lots[r], chance)) chosen[r] = any_legal(legal, actions, chance);
  }
}

// The same for continuous actions; every row has the numbers of its draw to itself.
void sample_gaussian(In<f32> head, u64 seed, In<u32> row_id, u32 episode, u32 drawn, bool greedy,
                     MaybeIn<f32> epsilon, bool squash, Out<f32> action, Out<f32> log_probability) {
  constexpr Call call("sample_gaussian");
  const Rows<const f32> heads = call.rows(head, "head");
  const int numbers = heads.columns / 2;
  call.demand(heads.columns % 2 == 0, "head has a mean and a spread for every number");
  const u32 first = drawn * gaussian_draws(numbers);
  const u32* ids = call.take(row_id, "row_id", heads.rows);
  const f32* lots = call.take(epsilon, "epsilon", heads.rows);
  f32* chosen = call.take(action, "action", i64{heads.rows} * numbers);
  f32* log_prob = call.take(log_probability, "log_probability", heads.rows);
  nb::gil_scoped_release released;
  for (i64 r = 0; r < heads.rows; ++r) {
    Rng rng(seed, ids[r], episode, Stream::kSampling, first);
    f32* own = chosen + r * numbers;
    log_prob[r] = draw_gaussian(heads.data + 2 * r * numbers, numbers, greedy, rng, own);
    if (!lots) continue;
    Rng chance = exploring_rng(seed, ids[r], episode, drawn, numbers);
    if (explores(lots[r], chance))
      for (int i = 0; i < numbers; ++i) own[i] = explored_number(squash, chance);
  }
}

}  // namespace

void bind_learning(nb::module_& m) {
  m.def("widen", &widen, "obs"_a, "out"_a, "runs"_a);
  m.def("sample_masked", &sample_masked, "logits"_a, "mask"_a, "seed"_a, "row_id"_a, "episode"_a,
        "drawn"_a, "greedy"_a, "epsilon"_a.none(), "action"_a, "log_probability"_a);
  m.def("sample_gaussian", &sample_gaussian, "head"_a, "seed"_a, "row_id"_a, "episode"_a, "drawn"_a,
        "greedy"_a, "epsilon"_a.none(), "squash"_a, "action"_a, "log_probability"_a);
  m.attr("MIN_LOG_STD") = kMinLogStd;
  m.attr("MAX_LOG_STD") = kMaxLogStd;
  nb::class_<FirstLayer>(m, "FirstLayer", "A first layer that skips zeros.")
      .def(nb::init<const std::vector<Run>&, int>(), "runs"_a, "threads"_a)
      .def("forward", &FirstLayer::forward, "obs"_a, "weight"_a, "bias"_a, "out"_a)
      .def("tanh", &FirstLayer::tanh, "in_"_a, "out"_a)
      .def("backward", &FirstLayer::backward, "obs"_a, "grad"_a, "weight_grad"_a, "bias_grad"_a);
  nb::class_<GroupedLayers>(m, "GroupedLayers", "Frozen perceptrons that answer together.")
      .def(nb::init<const std::vector<Run>&, int, const std::vector<int>&, int, int, int, int>(),
           "runs"_a, "features"_a, "widths"_a, "head"_a, "activation"_a, "slots"_a, "threads"_a)
      .def_prop_ro("size", &GroupedLayers::size)
      .def("forward", &GroupedLayers::forward, "obs"_a, "slot"_a, "weights"_a, "out"_a);
  nb::class_<Convolutions>(m, "Convolutions", "3x3 convolutions over boards, channels last.")
      .def(nb::init<int, int, int, const std::vector<Run>&, int>(), "height"_a, "width"_a,
           "planes"_a, "runs"_a, "threads"_a)
      .def("apply", &Convolutions::apply, "x"_a, "weight"_a, "bias"_a.none(), "onto"_a.none(),
           "mask"_a.none(), "relu"_a, "out"_a)
      .def("kernel_gradient", &Convolutions::kernel_gradient, "x"_a, "grad"_a, "weight_grad"_a,
           "bias_grad"_a)
      .def("stem", &Convolutions::stem, "obs"_a, "weight"_a, "number_weight"_a, "bias"_a, "out"_a)
      .def("stem_gradient", &Convolutions::stem_gradient, "obs"_a, "grad"_a, "weight_grad"_a,
           "number_grad"_a, "bias_grad"_a);
}

}  // namespace sparring
