// Sampling of actions, loss and Adam of PPO on a CPU.
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

class PPOUpdate {
 public:
  explicit PPOUpdate(int threads) : workers_(threads) {}

  // Actions, or numbers of continuous ones, with their log-probabilities and values.
  void sample_actions(In<f32> outputs, In<u8> mask, u64 seed, In<u32> row_id, u32 episode,
                      u32 draw_count, f32 value_scale, MaybeOut<i32> action, MaybeOut<f32> numbers,
                      Out<f32> log_prob, Out<f32> value) {
    constexpr Call call("PPOUpdate.draw");
    const Rows<const f32> heads = call.rows(outputs, "outputs");
    call.demand(!action != !numbers, "give room for actions or for numbers");
    const int actions = action ? call.axis(mask, "mask", 2, 1) : 0;
    const int box = numbers ? call.axis(*numbers, "numbers", 2, 1) : 0;
    check_width(call, heads, actions, box);
    const ActingInputs inputs{
        heads.data,    heads.rows,
        heads.columns, action ? call.take(mask, "mask", i64{heads.rows} * actions) : nullptr,
        actions,       box,
        seed,          call.take(row_id, "row_id", heads.rows),
        episode,       draw_count,
        value_scale};
    const SampledActions sampled{call.take(action, "action", heads.rows),
                                 call.take(numbers, "numbers", i64{heads.rows} * box),
                                 call.take(log_prob, "log_prob", heads.rows),
                                 call.take(value, "value", heads.rows)};
    nb::gil_scoped_release released;
    DrawActions job(inputs, sampled);
    workers_.run(job);
  }

  // Returns sums over rows: policy loss, value loss and entropy; how far the policy moved and how
  // often that was too far, of those that are no images; and how many those are.
  std::tuple<f64, f64, f64, f64, f64, f64> policy_loss(
      In<f32> outputs, MaybeIn<i64> index, MaybeIn<i64> sample, In<u8> mask, MaybeIn<i32> action,
      MaybeIn<f32> box_action, In<f32> log_prob, In<f32> value, In<f32> advantage, In<f32> returns,
      MaybeIn<u8> mirrored, f32 clip, f32 value_clip, f32 value_weight, f32 entropy,
      Out<f32> grad) {
    constexpr Call call("PPOUpdate.policy_loss");
    const Rows<const f32> heads = call.rows(outputs, "outputs");
    const i64 samples = call.size(log_prob, "log_prob");
    const i64* picked = call.take(sample, "sample", heads.rows);
    const Decisions decisions =
        decisions_of(call, heads, index, picked, samples, mask, action, box_action);
    const OldPolicyData old_data{
        call.take(log_prob, "log_prob", samples), call.take(value, "value", samples),
        call.take(advantage, "advantage", samples), call.take(returns, "returns", samples),
        call.take(mirrored, "mirrored", samples)};
    f32* back = call.take(grad, "grad", heads.size());
    nb::gil_scoped_release released;
    PolicyLoss job(decisions, old_data, {clip, value_clip, value_weight, entropy}, heads.data,
                   back);
    workers_.run(job);
    const PolicySums sums = job.sums();
    return {sums.policy, sums.value, sums.entropy, sums.approx_kl, sums.clipped, sums.unmirrored};
  }

  f64 example_loss(In<f32> outputs, In<u8> mask, MaybeIn<i32> action, MaybeIn<f32> box_action,
                   f32 weight, Out<f32> grad) {
    constexpr Call call("PPOUpdate.example_loss");
    const Rows<const f32> heads = call.rows(outputs, "outputs");
    const Decisions decisions =
        decisions_of(call, heads, {}, nullptr, heads.rows, mask, action, box_action);
    f32* back = call.take(grad, "grad", heads.size());
    nb::gil_scoped_release released;
    ExampleLoss job(decisions, weight, heads.data, back);
    workers_.run(job);
    return job.sum();
  }

  // Returns the norm of the gradient; unless it is finite, nothing has changed.
  f64 adam(In<f32> grad, Out<f32> weight, Out<f32> mean, Out<f32> square, i64 step, f64 lr, f64 eps,
           f64 max_norm) {
    constexpr Call call("PPOUpdate.adam");
    call.demand(step >= 1, "steps are counted from 1");
    const i64 count = call.size(grad, "grad");
    const AdamArrays arrays{call.take(grad, "grad", count), call.take(weight, "weight", count),
                            call.take(mean, "mean", count), call.take(square, "square", count),
                            count};
    nb::gil_scoped_release released;
    AdamStep job(arrays, {lr, eps, max_norm, step});
    workers_.run(job);
    return job.norm();
  }

 private:
  // The policy's numbers, and a value behind them.
  static void check_width(const Call& call, const Rows<const f32>& heads, int actions, int box) {
    call.demand(actions || box, "an action is one of several, or has numbers");
    call.demand(heads.columns == i64{box} * 2 + actions + 1,
                "the heads have another width than the actions");
  }

  // picked: which of the samples a row is; null where it is that of its own number.
  static Decisions decisions_of(const Call& call, const Rows<const f32>& heads,
                                const MaybeIn<i64>& index, const i64* picked, i64 samples,
                                const In<u8>& mask, const MaybeIn<i32>& action,
                                const MaybeIn<f32>& box_action) {
    call.demand(!action != !box_action, "give actions or the numbers that were drawn");
    const int box = box_action ? call.axis(*box_action, "box_action", 2, 1) : 0;
    const int indices = call.axis(mask, "mask", 2, 0);
    const int actions = action ? call.axis(mask, "mask", 2, 1) : 0;
    check_width(call, heads, actions, box);
    const Decisions decisions{heads.rows,
                              call.take(index, "index", heads.rows),
                              picked,
                              call.take_first(mask, "mask", i64{indices} * actions),
                              actions,
                              call.take(action, "action", samples),
                              call.take(box_action, "box_action", samples * box),
                              box};
    check_indices(call, decisions.index, heads.rows, "index", indices);
    check_indices(call, picked, heads.rows, "sample", samples);
    for (int r = 0; actions && r < heads.rows; ++r)
      call.index(decisions.action[decisions.sample_of(r)], "action", actions);
    return decisions;
  }

  static void check_indices(const Call& call, const i64* indices, i64 rows, const char* what,
                            i64 end) {
    if (indices)
      call.within(indices, rows, what, 0, end);
    else
      call.demand(rows <= end, "there are fewer decisions than rows");
  }

  Workers workers_;
};

}  // namespace

void bind_updating(nb::module_& m) {
  nb::class_<PPOUpdate>(m, "PPOUpdate", "Sampling, loss and Adam of PPO.")
      .def(nb::init<int>(), "threads"_a)
      .def("sample_actions", &PPOUpdate::sample_actions, "outputs"_a, "mask"_a, "seed"_a,
           "row_id"_a, "episode"_a, "draw_count"_a, "value_scale"_a, "action"_a.none(),
           "numbers"_a.none(), "log_prob"_a, "value"_a)
      .def("policy_loss", &PPOUpdate::policy_loss, "outputs"_a, "index"_a.none(), "sample"_a.none(),
           "mask"_a, "action"_a.none(), "box_action"_a.none(), "log_prob"_a, "value"_a,
           "advantage"_a, "returns"_a, "mirrored"_a.none(), "clip"_a, "value_clip"_a,
           "value_weight"_a, "entropy"_a, "grad"_a)
      .def("example_loss", &PPOUpdate::example_loss, "outputs"_a, "mask"_a, "action"_a.none(),
           "box_action"_a.none(), "weight"_a, "grad"_a)
      .def("adam", &PPOUpdate::adam, "grad"_a, "weight"_a, "mean"_a, "square"_a, "step"_a, "lr"_a,
           "eps"_a, "max_norm"_a);
}

}  // namespace sparring
