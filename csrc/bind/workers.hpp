// What the bindings of networks share: worker threads, and how rows are read.
#pragma once

#include <map>
#include <memory>
#include <mutex>
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

// The crew of so many workers; all who ask while somebody has it get the same one. What a learner
// does is one job after the other, of several objects: their threads would only be in each other's
// way, and one that has just worked is still awake when the next job comes.
inline std::shared_ptr<Crew> crew_of(int workers) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<Crew>> crews;
  std::lock_guard lock(mutex);
  std::shared_ptr<Crew> crew = crews[workers].lock();
  if (!crew) crews[workers] = crew = std::make_shared<Crew>(workers);
  return crew;
}

// Worker threads for jobs; the caller is one of them.
class Workers {
 public:
  explicit Workers(int threads) : crew_(crew_of(most(threads - 1, 0))) {}
  void run(Job& job) {
    if (crew_->workers() == 0) return Crew::run_alone(job);
    crew_->submit(job);
    crew_->wait(job, true);
  }

 private:
  std::shared_ptr<Crew> crew_;
};

}  // namespace sparring
