// Work in chunks, for a thread pool (core/thread_pool.hpp) or the calling thread. A job has phases;
// a phase starts when all chunks of the one before are finished. Host only.
#pragma once

namespace sparring {

class Job {
 public:
  virtual ~Job() = default;
  // Prepares a phase and returns its number of chunks; -1 when there are no more phases.
  virtual int open(int phase) = 0;
  virtual void run(int phase, int chunk) = 0;

 private:
  friend class ThreadPool;
  int phase_ = 0;
  int chunks_ = 0;
  int taken_ = 0;
  int finished_ = 0;
  bool active_ = false;
};

}  // namespace sparring
