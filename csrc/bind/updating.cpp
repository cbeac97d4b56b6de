// What PPO does on a CPU besides the passes of a network: actions are drawn, the loss, Adam.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include "bind/arrays.hpp"
#include "bind/workers.hpp"
#include "learn/adam.hpp"
#include "learn/ppo_loss.hpp"
#include "nets/drawing.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sparring {
namespace {

using Index = std::optional<In<i64>>;

const i64* at(const Index& index) { return index ? index->data() : nullptr; }

class Updating {
 public:
  explicit Updating(int threads) : workers_(threads) {}

  // Actions, or numbers of continuous ones, with their log-probabilities and values.
  void draw(In<f32> said, In<u8> mask, u64 seed, In<u32> row_id, u32 episode, u32 drawn,
            f32 value_unit, std::optional<Out<i32>> action, std::optional<Out<f32>> numbers,
            Out<f32> log_prob, Out<f32> value) {
    const Asked asked{said.data(),
                      static_cast<int>(said.shape(0)),
                      static_cast<int>(said.shape(1)),
                      mask.data(),
                      action ? static_cast<int>(mask.shape(1)) : 0,
                      numbers ? static_cast<int>(numbers->shape(1)) : 0,
                      seed,
                      row_id.data(),
                      episode,
                      drawn,
                      value_unit};
    if (asked.width != (asked.box ? 2 * asked.box : asked.actions) + 1)
      throw nb::value_error("the heads have another width than the actions");
    nb::gil_scoped_release released;
    DrawActions job(asked, {action ? action->data() : nullptr, numbers ? numbers->data() : nullptr,
                            log_prob.data(), value.data()});
    workers_.run(job);
  }

  // Returns sums over rows: policy loss, value loss and entropy; how far the policy moved and how
  // often that was too far, of those that are no images; and how many those are.
  std::tuple<f64, f64, f64, f64, f64, f64> policy_loss(
      In<f32> said, Index place, Index sample, In<u8> mask, std::optional<In<i32>> action,
      std::optional<In<f32>> drawn, In<f32> log_prob, In<f32> value, In<f32> advantage,
      In<f32> returns, std::optional<In<u8>> mirrored, f32 clip, f32 value_clip, f32 value_weight,
      f32 entropy, Out<f32> grad) {
    const Decisions decisions = decisions_of(said, place, sample, mask, action, drawn);
    const Judged judged{log_prob.data(), value.data(), advantage.data(), returns.data(),
                        mirrored ? mirrored->data() : nullptr};
    nb::gil_scoped_release released;
    PolicyLoss job(decisions, judged, {clip, value_clip, value_weight, entropy}, said.data(),
                   grad.data());
    workers_.run(job);
    const PolicySums sums = job.sums();
    return {sums.policy, sums.value, sums.entropy, sums.moved, sums.clipped, sums.plain};
  }

  f64 example_loss(In<f32> said, In<u8> mask, std::optional<In<i32>> action,
                   std::optional<In<f32>> drawn, f32 weight, Out<f32> grad) {
    const Decisions decisions = decisions_of(said, {}, {}, mask, action, drawn);
    nb::gil_scoped_release released;
    ExampleLoss job(decisions, weight, said.data(), grad.data());
    workers_.run(job);
    return job.sum();
  }

  // Returns the norm of the gradient; unless it is finite, nothing has changed.
  f64 adam(In<f32> grad, Out<f32> weight, Out<f32> mean, Out<f32> square, i64 step, f64 lr, f64 eps,
           f64 max_norm) {
    nb::gil_scoped_release released;
    AdamStep job(
        {grad.data(), weight.data(), mean.data(), square.data(), static_cast<i64>(grad.size())},
        {lr, eps, max_norm, step});
    workers_.run(job);
    return job.norm();
  }

 private:
  static Decisions decisions_of(const In<f32>& said, const Index& place, const Index& sample,
                                const In<u8>& mask, const std::optional<In<i32>>& action,
                                const std::optional<In<f32>>& drawn) {
    const Decisions decisions{static_cast<int>(said.shape(0)),
                              at(place),
                              at(sample),
                              mask.data(),
                              action ? static_cast<int>(mask.shape(1)) : 0,
                              action ? action->data() : nullptr,
                              drawn ? drawn->data() : nullptr,
                              drawn ? static_cast<int>(drawn->shape(1)) : 0};
    if (static_cast<int>(said.shape(1)) != decisions.head() + 1)
      throw nb::value_error("the heads have another width than the actions");
    return decisions;
  }

  Workers workers_;
};

}  // namespace

void bind_updating(nb::module_& m) {
  nb::class_<Updating>(m, "Updating", "What PPO does besides the passes of a network.")
      .def(nb::init<int>(), "threads"_a)
      .def("draw", &Updating::draw, "said"_a, "mask"_a, "seed"_a, "row_id"_a, "episode"_a,
           "drawn"_a, "value_unit"_a, "action"_a.none(), "numbers"_a.none(), "log_prob"_a,
           "value"_a)
      .def("policy_loss", &Updating::policy_loss, "said"_a, "place"_a.none(), "sample"_a.none(),
           "mask"_a, "action"_a.none(), "drawn"_a.none(), "log_prob"_a, "value"_a, "advantage"_a,
           "returns"_a, "mirrored"_a.none(), "clip"_a, "value_clip"_a, "value_weight"_a,
           "entropy"_a, "grad"_a)
      .def("example_loss", &Updating::example_loss, "said"_a, "mask"_a, "action"_a.none(),
           "drawn"_a.none(), "weight"_a, "grad"_a)
      .def("adam", &Updating::adam, "grad"_a, "weight"_a, "mean"_a, "square"_a, "step"_a, "lr"_a,
           "eps"_a, "max_norm"_a);
}

}  // namespace sparring
