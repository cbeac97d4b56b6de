// What an optimiser step of DQN and SAC on a CPU does between the passes of networks.
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

void demand(bool right, const char* what) {
  if (!right) throw nb::value_error(what);
}

class ReplaySteps {
 public:
  explicit ReplaySteps(int threads) : workers_(threads) {}

  // Returns the mean loss and the mean error.
  std::tuple<f64, f64> q_loss(In<f32> said, In<f32> ahead, std::optional<In<f32>> chooser,
                              In<u8> mask, In<u8> next_mask, In<i32> action, In<f32> paid,
                              In<f32> discount, std::optional<In<f32>> weight, bool dueling,
                              f32 huber, Out<f32> grad, Out<f32> error) {
    const size_t rows = action.size(), actions = mask.shape(1);
    demand(said.size() == rows * (actions + 1) && ahead.size() == said.size() &&
               grad.size() == said.size() && (!chooser || chooser->size() == said.size()),
           "heads need a number for every action and a value");
    demand(mask.size() == rows * actions && next_mask.size() == mask.size() &&
               paid.size() == rows && discount.size() == rows && error.size() == rows &&
               (!weight || weight->size() == rows),
           "every decision needs all of its numbers");
    for (size_t i = 0; i < rows; ++i)
      demand(action.data()[i] >= 0 && static_cast<size_t>(action.data()[i]) < actions,
             "there is no such action");
    QLoss job({static_cast<int>(rows), static_cast<int>(actions), said.data(), ahead.data(),
               chooser ? chooser->data() : ahead.data(), mask.data(), next_mask.data(),
               action.data(), paid.data(), discount.data(), weight ? weight->data() : nullptr},
              {dueling, huber}, grad.data(), error.data());
    run(job);
    return {job.loss(), job.off()};
  }

  // Draws actions into the last columns of what critics read; returns the mean log-density.
  f64 draw(In<f32> head, In<f32> noise, Out<f32> read, Out<f32> log_prob) {
    SquashedDraw job(squashed(head, noise, read), log_prob.data());
    demand(log_prob.size() == head.shape(0), "every row needs a log-density");
    run(job);
    return job.log_prob();
  }

  // Returns the loss.
  f64 critic_loss(In<f32> q, In<f32> next_q, In<f32> next_log_prob, In<f32> paid, In<f32> discount,
                  In<f32> weight, f32 temperature, Out<f32> grad, Out<f32> error) {
    const size_t rows = paid.size();
    demand(q.size() == rows * kCritics && next_q.size() == q.size() && grad.size() == q.size() &&
               next_log_prob.size() == rows && discount.size() == rows && weight.size() == rows &&
               error.size() == rows,
           "every decision needs all of its numbers");
    CriticLoss job({static_cast<int>(rows), q.data(), next_q.data(), next_log_prob.data(),
                    paid.data(), discount.data(), weight.data(), temperature},
                   grad.data(), error.data());
    run(job);
    return job.loss();
  }

  // Returns the loss.
  f64 actor_loss(In<f32> q, In<f32> log_prob, f32 temperature, Out<f32> grad) {
    demand(q.size() == log_prob.size() * kCritics && grad.size() == q.size(),
           "every decision needs all of its numbers");
    ActorLoss job(static_cast<int>(log_prob.size()), q.data(), log_prob.data(), temperature,
                  grad.data());
    run(job);
    return job.loss();
  }

  // read, read_grad: what critics read, with actions last, and its gradient.
  void draw_gradient(In<f32> head, In<f32> noise, Out<f32> read, In<f32> read_grad, f32 of_log_prob,
                     Out<f32> grad) {
    demand(read_grad.size() == read.size() && grad.size() == head.size(),
           "gradients have the shape of what they are of");
    const Squashed of = squashed(head, noise, read);
    SquashedGradient job(of, read_grad.data() + of.action_stride - of.box, of.action_stride,
                         of_log_prob, grad.data());
    run(job);
  }

  void follow(In<f32> weight, f32 tau, Out<f32> target) {
    demand(weight.size() == target.size(), "a target has the size of what it follows");
    nb::gil_scoped_release released;
    FollowJob job(weight.data(), static_cast<i64>(weight.size()), tau, target.data());
    workers_.run(job);
  }

 private:
  template <int kValues>
  void run(RowSums<kValues>& job) {
    nb::gil_scoped_release released;
    if (job.small()) return Crew::run_alone(job);
    workers_.run(job);
  }

  static Squashed squashed(const In<f32>& head, const In<f32>& noise, const Out<f32>& read) {
    const size_t rows = head.shape(0), box = noise.size() / most(rows, size_t{1});
    demand(noise.size() == rows * box && head.shape(1) >= 2 * box && read.shape(0) == rows &&
               read.shape(1) >= box,
           "every row needs a head, noise and room for its action");
    return {
        static_cast<int>(rows),          static_cast<int>(box), head.data(),
        static_cast<i64>(head.shape(1)), noise.data(),          read.data() + (read.shape(1) - box),
        static_cast<i64>(read.shape(1))};
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
