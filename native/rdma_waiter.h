// The thread that waits for a device's events while JavaScript sleeps without blocking.
#pragma once

#include <node_api.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace onesided {

// A wait for events that leaves the JavaScript thread free.
struct Waiter {
  std::mutex mutex;
  std::condition_variable changed;
  std::thread thread;
  pollfd fds[3];
  bool requested = false;
  bool stopping = false;
  int timeoutMs = 0;
  uint32_t generation = 0;
  napi_threadsafe_function call = nullptr;

  void run() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return requested || stopping; });
      if (stopping) return;
      requested = false;
      const uintptr_t now = generation;
      const int timeout = timeoutMs;
      pollfd polled[3] = {fds[0], fds[1], fds[2]};
      lock.unlock();
      poll(polled, 3, timeout);
      lock.lock();
      if (stopping) return;
      napi_call_threadsafe_function(call, reinterpret_cast<void*>(now), napi_tsfn_nonblocking);
    }
  }

  // Hands a wait to the thread. Gives its generation.
  uint32_t begin(double milliseconds) {
    std::lock_guard<std::mutex> lock(mutex);
    generation = (generation + 1) & 0x7fffffff;
    timeoutMs = static_cast<int>(std::min(std::max(milliseconds, 1.0), 1e9));
    requested = true;
    changed.notify_all();
    return generation;
  }

  // Ends the thread. `wake` is the one of its descriptors that is this side's.
  void stop(int wake) {
    if (!thread.joinable()) return;
    {
      std::lock_guard<std::mutex> lock(mutex);
      stopping = true;
      changed.notify_all();
    }
    const uint64_t one = 1;
    (void)!write(wake, &one, sizeof one);
    thread.join();
  }
};

}  // namespace onesided
