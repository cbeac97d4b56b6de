// Decisions searched together over worlds: playouts run side by side, so that a network evaluates
// the rows of all of them in one batch. On CPUs and in browsers.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/resample.hpp"
#include "search/batch.hpp"
#include "search/playout.hpp"

namespace sparring {

template <Game G>
class WorldsSearch final : public ThreadedSearch {
 public:
  using Config = typename G::Config;

  WorldsSearch(const Config& config, const WorldsOptions& options, i64 most_roots, u64 seed,
               int threads)
      : ThreadedSearch(most_roots, threads),
        options_(options),
        seed_(seed ^ kSearchSeed),
        slots_(slots_of(options.playouts, most_roots)),
        extra_bytes_(extra_bytes<G>(config)),
        belief_size_(belief_size<G>(config)) {
    const Shape shape = G::shape(config);
    row_bytes = shape.obs_bytes;
    head_width = choices = shape.actions;
    max_rows = most_roots * slots_ * G::kRows;
    obs = Array<u8>(max_rows * row_bytes);
    root_ = Array<WorldRoot<G>>(most_roots);
    world_ = Array<World>(most_roots);
    belief_ = Array<f32>(most_roots * belief_size_);
    extra_ = Array<u8>(most_roots * extra_bytes_);
    action_ = Array<i32>(most_roots * kWidth);
    logit_ = Array<f32>(most_roots * kWidth);
    candidate_ = Array<i32>(most_roots * options.considered);
    playout_ = Array<Playout<G>>(most_roots * slots_);
    playout_extra_ = Array<u8>(most_roots * slots_ * extra_bytes_);
    total_ = Array<f64>(most_roots * options.playouts);
    ended_ = Array<u8>(most_roots * options.playouts);
  }

  // Bytes of one of so many roots.
  static i64 bytes(const Config& config, const WorldsOptions& options, i64 roots) {
    const i64 extra = extra_bytes<G>(config), row = G::shape(config).obs_bytes;
    const i64 slot = i64{sizeof(Playout<G>)} + extra + G::kRows * row;
    return i64{sizeof(WorldRoot<G>) + sizeof(World)} + extra + kWidth * i64{8} +
           slots_of(options.playouts, roots) * slot + options.playouts * i64{9} +
           belief_size<G>(config) * i64{sizeof(f32)};
  }

  void believe(const f32* weights) override {
    std::copy_n(weights, roots * belief_size_, belief_.data());
    believes_ = true;
  }

  void set_step(f32 eta, f32 alpha) override {
    options_.eta = eta;
    options_.alpha = alpha;
  }

  void begin(const std::vector<SearchRoot>& given, bool) override {
    given_.clear();
    take(given);
  }

  void begin_worlds(const std::vector<SearchRoot>& worlds,
                    const std::vector<f64>& weights) override {
    given_.clear();
    for (const SearchRoot& world : worlds) {
      Given& copy = given_.emplace_back();
      std::memcpy(static_cast<void*>(&copy.env), world.env, sizeof copy.env);
      copy.extra.assign(world.extra, world.extra + extra_bytes_);
    }
    weight_ = weights;
    take({worlds[0]});
  }

  // An action of the improved policy is its mode, or drawn by Gumbel noise.
  void results(f32* policy, i32* visits, f32* q, f32* value, i32* chosen, f32*) const override {
    if constexpr (requires { G::check_failure(setting_.config); })
      G::check_failure(setting_.config);
    for (i64 t = 0; t < roots; ++t) {
      const WorldRoot<G>& root = root_[t];
      const Step step = improved(t);
      const int worlds = complete_worlds(t);
      const bool tried = worlds > 0;
      value[t] = tried ? 0 : root.value;
      Rng draws(seed_, root.game, episode_of(root, 0), Stream::kSearch, u32{1} << 20);
      f64 best = 0;
      for (int i = 0; i < root.actions; ++i) {
        const i64 to = t * choices + actions(t)[i];
        policy[to] = static_cast<f32>(step.policy[at(i)]);
        if (tried) value[t] += static_cast<f32>(step.policy[at(i)] * step.q[at(i)]);
        const f64 score = step.logit[at(i)] + (options_.noise ? gumbel(draws) : 0.0);
        if (i > 0 && score <= best) continue;
        best = score;
        chosen[t] = actions(t)[i];
      }
      for (int c = 0; tried && c < root.candidates; ++c) {
        const i64 to = t * choices + actions(t)[candidates(t)[c]];
        visits[to] = worlds;
        q[to] = static_cast<f32>(step.q[at(candidates(t)[c])]);
      }
    }
  }

  std::vector<int> line(i64 t) const override {
    const Step step = improved(t);
    int best = 0;
    for (int i = 1; i < root_[t].actions; ++i)
      if (step.logit[at(i)] > step.logit[at(best)]) best = i;
    return {actions(t)[best]};
  }

  std::vector<EdgeReport> edges(i64 t, int) const override {
    const Step step = improved(t);
    const u32 worlds = static_cast<u32>(complete_worlds(t));
    std::vector<EdgeReport> found;
    for (int i = 0; i < root_[t].actions; ++i)
      found.push_back({actions(t)[i], static_cast<f32>(step.prior[at(i)]), 0, 0, 0});
    for (int c = 0; worlds && c < root_[t].candidates; ++c) {
      EdgeReport& edge = found[at(candidates(t)[c])];
      edge.visits = worlds;
      edge.q = static_cast<f32>(step.q[at(candidates(t)[c])]);
    }
    return found;
  }

  int nodes(i64) const override { return 1; }
  int settled(i64 t) const override { return complete_worlds(t) * root_[t].candidates; }
  // Playouts that are still to be made, of a root that was evaluated.
  int left(i64 t) const { return root_[t].worlds * root_[t].candidates - root_[t].ended; }

 private:
  static constexpr i64 kBatch = 4096;  // playouts side by side, of all roots
#if defined(__wasm__)
  static constexpr i64 kEach = 1;  // a module evaluates rows one after the other
#else
  static constexpr i64 kEach = 256;  // and of one: a search by time ends after any of them
#endif
  static constexpr i64 kWidth = kMaxLegalOf<G>;

  struct World {
    Env<G> env;
    i32 number;  // -1: none
  };
  struct Given {
    Env<G> env;
    std::vector<u8> extra;
  };
  // Of every legal action: prior, mean return, logit after the step, improved policy.
  struct Step {
    std::vector<f64> prior, q, logit, policy;
  };

  static size_t at(int i) { return static_cast<size_t>(i); }
  static i64 slots_of(i64 playouts, i64 roots) {
    return max<i64>(1, min(min(kBatch / roots, kEach), playouts));
  }

  i32* actions(i64 t) const { return &action_[t * kWidth]; }
  f32* logits(i64 t) const { return &logit_[t * kWidth]; }
  i32* candidates(i64 t) const { return &candidate_[t * options_.considered]; }
  f64& total(i64 t, int number) const { return total_[t * options_.playouts + number]; }
  u8& has_ended(i64 t, int number) const { return ended_[t * options_.playouts + number]; }
  Player<G> player(i64 t, i64 slot) {
    const i64 number = t * slots_ + slot;
    return {options_, setting_, root_[t], playout_[number],
            playout_extra_.data() + number * extra_bytes_};
  }

  void take(const std::vector<SearchRoot>& given) {
    roots = static_cast<i64>(given.size());
    believes_ = false;
    setting_ = *static_cast<const Setting<G>*>(given[0].setting);
    setting_.seed = seed_;
    setting_.starts.count = 0;
    for (i64 t = 0; t < roots; ++t) {
      const SearchRoot& from = given[size_t(t)];
      WorldRoot<G>& root = root_[t];
      std::memset(static_cast<void*>(&root), 0, sizeof root);
      std::memcpy(static_cast<void*>(&root.env), from.env, sizeof root.env);
      std::memcpy(extra_.data() + t * extra_bytes_, from.extra, static_cast<size_t>(extra_bytes_));
      root.game = from.game;
      root.row = from.row;
      root.seat = root.env.game.seat(from.row);
      root.simulations = min(from.simulations, options_.playouts);
      seat_policies(root.env);
      world_[t].number = -1;
      for (i64 slot = 0; slot < slots_; ++slot) playout_[t * slots_ + slot].running = 0;
      std::memset(&has_ended(t, 0), 0, at(root.simulations));
    }
  }

  // The policy sits in every seat.
  void seat_policies(Env<G>& env) const {
    for (f32& reward : env.pending_reward) reward = 0;
    for (u16& count : env.skipped) count = 0;
    for (int seat = 0; seat < G::kMaxSeats; ++seat)
      env.player[seat] = static_cast<i16>(seat < setting_.shape.seats ? 0 : kNoPlayer);
    env.policy_seats = static_cast<u32>(setting_.shape.seats);
  }

  static u32 episode_of(const WorldRoot<G>& root, int world) {
    return root.env.episode * 0x9E3779B1u + root.env.length * 0x85EBCA77u +
           static_cast<u32>(world) * 0xC2B2AE3Du;
  }

  // Draws what the deciding seat does not know: the one place where worlds come from. The chance
  // that lies ahead is the world's as well.
  void draw_world(const WorldRoot<G>& root, int number, Env<G>& env) const {
    env = root.env;
    env.episode = episode_of(root, number + 1);
    Rng draws(~seed_, root.game, env.episode, Stream::kChance);  // as State::resample_hidden
    const f32* belief = believes_ ? &belief_[(&root - root_.data()) * belief_size_] : nullptr;
    resample_hidden(env.game, setting_.config, root.seat, draws, belief);
  }

  // The world of a playout; those of one world follow each other.
  const World& world_of(i64 t, int number) {
    World& world = world_[t];
    const int wanted = number / root_[t].candidates;
    if (world.number != wanted) {
      if (given_.empty()) {
        draw_world(root_[t], wanted, world.env);
      } else {
        world.env = given_[at(wanted)].env;
        seat_policies(world.env);
        world.env.episode = episode_of(root_[t], wanted + 1);
      }
      world.number = wanted;
    }
    return world;
  }

  i64 select_in(i64 t) override {
    WorldRoot<G>& root = root_[t];
    if (!root.evaluated) return 1;
    i64 rows = 0;
    for (i64 slot = 0; slot < slots_; ++slot) {
      Playout<G>& playout = playout_[t * slots_ + slot];
      while (!playout.running && root.started < root.worlds * root.candidates) start(t, slot);
      if (playout.running) rows += player(t, slot).rows();
    }
    return rows;
  }

  void start(i64 t, i64 slot) {
    WorldRoot<G>& root = root_[t];
    const Player<G> playing = player(t, slot);
    const int number = root.started++;
    const World& world = world_of(t, number);
    playing.at.env = world.env;
    const u8* extra =
        given_.empty() ? extra_.data() + t * extra_bytes_ : given_[at(world.number)].extra.data();
    copy_extra_state(playing.extra, extra, extra_bytes_);
    playing.begin(number, actions(t)[candidates(t)[number % root.candidates]]);
    note_end(t, playing.at);
  }

  void note_end(i64 t, const Playout<G>& playout) {
    if (playout.running) return;
    total(t, playout.number) = playout.total;
    has_ended(t, playout.number) = 1;
    WorldRoot<G>& root = root_[t];
    ++root.ended;
    const int last = root.worlds * root.candidates;
    while (root.ended_in_order < last && has_ended(t, root.ended_in_order)) ++root.ended_in_order;
  }

  void observe_in(i64 t, i64, u8* to) override {
    const WorldRoot<G>& root = root_[t];
    if (!root.evaluated)
      return call_observe(root.env.game, setting_.config, root.seat, to,
                          extra_.data() + t * extra_bytes_);
    for (i64 slot = 0; slot < slots_; ++slot) {
      const Player<G> playing = player(t, slot);
      if (!playing.at.running) continue;
      playing.observe(to);
      to += playing.rows() * row_bytes;
    }
  }

  void settle_in(i64 t, i64, const f32* policy, const f32* value) override {
    if (!root_[t].evaluated) return settle_root(t, policy, value[0]);
    for (i64 slot = 0; slot < slots_; ++slot) {
      const Player<G> playing = player(t, slot);
      if (!playing.at.running) continue;
      const int rows = playing.rows();
      playing.settle(policy, head_width, value);
      note_end(t, playing.at);
      policy += i64{rows} * head_width;
      value += rows;
    }
  }

  // Chooses the candidates: the most probable actions, so few that each is tried in `least` worlds.
  void settle_root(i64 t, const f32* policy, f32 value) {
    WorldRoot<G>& root = root_[t];
    root.evaluated = 1;
    root.value = value;
    Legal<G> legal[G::kRows];
    find_turn(root.env, setting_, extra_.data() + t * extra_bytes_, legal);
    legal[root.row].each([&](int action) {
      actions(t)[root.actions] = action;
      logits(t)[root.actions++] = policy[action];
    });
    if (root.actions < 2 || root.simulations < 2) return;
    const int most = max(2, root.simulations / options_.least);
    const int count = given_.empty() ? most : root.simulations / static_cast<int>(given_.size());
    root.candidates = min(min(root.actions, options_.considered), max(count, 1));
    root.worlds =
        given_.empty() ? root.simulations / root.candidates : static_cast<int>(given_.size());
    i32* kept = candidates(t);
    int held = 0;
    for (int i = 0; i < root.actions; ++i) {  // insertion into a sorted list
      int place = held;
      for (; place > 0 && logits(t)[i] > logits(t)[kept[place - 1]]; --place)
        if (place < root.candidates) kept[place] = kept[place - 1];
      if (place < root.candidates) kept[place] = i;
      held = min(held + 1, root.candidates);
    }
  }

  // Worlds in which every candidate was played to its end.
  int complete_worlds(i64 t) const {
    const WorldRoot<G>& root = root_[t];
    return root.candidates ? root.ended_in_order / root.candidates : 0;
  }

  f64 weight_of(int world) const { return given_.empty() ? 1.0 : weight_[at(world)]; }

  // One step of mirror descent from the policy; actions that were not tried count as the mean.
  Step improved(i64 t) const {
    const WorldRoot<G>& root = root_[t];
    const size_t count = at(root.actions);
    Step step{std::vector<f64>(count), std::vector<f64>(count), std::vector<f64>(count),
              std::vector<f64>(count)};
    log_softmax(logits(t), step.logit);
    for (size_t i = 0; i < count; ++i) step.prior[i] = exp_of(step.logit[i]);
    const int worlds = complete_worlds(t);
    if (worlds > 0) {
      const f64 eta = mean_returns(t, worlds, step);
      for (size_t i = 0; i < count; ++i)
        step.logit[i] = (step.logit[i] + eta * step.q[i]) / (1.0 + eta * options_.alpha);
    }
    log_softmax(step.logit.data(), step.logit);
    for (size_t i = 0; i < count; ++i) step.policy[i] = exp_of(step.logit[i]);
    return step;
  }

  // Fills q, and returns the step size: smaller where returns of the worlds disagree.
  f64 mean_returns(i64 t, int worlds, Step& step) const {
    const WorldRoot<G>& root = root_[t];
    std::vector<f64> sum(at(root.candidates)), square(at(root.candidates));
    f64 mass = 0, weight = 0, squared_weight = 0, mean = 0;
    for (int c = 0; c < root.candidates; ++c) mass += step.prior[at(candidates(t)[c])];
    for (int w = 0; w < worlds; ++w) {
      const f64* played = &total(t, w * root.candidates);
      f64 base = 0;
      for (int c = 0; c < root.candidates; ++c)
        base += step.prior[at(candidates(t)[c])] * played[c];
      base /= mass;
      const f64 heavy = weight_of(w);
      for (int c = 0; c < root.candidates; ++c) {
        sum[at(c)] += heavy * (played[c] - base);
        square[at(c)] += heavy * (played[c] - base) * (played[c] - base);
      }
      mean += heavy * base;
      weight += heavy;
      squared_weight += heavy * heavy;
    }
    mean /= weight;
    for (f64& q : step.q) q = mean;
    f64 variance = 0;
    for (int c = 0; c < root.candidates; ++c) {
      const f64 above = sum[at(c)] / weight;
      step.q[at(candidates(t)[c])] = mean + above;
      variance +=
          step.prior[at(candidates(t)[c])] / mass * (square[at(c)] / weight - above * above);
    }
    if (options_.caution == 0) return options_.eta;
    const f64 effective = weight * weight / squared_weight;
    if (effective < 1.5) return 0;  // a single world tells no error
    const f64 error = std::sqrt(max(variance, 0.0) / (effective - 1.0));
    return options_.eta / (1.0 + options_.caution * options_.eta * error);
  }

  template <class Number>
  static void log_softmax(const Number* logits, std::vector<f64>& out) {
    f64 top = -3.4e38, sum = 0;
    for (size_t i = 0; i < out.size(); ++i) top = max(top, static_cast<f64>(logits[i]));
    for (size_t i = 0; i < out.size(); ++i) sum += exp_of(static_cast<f64>(logits[i]) - top);
    const f64 log_sum = ln_of(sum);
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = max(static_cast<f64>(logits[i]) - top, -600.0) - log_sum;
  }

  static f64 gumbel(Rng& draws) {
    return -ln_of(-ln_of((static_cast<f64>(draws.next()) + 0.5) * (1.0 / 4294967296.0)));
  }

  WorldsOptions options_;
  u64 seed_;
  i64 slots_;
  int extra_bytes_, belief_size_;
  bool believes_ = false;
  Setting<G> setting_{};
  Array<WorldRoot<G>> root_;
  Array<World> world_;  // the last one of each root
  Array<u8> extra_, playout_extra_;
  Array<i32> action_, candidate_;  // legal actions; indices of those that are tried
  Array<f32> logit_, belief_;      // of actions; of what is hidden, by root
  Array<Playout<G>> playout_;
  Array<f64> total_;  // returns of all playouts
  Array<u8> ended_;
  std::vector<Given> given_;
  std::vector<f64> weight_;
};

}  // namespace sparring
