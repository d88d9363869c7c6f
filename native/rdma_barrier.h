// A thread that carries out barriers over datagrams, while JavaScript computes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "pin.h"
#include "verbs_library.h"

namespace onesided {

// The protocol is that of src/verbs/adapter-barrier.ts. One thread serves all groups of a context, with one queue pair
// of type UD. A packet carries the key of the group at the member that it is for, which is a random number, so that
// packets of groups that were there before are not taken for others.
//
// The thread and the JavaScript thread take `mutex_` for everything here but what is made before the thread starts and
// stays (queues, memory, descriptors). The thread holds it while it looks at what has come, not while it sleeps;
// JavaScript while it enters a barrier, which posts messages at once, so that they do not wait for the thread to wake.
// The thread alone fetches completions of receives; both fetch those of sends.
//
// What JavaScript reads without the mutex: the words of a group. The side that completes a barrier writes the others
// first and `kDone` last (release); JavaScript reads that (acquire). Then the thread counts in `news`, and writes to
// the context's descriptor; in this order, so that a rank that has taken what the descriptor had to read finds the
// count (src/providers/rdma-core/rdma-parking.ts).
//
// If the queue pair takes nothing any more, the thread ends, and writes to `kFailed` of all groups.
//
// It waits for nothing but its descriptors, and looks at `ending_` between packets, so `stop` returns at once, whatever
// other ranks do.
class Barriers {
 public:
  // The words of a group.
  enum Word { kDone, kAwaited, kPackets, kNacks, kFutile, kResent, kDuplicates, kFailed, kWords };
  enum { kMostSteps = 4096 };

  struct Step {
    bool sends;
    uint32_t peer;
    uint32_t tag;
  };

  // `news`: a word, counted up. `wake`: an eventfd. `loss`: the share of packets that are lost, for tests.
  Barriers(const VerbsLibrary* verbs, ibv_context* context, uint8_t port, uint8_t gidIndex, uint32_t most,
           uint32_t* news, int wake, double loss, uint64_t seed);
  ~Barriers();
  Barriers(const Barriers&) = delete;

  // Makes what it needs, and starts the thread. Gives an errno.
  int make();
  uint32_t qpNumber() const { return qp_->qp_num; }
  uint32_t qkey() const { return qkey_; }

  // A group, by the key that others use to reach it. Gives 0 if it cannot have one.
  uint32_t join(uint32_t rank, int64_t nackAfter, std::vector<Step> schedule, uint32_t* words);
  // Where a rank of the schedule is reached. Gives an errno.
  int connect(uint32_t group, uint32_t rank, const ibv_ah_attr& where, uint32_t qpNumber, uint32_t qkey, uint32_t key);
  // Enters the next barrier.
  int enter(uint32_t group);
  int leave(uint32_t group);
  // Ends the thread. Idempotent.
  void stop();

 private:
  // native/test/stress_barrier.cc: what must be reported.
  friend struct BarriersFault;

  struct Peer {
    uint32_t rank = 0;
    ibv_ah* ah = nullptr;
    uint32_t qpNumber = 0;
    uint32_t qkey = 0;
    uint32_t key = 0;
  };
  struct Group {
    uint32_t rank = 0;
    std::vector<Step> schedule;
    std::vector<Peer> peers;
    // By step that waits: the last barrier for which its message has come.
    std::vector<uint32_t> came;
    // The barrier that this member is in, or was in last, and the next step of its schedule.
    uint32_t number = 0;
    size_t at = 0;
    // Nanoseconds: between Nacks, and when the next one is due.
    int64_t nackAfter = 0;
    int64_t interval = 0;
    int64_t due = 0;
    uint32_t counts[kWords] = {};
    uint32_t* words = nullptr;

    bool isOver() const { return at == schedule.size(); }
  };

  void run();
  void serve();
  // Give whether the queue pair still takes something.
  bool drain();
  bool take(const ibv_wc& wc);
  void fail();
  void arrived(Group& group, uint32_t source, uint32_t tag, uint32_t number);
  void asked(Group& group, uint32_t source, uint32_t tag, uint32_t number);
  // Gives whether the barrier has become complete.
  bool advance(Group& group);
  void tell();
  void send(Group& group, uint32_t peer, uint32_t tag, uint32_t number, uint32_t kind);
  void askAgain();
  void arm(int64_t due);
  int postReceive(uint32_t slot);
  void reclaim();
  bool drawLoss();
  static void count(Group& group, Word what);
  void release(Group& group);
  void destroyRetired();

  const VerbsLibrary* verbs_;
  ibv_context* context_;
  const uint8_t port_;
  const uint8_t gidIndex_;
  // Receives, and sends under way.
  const uint32_t most_;
  uint32_t* news_;
  const int wake_;
  const uint64_t loss_;
  uint64_t random_;
  uint32_t qkey_ = 0;
  ibv_pd* pd_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* received_ = nullptr;
  ibv_cq* sent_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_qp* qp_ = nullptr;
  int timer_ = -1;
  int end_ = -1;
  // Places of receives, then of sends.
  std::unique_ptr<unsigned char[]> memory_;
  std::thread thread_;
  std::atomic<bool> ending_{false};
  // The queue pair takes nothing any more.
  bool failed_ = false;
  std::mutex mutex_;
  std::unordered_map<uint32_t, Group> groups_;
  // Address handles of groups that this member has left.
  std::vector<ibv_ah*> retired_;
  uint32_t sending_ = 0;
  uint32_t nextSend_ = 0;
  // When the timer rings; 0: never.
  int64_t armed_ = 0;
};

}  // namespace onesided
