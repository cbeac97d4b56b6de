// What learners need from the native core: advantages, the first layer, sampling.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bind/arrays.hpp"
#include "bind/workers.hpp"
#include "core/gae.hpp"
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
void widen(nb::ndarray<const u8, nb::ndim<2>, nb::c_contig> obs,
           nb::ndarray<f32, nb::ndim<2>, nb::c_contig> out, const std::vector<Run>& runs) {
  const u8* from = obs.data();
  f32* to = out.data();
  for (size_t r = 0; r < obs.shape(0); ++r, from += obs.shape(1), to += out.shape(1))
    for (const auto& [first, count, offset, type, divisor] : runs) {
      const Type kind = static_cast<Type>(type);
      if (kind == Type::kU8) widen_run<u8>(from + offset, count, divisor, to + first);
      if (kind == Type::kI8) widen_run<i8>(from + offset, count, divisor, to + first);
      if (kind == Type::kI16) widen_run<i16>(from + offset, count, divisor, to + first);
      if (kind == Type::kF32) widen_run<f32>(from + offset, count, divisor, to + first);
    }
}

// The first layer of a network over the observation bytes of one game.
class FirstLayer {
 public:
  FirstLayer(const std::vector<Run>& runs, int threads)
      : runs_(feature_runs(runs)), workers_(threads) {}

  void forward(In<u8> obs, In<f32> weight, In<f32> bias, Out<f32> out) {
    nb::gil_scoped_release released;
    FirstLayerForward job(obs.data(), static_cast<i64>(obs.shape(0)),
                          static_cast<int>(obs.shape(1)), runs_, weight.data(), bias.data(),
                          static_cast<int>(weight.shape(1)), out.data());
    workers_.run(job);
  }

  void tanh(In<f32> in, Out<f32> out) {
    nb::gil_scoped_release released;
    TanhJob job(in.data(), static_cast<i64>(in.size()), out.data());
    workers_.run(job);
  }

  void backward(In<u8> obs, In<f32> grad, Out<f32> weight_grad, Out<f32> bias_grad) {
    nb::gil_scoped_release released;
    FirstLayerBackward job(obs.data(), static_cast<i64>(obs.shape(0)),
                           static_cast<int>(obs.shape(1)), runs_, grad.data(),
                           static_cast<int>(grad.shape(1)), weight_grad.data(), bias_grad.data());
    workers_.run(job);
  }

 private:
  std::vector<FeatureRun> runs_;
  Workers workers_;
};

// Frozen perceptrons of one shape; see nets/grouped.hpp.
class GroupedLayers {
 public:
  GroupedLayers(const std::vector<Run>& runs, int features, const std::vector<int>& widths,
                int head, int activation, int slots, int threads)
      : shape_{
            feature_runs(runs), features, widths, head, static_cast<Activation>(activation), slots},
        workers_(threads) {}

  i64 size() const { return shape_.size(); }

  void forward(In<u8> obs, In<i16> slot, In<f32> weights, Out<f32> out) {
    nb::gil_scoped_release released;
    GroupedForward job(shape_, weights.data(), obs.data(), static_cast<int>(obs.shape(1)),
                       slot.data(), static_cast<int>(slot.shape(0)), out.data());
    workers_.run(job);
  }

 private:
  GroupedShape shape_;
  Workers workers_;
};

// The convolutions of a network over one game's board.
class Convolutions {
 public:
  Convolutions(int height, int width, int planes, const std::vector<Run>& runs, int threads)
      : size_{height, width}, planes_(planes), runs_(feature_runs(runs)), workers_(threads) {}

  void apply(In<f32> x, In<f32> weight, std::optional<In<f32>> bias, std::optional<In<f32>> onto,
             std::optional<In<f32>> mask, bool relu, Out<f32> out) {
    const Finish finish{onto ? onto->data() : nullptr, mask ? mask->data() : nullptr, relu};
    nb::gil_scoped_release released;
    Convolve job(size_, static_cast<i64>(x.shape(0)), x.data(), static_cast<int>(weight.shape(2)),
                 weight.data(), bias ? bias->data() : nullptr, static_cast<int>(weight.shape(3)),
                 finish, out.data());
    workers_.run(job);
  }

  void kernel_gradient(In<f32> x, In<f32> grad, Out<f32> weight_grad, Out<f32> bias_grad) {
    nb::gil_scoped_release released;
    KernelGradient job(
        size_, static_cast<i64>(x.shape(0)), x.data(), static_cast<int>(weight_grad.shape(2)),
        grad.data(), static_cast<int>(weight_grad.shape(3)), weight_grad.data(), bias_grad.data());
    workers_.run(job);
  }

  void stem(In<u8> obs, In<f32> weight, In<f32> number_weight, In<f32> bias, Out<f32> out) {
    nb::gil_scoped_release released;
    const StemInput input = input_of(obs, static_cast<int>(weight.shape(3)));
    StemForward job(input, weight.data(), number_weight.data(), bias.data(), out.data());
    workers_.run(job);
  }

  void stem_gradient(In<u8> obs, In<f32> grad, Out<f32> weight_grad, Out<f32> number_grad,
                     Out<f32> bias_grad) {
    nb::gil_scoped_release released;
    const StemInput input = input_of(obs, static_cast<int>(weight_grad.shape(3)));
    StemGradient job(input, static_cast<int>(number_grad.shape(0)), grad.data(), weight_grad.data(),
                     number_grad.data(), bias_grad.data());
    workers_.run(job);
  }

 private:
  StemInput input_of(const In<u8>& obs, int out) const {
    return {size_,      static_cast<i64>(obs.shape(0)),
            obs.data(), static_cast<int>(obs.shape(1)),
            runs_,      planes_,
            out};
  }

  Boards size_;
  int planes_;
  std::vector<FeatureRun> runs_;
  Workers workers_;
};

// Row r draws number `drawn` of the sampling stream (seed, row_id[r], episode), whatever batch it
// comes in.
void sample_masked(In<f32> logits, In<u8> mask, u64 seed, In<u32> row_id, u32 episode, u32 drawn,
                   bool greedy, std::optional<In<f32>> epsilon, Out<i32> action,
                   Out<f32> log_probability) {
  const int actions = static_cast<int>(logits.shape(1));
  nb::gil_scoped_release released;
  for (size_t r = 0; r < logits.shape(0); ++r) {
    Rng rng(seed, row_id.data()[r], episode, Stream::kSampling, drawn);
    const size_t at = r * static_cast<size_t>(actions);
    const u8* legal = mask.data() + at;
    const Drawn result = draw_masked(logits.data() + at, legal, actions, greedy, rng);
    action.data()[r] = result.action;
    log_probability.data()[r] = result.log_probability;
    if (!epsilon) continue;
    Rng chance = exploring_rng(seed, row_id.data()[r], episode, drawn, 0);
    if (explores(epsilon->data()[r], chance)) action.data()[r] = any_legal(legal, actions, chance);
  }
}

// The same for continuous actions; every row has the numbers of its draw to itself.
void sample_gaussian(In<f32> head, u64 seed, In<u32> row_id, u32 episode, u32 drawn, bool greedy,
                     std::optional<In<f32>> epsilon, bool squash, Out<f32> action,
                     Out<f32> log_probability) {
  const int numbers = static_cast<int>(head.shape(1)) / 2;
  const u32 first = drawn * gaussian_draws(numbers);
  nb::gil_scoped_release released;
  for (size_t r = 0; r < head.shape(0); ++r) {
    Rng rng(seed, row_id.data()[r], episode, Stream::kSampling, first);
    const size_t at = r * static_cast<size_t>(numbers);
    log_probability.data()[r] =
        draw_gaussian(head.data() + 2 * at, numbers, greedy, rng, action.data() + at);
    if (!epsilon) continue;
    Rng chance = exploring_rng(seed, row_id.data()[r], episode, drawn, numbers);
    if (explores(epsilon->data()[r], chance))
      for (int i = 0; i < numbers; ++i) action.data()[at + i] = explored_number(squash, chance);
  }
}

void bind_transitions(nb::module_& m) {
  m.def(
      "link_transitions",
      [](int seats, int roles, int chains, int learner, f32 gamma,
         const std::vector<f32>& gamma_into, const std::vector<f32>& gamma_of,
         const std::vector<u32>& ended_by, nb::ndarray<const i8, nb::ndim<3>, nb::c_contig> seat,
         In<i8> role, In<i16> policy, In<f32> reward, In<u8> terminated, In<u8> truncated,
         In<f32> final_value, std::optional<In<i8>> final_role, std::optional<In<u16>> skipped,
         Out<u8> open, Out<u8> end, Out<i32> next, Out<f32> paid, Out<f32> discount,
         Out<f32> tail) {
        RolloutView v{};
        v.steps = static_cast<int>(seat.shape(0));
        v.games = static_cast<int>(seat.shape(1));
        v.rows = static_cast<int>(seat.shape(2));
        v.seats = seats;
        v.roles = roles;
        v.chains = chains;
        v.learner = learner;
        v.gamma = gamma;
        v.gamma_into = gamma_into.data();
        v.gamma_of = gamma_of.empty() ? nullptr : gamma_of.data();
        v.ended_by = ended_by.empty() ? nullptr : ended_by.data();
        v.seat = seat.data();
        v.role = role.data();
        v.policy = policy.data();
        v.reward = reward.data();
        v.terminated = terminated.data();
        v.truncated = truncated.data();
        v.final_value = final_value.data();
        v.final_role = final_role ? final_role->data() : nullptr;
        v.skipped = skipped ? skipped->data() : nullptr;
        v.open = reinterpret_cast<Open*>(open.data());
        const Links links{end.data(), next.data(), paid.data(), discount.data(), tail.data()};
        nb::gil_scoped_release released;
        for (int game = 0; game < v.games; ++game) link_game(v, links, game);
      },
      "seats"_a, "roles"_a, "chains"_a, "learner"_a, "gamma"_a, "gamma_into"_a, "gamma_of"_a,
      "ended_by"_a, "seat"_a, "role"_a, "policy"_a, "reward"_a, "terminated"_a, "truncated"_a,
      "final_value"_a, "final_role"_a.none(), "skipped"_a.none(), "open"_a, "end"_a, "next"_a,
      "paid"_a, "discount"_a, "tail"_a);
  m.def(
      "estimate_advantages",
      [](int steps, int games, int rows, int seats, int chains, f32 gae_lambda,
         const std::vector<f32>& lambda_of, std::optional<In<i8>> role, In<f32> value, Out<u8> end,
         Out<i32> next, Out<f32> paid, Out<f32> discount, Out<f32> tail, Out<f32> advantage,
         std::optional<In<f32>> rho, std::optional<In<f32>> trace) {
        RolloutView v{};
        v.steps = steps;
        v.games = games;
        v.rows = rows;
        v.seats = seats;
        v.chains = chains;
        v.lambda_of = lambda_of.empty() ? nullptr : lambda_of.data();
        v.role = role ? role->data() : nullptr;
        const Links links{end.data(), next.data(), paid.data(), discount.data(), tail.data()};
        const Weights weights{rho ? rho->data() : nullptr, trace ? trace->data() : nullptr};
        nb::gil_scoped_release released;
        for (int game = 0; game < games; ++game)
          gae_of_game(v, links, value.data(), gae_lambda, advantage.data(), game, weights);
      },
      "steps"_a, "games"_a, "rows"_a, "seats"_a, "chains"_a, "gae_lambda"_a, "lambda_of"_a,
      "role"_a.none(), "value"_a, "end"_a, "next"_a, "paid"_a, "discount"_a, "tail"_a,
      "advantage"_a, "rho"_a.none() = nb::none(), "trace"_a.none() = nb::none());
  m.attr("OPEN_BYTES") = sizeof(Open);
}

}  // namespace

void bind_learning(nb::module_& m) {
  bind_transitions(m);
  m.def("widen", &widen, "obs"_a, "out"_a, "runs"_a);
  m.def("sample_masked", &sample_masked, "logits"_a, "mask"_a, "seed"_a, "row_id"_a, "episode"_a,
        "drawn"_a, "greedy"_a, "epsilon"_a.none(), "action"_a, "log_probability"_a);
  m.def("sample_gaussian", &sample_gaussian, "head"_a, "seed"_a, "row_id"_a, "episode"_a, "drawn"_a,
        "greedy"_a, "epsilon"_a.none(), "squash"_a, "action"_a, "log_probability"_a);
  m.attr("LEAST_LOG_SPREAD") = kLeastLogSpread;
  m.attr("MOST_LOG_SPREAD") = kMostLogSpread;
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
