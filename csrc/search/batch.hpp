// What all searches of many decisions share: the interface that Python sees, and the jobs by which
// CPU threads select rows for a network and take its outputs; in browsers a single one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/array.hpp"
#include "core/thread_pool.hpp"

namespace sparring {

// A root: an environment with its extra state, the number of its game, and the searched row.
struct SearchRoot {
  const void* setting;  // Setting<G>
  const u8* env;        // Env<G>
  const u8* extra;
  u32 game;
  int row, simulations;
};

// An edge as it is shown.
struct EdgeReport {
  int action;
  f32 prior;
  u32 visits;
  f32 q;
  int child;
};

// Interface of a search, the same for every game.
class AnySearch {
 public:
  virtual ~AnySearch() = default;
  // keep: a single root goes on with what the last search knows of it, up to so many visits.
  virtual void begin(const std::vector<SearchRoot>& roots, bool keep) = 0;
  // Searches one decision in these worlds, which look alike to its seat, by weight.
  virtual void begin_worlds(const std::vector<SearchRoot>&, const std::vector<f64>&) {
    raise(ConfigError("trees have no worlds"));
  }
  // Takes log-weights of what is hidden [roots, belief_size], by which worlds are drawn. After the
  // rows of the roots were selected.
  virtual void believe(const f32*) { raise(ConfigError("trees have no worlds")); }
  // Sets the step of mirror descent by which policies improve, from the next search on.
  virtual void set_step(f32, f32) { raise(ConfigError("trees take no steps")); }
  // Selects leaves and writes their rows to `obs`; returns the number of rows, 0 when all
  // simulations are made.
  virtual i64 select() = 0;
  // Takes the evaluation of the selected rows [rows, head_width], [rows].
  virtual void expand(const f32* policy, const f32* value) = 0;
  // Results by root. Arrays are [roots, choices]: actions, or sampled continuous actions.
  virtual void results(f32* policy, i32* visits, f32* q, f32* value, i32* chosen,
                       f32* numbers) const = 0;
  virtual std::vector<int> line(i64 tree) const = 0;
  virtual std::vector<EdgeReport> edges(i64 tree, int node) const = 0;
  virtual int nodes(i64 tree) const = 0;
  virtual int settled(i64 tree) const = 0;

  i64 roots = 0, max_rows = 0;
  int row_bytes = 0, head_width = 0, choices = 0;
  Array<u8> obs;  // [max_rows, row_bytes]
};

// A search whose roots are worked on in chunks, each by one thread.
class ThreadedSearch : public AnySearch {
 public:
  i64 select() final {
    SelectJob job(*this);
    run(job);
    return job.rows;
  }

  void expand(const f32* policy, const f32* value) final {
    ExpandJob job(*this, policy, value);
    run(job);
  }

 protected:
  ThreadedSearch(i64 most_roots, int threads)
      : threads_(max(threads, 1) - 1), rows_(most_roots), first_row_(most_roots) {}

  // Selects what a root needs to know and returns the number of rows.
  virtual i64 select_in(i64 root) = 0;
  // Writes these rows.
  virtual void observe_in(i64 root, i64 rows, u8* to) = 0;
  // Takes the outputs for them.
  virtual void settle_in(i64 root, i64 rows, const f32* policy, const f32* value) = 0;

 private:
  void run(Job& job) {
    if (threads_.workers() == 0) return ThreadPool::run_alone(job);
    threads_.submit(job);
    threads_.wait(job, true);
  }

  // Work on all roots, some per chunk.
  class RootsJob : public Job {
   public:
    explicit RootsJob(ThreadedSearch& of) : search(of), each(max<i64>((of.roots + 63) / 64, 1)) {}
    int chunks() const { return static_cast<int>((search.roots + each - 1) / each); }
    template <class Work>
    void for_chunk(int chunk, Work work) const {
      const i64 end = min((chunk + 1) * each, search.roots);
      for (i64 root = chunk * each; root < end; ++root) work(root);
    }
    ThreadedSearch& search;
    i64 each;
  };

  class SelectJob final : public RootsJob {
   public:
    using RootsJob::RootsJob;
    int open(int phase) override {
      if (phase == 1)
        for (i64 root = 0; root < search.roots; ++root) {
          search.first_row_[root] = rows;
          rows += search.rows_[root];
        }
      return phase < 2 ? chunks() : -1;
    }
    void run(int phase, int chunk) override {
      for_chunk(chunk, [&](i64 root) {
        if (phase == 0)
          search.rows_[root] = search.select_in(root);
        else if (const i64 rows_here = search.rows_[root])
          search.observe_in(root, rows_here,
                            &search.obs[search.first_row_[root] * search.row_bytes]);
      });
    }
    i64 rows = 0;
  };

  class ExpandJob final : public RootsJob {
   public:
    ExpandJob(ThreadedSearch& of, const f32* policy, const f32* value)
        : RootsJob(of), policy_(policy), value_(value) {}
    int open(int phase) override { return phase == 0 ? chunks() : -1; }
    void run(int, int chunk) override {
      for_chunk(chunk, [&](i64 root) {
        const i64 first = search.first_row_[root];
        if (const i64 rows = search.rows_[root])
          search.settle_in(root, rows, policy_ + first * search.head_width, value_ + first);
        search.rows_[root] = 0;
      });
    }

   private:
    const f32* policy_;
    const f32* value_;
  };

  ThreadPool threads_;
  Array<i64> rows_, first_row_;  // of each root, that await their evaluation
};

}  // namespace sparring
