// What the bindings of networks share: worker threads, and how rows are read.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "bind/arrays.hpp"
#include "core/thread_pool.hpp"
#include "nets/first_layer.hpp"

namespace sparring {

// First feature, count, byte offset, type, divisor.
using Run = std::tuple<int, int, int, int, f32>;

// What is read of a row of bytes: never beyond `bytes`, and never a feature from `features` on.
struct RowFormat {
  std::vector<FeatureRun> runs;
  int features = 0, bytes = 0;
};

// Numbers of a row, of a layer: more would be a mistake, and is refused before room is made.
inline constexpr int kMaxNumbers = 1 << 24;
// Weights of a network: 4 GiB of them.
inline constexpr i64 kMaxWeights = i64{1} << 30;

inline RowFormat row_format(const Call& call, const std::vector<Run>& rows) {
  RowFormat format;
  i64 listed = 0;
  for (const auto& [first, count, offset, type, divisor] : rows) {
    const Type kind = static_cast<Type>(type);
    call.demand(
        type >= 0 && type <= static_cast<int>(Type::kF32) &&
            (kind == Type::kU8 || kind == Type::kI8 || kind == Type::kI16 || kind == Type::kF32),
        "features are uint8, int8, int16 or float32");
    call.between(first, "the first feature of a run", 0, kMaxNumbers);
    call.between(count, "the length of a run", 0, kMaxNumbers);
    call.between(offset, "the offset of a run", 0, kMaxNumbers);
    format.runs.push_back({first, count, offset, kind, divisor});
    format.features = max(format.features, first + count);
    format.bytes = max(format.bytes, offset + count * size_of(kind));
    listed += count;
  }
  call.demand(listed <= format.features, "a feature is in two runs");
  return format;
}

inline Activation activation_of(const Call& call, int number) {
  return static_cast<Activation>(call.index(number, "activation", 3));
}

// The thread_pool of so many workers; all who ask while somebody has it get the same one. What a
// learner does is one job after the other, of several objects: their threads would only be in each
// other's way, and one that has just worked is still awake when the next job comes.
inline std::shared_ptr<ThreadPool> thread_pool_of(int workers) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<ThreadPool>> pools;
  std::lock_guard lock(mutex);
  std::shared_ptr<ThreadPool> thread_pool = pools[workers].lock();
  if (!thread_pool) pools[workers] = thread_pool = std::make_shared<ThreadPool>(workers);
  return thread_pool;
}

// Worker threads for jobs; the caller is one of them.
class Workers {
 public:
  explicit Workers(int threads) : thread_pool_(thread_pool_of(max(threads, 1) - 1)) {}
  void run(Job& job) {
    if (thread_pool_->workers() == 0) return ThreadPool::run_alone(job);
    thread_pool_->submit(job);
    thread_pool_->wait(job, true);
  }

 private:
  std::shared_ptr<ThreadPool> thread_pool_;
};

}  // namespace sparring
