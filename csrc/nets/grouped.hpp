// Forward passes of many frozen perceptrons of one shape: a chunk is a few rows of one network,
// which pass all of its layers while its weights are in the cache. Host only.
#pragma once

#include <string>
#include <vector>

#include "core/error.hpp"
#include "nets/activation.hpp"
#include "nets/first_layer.hpp"

namespace sparring {

// The common shape of the networks. The weights of a network are stored layer after layer: the
// first as [features, width], the others in panels (see Wide::product), each followed by its bias.
// Widths are multiples of kPanel, padded with zeros.
struct GroupedShape {
  std::vector<FeatureRun> runs;
  int features;
  std::vector<int> widths;  // of the layers, the policy head last
  int head;                 // columns of the head that are used
  Activation activation;
  int slots;

  i64 size() const {
    i64 sum = 0;
    for (size_t i = 0; i < widths.size(); ++i)
      sum += i64{widths[i]} * ((i ? widths[i - 1] : features) + 1);
    return sum;
  }
};

class GroupedForward final : public Job {
 public:
  // Row r is evaluated by network slot[r], counted from 1.
  GroupedForward(const GroupedShape& shape, const f32* weights, const u8* obs, int row_bytes,
                 const i16* slot, int rows, f32* out)
      : shape_(shape), weights_(weights), obs_(obs), row_bytes_(row_bytes), out_(out) {
    for (const int width : shape.widths) widest_ = max(widest_, width);
    sort(slot, rows);
  }

  static constexpr int kRows = 16;  // at most in a chunk

  int open(int phase) override { return phase == 0 ? static_cast<int>(parts_.size()) : -1; }

  void run(int, int chunk) override {
    const Part& part = parts_[static_cast<size_t>(chunk)];
    const std::vector<int>& widths = shape_.widths;
    const f32* weight = weights_ + part.slot * shape_.size();
    std::vector<f32> buffer(static_cast<size_t>(2 * kRows * widest_));
    f32 *x = buffer.data(), *next = x + i64{kRows} * widest_;
    weight = first_layer(part, weight, x);
    for (size_t i = 1; i < widths.size(); ++i) {
      activate(shape_.activation, x, i64{part.count} * widths[i - 1]);
      const f32* bias = weight + i64{widths[i - 1]} * widths[i];
      wide().product(x, part.count, widths[i - 1], weight, bias, widths[i], next);
      std::swap(x, next);
      weight = bias + widths[i];
    }
    for (int r = 0; r < part.count; ++r)
      std::memcpy(out_ + i64{row_of(part, r)} * shape_.head, x + i64{r} * widths.back(),
                  sizeof(f32) * static_cast<size_t>(shape_.head));
  }

 private:
  // Some rows of one network: a range of `order_`.
  struct Part {
    int slot, first, count;
  };

  int row_of(const Part& part, int r) const { return order_[static_cast<size_t>(part.first + r)]; }

  // Sorts rows by network; the order within a network stays.
  void sort(const i16* slot, int rows) {
    std::vector<int> end(static_cast<size_t>(shape_.slots) + 1);
    for (int r = 0; r < rows; ++r) {
      if (slot[r] < 1 || slot[r] > shape_.slots)
        throw ConfigError("row " + std::to_string(r) + " is of slot " + std::to_string(slot[r]) +
                          "; there are 1 to " + std::to_string(shape_.slots));
      ++end[static_cast<size_t>(slot[r])];
    }
    for (int k = 1, first = 0; k <= shape_.slots; ++k) {
      const int count = end[static_cast<size_t>(k)];
      for (int at = 0; at < count; at += kRows)
        parts_.push_back({k - 1, first + at, min(kRows, count - at)});
      end[static_cast<size_t>(k)] = first;
      first += count;
    }
    order_.resize(static_cast<size_t>(rows));
    for (int r = 0; r < rows; ++r)
      order_[static_cast<size_t>(end[static_cast<size_t>(slot[r])]++)] = r;
  }

  // Returns the address of the next layer's weights.
  const f32* first_layer(const Part& part, const f32* weight, f32* out) const {
    const int width = shape_.widths[0];
    const f32* bias = weight + i64{shape_.features} * width;
    ActiveFeatures active;
    for (int r = 0; r < part.count; ++r) {
      active.read(obs_ + i64{row_of(part, r)} * row_bytes_, shape_.runs);
      wide().gather(active.view(), weight, width, width, bias, out + i64{r} * width);
    }
    return bias + width;
  }

  const GroupedShape& shape_;
  const f32* weights_;
  const u8* obs_;
  int row_bytes_;
  f32* out_;
  int widest_ = 0;
  std::vector<int> order_;
  std::vector<Part> parts_;
};

}  // namespace sparring
