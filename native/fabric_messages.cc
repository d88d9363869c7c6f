// Messages between engines: how they leave, and who takes what arrives.
#if __has_include(<infiniband/verbs.h>) && __has_include(<rdma/fabric.h>)

#include <rdma/fi_errno.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "fabric_engine.h"

namespace onesided::fabric {
namespace {

// Seconds, of a brief message: so long, an answer that carries its acknowledgement may take.
constexpr double kAckDelay = 25e-6;
// Of a peer's backlog: answers to what it may ask as often as it wants wait only behind fewer messages.
constexpr size_t kMostAnswers = 256;

Message* makeMessage(Peer& peer, const Header& header, const void* data, size_t bytes) {
  auto* message = new (std::malloc(sizeof(Message) + sizeof header + bytes)) Message();
  message->type = Operation::Type::kMessage;
  message->peer = &peer;
  message->bytes = sizeof header + bytes;
  std::memcpy(message->data, &header, sizeof header);
  if (bytes > 0) std::memcpy(message->data + sizeof header, data, bytes);
  return message;
}

ssize_t hand(Engine& engine, Message* message) {
  iovec piece{message->data, message->bytes};
  void* descriptor = nullptr;
  fi_msg m{};
  m.msg_iov = &piece;
  m.desc = &descriptor;
  m.iov_count = 1;
  m.addr = message->peer->address;
  m.context = &message->context;
  const ssize_t result = fi_sendmsg(engine.ep, &m, FI_COMPLETION | FI_DELIVERY_COMPLETE);
  if (result != 0) return result;
  engine.outstanding++;
  message->peer->held++;
  message->peer->refusedSince = 0;
  return 0;
}

}  // namespace

// A message that must leave, in order behind those that must have left before.
void Engine::control(Peer& peer, Header header, const void* data, size_t bytes) {
  header.tag = peer.tag;
  if (peer.backlog.empty() && bytes == 0 && sizeof header <= injectable &&
      fi_inject(ep, &header, sizeof header, peer.address) == 0) {
    peer.refusedSince = 0;
    return;
  }
  Message* message = makeMessage(peer, header, data, bytes);
  if (peer.backlog.empty() && hand(*this, message) == 0) return;
  peer.backlog.push_back(message);
  if (peer.refusedSince == 0) peer.refusedSince = now();
  if (!peer.backlogged) backlogged.push_back(&peer);
  peer.backlogged = true;
}

// An answer to what others may ask without end, and do ask again. Of a peer that asks and does not read, it is dropped:
// a question for a key and for the peer itself is asked again (fabric_peers.cc), a chunk that is refused is found
// missing by the latter, and who withdraws a key waits for a tenth of a second only.
void Engine::answer(Peer& peer, const Header& header, const void* data, size_t bytes) {
  if (peer.backlog.size() < kMostAnswers) control(peer, header, data, bytes);
}

// A message that may be tried again later: false if it did not leave.
bool Engine::message(Peer& peer, Header header, const void* data, size_t bytes) {
  if (!peer.backlog.empty()) return false;
  header.tag = peer.tag;
  unsigned char whole[256];
  if (sizeof header + bytes <= injectable && sizeof header + bytes <= sizeof whole) {
    std::memcpy(whole, &header, sizeof header);
    if (bytes > 0) std::memcpy(whole + sizeof header, data, bytes);
    if (fi_inject(ep, whole, sizeof header + bytes, peer.address) != 0) return false;
    peer.refusedSince = 0;
    return true;
  }
  Message* message = makeMessage(peer, header, data, bytes);
  if (hand(*this, message) == 0) return true;
  std::free(message);
  return false;
}

void Engine::drain(Peer& peer) {
  while (!peer.backlog.empty() && hand(*this, peer.backlog.front()) == 0) peer.backlog.pop_front();
  if (!peer.backlog.empty() && peer.refusedSince == 0) peer.refusedSince = now();
}

// A chunk was accepted. Its sender mostly waits for something else than the acknowledgement of a brief message, such as
// an answer: that one may carry it.
void Engine::owe(Qp& qp, bool later) {
  if (!qp.acking) acks.push_back(&qp);
  qp.acking = true;
  if (!qp.ackDue && acksDue++ == 0) ackSince = now();
  qp.ackDue = true;
  if (!later || ++qp.ackLater >= kMostBrief) ackNow = true;
}

void Engine::carryAccepted(Qp& qp, Header& header) const {
  header.flags |= kAccepts;
  header.accepted = qp.accepted;
}

// A header with what is accepted has left.
void Engine::wasCarried(Qp& qp) {
  if (qp.ackDue && --acksDue == 0) ackNow = false;
  qp.ackDue = false;
  qp.ackLater = 0;
}

// Whoever looks has nothing else to do than to wait, or will not look again soon, or it is time. A program that polls
// since a moment ago did something else before, and may go on with that as soon as it has what it looks for: nothing
// waits then. Nor does the thread sleep while something waits.
void Engine::acknowledgeInTime(bool byThread) {
  if (acksDue == 0) return;
  const double time = now();
  const bool stays = time - polled.load() < kRecently && time - pollingSince.load() > kRecently;
  if (byThread || ackNow || !stays || time - ackSince > kAckDelay) acknowledge();
  else if (deep.exchange(false)) kick();
}

// The acknowledgements that are due: one for all chunks that were accepted since the last time.
void Engine::acknowledge() {
  for (Qp* qp : acks) {
    qp->acking = false;
    if (!qp->ackDue) continue;
    wasCarried(*qp);
    Header header;
    header.kind = Kind::kAccepted;
    header.to = qp->dest;
    header.from = qp->qp_num;
    header.number = qp->accepted;
    if (qp->peer != nullptr) control(*qp->peer, header);
  }
  acks.clear();
}

void Engine::arrive(const unsigned char* data, size_t bytes, fi_addr_t from) {
  Header header;
  if (bytes < sizeof header) return;
  std::memcpy(&header, data, sizeof header);
  data += sizeof header;
  bytes -= sizeof header;
  // A stranger's.
  if (header.tag != tag) return;
  if (Peer* peer = peerAt(from)) heard(*peer);
  Qp* qp = queuePair(header.to);
  // From the queue pair that this one is connected to. Before it is connected, nobody knows.
  const bool mine = qp != nullptr && qp->peer != nullptr && qp->dest == header.from &&
                    (from == qp->peer->address || from == FI_ADDR_NOTAVAIL);
  if (mine && (header.flags & kAccepts) != 0) accepted(*qp, header.accepted);
  switch (header.kind) {
    case Kind::kSend:
    case Kind::kSendWithImmediate:
    case Kind::kWriteWithImmediate:
    case Kind::kAskKey:
    case Kind::kTogether:
      if (qp != nullptr && qp->state != IBV_QPS_ERR) {
        deliver(*qp, header, from, data, bytes);
      } else if (header.kind == Kind::kAskKey) {
        answerNoKey(header, from);
      } else if (Peer* peer = peerAt(from)) {
        Header refusal;
        refusal.kind = Kind::kRefused;
        refusal.to = header.from;
        refusal.from = header.to;
        refusal.number = header.number;
        refusal.status = IBV_WC_RETRY_EXC_ERR;
        answer(*peer, refusal);
      }
      return;
    case Kind::kAskAccepted:
      if (!mine) return;
      // What waits for a receive is acknowledged when it has one.
      qp->wanted = header.number;
      if (qp->ackDue) acknowledge();
      return;
    case Kind::kAccepted:
      if (mine) accepted(*qp, header.number);
      return;
    case Kind::kResults:
      if (!mine) return;
      takeResults(*qp, header.number, data, bytes);
      accepted(*qp, header.number);
      return;
    case Kind::kRefused:
      if (mine) refused(*qp, header, data, bytes);
      return;
    case Kind::kKey:
      if (mine) takeKey(*qp, header, data, bytes);
      return;
    case Kind::kKeyGone: {
      Peer* peer = peerAt(from);
      if (qp != nullptr && qp->peer == peer && peer != nullptr) {
        if ((header.flags & kAll) == 0) qp->regions.erase(header.immediate);
        else if (mine) qp->regions.clear();
      }
      // Whoever withdraws it waits, also if there is no queue pair any more.
      if (peer == nullptr || header.number == 0) return;
      Header forgotten;
      forgotten.kind = Kind::kForgotten;
      forgotten.number = header.number;
      answer(*peer, forgotten);
      return;
    }
    case Kind::kForgotten:
      takeForgotten(header.number, from);
      return;
    case Kind::kPing:
      pong(header, from, data, bytes);
      return;
    case Kind::kPong:
      if (mine) takePong(*qp, header);
      return;
    case Kind::kFault:
      if (mine) fail(*qp);
      return;
    default:
      return;
  }
}

}  // namespace onesided::fabric

#endif
