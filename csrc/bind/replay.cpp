// The replay on the host: loops over the functions of core/replay.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/rules.hpp"
#include "core/replay.hpp"
#include "core/thread_pool.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sparring {
namespace {

// Passes over items, one after the other; the items of a pass in chunks, for several threads.
class Passes final : public Job {
 public:
  using Pass = std::function<void(int chunk, int begin, int end)>;
  static constexpr int kChunk = 2048;

  void add(int items, Pass pass) { passes_.push_back({items, std::move(pass)}); }

  int open(int phase) override {
    if (static_cast<size_t>(phase) == passes_.size()) return -1;
    return chunks_of(passes_[static_cast<size_t>(phase)].items);
  }

  void run(int phase, int chunk) override {
    const auto& [items, pass] = passes_[static_cast<size_t>(phase)];
    pass(chunk, chunk * kChunk, min((chunk + 1) * kChunk, items));
  }

  static int chunks_of(int items) { return (items + kChunk - 1) / kChunk; }

 private:
  struct Item {
    int items;
    Pass pass;
  };
  std::vector<Item> passes_;
};

// Adds passes that sum the nodes above some leaves anew. A level that has not many more nodes than
// there are leaves is cheaper to sum as a whole.
void add_sums(Passes& passes, const SumTree& tree, const std::vector<int>& leaves) {
  for (int level = 1; level <= tree_height(tree.leaves); ++level) {
    const TreeLevel at = tree_level(tree.leaves, level);
    if (static_cast<size_t>(at.nodes) <= 4 * leaves.size()) {
      passes.add(at.nodes, [&tree, at](int, int begin, int end) {
        for (int node = begin; node < end; ++node) sum_node(tree, at, node);
      });
      continue;
    }
    passes.add(1, [&tree, &leaves, at](int, int, int) {
      int last = -1;
      for (const int leaf : leaves) {  // neighbors come one after another
        const int node = node_above(leaf, at.level);
        if (node != last) sum_node(tree, at, node);
        last = node;
      }
    });
  }
}

void prefetch(const void* from, i64 bytes) {
  constexpr i64 kLine = 64;
  const char* at = static_cast<const char*>(from);
  for (i64 i = 0; i < min(bytes, 8 * kLine); i += kLine) __builtin_prefetch(at + i);
}

// What a rollout brings, by place; `RolloutView` and `Links` say more about it.
struct RolloutColumns {
  int pending_count, rows, learner;
  const i16* policy;
  const i8* seat;
  const u8 *obs, *mask;
  const i32* action;
  const f32* numbers;
  const u8* end;
  const i32* next;
  const f32 *reward, *discount;
  const i32* pending_rows;  // [carried]
  int cuts;
  i64 cut_places;
  const i32* cut_entry;  // by place in `final_value`: which last row stands there, -1 if none does
  const f32* cut_sign;   // likewise: -1 where that row is the other seat's
  const u8 *cut_obs, *cut_mask;
  const u32* goal_result;  // what came of goals; null if the ring does not keep it

  int indices() const { return pending_count + rows; }
  bool is_learner(int row) const { return policy[row] == learner && seat[row] >= 0; }
  // Which last row follows a decision before a cut, -1 if none does.
  int entry(int index) const {
    return end[index] == kTruncated && cuts ? cut_entry[next[index]] : -1;
  }
};

// The columns belong to Python and live as long as this does. Who fills them says so by setting a
// count; they are then checked before they are used.
class ReplayRing {
 public:
  ReplayRing(int actions, int box, Out<u8> obs, Out<u64> mask, Out<u8> action, Out<i32> next,
             Out<u8> end, Out<f32> reward, Out<f32> discount, Out<i64> open, MaybeOut<u32> weight,
             MaybeOut<u64> sums, MaybeOut<u32> goal_result, int threads)
      : thread_pool_(max(threads, 1) - 1),
        columns_{obs, mask, action, next, end, reward, discount, open, weight, sums, goal_result} {
    constexpr Call call("ReplayRing");
    call.demand(call.count(actions, "actions") == 0 || call.count(box, "box") == 0,
                "an action is one of several, or has numbers");
    const Rows<u8> rows = call.rows(obs, "obs"), actions_at = call.rows(action, "action");
    ring_.capacity = call.between(rows.rows, "capacity", 1, kMaxCapacity);
    ring_.row_bytes = rows.columns;
    ring_.actions = actions;
    ring_.box = call.between(box, "box", 0, kMaxBox);
    ring_.action_bytes = actions_at.columns;
    const i64 indices = ring_.capacity;
    call.demand(
        actions_at.rows == indices && (box ? ring_.action_bytes == 4 * box
                                           : ring_.action_bytes == 2 || ring_.action_bytes == 4),
        "an action takes two or four bytes, or four for every number");
    ring_.obs = rows.data;
    ring_.mask = call.take(mask, "mask", indices * ring_.mask_words());
    ring_.action = actions_at.data;
    ring_.next = call.take(next, "next", indices);
    ring_.end = call.take(end, "end", indices);
    ring_.reward = call.take(reward, "reward", indices);
    ring_.discount = call.take(discount, "discount", indices);
    pending_count_ = call.count(call.size(open, "pending"), "pending");
    open_ = call.take(open, "pending", pending_count_);
    call.demand(!weight == !sums, "weight and sums go together: give both or none");
    tree_ = {ring_.capacity, call.take(weight, "weight", indices),
             call.take(sums, "sums", tree_sums(ring_.capacity))};
    goal_result_ = call.take(goal_result, "goal_result", indices);
  }

  i64 first() const { return first_; }
  i64 head() const { return head_; }
  i64 count() const { return count_; }
  u32 highest() const { return highest_; }
  void set_first(i64 to) { set(first_, to); }
  void set_head(i64 to) { set(head_, to); }
  void set_count(i64 to) { set(count_, to); }
  void set_highest(u32 to) { highest_ = to; }

  // Returns how many entries ago the samples were stored, summed up.
  i64 sample(u64 seed, u32 number, int n_step, f32 correction, Out<u8> obs, Out<u8> mask,
             MaybeOut<i32> action, MaybeOut<f32> numbers, Out<f32> reward, Out<f32> discount,
             Out<u8> next_obs, Out<u8> next_mask, Out<f32> weight, Out<i64> indices,
             const Goals* goals, const std::vector<f32>& rewards, f32 share) {
    constexpr Call call("ReplayRing.sample");
    check_columns(call);
    call.demand(count_ > 0, "nothing can be sampled yet");
    call.between(n_step, "n_step", 1, kMaxSteps);
    const int batch = call.count(call.size(indices, "indices"), "batch");
    const i64 bytes = i64{batch} * ring_.row_bytes, masks = i64{batch} * ring_.actions;
    call.demand(ring_.box ? !!numbers : !!action, "there is no room for the actions");
    const SamplesView out{call.take(obs, "obs", bytes),
                          call.take(mask, "mask", masks),
                          call.take(action, "action", batch),
                          call.take(numbers, "numbers", i64{batch} * ring_.box),
                          call.take(reward, "reward", batch),
                          call.take(discount, "discount", batch),
                          call.take(next_obs, "next_obs", bytes),
                          call.take(next_mask, "next_mask", masks),
                          call.take(weight, "weight", batch),
                          call.take(indices, "indices", batch)};
    const u32* goal_results = goal_result_;
    if (goals) check_goals(call, *goals, rewards);
    nb::gil_scoped_release released;
    const int from = index_of(first_), fill = static_cast<int>(head_ - first_);
    std::vector<i64> ages(static_cast<size_t>(Passes::chunks_of(batch)));
    std::vector<u32> min_weights(ages.size(), ~u32{0});
    after_.resize(static_cast<size_t>(batch));
    // Every pass asks the memory for what the next one reads: most of it is far away.
    Passes passes;
    passes.add(batch, [&](int chunk, int begin, int end) {
      i64 age = 0;
      u32 lowest = ~u32{0};
      for (int i = begin; i < end; ++i) {
        Rng rng = sample_rng(seed, i, number);
        const int index = tree_.leaf ? draw_leaf(tree_, rng) : pick(ring_, from, fill, rng);
        if (tree_.leaf) lowest = min(lowest, tree_.leaf[index]);
        age += fill - wrap(index - from, ring_.capacity);
        out.index[i] = index;
        prefetch_entry(index, true);
      }
      ages[static_cast<size_t>(chunk)] = age;
      min_weights[static_cast<size_t>(chunk)] = lowest;
    });
    passes.add(batch, [&](int, int begin, int end) {
      for (int i = begin; i < end; ++i) {
        NStepReturn& after = after_[static_cast<size_t>(i)];
        after = n_step_return(ring_, static_cast<int>(out.index[i]), n_step);
        prefetch_entry(after.index, false);
      }
    });
    passes.add(batch, [&](int, int begin, int end) {
      u32 lowest = ~u32{0};
      for (const u32 one : min_weights) lowest = min(lowest, one);
      for (int i = begin; i < end; ++i) {
        const int index = static_cast<int>(out.index[i]);
        take_sample(ring_, out, i, index, after_[static_cast<size_t>(i)]);
        out.weight[i] = tree_.leaf ? correction_of(tree_.leaf[index], lowest, correction) : 1.0f;
        if (goals && draws_hindsight(seed, static_cast<u32>(i), number, share))
          goals->of->relabel_sample(goals->config.data(), rewards.data(), ring_, goal_results, out,
                                    i, n_step);
      }
    });
    run(passes, batch);
    i64 sum = 0;
    for (const i64 age : ages) sum += age;
    return sum;
  }

  // Of a decision that is named twice the larger error counts, whatever the order.
  void reprioritize(In<i64> indices, In<f32> error, f32 exponent) {
    constexpr Call call("ReplayRing.reprioritize");
    call.demand(tree_.leaf, "the ring has no priorities");
    const int batch = call.count(call.size(indices, "indices"), "batch");
    const i64* at = call.take(indices, "indices", batch);
    const f32* errors = call.take(error, "error", batch);
    call.within(at, batch, "indices", 0, ring_.capacity);
    nb::gil_scoped_release released;
    std::vector<u32> weights(static_cast<size_t>(batch));
    Passes passes;
    passes.add(batch, [&](int, int begin, int end) {
      for (int i = begin; i < end; ++i)
        weights[static_cast<size_t>(i)] = weight_of(errors[i], exponent);
    });
    passes.add(1, [&](int, int, int) { put_weights(at, weights); });
    touched_.assign(at, at + batch);
    add_sums(passes, tree_, touched_);
    run(passes, batch);
  }

  // Weights were written: sums the whole tree anew.
  void sum_all() {
    Call("ReplayRing.sum_all").demand(tree_.leaf, "the ring has no priorities");
    Passes passes;
    touched_.assign(static_cast<size_t>(tree_.leaves), 0);
    add_sums(passes, tree_, touched_);
    run(passes, tree_.leaves);
  }

  void push(int learner, In<i16> policy, In<i8> seat, In<u8> obs, In<u8> mask, MaybeIn<i32> action,
            MaybeIn<f32> numbers, In<u8> end, In<i32> next, In<f32> reward, In<f32> discount,
            In<i32> pending_rows, MaybeIn<i32> cut_entry, MaybeIn<f32> cut_sign,
            MaybeIn<u8> cut_obs, MaybeIn<u8> cut_mask, MaybeIn<u32> goal_result) {
    constexpr Call call("ReplayRing.push");
    check_columns(call);
    RolloutColumns b{};
    b.pending_count = pending_count_;
    b.rows = call.count(call.size(policy, "policy"), "rows");
    b.learner = learner;
    b.policy = call.take(policy, "policy", b.rows);
    b.seat = call.take(seat, "seat", b.rows);
    const i64 at = call.count(i64{b.pending_count} + b.rows, "indices");
    b.obs = call.take(obs, "obs", at * ring_.row_bytes);
    b.mask = call.take(mask, "mask", at * ring_.actions);
    call.demand(ring_.box ? !!numbers : !!action, "what was done is missing");
    b.action = call.take(action, "action", at);
    b.numbers = call.take(numbers, "numbers", at * ring_.box);
    b.end = call.take(end, "end", at);
    b.next = call.take(next, "next", at);
    b.reward = call.take(reward, "reward", at);
    b.discount = call.take(discount, "discount", at);
    b.pending_rows = call.take(pending_rows, "pending_rows", b.pending_count);
    call.within(b.pending_rows, b.pending_count, "pending_rows", -1, at);
    if (cut_obs) take_cuts(call, b, cut_entry, cut_sign, *cut_obs, cut_mask);
    const u32* goal_results = call.take(goal_result, "goal_result", at);
    b.goal_result = goal_result_ ? goal_results : nullptr;
    check_links(call, b);
    nb::gil_scoped_release released;
    touched_.clear();
    allocate(b);
    store_rows(b);
    store_links(b);
    store_goal_results(b);
    for (int i = 0; i < b.pending_count; ++i)
      open_[i] = b.pending_rows[i] < 0 ? -1 : serial_[static_cast<size_t>(b.pending_rows[i])];
    if (!tree_.leaf) return;
    Passes passes;
    add_sums(passes, tree_, touched_);
    run(passes, static_cast<int>(touched_.size()));
  }

 private:
  static constexpr int kMaxCapacity = 1 << 30, kMaxBox = 1 << 16, kMaxSteps = 64;
  static constexpr i64 kMaxSerial = i64{1} << 60;

  void set(i64& number, i64 to) {
    Call("ReplayRing").demand(to >= 0 && to <= kMaxSerial, "there is no such serial number");
    number = to;
    checked_ = false;
  }

  // What addresses memory in columns that Python filled, and what a sampler walks along: links lead
  // to what was stored later. Places that hold no decision are made to lead nowhere.
  void check_columns(const Call& call) {
    if (checked_) return;
    const i64 fill = head_ - first_;
    call.demand(fill >= 0 && fill <= ring_.capacity,
                "the ring holds more than it has room for, or less than nothing");
    i64 found = 0;
    for (int index = 0; index < ring_.capacity; ++index) {
      const i64 age = wrap(index - index_of(first_), ring_.capacity);
      if (age >= fill) ring_.end[index] = kNotASample;
      if (ring_.end[index] == kNotASample) {
        ring_.next[index] = index;
        ring_.discount[index] = 0;
        continue;
      }
      ++found;
      call.index(ring_.next[index], "next", ring_.capacity);
      check_next(call, index, fill - age);
    }
    call.demand(found == count_, "count is another than that of decisions in the ring");
    for (int i = 0; i < pending_count_; ++i)
      call.demand(open_[i] >= -1 && open_[i] < head_, "an open decision was not stored yet");
    checked_ = true;
  }

  // left: entries from a place on, itself included.
  void check_next(const Call& call, int index, i64 left) const {
    const int ahead = wrap(ring_.next[index] - index, ring_.capacity);
    call.demand(ahead < left && (ahead > 0 || ring_.discount[index] == 0),
                "a decision is followed by one that was not stored behind it");
    call.demand(ahead > 0 || ring_.end[index] != kToNext || !goal_result_,
                "a decision that goes on is followed by itself");
  }

  void check_goals(const Call& call, const Goals& goals, const std::vector<f32>& rewards) const {
    call.demand(goal_result_ && ring_.box == 0, "the ring does not keep what came of goals");
    call.demand(goals.shape.actions == ring_.actions && goals.shape.obs_bytes <= ring_.row_bytes,
                "the goals are those of another game");
    check_weights(call, rewards, goals.weights);
  }

  void take_cuts(const Call& call, RolloutColumns& b, const MaybeIn<i32>& entry,
                 const MaybeIn<f32>& sign, const In<u8>& obs, const MaybeIn<u8>& mask) const {
    call.demand(entry && sign && mask, "the last rows of cut games are not complete");
    const Rows<const u8> rows = call.rows(obs, "cut_obs");
    call.demand(rows.columns == ring_.row_bytes, "cut_obs has rows of another length");
    b.cuts = rows.rows;
    b.cut_places = call.size(*entry, "cut_entry");
    b.cut_entry = call.take(entry, "cut_entry", b.cut_places);
    b.cut_sign = call.take(sign, "cut_sign", b.cut_places);
    b.cut_obs = rows.data;
    b.cut_mask = call.take(mask, "cut_mask", i64{b.cuts} * ring_.actions);
    call.within(b.cut_entry, b.cut_places, "cut_entry", -1, b.cuts);
  }

  // A decision goes on at a later one of the learner's own, or at a row of the cuts.
  static void check_links(const Call& call, const RolloutColumns& b) {
    for (int at = 0; at < b.indices(); ++at) {
      const i32 next = b.next[at];
      if (b.end[at] == kToNext)
        call.demand(next > at && next >= b.pending_count && next < b.indices() &&
                        b.is_learner(next - b.pending_count),
                    "next names no later decision of the learner");
      if (b.end[at] == kTruncated && b.cuts) call.index(next, "next", b.cut_places);
    }
  }

  int index_of(i64 serial) const { return static_cast<int>(serial % ring_.capacity); }

  // A few items are done before another thread is awake.
  void run(Passes& passes, int items) {
    if (thread_pool_.workers() == 0 || items <= Passes::kChunk)
      return ThreadPool::run_alone(passes);
    thread_pool_.submit(passes);
    thread_pool_.wait(passes, true);
  }

  void put_weights(const i64* indices, const std::vector<u32>& weights) {
    for (size_t i = 0; i < weights.size(); ++i) tree_.leaf[indices[i]] = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (ring_.end[indices[i]] == kNotASample) continue;
      u32& leaf = tree_.leaf[indices[i]];
      leaf = max(leaf, weights[i]);
      highest_ = max(highest_, leaf);
    }
  }

  void prefetch_entry(i64 index, bool decision) const {
    prefetch(ring_.obs + index * ring_.row_bytes, ring_.row_bytes);
    if (ring_.actions) prefetch(ring_.mask + index * ring_.mask_words(), 8 * ring_.mask_words());
    if (!decision) return;
    prefetch(ring_.next + index, 1);
    prefetch(ring_.reward + index, 1);
    prefetch(ring_.discount + index, 1);
    prefetch(ring_.action + index * ring_.action_bytes, 1);
  }

  // Gives every decision a serial number, then every last row that follows one; forgets what lies
  // at their places.
  void allocate(const RolloutColumns& b) {
    i64 next_serial = head_;
    serial_.assign(static_cast<size_t>(b.indices()), -1);
    for (int i = 0; i < b.pending_count; ++i) serial_[static_cast<size_t>(i)] = open_[i];
    for (int row = 0; row < b.rows; ++row)
      if (b.is_learner(row)) serial_[static_cast<size_t>(b.pending_count + row)] = next_serial++;
    last_.assign(static_cast<size_t>(b.cuts), -1);
    for (int index = 0; b.cuts && index < b.indices(); ++index)
      if (b.entry(index) >= 0) last_[static_cast<size_t>(b.entry(index))] = 0;
    for (i64& last : last_)
      if (last == 0) last = next_serial++;
    if (next_serial - head_ > ring_.capacity)
      Call("ReplayRing.push").refuse("the rollout does not fit");
    for (; head_ < next_serial; ++head_) clear_entry(index_of(head_));
    first_ = max(first_, head_ - ring_.capacity);
  }

  void clear_entry(int index) {
    count_ -= ring_.end[index] != kNotASample;
    ring_.end[index] = kNotASample;
    if (tree_.leaf) set_weight(index, 0);
  }

  void set_weight(int index, u32 weight) {
    tree_.leaf[index] = weight;
    touched_.push_back(index);
  }

  void store_rows(const RolloutColumns& b) const {
    const i64 bytes = ring_.row_bytes;
    for (int row = 0; row < b.rows; ++row) {
      if (!b.is_learner(row)) continue;
      const i64 from = b.pending_count + row;
      const int index = index_of(serial_[static_cast<size_t>(from)]);
      store_row(ring_, index, b.obs + from * bytes, b.mask + from * ring_.actions);
      if (ring_.box)
        store_numbers(ring_, index, b.numbers + from * ring_.box);
      else
        store_action(ring_, index, b.action[from]);
    }
    for (i64 cut = 0; cut < b.cuts; ++cut)
      if (const i64 serial = last_[static_cast<size_t>(cut)]; serial >= 0)
        store_row(ring_, index_of(serial), b.cut_obs + cut * bytes,
                  b.cut_mask + cut * ring_.actions);
  }

  // A decision gets its record when it is stored, or while it is still open.
  void store_goal_results(const RolloutColumns& b) const {
    if (!b.goal_result) return;
    for (int at = 0; at < b.indices(); ++at)
      if (const i64 serial = serial_[static_cast<size_t>(at)]; serial >= first_)
        goal_result_[index_of(serial)] = b.goal_result[at];
    for (const i64 serial : last_)
      if (serial >= first_) goal_result_[index_of(serial)] = kNoGoalResult;
  }

  // Decisions that were overwritten while they were open are skipped.
  void store_links(const RolloutColumns& b) {
    for (int at = 0; at < b.indices(); ++at) {
      const i64 serial = serial_[static_cast<size_t>(at)];
      if (b.end[at] == kNotASample || serial < first_) continue;
      i64 next = -1;
      f32 discount = b.discount[at];
      if (b.end[at] == kToNext) next = serial_[static_cast<size_t>(b.next[at])];
      if (b.entry(at) >= 0) {
        next = last_[static_cast<size_t>(b.entry(at))];
        discount *= b.cut_sign[b.next[at]];
      }
      const int index = index_of(serial);
      store_link(ring_, index, b.end[at], next < 0 ? -1 : index_of(next), b.reward[at], discount);
      if (tree_.leaf) set_weight(index, highest_);
      ++count_;
    }
  }

  // Keeps what the views below point to.
  using Columns = std::tuple<Out<u8>, Out<u64>, Out<u8>, Out<i32>, Out<u8>, Out<f32>, Out<f32>,
                             Out<i64>, MaybeOut<u32>, MaybeOut<u64>, MaybeOut<u32>>;

  i64 first_ = 0;       // the oldest serial number that counts
  i64 head_ = 0;        // the serial number that comes next
  i64 count_ = 0;       // decisions that can be sampled
  u32 highest_ = kOne;  // of all weights so far
  bool checked_ = false;

  ThreadPool thread_pool_;
  Columns columns_;
  i64* open_ = nullptr;  // serial numbers of decisions that are still open, -1 where there is none
  int pending_count_ = 0;  // of those
  u32* goal_result_ = nullptr;
  RingView ring_{};
  SumTree tree_{};
  std::vector<i64> serial_, last_;  // of the rollout's places, and of its last rows
  std::vector<int> touched_;
  std::vector<NStepReturn> after_;
};

}  // namespace

void bind_replay(nb::module_& m) {
  nb::class_<ReplayRing>(m, "ReplayRing", "Stores and samples decisions in columns of Python's.")
      .def(nb::init<int, int, Out<u8>, Out<u64>, Out<u8>, Out<i32>, Out<u8>, Out<f32>, Out<f32>,
                    Out<i64>, MaybeOut<u32>, MaybeOut<u64>, MaybeOut<u32>, int>(),
           "actions"_a, "box"_a, "obs"_a, "mask"_a, "action"_a, "next"_a, "end"_a, "reward"_a,
           "discount"_a, "pending"_a, "weight"_a.none(), "sums"_a.none(), "goal_result"_a.none(),
           "threads"_a)
      .def_prop_rw("first", &ReplayRing::first, &ReplayRing::set_first)
      .def_prop_rw("head", &ReplayRing::head, &ReplayRing::set_head)
      .def_prop_rw("count", &ReplayRing::count, &ReplayRing::set_count)
      .def_prop_rw("highest", &ReplayRing::highest, &ReplayRing::set_highest)
      .def("push", &ReplayRing::push, "learner"_a, "policy"_a, "seat"_a, "obs"_a, "mask"_a,
           "action"_a.none(), "numbers"_a.none(), "end"_a, "next"_a, "reward"_a, "discount"_a,
           "pending_rows"_a, "cut_entry"_a.none(), "cut_sign"_a.none(), "cut_obs"_a.none(),
           "cut_mask"_a.none(), "goal_result"_a.none())
      .def("sample", &ReplayRing::sample, "seed"_a, "number"_a, "n_step"_a, "correction"_a, "obs"_a,
           "mask"_a, "action"_a.none(), "numbers"_a.none(), "reward"_a, "discount"_a, "next_obs"_a,
           "next_mask"_a, "weight"_a, "indices"_a, "goals"_a.none() = nb::none(),
           "reward_weights"_a = std::vector<f32>{}, "share"_a = 0.0f)
      .def("reprioritize", &ReplayRing::reprioritize, "indices"_a, "error"_a, "exponent"_a)
      .def("sum_all", &ReplayRing::sum_all);
  m.def(
      "tree_sums",
      [](int leaves) {
        return tree_sums(
            Call("tree_sums").between(leaves, "leaves", 1, std::numeric_limits<i32>::max()));
      },
      "leaves"_a);
  m.attr("TREE_FAN") = kFan;
  m.attr("WEIGHT_OF_ONE") = kOne;
}

}  // namespace sparring
