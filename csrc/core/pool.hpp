// N games stepped together on CPU threads: their work in chunks, their results in arrays. Host
// only.
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

// How a pool is played from outside, whatever the game; what it plays is its state.
class AnyPool : public PoolArrays {
 public:
  AnyPool(const PoolOptions& options, Shape shape, int rows, int roles, int box, int counts)
      : PoolArrays(options, shape, rows, roles), counters(counts), box_(box) {}
  virtual ~AnyPool() = default;

  virtual void reset() = 0;
  // Checks the actions of one slot and keeps a copy; a refusal leaves everything as it was.
  virtual RejectedAction accept(int slot, const void* actions) = 0;
  virtual void send(int slot) = 0;
  virtual void recv(int slot) = 0;
  virtual void step_all() = 0;
  // Checks the actions of all rows, on all threads, and steps every game; a refusal leaves the
  // games as they were.
  virtual RejectedAction answer_all(const void* actions) = 0;
  virtual void sample(int slot, void* actions) = 0;
  virtual u64 digest() const = 0;
  // Goes on from what was saved, see PoolState::load.
  virtual std::string load(u64 seed, const u8* tables, const u8* extras, const u8* memories) = 0;
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
      : AnyPool(options, G::shape(config), G::kRows, G::kRoles, box_size(), kCounterCount<G>),
        state_(*this, config),
        legal_(counted<Legal<G>>(options.games * G::kRows)),
        actions_(counted<Action>(options.games * G::kRows)),
        reasons_(counted<u8>(options.games)),
        moves_(counted<u64>(options.games)),
        thread_pool_(options.slots > 1 ? options.threads : options.threads - 1) {
    for (int slot = 0; slot < options.slots; ++slot)
      jobs_.push_back(std::make_unique<SlotJob>(*this, slot));
    i64 chunks = 0;
    for (const auto& job : jobs_) {
      job->first_chunk = chunks;
      chunks += job->chunks(job->to - job->from);
    }
    counters.make_chunks(chunks);
  }

  ~Pool() override {
    for (int slot = 0; slot < options().slots; ++slot) wait(slot);
  }

  void reset() override {
    clear_stuck();
    for (int slot = 0; slot < options().slots; ++slot) run_now(slot, SlotJob::kRestart);
    for (int slot = 0; slot < options().slots; ++slot) check_not_stuck(slot);
  }

  RejectedAction accept(int slot, const void* actions) override {
    check_not_stuck(slot);
    const i64 from = slot_begin(slot) * G::kRows, to = slot_end(slot) * G::kRows;
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

  RejectedAction answer_all(const void* actions) override {
    for (int slot = 0; slot < options().slots; ++slot) check_not_stuck(slot);
    const Action* given = static_cast<const Action*>(actions);
    const bool at_once = options().slots == 1;
    for (int slot = 0; slot < options().slots; ++slot) {
      SlotJob& job = *jobs_[size_t(slot)];
      job.given = given + slot_begin(slot) * G::kRows;
      run_now(slot, at_once ? SlotJob::kAnswer : SlotJob::kCheck);
      if (const i64 row = job.refused; row != kNoRow)
        return rejected_action<G>(state_.global(row / G::kRows), row, seat[row], legal_[row],
                                  actions_[row]);
    }
    if (at_once)
      check_not_stuck(0);
    else
      step_all();
    return {};
  }

  void send(int slot) override {
    jobs_[size_t(slot)]->task = SlotJob::kStep;
    thread_pool_.submit(*jobs_[size_t(slot)]);
  }
  void recv(int slot) override {
    wait(slot);
    check_not_stuck(slot);
  }

  void step_all() override {
    for (int slot = 0; slot < options().slots; ++slot) run_now(slot, SlotJob::kStep);
    for (int slot = 0; slot < options().slots; ++slot) check_not_stuck(slot);
  }

  void sample(int slot, void* actions) override {
    check_not_stuck(slot);
    jobs_[size_t(slot)]->sample_into = static_cast<Action*>(actions);
    run_now(slot, SlotJob::kSample);
  }

  u64 digest() const override {
    constexpr int kSigned = kSignedRolesOf<G>;
    u64 sum = 0;
    for (i64 game = 0; game < games(); ++game) {
      Digest digest(state_.global(game));
      const i64 row = game * G::kRows;
      digest.bytes(&seat[row], G::kRows);
      i8 roles[G::kRows];
      for (int r = 0; r < G::kRows; ++r) roles[r] = least<i8>(role[row + r], kSigned - 1);
      digest.bytes(roles, G::kRows);
      digest.bytes(&legal_[row], i64{sizeof(Legal<G>)} * G::kRows);
      if (obs.size()) digest.bytes(&obs[row * row_bytes()], row_bytes() * G::kRows);
      const i64 paid = i64{shape().seats} * G::kRoles;
      f32 rewards[G::kMaxSeats * kSigned];
      for (int s = 0; s < shape().seats; ++s)
        for (int r = 0; r < kSigned; ++r)
          rewards[s * kSigned + r] = reward[game * paid + s * G::kRoles + r];
      digest.bytes(rewards, i64{shape().seats} * kSigned * i64{sizeof(f32)});
      digest.bytes(&terminated[game], 1);
      digest.bytes(&truncated[game], 1);
      sum += digest.value();  // a sum, so that any split of the games gives the same
    }
    return sum;
  }

  std::string load(u64 seed, const u8* tables, const u8* extras, const u8* memories) override {
    std::string wrong = state_.load(seed, tables, extras, memories);
    if (wrong.empty()) refresh();
    return wrong;
  }

  PoolState<G>& state() override { return state_; }
  const u64* legal_bits() const override { return legal_.data()->word; }

 private:
  static constexpr i64 kNoRow = std::numeric_limits<i64>::max();

  // What a slot can be asked to do. A step: first every game answers its rows, then the games
  // that ended start anew. An answer: a step behind a check of all its actions.
  struct SlotJob final : Job {
    enum Task { kStep, kRestart, kSample, kCheck, kAnswer };
    enum Part { kChecks, kSamples, kMoves, kBegins, kDone };

    SlotJob(Pool& owner, int index)
        : pool(owner), from(owner.slot_begin(index)), to(owner.slot_end(index)), slot(index) {
      const i64 share = (to - from) / (most(pool.options().threads, 1) * 4);
      chunk_games = most<i64>(least<i64>(share, 512), 16);
      ended_in.resize(size_t(chunks(to - from)));
      ended.resize(size_t(to - from));
    }

    Part part_of(int phase) const {
      switch (task) {
        case kAnswer:
          return Part(least<int>(phase == 0 ? kChecks : kMoves + phase - 1, kDone));
        case kStep:
          return Part(least<int>(kMoves + phase, kDone));
        case kRestart:
          return Part(least<int>(kBegins + phase, kDone));
        case kCheck:
          return phase == 0 ? kChecks : kDone;
        default:
          return phase == 0 ? kSamples : kDone;
      }
    }

    int open(int phase) override {
      part = part_of(phase);
      if (part == kChecks) refused = kNoRow;
      if (part == kMoves && task == kAnswer && refused != kNoRow) part = kDone;
      if (part == kDone) return -1;
      return part == kBegins ? open_begins() : chunks(to - from);
    }

    // Lists the games that begin anew, in game order.
    int open_begins() {
      anew = 0;
      if (task == kRestart) {
        pool.clear_results(from, to);
        for (i64 game = from; game < to; ++game) ended[size_t(anew++)] = game;
      } else {
        for (size_t chunk = 0; chunk < ended_in.size(); ++chunk)
          for (i64 i = 0; i < ended_in[chunk]; ++i)
            ended[size_t(anew++)] = ended[size_t(i64(chunk) * chunk_games + i)];
      }
      pool.final_count[size_t(slot)] = task == kRestart ? 0 : anew;
      // A few games would fit into one chunk, for which all threads but one would wait.
      const i64 shares = static_cast<i64>(ended_in.size());
      anew_each = most<i64>((anew + shares - 1) / shares, 4);
      return static_cast<int>((anew + anew_each - 1) / anew_each);
    }

    void run(int, int chunk) override {
      const i64 begin = from + chunk * chunk_games, end = least(begin + chunk_games, to);
      const Counting counting = pool.counters.of_chunk(first_chunk + chunk);
      switch (part) {
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
          return begin_anew(chunk * anew_each, counting);
      }
    }

    // Keeps a copy of the actions, which is what is looked at: the caller's may change meanwhile.
    void check(i64 row, i64 end) {
      if (row > refused) return;  // an earlier one is what will be told
      std::memcpy(&pool.actions_[row], given + (row - from * G::kRows),
                  static_cast<size_t>(end - row) * sizeof(Action));
      const int actions = pool.shape().actions;
      for (; row < end; ++row)
        if (pool.policy[row] >= 0 &&
            !is_playable<G>(pool.legal_[row], pool.actions_[row], actions)) {
          i64 known = refused;
          while (row < known && !refused.compare_exchange_weak(known, row)) {
          }
          return;
        }
    }

    // Lists the games that ended from where the chunk begins, and returns their number.
    i64 move(i64 game, i64 end, Counting counting) {
      i64* const list = &ended[size_t(game - from)];
      i64 over = 0;
      for (; game < end && stuck < 0; ++game) {
        if (!pool.answer_game(game, pool.counting_of(game, counting))) stuck = game;
        if (pool.terminated[game] || pool.truncated[game]) list[over++] = game;
      }
      return over;
    }

    void begin_anew(i64 first, Counting counting) {
      const i64 end = least(first + anew_each, anew);
      for (i64 i = first; i < end && stuck < 0; ++i) {
        const i64 game = ended[size_t(i)];
        if (task != kRestart) pool.keep_final(game, from + i);
        if (!pool.begin_game(game, pool.counting_of(game, counting))) stuck = game;
      }
    }

    int chunks(i64 count) const {
      return static_cast<int>((count + chunk_games - 1) / chunk_games);
    }

    Pool& pool;
    i64 from, to, chunk_games;
    i64 first_chunk = 0;  // of all that the slots have
    int slot;
    Task task = kStep;
    Part part = kDone;
    Action* sample_into = nullptr;
    const Action* given = nullptr;
    std::atomic<i64> refused = kNoRow;  // the first row whose action cannot be played
    std::vector<i64> ended_in;          // how many, by chunk of games
    std::vector<i64> ended;             // games; at first where their chunk begins
    i64 anew = 0, anew_each = 0;        // games that begin, and those of a chunk
    std::atomic<i64> stuck = -1;        // a game whose table was; nothing goes on until a reset
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

  // Rewrites the rows from the tables, after their bytes were replaced.
  void refresh() {
    clear_stuck();
    for (i64 game = 0; game < games(); ++game) {
      look(state_.tables[game], *state_.setting, state_.extra_of(game), &legal_[game * G::kRows]);
      write_rows(game);
    }
    clear_results(0, games());
    std::fill(final_count.begin(), final_count.end(), 0);
  }

  void run_now(int slot, typename SlotJob::Task task) {
    SlotJob& job = *jobs_[size_t(slot)];
    job.task = task;
    if (thread_pool_.workers() == 0) {
      ThreadPool::run_alone(job);
    } else {
      thread_pool_.submit(job);
      wait(slot);
    }
  }

  // With one slot the calling thread is one of the thread_pool, and may be all of it.
  void wait(int slot) { thread_pool_.wait(*jobs_[size_t(slot)], options().slots == 1); }

  // Refuses to go on with a game that was given up; a reset or other tables may help.
  void check_not_stuck(int slot) const {
    const i64 game = jobs_[size_t(slot)]->stuck;
    if (game >= 0)
      throw stuck_error<G>(state_.config(), state_.global(game), state_.setting->skip_forced);
  }

  void clear_stuck() {
    for (const auto& job : jobs_) job->stuck = -1;
  }

  // False: the table was given up.
  bool answer_game(i64 game, Counting counting) {
    const i64 row = game * G::kRows, paid = i64{shape().seats} * G::kRoles;
    const Result result =
        answer(state_.tables[game], *state_.setting, state_.global(game), state_.extra_of(game),
               &legal_[row], &actions_[row], &reward[game * paid], &skipped[game * shape().seats],
               counting, record.size() ? &record[game * shape().seats] : nullptr);
    terminated[game] = result.terminated;
    truncated[game] = result.truncated;
    reasons_[game] = result.reason;
    moves_[game] += result.recorder.moves;
    if (!result.over()) write_rows(game);
    return !result.stuck;
  }

  void sample_game(i64 game, Action* out) {
    Table<G>& table = state_.tables[game];
    Rng rng(state_.setting->seed, state_.global(game), table.episode, Stream::kSampling,
            table.sampled);
    for (i64 row = game * G::kRows; row < (game + 1) * G::kRows; ++row, ++out)
      *out = policy[row] >= 0 ? sample_action<G>(legal_[row], rng) : Action{};
    table.sampled = rng.drawn();
  }

  // False: the table was given up.
  bool begin_game(i64 game, Counting counting) {
    if (memory_bytes()) {
      const size_t bytes = static_cast<size_t>(shape().seats * memory_bytes());
      std::memset(state_.memory_of(game, 0), 0, bytes);
    }
    if (!begin(state_.tables[game], *state_.setting, state_.global(game), state_.extra_of(game),
               &legal_[game * G::kRows], &moves_[game], counting))
      return false;
    write_rows(game);
    return true;
  }

  void keep_final(i64 game, i64 at) {
    const Table<G>& table = state_.tables[game];
    const int seats = shape().seats, actions = shape().actions;
    final_game[at] = static_cast<i32>(game);
    final_length[at] = static_cast<i32>(table.length);
    final_reason[at] = reasons_[game];
    final_moves[at] = moves_[game];
    for (int s = 0; s < seats; ++s) {
      final_score[at * seats + s] = table.game.score(state_.config(), s);
      final_policy[at * seats + s] = table.player[s];
      if (!options().observe) continue;
      const i64 line = at * seats + s;
      see(game, s, &final_obs[line * row_bytes()]);
      if (actions) std::memset(&final_mask[line * actions], 0, static_cast<size_t>(actions));
    }
    if (!options().observe || !truncated[game] || !actions) return;
    for (int row = 0; row < G::kRows; ++row) {
      const int s = table.game.seat(row);
      if (s < 0) continue;
      Legal<G> legal = Legal<G>::none();
      call_legal(table.game, state_.config(), row, legal, state_.extra_of(game));
      expand_bits(legal, actions, &final_mask[(at * seats + s) * actions]);
    }
  }

  // What a seat is shown: its observation, and its memory behind it.
  void see(i64 game, int at, u8* out) const {
    call_observe(state_.tables[game].game, state_.config(), at, out, state_.extra_of(game));
    if (memory_bytes())
      std::memcpy(out + shape().obs_bytes, state_.memory_of(game, at),
                  static_cast<size_t>(memory_bytes()));
  }

  void write_rows(i64 game) {
    const Table<G>& table = state_.tables[game];
    for (int r = 0; r < G::kRows; ++r) {
      const i64 row = game * G::kRows + r;
      const int s = table.game.seat(r);
      seat[row] = static_cast<i8>(s);
      role[row] = static_cast<i8>(s < 0 ? 0 : table.game.role(r));
      policy[row] = s < 0 || table.player[s] < 0 ? static_cast<i16>(kNoPlayer) : table.player[s];
      if (!options().observe) continue;
      u8* out = &obs[row * row_bytes()];
      if (s < 0)
        std::memset(out, 0, static_cast<size_t>(row_bytes()));
      else
        see(game, s, out);
      if (shape().actions) expand_bits(legal_[row], shape().actions, &mask[row * shape().actions]);
    }
  }

  PoolState<G> state_;
  Array<Legal<G>> legal_;
  Array<Action> actions_;
  Array<u8> reasons_;
  Array<u64> moves_;
  std::vector<std::unique_ptr<SlotJob>> jobs_;
  ThreadPool thread_pool_;
};

}  // namespace sparring
