// Small accesses that go together: one message of the engine's own, which the owner carries out and acknowledges
// once.
//
// By itself a write is a packet there and an acknowledgement back, and each of them a call of the system at both
// ends, some 6 µs; so is a read, or an atomic. Those that are posted while others are under way, or by one call, are
// put into one message instead: a header, then records of an address, key and length, and the bytes. One message
// brings back what was read, and what atomics found.
//
// When. An access that is alone, with nothing of its queue pair under way, leaves at once, by itself. While
// something is under way, or if there was more than one the last time, small ones are held (`hold`), and leave when
//
//   the program polls and finds nothing, or is about to sleep   it wants them complete, and posts no more
//   a message is full, or something else is posted              they would wait for nothing
//   the thread makes progress                                   the program does something else: 1.5 ms later at most
//
// and with a *notice*, a write of no bytes with immediate data, which lets nothing wait: so end epochs, behind their
// puts. It is a flag of the message, and takes effect when all of it has been carried out, and there is a receive.
//
// In the last case the first of the next ones leaves at once again. So a put and its flush are as quick as without
// all this, 16 take little more than one, and a program that computes behind its puts has them carried out
// meanwhile. Measured between two processes that poll, µs: one 12 to 17; 2 puts and a flush 15 (each by itself 26),
// 4 puts 15 (40), 16 puts 18 (102), 64 puts 31 (450); 2 of 4 KiB 17 (22), 16 of 4 KiB 110 (110); 16 gets 19 (102),
// 64 gets 27 (370).
//
// Order. A message is a chunk like those of sends (fabric_receives.cc): it has their numbers, waits behind them
// where they wait for a receive, and is acknowledged with them. The engine keeps the order of messages, and lets
// none overtake a write (`ordered`) or an atomic. But the owner's engine serves other accesses when it reads them,
// and a message later: so nothing else that reaches memory leaves behind one before it is acknowledged (`mustWait`).
// The owner carries it out under its lock, as it does other atomics, record by record, and 8 bytes at their own
// alignment at once. Atomics are the processor's there: only where those agree with the engine's (`agrees`).
//
// Updates. An accumulate of a type that no engine has an atomic for is made of four requests elsewhere: its stripe, a
// 64-bit word, is taken by a compare-and-swap, and the elements are read, written and the stripe released
// (src/transfer/requests/request-updates.ts). Here it is one record: the owner takes the stripe, if nobody has it and
// nobody stands in line for it, updates the elements, and gives it back, all under the engine's lock. If the stripe is
// taken, it does nothing and says so, and the initiator goes the long way. What the initiator has posted behind that
// update must not be carried out before it: so a refusal begins a new round of the queue pair, and updates of earlier
// rounds are refused, too. The initiator posts none of the new round until it has seen what became of the others.
// Neighbours of the owner take stripes by the processor meanwhile: words of 64 bits, by atomics that agree. Of 64-bit
// integers, which are updated by such atomics themselves, there is no lock, and nothing is refused.
//
// Keys. The owner looks at everything again that was asked of it before: a key may be withdrawn meanwhile. It says
// how many records it has carried out, and what they have brought.
#if __has_include(<infiniband/verbs.h>) && __has_include(<rdma/fabric.h>)

#include <cstring>

#include "fabric_records.h"

namespace onesided::fabric {
namespace {

// Longer ones are not copied twice.
constexpr uint32_t kSmall = 4096;
// Of a message: the owner carries out the first while the next are posted.
constexpr size_t kFull = 8192;
// So many are quicker by themselves if something is behind them that would wait until they are acknowledged.
constexpr size_t kFew = 4;

Access accessOf(const Request& r) {
  switch (r.opcode) {
    case IBV_WR_RDMA_READ: return Access::kRead;
    case IBV_WR_ATOMIC_FETCH_AND_ADD: return Access::kAdd;
    case IBV_WR_ATOMIC_CMP_AND_SWP: return Access::kSwap;
    case kUpdate: return Access::kUpdate;
    default: return Access::kWrite;
  }
}

// Bytes of a request's data that its record counts: not an update's word.
uint32_t counted(const Request& r) { return r.opcode == kUpdate ? r.bytes - static_cast<uint32_t>(kStatus) : r.bytes; }
size_t sent(const Request& r) { return sent(accessOf(r), counted(r)); }
size_t brought(const Request& r) {
  if (r.opcode == kUpdate) return updateBrings(r.immediate, counted(r));
  return accessOf(r) == Access::kWrite ? 0 : r.bytes;
}

}  // namespace

// Whether it tells the owner something behind the accesses before it, and needs no access of its own.
bool Engine::isNotice(const Qp& qp, const Request& r) const {
  if (r.status != IBV_WC_SUCCESS || r.opcode != IBV_WR_RDMA_WRITE_WITH_IMM || r.bytes > 0) return false;
  // Else accesses would fail for want of a receive, which they do not need.
  if (qp.rnrRetries < 7) return false;
  return (r.flags & IBV_SEND_FENCE) == 0 || qp.reading + qp.atomics + qp.fetching == 0;
}

bool Engine::isSmall(const Request& r) const {
  if (r.status != IBV_WC_SUCCESS || (r.flags & IBV_SEND_FENCE) != 0) return false;
  if (isAtomic(r.opcode) || r.opcode == kUpdate) return agrees;
  return (r.opcode == IBV_WR_RDMA_WRITE || r.opcode == IBV_WR_RDMA_READ) && r.bytes > 0 && r.bytes <= kSmall;
}

// Whether the data of an update are its word and elements that it can have. Where they lie is looked at later.
bool Engine::mayUpdate(const Request& r) const {
  return r.bytes > kStatus && counted(r) <= kSmall && isUpdate(r.immediate, r.operands[0], r.remote, counted(r)) &&
         r.operands[1] >> 32 != 0;
}

// Whether what was just posted may wait for more. It is in `held` then, and leaves at the next progress.
bool Engine::hold(Qp& qp) {
  // Whatever it waits for, progress sees first.
  if (qp.stalled) return true;
  if (qp.state != IBV_QPS_RTS) return false;
  const bool idle = qp.writing + qp.reading + qp.atomics + qp.unacknowledged == 0;
  if (idle && !qp.held) {
    qp.lastBurst = qp.burst;
    qp.burst = 0;
  }
  for (; qp.together < qp.unissued; qp.together++) {
    const Request& r = *qp.requests[qp.requests.size() - qp.unissued + qp.together];
    if (!isSmall(r)) {
      if (isNotice(qp, r)) qp.burst++;
      return false;
    }
    qp.togetherBytes += sizeof(Record) + sent(r) + brought(r);
    qp.burst++;
  }
  // The thread takes them if the program does not poll. If it sleeps, an answer to what is under way must wake it.
  if ((idle && (qp.lastBurst < 2 || deep.load())) || qp.togetherBytes >= kFull) return false;
  if (!qp.held) held.push_back(&qp);
  qp.held = true;
  return true;
}

// Hands over what is held.
void Engine::releaseHeld() {
  std::vector<Qp*> all;
  all.swap(held);
  for (Qp* qp : all) qp->held = false;
  for (Qp* qp : all) pump(*qp);
  if (!held.empty()) return;
  // Its memory is used again.
  all.clear();
  held.swap(all);
}

// Hands over the next requests, if they are small accesses that go together. How many left; 0: none does so; negative:
// they must wait.
int Engine::batch(Qp& qp) {
  const size_t first = qp.requests.size() - qp.unissued;
  if (!isSmall(*qp.requests[first])) return 0;
  // They would be overtaken, or overtake.
  if (!traits.ordered && qp.writing + qp.atomics > 0) return 0;
  static thread_local unsigned char records[kChunk];
  size_t count = 0;
  size_t bytes = 0;
  size_t answer = 0;
  uint32_t fetches = 0;
  const RemoteRegion* region = nullptr;
  uint32_t rkey = 0;
  bool updates = false;
  for (; first + count < qp.requests.size(); count++) {
    const Request& r = *qp.requests[first + count];
    const Access access = accessOf(r);
    const size_t room = sizeof(Record) + sent(r);
    if (!isSmall(r) || bytes + room > kChunk || answer + brought(r) > kChunk) break;
    if (region == nullptr || r.rkey != rkey) {
      const auto found = qp.regions.find(r.rkey);
      if (found == qp.regions.end() || found->second.answer == kAsked) break;
      region = &found->second;
      rkey = r.rkey;
    }
    if (refusal(r, *region) != IBV_WC_SUCCESS) break;
    const Record record{r.remote, region->key, r.rkey, static_cast<uint16_t>(counted(r)), access, 0};
    unsigned char* at = records + bytes;
    unsigned char* behind = at + sizeof record;
    if (access == Access::kUpdate) {
      const auto lockRkey = static_cast<uint32_t>(r.operands[1]);
      uint64_t lockKey = 0;
      if (r.operands[0] != 0) {
        const auto lock = qp.regions.find(lockRkey);
        if (lock == qp.regions.end() || lock->second.answer == kAsked) break;
        if (lockRefusal(r, lock->second) != IBV_WC_SUCCESS) break;
        lockKey = lock->second.key;
      }
      const auto holder = static_cast<uint32_t>(r.operands[1] >> 32);
      const Update update{r.operands[0], lockKey, lockRkey, holder, r.immediate, 0};
      std::memcpy(behind, &update, sizeof update);
      gather(r, kStatus, counted(r), behind + sizeof update);
      updates = true;
    } else if (access == Access::kWrite) {
      gather(r, 0, r.bytes, behind);
    } else {
      std::memcpy(behind, r.operands, sent(r));
    }
    std::memcpy(at, &record, sizeof record);
    bytes += room;
    answer += brought(r);
    fetches += access != Access::kWrite;
  }
  const bool notice = count > 0 && fetches == 0 && first + count < qp.requests.size() &&
                      isNotice(qp, *qp.requests[first + count]);
  if (notice) count++;
  const bool more = first + count < qp.requests.size();
  // By itself it need not wait.
  if (count == 0 || (!updates && count < (more ? kFew : 2) && qp.unacknowledged + qp.atomics == 0)) return 0;
  if (qp.unacknowledged >= kWindow) return -1;
  Header header;
  header.kind = Kind::kTogether;
  header.to = qp.dest;
  header.from = qp.qp_num;
  header.retries = 7;
  header.number = qp.chunks + 1;
  header.total = static_cast<uint32_t>(bytes);
  if (notice) {
    const Request& last = *qp.requests[first + count - 1];
    header.flags = kNotice | ((last.flags & IBV_SEND_SOLICITED) != 0 ? kSolicited : 0);
    header.immediate = last.immediate;
  }
  carryAccepted(qp, header);
  if (!message(*qp.peer, header, records, bytes)) return -1;
  wasCarried(qp);
  qp.chunks++;
  qp.unacknowledged++;
  qp.fetching += fetches;
  const double time = now();
  for (size_t i = 0; i < count; i++) {
    Request& r = *qp.requests[first + i];
    r.since = time;
    r.batched = r.issued = true;
    r.accessed = r.opcode == IBV_WR_RDMA_WRITE;
    r.lastChunk = qp.chunks;
  }
  qp.unissued -= count;
  return static_cast<int>(count);
}

// Gives out what the accesses of a message have brought, as far as they were carried out.
void Engine::takeResults(Qp& qp, uint32_t number, const unsigned char* data, size_t bytes) {
  for (Request* r : qp.requests) {
    if (bytes == 0) return;
    if (!r->batched || r->lastChunk != number || r->acknowledged) continue;
    const size_t result = brought(*r);
    if (result > bytes) return;
    if (result > 0 && r->status == IBV_WC_SUCCESS) giveResult(*r, data, result);
    r->accessed = true;
    data += result;
    bytes -= result;
  }
}

}  // namespace onesided::fabric

#endif
