// Queue pairs: made, moved between their states, and given back. They are memory; nothing of libfabric belongs to one.
#if __has_include(<infiniband/verbs.h>) && __has_include(<rdma/fabric.h>)

#include "fabric_queue_pairs.h"

#include <algorithm>
#include <cerrno>

namespace onesided::fabric {
namespace {

using Guard = std::lock_guard<std::mutex>;

// Seconds, by InfiniBand's code of a timer for receivers that are not ready.
constexpr double kTimers[] = {655.36, .01, .02,   .03,   .04,   .06,   .08,   .12,   .16,    .24,    .32,
                              .48,    .64, .96,   1.28,  1.92,  2.56,  3.84,  5.12,  7.68,   10.24,  15.36,
                              20.48,  30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52};

Peer* peerOf(Engine& e, const ibv_gid& gid) {
  uint32_t number = 0;
  for (int i = 12; i < 16; i++) number = number << 8 | gid.raw[i];
  return gid.raw[0] == 0xff && number < e.peers.size() ? e.peers[number].get() : nullptr;
}

void dropCompletions(ibv_cq* cq, uint32_t number) {
  auto& all = static_cast<Cq*>(cq)->completions;
  const auto its = [number](const ibv_wc& wc) { return wc.qp_num == number; };
  all.erase(std::remove_if(all.begin(), all.end(), its), all.end());
}

template <typename T>
void drop(std::vector<T*>& list, T* object) {
  list.erase(std::remove(list.begin(), list.end(), object), list.end());
}

// As it was when it was made.
void reset(Engine& e, Qp& qp) {
  if (qp.ackDue) e.acknowledge();
  e.withdraw(qp, nullptr);
  for (Request* r : qp.requests) e.release(r);
  qp.requests.clear();
  qp.unissued = qp.together = qp.togetherBytes = 0;
  qp.burst = qp.lastBurst = qp.fetching = 0;
  qp.chunks = qp.unacknowledged = qp.brief = qp.asked = qp.ackLater = qp.wanted = 0;
  qp.poisoned = qp.stalled = qp.held = qp.limited = qp.receiving = false;
  qp.ackDue = qp.acking = false;
  qp.regions.clear();
  qp.pinged = qp.absentSince = 0;
  qp.answered = true;
  qp.receives.clear();
  qp.pending.clear();
  qp.accepted = 0;
  qp.carriedOut = 0;
  qp.peer = nullptr;
  drop(e.stalled, &qp);
  drop(e.held, &qp);
  drop(e.acks, &qp);
  drop(e.limited, &qp);
  if (qp.srq != nullptr) static_cast<Srq*>(qp.srq)->starving.erase(&qp);
  dropCompletions(qp.send_cq, qp.qp_num);
  dropCompletions(qp.recv_cq, qp.qp_num);
  qp.state = IBV_QPS_RESET;
}

}  // namespace

// The GID of a peer is its number, behind what no address of a network begins with.
ibv_gid gidOf(uint32_t number) {
  ibv_gid gid{};
  gid.raw[0] = 0xff;
  for (int i = 0; i < 4; i++) gid.raw[15 - i] = static_cast<uint8_t>(number >> 8 * i);
  return gid;
}

ibv_qp* createQp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  if (attr->qp_type != IBV_QPT_RC) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  const ibv_qp_cap& cap = attr->cap;
  if (cap.max_inline_data > kInline || cap.max_send_sge > kEntries || cap.max_recv_sge > kEntries) {
    errno = EINVAL;
    return nullptr;
  }
  Engine& e = Engine::of(pd->context);
  const Guard guard(e.mutex);
  auto* qp = new Qp();
  qp->context = pd->context;
  qp->pd = pd;
  qp->send_cq = attr->send_cq;
  qp->recv_cq = attr->recv_cq;
  qp->srq = attr->srq;
  qp->qp_type = attr->qp_type;
  qp->state = IBV_QPS_RESET;
  qp->cap = cap;
  qp->signalAll = attr->sq_sig_all != 0;
  do qp->qp_num = ++e.numbers & 0xffffff;
  while (qp->qp_num == 0 || e.qps.count(qp->qp_num) > 0);
  e.qps[qp->qp_num] = qp;
  static_cast<Pd*>(pd)->users++;
  static_cast<Cq*>(qp->send_cq)->users++;
  static_cast<Cq*>(qp->recv_cq)->users++;
  if (qp->srq != nullptr) static_cast<Srq*>(qp->srq)->users++;
  return qp;
}

int modifyQp(ibv_qp* base, ibv_qp_attr* attr, int mask) {
  auto* qp = static_cast<Qp*>(base);
  Engine& e = Engine::of(base->context);
  std::unique_lock<std::mutex> lock(e.mutex);
  if (attr->qp_state == IBV_QPS_RESET) {
    reset(e, *qp);
    return 0;
  }
  if (attr->qp_state == IBV_QPS_ERR) {
    e.fail(*qp);
    return 0;
  }
  Peer* peer = nullptr;
  if (attr->qp_state == IBV_QPS_RTR && (peer = peerOf(e, attr->ah_attr.grh.dgid)) == nullptr) return EINVAL;
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0 && qp->access != static_cast<int>(attr->qp_access_flags)) {
    qp->access = static_cast<int>(attr->qp_access_flags);
    if (qp->isOpen()) e.withdraw(*qp, &lock);
    // An error may have come meanwhile.
    if (qp->state == IBV_QPS_ERR) return EINVAL;
  }
  if (peer != nullptr) {
    qp->peer = peer;
    qp->dest = attr->dest_qp_num;
    qp->destReads = attr->max_dest_rd_atomic;
    qp->rnrTimer = kTimers[attr->min_rnr_timer & 31] / 1e3;
  }
  if ((mask & IBV_QP_RNR_RETRY) != 0) qp->rnrRetries = attr->rnr_retry;
  qp->state = attr->qp_state;
  if (!qp->isOpen()) return 0;
  e.takePending(*qp);
  e.acknowledgeInTime(false);
  e.pump(*qp);
  return 0;
}

int queryQp(ibv_qp* qp, ibv_qp_attr* attr, int, ibv_qp_init_attr*) {
  const Guard guard(Engine::of(qp->context).mutex);
  attr->qp_state = qp->state;
  return 0;
}

int destroyQp(ibv_qp* base) {
  auto* qp = static_cast<Qp*>(base);
  Engine& e = Engine::of(base->context);
  const Guard guard(e.mutex);
  reset(e, *qp);
  e.qps.erase(qp->qp_num);
  static_cast<Cq*>(qp->send_cq)->users--;
  static_cast<Cq*>(qp->recv_cq)->users--;
  if (qp->srq != nullptr) static_cast<Srq*>(qp->srq)->users--;
  static_cast<Pd*>(qp->pd)->users--;
  delete qp;
  return 0;
}

}  // namespace onesided::fabric

#endif
