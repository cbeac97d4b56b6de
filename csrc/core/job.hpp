// Work in chunks, for a thread pool (core/thread_pool.hpp) or the calling thread. A job has phases;
// a phase starts when all chunks of the one before are finished. On CPUs and in browsers.
#pragma once

namespace sparring {

class Job {
 public:
  virtual ~Job() = default;
  // Prepares a phase and returns its number of chunks; -1 when there are no more phases.
  virtual int open(int phase) = 0;
  virtual void run(int phase, int chunk) = 0;
  // Runs all phases on the calling thread.
  void run_alone() {
    for (int phase = 0;; ++phase) {
      const int chunks = open(phase);
      if (chunks < 0) return;
      for (int chunk = 0; chunk < chunks; ++chunk) run(phase, chunk);
    }
  }

#if !defined(__wasm__)
 private:
  friend class ThreadPool;
  int phase_ = 0;
  int chunks_ = 0;
  int taken_ = 0;
  int finished_ = 0;
  bool active_ = false;
#endif
};

}  // namespace sparring
