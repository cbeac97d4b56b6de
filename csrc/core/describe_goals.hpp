// Goals (core/goals.hpp) of any game behind one virtual interface. Host only.
#pragma once

#include <string>
#include <vector>

#include "core/goals.hpp"

namespace sparring {

class AnyGoals {
 public:
  virtual ~AnyGoals() = default;
  virtual int role() const = 0;
  virtual int stages() const = 0;
  // By reward part, whether it follows from a goal result.
  virtual std::vector<bool> goal_parts() const = 0;
  // Why a configuration does not support hindsight; "" if it does.
  virtual std::string unsupported_reason(const u8* config) const = 0;
  virtual int desired_goal(u32 goal_result) const = 0;
  virtual int achieved_goal(u32 goal_result) const = 0;
  virtual int action(int goal) const = 0;
  virtual GoalDecision row(const u8* config, const u8* obs) const = 0;
  virtual void set_goal(const u8* config, u8* obs, int goal) const = 0;
  virtual f32 goal_reward(const u8* config, const f32* weight, int role, u32 goal_result, int goal,
                          int from, int to) const = 0;
  virtual bool relabel(const u8* config, u32 goal_result, u8* obs, const u8* mask,
                       i32& action) const = 0;
  virtual bool relabel_sample(const u8* config, const f32* weight, const RingView& ring,
                              const u32* goal_results, const SamplesView& out, int i,
                              int n) const = 0;
};

template <HasGoals G>
class GameGoals final : public AnyGoals {
 public:
  using Config = typename G::Config;

  int role() const override { return G::kGoalRole; }
  int stages() const override { return G::kStages; }
  std::vector<bool> goal_parts() const override {
    std::vector<bool> follows;
    for (int part = 0; part < kPartCount<G>; ++part) follows.push_back(G::is_goal_reward(part));
    return follows;
  }
  std::string unsupported_reason(const u8* config) const override {
    if constexpr (requires { G::hindsight_unsupported_reason(read(config)); })
      return G::hindsight_unsupported_reason(read(config));
    else
      return {};
  }
  int desired_goal(u32 goal_result) const override { return G::desired_goal(goal_result); }
  int achieved_goal(u32 goal_result) const override { return G::achieved_goal(goal_result); }
  int action(int goal) const override { return G::goal_action(goal); }
  GoalDecision row(const u8* config, const u8* obs) const override {
    return G::goal_decision(read(config), obs);
  }
  void set_goal(const u8* config, u8* obs, int goal) const override {
    G::set_goal(read(config), obs, goal);
  }
  f32 goal_reward(const u8* config, const f32* weight, int as_role, u32 goal_result, int goal,
                  int from, int to) const override {
    return G::goal_reward(read(config), weight, as_role, goal_result, goal, from, to);
  }
  bool relabel(const u8* config, u32 goal_result, u8* obs, const u8* mask,
               i32& action_taken) const override {
    const auto is_legal = [mask](int candidate) { return mask[candidate] != 0; };
    return sparring::relabel<G>(read(config), goal_result, obs, is_legal, action_taken);
  }
  bool relabel_sample(const u8* config, const f32* weight, const RingView& ring,
                      const u32* goal_results, const SamplesView& out, int i,
                      int n) const override {
    return sparring::relabel_sample<G>(read(config), weight, ring, goal_results, out, i, n);
  }

 private:
  static const Config& read(const u8* config) { return *reinterpret_cast<const Config*>(config); }
};

}  // namespace sparring
