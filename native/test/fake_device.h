// The objects of the libibverbs that is only bookkeeping (fake_verbs.cc), and how messages move between two of its
// queue pairs.
//
// A queue pair that was told its other end (RTR) sends to it: a message waits for a receive there, as with endless
// retries, and is gathered from registered memory and scattered to registered memory when both are posted. A datagram
// is lost where no receive is posted for it. Requests of other queue pairs complete at once.
//
// All of it is under one lock, which every call takes, as drivers have locks of their own: threads of the addon and of
// programs may use it at the same time.
#pragma once

#include <infiniband/verbs.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace fake {

[[noreturn]] inline void wrong(const char* what) {
  std::fprintf(stderr, "fake verbs: %s\n", what);
  std::abort();
}

inline std::mutex lock;
using Guard = std::lock_guard<std::mutex>;

struct Context : ibv_context {
  int objects = 0;
  int asyncWriter = -1;
};

struct Channel : ibv_comp_channel {
  int writer = -1;
};

struct Cq : ibv_cq {
  std::deque<ibv_wc> completions;
  int users = 0;
  bool armed = false;
  // Events that were fetched, and not acknowledged.
  int unacknowledged = 0;
};

struct Srq : ibv_srq {
  int users = 0;
};

struct Pd : ibv_pd {
  int users = 0;
};

struct Mr : ibv_mr {
  int access = 0;
};

// A receive, or a message that waits for one.
struct Posted {
  uint64_t id = 0;
  std::vector<ibv_sge> list;
  bool signaled = true;
  bool isInline = false;
  // Of a message that was posted inline.
  std::vector<unsigned char> bytes;
};

struct Qp : ibv_qp {
  ibv_qp_cap cap;
  int groups = 0;
  bool signalAll = false;
  uint32_t qkey = 0;
  // The number of the other end; 0: it was told none.
  uint32_t peer = 0;
  std::deque<Posted> receives;
  std::deque<Posted> sends;
};

// Above whatever a hostile program guesses.
inline uint32_t numbers = 1000;
inline int64_t touched = 0;
inline std::unordered_map<uint32_t, Qp*> queuePairs;
inline std::unordered_map<uint32_t, Mr*> regions;

inline void complete(ibv_cq* to, const ibv_wc& wc) {
  auto* cq = static_cast<Cq*>(to);
  cq->completions.push_back(wc);
  if (!cq->armed || cq->channel == nullptr) return;
  cq->armed = false;
  void* event = cq;
  (void)!write(static_cast<Channel*>(cq->channel)->writer, &event, sizeof event);
}

// Of a request that no test looks at.
inline void complete(ibv_cq* to, uint64_t id, ibv_wc_opcode opcode, uint32_t qp) {
  ibv_wc wc{};
  wc.wr_id = id;
  wc.opcode = opcode;
  wc.qp_num = qp;
  complete(to, wc);
}

inline void complete(Qp& qp, const Posted& what, bool receive, ibv_wc_status status, uint32_t bytes = 0) {
  auto* cq = static_cast<Cq*>(receive ? qp.recv_cq : qp.send_cq);
  if (cq->completions.size() >= static_cast<size_t>(cq->cqe)) {
    // Who connects queue pairs has to know how much they complete; who does anything in any order loses it.
    if (qp.peer != 0) wrong("a completion queue overflows");
    return;
  }
  ibv_wc wc{};
  wc.wr_id = what.id;
  wc.opcode = receive ? IBV_WC_RECV : IBV_WC_SEND;
  wc.status = status;
  wc.byte_len = bytes;
  wc.qp_num = qp.qp_num;
  complete(cq, wc);
}

inline void deliver(Qp& from);

// Nothing moves here any more. What is posted completes: the first message with the status, the rest as flushed.
inline void fail(Qp& qp, ibv_wc_status status) {
  qp.state = IBV_QPS_ERR;
  const auto sends = std::move(qp.sends);
  const auto receives = std::move(qp.receives);
  qp.sends.clear();
  qp.receives.clear();
  for (const Posted& one : sends) {
    complete(qp, one, false, status);
    status = IBV_WC_WR_FLUSH_ERR;
  }
  for (const Posted& one : receives) complete(qp, one, true, IBV_WC_WR_FLUSH_ERR);
  const auto other = queuePairs.find(qp.peer);
  if (other != queuePairs.end()) deliver(*other->second);
}

// The memory of an entry, if it is registered for this.
inline unsigned char* memoryOf(const Qp& qp, const ibv_sge& entry, int access) {
  const auto found = regions.find(entry.lkey);
  if (found == regions.end() || found->second->pd != qp.pd) return nullptr;
  const Mr& mr = *found->second;
  const auto first = reinterpret_cast<uint64_t>(mr.addr);
  if ((mr.access & access) != access || entry.addr < first || entry.addr - first > mr.length) return nullptr;
  return entry.length > mr.length - (entry.addr - first) ? nullptr : reinterpret_cast<unsigned char*>(entry.addr);
}

inline bool gather(const Qp& qp, const Posted& send, std::vector<unsigned char>* bytes) {
  if (send.isInline) *bytes = send.bytes;
  else for (const ibv_sge& entry : send.list) {
    if (entry.length == 0) continue;
    const unsigned char* from = memoryOf(qp, entry, 0);
    if (from == nullptr) return false;
    bytes->insert(bytes->end(), from, from + entry.length);
  }
  return true;
}

inline ibv_wc_status scatter(const Qp& qp, const Posted& receive, const std::vector<unsigned char>& bytes) {
  size_t done = 0;
  for (const ibv_sge& entry : receive.list) {
    const size_t n = std::min<size_t>(entry.length, bytes.size() - done);
    if (n == 0) continue;
    unsigned char* to = memoryOf(qp, entry, IBV_ACCESS_LOCAL_WRITE);
    if (to == nullptr) return IBV_WC_LOC_PROT_ERR;
    std::memcpy(to, bytes.data() + done, n);
    done += n;
  }
  return done == bytes.size() ? IBV_WC_SUCCESS : IBV_WC_LOC_LEN_ERR;
}

// Moves what can be moved from here.
inline void deliver(Qp& from) {
  const auto other = queuePairs.find(from.peer);
  Qp* to = other == queuePairs.end() ? nullptr : other->second;
  while (!from.sends.empty()) {
    if (to == nullptr || to->state == IBV_QPS_ERR) return fail(from, IBV_WC_RETRY_EXC_ERR);
    if (to->peer != from.qp_num || to->receives.empty()) return;
    const Posted send = from.sends.front();
    const Posted receive = to->receives.front();
    std::vector<unsigned char> bytes;
    if (!gather(from, send, &bytes)) return fail(from, IBV_WC_LOC_PROT_ERR);
    const ibv_wc_status status = scatter(*to, receive, bytes);
    to->receives.pop_front();
    complete(*to, receive, true, status, static_cast<uint32_t>(bytes.size()));
    if (status != IBV_WC_SUCCESS) {
      fail(*to, IBV_WC_WR_FLUSH_ERR);
      if (!from.sends.empty()) fail(from, IBV_WC_REM_OP_ERR);
      return;
    }
    from.sends.pop_front();
    if (send.signaled) complete(from, send, false, IBV_WC_SUCCESS);
  }
}

// A datagram: to a receive of its target, behind a header of 40 bytes, or to nowhere.
inline void deliver(const Qp& from, const Posted& send, uint32_t number, uint32_t qkey) {
  const auto found = queuePairs.find(number);
  if (found == queuePairs.end()) return;
  Qp& to = *found->second;
  const bool takes = to.qp_type == IBV_QPT_UD && (to.state == IBV_QPS_RTR || to.state == IBV_QPS_RTS);
  std::vector<unsigned char> bytes;
  if (!takes || to.qkey != qkey || to.receives.empty() || !gather(from, send, &bytes)) return;
  bytes.insert(bytes.begin(), 40, 0);
  const Posted receive = to.receives.front();
  to.receives.pop_front();
  const ibv_wc_status status = scatter(to, receive, bytes);
  // As Soft-RoCE has it: a datagram that is too long ends the queue pair.
  complete(to, receive, true, status == IBV_WC_LOC_LEN_ERR ? IBV_WC_LOC_QP_OP_ERR : status,
           static_cast<uint32_t>(bytes.size()));
  if (status != IBV_WC_SUCCESS) fail(to, IBV_WC_WR_FLUSH_ERR);
}

}  // namespace fake
