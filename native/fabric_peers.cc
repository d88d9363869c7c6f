// Peers: whether they are there, and what a queue pair does if one is not.
//
// Nothing here says that a process is dead only because it does not answer: it may be stopped, and then its kernel
// keeps the connection. What the engine has for a dead process comes back with an error, a new connection is refused,
// and atomics do not come back at all. So a request that is old asks the peer, by a message:
//
//   answered: there           goes on waiting; learns what the connection has lost, if anything
//   answered: not connected   a device would get no answer: RETRY_EXC_ERR after a while
//   no answer                 goes on waiting, and asks again
//   refused for long, and nothing is held that a death would give back: RETRY_EXC_ERR
//   its host acknowledges no packet for long (fabric_sockets.cc): RETRY_EXC_ERR
//
// The question says where its sender is: a peer that the program has not named yet, or never will, can answer, too.
// Whoever knows the tag may ask so. Hence a question never changes what the program has said of a peer, and only so
// many are answered that it has not named (`kGuests`): others get no answer, and go on waiting until they are named.
#if __has_include(<infiniband/verbs.h>) && __has_include(<rdma/fabric.h>)

#include <cstring>

#include "fabric_engine.h"

namespace onesided::fabric {
namespace {

// Seconds: between two looks; how old a request is that is looked after; after which a question is asked again, since
// its answer may have been lost; how long a queue pair may be absent; how long the engine may refuse a peer that was
// connected, and one that was not yet.
constexpr double kBetween = 0.25;
constexpr double kOld = 0.5;
constexpr double kAgain = 2;
constexpr double kAbsent = 2;
constexpr double kRefused = 2;
constexpr double kUnconnected = 30;
// Peers that the program has not named. Each may make this process connect to somebody.
constexpr int kGuests = 64;

bool isGone(const Qp& qp, double time) {
  const Peer& peer = *qp.peer;
  if (qp.absentSince != 0 && time - qp.absentSince > kAbsent) return true;
  if (peer.blocked) return true;
  const double limit = peer.known ? kRefused : kUnconnected;
  return peer.refusedSince != 0 && peer.held == 0 && time - peer.refusedSince > limit;
}

void ping(Engine& e, Qp& qp, double time) {
  qp.pinged = time;
  qp.answered = false;
  Header header;
  header.kind = Kind::kPing;
  header.to = qp.dest;
  header.from = qp.qp_num;
  header.number = qp.chunks;
  std::string self(reinterpret_cast<const char*>(&e.tag), sizeof e.tag);
  self += e.name;
  e.control(*qp.peer, header, self.data(), self.size());
}

}  // namespace

// The peer of this name, and the number by which queue pairs name it; nullptr: not an address of this provider.
Peer* Engine::peerNamed(const void* bytes, size_t length, int* number) {
  const std::string key(static_cast<const char*>(bytes), length);
  const auto found = peersByName.find(key);
  if (found != peersByName.end()) {
    *number = found->second;
    return peers[static_cast<size_t>(found->second)].get();
  }
  auto peer = std::make_unique<Peer>();
  // The library reads as many bytes as its own addresses have.
  if (length != name.size() || fi_av_insert(av, bytes, 1, &peer->address, 0, nullptr) != 1) return nullptr;
  *number = static_cast<int>(peers.size());
  peersByAddress[peer->address] = peer.get();
  peersByName[key] = *number;
  guests++;
  peers.push_back(std::move(peer));
  return peers.back().get();
}

// A peer that the program names. Negative: not an address of this provider.
int Engine::addPeer(const void* bytes, size_t length, uint64_t theirTag) {
  int number = -1;
  Peer* peer = peerNamed(bytes, length, &number);
  if (peer == nullptr) return -1;
  peer->tag = theirTag;
  if (!peer->named) guests--;
  peer->named = true;
  return number;
}

// A peer that has named itself; nullptr: there are too many of them.
Peer* Engine::addGuest(const void* bytes, size_t length, uint64_t theirTag) {
  const bool known = peersByName.count(std::string(static_cast<const char*>(bytes), length)) > 0;
  if (!known && guests >= kGuests) return nullptr;
  int number = -1;
  Peer* peer = peerNamed(bytes, length, &number);
  if (peer != nullptr && !peer->named) peer->tag = theirTag;
  return peer;
}

Peer* Engine::peerAt(fi_addr_t address) {
  const auto found = peersByAddress.find(address);
  return found == peersByAddress.end() ? nullptr : found->second;
}

// Something has come from it, or was delivered to it.
void Engine::heard(Peer& peer) {
  peer.mute = false;
  // It lives. If the engine still takes nothing for it, the next try says so.
  peer.refusedSince = 0;
  if (peer.connected) return;
  peer.connected = peer.known = true;
  socketsDue = true;
}

// The connection to it has broken. The next message makes a new one, if it lives.
void Engine::lost(Peer& peer) { peer.connected = false; }

// Looks after requests that wait for long.
void Engine::look() {
  const double time = now();
  if (time - looked < kBetween) return;
  looked = time;
  bool waits = false;
  for (const auto& [number, qp] : qps)
    waits = waits || (qp->peer != nullptr && qp->peer->held + qp->unacknowledged > 0 && !qp->requests.empty() &&
                      qp->requests.front()->since != 0 && time - qp->requests.front()->since > kOld);
  lookForBlocked(waits, time);
  std::vector<Qp*> gone;
  for (const auto& [number, qp] : qps) {
    if (qp->requests.empty() || qp->state != IBV_QPS_RTS || qp->peer == nullptr) continue;
    Request& first = *qp->requests.front();
    if (first.since == 0) first.since = time;
    if (time - first.since < kOld) continue;
    if (isGone(*qp, time)) {
      gone.push_back(qp);
      continue;
    }
    const Peer& peer = *qp->peer;
    if (qp->answered ? time - qp->pinged >= kOld : peer.backlog.empty() && time - qp->pinged > kAgain)
      ping(*this, *qp, time);
  }
  for (Qp* qp : gone) {
    if (qp->requests.empty()) continue;
    Request& first = *qp->requests.front();
    first.doubtful = false;
    if (first.status == IBV_WC_SUCCESS) first.status = IBV_WC_RETRY_EXC_ERR;
    retire(*qp);
  }
}

void Engine::pong(const Header& header, fi_addr_t from, const unsigned char* data, size_t bytes) {
  Peer* peer = peerAt(from);
  if (peer == nullptr) {
    uint64_t theirTag;
    if (bytes < sizeof theirTag) return;
    std::memcpy(&theirTag, data, sizeof theirTag);
    peer = addGuest(data + sizeof theirTag, bytes - sizeof theirTag, theirTag);
    if (peer == nullptr) return;
  }
  const Qp* qp = queuePair(header.to);
  const bool there = qp != nullptr && qp->isOpen() && qp->peer == peer && qp->dest == header.from;
  Header reply;
  reply.kind = Kind::kPong;
  reply.to = header.from;
  reply.from = header.to;
  reply.status = there ? 0 : 1;
  reply.total = header.number;
  if (there) {
    reply.immediate = qp->accepted;
    reply.number = qp->accepted;
    for (const Arrival& arrival : qp->pending)
      if (arrival.header.number == reply.number + 1) reply.number++;
  }
  answer(*peer, reply);
}

void Engine::takePong(Qp& qp, const Header& header) {
  qp.answered = true;
  if (header.status != 0) {
    if (qp.absentSince == 0) qp.absentSince = now();
    return;
  }
  qp.absentSince = 0;
  accepted(qp, header.immediate);
  // Chunks that had left before the question, and have not come.
  const bool missing = static_cast<int32_t>(header.total - header.number) > 0;
  if (missing && qp.unacknowledged > 0) {
    Header lost;
    lost.number = header.number + 1;
    lost.status = IBV_WC_RETRY_EXC_ERR;
    refused(qp, lost, nullptr, 0);
    return;
  }
  // An answer would have come before this one.
  for (auto it = qp.regions.begin(); it != qp.regions.end();) {
    if (it->second.answer == kAsked) it = qp.regions.erase(it);
    else ++it;
  }
  for (const Request* r : qp.requests)
    if (r->doubtful) region(qp, r->rkey);
  pump(qp);
}

}  // namespace onesided::fabric

#endif
