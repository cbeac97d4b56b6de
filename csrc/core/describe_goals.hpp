// Goals of any game behind one interface, over rows on the host. Host only.
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
  // Whether each part's payments can be told from a record.
  virtual std::vector<bool> pays() const = 0;
  // Why there is no hindsight with a configuration; "" if there is.
  virtual std::string refusal(const u8* config) const = 0;
  virtual int made(u32 record) const = 0;
  virtual int achieved(u32 record) const = 0;
  virtual int action(int goal) const = 0;
  virtual GoalRow row(const u8* config, const u8* obs) const = 0;
  virtual void set_goal(const u8* config, u8* obs, int goal) const = 0;
  virtual f32 paid_for(const u8* config, const f32* weight, int role, u32 record, int goal,
                       int from, int to) const = 0;
  virtual bool relabel(const u8* config, u32 record, u8* obs, const u8* mask,
                       i32& action) const = 0;
  virtual bool relabel_sample(const u8* config, const f32* weight, const RingView& ring,
                              const u32* records, const SamplesView& out, int i, int n) const = 0;
};

template <HasGoals G>
class GoalsOf final : public AnyGoals {
 public:
  using Config = typename G::Config;

  int role() const override { return G::kGoalRole; }
  int stages() const override { return G::kStages; }
  std::vector<bool> pays() const override {
    std::vector<bool> told;
    for (int part = 0; part < kPartCount<G>; ++part) told.push_back(G::goal_pays(part));
    return told;
  }
  std::string refusal(const u8* config) const override {
    if constexpr (requires { G::no_hindsight(read(config)); })
      return G::no_hindsight(read(config));
    else
      return {};
  }
  int made(u32 record) const override { return G::made(record); }
  int achieved(u32 record) const override { return G::achieved(record); }
  int action(int goal) const override { return G::goal_action(goal); }
  GoalRow row(const u8* config, const u8* obs) const override {
    return G::goal_row(read(config), obs);
  }
  void set_goal(const u8* config, u8* obs, int goal) const override {
    G::set_goal(read(config), obs, goal);
  }
  f32 paid_for(const u8* config, const f32* weight, int as, u32 record, int goal, int from,
               int to) const override {
    return G::paid_for(read(config), weight, as, record, goal, from, to);
  }
  bool relabel(const u8* config, u32 record, u8* obs, const u8* mask, i32& done) const override {
    const auto allows = [mask](int one) { return mask[one] != 0; };
    return sparring::relabel<G>(read(config), record, obs, allows, done);
  }
  bool relabel_sample(const u8* config, const f32* weight, const RingView& ring, const u32* records,
                      const SamplesView& out, int i, int n) const override {
    return sparring::relabel_sample<G>(read(config), weight, ring, records, out, i, n);
  }

 private:
  static const Config& read(const u8* config) { return *reinterpret_cast<const Config*>(config); }
};

}  // namespace sparring
