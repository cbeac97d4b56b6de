// Worker threads that take chunks of a job. Host only.
#pragma once

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

// More than any machine has cores; a larger number is a mistake.
inline constexpr int kMaxThreads = 1024;

// How long a thread that has nothing to do looks for news before it sleeps. Waking a sleeper takes
// longer than a step of a small pool; what is asked of a thread_pool next often follows at once.
inline constexpr std::chrono::microseconds kAwake{20};
inline constexpr std::chrono::microseconds kAlert{4};  // without offering the core to others

// Cores that this process may use.
inline int usable_cores() {
#if defined(__linux__)
  cpu_set_t mine;
  if (sched_getaffinity(0, sizeof(mine), &mine) == 0) return CPU_COUNT(&mine);
#endif
  return static_cast<int>(std::thread::hardware_concurrency());
}

class ThreadPool {
 public:
  explicit ThreadPool(int workers) : looks_(workers > 0 && workers < usable_cores()) {
    if (workers > kMaxThreads)
      throw ConfigError("threads=" + std::to_string(workers) + " is more than " +
                        std::to_string(kMaxThreads) + "; one per core is best, this machine has " +
                        std::to_string(std::thread::hardware_concurrency()));
    threads_.reserve(static_cast<size_t>(most(workers, 0)));
    try {
      for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error& wrong) {
      close();  // a thread that is not joined ends the process
      throw ConfigError("only " + std::to_string(threads_.size()) + " of " +
                        std::to_string(workers) + " threads could be started (" +
                        wrong.code().message() + "); give fewer threads");
    }
  }

  ~ThreadPool() { close(); }

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int workers() const { return static_cast<int>(threads_.size()); }

  // Hands the job to the workers and returns. The job must live until `wait` has returned.
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

  // Returns when the job is done; with `help` the calling thread takes chunks too.
  void wait(Job& job, bool help) {
    std::unique_lock lock(mutex_);
    while (job.active_) {
      if (help && job.taken_ < job.chunks_)
        take(job, lock);
      else
        await_news(lock);
    }
  }

  // Runs the whole job on the calling thread.
  static void run_alone(Job& job) {
    for (int phase = 0;; ++phase) {
      const int chunks = job.open(phase);
      if (chunks < 0) return;
      for (int chunk = 0; chunk < chunks; ++chunk) job.run(phase, chunk);
    }
  }

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
        take(*ready, lock);
      else
        await_news(lock);
    }
  }

  // Returns when something has changed since the lock was taken: looks out for it for a moment,
  // then sleeps. Threads without a core of their own sleep at once, they would only be in the way.
  void await_news(std::unique_lock<std::mutex>& lock) {
    const unsigned known = changes_.load(std::memory_order_relaxed);
    if (looks_) {
      lock.unlock();
      const auto began = std::chrono::steady_clock::now();
      for (auto waited = began - began; waited < kAwake && unchanged(known);
           waited = std::chrono::steady_clock::now() - began) {
        for (int i = 0; i < 32 && unchanged(known); ++i) relax();
        if (waited >= kAlert && unchanged(known)) std::this_thread::yield();
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

  void take(Job& job, std::unique_lock<std::mutex>& lock) {
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

  const bool looks_;
  std::atomic<unsigned> changes_{0};  // grows under the lock, whenever there is news
  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<Job*> jobs_;
  std::vector<std::thread> threads_;
  bool closing_ = false;
};

}  // namespace sparring
