// Memory regions: registered, looked up for local entries, and given back.
//
// A region may be given back while requests use it: a device then fails them, and its owner may free the memory as soon
// as the call has returned. So the call takes the memory away from what is not done. Everything here happens under the
// engine's lock, and what the engine itself does with memory of a request (`gather`, `giveResult`) does, too:
//
//   waits, or has left in part         fails in its turn, the first of its queue pair by LOC_PROT_ERR, and nothing more
//                                      of it leaves
//   has left in a message, or as an    fails so as well if it would bring something: what comes is dropped. A write or
//   atomic                             send of which all has left goes on: nobody looks at the memory again
//   libfabric has it (`Mr::lent`)      the call waits until it is done, at most for a second (`kPatience`). What is
//                                      not done then fails in its turn, too; but libfabric still reads or writes the
//                                      memory until it gives the request back (docs/guide/devices.md)
//
// Requests are looked for when a region is given back, which is rare; those that post and poll pay for a pointer.
#if __has_include(<infiniband/verbs.h>) && __has_include(<rdma/fabric.h>)

#include <rdma/fi_errno.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fabric_engine.h"

namespace onesided::fabric {
namespace {

// Seconds.
constexpr double kPatience = 1;

bool sends(const Request& r) { return r.opcode == IBV_WR_SEND || r.opcode == IBV_WR_SEND_WITH_IMM; }

// Whether libfabric reads or writes its memory. (Not of an atomic: the result comes into the request.)
bool isLent(const Request& r) { return r.outside && !isAtomic(r.opcode); }

// Whether the engine will still look at its memory.
bool uses(const Request& r) {
  if (isLent(r)) return false;
  return sends(r) ? !r.issued : !r.accessed;
}

bool isIn(const Request& r, const Mr* mr) {
  return std::find(r.mrs, r.mrs + r.entries, mr) != r.mrs + r.entries;
}

// Waits until libfabric has given back what is lent of a region. Others may take the lock meanwhile.
void waitFor(Engine& e, Mr& mr, std::unique_lock<std::mutex>& lock) {
  const double begin = now();
  while (mr.lent > 0 && now() - begin < kPatience) {
    e.progress();
    if (mr.lent == 0) return;
    lock.unlock();
    usleep(50);
    lock.lock();
  }
}

}  // namespace

void giveResult(const Request& r, const void* result, size_t bytes) {
  const auto* from = static_cast<const unsigned char*>(result);
  for (int i = 0; i < r.entries && bytes > 0; i++) {
    const size_t n = std::min(bytes, r.local[i].iov_len);
    std::memcpy(r.local[i].iov_base, from, n);
    from += n;
    bytes -= n;
  }
}

// Copies a part of what a request sends.
void gather(const Request& r, size_t skip, size_t bytes, unsigned char* to) {
  for (int i = 0; i < r.entries && bytes > 0; i++) {
    const size_t length = r.local[i].iov_len;
    if (skip >= length) {
      skip -= length;
      continue;
    }
    const size_t n = std::min(bytes, length - skip);
    std::memcpy(to, static_cast<const unsigned char*>(r.local[i].iov_base) + skip, n);
    to += n;
    bytes -= n;
    skip = 0;
  }
}

// The region of an entry, or nullptr if it may not be used.
Mr* Engine::localRegion(const ibv_pd* pd, const ibv_sge& entry, bool written) const {
  const auto found = mrs.find(entry.lkey);
  if (found == mrs.end() || found->second->pd != pd) return nullptr;
  Mr* mr = found->second;
  const auto base = reinterpret_cast<uint64_t>(mr->addr);
  if (entry.addr < base || entry.addr - base > mr->length || entry.length > mr->length - (entry.addr - base))
    return nullptr;
  return written && (mr->access & IBV_ACCESS_LOCAL_WRITE) == 0 ? nullptr : mr;
}

ibv_mr* Engine::registerMemory(Pd* pd, void* address, size_t length, int access) {
  uint64_t rights = FI_SEND | FI_RECV | FI_READ | FI_WRITE;
  if ((access & IBV_ACCESS_REMOTE_READ) != 0) rights |= FI_REMOTE_READ;
  if ((access & IBV_ACCESS_REMOTE_WRITE) != 0) rights |= FI_REMOTE_WRITE;
  if ((access & IBV_ACCESS_REMOTE_ATOMIC) != 0) rights |= FI_REMOTE_READ | FI_REMOTE_WRITE;
  auto mr = std::make_unique<Mr>();
  int result = -FI_ENOKEY;
  // A key that is taken already is nearly impossible.
  for (int tries = 0; result == -FI_ENOKEY && tries < 3; tries++) {
    uint64_t key = 0;
    if (!traits.ownKeys) randomBytes(&key, sizeof key);
    result = fi_mr_reg(domain, address, length, rights, 0, key & ~FI_PROV_SPECIFIC, 0, &mr->region, nullptr);
  }
  if (result != 0) {
    errno = -result;
    return nullptr;
  }
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = address;
  mr->length = length;
  mr->access = access;
  mr->key = fi_mr_key(mr->region);
  do randomBytes(&mr->rkey, sizeof mr->rkey);
  while (mr->rkey == 0 || mrs.count(mr->rkey) > 0);
  mr->lkey = mr->rkey;
  mrs[mr->lkey] = mr.get();
  pd->users++;
  return mr.release();
}

// Its memory, of all requests that are not done: of those that libfabric has, or of the others.
void Engine::takeAway(const Mr* mr, bool lent) {
  std::vector<Qp*> failed;
  for (const auto& [number, qp] : qps) {
    if (qp->pd != mr->pd) continue;
    bool any = false;
    for (Request* r : qp->requests) {
      if (!isIn(*r, mr) || !(lent ? isLent(*r) : uses(*r))) continue;
      // What is lent is counted by its entries.
      if (!lent) r->entries = 0;
      // Those behind the first are flushed.
      if (any || r->status != IBV_WC_SUCCESS) continue;
      any = true;
      r->status = IBV_WC_LOC_PROT_ERR;
      r->doubtful = false;
      // Nothing behind it leaves. Before one that has not left yet, others may still leave: `pump` stops at it.
      if (r->issued || lent) qp->poisoned = true;
    }
    if (any) failed.push_back(qp);
  }
  for (Qp* qp : failed) {
    retire(*qp);
    pump(*qp);
  }
}

// libfabric has the memory of a request from now on; until now.
void Engine::lend(const Request& r) {
  for (int i = 0; i < r.entries; i++)
    if (r.mrs[i] != nullptr) r.mrs[i]->lent++;
}
void Engine::returned(const Request& r) {
  for (int i = 0; i < r.entries; i++) {
    Mr* mr = r.mrs[i];
    if (mr != nullptr && --mr->lent == 0 && mr->gone) delete mr;
  }
}

int Engine::deregister(Mr* mr, std::unique_lock<std::mutex>& lock) {
  // Nothing new finds it.
  mrs.erase(mr->lkey);
  takeAway(mr, false);
  withdraw(*mr, lock);
  if (mr->lent > 0) waitFor(*this, *mr, lock);
  if (mr->lent > 0) takeAway(mr, true);
  const int result = fi_close(&mr->region->fid);
  static_cast<Pd*>(mr->pd)->users--;
  mr->gone = true;
  if (mr->lent == 0) delete mr;
  return -result;
}

}  // namespace onesided::fabric

#endif
