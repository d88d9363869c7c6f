// The thread of a Parker: sleeps that end by a wake, by their time and by an interruption, with two wakers that change
// the word meanwhile. This thread plays JavaScript's.
#include "../parker.cc"

#include <vector>

#include "stress.h"

namespace {

// What the thread has sent, in order: a queue of one, since one sleep is pending at a time, and at most one message of
// an interrupted one is on its way.
std::mutex inbox;
std::vector<uintptr_t> messages;

}  // namespace

// The only function of Node-API that the thread calls.
extern "C" napi_status napi_call_threadsafe_function(napi_threadsafe_function, void* message,
                                                     napi_threadsafe_function_call_mode) {
  std::lock_guard<std::mutex> lock(inbox);
  messages.push_back(reinterpret_cast<uintptr_t>(message));
  return napi_ok;
}

namespace {

using namespace onesided;
using stress::Random;

constexpr int kRounds = 4000;

// Whether the sleep of this generation has reported.
bool reported(uint32_t generation) {
  std::lock_guard<std::mutex> lock(inbox);
  int times = 0;
  for (const uintptr_t message : messages) {
    CHECK((message & 3) <= kTimedOut);
    CHECK(static_cast<uint32_t>(message >> 2) <= generation);
    if (static_cast<uint32_t>(message >> 2) == generation) times++;
  }
  CHECK(times <= 1);
  if (times == 1) messages.clear();
  return times == 1;
}

}  // namespace

STRESS(bool fault) {
  static int32_t word = 0;
  std::atomic<bool> over{false};
  std::vector<std::thread> wakers;
  for (uint64_t seed = 1; seed <= 2; seed++) {
    wakers.emplace_back([&over, seed] {
      Random random(seed);
      while (!over) {
        if (random(3) != 0) __atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);
        futexWake(&word, 1);
        for (uint64_t i = random(4000); i > 0; i--) std::atomic_signal_fence(std::memory_order_seq_cst);
      }
    });
  }
  Random random(7);
  for (int life = 0; life < 20; life++) {
    State state;
    state.thread = std::thread([&state] { state.run(); });
    {
      std::lock_guard<std::mutex> lock(inbox);
      messages.clear();
    }
    for (int round = 0; round < kRounds / 20; round++) {
      const double timeout = random(4) == 0 ? 0.01 : INFINITY;
      const uint32_t generation = state.begin(&word, __atomic_load_n(&word, __ATOMIC_SEQ_CST), timeout);
      // What `begin` guards by the lock, without it.
      if (fault) state.sleep.timeoutMs = 1;
      if (random(3) != 0) {
        while (!reported(generation)) std::this_thread::yield();
        continue;
      }
      for (uint64_t i = random(2000); i > 0; i--) std::atomic_signal_fence(std::memory_order_seq_cst);
      std::unique_lock<std::mutex> lock(state.mutex);
      state.cancel(lock);
      CHECK(!state.busy && !state.requested);
    }
    if (random(2) == 0) state.begin(&word, __atomic_load_n(&word, __ATOMIC_SEQ_CST), INFINITY);
    state.stop();
    CHECK(!state.thread.joinable());
  }
  over = true;
  for (auto& waker : wakers) waker.join();
  std::puts("parker: every sleep ended once");
}
