// What the bindings of networks share: worker threads, and how rows are read.
#pragma once

#include <tuple>
#include <vector>

#include "core/crew.hpp"
#include "nets/first_layer.hpp"

namespace sparring {

// First feature, count, byte offset, type, divisor.
using Run = std::tuple<int, int, int, int, f32>;

inline std::vector<FeatureRun> feature_runs(const std::vector<Run>& rows) {
  std::vector<FeatureRun> runs;
  for (const auto& [first, count, offset, type, divisor] : rows)
    runs.push_back({first, count, offset, static_cast<Type>(type), divisor});
  return runs;
}

// Worker threads for jobs; the caller is one of them.
class Workers {
 public:
  explicit Workers(int threads) : crew_(threads - 1) {}
  void run(Job& job) {
    if (crew_.workers() == 0) return Crew::run_alone(job);
    crew_.submit(job);
    crew_.wait(job, true);
  }

 private:
  Crew crew_;
};

}  // namespace sparring
