// The keys of memory regions.
//
// The keys that programs see are random handles of 32 bits. Behind one stands the key that libfabric checks at every
// access: 63 random bits, or what the provider chooses. A queue pair asks the owner for it when it first uses a handle,
// and hears what it may do with it: the owner's rights and those of its queue pair. From then on the initiator refuses
// what is not allowed, as the owner's device would. (An access that libfabric refuses ends the connection of the two
// processes, and with it everything that is under way on it.)
//
// A region that is given back is withdrawn: all that were told its key are told to forget it, and the call waits until
// they have, or for a tenth of a second. So no access comes in behind it that would break a connection.
#if __has_include(<infiniband/verbs.h>) && __has_include(<rdma/fabric.h>)

#include <rdma/fi_errno.h>
#include <sys/random.h>
#include <unistd.h>

#include <cstring>

#include "fabric_engine.h"

namespace onesided::fabric {
namespace {

constexpr double kPatience = 0.1;

// Tells queue pairs to forget a key, or all, and waits until they have answered. Each is told another number: so nobody
// else can answer for it. Others may take the lock meanwhile, and withdraw keys, too; the caller's objects stay, since
// only it may end them.
class Withdrawal {
 public:
  explicit Withdrawal(Engine& engine) : engine_(engine) {}

  void tell(Peer& peer, Header header) {
    header.kind = Kind::kKeyGone;
    if (!peer.mute) {
      do randomBytes(&header.number, sizeof header.number);
      while (header.number == 0 || engine_.owed.count(header.number) > 0);
      engine_.owed[header.number] = {&peer, &left_};
      left_++;
    }
    engine_.control(peer, header);
  }

  void settle(std::unique_lock<std::mutex>& lock) {
    const double begin = now();
    while (left_ > 0 && now() - begin < kPatience) {
      engine_.progress();
      if (left_ == 0) return;
      lock.unlock();
      usleep(50);
      lock.lock();
    }
    for (auto it = engine_.owed.begin(); left_ > 0 && it != engine_.owed.end();) {
      if (it->second.left != &left_) {
        ++it;
        continue;
      }
      it->second.peer->mute = true;
      it = engine_.owed.erase(it);
      left_--;
    }
  }

 private:
  Engine& engine_;
  size_t left_ = 0;
};

bool holds(const RemoteRegion& region, uint64_t address, uint64_t bytes) {
  return region.answer == kKnown && address >= region.base && address - region.base <= region.length &&
         bytes <= region.length - (address - region.base);
}

// Of an update, what it reaches.
uint32_t elementBytes(const Request& r) {
  const uint32_t data = r.bytes - 8;
  return updateOp(r.immediate) == kSwapElement ? data / 2 : data;
}

}  // namespace

void randomBytes(void* to, size_t bytes) {
  auto* at = static_cast<unsigned char*>(to);
  while (bytes > 0) {
    const ssize_t got = getrandom(at, bytes, 0);
    if (got <= 0) continue;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
}

// What a queue pair knows of a key; nullptr: it has asked.
const RemoteRegion* Engine::region(Qp& qp, uint32_t rkey) {
  const auto found = qp.regions.find(rkey);
  if (found != qp.regions.end()) return found->second.answer == kAsked ? nullptr : &found->second;
  qp.regions[rkey] = {};
  Header header;
  header.kind = Kind::kAskKey;
  header.to = qp.dest;
  header.from = qp.qp_num;
  header.immediate = rkey;
  control(*qp.peer, header);
  return nullptr;
}

// Why a request may not, or success.
int Engine::refusal(const Request& r, const RemoteRegion& region) const {
  if (region.answer == kNoQueuePair) return IBV_WC_RETRY_EXC_ERR;
  const bool update = r.opcode == kUpdate;
  const bool atomic = isAtomic(r.opcode) || update;
  const bool read = r.opcode == IBV_WR_RDMA_READ;
  if (region.noReads != 0 && (atomic || read)) return IBV_WC_REM_INV_REQ_ERR;
  if (atomic && !update && (r.remote & 7) != 0) return IBV_WC_REM_INV_REQ_ERR;
  const int needed = atomic ? IBV_ACCESS_REMOTE_ATOMIC : read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
  const bool allowed = (region.access & needed) != 0 && holds(region, r.remote, update ? elementBytes(r) : r.bytes);
  return allowed ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;
}

// The same of the region with an update's lock.
int Engine::lockRefusal(const Request& r, const RemoteRegion& region) const {
  if (region.answer == kNoQueuePair) return IBV_WC_RETRY_EXC_ERR;
  if (region.noReads != 0 || (r.operands[0] & 7) != 0) return IBV_WC_REM_INV_REQ_ERR;
  const bool allowed = (region.access & IBV_ACCESS_REMOTE_ATOMIC) != 0 && holds(region, r.operands[0], 8);
  return allowed ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;
}

void Engine::answerKey(Qp& qp, const Header& header) {
  RemoteRegion known;
  known.answer = kUnknown;
  known.noReads = qp.destReads == 0;
  const auto found = mrs.find(header.immediate);
  if (found != mrs.end() && found->second->pd == qp.pd) {
    Mr& mr = *found->second;
    known.base = reinterpret_cast<uint64_t>(mr.addr);
    known.length = mr.length;
    known.access = mr.access & qp.access;
    known.answer = kKnown;
    // Whoever may do nothing needs no key.
    if (known.access != 0) known.key = mr.key;
    mr.told.insert(&qp);
    qp.told.insert(mr.rkey);
  }
  Header reply;
  reply.kind = Kind::kKey;
  reply.to = header.from;
  reply.from = qp.qp_num;
  reply.immediate = header.immediate;
  answer(*qp.peer, reply, &known, sizeof known);
}

// To a question for a queue pair that is not there any more.
void Engine::answerNoKey(const Header& header, fi_addr_t from) {
  Peer* peer = peerAt(from);
  if (peer == nullptr) return;
  RemoteRegion known;
  known.answer = kNoQueuePair;
  Header reply;
  reply.kind = Kind::kKey;
  reply.to = header.from;
  reply.from = header.to;
  reply.immediate = header.immediate;
  answer(*peer, reply, &known, sizeof known);
}

void Engine::takeKey(Qp& qp, const Header& header, const unsigned char* data, size_t bytes) {
  const auto found = qp.regions.find(header.immediate);
  if (bytes < sizeof(RemoteRegion) || found == qp.regions.end()) return;
  std::memcpy(&found->second, data, sizeof(RemoteRegion));
  // A request that the connection has lost: was it its own fault?
  for (Request* r : qp.requests) {
    if (!r->doubtful || r->rkey != header.immediate) continue;
    r->doubtful = false;
    r->status = refusal(*r, found->second);
    if (r->status == IBV_WC_SUCCESS) r->status = IBV_WC_REM_OP_ERR;
  }
  retire(qp);
  pump(qp);
}

// A region's key: waits for the answers.
void Engine::withdraw(Mr& mr, std::unique_lock<std::mutex>& lock) {
  Withdrawal withdrawal(*this);
  for (Qp* qp : mr.told) {
    Header header;
    header.to = qp->dest;
    header.from = qp->qp_num;
    header.immediate = mr.rkey;
    withdrawal.tell(*qp->peer, header);
    qp->told.erase(mr.rkey);
    mr.formerly.erase(qp->peer);
  }
  // To none of its queue pairs: the answer says that it has seen what it was told before.
  for (Peer* peer : mr.formerly) withdrawal.tell(*peer, Header());
  mr.told.clear();
  withdrawal.settle(lock);
}

// All keys that were told through a queue pair, because its rights change or it ends. With a lock: waits for the
// answer.
void Engine::withdraw(Qp& qp, std::unique_lock<std::mutex>* lock) {
  if (qp.told.empty()) return;
  for (const uint32_t rkey : qp.told) {
    const auto found = mrs.find(rkey);
    if (found == mrs.end()) continue;
    found->second->told.erase(&qp);
    if (lock == nullptr) found->second->formerly.insert(qp.peer);
  }
  qp.told.clear();
  Header header;
  header.kind = Kind::kKeyGone;
  header.to = qp.dest;
  header.from = qp.qp_num;
  header.flags = kAll;
  if (lock == nullptr) {
    control(*qp.peer, header);
    return;
  }
  Withdrawal withdrawal(*this);
  withdrawal.tell(*qp.peer, header);
  withdrawal.settle(*lock);
}

// A peer has forgotten what it was told to. Where libfabric does not say who has sent a message, its number must do.
void Engine::takeForgotten(uint32_t number, fi_addr_t from) {
  const auto found = owed.find(number);
  if (found == owed.end()) return;
  if (from != found->second.peer->address && from != FI_ADDR_NOTAVAIL) return;
  --*found->second.left;
  owed.erase(found);
}

}  // namespace onesided::fabric

#endif
