// The receive queues: messages that have come are put into receives of queue pairs, or wait for one.
//
// A chunk has the next number, or the connection has lost one: then it is refused. At most a window of the sender's
// waits: more comes from none of ours, and is dropped.
#if __has_include(<infiniband/verbs.h>) && __has_include(<rdma/fabric.h>)

#include <algorithm>
#include <cstring>

#include "fabric_engine.h"

namespace onesided::fabric {
namespace {

std::deque<Receive>& receivesOf(Qp& qp) {
  return qp.srq != nullptr ? static_cast<Srq*>(qp.srq)->receives : qp.receives;
}

size_t roomOf(const Receive& receive) {
  size_t room = 0;
  for (int i = 0; i < receive.entries; i++) room += receive.list[i].length;
  return room;
}

void scatter(const Receive& receive, size_t skip, const unsigned char* data, size_t bytes) {
  for (int i = 0; i < receive.entries && bytes > 0; i++) {
    const ibv_sge& entry = receive.list[i];
    if (skip >= entry.length) {
      skip -= entry.length;
      continue;
    }
    const size_t n = std::min<size_t>(bytes, entry.length - skip);
    std::memcpy(reinterpret_cast<unsigned char*>(entry.addr) + skip, data, n);
    data += n;
    bytes -= n;
    skip = 0;
  }
}

// Whether memory of this device holds the first bytes of a receive.
bool holds(const Engine& engine, const Qp& qp, const Receive& receive, size_t bytes) {
  for (int i = 0; i < receive.entries && bytes > 0; i++) {
    ibv_sge entry = receive.list[i];
    entry.length = static_cast<uint32_t>(std::min<size_t>(bytes, entry.length));
    if (entry.length > 0 && engine.localRegion(qp.pd, entry, true) == nullptr) return false;
    bytes -= entry.length;
  }
  return true;
}

// Whether a message may wait.
bool hasRoom(const Qp& qp, Kind kind) {
  if (qp.pending.size() < kWindow) return true;
  const bool question = kind == Kind::kAskKey;
  const auto same = [&](const Arrival& arrival) { return (arrival.header.kind == Kind::kAskKey) == question; };
  const auto count = static_cast<size_t>(std::count_if(qp.pending.begin(), qp.pending.end(), same));
  return count < (question ? kMostQuestions : kWindow);
}

}  // namespace

bool Engine::takeReceive(Qp& qp) {
  auto* srq = static_cast<Srq*>(qp.srq);
  std::deque<Receive>& queue = receivesOf(qp);
  if (queue.empty()) return false;
  qp.current = queue.front();
  queue.pop_front();
  if (srq != nullptr && srq->limit != 0 && srq->receives.size() < srq->limit) {
    srq->limit = 0;
    ibv_async_event event{};
    event.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
    event.element.srq = srq;
    raise(event);
  }
  return true;
}

void Engine::refuse(Qp& qp, const Header& header, ibv_wc_status status, uint32_t done, const void* results,
                    size_t bytes) {
  Header answer;
  answer.kind = Kind::kRefused;
  answer.to = header.from;
  answer.from = qp.qp_num;
  answer.number = header.number;
  answer.offset = done;
  answer.status = static_cast<uint8_t>(status);
  control(*qp.peer, answer, results, bytes);
}

// Completes the receive that is being filled.
void Engine::endReceive(Qp& qp, const Header& header, ibv_wc_status status) {
  qp.receiving = false;
  ibv_wc wc{};
  wc.wr_id = qp.current.id;
  wc.status = status;
  wc.qp_num = qp.qp_num;
  wc.opcode = header.kind == Kind::kWriteWithImmediate ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
  if (status == IBV_WC_SUCCESS) wc.byte_len = header.total;
  if (status == IBV_WC_SUCCESS && header.kind != Kind::kSend) {
    wc.wc_flags = IBV_WC_WITH_IMM;
    wc.imm_data = header.immediate;
  }
  complete(qp.recv_cq, wc, status != IBV_WC_SUCCESS || (header.flags & kSolicited) != 0);
}

// It is none of the message that is being received, or there is no room for that: both queue pairs fail.
void Engine::refuseChunk(Qp& qp, const Header& header) {
  refuse(qp, header, IBV_WC_REM_INV_REQ_ERR);
  endReceive(qp, header, IBV_WC_LOC_LEN_ERR);
  fail(qp);
}

// Puts a chunk into a receive. False: there is none.
bool Engine::accept(Qp& qp, const Header& header, const unsigned char* data, size_t bytes) {
  const bool write = header.kind == Kind::kWriteWithImmediate;
  if (!qp.receiving) {
    if (!takeReceive(qp)) return false;
    qp.receiving = true;
    qp.currentKind = header.kind;
    qp.currentTotal = header.total;
    qp.currentBytes = write ? 0 : header.total;
    qp.currentCame = 0;
    if (qp.currentBytes > roomOf(qp.current)) {
      refuseChunk(qp, header);
      return true;
    }
  }
  // A chunk is of the message that began, stands behind what has come, and the last one completes it: what the program
  // is told has come is what is there.
  const size_t left = qp.currentBytes - qp.currentCame;
  const bool last = (header.flags & kLast) != 0;
  if (header.kind != qp.currentKind || header.total != qp.currentTotal || header.offset != qp.currentCame ||
      bytes > left || last != (bytes == left)) {
    refuseChunk(qp, header);
    return true;
  }
  // Once more for each chunk: the program may have taken the memory back.
  if (!holds(*this, qp, qp.current, qp.currentBytes)) {
    refuse(qp, header, IBV_WC_REM_OP_ERR);
    endReceive(qp, header, IBV_WC_LOC_PROT_ERR);
    fail(qp);
    return true;
  }
  scatter(qp.current, header.offset, data, bytes);
  qp.currentCame += static_cast<uint32_t>(bytes);
  qp.accepted = header.number;
  owe(qp, static_cast<int32_t>(header.number - qp.wanted) > 0 ? ackOf(header) : Ack::kNow);
  if (last) endReceive(qp, header, IBV_WC_SUCCESS);
  return true;
}

// Carries out accesses that have come together, at once, though what stands behind them may wait for a receive: a
// write of no bytes. False: it does.
bool Engine::takeTogether(Qp& qp, const Header& header, const unsigned char* data, size_t bytes) {
  if (qp.receiving) {
    refuseChunk(qp, header);
    return true;
  }
  if (qp.carriedOut != header.number && !carryOut(qp, header, data, bytes)) return true;
  if ((header.flags & kNotice) == 0) return true;
  qp.carriedOut = header.number;
  Header notice = header;
  notice.kind = Kind::kWriteWithImmediate;
  notice.flags |= kLast;
  notice.total = notice.offset = 0;
  return accept(qp, notice, nullptr, 0);
}

// For a queue pair that is connected. False: it must wait.
bool Engine::take(Qp& qp, const Header& header, fi_addr_t from, const unsigned char* data, size_t bytes) {
  if (header.from != qp.dest || (from != qp.peer->address && from != FI_ADDR_NOTAVAIL)) return true;
  if (header.kind == Kind::kAskKey) {
    answerKey(qp, header);
    return true;
  }
  if (header.number != qp.accepted + 1) {
    // The first that is missing: those before it have been taken, and it has not.
    Header missing;
    missing.kind = Kind::kRefused;
    missing.to = header.from;
    missing.from = qp.qp_num;
    missing.number = qp.accepted + 1;
    missing.status = IBV_WC_RETRY_EXC_ERR;
    answer(*qp.peer, missing);
    return true;
  }
  if (header.kind != Kind::kTogether) return accept(qp, header, data, bytes);
  return takeTogether(qp, header, data, bytes);
}

// What has come for a queue pair.
void Engine::deliver(Qp& qp, const Header& header, fi_addr_t from, const unsigned char* data, size_t bytes) {
  // A question for a key waits for nothing but the connection.
  const bool question = header.kind == Kind::kAskKey && qp.isOpen();
  if ((question || (qp.pending.empty() && qp.isOpen())) && take(qp, header, from, data, bytes)) return;
  if (!hasRoom(qp, header.kind)) return;
  // All of a question is in its header.
  const size_t kept = header.kind == Kind::kAskKey ? 0 : bytes;
  qp.pending.push_back({header, from, std::string(reinterpret_cast<const char*>(data), kept), 0});
  if (header.retries < 7 && !qp.limited) {
    qp.limited = true;
    limited.push_back(&qp);
  }
  if (qp.isOpen() && qp.srq != nullptr) static_cast<Srq*>(qp.srq)->starving.insert(&qp);
  expire();
}

// There may be receives, or a connection, for what waits.
void Engine::takePending(Qp& qp) {
  while (!qp.pending.empty() && qp.isOpen()) {
    const Arrival& first = qp.pending.front();
    const auto* data = reinterpret_cast<const unsigned char*>(first.data.data());
    if (!take(qp, first.header, first.from, data, first.data.size())) break;
    // An error has taken all.
    if (!qp.pending.empty()) qp.pending.pop_front();
  }
  if (qp.srq == nullptr) return;
  auto& starving = static_cast<Srq*>(qp.srq)->starving;
  if (!qp.pending.empty() && qp.isOpen()) starving.insert(&qp);
  else starving.erase(&qp);
}

// A shared receive queue has receives again.
void Engine::feed(Srq& srq) {
  const std::vector<Qp*> hungry(srq.starving.begin(), srq.starving.end());
  for (Qp* qp : hungry) {
    if (srq.receives.empty()) break;
    takePending(*qp);
  }
}

void Engine::flushReceives(Qp& qp) {
  const auto flush = [&](const Receive& receive) {
    ibv_wc wc{};
    wc.wr_id = receive.id;
    wc.status = IBV_WC_WR_FLUSH_ERR;
    wc.opcode = IBV_WC_RECV;
    wc.qp_num = qp.qp_num;
    complete(qp.recv_cq, wc, true);
  };
  if (qp.receiving) flush(qp.current);
  qp.receiving = false;
  for (; !qp.receives.empty(); qp.receives.pop_front()) flush(qp.receives.front());
}

// Refuses what has waited for a receive as long as its sender allows.
void Engine::expire() {
  if (limited.empty()) return;
  const double time = now();
  const auto over = [&](Qp* qp) {
    if (qp->pending.empty()) return true;
    Arrival& first = qp->pending.front();
    if (!qp->isOpen() || qp->receiving || first.header.retries >= 7) return false;
    // Twice the least that the retries of a device take: none retries at once when it may.
    if (first.deadline == 0) first.deadline = time + 2 * first.header.retries * qp->rnrTimer;
    if (time < first.deadline) return false;
    refuse(*qp, first.header, IBV_WC_RNR_RETRY_EXC_ERR);
    qp->pending.clear();
    if (qp->srq != nullptr) static_cast<Srq*>(qp->srq)->starving.erase(qp);
    return true;
  };
  for (size_t i = 0; i < limited.size();) {
    Qp* qp = limited[i];
    if (!over(qp)) {
      i++;
      continue;
    }
    qp->limited = false;
    limited[i] = limited.back();
    limited.pop_back();
  }
}

}  // namespace onesided::fabric

#endif
