// Messages between engines: how they leave, and who takes what arrives.
#if __has_include(<infiniband/verbs.h>) && __has_include(<rdma/fabric.h>)

#include <rdma/fi_errno.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "fabric_engine.h"

namespace onesided::fabric {
namespace {

// Seconds: so long, an answer that carries the acknowledgement may take. Of a brief message nobody waits for it; of a
// notice its sender may.
constexpr double kSoonDelay = 5e-6;
constexpr double kLaterDelay = 25e-6;
// Of a peer's backlog: answers to what it may ask as often as it wants wait only behind fewer messages.
constexpr size_t kMostAnswers = 256;

// What a message consists of.
struct Parts {
  Header header;
  Acceptance also;
  const void* data;
  size_t dataBytes;

  size_t alsoBytes() const { return (header.flags & kAlsoAccepts) != 0 ? sizeof also : 0; }
  size_t bytes() const { return sizeof header + alsoBytes() + dataBytes; }
  void write(unsigned char* to) const {
    std::memcpy(to, &header, sizeof header);
    to += sizeof header;
    std::memcpy(to, &also, alsoBytes());
    if (dataBytes > 0) std::memcpy(to + alsoBytes(), data, dataBytes);
  }
};

Message* makeMessage(Peer& peer, const Parts& parts) {
  auto* message = new (std::malloc(sizeof(Message) + parts.bytes())) Message();
  message->type = Operation::Type::kMessage;
  message->peer = &peer;
  message->bytes = parts.bytes();
  parts.write(message->data);
  return message;
}

// Whether a small message has left: libfabric has copied it, and says no more of it.
bool inject(Engine& engine, Peer& peer, const Parts& parts) {
  unsigned char whole[kMostInjected];
  if (parts.bytes() > engine.injectable) return false;
  parts.write(whole);
  if (fi_inject(engine.ep, whole, parts.bytes(), peer.address) != 0) return false;
  peer.refusedSince = 0;
  return true;
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
  const uint64_t until = isAcknowledged(message->kind()) ? FI_TRANSMIT_COMPLETE : FI_DELIVERY_COMPLETE;
  const ssize_t result = fi_sendmsg(engine.ep, &m, FI_COMPLETION | until);
  if (result != 0) return result;
  engine.outstanding++;
  message->peer->held++;
  message->peer->refusedSince = 0;
  return 0;
}

// Whether a queue pair is connected to that one, there.
bool isPeerOf(const Qp& qp, uint32_t theirs, fi_addr_t from) {
  return qp.peer != nullptr && qp.dest == theirs && (from == qp.peer->address || from == FI_ADDR_NOTAVAIL);
}

}  // namespace

// A message that must leave, in order behind those that must have left before.
void Engine::control(Peer& peer, Header header, const void* data, size_t bytes) {
  header.tag = peer.tag;
  Parts parts{header, {}, data, bytes};
  Qp* other = carryOther(peer, parts.header, parts.also);
  // It will leave: before any that is made later.
  if (other != nullptr) wasCarried(*other);
  if (peer.backlog.empty() && inject(*this, peer, parts)) return;
  Message* message = makeMessage(peer, parts);
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
  Parts parts{header, {}, data, bytes};
  Qp* other = carryOther(peer, parts.header, parts.also);
  if (parts.bytes() <= injectable) {
    if (!inject(*this, peer, parts)) return false;
  } else {
    Message* message = makeMessage(peer, parts);
    if (hand(*this, message) != 0) {
      std::free(message);
      return false;
    }
  }
  if (other != nullptr) wasCarried(*other);
  return true;
}

void Engine::drain(Peer& peer) {
  while (!peer.backlog.empty() && hand(*this, peer.backlog.front()) == 0) peer.backlog.pop_front();
  if (!peer.backlog.empty() && peer.refusedSince == 0) peer.refusedSince = now();
}

// A chunk was accepted. Its sender mostly waits for something else than the acknowledgement of a brief message, such as
// an answer: that one may carry it.
void Engine::owe(Qp& qp, Ack when) {
  if (!qp.acking) acks.push_back(&qp);
  qp.acking = true;
  if (!qp.ackDue) acksDue++;
  qp.ackDue = true;
  if (when == Ack::kNow || ++qp.ackLater >= kMostBrief) {
    ackNow = true;
    return;
  }
  const double by = now() + (when == Ack::kSoon ? kSoonDelay : kLaterDelay);
  if (ackBy == 0 || by < ackBy) ackBy = by;
}

void Engine::carryAccepted(Qp& qp, Header& header) const {
  header.flags |= kAccepts;
  header.accepted = qp.accepted;
}

// Has a message take along what was accepted by another queue pair, whose own next message to that peer may come late:
// epochs of a window have one, messages of its communicator another one. Which; nullptr: none.
Qp* Engine::carryOther(const Peer& peer, Header& header, Acceptance& also) const {
  if (acksDue == 0) return nullptr;
  for (Qp* qp : acks) {
    if (!qp->ackDue || qp->peer != &peer || qp->qp_num == header.from) continue;
    header.flags |= kAlsoAccepts;
    also = {qp->dest, qp->qp_num, qp->accepted};
    return qp;
  }
  return nullptr;
}

// A header with what is accepted has left.
void Engine::wasCarried(Qp& qp) {
  if (qp.ackDue && --acksDue == 0) {
    ackNow = false;
    ackBy = 0;
  }
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
  if (byThread || ackNow || !stays || time > ackBy) acknowledge();
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
  if ((header.flags & kAlsoAccepts) != 0) {
    Acceptance also;
    if (bytes < sizeof also) return;
    std::memcpy(&also, data, sizeof also);
    data += sizeof also;
    bytes -= sizeof also;
    Qp* other = queuePair(also.to);
    if (other != nullptr && isPeerOf(*other, also.from, from)) accepted(*other, also.number);
  }
  Qp* qp = queuePair(header.to);
  // From the queue pair that this one is connected to. Before it is connected, nobody knows.
  const bool mine = qp != nullptr && isPeerOf(*qp, header.from, from);
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
