// N games stepped together on CPU threads, writing into arrays that never move. Host only.
#pragma once

#include <atomic>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/crew.hpp"
#include "core/digest.hpp"
#include "core/face.hpp"
#include "core/refusal.hpp"
#include "core/soundness.hpp"
#include "core/table.hpp"

namespace sparring {

// Zeroed memory whose untouched pages cost nothing.
template <class T>
class Array {
 public:
  Array() = default;
  explicit Array(i64 count)
      : data_(static_cast<T*>(std::calloc(static_cast<size_t>(most<i64>(count, 1)), sizeof(T)))),
        count_(count) {
    if (!data_) throw std::bad_alloc();
  }
  T* data() const { return data_.get(); }
  i64 size() const { return count_; }
  T& operator[](i64 i) const { return data_.get()[i]; }

 private:
  struct Free {
    void operator()(T* data) const { std::free(data); }
  };
  std::unique_ptr<T[], Free> data_;
  i64 count_ = 0;
};

struct PoolOptions {
  i64 games = 1;
  u64 seed = 0;
  u32 first_game = 0;
  int threads = 1;
  int slots = 1;
  bool skip_forced = false;
  bool observe = true;   // write observations and byte masks
  int memory_bytes = 0;  // per (game, seat), behind the observation in every row
  bool every_game = false;
  u32 opening_plies = 0;
  bool records = false;  // keep what came of goals
};

// What the pool looks like from outside, whatever the game. R = games * rows per game.
class AnyPool {
 public:
  AnyPool(const PoolOptions& options, Shape shape, int rows, int roles, int box, int side_bytes)
      : options_(options),
        shape_(shape),
        rows_(rows),
        roles_(roles),
        box_(box),
        side_bytes_(side_bytes) {
    // More could not be numbered, and all sizes below this fit into 64 bits.
    if (options.games > std::numeric_limits<i32>::max())
      throw Trouble("a pool holds at most 2147483647 games, not " + std::to_string(options.games));
    const i64 n = options.games, r = n * rows;
    const i64 seats = shape.seats;
    seat = counted<i8>(r);
    role = counted<i8>(r);
    policy = counted<i16>(r);
    if (options.observe) {
      obs = counted<u8>(r * row_bytes());
      mask = counted<u8>(r * shape.actions);
      final_obs = counted<u8>(n * seats * row_bytes());
      final_mask = counted<u8>(n * seats * shape.actions);
    }
    reward = counted<f32>(n * seats * roles);
    skipped = counted<u16>(n * seats);
    if (options.records) record = counted<u32>(n * seats);
    terminated = counted<u8>(n);
    truncated = counted<u8>(n);
    final_game = counted<i32>(n);
    final_score = counted<f32>(n * seats);
    final_policy = counted<i16>(n * seats);
    final_length = counted<i32>(n);
    final_reason = counted<u8>(n);
    final_moves = counted<u64>(n);
    side = counted<u8>(n * side_bytes);
    memory = counted<u8>(n * seats * options.memory_bytes);
    left_out = counted<u8>(n);
    final_count.assign(static_cast<size_t>(options.slots), 0);
  }
  virtual ~AnyPool() = default;

  virtual void reset() = 0;
  // Checks the actions of one slot and keeps a copy; a refusal leaves everything as it was.
  virtual Refusal accept(int slot, const void* actions) = 0;
  virtual void send(int slot) = 0;
  virtual void recv(int slot) = 0;
  virtual void step_all() = 0;
  // Checks the actions of all rows, on all threads, and steps every game; a refusal leaves the
  // games as they were.
  virtual Refusal answer_all(const void* actions) = 0;
  virtual void sample(int slot, void* actions) = 0;
  virtual u64 digest() const = 0;
  virtual std::string audit() const = 0;
  virtual i64 table_bytes() const = 0;
  virtual const u8* tables() const = 0;
  // Legal actions as bits, one set of words per row.
  virtual const u64* legal_bits() const = 0;
  virtual int legal_words() const = 0;
  // What is wrong with one of `count` tables and the bytes beside them, "" if nothing. They need
  // not be those of this pool: a GPU has its own.
  virtual std::string check(i64 count, const u8* tables, const u8* sides) const = 0;
  // Goes on from all of these, which come from outside and are as long as the pool's own arrays.
  // What is wrong with one of them, as `check` says it; then nothing has changed.
  virtual std::string load(u64 seed, const u8* tables, const u8* sides, const u8* memories) = 0;
  virtual int set_lineups(const std::vector<f64>& weights, const std::vector<i16>& players,
                          const std::vector<u8>& shuffle) = 0;
  // Fills the pots, one after the other, with so many players each.
  virtual void set_pots(const std::vector<int>& sizes, const std::vector<f64>& weights,
                        const std::vector<i16>& players) = 0;
  // Positions in which games begin from now on: cumulative weights, the usual start's first; the
  // bytes of the games; for each the line of `sides` that goes with it. Returns what is wrong with
  // one of them; then nothing has changed.
  virtual std::string set_starts(std::vector<f64> up_to, const u8* games, std::vector<i32> side_of,
                                 std::vector<u8> sides) = 0;
  virtual i64 game_bytes() const = 0;
  // Where the setting has its `Starts`, whose pointers a GPU pool replaces by its own.
  virtual i64 starts_offset() const = 0;
  // Seats of the running games, by policies below `policies`.
  virtual std::vector<i64> seated(int policies) const = 0;
  // Counts the game's counters for the seats of a player, or for nobody's.
  virtual void set_counting(bool on, i16 player) = 0;
  // The sums since the last `clear_counts`, by counter.
  virtual std::vector<i64> counts() const = 0;
  virtual void clear_counts() = 0;
  virtual void set_weights(const std::vector<f32>& weights) = 0;
  virtual std::vector<f32> weights() const = 0;
  virtual void* config_bytes() = 0;
  // What a GPU pool needs to play the same games.
  virtual u8* setting_bytes() = 0;
  virtual i64 setting_size() const = 0;
  virtual u64 seed() const = 0;

  const PoolOptions& options() const { return options_; }
  const Shape& shape() const { return shape_; }
  int rows() const { return rows_; }
  int roles() const { return roles_; }
  int box() const { return box_; }
  int side_bytes() const { return side_bytes_; }
  int memory_bytes() const { return options_.memory_bytes; }
  int row_bytes() const { return shape_.obs_bytes + options_.memory_bytes; }
  i64 games() const { return options_.games; }
  i64 bytes() const { return bytes_; }  // of all arrays, once every page was touched
  void reseed(u64 seed) { reseed_to(seed); }

  i64 slot_begin(int slot) const { return options_.games * slot / options_.slots; }
  i64 slot_end(int slot) const { return options_.games * (slot + 1) / options_.slots; }

  // Decisions per row.
  Array<u8> obs, mask;
  Array<i8> seat, role;
  Array<i16> policy;
  // Per game.
  Array<f32> reward;
  Array<u16> skipped;
  Array<u32> record;
  Array<u8> terminated, truncated;
  // Games that just ended, compacted to the front of their slot in game order.
  Array<u8> final_obs, final_mask;
  Array<i32> final_game, final_length;
  Array<f32> final_score;
  Array<i16> final_policy;
  Array<u8> final_reason;
  Array<u64> final_moves;
  std::vector<i64> final_count;
  Array<u8> side;
  // [games, seats, memory_bytes]: outside the games, cleared when one begins anew.
  Array<u8> memory;
  Array<u8> left_out;  // by game, not 0: nothing in it is counted

 protected:
  virtual void reseed_to(u64 seed) = 0;

  template <class T>
  Array<T> counted(i64 count) {
    bytes_ += count * i64{sizeof(T)};
    return Array<T>(count);
  }

 private:
  i64 bytes_ = 0;
  PoolOptions options_;
  Shape shape_;
  int rows_, roles_, box_, side_bytes_;
};

template <Game G>
class Pool final : public AnyPool {
 public:
  using Config = typename G::Config;
  using Action = typename G::Action;

  Pool(const Config& config, const PoolOptions& options)
      : AnyPool(options, G::shape(config), G::kRows, G::kRoles, box_size(),
                sparring::side_bytes<G>(config)),
        tables_(counted<Table<G>>(options.games)),
        legal_(counted<Legal<G>>(options.games * G::kRows)),
        actions_(counted<Action>(options.games * G::kRows)),
        reasons_(counted<u8>(options.games)),
        moves_(counted<u64>(options.games)),
        crew_(options.slots > 1 ? options.threads : options.threads - 1) {
    setting_ = std::make_unique<OwnSetting<G>>();
    setting_->lineup = setting_->own_lineups;
    setting_->pot = setting_->own_pots;
    setting_->config = config;
    setting_->shape = shape();
    setting_->seed = options.seed;
    setting_->first_game = options.first_game;
    setting_->skip_forced = options.skip_forced;
    setting_->every_game = options.every_game;
    setting_->opening_plies = options.opening_plies;
    for (int slot = 0; slot < options.slots; ++slot)
      jobs_.push_back(std::make_unique<SlotJob>(*this, slot));
    i64 chunks = 0;
    for (const auto& job : jobs_) {
      job->first_count = chunks * kCountsEach;
      chunks += job->chunks(job->to - job->from);
    }
    counts_ = Array<i64>(chunks * kCountsEach);
    set_lineups({1.0}, std::vector<i16>(static_cast<size_t>(shape().seats), 0), {0});
  }

  ~Pool() override {
    for (int slot = 0; slot < options().slots; ++slot) wait(slot);
  }

  void reset() override {
    forget_given_up();
    for (int slot = 0; slot < options().slots; ++slot) run_now(slot, SlotJob::kRestart);
    for (int slot = 0; slot < options().slots; ++slot) demand_asked(slot);
  }

  Refusal accept(int slot, const void* actions) override {
    demand_asked(slot);
    const i64 from = slot_begin(slot) * G::kRows, to = slot_end(slot) * G::kRows;
    const Action* given = static_cast<const Action*>(actions);
    for (i64 row = from; row < to; ++row) {
      if (policy[row] < 0) continue;
      const Action& action = given[row - from];
      if (!is_playable<G>(legal_[row], action, shape().actions))
        return refusal_of<G>(global(row / G::kRows), row, seat[row], legal_[row], action);
    }
    std::memcpy(&actions_[from], given, static_cast<size_t>(to - from) * sizeof(Action));
    return {};
  }

  Refusal answer_all(const void* actions) override {
    for (int slot = 0; slot < options().slots; ++slot) demand_asked(slot);
    const Action* given = static_cast<const Action*>(actions);
    const bool at_once = options().slots == 1;
    for (int slot = 0; slot < options().slots; ++slot) {
      SlotJob& job = *jobs_[size_t(slot)];
      job.given = given + slot_begin(slot) * G::kRows;
      run_now(slot, at_once ? SlotJob::kAnswer : SlotJob::kCheck);
      if (const i64 row = job.refused; row != kNoRow)
        return refusal_of<G>(global(row / G::kRows), row, seat[row], legal_[row], actions_[row]);
    }
    if (at_once)
      demand_asked(0);
    else
      step_all();
    return {};
  }

  void send(int slot) override {
    jobs_[size_t(slot)]->task = SlotJob::kStep;
    crew_.submit(*jobs_[size_t(slot)]);
  }
  void recv(int slot) override {
    wait(slot);
    demand_asked(slot);
  }

  void step_all() override {
    for (int slot = 0; slot < options().slots; ++slot) run_now(slot, SlotJob::kStep);
    for (int slot = 0; slot < options().slots; ++slot) demand_asked(slot);
  }

  void sample(int slot, void* actions) override {
    demand_asked(slot);
    jobs_[size_t(slot)]->sample_into = static_cast<Action*>(actions);
    run_now(slot, SlotJob::kSample);
  }

  u64 digest() const override {
    constexpr int kSigned = kSignedRolesOf<G>;
    u64 sum = 0;
    for (i64 game = 0; game < games(); ++game) {
      Digest digest(global(game));
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

  std::string audit() const override {
    if constexpr (requires(const G& game) { game.audit(setting_->config); }) {
      for (i64 game = 0; game < games(); ++game)
        if (const char* broken = tables_[game].game.audit(setting_->config))
          return "game " + std::to_string(global(game)) + ": " + broken;
    }
    return {};
  }

  i64 table_bytes() const override { return sizeof(Table<G>); }
  const u8* tables() const override { return reinterpret_cast<const u8*>(tables_.data()); }
  const u64* legal_bits() const override { return legal_.data()->word; }
  int legal_words() const override { return Legal<G>::kWords; }

  std::string check(i64 count, const u8* tables, const u8* sides) const override {
    Table<G> table;
    for (i64 game = 0; game < count; ++game) {
      std::memcpy(static_cast<void*>(&table), tables + game * i64{sizeof table}, sizeof table);
      const u8* with = sides + game * side_bytes();
      if (std::string wrong = check_table(table, setting_->config, with); !wrong.empty())
        return "game " + std::to_string(global(game)) + ": " + wrong;
    }
    return {};
  }

  std::string load(u64 seed, const u8* tables, const u8* sides, const u8* memories) override {
    if (std::string wrong = check(games(), tables, sides); !wrong.empty()) return wrong;
    setting_->seed = seed;
    copy_over(tables_, tables);
    copy_over(side, sides);
    copy_over(memory, memories);
    refresh();
    return {};
  }

  int set_lineups(const std::vector<f64>& weights, const std::vector<i16>& players,
                  const std::vector<u8>& shuffle) override {
    const size_t seats = static_cast<size_t>(shape().seats);
    f64 total = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      Lineup<G>& lineup = setting_->own_lineups[i];
      lineup.up_to = total += weights[i];
      lineup.shuffle = shuffle[i] != 0;
      for (size_t s = 0; s < seats; ++s) lineup.player[s] = players[i * seats + s];
    }
    return setting_->lineups = static_cast<int>(weights.size());
  }

  void set_pots(const std::vector<int>& sizes, const std::vector<f64>& weights,
                const std::vector<i16>& players) override {
    size_t from = 0;
    for (size_t p = 0; p < sizes.size(); ++p) {
      Pot& pot = setting_->own_pots[p];
      f64 total = 0;
      pot.players = sizes[p];
      for (int i = 0; i < sizes[p]; ++i, ++from) {
        pot.up_to[i] = total += weights[from];
        pot.player[i] = players[from];
      }
    }
  }

  std::string set_starts(std::vector<f64> up_to, const u8* games, std::vector<i32> side_of,
                         std::vector<u8> sides) override {
    std::vector<G> found(side_of.size());
    if (!found.empty())
      std::memcpy(static_cast<void*>(found.data()), games, found.size() * sizeof(G));
    for (size_t i = 0; i < found.size(); ++i) {
      const u8* with = sides.data() + static_cast<size_t>(side_of[i]) * size_t(side_bytes());
      if (std::string wrong = check_position(found[i], setting_->config, with); !wrong.empty())
        return std::to_string(i) + ": " + wrong;
    }
    start_up_to_ = std::move(up_to);
    start_games_ = std::move(found);
    start_side_of_ = std::move(side_of);
    start_sides_ = std::move(sides);
    setting_->starts = {start_up_to_.data(), start_games_.data(), start_side_of_.data(),
                        start_sides_.data(), static_cast<i64>(start_games_.size())};
    return {};
  }
  i64 game_bytes() const override { return sizeof(G); }
  i64 starts_offset() const override {
    return reinterpret_cast<const u8*>(&setting_->starts) -
           reinterpret_cast<const u8*>(setting_.get());
  }

  std::vector<i64> seated(int policies) const override {
    std::vector<i64> seats(static_cast<size_t>(policies), 0);
    for (i64 game = 0; game < games(); ++game)
      for (int s = 0; s < shape().seats; ++s)
        if (const int player = tables_[game].player[s]; player >= 0 && player < policies)
          ++seats[static_cast<size_t>(player)];
    return seats;
  }

  void set_counting(bool on, i16 player) override {
    count_on_ = on;
    count_player_ = player;
  }

  std::vector<i64> counts() const override {
    std::vector<i64> sums(size_t{kCounterCount<G>}, 0);
    for (i64 at = 0; at < counts_.size(); ++at)
      if (at % kCountsEach < kCounterCount<G>) sums[size_t(at % kCountsEach)] += counts_[at];
    return sums;
  }

  void clear_counts() override { std::fill(counts_.data(), counts_.data() + counts_.size(), 0); }

  void set_weights(const std::vector<f32>& weights) override {
    demand_weights<G>(weights);
    setting_->wanted = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      setting_->weight[i] = weights[i];
      if (weights[i] != 0) setting_->wanted |= 1u << (i / G::kRoles);
    }
  }

  std::vector<f32> weights() const override {
    return {std::begin(setting_->weight), std::end(setting_->weight)};
  }

  void* config_bytes() override { return &setting_->config; }
  u8* setting_bytes() override { return reinterpret_cast<u8*>(setting_.get()); }
  i64 setting_size() const override { return sizeof(OwnSetting<G>); }
  u64 seed() const override { return setting_->seed; }

 protected:
  void reseed_to(u64 seed) override {
    setting_->seed = seed;
    // A game may carry something from one episode to the next; a new seed forgets it all.
    std::memset(static_cast<void*>(tables_.data()), 0,
                static_cast<size_t>(tables_.size()) * sizeof(Table<G>));
  }

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
      const Counting counting = pool.counting_in(first_count + chunk * kCountsEach);
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
      for (; game < end && given_up < 0; ++game) {
        if (!pool.answer_game(game, pool.counting_of(game, counting))) given_up = game;
        if (pool.terminated[game] || pool.truncated[game]) list[over++] = game;
      }
      return over;
    }

    void begin_anew(i64 first, Counting counting) {
      const i64 end = least(first + anew_each, anew);
      for (i64 i = first; i < end && given_up < 0; ++i) {
        const i64 game = ended[size_t(i)];
        if (task != kRestart) pool.keep_final(game, from + i);
        if (!pool.begin_game(game, pool.counting_of(game, counting))) given_up = game;
      }
    }

    int chunks(i64 count) const {
      return static_cast<int>((count + chunk_games - 1) / chunk_games);
    }

    Pool& pool;
    i64 from, to, chunk_games;
    i64 first_count = 0;  // of chunk 0 in counts_
    int slot;
    Task task = kStep;
    Part part = kDone;
    Action* sample_into = nullptr;
    const Action* given = nullptr;
    std::atomic<i64> refused = kNoRow;  // the first row whose action cannot be played
    std::vector<i64> ended_in;          // how many, by chunk of games
    std::vector<i64> ended;             // games; at first where their chunk begins
    i64 anew = 0, anew_each = 0;        // games that begin, and those of a chunk
    std::atomic<i64> given_up = -1;     // a game whose table was; nothing goes on until a reset
  };

  static constexpr int box_size() {
    if constexpr (kDiscrete<G>)
      return 0;
    else
      return static_cast<int>(sizeof(Action) / sizeof(f32));
  }

  // Every chunk of games adds up counters of its own, a few cache lines, so that no thread waits
  // for another and nothing is added atomically; sums of whole numbers do not depend on the chunks.
  static constexpr i64 kCountsEach = most((kCounterCount<G> + 7) / 8 * 8, 1);

  Counting counting_in(i64 at) const {
    if (kCounterCount<G> == 0 || !count_on_) return {};
    return {&counts_[at], count_player_};
  }
  Counting counting_of(i64 game, Counting others) const {
    return left_out[game] ? Counting{} : others;
  }

  template <class T>
  static void copy_over(const Array<T>& array, const u8* bytes) {
    if (array.size())
      std::memcpy(static_cast<void*>(array.data()), bytes, size_t(array.size()) * sizeof(T));
  }

  // Rewrites the rows from the tables, after their bytes were replaced.
  void refresh() {
    forget_given_up();
    for (i64 game = 0; game < games(); ++game) {
      look(tables_[game], *setting_, side_of(game), &legal_[game * G::kRows]);
      write_rows(game);
    }
    clear_results(0, games());
    std::fill(final_count.begin(), final_count.end(), 0);
  }

  u32 global(i64 game) const { return setting_->first_game + static_cast<u32>(game); }
  u8* side_of(i64 game) const { return side.data() + game * side_bytes(); }
  u8* memory_of(i64 game, int at) const {
    return memory.data() + (game * shape().seats + at) * memory_bytes();
  }

  void run_now(int slot, typename SlotJob::Task task) {
    SlotJob& job = *jobs_[size_t(slot)];
    job.task = task;
    if (crew_.workers() == 0) {
      Crew::run_alone(job);
    } else {
      crew_.submit(job);
      wait(slot);
    }
  }

  // With one slot the calling thread is one of the crew, and may be all of it.
  void wait(int slot) { crew_.wait(*jobs_[size_t(slot)], options().slots == 1); }

  // Refuses to go on with a game that was given up; a reset or other tables may help.
  void demand_asked(int slot) const {
    const i64 game = jobs_[size_t(slot)]->given_up;
    if (game >= 0) throw never_asks<G>(setting_->config, global(game), setting_->skip_forced);
  }

  void forget_given_up() {
    for (const auto& job : jobs_) job->given_up = -1;
  }

  // A fresh start has been paid nothing and has ended nothing.
  void clear_results(i64 from, i64 to) {
    const i64 seats = shape().seats;
    std::fill(&reward[from * seats * G::kRoles], &reward[0] + to * seats * G::kRoles, 0.0f);
    std::fill(&skipped[from * seats], &skipped[0] + to * seats, u16{0});
    if (record.size()) std::fill(&record[from * seats], &record[0] + to * seats, u32{0});
    std::fill(&terminated[from], &terminated[0] + to, u8{0});
    std::fill(&truncated[from], &truncated[0] + to, u8{0});
  }

  // False: the table was given up.
  bool answer_game(i64 game, Counting counting) {
    const i64 row = game * G::kRows, paid = i64{shape().seats} * G::kRoles;
    const Result result =
        answer(tables_[game], *setting_, global(game), side_of(game), &legal_[row], &actions_[row],
               &reward[game * paid], &skipped[game * shape().seats], counting,
               record.size() ? &record[game * shape().seats] : nullptr);
    terminated[game] = result.terminated;
    truncated[game] = result.truncated;
    reasons_[game] = result.reason;
    moves_[game] += result.recorder.moves;
    if (!result.over()) write_rows(game);
    return !result.given_up;
  }

  void sample_game(i64 game, Action* out) {
    Table<G>& table = tables_[game];
    Rng rng(setting_->seed, global(game), table.episode, Stream::kSampling, table.sampled);
    for (i64 row = game * G::kRows; row < (game + 1) * G::kRows; ++row, ++out)
      *out = policy[row] >= 0 ? sample_action<G>(legal_[row], rng) : Action{};
    table.sampled = rng.drawn();
  }

  // False: the table was given up.
  bool begin_game(i64 game, Counting counting) {
    if (memory_bytes()) {
      const size_t bytes = static_cast<size_t>(shape().seats * memory_bytes());
      std::memset(memory_of(game, 0), 0, bytes);
    }
    if (!begin(tables_[game], *setting_, global(game), side_of(game), &legal_[game * G::kRows],
               &moves_[game], counting))
      return false;
    write_rows(game);
    return true;
  }

  void keep_final(i64 game, i64 at) {
    const Table<G>& table = tables_[game];
    const int seats = shape().seats, actions = shape().actions;
    final_game[at] = static_cast<i32>(game);
    final_length[at] = static_cast<i32>(table.length);
    final_reason[at] = reasons_[game];
    final_moves[at] = moves_[game];
    for (int s = 0; s < seats; ++s) {
      final_score[at * seats + s] = table.game.score(setting_->config, s);
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
      call_legal(table.game, setting_->config, row, legal, side_of(game));
      expand_bits(legal, actions, &final_mask[(at * seats + s) * actions]);
    }
  }

  // What a seat is shown: its observation, and its memory behind it.
  void see(i64 game, int at, u8* out) const {
    call_observe(tables_[game].game, setting_->config, at, out, side_of(game));
    if (memory_bytes())
      std::memcpy(out + shape().obs_bytes, memory_of(game, at),
                  static_cast<size_t>(memory_bytes()));
  }

  void write_rows(i64 game) {
    const Table<G>& table = tables_[game];
    for (int r = 0; r < G::kRows; ++r) {
      const i64 row = game * G::kRows + r;
      const int s = table.game.seat(r);
      seat[row] = static_cast<i8>(s);
      role[row] = static_cast<i8>(s < 0 ? 0 : table.game.role(r));
      policy[row] = s < 0 || table.player[s] < 0 ? static_cast<i16>(kNobody) : table.player[s];
      if (!options().observe) continue;
      u8* out = &obs[row * row_bytes()];
      if (s < 0)
        std::memset(out, 0, static_cast<size_t>(row_bytes()));
      else
        see(game, s, out);
      if (shape().actions) expand_bits(legal_[row], shape().actions, &mask[row * shape().actions]);
    }
  }

  std::unique_ptr<OwnSetting<G>> setting_;
  std::vector<f64> start_up_to_;
  std::vector<G> start_games_;
  std::vector<i32> start_side_of_;
  std::vector<u8> start_sides_;
  Array<Table<G>> tables_;
  Array<Legal<G>> legal_;
  Array<Action> actions_;
  Array<u8> reasons_;
  Array<u64> moves_;
  Array<i64> counts_;  // [chunks, kCountsEach]
  bool count_on_ = true;
  i16 count_player_ = 0;
  std::vector<std::unique_ptr<SlotJob>> jobs_;
  Crew crew_;
};

}  // namespace sparring
