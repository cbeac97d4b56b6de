// A pool: N games stepped together on CPU threads, with their results in arrays. Host only.
#pragma once

#include <atomic>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/digest.hpp"
#include "core/pool_state.hpp"
#include "core/thread_pool.hpp"

namespace sparring {

// Interface of a pool, the same for every game.
class AnyPool : public PoolArrays {
 public:
  AnyPool(const PoolOptions& options, Shape shape, int rows, int roles, int box, int counts)
      : PoolArrays(options, shape, rows, roles), counters(counts), box_(box) {}
  virtual ~AnyPool() = default;

  virtual void reset() = 0;
  // Checks the actions of one group and copies them; a rejected action changes nothing.
  virtual RejectedAction accept(int group, const void* actions) = 0;
  virtual void send(int group) = 0;
  virtual void recv(int group) = 0;
  virtual void step_all() = 0;
  // Checks the actions of all rows, on all threads, and steps every game; a rejected action changes
  // no game.
  virtual RejectedAction check_and_step_all(const void* actions) = 0;
  virtual void sample(int group, void* actions) = 0;
  virtual u64 digest() const = 0;
  // Loads a saved state, see PoolState::load.
  virtual std::string load(u64 seed, const u8* envs, const u8* extras, const u8* memories) = 0;
  virtual AnyPoolState& state() = 0;
  // Legal actions as bits, one set of words per row.
  virtual const u64* legal_bits() const = 0;

  int box() const { return box_; }

  PoolCounters counters;

 private:
  int box_;
};

template <Game G>
class Pool final : public AnyPool {
 public:
  using Config = typename G::Config;
  using Action = typename G::Action;

  Pool(const Config& config, const PoolOptions& options)
      : AnyPool(options, G::shape(config), G::kRows, counts_of<G>(config).roles, box_size(),
                counts_of<G>(config).counters),
        state_(*this, config),
        legal_(counted<Legal<G>>(options.games * G::kRows)),
        actions_(counted<Action>(options.games * G::kRows)),
        reasons_(counted<u8>(options.games)),
        action_hash_(counted<u64>(options.games)),
        thread_pool_(options.groups > 1 ? options.threads : options.threads - 1) {
    for (int group = 0; group < options.groups; ++group)
      jobs_.push_back(std::make_unique<GroupJob>(*this, group));
    i64 chunks = 0;
    for (const auto& job : jobs_) {
      job->first_chunk = chunks;
      chunks += job->chunks(job->to - job->from);
    }
    counters.make_chunks(chunks);
  }

  ~Pool() override {
    for (int group = 0; group < options().groups; ++group) wait(group);
  }

  void reset() override {
    clear_stuck();
    for (int group = 0; group < options().groups; ++group) run_now(group, GroupJob::kRestart);
    for (int group = 0; group < options().groups; ++group) check_not_stuck(group);
  }

  RejectedAction accept(int group, const void* actions) override {
    check_not_stuck(group);
    const i64 from = group_begin(group) * G::kRows, to = group_end(group) * G::kRows;
    const Action* given = static_cast<const Action*>(actions);
    for (i64 row = from; row < to; ++row) {
      if (policy[row] < 0) continue;
      const Action& action = given[row - from];
      if (!is_playable<G>(legal_[row], action, shape().actions))
        return rejected_action<G>(state_.global(row / G::kRows), row, seat[row], legal_[row],
                                  action);
    }
    std::memcpy(&actions_[from], given, static_cast<size_t>(to - from) * sizeof(Action));
    return {};
  }

  RejectedAction check_and_step_all(const void* actions) override {
    for (int group = 0; group < options().groups; ++group) check_not_stuck(group);
    const Action* given = static_cast<const Action*>(actions);
    const bool at_once = options().groups == 1;
    for (int group = 0; group < options().groups; ++group) {
      GroupJob& job = *jobs_[size_t(group)];
      job.given = given + group_begin(group) * G::kRows;
      run_now(group, at_once ? GroupJob::kCheckAndStep : GroupJob::kCheck);
      if (const i64 row = job.rejected; row != kNoRow)
        return rejected_action<G>(state_.global(row / G::kRows), row, seat[row], legal_[row],
                                  actions_[row]);
    }
    if (at_once)
      check_not_stuck(0);
    else
      step_all();
    return {};
  }

  void send(int group) override {
    jobs_[size_t(group)]->task = GroupJob::kStep;
    thread_pool_.submit(*jobs_[size_t(group)]);
  }
  void recv(int group) override {
    wait(group);
    check_not_stuck(group);
  }

  void step_all() override {
    for (int group = 0; group < options().groups; ++group) run_now(group, GroupJob::kStep);
    for (int group = 0; group < options().groups; ++group) check_not_stuck(group);
  }

  void sample(int group, void* actions) override {
    check_not_stuck(group);
    jobs_[size_t(group)]->sample_into = static_cast<Action*>(actions);
    run_now(group, GroupJob::kSample);
  }

  u64 digest() const override {
    const int kept = min(kSignedRolesOf<G>, roles());
    u64 sum = 0;
    for (i64 game = 0; game < games(); ++game) {
      Digest digest(state_.global(game));
      const i64 row = game * G::kRows;
      digest.bytes(&seat[row], G::kRows);
      i8 shown[G::kRows];
      for (int r = 0; r < G::kRows; ++r)
        shown[r] = min<i8>(role[row + r], static_cast<i8>(kept - 1));
      digest.bytes(shown, G::kRows);
      digest.bytes(&legal_[row], i64{sizeof(Legal<G>)} * G::kRows);
      if (obs.size()) digest.bytes(&obs[row * row_bytes()], row_bytes() * G::kRows);
      const int each = roles();
      const i64 first_reward = game * shape().seats * each;
      f32 rewards[G::kMaxSeats * kSignedRolesOf<G>];
      for (int s = 0; s < shape().seats; ++s)
        for (int r = 0; r < kept; ++r) rewards[s * kept + r] = reward[first_reward + s * each + r];
      digest.bytes(rewards, i64{shape().seats} * kept * i64{sizeof(f32)});
      digest.bytes(&terminated[game], 1);
      digest.bytes(&truncated[game], 1);
      sum += digest.value();  // a sum, so that any split of the games gives the same
    }
    return sum;
  }

  std::string load(u64 seed, const u8* envs, const u8* extras, const u8* memories) override {
    std::string error = state_.load(seed, envs, extras, memories);
    if (error.empty()) refresh();
    return error;
  }

  PoolState<G>& state() override { return state_; }
  const u64* legal_bits() const override { return legal_.data()->word; }

 private:
  static constexpr i64 kNoRow = std::numeric_limits<i64>::max();

  // The work of one group. A step has two phases: every game applies its actions, then the games
  // that ended begin a new episode. kCheckAndStep checks all actions first.
  struct GroupJob final : Job {
    enum Task { kStep, kRestart, kSample, kCheck, kCheckAndStep };
    enum Phase { kChecks, kSamples, kMoves, kBegins, kDone };

    GroupJob(Pool& owner, int index)
        : pool(owner), from(owner.group_begin(index)), to(owner.group_end(index)), group(index) {
      const i64 share = (to - from) / (max(pool.options().threads, 1) * 4);
      chunk_games = max<i64>(min<i64>(share, 512), 16);
      ended_in.resize(size_t(chunks(to - from)));
      ended.resize(size_t(to - from));
    }

    Phase phase_of(int number) const {
      switch (task) {
        case kCheckAndStep:
          return Phase(min<int>(number == 0 ? kChecks : kMoves + number - 1, kDone));
        case kStep:
          return Phase(min<int>(kMoves + number, kDone));
        case kRestart:
          return Phase(min<int>(kBegins + number, kDone));
        case kCheck:
          return number == 0 ? kChecks : kDone;
        default:
          return number == 0 ? kSamples : kDone;
      }
    }

    int open(int number) override {
      phase = phase_of(number);
      if (phase == kChecks) rejected = kNoRow;
      if (phase == kMoves && task == kCheckAndStep && rejected != kNoRow) phase = kDone;
      if (phase == kDone) return -1;
      return phase == kBegins ? open_begins() : chunks(to - from);
    }

    // Lists the games that begin a new episode, in game order.
    int open_begins() {
      begin_count = 0;
      if (task == kRestart) {
        pool.clear_results(from, to);
        for (i64 game = from; game < to; ++game) ended[size_t(begin_count++)] = game;
      } else {
        for (size_t chunk = 0; chunk < ended_in.size(); ++chunk)
          for (i64 i = 0; i < ended_in[chunk]; ++i)
            ended[size_t(begin_count++)] = ended[size_t(i64(chunk) * chunk_games + i)];
      }
      pool.final_count[size_t(group)] = task == kRestart ? 0 : begin_count;
      // Few games would fit into one chunk of full size, which would leave all threads but one
      // idle.
      const i64 shares = static_cast<i64>(ended_in.size());
      begins_per_chunk = max<i64>((begin_count + shares - 1) / shares, 4);
      return static_cast<int>((begin_count + begins_per_chunk - 1) / begins_per_chunk);
    }

    void run(int, int chunk) override {
      const i64 begin = from + chunk * chunk_games, end = min(begin + chunk_games, to);
      const Counting counting = pool.counters.of_chunk(first_chunk + chunk);
      switch (phase) {
        case kChecks:
          return check(begin * G::kRows, end * G::kRows);
        case kSamples:
          for (i64 game = begin; game < end; ++game)
            pool.sample_game(game, sample_into + (game - from) * G::kRows);
          return;
        case kMoves:
          ended_in[size_t(chunk)] = move(begin, end, counting);
          return;
        default:
          return begin_games(chunk * begins_per_chunk, counting);
      }
    }

    // Copies the actions and checks the copy: the caller's array may change meanwhile.
    void check(i64 row, i64 end) {
      if (row > rejected) return;  // an earlier row is rejected already
      std::memcpy(&pool.actions_[row], given + (row - from * G::kRows),
                  static_cast<size_t>(end - row) * sizeof(Action));
      const int actions = pool.shape().actions;
      for (; row < end; ++row)
        if (pool.policy[row] >= 0 &&
            !is_playable<G>(pool.legal_[row], pool.actions_[row], actions)) {
          i64 known = rejected;
          while (row < known && !rejected.compare_exchange_weak(known, row)) {
          }
          return;
        }
    }

    // Steps games, lists those that ended at the front of the chunk, and returns their number.
    i64 move(i64 game, i64 end, Counting counting) {
      i64* const list = &ended[size_t(game - from)];
      i64 over = 0;
      for (; game < end && stuck < 0; ++game) {
        if (!pool.step_game(game, pool.counting_of(game, counting))) stuck = game;
        if (pool.terminated[game] || pool.truncated[game]) list[over++] = game;
      }
      return over;
    }

    void begin_games(i64 first, Counting counting) {
      const i64 end = min(first + begins_per_chunk, begin_count);
      for (i64 i = first; i < end && stuck < 0; ++i) {
        const i64 game = ended[size_t(i)];
        if (task != kRestart) pool.write_final(game, from + i);
        if (!pool.begin_game(game, pool.counting_of(game, counting))) stuck = game;
      }
    }

    int chunks(i64 count) const {
      return static_cast<int>((count + chunk_games - 1) / chunk_games);
    }

    Pool& pool;
    i64 from, to, chunk_games;
    i64 first_chunk = 0;  // counted over all groups
    int group;
    Task task = kStep;
    Phase phase = kDone;
    Action* sample_into = nullptr;
    const Action* given = nullptr;
    std::atomic<i64> rejected = kNoRow;  // the first row whose action cannot be played
    std::vector<i64> ended_in;           // [chunks], number of games that ended
    std::vector<i64> ended;              // games that ended, at the front of their chunk
    i64 begin_count = 0, begins_per_chunk = 0;
    std::atomic<i64> stuck = -1;  // a stuck game; the pool does not continue until a reset
  };

  static constexpr int box_size() {
    if constexpr (kDiscrete<G>)
      return 0;
    else
      return static_cast<int>(sizeof(Action) / sizeof(f32));
  }

  Counting counting_of(i64 game, Counting others) const {
    return left_out[game] ? Counting{} : others;
  }

  // Rewrites the rows after the environments were replaced.
  void refresh() {
    clear_stuck();
    for (i64 game = 0; game < games(); ++game) {
      find_turn(state_.envs[game], *state_.setting, state_.extra_of(game),
                &legal_[game * G::kRows]);
      write_rows(game);
    }
    clear_results(0, games());
    std::fill(final_count.begin(), final_count.end(), 0);
  }

  void run_now(int group, typename GroupJob::Task task) {
    GroupJob& job = *jobs_[size_t(group)];
    job.task = task;
    if (thread_pool_.workers() == 0) {
      ThreadPool::run_alone(job);
    } else {
      thread_pool_.submit(job);
      wait(group);
    }
  }

  // With one group the calling thread works too.
  void wait(int group) { thread_pool_.wait(*jobs_[size_t(group)], options().groups == 1); }

  // Throws if rules failed or a game is stuck; a reset or loading another state clears it.
  void check_not_stuck(int group) const {
    if constexpr (requires { G::check_failure(state_.config()); }) {
      if (G::failed(state_.config()))
        for (const auto& job : jobs_) job->stuck = job->from;
      G::check_failure(state_.config());
    }
    const i64 game = jobs_[size_t(group)]->stuck;
    if (game >= 0)
      throw stuck_error<G>(state_.config(), state_.global(game), state_.setting->skip_forced);
  }

  void clear_stuck() {
    for (const auto& job : jobs_) job->stuck = -1;
  }

  // False: the game is stuck.
  bool step_game(i64 game, Counting counting) {
    const i64 row = game * G::kRows, rewards_each = i64{shape().seats} * roles();
    const Result result = apply_actions(
        state_.envs[game], *state_.setting, state_.global(game), state_.extra_of(game),
        &legal_[row], &actions_[row], &reward[game * rewards_each], &skipped[game * shape().seats],
        counting, goal_result.size() ? &goal_result[game * shape().seats] : nullptr);
    terminated[game] = result.terminated;
    truncated[game] = result.truncated;
    reasons_[game] = result.reason;
    action_hash_[game] += result.recorder.action_hash;
    if (!result.over()) write_rows(game);
    return !result.stuck;
  }

  void sample_game(i64 game, Action* out) {
    Env<G>& env = state_.envs[game];
    Rng rng(state_.setting->seed, state_.global(game), env.episode, Stream::kSampling,
            env.sample_draws);
    for (i64 row = game * G::kRows; row < (game + 1) * G::kRows; ++row, ++out)
      *out = policy[row] >= 0 ? sample_action<G>(legal_[row], rng) : Action{};
    env.sample_draws = rng.drawn();
  }

  // False: the game is stuck.
  bool begin_game(i64 game, Counting counting) {
    if (memory_bytes()) {
      const size_t bytes = static_cast<size_t>(shape().seats * memory_bytes());
      std::memset(state_.memory_of(game, 0), 0, bytes);
    }
    if (!begin_episode(state_.envs[game], *state_.setting, state_.global(game),
                       state_.extra_of(game), &legal_[game * G::kRows], &action_hash_[game],
                       counting))
      return false;
    write_rows(game);
    return true;
  }

  void write_final(i64 game, i64 at) {
    const Env<G>& env = state_.envs[game];
    const int seats = shape().seats, actions = shape().actions;
    final_game[at] = static_cast<i32>(game);
    final_length[at] = static_cast<i32>(env.length);
    final_reason[at] = reasons_[game];
    final_moves[at] = action_hash_[game];

    for (int s = 0; s < seats; ++s) {
      final_score[at * seats + s] = env.game.score(state_.config(), s);
      final_policy[at * seats + s] = env.player[s];
      if (!options().observe) continue;
      const i64 line = at * seats + s;
      observe(game, s, &final_obs[line * row_bytes()]);
      if (actions) std::memset(&final_mask[line * actions], 0, static_cast<size_t>(actions));
    }
    if (!options().observe || !truncated[game] || !actions) return;
    for (int row = 0; row < G::kRows; ++row) {
      const int s = env.game.seat(row);
      if (s < 0) continue;
      Legal<G> legal = Legal<G>::none();
      call_legal(env.game, state_.config(), row, legal, state_.extra_of(game));
      expand_bits(legal, actions, &final_mask[(at * seats + s) * actions]);
    }
  }

  // Writes the row of a seat: its observation, then its memory.
  void observe(i64 game, int seat_index, u8* out) const {
    call_observe(state_.envs[game].game, state_.config(), seat_index, out, state_.extra_of(game));
    if (memory_bytes())
      std::memcpy(out + shape().obs_bytes, state_.memory_of(game, seat_index),
                  static_cast<size_t>(memory_bytes()));
  }

  void write_rows(i64 game) {
    const Env<G>& env = state_.envs[game];
    for (int r = 0; r < G::kRows; ++r) {
      const i64 row = game * G::kRows + r;
      const int s = env.game.seat(r);
      seat[row] = static_cast<i8>(s);
      role[row] = static_cast<i8>(s < 0 ? 0 : env.game.role(r));
      policy[row] = s < 0 || env.player[s] < 0 ? static_cast<i16>(kNoPlayer) : env.player[s];
      if (!options().observe) continue;
      u8* out = &obs[row * row_bytes()];
      if (s < 0)
        std::memset(out, 0, static_cast<size_t>(row_bytes()));
      else
        observe(game, s, out);
      if (shape().actions) expand_bits(legal_[row], shape().actions, &mask[row * shape().actions]);
    }
  }

  PoolState<G> state_;
  Array<Legal<G>> legal_;
  Array<Action> actions_;
  Array<u8> reasons_;
  Array<u64> action_hash_;
  std::vector<std::unique_ptr<GroupJob>> jobs_;
  ThreadPool thread_pool_;
};

}  // namespace sparring
