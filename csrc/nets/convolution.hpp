// 3x3 convolutions over boards on a CPU, forward and backward. Boards are [rows, height, width,
// channels], kernels [3, 3, in, out], padded with zeros. Rows are split into chunks that do not
// depend on the number of threads, and sums over rows are added chunk by chunk, so that results are
// the same for any number of threads. Host only.
#pragma once

#include <vector>

#include "nets/first_layer.hpp"

namespace sparring {

inline constexpr int kTaps = 9, kReach = 3;  // of a kernel: 3 x 3
inline constexpr int kAbreast = 3;           // squares, or channels, that share loaded weights
inline constexpr int kWidest = 8;            // fours of channels that are summed in registers
inline constexpr int kChannelStep = 4;       // channels come in fours

struct Boards {
  int height, width;

  int squares() const { return height * width; }
  // With a border of zeros.
  int padded() const { return (height + 2) * (width + 2); }
};

// A board's channels with a border of zeros.
class Padded {
 public:
  Padded(Boards size, int channels)
      : size_(size),
        channels_(channels),
        value_(static_cast<size_t>(size.padded()) * static_cast<size_t>(channels)) {}

  void fill(const f32* board) {
    const size_t line = static_cast<size_t>(size_.width) * static_cast<size_t>(channels_);
    for (int y = 0; y < size_.height; ++y)
      std::memcpy(&value_[at(y + 1, 1)], board + static_cast<size_t>(y) * line, line * sizeof(f32));
  }
  // The channels under tap (0, 0) of the kernel at a square.
  const f32* corner(int y, int x) const { return &value_[at(y, x)]; }
  int line() const { return (size_.width + 2) * channels_; }

 private:
  size_t at(int y, int x) const {
    return static_cast<size_t>((y * (size_.width + 2) + x) * channels_);
  }

  Boards size_;
  int channels_;
  std::vector<f32> value_;
};

// Calls f with the number of fours as a constant.
template <class F>
void with_fours(int fours, const F& f) {
  switch (fours) {
    case 1:
      return f.template operator()<1>();
    case 2:
      return f.template operator()<2>();
    case 3:
      return f.template operator()<3>();
    case 4:
      return f.template operator()<4>();
    case 5:
      return f.template operator()<5>();
    case 6:
      return f.template operator()<6>();
    case 7:
      return f.template operator()<7>();
    default:
      return f.template operator()<kWidest>();
  }
}

// sum[s][f] += value[s] * from[f]
template <int kRows, int kFours>
inline void add_products(Four (&sum)[kRows][kFours], const f32 (&value)[kRows], const f32* from) {
#pragma GCC unroll 8
  for (int f = 0; f < kFours; ++f) {
    const Four four = load_four(from + 4 * f);
#pragma GCC unroll 3
    for (int s = 0; s < kRows; ++s) sum[s][f] = fused(sum[s][f], value[s], four);
  }
}

// Operations on the sums before they are stored; null and false are none.
struct Finish {
  const f32* onto;  // is added
  const f32* mask;  // where it is not above 0, the result is 0
  bool relu;
};

inline Four finished(Four sum, const Finish& finish, i64 at) {
  const Four zero{};
  if (finish.onto) sum += load_four(finish.onto + at);
  if (finish.relu) sum = sum > zero ? sum : zero;
  if (finish.mask) sum = load_four(finish.mask + at) > zero ? sum : zero;
  return sum;
}

class Convolve final : public Job {
 public:
  Convolve(Boards size, i64 rows, const f32* x, int in, const f32* weight, const f32* bias, int out,
           Finish finish, f32* to)
      : size_(size),
        rows_(rows),
        x_(x),
        in_(in),
        weight_(weight),
        bias_(bias),
        out_(out),
        finish_(finish),
        to_(to) {}

  static constexpr i64 kRows = 16;  // per chunk

  int open(int phase) override {
    return phase == 0 ? static_cast<int>((rows_ + kRows - 1) / kRows) : -1;
  }

  void run(int, int chunk) override {
    Padded board(size_, in_);
    const i64 end = min((chunk + 1) * kRows, rows_);
    for (i64 row = chunk * kRows; row < end; ++row) run_row(row, board);
  }

  // One row; `board` is room for it.
  void run_row(i64 row, Padded& board) {
    board.fill(x_ + row * size_.squares() * in_);
    for (int first = 0; first < out_; first += 4 * kWidest)
      with_fours(min((out_ - first) / 4, kWidest),
                 [&]<int kFours>() { channels<kFours>(board, row, first); });
  }

 private:
  template <int kFours>
  void channels(const Padded& board, i64 row, int first) {
    for (int y = 0; y < size_.height; ++y) {
      int x = 0;
      for (; x + kAbreast <= size_.width; x += kAbreast)
        squares<kAbreast, kFours>(board, row, y, x, first);
      for (; x < size_.width; ++x) squares<1, kFours>(board, row, y, x, first);
    }
  }

  template <int kSquares, int kFours>
  void squares(const Padded& board, i64 row, int y, int x, int first) {
    // Loops over the sums are unrolled, so that all of them stay in registers.
    Four sum[kSquares][kFours];
#pragma GCC unroll 8
    for (int f = 0; f < kFours; ++f) {
      const Four bias = bias_ ? load_four(bias_ + first + 4 * f) : Four{};
#pragma GCC unroll 3
      for (int s = 0; s < kSquares; ++s) sum[s][f] = bias;
    }
    const f32* line = board.corner(y, x);
    const f32* weight = weight_ + first;
    for (int dy = 0; dy < kReach; ++dy, line += board.line()) {
      for (int i = 0; i < kReach * in_; ++i, weight += out_) {  // three squares' channels
        f32 value[kSquares];
#pragma GCC unroll 3
        for (int s = 0; s < kSquares; ++s) value[s] = line[s * in_ + i];
        add_products(sum, value, weight);
      }
    }
    const i64 at = (row * size_.squares() + y * size_.width + x) * out_ + first;
#pragma GCC unroll 3
    for (int s = 0; s < kSquares; ++s) {
#pragma GCC unroll 8
      for (int f = 0; f < kFours; ++f) {
        const i64 to = at + s * out_ + 4 * f;
        store_four(to_ + to, finished(sum[s][f], finish_, to));
      }
    }
  }

  Boards size_;
  i64 rows_;
  const f32* x_;
  int in_;
  const f32* weight_;
  const f32* bias_;
  int out_;
  Finish finish_;
  f32* to_;
};

// Sums over rows, chunk by chunk and then over the chunks in their order.
class ChunkSums {
 public:
  ChunkSums(int chunks, size_t size) : chunks_(static_cast<size_t>(chunks)), size_(size) {
    value_.resize(chunks_ * size_);
  }

  int chunks() const { return static_cast<int>(chunks_); }
  f32* of(int chunk) { return &value_[static_cast<size_t>(chunk) * size_]; }
  // Writes the totals of `count` sums from the one numbered `first` on.
  void total(size_t first, size_t count, f32* to) const {
    for (size_t i = 0; i < count; ++i) to[i] = 0;
    for (size_t chunk = 0; chunk < chunks_; ++chunk)
      for (size_t i = 0; i < count; ++i) to[i] += value_[chunk * size_ + first + i];
  }

 private:
  size_t chunks_, size_;
  std::vector<f32> value_;
};

inline int chunks_of(i64 rows, i64 each) { return static_cast<int>((rows + each - 1) / each); }

// The gradients of kernel and bias, from input boards and gradients of output boards.
class KernelGradient final : public Job {
 public:
  KernelGradient(Boards size, i64 rows, const f32* x, int in, const f32* grad, int out,
                 f32* weight_grad, f32* bias_grad)
      : size_(size),
        rows_(rows),
        x_(x),
        in_(in),
        grad_(grad),
        out_(out),
        weights_(static_cast<size_t>(kTaps * in * out)),
        sums_(chunks_of(rows, kRows), weights_ + static_cast<size_t>(out)),
        weight_grad_(weight_grad),
        bias_grad_(bias_grad) {}

  static constexpr i64 kRows = 64;  // per chunk
  static constexpr i64 kGroup = 2;  // boards that stay in the nearest cache

  int open(int phase) override { return phase == 0 ? sums_.chunks() : phase == 1 ? 1 : -1; }

  void run(int phase, int chunk) override {
    if (phase == 1) {
      sums_.total(0, weights_, weight_grad_);
      sums_.total(weights_, static_cast<size_t>(out_), bias_grad_);
      return;
    }
    std::vector<Padded> boards(kGroup, Padded(size_, in_));
    f32* sums = sums_.of(chunk);
    const i64 end = min((chunk + 1) * kRows, rows_);
    for (i64 row = chunk * kRows; row < end; row += kGroup) {
      const int count = static_cast<int>(min(kGroup, end - row));
      for (int b = 0; b < count; ++b)
        boards[static_cast<size_t>(b)].fill(x_ + (row + b) * size_.squares() * in_);
      add_bias(row, count, sums + weights_);
      for (int first = 0; first < out_; first += 4 * kWidest)
        with_fours(min((out_ - first) / 4, kWidest),
                   [&]<int kFours>() { taps<kFours>(boards, row, count, first, sums); });
    }
  }

 private:
  void add_bias(i64 row, int count, f32* sums) {
    const f32* grad = grad_ + row * size_.squares() * out_;
    for (int i = 0; i < count * size_.squares(); ++i, grad += out_)
      for (int c = 0; c < out_; ++c) sums[c] += grad[c];
  }

  template <int kFours>
  void taps(const std::vector<Padded>& boards, i64 row, int count, int first, f32* sums) {
    for (int dy = 0; dy < kReach; ++dy) {
      const int wide = kReach * in_;  // three squares' channels lie side by side
      int i = 0;
      for (; i + kAbreast <= wide; i += kAbreast)
        inputs<kAbreast, kFours>(boards, row, count, first, dy, i, sums);
      for (; i < wide; ++i) inputs<1, kFours>(boards, row, count, first, dy, i, sums);
    }
  }

  template <int kInputs, int kFours>
  void inputs(const std::vector<Padded>& boards, i64 row, int count, int first, int dy, int i,
              f32* sums) {
    Four sum[kInputs][kFours] = {};
    for (int b = 0; b < count; ++b) {
      const f32* grad = grad_ + (row + b) * size_.squares() * out_ + first;
      for (int y = 0; y < size_.height; ++y) {
        const f32* line = boards[static_cast<size_t>(b)].corner(y + dy, 0) + i;
        for (int x = 0; x < size_.width; ++x, line += in_, grad += out_) {
          f32 value[kInputs];
#pragma GCC unroll 3
          for (int s = 0; s < kInputs; ++s) value[s] = line[s];
          add_products(sum, value, grad);
        }
      }
    }
#pragma GCC unroll 3
    for (int s = 0; s < kInputs; ++s) {
      f32* to = sums + (dy * kReach * in_ + i + s) * out_ + first;
#pragma GCC unroll 8
      for (int f = 0; f < kFours; ++f) store_four(to + 4 * f, load_four(to + 4 * f) + sum[s][f]);
    }
  }

  Boards size_;
  i64 rows_;
  const f32* x_;
  int in_;
  const f32* grad_;
  int out_;
  size_t weights_;
  ChunkSums sums_;
  f32* weight_grad_;
  f32* bias_grad_;
};

// Input of a network's first convolution: bytes of planes, nearly all 0, and numbers of the whole
// board.
struct StemInput {
  Boards size;
  i64 rows;
  const u8* obs;
  int obs_bytes;
  const std::vector<FeatureRun>& runs;
  int planes;
  int out;

  int plane_features() const { return planes * size.squares(); }
};

// Calls f(tap, square) for the output squares that depend on an input square, with the tap.
template <class F>
void for_neighbors(Boards size, int square, const F& f) {
  const int y = square / size.width, x = square % size.width;
  for (int dy = 0; dy < kReach; ++dy) {
    for (int dx = 0; dx < kReach; ++dx) {
      const int to_y = y + 1 - dy, to_x = x + 1 - dx;
      if (to_y >= 0 && to_y < size.height && to_x >= 0 && to_x < size.width)
        f(dy * kReach + dx, to_y * size.width + to_x);
    }
  }
}

// to += value * from, over channels.
inline void add_scaled(f32* to, f32 value, const f32* from, int channels) {
  for (int c = 0; c < channels; c += 4)
    store_four(to + c, fused(load_four(to + c), value, load_four(from + c)));
}

// relu(conv(planes) + numbers @ number_weight + bias)
class StemForward final : public Job {
 public:
  StemForward(const StemInput& input, const f32* weight, const f32* number_weight, const f32* bias,
              f32* to)
      : in_(input), weight_(weight), number_weight_(number_weight), bias_(bias), to_(to) {}

  static constexpr i64 kRows = 16;

  int open(int phase) override { return phase == 0 ? chunks_of(in_.rows, kRows) : -1; }

  void run(int, int chunk) override {
    ActiveFeatures active;
    std::vector<f32> shift(static_cast<size_t>(in_.out));
    const i64 end = min((chunk + 1) * kRows, in_.rows);
    for (i64 row = chunk * kRows; row < end; ++row) {
      active.read(in_.obs + row * in_.obs_bytes, in_.runs);
      run_row(active, shift.data(), to_ + row * in_.size.squares() * in_.out);
    }
  }

  // One row; `shift` is room for a number per channel.
  void run_row(const ActiveFeatures& active, f32* shift, f32* to) const {
    const int out = in_.out, squares = in_.size.squares(), planes = in_.plane_features();
    std::memcpy(shift, bias_, sizeof(f32) * static_cast<size_t>(out));
    size_t numbers = active.index.size();
    while (numbers > 0 && active.index[numbers - 1] >= planes) {
      --numbers;
      add_scaled(shift, active.value[numbers],
                 number_weight_ + (active.index[numbers] - planes) * out, out);
    }
    for (int square = 0; square < squares; ++square)
      std::memcpy(to + square * out, shift, sizeof(f32) * static_cast<size_t>(out));
    for (size_t k = 0; k < numbers; ++k) {
      const int plane = active.index[k] / squares, value_at = active.index[k] % squares;
      for_neighbors(in_.size, value_at, [&](int tap, int square) {
        add_scaled(to + square * out, active.value[k], weight_ + (tap * in_.planes + plane) * out,
                   out);
      });
    }
    for (int i = 0; i < squares * out; ++i) to[i] = max(to[i], 0.0f);
  }

 private:
  const StemInput& in_;
  const f32* weight_;
  const f32* number_weight_;
  const f32* bias_;
  f32* to_;
};

// The gradients of the stem's weights; `grad` is that of the relu's input.
class StemGradient final : public Job {
 public:
  StemGradient(const StemInput& input, int numbers, const f32* grad, f32* weight_grad,
               f32* number_grad, f32* bias_grad)
      : in_(input),
        grad_(grad),
        weights_(static_cast<size_t>(kTaps * input.planes * input.out)),
        numbers_(static_cast<size_t>(numbers * input.out)),
        sums_(chunks_of(input.rows, kRows), weights_ + numbers_ + static_cast<size_t>(input.out)),
        weight_grad_(weight_grad),
        number_grad_(number_grad),
        bias_grad_(bias_grad) {}

  static constexpr i64 kRows = 64;

  int open(int phase) override { return phase == 0 ? sums_.chunks() : phase == 1 ? 1 : -1; }

  void run(int phase, int chunk) override {
    if (phase == 1) {
      sums_.total(0, weights_, weight_grad_);
      sums_.total(weights_, numbers_, number_grad_);
      sums_.total(weights_ + numbers_, static_cast<size_t>(in_.out), bias_grad_);
      return;
    }
    ActiveFeatures active;
    const i64 end = min((chunk + 1) * kRows, in_.rows);
    for (i64 row = chunk * kRows; row < end; ++row) {
      active.read(in_.obs + row * in_.obs_bytes, in_.runs);
      add_row(active, grad_ + row * in_.size.squares() * in_.out, sums_.of(chunk));
    }
  }

 private:
  void add_row(const ActiveFeatures& active, const f32* grad, f32* sums) const {
    const int out = in_.out, squares = in_.size.squares(), planes = in_.plane_features();
    std::vector<f32> shift(static_cast<size_t>(out));
    for (int square = 0; square < squares; ++square)
      add_scaled(shift.data(), 1, grad + square * out, out);
    add_scaled(sums + weights_ + numbers_, 1, shift.data(), out);
    for (size_t k = 0; k < active.index.size(); ++k) {
      const int index = active.index[k];
      const f32 value = active.value[k];
      if (index >= planes) {
        add_scaled(sums + weights_ + static_cast<size_t>((index - planes) * out), value,
                   shift.data(), out);
        continue;
      }
      for_neighbors(in_.size, index % squares, [&](int tap, int square) {
        add_scaled(sums + (tap * in_.planes + index / squares) * out, value, grad + square * out,
                   out);
      });
    }
  }

  const StemInput& in_;
  const f32* grad_;
  size_t weights_, numbers_;
  ChunkSums sums_;
  f32* weight_grad_;
  f32* number_grad_;
  f32* bias_grad_;
};

}  // namespace sparring
