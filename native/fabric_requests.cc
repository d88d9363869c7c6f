// The send queues: what a queue pair hands over, in which order, and when a request is complete.
#if __has_include(<infiniband/verbs.h>) && __has_include(<rdma/fabric.h>)

#include <arpa/inet.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fabric_engine.h"

namespace onesided::fabric {
namespace {

bool isMessage(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

// Whether it travels in chunks that the peer acknowledges.
bool isSpoken(const Request& r) { return r.batched || isMessage(r.opcode); }

bool fetches(const Request& r) { return r.batched && r.opcode != IBV_WR_RDMA_WRITE && !isMessage(r.opcode); }

// Whether it reaches memory of the peer's. What has no bytes reaches none, whatever its key.
bool reaches(const Request& r) {
  if (isAtomic(r.opcode) || r.opcode == kUpdate) return true;
  const bool writes = r.opcode == IBV_WR_RDMA_WRITE || r.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  return (writes || r.opcode == IBV_WR_RDMA_READ) && r.bytes > 0;
}

ibv_wc_opcode opcodeOf(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM: return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ: return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP: return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
    case kUpdate: return IBV_WC_FETCH_ADD;
    default: return IBV_WC_SEND;
  }
}

bool isDone(const Request& r) {
  // A device that flushes a read has stopped writing into memory: the engine has not until it gives the read back.
  if (r.outside && r.opcode == IBV_WR_RDMA_READ) return false;
  if (r.status != IBV_WC_SUCCESS) return true;
  if (!r.issued || r.doubtful || (reaches(r) && !r.accessed)) return false;
  return !isSpoken(r) || r.acknowledged;
}

// Whether a request may not leave yet, lest it overtake.
bool mustWait(const Engine& engine, const Qp& qp, const Request& r) {
  if ((r.flags & IBV_SEND_FENCE) != 0 && qp.reading + qp.atomics + qp.fetching > 0) return true;
  // An engine that promises no order: nothing overtakes a write that is on its way.
  if (!engine.traits.ordered && qp.writing > 0) return true;
  if (!reaches(r) || r.outside || r.accessed) return false;
  // A message that waits for a receive holds up what comes behind it, and accesses in a message are carried out when
  // the owner looks at it.
  if (qp.unacknowledged > 0) return true;
  // An atomic is carried out when its owner reads it, by then a write behind it may have been placed.
  return qp.atomics > 0 && !isAtomic(r.opcode);
}

ssize_t handAtomic(Engine& e, const Qp& qp, Request& r, uint64_t at, uint64_t key) {
  if (r.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    return fi_fetch_atomic(e.ep, &r.operands[0], 1, nullptr, &r.result, nullptr, qp.peer->address, at, key, FI_UINT64,
                           FI_SUM, &r.context);
  }
  return fi_compare_atomic(e.ep, &r.operands[1], 1, nullptr, &r.operands[0], nullptr, &r.result, nullptr,
                           qp.peer->address, at, key, FI_UINT64, FI_CSWAP, &r.context);
}

ssize_t handTransfer(Engine& e, const Qp& qp, Request& r, uint64_t at, uint64_t key) {
  fi_rma_iov remote{at, r.bytes, key};
  fi_msg_rma m{};
  m.msg_iov = r.local;
  m.desc = r.descriptors;
  m.iov_count = static_cast<size_t>(r.entries);
  m.addr = qp.peer->address;
  m.rma_iov = &remote;
  m.rma_iov_count = 1;
  m.context = &r.context;
  if (r.opcode == IBV_WR_RDMA_READ) return fi_readmsg(e.ep, &m, FI_COMPLETION);
  // Until it is in its place, not only on its way. (The endpoint's own flags say so too, and some providers look at
  // these alone.)
  return fi_writemsg(e.ep, &m, FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

// The owner is told of a request that may not.
void sayFault(Engine& e, const Qp& qp, const RemoteRegion& region) {
  Header header;
  header.kind = Kind::kFault;
  header.to = qp.dest;
  header.from = qp.qp_num;
  if (region.answer != kNoQueuePair) e.control(*qp.peer, header);
}

// Asks for the keys of an update, which leaves with others (fabric_batches.cc) when they are known. False: it waits.
// One that may not has its status then.
bool prepareUpdate(Engine& e, Qp& qp, Request& r) {
  const bool locks = r.operands[0] != 0;
  const RemoteRegion* region = e.region(qp, r.rkey);
  const RemoteRegion* lock = locks ? e.region(qp, static_cast<uint32_t>(r.operands[1])) : region;
  if (region == nullptr || lock == nullptr) return false;
  r.status = e.refusal(r, *region);
  const RemoteRegion* why = region;
  if (locks && r.status == IBV_WC_SUCCESS) {
    r.status = e.lockRefusal(r, *lock);
    why = lock;
  }
  if (r.status == IBV_WC_SUCCESS) return false;
  sayFault(e, qp, *why);
  return true;
}

// Hands over the access of remote memory. False: try again. A request that may not has its status then.
bool access(Engine& e, Qp& qp, Request& r) {
  if (r.opcode == kUpdate) return prepareUpdate(e, qp, r);
  const RemoteRegion* region = e.region(qp, r.rkey);
  if (region == nullptr) return false;
  r.status = e.refusal(r, *region);
  if (r.status != IBV_WC_SUCCESS) {
    sayFault(e, qp, *region);
    return true;
  }
  const bool atomic = isAtomic(r.opcode);
  const uint64_t at = e.traits.offsets ? r.remote - region->base : r.remote;
  const ssize_t result = atomic ? handAtomic(e, qp, r, at, region->key) : handTransfer(e, qp, r, at, region->key);
  if (result == -FI_EAGAIN) {
    if (qp.peer->refusedSince == 0) qp.peer->refusedSince = now();
    return false;
  }
  if (result != 0) {
    r.status = IBV_WC_LOC_QP_OP_ERR;
    return true;
  }
  qp.peer->refusedSince = 0;
  r.outside = true;
  e.outstanding++;
  if (atomic) qp.atomics++;
  else if (r.opcode == IBV_WR_RDMA_READ) qp.reading++;
  else qp.writing++;
  if (!atomic) qp.peer->held++;
  if (!atomic) e.lend(r);
  return true;
}

// Hands over a message, or what is left of it. False: try again.
bool speak(Engine& e, Qp& qp, Request& r) {
  Header header;
  header.to = qp.dest;
  header.from = qp.qp_num;
  header.immediate = r.immediate;
  header.total = r.bytes;
  header.retries = qp.rnrRetries;
  const uint8_t solicited = (r.flags & IBV_SEND_SOLICITED) != 0 ? kSolicited : 0;
  const bool write = r.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  header.kind = write ? Kind::kWriteWithImmediate
                      : r.opcode == IBV_WR_SEND ? Kind::kSend : Kind::kSendWithImmediate;
  const uint32_t all = write ? 0 : r.bytes;
  static thread_local unsigned char chunk[kChunk];
  do {
    if (qp.unacknowledged >= kWindow) return false;
    const auto bytes = static_cast<uint32_t>(std::min<size_t>(kChunk, all - r.sent));
    const bool last = r.sent + bytes == all;
    gather(r, r.sent, bytes, chunk);
    header.offset = r.sent;
    header.flags = static_cast<uint8_t>(solicited | (last ? kLast : 0));
    header.number = qp.chunks + 1;
    e.carryAccepted(qp, header);
    if (!e.message(*qp.peer, header, chunk, bytes)) return false;
    e.wasCarried(qp);
    r.lastChunk = ++qp.chunks;
    if (ackOf(header) == Ack::kLater) qp.brief = qp.chunks;
    qp.unacknowledged++;
    r.sent += bytes;
  } while (r.sent < all);
  return true;
}

// The peer has taken a request, or its last part.
void acknowledged(Qp& qp, Request& r) {
  if (r.acknowledged) return;
  r.acknowledged = true;
  if (!fetches(r)) return;
  qp.fetching--;
  // Its results would have come before: they were lost with a connection.
  if (!r.accessed && r.status == IBV_WC_SUCCESS) r.status = IBV_WC_REM_OP_ERR;
}

// Of a refusal: what an engine may say. Anything else, success too, would be a status that no peer causes.
int statusOf(uint8_t said) {
  switch (said) {
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR: return said;
    default: return IBV_WC_REM_OP_ERR;
  }
}

// Whether a request has left, or has failed.
bool issue(Engine& e, Qp& qp, Request& r) {
  if (r.since == 0) r.since = now();
  if (mustWait(e, qp, r)) {
    e.askAccepted(qp);
    return false;
  }
  if (reaches(r) && !r.outside && !r.accessed && (!access(e, qp, r) || r.status != IBV_WC_SUCCESS))
    return r.status != IBV_WC_SUCCESS;
  // The message behind a write with immediate data must not overtake it, either.
  return !isMessage(r.opcode) || (!mustWait(e, qp, r) && speak(e, qp, r));
}

}  // namespace

bool isAtomic(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

// Adds a request: 0, or an errno. A local fault is a status of the request, in its turn.
int Engine::post(Qp& qp, const ibv_send_wr& wr) {
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > std::min<uint32_t>(qp.cap.max_send_sge, kEntries))
    return EINVAL;
  const bool isInline = (wr.send_flags & IBV_SEND_INLINE) != 0;
  if (isInline && (wr.num_sge != 1 || wr.sg_list->length > kInline)) return EINVAL;
  if (qp.requests.size() >= qp.cap.max_send_wr) return ENOMEM;
  std::unique_ptr<Request> made;
  if (spare.empty()) {
    made = std::make_unique<Request>();
  } else {
    made = std::move(spare.back());
    spare.pop_back();
    *made = Request();
  }
  Request& r = *made;
  r.qp = &qp;
  r.id = wr.wr_id;
  r.opcode = wr.opcode;
  r.flags = wr.send_flags;
  r.immediate = wr.opcode == kUpdate ? ntohl(wr.imm_data) : wr.imm_data;
  const bool update = r.opcode == kUpdate;
  if (update && (!agrees || isInline)) return EOPNOTSUPP;
  const bool written = isAtomic(r.opcode) || update || r.opcode == IBV_WR_RDMA_READ;
  if (isInline) {
    r.bytes = wr.sg_list->length;
    std::memcpy(r.inlined, reinterpret_cast<const void*>(wr.sg_list->addr), r.bytes);
    r.local[0] = {r.inlined, r.bytes};
    r.descriptors[0] = nullptr;
    r.mrs[0] = nullptr;
    r.entries = 1;
  }
  for (int i = 0; !isInline && i < wr.num_sge; i++) {
    const ibv_sge& entry = wr.sg_list[i];
    if (entry.length == 0) continue;
    Mr* mr = localRegion(qp.pd, entry, written);
    if (mr == nullptr) {
      r.status = IBV_WC_LOC_PROT_ERR;
      continue;
    }
    r.local[r.entries] = {reinterpret_cast<void*>(entry.addr), entry.length};
    r.mrs[r.entries] = mr;
    r.descriptors[r.entries++] = fi_mr_desc(mr->region);
    r.bytes += entry.length;
  }
  if (isAtomic(r.opcode) || update) {
    r.remote = wr.wr.atomic.remote_addr;
    r.rkey = wr.wr.atomic.rkey;
    r.operands[0] = wr.wr.atomic.compare_add;
    r.operands[1] = wr.wr.atomic.swap;
    const bool fits = update ? mayUpdate(r) : r.bytes == 8;
    if (r.status == IBV_WC_SUCCESS && !fits) r.status = IBV_WC_LOC_LEN_ERR;
  } else {
    r.remote = wr.wr.rdma.remote_addr;
    r.rkey = wr.wr.rdma.rkey;
  }
  if (qp.state == IBV_QPS_ERR) r.status = IBV_WC_WR_FLUSH_ERR;
  qp.requests.push_back(made.release());
  qp.unissued++;
  return 0;
}

// Hands over what may leave.
void Engine::pump(Qp& qp) {
  qp.together = qp.togetherBytes = 0;
  while (qp.unissued > 0 && qp.state == IBV_QPS_RTS && !qp.poisoned) {
    Request& r = *qp.requests[qp.requests.size() - qp.unissued];
    const int left = r.status == IBV_WC_SUCCESS ? batch(qp) : 0;
    if (left > 0) continue;
    if (left < 0 || (r.status == IBV_WC_SUCCESS && !issue(*this, qp, r))) {
      if (!qp.stalled) stalled.push_back(&qp);
      qp.stalled = true;
      return;
    }
    r.issued = true;
    qp.unissued--;
    qp.poisoned = r.status != IBV_WC_SUCCESS;
    if (isDone(r)) retire(qp);
  }
}

// Completes the requests that are done, up to the first one that is not.
void Engine::retire(Qp& qp) {
  while (!qp.requests.empty() && isDone(*qp.requests.front())) {
    Request* r = qp.requests.front();
    qp.requests.pop_front();
    if (!r->issued) qp.unissued--;
    ibv_wc wc{};
    wc.wr_id = r->id;
    wc.status = static_cast<ibv_wc_status>(r->status);
    wc.opcode = opcodeOf(r->opcode);
    wc.byte_len = r->bytes;
    wc.qp_num = qp.qp_num;
    const bool bad = r->status != IBV_WC_SUCCESS;
    if (bad || qp.signalAll || (r->flags & IBV_SEND_SIGNALED) != 0) complete(qp.send_cq, wc, false);
    release(r);
    if (bad && qp.state != IBV_QPS_ERR) {
      fail(qp);
      return;
    }
  }
}

// To the error state: everything that is posted is flushed.
void Engine::fail(Qp& qp) {
  if (qp.state == IBV_QPS_ERR) return;
  qp.state = IBV_QPS_ERR;
  for (Request* r : qp.requests) {
    if (r->status == IBV_WC_SUCCESS) r->status = IBV_WC_WR_FLUSH_ERR;
    r->doubtful = false;
  }
  retire(qp);
  flushReceives(qp);
  if (!qp.pending.empty() && qp.peer != nullptr) {
    const Header& waits = qp.pending.front().header;
    Header header;
    header.kind = Kind::kRefused;
    header.to = waits.from;
    header.from = qp.qp_num;
    header.number = waits.number;
    header.status = IBV_WC_RETRY_EXC_ERR;
    if (waits.kind != Kind::kAskKey) control(*qp.peer, header);
  }
  qp.pending.clear();
  withdraw(qp, nullptr);
  if (qp.srq != nullptr) static_cast<Srq*>(qp.srq)->starving.erase(&qp);
}

// All chunks up to this one were put into receives, or carried out.
void Engine::accepted(Qp& qp, uint32_t number) {
  const uint32_t left = qp.chunks - number;
  if (left >= qp.unacknowledged) return;
  qp.unacknowledged = left;
  for (Request* r : qp.requests) {
    if (!isSpoken(*r)) continue;
    if (!r->issued || static_cast<int32_t>(r->lastChunk - number) > 0) break;
    acknowledged(qp, *r);
  }
  retire(qp);
  pump(qp);
}

// Something waits for chunks that are acknowledged later.
void Engine::askAccepted(Qp& qp) {
  if (qp.unacknowledged == 0 || qp.asked == qp.brief) return;
  const uint32_t known = qp.chunks - qp.unacknowledged;
  if (static_cast<int32_t>(qp.brief - known) <= 0) return;
  qp.asked = qp.brief;
  Header header;
  header.kind = Kind::kAskAccepted;
  header.to = qp.dest;
  header.from = qp.qp_num;
  header.number = qp.brief;
  control(*qp.peer, header);
}

// The peer did not take a chunk.
void Engine::refused(Qp& qp, const Header& header, const unsigned char* data, size_t bytes) {
  accepted(qp, header.number - 1);
  takeResults(qp, header.number, data, bytes);
  uint32_t done = header.offset;
  for (Request* r : qp.requests) {
    if (!isSpoken(*r) || r->acknowledged || r->sent + r->issued == 0) continue;
    if (r->batched && done > 0) {
      done--;
      acknowledged(qp, *r);
      continue;
    }
    if (r->status == IBV_WC_SUCCESS) r->status = statusOf(header.status);
    qp.poisoned = true;
    break;
  }
  retire(qp);
}

// An access of remote memory is over.
void Engine::accessed(Request* r, int error) {
  outstanding--;
  r->outside = false;
  if (!isAtomic(r->opcode)) returned(*r);
  Qp* qp = r->qp;
  if (qp == nullptr) {
    release(r);
    return;
  }
  if (isAtomic(r->opcode)) qp->atomics--;
  else if (r->opcode == IBV_WR_RDMA_READ) qp->reading--;
  else qp->writing--;
  if (!isAtomic(r->opcode)) qp->peer->held--;
  if (error == 0) {
    r->accessed = true;
    if (isAtomic(r->opcode) && r->status == IBV_WC_SUCCESS) giveResult(*r, &r->result, sizeof r->result);
  } else if (r->status == IBV_WC_SUCCESS) {
    if (error == FI_EACCES) r->status = IBV_WC_REM_ACCESS_ERR;
    else if (wasBlocked(*qp->peer)) r->status = IBV_WC_RETRY_EXC_ERR;
    else r->doubtful = true;
    qp->poisoned = true;
    if (r->doubtful) {
      qp->regions.erase(r->rkey);
      lost(*qp->peer);
      region(*qp, r->rkey);
    }
  }
  retire(*qp);
  pump(*qp);
}

// Gives a request up. What the engine has, it gives back later.
void Engine::release(Request* r) {
  if (r->outside) {
    if (r->qp != nullptr) {
      Qp& qp = *r->qp;
      if (isAtomic(r->opcode)) qp.atomics--;
      else if (r->opcode == IBV_WR_RDMA_READ) qp.reading--;
      else qp.writing--;
      if (!isAtomic(r->opcode)) qp.peer->held--;
    }
    r->qp = nullptr;
    return;
  }
  std::unique_ptr<Request> owned(r);
  if (spare.size() < 256) spare.push_back(std::move(owned));
}

}  // namespace onesided::fabric

#endif
