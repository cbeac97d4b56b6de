// What an optimizer step of DQN and SAC on a CPU does between the passes of networks.
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

class ReplaySteps {
 public:
  explicit ReplaySteps(int threads) : workers_(threads) {}

  // Returns the mean loss and the mean error.
  std::tuple<f64, f64> q_loss(In<f32> said, In<f32> ahead, MaybeIn<f32> chooser, In<u8> mask,
                              In<u8> next_mask, In<i32> action, In<f32> paid, In<f32> discount,
                              MaybeIn<f32> weight, bool dueling, f32 huber, Out<f32> grad,
                              Out<f32> error) {
    constexpr Call call("ReplaySteps.q_loss");
    const Rows<const u8> masks = call.rows(mask, "mask");
    const i64 heads = i64{masks.rows} * (i64{masks.columns} + 1);
    const f32* next = call.take(ahead, "ahead", heads);
    const f32* choosing = call.take(chooser, "chooser", heads);
    const i32* chosen = call.take(action, "action", masks.rows);
    call.within(chosen, masks.rows, "action", 0, masks.columns);
    QLoss job(
        {masks.rows, masks.columns, call.take(said, "said", heads), next,
         choosing ? choosing : next, masks.data, call.take(next_mask, "next_mask", masks.size()),
         chosen, call.take(paid, "paid", masks.rows), call.take(discount, "discount", masks.rows),
         call.take(weight, "weight", masks.rows)},
        {dueling, huber}, call.take(grad, "grad", heads), call.take(error, "error", masks.rows));
    run(job);
    return {job.loss(), job.off()};
  }

  // Draws actions into the last columns of what critics read; returns the mean log-density.
  f64 draw(In<f32> head, In<f32> noise, Out<f32> read, Out<f32> log_prob) {
    constexpr Call call("ReplaySteps.draw");
    const Squashed of = squashed(call, head, noise, read);
    SquashedDraw job(of, call.take(log_prob, "log_prob", of.rows));
    run(job);
    return job.log_prob();
  }

  // Returns the loss.
  f64 critic_loss(In<f32> q, In<f32> next_q, In<f32> next_log_prob, In<f32> paid, In<f32> discount,
                  In<f32> weight, f32 temperature, Out<f32> grad, Out<f32> error) {
    constexpr Call call("ReplaySteps.critic_loss");
    const int rows = call.count(call.size(paid, "paid"), "rows");
    const i64 both = i64{rows} * kCritics;
    CriticLoss job(
        {rows, call.take(q, "q", both), call.take(next_q, "next_q", both),
         call.take(next_log_prob, "next_log_prob", rows), call.take(paid, "paid", rows),
         call.take(discount, "discount", rows), call.take(weight, "weight", rows), temperature},
        call.take(grad, "grad", both), call.take(error, "error", rows));
    run(job);
    return job.loss();
  }

  // Returns the loss.
  f64 actor_loss(In<f32> q, In<f32> log_prob, f32 temperature, Out<f32> grad) {
    constexpr Call call("ReplaySteps.actor_loss");
    const int rows = call.count(call.size(log_prob, "log_prob"), "rows");
    const i64 both = i64{rows} * kCritics;
    ActorLoss job(rows, call.take(q, "q", both), call.take(log_prob, "log_prob", rows), temperature,
                  call.take(grad, "grad", both));
    run(job);
    return job.loss();
  }

  // read, read_grad: what critics read, with actions last, and its gradient.
  void draw_gradient(In<f32> head, In<f32> noise, Out<f32> read, In<f32> read_grad, f32 of_log_prob,
                     Out<f32> grad) {
    constexpr Call call("ReplaySteps.draw_gradient");
    const Squashed of = squashed(call, head, noise, read);
    const f32* above = call.take(read_grad, "read_grad", call.size(read, "read"));
    f32* back = call.take(grad, "grad", call.size(head, "head"));
    SquashedGradient job(of, above + of.action_stride - of.box, of.action_stride, of_log_prob,
                         back);
    run(job);
  }

  void follow(In<f32> weight, f32 tau, Out<f32> target) {
    constexpr Call call("ReplaySteps.follow");
    const i64 count = call.size(weight, "weight");
    const f32* from = call.take(weight, "weight", count);
    f32* to = call.take(target, "target", count);
    nb::gil_scoped_release released;
    FollowJob job(from, count, tau, to);
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
                           const Out<f32>& read) {
    const Rows<const f32> heads = call.rows(head, "head");
    const Rows<f32> reads = call.rows(read, "read");
    const int box = call.count(call.size(noise, "noise") / most(heads.rows, 1), "noise");
    const f32* drawn = call.take(noise, "noise", i64{heads.rows} * box);
    call.demand(reads.rows == heads.rows, "head and read have other numbers of rows");
    call.demand(heads.columns >= 2 * i64{box} && reads.columns >= box,
                "a row has too few numbers for its action");
    return {heads.rows,   box, heads.data, heads.columns, drawn, reads.data + (reads.columns - box),
            reads.columns};
  }

  Workers workers_;
};

}  // namespace

void bind_replay_steps(nb::module_& m) {
  nb::class_<ReplaySteps>(m, "ReplaySteps", "What DQN and SAC do between passes of networks.")
      .def(nb::init<int>(), "threads"_a)
      .def("q_loss", &ReplaySteps::q_loss, "said"_a, "ahead"_a, "chooser"_a.none(), "mask"_a,
           "next_mask"_a, "action"_a, "paid"_a, "discount"_a, "weight"_a.none(), "dueling"_a,
           "huber"_a, "grad"_a, "error"_a)
      .def("draw", &ReplaySteps::draw, "head"_a, "noise"_a, "read"_a, "log_prob"_a)
      .def("critic_loss", &ReplaySteps::critic_loss, "q"_a, "next_q"_a, "next_log_prob"_a, "paid"_a,
           "discount"_a, "weight"_a, "temperature"_a, "grad"_a, "error"_a)
      .def("actor_loss", &ReplaySteps::actor_loss, "q"_a, "log_prob"_a, "temperature"_a, "grad"_a)
      .def("draw_gradient", &ReplaySteps::draw_gradient, "head"_a, "noise"_a, "read"_a,
           "read_grad"_a, "of_log_prob"_a, "grad"_a)
      .def("follow", &ReplaySteps::follow, "weight"_a, "tau"_a, "target"_a);
}

}  // namespace sparring
