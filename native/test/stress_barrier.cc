// The threads of Barriers, of members that enter barriers of two groups again and again while packets are lost, and
// leave and join groups meanwhile, on a device that is only bookkeeping (fake_verbs.cc). One thread for each member
// plays JavaScript's.
//
// Who writes what. `entered` is written by each member before it enters; others read it when they have left that
// barrier, which orders the two: by the members' mutexes, the device's lock, and the word that says that a barrier is
// complete. A wait on the counter of a round of joining (`Meeting`) orders what members tell each other beside the
// device.
#include "../rdma_barrier.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <memory>

#include "stress.h"

namespace onesided {

struct BarriersFault {
  static void touch(Barriers& barriers) {
    for (auto& [key, group] : barriers.groups_) group.interval++;
  }
};

}  // namespace onesided

namespace {

using namespace onesided;

constexpr uint32_t kMembers = 4;
constexpr int kLives = 6;
constexpr uint32_t kRounds = 500;

struct Address {
  uint32_t qp;
  uint32_t qkey;
  uint32_t key;
};

// All members come to it before one goes on.
class Meeting {
 public:
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    const int round = round_;
    if (++here_ == kMembers) {
      here_ = 0;
      round_++;
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return round_ != round; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t here_ = 0;
  int round_ = 0;
};

Meeting meeting;
std::array<Address, kMembers> addresses;
// By member: barriers that it has entered. Not atomic on purpose: the barrier orders it.
std::array<uint32_t, kMembers> entered;

std::vector<Barriers::Step> dissemination(uint32_t rank) {
  std::vector<Barriers::Step> steps;
  uint32_t round = 0;
  for (uint32_t distance = 1; distance < kMembers; distance *= 2, round++) {
    steps.push_back({true, (rank + distance) % kMembers, round});
    steps.push_back({false, (rank + kMembers - distance) % kMembers, round});
  }
  return steps;
}

uint32_t doneOf(const uint32_t* words) { return __atomic_load_n(&words[Barriers::kDone], __ATOMIC_ACQUIRE); }

// Waits as a rank does: looks, and sleeps until it is told.
void waitFor(const uint32_t* words, uint32_t number, const uint32_t* news, int wake) {
  for (;;) {
    const uint32_t told = __atomic_load_n(news, __ATOMIC_SEQ_CST);
    if (doneOf(words) == number) return;
    if (told != __atomic_load_n(news, __ATOMIC_SEQ_CST)) continue;
    pollfd fd{wake, POLLIN, 0};
    CHECK(poll(&fd, 1, 60000) > 0);
    uint64_t count;
    (void)!read(wake, &count, sizeof count);
  }
}

void member(const VerbsLibrary* verbs, ibv_context* context, uint32_t rank, bool fault) {
  stress::Random random(rank + 1);
  uint32_t news = 0;
  const int wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  Barriers barriers(verbs, context, 1, 1, 64, &news, wake, 0.05, rank + 1);
  CHECK(barriers.make() == 0);
  CHECK(barriers.enter(12345) != 0 && barriers.leave(12345) != 0);
  for (int life = 0; life < kLives; life++) {
    uint32_t words[Barriers::kWords] = {};
    const uint32_t group = barriers.join(rank, 200'000, dissemination(rank), words);
    CHECK(group != 0);
    addresses[rank] = {barriers.qpNumber(), barriers.qkey(), group};
    entered[rank] = 0;
    meeting.wait();
    for (uint32_t peer = 0; peer < kMembers; peer++) {
      const auto& [qp, qkey, key] = addresses[peer];
      const int error = barriers.connect(group, peer, ibv_ah_attr{}, qp, qkey, key);
      // Of four members, each has a step with all others: it tells the next two, and waits for those before it.
      CHECK((error == 0) == (peer != rank));
    }
    meeting.wait();
    for (uint32_t round = 1; round <= kRounds; round++) {
      entered[rank] = round;
      CHECK(barriers.enter(group) == 0);
      if (fault) BarriersFault::touch(barriers);
      if (random(3) == 0) for (uint64_t i = random(20); i > 0; i--) std::this_thread::yield();
      waitFor(words, 2 * round - 1, &news, wake);
      for (const uint32_t theirs : entered) CHECK(theirs == round);
      // None writes the next before all have read this.
      CHECK(barriers.enter(group) == 0);
      waitFor(words, 2 * round, &news, wake);
    }
    meeting.wait();
    CHECK(barriers.leave(group) == 0 && barriers.leave(group) != 0);
  }
  barriers.stop();
  barriers.stop();
  close(wake);
}

}  // namespace

STRESS(bool fault) {
  const char* reason = nullptr;
  const VerbsLibrary* verbs = VerbsLibrary::open(&reason);
  CHECK(verbs != nullptr);
  int count = 0;
  ibv_device** devices = verbs->get_device_list(&count);
  CHECK(count == 1 && std::strcmp(verbs->get_device_name(devices[0]), "fake0") == 0);
  ibv_context* context = verbs->open_device(devices[0]);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < kMembers; rank++) threads.emplace_back(member, verbs, context, rank, fault);
  for (auto& thread : threads) thread.join();
  CHECK(verbs->close_device(context) == 0);
  verbs->free_device_list(devices);
  std::puts("barrier: nobody left before all had entered, and everybody left");
}
