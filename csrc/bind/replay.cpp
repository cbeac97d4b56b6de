// The replay on the host: loops over the functions of core/replay.hpp.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <stdexcept>
#include <vector>

#include "core/replay.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace sparring {
namespace {

template <class T>
using In = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::c_contig, nb::device::cpu>;
template <class T>
using MaybeIn = std::optional<In<T>>;
template <class T>
using MaybeOut = std::optional<Out<T>>;

template <class T>
T* data_of(const std::optional<nb::ndarray<T, nb::c_contig, nb::device::cpu>>& array) {
  return array ? array->data() : nullptr;
}

// Sums the nodes above some leaves anew. A level that has fewer nodes than there are leaves is
// cheaper to sum as a whole.
void sum_above(const SumTree& tree, const std::vector<int>& leaves) {
  for (int level = 1; level <= tree_height(tree.leaves); ++level) {
    const TreeLevel at = tree_level(tree.leaves, level);
    if (static_cast<size_t>(at.nodes) <= leaves.size()) {
      for (int node = 0; node < at.nodes; ++node) sum_node(tree, at, node);
      continue;
    }
    int last = -1;
    for (const int leaf : leaves) {  // neighbours come one after another
      const int node = node_above(leaf, level);
      if (node != last) sum_node(tree, at, node);
      last = node;
    }
  }
}

void prefetch(const void* from, i64 bytes) {
  constexpr i64 kLine = 64;
  const char* at = static_cast<const char*>(from);
  for (i64 i = 0; i < least(bytes, 8 * kLine); i += kLine) __builtin_prefetch(at + i);
}

// What a rollout brings, by place; `RolloutView` and `Links` say more about it.
struct Brought {
  int carried, rows, learner;
  const i16* policy;
  const i8* seat;
  const u8 *obs, *mask;
  const i32* action;
  const f32* numbers;
  const u8* end;
  const i32* next;
  const f32 *paid, *discount;
  const i32* open_rows;  // [carried]
  int cuts;
  const i32* cut_entry;  // by place in `final_value`: which last row stands there, -1 if none does
  const f32* cut_sign;   // likewise: -1 where that row is the other seat's
  const u8 *cut_obs, *cut_mask;

  int places() const { return carried + rows; }
  bool mine(int row) const { return policy[row] == learner && seat[row] >= 0; }
  // Which last row follows a decision before a cut, -1 if none does.
  int entry(int place) const {
    return end[place] == kTruncated && cuts ? cut_entry[next[place]] : -1;
  }
};

// The columns belong to Python and live as long as this does.
class ReplayRing {
 public:
  ReplayRing(int actions, int box, Out<u8> obs, Out<u64> mask, Out<u8> action, Out<i32> next,
             Out<u8> end, Out<f32> paid, Out<f32> discount, Out<i64> open, MaybeOut<u32> weight,
             MaybeOut<u64> sums)
      : obs_(obs),
        mask_(mask),
        action_(action),
        next_(next),
        end_(end),
        paid_(paid),
        discount_(discount),
        open_(open),
        weight_(weight),
        sums_(sums) {
    ring_.capacity = static_cast<int>(obs.shape(0));
    ring_.row_bytes = static_cast<int>(obs.shape(1));
    ring_.actions = actions;
    ring_.box = box;
    ring_.action_bytes = static_cast<int>(action.shape(1));
    ring_.obs = obs.data();
    ring_.mask = mask.data();
    ring_.action = action.data();
    ring_.next = next.data();
    ring_.end = end.data();
    ring_.paid = paid.data();
    ring_.discount = discount.data();
    tree_ = {ring_.capacity, data_of(weight), data_of(sums)};
  }

  i64 first = 0;       // the oldest serial number that counts
  i64 head = 0;        // the serial number that comes next
  i64 count = 0;       // decisions that can be sampled
  u32 highest = kOne;  // of all weights so far

  // Returns how many entries ago the samples were stored, summed up.
  i64 sample(u64 seed, u32 number, int n_step, f32 correction, Out<u8> obs, Out<u8> mask,
             MaybeOut<i32> action, MaybeOut<f32> numbers, Out<f32> paid, Out<f32> discount,
             Out<u8> next_obs, Out<u8> next_mask, Out<f32> weight, Out<i64> places) {
    if (!count) throw std::invalid_argument("nothing can be sampled yet");
    const SamplesView out{obs.data(),    mask.data(),     data_of(action), data_of(numbers),
                          paid.data(),   discount.data(), next_obs.data(), next_mask.data(),
                          weight.data(), places.data()};
    const int batch = static_cast<int>(places.size());
    nb::gil_scoped_release released;
    const int from = place_of(first), fill = static_cast<int>(head - first);
    i64 ages = 0;
    u32 lowest = ~u32{0};
    for (int i = 0; i < batch; ++i) {
      Rng rng = sample_rng(seed, i, number);
      const int place = tree_.leaf ? draw_leaf(tree_, rng) : pick(ring_, from, fill, rng);
      if (tree_.leaf) lowest = least(lowest, tree_.leaf[place]);
      ages += fill - wrap(place - from, ring_.capacity);
      out.place[i] = place;
      ask_for(place, true);
    }
    // Every pass asks the memory for what the next one reads: most of it is far away.
    after_.resize(static_cast<size_t>(batch));
    for (int i = 0; i < batch; ++i) {
      Followed& after = after_[static_cast<size_t>(i)];
      after = follow(ring_, static_cast<int>(out.place[i]), n_step);
      ask_for(after.place, false);
    }
    for (int i = 0; i < batch; ++i) {
      const int place = static_cast<int>(out.place[i]);
      take_sample(ring_, out, i, place, after_[static_cast<size_t>(i)]);
      out.weight[i] = tree_.leaf ? correction_of(tree_.leaf[place], lowest, correction) : 1.0f;
    }
    return ages;
  }

  // Of a decision that is named twice the larger error counts, whatever the order.
  void reprioritise(In<i64> places, In<f32> error, f32 exponent) {
    nb::gil_scoped_release released;
    touched_.clear();
    for (size_t i = 0; i < places.size(); ++i) tree_.leaf[places.data()[i]] = 0;
    for (size_t i = 0; i < places.size(); ++i) {
      const int place = static_cast<int>(places.data()[i]);
      if (ring_.end[place] == kNotASample) continue;
      u32& leaf = tree_.leaf[place];
      leaf = most(leaf, weight_of(error.data()[i], exponent));
      highest = most(highest, leaf);
      touched_.push_back(place);
    }
    sum_above(tree_, touched_);
  }

  // Weights were written: sums the whole tree anew.
  void sum_all() const {
    for (int level = 1; level <= tree_height(tree_.leaves); ++level) {
      const TreeLevel at = tree_level(tree_.leaves, level);
      for (int node = 0; node < at.nodes; ++node) sum_node(tree_, at, node);
    }
  }

  void push(int learner, In<i16> policy, In<i8> seat, In<u8> obs, In<u8> mask, MaybeIn<i32> action,
            MaybeIn<f32> numbers, In<u8> end, In<i32> next, In<f32> paid, In<f32> discount,
            In<i32> open_rows, MaybeIn<i32> cut_entry, MaybeIn<f32> cut_sign, MaybeIn<u8> cut_obs,
            MaybeIn<u8> cut_mask) {
    Brought b{};
    b.carried = static_cast<int>(open_rows.size());
    b.rows = static_cast<int>(policy.size());
    b.learner = learner;
    b.policy = policy.data();
    b.seat = seat.data();
    b.obs = obs.data();
    b.mask = mask.data();
    b.action = data_of(action);
    b.numbers = data_of(numbers);
    b.end = end.data();
    b.next = next.data();
    b.paid = paid.data();
    b.discount = discount.data();
    b.open_rows = open_rows.data();
    b.cuts = cut_obs ? static_cast<int>(cut_obs->shape(0)) : 0;
    b.cut_entry = data_of(cut_entry);
    b.cut_sign = data_of(cut_sign);
    b.cut_obs = data_of(cut_obs);
    b.cut_mask = data_of(cut_mask);
    nb::gil_scoped_release released;
    touched_.clear();
    allot(b);
    store_rows(b);
    store_links(b);
    for (int i = 0; i < b.carried; ++i)
      open_.data()[i] = b.open_rows[i] < 0 ? -1 : serial_[static_cast<size_t>(b.open_rows[i])];
    if (tree_.leaf) sum_above(tree_, touched_);
  }

 private:
  int place_of(i64 serial) const { return static_cast<int>(serial % ring_.capacity); }

  void ask_for(i64 place, bool decision) const {
    prefetch(ring_.obs + place * ring_.row_bytes, ring_.row_bytes);
    if (ring_.actions) prefetch(ring_.mask + place * ring_.mask_words(), 8 * ring_.mask_words());
    if (!decision) return;
    prefetch(ring_.next + place, 1);
    prefetch(ring_.paid + place, 1);
    prefetch(ring_.discount + place, 1);
    prefetch(ring_.action + place * ring_.action_bytes, 1);
  }

  // Gives every decision a serial number, then every last row that follows one; forgets what lies
  // at their places.
  void allot(const Brought& b) {
    i64 comes = head;
    serial_.assign(static_cast<size_t>(b.places()), -1);
    for (int i = 0; i < b.carried; ++i) serial_[static_cast<size_t>(i)] = open_.data()[i];
    for (int row = 0; row < b.rows; ++row)
      if (b.mine(row)) serial_[static_cast<size_t>(b.carried + row)] = comes++;
    last_.assign(static_cast<size_t>(b.cuts), -1);
    for (int place = 0; b.cuts && place < b.places(); ++place)
      if (b.entry(place) >= 0) last_[static_cast<size_t>(b.entry(place))] = 0;
    for (i64& last : last_)
      if (last == 0) last = comes++;
    if (comes - head > ring_.capacity) throw std::invalid_argument("the rollout does not fit");
    for (; head < comes; ++head) forget(place_of(head));
    first = most(first, head - ring_.capacity);
  }

  void forget(int place) {
    count -= ring_.end[place] != kNotASample;
    ring_.end[place] = kNotASample;
    if (tree_.leaf) weigh(place, 0);
  }

  void weigh(int place, u32 weight) {
    tree_.leaf[place] = weight;
    touched_.push_back(place);
  }

  void store_rows(const Brought& b) const {
    const i64 bytes = ring_.row_bytes;
    for (int row = 0; row < b.rows; ++row) {
      if (!b.mine(row)) continue;
      const i64 from = b.carried + row;
      const int place = place_of(serial_[static_cast<size_t>(from)]);
      store_row(ring_, place, b.obs + from * bytes, b.mask + from * ring_.actions);
      if (ring_.box)
        store_numbers(ring_, place, b.numbers + from * ring_.box);
      else
        store_action(ring_, place, b.action[from]);
    }
    for (i64 cut = 0; cut < b.cuts; ++cut)
      if (const i64 serial = last_[static_cast<size_t>(cut)]; serial >= 0)
        store_row(ring_, place_of(serial), b.cut_obs + cut * bytes,
                  b.cut_mask + cut * ring_.actions);
  }

  // Decisions that were overwritten while they were open are skipped.
  void store_links(const Brought& b) {
    for (int at = 0; at < b.places(); ++at) {
      const i64 serial = serial_[static_cast<size_t>(at)];
      if (b.end[at] == kNotASample || serial < first) continue;
      i64 next = -1;
      f32 discount = b.discount[at];
      if (b.end[at] == kToNext) next = serial_[static_cast<size_t>(b.next[at])];
      if (b.entry(at) >= 0) {
        next = last_[static_cast<size_t>(b.entry(at))];
        discount *= b.cut_sign[b.next[at]];
      }
      const int place = place_of(serial);
      store_link(ring_, place, b.end[at], next < 0 ? -1 : place_of(next), b.paid[at], discount);
      if (tree_.leaf) weigh(place, highest);
      ++count;
    }
  }

  Out<u8> obs_;
  Out<u64> mask_;
  Out<u8> action_;
  Out<i32> next_;
  Out<u8> end_;
  Out<f32> paid_, discount_;
  Out<i64> open_;  // serial numbers of decisions that are still open, -1 where there is none
  MaybeOut<u32> weight_;
  MaybeOut<u64> sums_;
  RingView ring_{};
  SumTree tree_{};
  std::vector<i64> serial_, last_;  // of the rollout's places, and of its last rows
  std::vector<int> touched_;
  std::vector<Followed> after_;
};

}  // namespace

void bind_replay(nb::module_& m) {
  nb::class_<ReplayRing>(m, "ReplayRing", "Stores and samples decisions in columns of Python's.")
      .def(nb::init<int, int, Out<u8>, Out<u64>, Out<u8>, Out<i32>, Out<u8>, Out<f32>, Out<f32>,
                    Out<i64>, MaybeOut<u32>, MaybeOut<u64>>(),
           "actions"_a, "box"_a, "obs"_a, "mask"_a, "action"_a, "next"_a, "end"_a, "paid"_a,
           "discount"_a, "open"_a, "weight"_a.none(), "sums"_a.none())
      .def_rw("first", &ReplayRing::first)
      .def_rw("head", &ReplayRing::head)
      .def_rw("count", &ReplayRing::count)
      .def_rw("highest", &ReplayRing::highest)
      .def("push", &ReplayRing::push, "learner"_a, "policy"_a, "seat"_a, "obs"_a, "mask"_a,
           "action"_a.none(), "numbers"_a.none(), "end"_a, "next"_a, "paid"_a, "discount"_a,
           "open_rows"_a, "cut_entry"_a.none(), "cut_sign"_a.none(), "cut_obs"_a.none(),
           "cut_mask"_a.none())
      .def("sample", &ReplayRing::sample, "seed"_a, "number"_a, "n_step"_a, "correction"_a, "obs"_a,
           "mask"_a, "action"_a.none(), "numbers"_a.none(), "paid"_a, "discount"_a, "next_obs"_a,
           "next_mask"_a, "weight"_a, "places"_a)
      .def("reprioritise", &ReplayRing::reprioritise, "places"_a, "error"_a, "exponent"_a)
      .def("sum_all", &ReplayRing::sum_all);
  m.def("tree_sums", &tree_sums, "leaves"_a);
  m.attr("TREE_FAN") = kFan;
  m.attr("WEIGHT_OF_ONE") = kOne;
}

}  // namespace sparring
