// What an owner does with small accesses that have come together (fabric_batches.cc).
#if __has_include(<infiniband/verbs.h>) && __has_include(<rdma/fabric.h>)

#include <atomic>
#include <cstring>

#include "fabric_records.h"

namespace onesided::fabric {
namespace {

bool isWord(const void* at, size_t bytes) {
  return bytes == sizeof(uint64_t) && (reinterpret_cast<uintptr_t>(at) & 7) == 0;
}

uint64_t wordAt(const unsigned char* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// Carries one out, and writes what it brings. Words of 8 bytes are written and read at once.
void perform(const Record& record, const unsigned char* data, unsigned char* result) {
  auto* at = reinterpret_cast<void*>(record.address);
  auto* word = static_cast<uint64_t*>(at);
  uint64_t old = 0;
  switch (record.access) {
    case Access::kWrite:
      if (isWord(at, record.bytes)) __atomic_store_n(word, wordAt(data), __ATOMIC_RELAXED);
      else std::memcpy(at, data, record.bytes);
      break;
    case Access::kRead:
      if (!isWord(at, record.bytes)) {
        std::memcpy(result, at, record.bytes);
        break;
      }
      old = __atomic_load_n(word, __ATOMIC_RELAXED);
      std::memcpy(result, &old, sizeof old);
      break;
    case Access::kAdd:
      old = __atomic_fetch_add(word, wordAt(data), __ATOMIC_SEQ_CST);
      std::memcpy(result, &old, sizeof old);
      break;
    case Access::kSwap:
      old = wordAt(data);
      __atomic_compare_exchange_n(word, &old, wordAt(data + 8), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
      std::memcpy(result, &old, sizeof old);
      break;
    case Access::kUpdate: break;
  }
}

// Whether the lock is had; always if there is none.
bool takeLock(Qp& qp, const Update& asked) {
  if (asked.lock == 0) return true;
  if (asked.round() != qp.round) return false;
  uint64_t nobody = 0;
  if (__atomic_compare_exchange_n(reinterpret_cast<uint64_t*>(asked.lock), &nobody, uint64_t{asked.holder}, false,
                                  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
    return true;
  qp.round++;
  return false;
}

// Carries an update out, and writes what it brings: under the lock, or not at all.
void carryOutUpdate(Qp& qp, const Record& record, const Update& asked, const unsigned char* data,
                    unsigned char* result) {
  auto* target = reinterpret_cast<unsigned char*>(record.address);
  const uint64_t status = takeLock(qp, asked) ? kDone : kNotDone;
  std::memcpy(result, &status, sizeof status);
  unsigned char* found = result + kStatus;
  const size_t brings = updateBrings(asked.update, record.bytes) - kStatus;
  if (status == kNotDone) {
    std::memset(found, 0, brings);
    return;
  }
  const int type = updateType(asked.update);
  if (updateOp(asked.update) == kSwapElement) {
    std::memcpy(found, target, brings);
    if (std::memcmp(found, data + brings, brings) == 0) std::memcpy(target, data, brings);
  } else {
    // Of this thread alone: nobody waits for them.
    alignas(64) static thread_local int32_t words[kStripeWords] = {};
    const Stripes own{words, 0, 1};
    const size_t count = record.bytes / elementBytes(type);
    accumulateRun(updateOp(asked.update), type, target, data, brings > 0 ? found : nullptr, count, own);
  }
  if (asked.lock == 0) return;
  // Others may stand in line meanwhile, which the upper half counts.
  __atomic_fetch_sub(reinterpret_cast<uint64_t*>(asked.lock), uint64_t{asked.holder}, __ATOMIC_SEQ_CST);
}

int rightFor(Access access) {
  return access == Access::kWrite  ? IBV_ACCESS_REMOTE_WRITE
         : access == Access::kRead ? IBV_ACCESS_REMOTE_READ
                                   : IBV_ACCESS_REMOTE_ATOMIC;
}

bool reaches(const Mr* mr, const Qp& qp, uint64_t key, Access access, uint64_t address, size_t bytes) {
  if (mr == nullptr || mr->pd != qp.pd || mr->key != key) return false;
  const auto base = reinterpret_cast<uint64_t>(mr->addr);
  return (mr->access & qp.access & rightFor(access)) != 0 && address >= base && address - base <= mr->length &&
         bytes <= mr->length - (address - base);
}

// Why the owner does not allow one, or success. `bytes` are what it reaches.
ibv_wc_status refusalOf(const Record& record, size_t bytes, const Mr* mr, const Qp& qp) {
  const bool atomic = record.access == Access::kAdd || record.access == Access::kSwap;
  if (qp.destReads == 0 && record.access != Access::kWrite) return IBV_WC_REM_INV_REQ_ERR;
  if (atomic && ((record.address & 7) != 0 || record.bytes != 8)) return IBV_WC_REM_INV_REQ_ERR;
  return reaches(mr, qp, record.key, record.access, record.address, bytes) ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;
}

// The same of what only an update has.
ibv_wc_status updateRefusal(const Engine& engine, const Update& asked, const Record& record, const Qp& qp) {
  if ((asked.lock & 7) != 0 || asked.holder == 0 || !engine.agrees) return IBV_WC_REM_INV_REQ_ERR;
  if (!isUpdate(asked.update, asked.lock, record.address, record.bytes)) return IBV_WC_REM_INV_REQ_ERR;
  if (asked.lock == 0) return IBV_WC_SUCCESS;
  const auto found = engine.mrs.find(asked.lockRkey);
  const Mr* mr = found == engine.mrs.end() ? nullptr : found->second;
  return reaches(mr, qp, asked.lockKey, Access::kUpdate, asked.lock, sizeof(uint64_t)) ? IBV_WC_SUCCESS
                                                                                      : IBV_WC_REM_ACCESS_ERR;
}

}  // namespace

// Carries out what has come. What is not allowed ends both queue pairs, as it does on a device; what stands before it
// has been done, and what it has brought goes back. Of a message with a notice, which brings nothing, the end is not
// here: that is accepted with the notice. False: it is not allowed.
bool Engine::carryOut(Qp& qp, const Header& header, const unsigned char* data, size_t bytes) {
  static thread_local unsigned char results[kChunk];
  const Mr* mr = nullptr;
  size_t answer = 0;
  uint32_t done = 0;
  while (bytes >= sizeof(Record)) {
    Record record;
    std::memcpy(&record, data, sizeof record);
    data += sizeof record;
    bytes -= sizeof record;
    if (mr == nullptr || mr->rkey != record.rkey) {
      const auto found = mrs.find(record.rkey);
      mr = found == mrs.end() ? nullptr : found->second;
    }
    const size_t behind = sent(record.access, record.bytes);
    size_t result = record.access == Access::kWrite ? 0 : record.bytes;
    size_t reached = record.bytes;
    ibv_wc_status status = IBV_WC_REM_INV_REQ_ERR;
    Update update;
    // No engine of ours sends others.
    if (record.access <= Access::kUpdate && behind <= bytes) {
      if (record.access == Access::kUpdate) {
        std::memcpy(&update, data, sizeof update);
        result = updateBrings(update.update, record.bytes);
        if (updateOp(update.update) == kSwapElement) reached /= 2;
      }
      if (answer + result <= kChunk) status = refusalOf(record, reached, mr, qp);
    }
    if (record.access == Access::kUpdate && status == IBV_WC_SUCCESS) status = updateRefusal(*this, update, record, qp);
    if (status != IBV_WC_SUCCESS) {
      refuse(qp, header, status, done, results, answer);
      fail(qp);
      return false;
    }
    if (record.access != Access::kUpdate) perform(record, data, results + answer);
    else carryOutUpdate(qp, record, update, data + sizeof update, results + answer);
    // Whoever sees the next one's bytes sees these, and the next one sees no older ones.
    std::atomic_thread_fence(std::memory_order_acq_rel);
    data += behind;
    bytes -= behind;
    answer += result;
    done++;
  }
  if ((header.flags & kNotice) != 0) return true;
  qp.accepted = header.number;
  if (answer > 0) {
    // It acknowledges this message and those before it.
    Header reply;
    reply.kind = Kind::kResults;
    reply.to = qp.dest;
    reply.from = qp.qp_num;
    reply.number = header.number;
    control(*qp.peer, reply, results, answer);
    wasCarried(qp);
  } else {
    owe(qp, Ack::kNow);
  }
  return true;
}

}  // namespace onesided::fabric

#endif
