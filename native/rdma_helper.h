// A thread that serves other ranks' puts and gets of layouts in one part of a window, while JavaScript computes.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "verbs_library.h"

namespace onesided {

// What it is asked is that of src/verbs/helper.ts: lists of entries, already matched with those of the other side. It
// knows no layouts; it checks that entries lie in the part, and posts them.
//
// Who touches what. Until `start`, everything belongs to the JavaScript thread; from then on, until `stop` returns, all
// but `thread_`, `wake_` and `stopped_` belongs to the helper's thread: its lanes, its completion queue and channel,
// its receives, and its queue pairs. Starting and joining a thread order the two. It shares no memory with JavaScript:
// the part's bytes are touched by the device alone.
//
// JavaScript may still call the device with one of its queue pairs, or with its completion queue: the device has locks
// of its own. Then the thread finds completions that it has not asked for, or misses some: so it trusts no identifier.
//
// It never waits for anything but its descriptors, so `stop` returns at once, whatever other ranks do.
class Helper {
 public:
  // Requests that may wait here for one lane, messages of one, and messages under way, each way.
  enum { kRequests = 8, kGroup = 8, kMessages = 32 };

  Helper(const VerbsLibrary* verbs, ibv_context* context, ibv_pd* pd, uint64_t part, uint64_t bytes, uint32_t lkey,
         uint32_t entries);
  ~Helper();
  Helper(const Helper&) = delete;

  // Makes what it needs, for so many lanes. Gives an errno.
  int make(uint32_t lanes);
  // Whether lanes can be added: until it starts, or is stopped, as many as were asked for.
  bool takesLanes() const { return !runs() && !stopped_ && lanes_.size() < lanes_.capacity(); }
  // Adds a lane, of which the queue pairs take receives already. Gives an errno; the lane is there in any case.
  int add(ibv_qp* control, ibv_qp* data);
  // Starts the thread, once: when it was stopped, its queue pairs may be gone. Gives an errno.
  int start();
  // Ends it. Idempotent.
  void stop();
  // Lets go of the completion queue, of which no queue pair is left, and of the rest. Gives an errno.
  int release();

  ibv_cq* cq() const { return cq_; }
  bool runs() const { return thread_.joinable(); }

 private:
  // native/test/stress_helper.cc: what must be reported.
  friend struct HelperFault;

  struct Lane {
    ibv_qp* control = nullptr;
    ibv_qp* data = nullptr;
    // Sent, and not known to be.
    uint32_t sending = 0;
    bool dead = false;
    std::deque<std::vector<unsigned char>> requests;
  };

  void run();
  void drain();
  void complete(const ibv_wc& wc);
  void advance(uint32_t lane);
  bool serve(uint32_t lane, const std::vector<unsigned char>& request);
  int postReceive(uint32_t lane, uint32_t slot);
  void refuse(Lane& lane);

  const VerbsLibrary* verbs_;
  ibv_context* context_;
  ibv_pd* pd_;
  const uint64_t part_;
  const uint64_t bytes_;
  const uint32_t lkey_;
  const uint32_t entries_;
  const uint32_t slotBytes_;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_mr* mr_ = nullptr;
  int wake_ = -1;
  // What requests are received into, as they come: it is written by the device before it is read.
  std::unique_ptr<unsigned char[]> memory_;
  std::vector<Lane> lanes_;
  std::vector<ibv_sge> list_;
  std::thread thread_;
  bool stopped_ = false;
};

}  // namespace onesided
