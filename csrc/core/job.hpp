// Work that is cut into chunks, for threads (core/thread_pool.hpp) or for one. A job has phases; a
// phase starts when the one before it is finished by everybody. Host only.
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
