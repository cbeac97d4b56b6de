// A policy's network, answering one row at a time: what src/sparring/nets has, made of the same
// loops as the native layers. src/sparring/web/networks.py packs it and has the order of numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "nets/activation.hpp"
#include "nets/convolution.hpp"
#include "nets/features.hpp"
#include "nets/sampler.hpp"

namespace sparring {

// Reads what was packed: whole numbers and others, four bytes each. Arrays stay where they are.
class Packed {
 public:
  Packed(const f32* numbers, i64 count) : at_(numbers), layer_data_(count) {}

  const f32* numbers(i64 count) {
    if (count < 0 || count > layer_data_)
      raise(ConfigError("the network is damaged: load it again"));
    const f32* found = at_;
    at_ += count;
    layer_data_ -= count;
    return found;
  }

  f32 number() { return *numbers(1); }

  int whole() {
    int value;
    std::memcpy(&value, numbers(1), sizeof value);
    return value;
  }

  i64 left() const { return layer_data_; }

 private:
  const f32* at_;
  i64 layer_data_;
};

inline std::vector<FeatureRun> packed_runs(Packed& from) {
  std::vector<FeatureRun> runs(static_cast<size_t>(from.whole()));
  for (FeatureRun& run : runs) {
    run.first = from.whole();
    run.count = from.whole();
    run.offset = from.whole();
    run.type = static_cast<Type>(from.whole());
    run.divisor = from.number();
  }
  return runs;
}

// Weights are [in, out], so that inputs that are 0 cost nothing.
struct Linear {
  explicit Linear(Packed& from)
      : in(from.whole()),
        out(from.whole()),
        weight(from.numbers(i64{in} * out)),
        bias(from.numbers(out)) {}

  void run(const Active& active, f32* to) const { gather_row(active, weight, out, bias, to); }

  int in, out;
  const f32 *weight, *bias;
};

// As torch's LayerNorm, in place.
inline void normalize(f32* x, int count, const f32* gain, const f32* shift) {
  constexpr f64 kEps = 1e-5;
  f64 sum = 0, squares = 0;
  for (int i = 0; i < count; ++i) sum += x[i];
  const f64 mean = sum / count;
  for (int i = 0; i < count; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const f64 by = 1 / std::sqrt(squares / count + kEps);
  for (int i = 0; i < count; ++i) x[i] = static_cast<f32>((x[i] - mean) * by) * gain[i] + shift[i];
}

// What any kind of network does with a row: the numbers of its policy head and, behind them, that
// of its value head; those of the `hidden` head follow if they are asked for.
class RowNetwork {
 public:
  virtual ~RowNetwork() = default;
  virtual void run(const u8* row, f32* outputs, bool hidden) = 0;
};

// Towers of layers over all features, each with the heads that stand on it.
class PackedPerceptron final : public RowNetwork {
 public:
  PackedPerceptron(Packed& from, int width)
      : width_(width),
        runs_(packed_runs(from)),
        features_(from.whole()),
        activation_(static_cast<Activation>(from.whole())) {
    const bool norm = from.whole();
    if (from.whole()) {
      shift_ = from.numbers(features_);
      spread_ = from.numbers(features_);
      numbers_.resize(static_cast<size_t>(features_));
    }
    int widest = features_;
    for (int towers = from.whole(); towers > 0; --towers) {
      Tower& tower = towers_.emplace_back();
      for (int layers = from.whole(); layers > 0; --layers) {
        Layer& layer = tower.layers.emplace_back(Linear(from));
        if (norm) {
          layer.gain = from.numbers(layer.linear.out);
          layer.shift = from.numbers(layer.linear.out);
        }
        widest = max(widest, layer.linear.out);
      }
      for (int heads = from.whole(); heads > 0; --heads) {
        const int kind = from.whole();  // policy, value, hidden
        const int place = kind == 0 ? 0 : width_ + kind - 1;
        tower.heads.push_back({place, Linear(from)});
      }
    }
    hidden_.resize(static_cast<size_t>(widest));
    seen_.index.reserve(static_cast<size_t>(widest));
    seen_.value.reserve(static_cast<size_t>(widest));
    active_.index.reserve(static_cast<size_t>(widest));
    active_.value.reserve(static_cast<size_t>(widest));
  }

  void run(const u8* row, f32* outputs, bool hidden) override {
    seen_.read(row, runs_);
    if (shift_) center();
    for (const Tower& tower : towers_) {
      const ActiveFeatures* from = &seen_;
      for (const Layer& layer : tower.layers) {
        const int width = layer.linear.out;
        layer.linear.run(from->view(), hidden_.data());
        if (layer.gain) normalize(hidden_.data(), width, layer.gain, layer.shift);
        activate(activation_, hidden_.data(), width);
        active_.read(hidden_.data(), width);
        from = &active_;
      }
      for (const Head& head : tower.heads)
        if (hidden || head.place <= width_) head.linear.run(active_.view(), outputs + head.place);
    }
  }

 private:
  struct Layer {
    explicit Layer(const Linear& made) : linear(made) {}
    Linear linear;
    const f32 *gain = nullptr, *shift = nullptr;  // of its norm, if it has one
  };
  struct Head {
    int place;
    Linear linear;
  };
  struct Tower {
    std::vector<Layer> layers;
    std::vector<Head> heads;
  };

  // Observations centered and scaled by what was seen in training, as nets/layers.py does it.
  void center() {
    constexpr f32 kClip = 10;
    std::fill(numbers_.begin(), numbers_.end(), 0.0f);
    for (size_t k = 0; k < seen_.index.size(); ++k)
      numbers_[static_cast<size_t>(seen_.index[k])] = seen_.value[k];
    for (int f = 0; f < features_; ++f) {
      f32& number = numbers_[static_cast<size_t>(f)];
      number = min(max((number - shift_[f]) / spread_[f], -kClip), kClip);
    }
    seen_.read(numbers_.data(), features_);
  }

  int width_;
  std::vector<FeatureRun> runs_;
  int features_;
  Activation activation_;
  const f32 *shift_ = nullptr, *spread_ = nullptr;
  std::vector<Tower> towers_;
  std::vector<f32> numbers_, hidden_;
  ActiveFeatures seen_, active_;
};

// A tower of residual convolutions over a board.
class PackedResidual final : public RowNetwork {
 public:
  PackedResidual(Packed& from, int width)
      : width_(width),
        runs_(packed_runs(from)),
        size_{from.whole(), from.whole()},
        planes_(from.whole()),
        channels_(from.whole()),
        stem_{from, kTaps * planes_, channels_},
        numbers_(from.numbers(i64{from.whole()} * channels_)),
        board_(size_, channels_),
        shift_(static_cast<size_t>(channels_)) {
    for (int blocks = from.whole(); blocks > 0; --blocks) {
      const Kernel first(from, kTaps * channels_, channels_);
      blocks_.push_back({first, Kernel(from, kTaps * channels_, channels_)});
    }
    policy_.emplace_back(from);
    // Maps that do not have one number for each action are inputs of a dense layer.
    if (policy_[0].out * size_.squares() == width_)
      squares_bias_ = from.numbers(width_);
    else
      policy_.emplace_back(from);
    for (int layers = from.whole(); layers > 0; --layers) value_.emplace_back(from);
    const size_t squares = static_cast<size_t>(size_.squares());
    x_.resize(squares * shift_.size());
    inside_.resize(x_.size());
    maps_.resize(squares * static_cast<size_t>(policy_[0].out));
    size_t widest = max(static_cast<size_t>(planes_ + kTaps) * squares, x_.size());
    if (!value_.empty()) {
      seen_.resize(squares * static_cast<size_t>(value_[0].out));
      hidden_.resize(static_cast<size_t>(value_[1].out));
    }
    active_.index.reserve(widest);
    active_.value.reserve(widest);
  }

  void run(const u8* row, f32* outputs, bool) override {
    active_.read(row, runs_);
    const StemInput input{size_, 1, row, 0, runs_, planes_, channels_};
    StemForward(input, stem_.weight, numbers_, stem_.bias, nullptr)
        .run_row(active_, shift_.data(), x_.data());
    for (const auto& [first, second] : blocks_) {
      convolve(x_.data(), first, {nullptr, nullptr, true}, inside_.data());
      convolve(inside_.data(), second, {x_.data(), nullptr, true}, x_.data());
    }
    policy(outputs);
    if (!value_.empty()) value(outputs + width_);
  }

 private:
  struct Kernel {
    Kernel(Packed& from, int taps, int channels)
        : weight(from.numbers(i64{taps} * channels)), bias(from.numbers(channels)) {}
    const f32 *weight, *bias;
  };

  // `to` may be what is added at the end: every number of it is read before it is written.
  void convolve(const f32* x, const Kernel& kernel, const Finish& finish, f32* to) {
    Convolve(size_, 1, x, channels_, kernel.weight, kernel.bias, channels_, finish, to)
        .run_row(0, board_);
  }

  // A logit for every action of every square, action by action; or a dense layer.
  void policy(f32* outputs) {
    const int squares = size_.squares(), each = policy_[0].out;
    map_squares(policy_[0], maps_);
    if (!squares_bias_) return run_mapped(policy_[1], maps_, outputs);
    for (int square = 0; square < squares; ++square)
      for (int a = 0; a < each; ++a)
        outputs[a * squares + square] =
            maps_[static_cast<size_t>(square * each + a)] + squares_bias_[a * squares + square];
  }

  // A few channels of every square.
  void map_squares(const Linear& layer, std::vector<f32>& to) {
    for (int square = 0; square < size_.squares(); ++square) {
      active_.read(&x_[static_cast<size_t>(square * channels_)], channels_);
      layer.run(active_.view(), &to[static_cast<size_t>(square * layer.out)]);
    }
  }

  // A layer over relu of all squares' channels.
  void run_mapped(const Linear& layer, std::vector<f32>& maps, f32* to) {
    const int count = static_cast<int>(maps.size());
    activate(Activation::kRelu, maps.data(), count);
    active_.read(maps.data(), count);
    layer.run(active_.view(), to);
  }

  // A few channels of every square, a hidden layer, a number.
  void value(f32* outputs) {
    map_squares(value_[0], seen_);
    run_mapped(value_[1], seen_, hidden_.data());
    activate(Activation::kRelu, hidden_.data(), value_[1].out);
    active_.read(hidden_.data(), value_[1].out);
    value_[2].run(active_.view(), outputs);
  }

  int width_;
  std::vector<FeatureRun> runs_;
  Boards size_;
  int planes_, channels_;
  Kernel stem_;
  const f32* numbers_;
  std::vector<std::pair<Kernel, Kernel>> blocks_;
  std::vector<Linear> policy_, value_;
  const f32* squares_bias_ = nullptr;  // of logits of squares; null: the policy head is dense
  Padded board_;
  std::vector<f32> shift_, x_, inside_, maps_, seen_, hidden_;
  ActiveFeatures active_;
};

// All that a policy says about rows: one network, or one for every role, which a row tells. What
// the game's kind of actions does not need is left out of its module.
template <bool kDiscreteActions>
class Network {
 public:
  // `numbers` were made by std::malloc, and are the network's from now on.
  Network(f32* numbers, i64 count) : numbers_(numbers, &std::free) {
    Packed from(numbers, count);
    actions_ = from.whole();
    box_ = from.whole();
    squash_ = from.whole();
    by_value_ = from.whole();
    dueling_ = from.whole();
    items_ = from.whole();
    classes_ = from.whole();
    width_ = box_ ? 2 * box_ : actions_;
    roles_.resize(static_cast<size_t>(from.whole()));
    for (Role& role : roles_) {
      role.told_by.resize(static_cast<size_t>(from.whole()));
      for (int& byte : role.told_by) byte = from.whole();
      role.unit = from.number();
      role.network = read_network(from);
    }
    if (from.left()) raise(ConfigError("the network is damaged: load it again"));
    outputs_.resize(static_cast<size_t>(width_ + 1 + believed()));
    belief_.resize(static_cast<size_t>(believed()));
    shares_.resize(static_cast<size_t>(actions_));
    action_.resize(static_cast<size_t>(max(box_, 1)));
  }

  // Logits, or means and logarithms of spreads; behind them the row's value in units of rewards.
  const f32* answer(const u8* row, const u8* mask) {
    const Role& role = roles_[static_cast<size_t>(role_of(row))];
    role.network->run(row, outputs_.data(), false);
    f32& value = outputs_[static_cast<size_t>(width_)];
    if (by_value_) value = best_value(mask, value);
    value *= role.unit;
    return outputs_.data();
  }

  // Log-probabilities of the classes of every hidden item, as the row's seat believes.
  const f32* belief(const u8* row) {
    roles_[0].network->run(row, outputs_.data(), true);
    for (int item = 0; item < items_; ++item) {
      const f32* logit = &outputs_[at(width_ + 1 + item * classes_)];
      f32* log_prob = &belief_[at(item * classes_)];
      const f32 top = *std::max_element(logit, logit + classes_);
      f64 sum = 0;
      for (int i = 0; i < classes_; ++i) sum += std::exp(static_cast<f64>(logit[i] - top));
      for (int i = 0; i < classes_; ++i)
        log_prob[i] = static_cast<f32>(static_cast<f64>(logit[i] - top) - std::log(sum));
    }
    return belief_.data();
  }

  int width() const { return width_; }                // numbers of the policy head
  int believed() const { return items_ * classes_; }  // and of a belief; 0: there is none
  bool squash() const { return squash_; }

  // Of the row that was answered last: one per action, exactly 0 for those that are not legal.
  const f32* probabilities(const u8* mask) {
    Rng none(0, 0, 0, Stream::kSampling);
    const int best = draw_masked(outputs_.data(), mask, actions_, true, none).action;
    f64 total = 0;
    for (int a = 0; a < actions_; ++a) {
      f64 share = a == best;
      if (!by_value_)
        share = mask[a] ? std::exp(static_cast<f64>(outputs_[at(a)] - outputs_[at(best)])) : 0;
      shares_[at(a)] = static_cast<f32>(share);
      total += share;
    }
    for (int a = 0; a < actions_; ++a) shares_[at(a)] = static_cast<f32>(shares_[at(a)] / total);
    return shares_.data();
  }

  // What is played there: an action's number, or the numbers of a box within -1..1. Logits are
  // divided by the temperature; 0: the best action.
  const f32* draw(const u8* mask, f32 temperature, u64 seed, u32 row, u32 episode, u32 drawn) {
    const bool greedy = temperature <= 0 || by_value_;
    if constexpr (kDiscreteActions) {
      Rng rng(seed, row, episode, Stream::kSampling, drawn);
      for (int a = 0; a < actions_; ++a)
        shares_[at(a)] = greedy ? outputs_[at(a)] : outputs_[at(a)] / temperature;
      const Drawn chosen = draw_masked(shares_.data(), mask, actions_, greedy, rng);
      action_[0] = static_cast<f32>(chosen.action);
    } else {
      Rng rng(seed, row, episode, Stream::kSampling, drawn * gaussian_draws(box_));
      draw_gaussian(outputs_.data(), box_, greedy, rng, action_.data());
      for (f32& number : action_) {
        if (squash_) number = std::tanh(number);
        number = min(max(number, -1.0f), 1.0f);
      }
    }
    return action_.data();
  }

 private:
  struct Role {
    std::vector<int> told_by;  // bytes of which one is not 0 in its rows
    f32 unit;                  // of its values
    std::unique_ptr<RowNetwork> network;
  };

  std::unique_ptr<RowNetwork> read_network(Packed& from) const {
    if (!from.whole()) return std::make_unique<PackedPerceptron>(from, width_);
    if constexpr (kDiscreteActions) return std::make_unique<PackedResidual>(from, width_);
    raise(ConfigError("the network is damaged: load it again"));
  }

  static size_t at(int place) { return static_cast<size_t>(place); }

  int role_of(const u8* row) const {
    const int last = static_cast<int>(roles_.size()) - 1;
    for (int role = 0; role < last; ++role)
      for (const int byte : roles_[at(role)].told_by)
        if (row[byte]) return role;
    return last;
  }

  // That of the best legal action. Dueling: the value head has that of the state, and actions are
  // better or worse than the mean of the legal ones.
  f32 best_value(const u8* mask, f32 state) const {
    f64 sum = 0;
    int legal = 0;
    f32 best = 0;
    for (int a = 0; a < actions_; ++a) {
      if (!mask[a]) continue;
      best = legal ? max(best, outputs_[at(a)]) : outputs_[at(a)];
      sum += outputs_[at(a)];
      ++legal;
    }
    return dueling_ ? state + best - static_cast<f32>(sum / max(legal, 1)) : best;
  }

  std::unique_ptr<f32, void (*)(void*)> numbers_;
  int actions_, box_, squash_, by_value_, dueling_, width_;
  int items_, classes_;  // of the `hidden` head; 0: there is none
  std::vector<Role> roles_;
  std::vector<f32> outputs_, belief_, shares_, action_;
};

}  // namespace sparring
