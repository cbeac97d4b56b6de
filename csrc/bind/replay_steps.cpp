// Losses and gradients of DQN and SAC on a CPU; see learn/q_loss.hpp and learn/sac_loss.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include "bind/arrays.hpp"
#include "bind/workers.hpp"
#include "learn/q_loss.hpp"
#include "learn/sac_loss.hpp"
#include "learn/target.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sparring {
namespace {

class OffPolicyLosses {
 public:
  explicit OffPolicyLosses(int threads) : workers_(threads) {}

  // Returns the mean loss and the mean absolute TD error.
  std::tuple<f64, f64> q_loss(In<f32> outputs, In<f32> next_target, MaybeIn<f32> next_online,
                              In<u8> mask, In<u8> next_mask, In<i32> action, In<f32> reward,
                              In<f32> discount, MaybeIn<f32> weight, bool dueling, f32 huber,
                              Out<f32> grad, Out<f32> error) {
    constexpr Call call("OffPolicyLosses.q_loss");
    const Rows<const u8> masks = call.rows(mask, "mask");
    const i64 heads = i64{masks.rows} * (i64{masks.columns} + 1);
    const f32* next = call.take(next_target, "next_target", heads);
    const f32* choosing = call.take(next_online, "next_online", heads);
    const i32* chosen = call.take(action, "action", masks.rows);
    call.within(chosen, masks.rows, "action", 0, masks.columns);
    QLoss job(
        {masks.rows, masks.columns, call.take(outputs, "outputs", heads), next,
         choosing ? choosing : next, masks.data, call.take(next_mask, "next_mask", masks.size()),
         chosen, call.take(reward, "reward", masks.rows),
         call.take(discount, "discount", masks.rows), call.take(weight, "weight", masks.rows)},
        {dueling, huber}, call.take(grad, "grad", heads), call.take(error, "error", masks.rows));
    run(job);
    return {job.loss(), job.mean_error()};
  }

  // Samples actions into the last columns of the critics' input; returns the mean log-density.
  f64 sample_actions(In<f32> head, In<f32> noise, Out<f32> critic_input, Out<f32> log_prob) {
    constexpr Call call("OffPolicyLosses.draw");
    const Squashed of = squashed(call, head, noise, critic_input);
    SquashedDraw job(of, call.take(log_prob, "log_prob", of.rows));
    run(job);
    return job.log_prob();
  }

  // Returns the loss.
  f64 critic_loss(In<f32> q, In<f32> next_q, In<f32> next_log_prob, In<f32> reward,
                  In<f32> discount, In<f32> weight, f32 temperature, Out<f32> grad,
                  Out<f32> error) {
    constexpr Call call("OffPolicyLosses.critic_loss");
    const int rows = call.count(call.size(reward, "reward"), "rows");
    const i64 both = i64{rows} * kCritics;
    CriticLoss job(
        {rows, call.take(q, "q", both), call.take(next_q, "next_q", both),
         call.take(next_log_prob, "next_log_prob", rows), call.take(reward, "reward", rows),
         call.take(discount, "discount", rows), call.take(weight, "weight", rows), temperature},
        call.take(grad, "grad", both), call.take(error, "error", rows));
    run(job);
    return job.loss();
  }

  // Returns the loss.
  f64 actor_loss(In<f32> q, In<f32> log_prob, f32 temperature, Out<f32> grad) {
    constexpr Call call("OffPolicyLosses.actor_loss");
    const int rows = call.count(call.size(log_prob, "log_prob"), "rows");
    const i64 both = i64{rows} * kCritics;
    ActorLoss job(rows, call.take(q, "q", both), call.take(log_prob, "log_prob", rows), temperature,
                  call.take(grad, "grad", both));
    run(job);
    return job.loss();
  }

  // critic_input: with actions in the last columns; critic_input_grad: its gradient.
  void sample_gradient(In<f32> head, In<f32> noise, Out<f32> critic_input,
                       In<f32> critic_input_grad, f32 log_prob_grad, Out<f32> grad) {
    constexpr Call call("OffPolicyLosses.draw_gradient");
    const Squashed of = squashed(call, head, noise, critic_input);
    const f32* input_grad =
        call.take(critic_input_grad, "critic_input_grad", call.size(critic_input, "critic_input"));
    f32* head_grad = call.take(grad, "grad", call.size(head, "head"));
    SquashedGradient job(of, input_grad + of.action_stride - of.box, of.action_stride,
                         log_prob_grad, head_grad);
    run(job);
  }

  void polyak_update(In<f32> weight, f32 tau, Out<f32> target) {
    constexpr Call call("OffPolicyLosses.follow");
    const i64 count = call.size(weight, "weight");
    const f32* from = call.take(weight, "weight", count);
    f32* to = call.take(target, "target", count);
    nb::gil_scoped_release released;
    PolyakUpdate job(from, count, tau, to);
    workers_.run(job);
  }

 private:
  template <int kValues>
  void run(RowSums<kValues>& job) {
    nb::gil_scoped_release released;
    if (job.small()) return ThreadPool::run_alone(job);
    workers_.run(job);
  }

  static Squashed squashed(const Call& call, const In<f32>& head, const In<f32>& noise,
                           const Out<f32>& critic_input) {
    const Rows<const f32> heads = call.rows(head, "head");
    const Rows<f32> reads = call.rows(critic_input, "critic_input");
    const int box = call.count(call.size(noise, "noise") / max(heads.rows, 1), "noise");
    const f32* drawn = call.take(noise, "noise", i64{heads.rows} * box);
    call.demand(reads.rows == heads.rows, "head and critic_input have different numbers of rows");
    call.demand(heads.columns >= 2 * i64{box} && reads.columns >= box,
                "head or critic_input has too few columns for the action");
    return {heads.rows,   box, heads.data, heads.columns, drawn, reads.data + (reads.columns - box),
            reads.columns};
  }

  Workers workers_;
};

}  // namespace

void bind_replay_steps(nb::module_& m) {
  nb::class_<OffPolicyLosses>(m, "OffPolicyLosses", "Losses and gradients of DQN and SAC.")
      .def(nb::init<int>(), "threads"_a)
      .def("q_loss", &OffPolicyLosses::q_loss, "outputs"_a, "next_target"_a, "next_online"_a.none(),
           "mask"_a, "next_mask"_a, "action"_a, "reward"_a, "discount"_a, "weight"_a.none(),
           "dueling"_a, "huber"_a, "grad"_a, "error"_a)
      .def("sample_actions", &OffPolicyLosses::sample_actions, "head"_a, "noise"_a,
           "critic_input"_a, "log_prob"_a)
      .def("critic_loss", &OffPolicyLosses::critic_loss, "q"_a, "next_q"_a, "next_log_prob"_a,
           "reward"_a, "discount"_a, "weight"_a, "temperature"_a, "grad"_a, "error"_a)
      .def("actor_loss", &OffPolicyLosses::actor_loss, "q"_a, "log_prob"_a, "temperature"_a,
           "grad"_a)
      .def("sample_gradient", &OffPolicyLosses::sample_gradient, "head"_a, "noise"_a,
           "critic_input"_a, "critic_input_grad"_a, "log_prob_grad"_a, "grad"_a)
      .def("polyak_update", &OffPolicyLosses::polyak_update, "weight"_a, "tau"_a, "target"_a);
}

}  // namespace sparring
