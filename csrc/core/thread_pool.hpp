// A pool of worker threads that run the chunks of jobs. In a browser it has none.
#pragma once

#if defined(__wasm__)

#include "core/job.hpp"

namespace sparring {

class ThreadPool {
 public:
  explicit ThreadPool(int) {}
  int workers() const { return 0; }
  void submit(Job& job) { job.run_alone(); }
  void wait(Job&, bool) {}
  static void run_alone(Job& job) { job.run_alone(); }
};

}  // namespace sparring

#else

#if defined(__linux__)
#include <sched.h>
#endif

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/job.hpp"

namespace sparring {

// A larger number of threads is taken for a mistake.
inline constexpr int kMaxThreads = 1024;

// An idle thread spins so long before it sleeps. Waking a thread takes longer than a step of a
// small pool, and the next job often follows at once.
inline constexpr std::chrono::microseconds kSpin{20};
inline constexpr std::chrono::microseconds kSpinWithoutYield{4};

// Cores that this process may use.
inline int usable_cores() {
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return CPU_COUNT(&allowed);
#endif
  return static_cast<int>(std::thread::hardware_concurrency());
}

class ThreadPool {
 public:
  explicit ThreadPool(int workers) : spins_(workers > 0 && workers < usable_cores()) {
    if (workers > kMaxThreads)
      throw ConfigError("threads=" + std::to_string(workers) + " is more than " +
                        std::to_string(kMaxThreads) + "; one per core is best, this machine has " +
                        std::to_string(std::thread::hardware_concurrency()));
    threads_.reserve(static_cast<size_t>(max(workers, 0)));
    try {
      for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error& error) {
      close();  // destroying a thread that is not joined would end the process
      throw ConfigError("only " + std::to_string(threads_.size()) + " of " +
                        std::to_string(workers) + " threads could be started (" +
                        error.code().message() + "); give fewer threads");
    }
  }

  ~ThreadPool() { close(); }

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int workers() const { return static_cast<int>(threads_.size()); }

  // Starts the job on the workers and returns. The job must live until `wait` has returned.
  void submit(Job& job) {
    {
      std::lock_guard lock(mutex_);
      job.active_ = true;
      job.phase_ = -1;
      next_phase(job);
      if (job.active_) jobs_.push_back(&job);
      changes_.fetch_add(1, std::memory_order_release);
    }
    news_.notify_all();
  }

  // Returns when the job is done; with `help` the calling thread runs chunks too.
  void wait(Job& job, bool help) {
    std::unique_lock lock(mutex_);
    while (job.active_) {
      if (help && job.taken_ < job.chunks_)
        run_chunk(job, lock);
      else
        await_change(lock);
    }
  }

  static void run_alone(Job& job) { job.run_alone(); }

 private:
  void close() {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
      changes_.fetch_add(1, std::memory_order_release);
    }
    news_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (!closing_) {
      Job* ready = nullptr;
      for (Job* job : jobs_)
        if (job->taken_ < job->chunks_) {
          ready = job;
          break;
        }
      if (ready)
        run_chunk(*ready, lock);
      else
        await_change(lock);
    }
  }

  // Returns when the jobs have changed since the lock was taken: spins for a moment, then sleeps.
  // With more threads than cores threads sleep at once, so that they do not block the others.
  void await_change(std::unique_lock<std::mutex>& lock) {
    const unsigned known = changes_.load(std::memory_order_relaxed);
    if (spins_) {
      lock.unlock();
      const auto began = std::chrono::steady_clock::now();
      for (auto waited = began - began; waited < kSpin && unchanged(known);
           waited = std::chrono::steady_clock::now() - began) {
        for (int i = 0; i < 32 && unchanged(known); ++i) relax();
        if (waited >= kSpinWithoutYield && unchanged(known)) std::this_thread::yield();
      }
      lock.lock();
    }
    news_.wait(lock, [&] { return !unchanged(known); });
  }

  bool unchanged(unsigned known) const { return changes_.load(std::memory_order_acquire) == known; }

  static void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");  // about as long as x86's pause; yield is a no-op on most
#endif
  }

  void run_chunk(Job& job, std::unique_lock<std::mutex>& lock) {
    const int phase = job.phase_;
    const int chunk = job.taken_++;
    lock.unlock();
    job.run(phase, chunk);
    lock.lock();
    if (++job.finished_ < job.chunks_) return;
    next_phase(job);
    if (!job.active_) std::erase(jobs_, &job);
    changes_.fetch_add(1, std::memory_order_release);
    news_.notify_all();
  }

  static void next_phase(Job& job) {
    do {
      job.taken_ = job.finished_ = 0;
      job.chunks_ = job.open(++job.phase_);
    } while (job.chunks_ == 0);
    if (job.chunks_ < 0) job.active_ = false;
  }

  const bool spins_;
  std::atomic<unsigned> changes_{0};  // incremented under the lock with every change of the jobs
  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<Job*> jobs_;
  std::vector<std::thread> threads_;
  bool closing_ = false;
};

}  // namespace sparring

#endif
