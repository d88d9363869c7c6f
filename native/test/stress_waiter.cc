// The thread that waits for a device's events while JavaScript sleeps, over descriptors that are rung by two others.
// This thread plays JavaScript's.
#include "../rdma_waiter.h"

#include <sys/eventfd.h>

#include <atomic>
#include <cstdio>

#include "stress.h"

namespace {

std::mutex inbox;
uintptr_t newest = 0;

}  // namespace

extern "C" napi_status napi_call_threadsafe_function(napi_threadsafe_function, void* message,
                                                     napi_threadsafe_function_call_mode) {
  std::lock_guard<std::mutex> lock(inbox);
  newest = std::max(newest, reinterpret_cast<uintptr_t>(message));
  return napi_ok;
}

STRESS(bool fault) {
  using onesided::Waiter;
  stress::Random random(3);
  for (int life = 0; life < 10; life++) {
    newest = 0;
    Waiter waiter;
    int fds[3];
    for (int i = 0; i < 3; i++) {
      fds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
      CHECK(fds[i] >= 0);
      waiter.fds[i] = {fds[i], POLLIN, 0};
    }
    waiter.thread = std::thread([&waiter] { waiter.run(); });
    std::atomic<bool> over{false};
    std::thread ringer([&] {
      const uint64_t one = 1;
      for (stress::Random pauses(5); !over;) {
        CHECK(write(fds[pauses(3)], &one, sizeof one) == sizeof one);
        for (uint64_t i = pauses(4000); i > 0; i--) std::atomic_signal_fence(std::memory_order_seq_cst);
      }
    });
    for (int round = 0; round < 100; round++) {
      const uint32_t generation = waiter.begin(random(2) == 0 ? 1 : 60000);
      if (fault) waiter.timeoutMs = 1;
      for (;;) {
        std::lock_guard<std::mutex> lock(inbox);
        CHECK(newest <= generation);
        if (newest == generation) break;
      }
      uint64_t count;
      for (const int fd : fds) (void)!read(fd, &count, sizeof count);
    }
    if (random(2) == 0) waiter.begin(60000);
    waiter.stop(fds[2]);
    CHECK(!waiter.thread.joinable());
    over = true;
    ringer.join();
    for (const int fd : fds) close(fd);
  }
  std::puts("waiter: every wait ended");
}
