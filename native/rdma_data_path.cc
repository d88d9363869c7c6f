// The data path of RDMA devices: functions that post a batch, post a receive, or poll.
//
// Requests: posting reads them from the ring that JavaScript has written (src/verbs/work-request-ring.ts says how a
// slot lies). The identifier that the device is given is not the program's wrId but says which queue pair and which
// slot it was; polling gives it back as two numbers, and JavaScript looks the rest up in its ring.
//
// The calls of the data path (post a batch, poll, post a receive) have no arguments: `sender`, `poller` and `receiver`
// make a function for one queue, which reads its arguments from words in memory that JavaScript has written, and writes
// its results there. Checking and converting seven arguments takes longer than libibverbs does.
#if __has_include(<infiniband/verbs.h>)

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "arguments.h"
#include "rdma_context.h"

namespace onesided {
namespace {

// The fields of a slot in the ring of work requests: src/verbs/work-request-ring.ts.
struct Slot {
  uint32_t opcode;
  uint32_t flags;
  uint32_t entries;
  uint32_t inlineBytes;
  uint32_t immediate;
  uint32_t rkey;
  double remoteAddress;
  double wrId;
  uint64_t compareAdd;
  uint64_t swap;
  uint32_t messageBytes;
  uint32_t unused;
  // Of a datagram: in `rkey` the number of its address handle, in `compareAdd` the queue pair there and its key.
};
static_assert(sizeof(Slot) == 64, "the header of a slot");
struct Entry {
  double address;
  uint32_t length;
  uint32_t lkey;
};
static_assert(sizeof(Entry) == 16, "an entry of a slot");

enum Flag : uint32_t { kFence = 1, kSignaled = 2, kSolicited = 4 };
constexpr uint32_t kReadOpcode = 4;
// An update, which libfabric's queue pairs carry out (fabric_batches.cc): to libibverbs, what a driver makes of it.
constexpr uint32_t kUpdateOpcode = 8;

// What the device is told of a request: the queue pair's number here (31 bits), and the request's count.
constexpr uint64_t kReceive = uint64_t{1} << 63;

uint64_t idOf(uint32_t owner, uint32_t count) { return (static_cast<uint64_t>(owner) << 32) | count; }

void endCall(napi_env env, void* data, void*) {
  auto* held = static_cast<std::shared_ptr<Call>*>(data);
  for (Pin& memory : (*held)->memory) memory.drop(env);
  delete held;
}

Call* callOf(napi_env env, napi_callback_info info) {
  void* data = nullptr;
  napi_get_cb_info(env, info, nullptr, nullptr, nullptr, &data);
  auto* call = static_cast<Call*>(data);
  if (!call->gone()) return call;
  napi_throw_error(env, "EBADF", "the queue was destroyed");
  return nullptr;
}

// The words of a polling function.
enum PollWord { kPollMax = 0, kPollGot = 1, kPollErrno = 2, kPollHeader = 8 };

void write(uint32_t* out, const ibv_wc& wc) {
  out[0] = static_cast<uint32_t>(wc.wr_id >> 32);
  out[1] = static_cast<uint32_t>(wc.wr_id);
  out[2] = wc.status;
  out[3] = wc.opcode;
  // The sender's queue pair has 24 bits.
  out[4] = (wc.wc_flags & 0xff) | (wc.src_qp << 8);
  out[5] = wc.byte_len;
  out[6] = ntohl(wc.imm_data);
  out[7] = wc.qp_num;
}

napi_value runPoll(napi_env env, napi_callback_info info) {
  Call* call = callOf(env, info);
  if (call == nullptr) return nullptr;
  uint32_t* words = call->words;
  Cq* cq = call->cq;
  uint32_t* out = words + kPollHeader;
  const size_t room = std::min<size_t>(words[kPollMax], (call->bytes / 4 - kPollHeader) / 8);
  size_t n = 0;
  for (; n < room && !cq->waiting.empty(); n++, cq->waiting.pop_front()) write(out + 8 * n, cq->waiting.front());
  words[kPollErrno] = 0;
  ibv_wc wc[32];
  while (n < room) {
    const int wanted = static_cast<int>(std::min<size_t>(room - n, 32));
    const int got = ibv_poll_cq(cq->cq, wanted, wc);
    if (got < 0) words[kPollErrno] = EIO;
    for (int i = 0; i < got; i++) write(out + 8 * n++, wc[i]);
    if (got < wanted) break;
  }
  words[kPollGot] = static_cast<uint32_t>(n);
  return nullptr;
}

enum SendWord { kSendOwner = 0, kSendHead = 1, kSendCount = 2, kSendPosted = 3, kSendErrno = 4, kSendWords = 5 };

constexpr uint32_t kBatch = 32;
constexpr uint32_t kBatchEntries = 256;

int postBatch(const Call& call, uint32_t owner, uint32_t mask, uint32_t head, uint32_t count, uint32_t* posted) {
  static const ibv_wr_opcode kOpcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
                                           IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
                                           IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_LOCAL_INV, IBV_WR_DRIVER1};
  ibv_send_wr requests[kBatch];
  ibv_sge entries[kBatchEntries];
  unsigned char* ring = call.data;
  const size_t slotBytes = call.slotBytes;
  uint32_t used = 0;
  uint32_t built = 0;
  for (; built < count; built++) {
    const uint32_t at = head + built;
    unsigned char* bytes = ring + static_cast<size_t>(at & mask) * slotBytes;
    Slot slot;
    std::memcpy(&slot, bytes, sizeof slot);
    const size_t room = (slotBytes - sizeof slot) / sizeof(Entry);
    const bool remoteAccess = slot.opcode <= 1 || slot.opcode >= kReadOpcode;
    if (call.handles != nullptr && remoteAccess) return EINVAL;
    const bool known = slot.opcode <= 6 || (slot.opcode == kUpdateOpcode && call.updates);
    if (!known || slot.entries > room || slot.inlineBytes > slotBytes - sizeof slot) return EINVAL;
    if (remoteAccess && !whole(slot.remoteAddress, kMaxSafeInteger)) return EINVAL;
    const uint32_t needed = slot.inlineBytes != 0 ? 1 : slot.entries;
    if (used + needed > kBatchEntries) {
      if (built == 0) return EINVAL;
      break;
    }
    ibv_send_wr& wr = requests[built];
    std::memset(&wr, 0, sizeof wr);
    wr.wr_id = idOf(owner, at);
    wr.opcode = kOpcodes[slot.opcode];
    wr.sg_list = entries + used;
    wr.num_sge = static_cast<int>(needed);
    if ((slot.flags & kFence) != 0) wr.send_flags |= IBV_SEND_FENCE;
    if ((slot.flags & kSignaled) != 0) wr.send_flags |= IBV_SEND_SIGNALED;
    if ((slot.flags & kSolicited) != 0) wr.send_flags |= IBV_SEND_SOLICITED;
    if (slot.inlineBytes != 0) {
      wr.send_flags |= IBV_SEND_INLINE;
      entries[used++] = {reinterpret_cast<uint64_t>(bytes + sizeof slot), slot.inlineBytes, 0};
    } else {
      for (uint32_t i = 0; i < slot.entries; i++) {
        Entry entry;
        std::memcpy(&entry, bytes + sizeof slot + i * sizeof entry, sizeof entry);
        if (!whole(entry.address, kMaxSafeInteger)) return EINVAL;
        entries[used++] = {static_cast<uint64_t>(entry.address), entry.length, entry.lkey};
      }
    }
    wr.imm_data = htonl(slot.immediate);
    if (call.handles != nullptr) {
      const auto found = call.handles->find(slot.rkey);
      if (found == call.handles->end() || found->second->pd != call.qp->pd) return EINVAL;
      wr.wr.ud.ah = found->second;
      wr.wr.ud.remote_qpn = static_cast<uint32_t>(slot.compareAdd);
      wr.wr.ud.remote_qkey = static_cast<uint32_t>(slot.compareAdd >> 32);
    }
    const auto remote = remoteAccess ? static_cast<uint64_t>(slot.remoteAddress) : 0;
    if (slot.opcode > kReadOpcode) {
      wr.wr.atomic.remote_addr = remote;
      wr.wr.atomic.rkey = slot.rkey;
      wr.wr.atomic.compare_add = slot.compareAdd;
      wr.wr.atomic.swap = slot.swap;
    } else if (remoteAccess) {
      wr.wr.rdma.remote_addr = remote;
      wr.wr.rdma.rkey = slot.rkey;
    }
    if (built > 0) requests[built - 1].next = &wr;
  }
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(call.qp, requests, &bad);
  if (error == 0) *posted += built;
  else if (bad != nullptr) *posted += static_cast<uint32_t>(bad - requests);
  return error;
}

napi_value runSend(napi_env env, napi_callback_info info) {
  Call* call = callOf(env, info);
  if (call == nullptr) return nullptr;
  uint32_t* words = call->words;
  const uint32_t head = words[kSendHead];
  const uint32_t count = words[kSendCount];
  const auto mask = static_cast<uint32_t>(call->bytes / call->slotBytes - 1);
  uint32_t posted = 0;
  int error = 0;
  while (posted < count && error == 0) {
    const uint32_t batch = std::min<uint32_t>(count - posted, kBatch);
    error = postBatch(*call, words[kSendOwner], mask, head + posted, batch, &posted);
  }
  words[kSendPosted] = posted;
  words[kSendErrno] = static_cast<uint32_t>(error);
  return nullptr;
}

enum ReceiveWord { kReceiveOwner = 0, kReceiveCount = 1, kReceiveEntries = 2, kReceiveErrno = 3, kReceiveWords = 4 };

napi_value runReceive(napi_env env, napi_callback_info info) {
  Call* call = callOf(env, info);
  if (call == nullptr) return nullptr;
  uint32_t* words = call->words;
  constexpr size_t kMost = 64;
  const size_t n = std::min<size_t>({words[kReceiveEntries], call->bytes / 24, kMost});
  ibv_sge entries[kMost];
  for (size_t i = 0; i < n; i++) {
    double entry[3];
    std::memcpy(entry, call->data + sizeof entry * i, sizeof entry);
    if (!whole(entry[0], kMaxSafeInteger) || !whole(entry[1], UINT32_MAX) || !whole(entry[2], UINT32_MAX)) {
      throwRangeError(env, "receiver: entry %zu must be an address, a length and a key", i);
      return nullptr;
    }
    entries[i] = {static_cast<uint64_t>(entry[0]), static_cast<uint32_t>(entry[1]), static_cast<uint32_t>(entry[2])};
  }
  ibv_recv_wr wr{};
  wr.wr_id = idOf(words[kReceiveOwner], words[kReceiveCount]) | kReceive;
  wr.sg_list = entries;
  wr.num_sge = static_cast<int>(n);
  ibv_recv_wr* bad = nullptr;
  const int error =
      call->srq != nullptr ? ibv_post_srq_recv(call->srq, &wr, &bad) : ibv_post_recv(call->qp, &wr, &bad);
  words[kReceiveErrno] = static_cast<uint32_t>(error);
  return nullptr;
}

}  // namespace

// The words of a function: at least `count` of them.
bool RdmaContext::takeWords(napi_value value, const char* name, size_t count, Call* call) {
  Bytes words;
  if (!readBytes(env_, value, name, "the words", &words)) return false;
  if (words.type != napi_uint32_array || words.elements < count) {
    throwRangeError(env_, "%s: the words must be a Uint32Array of at least %zu", name, count);
    return false;
  }
  call->words = reinterpret_cast<uint32_t*>(words.data);
  call->bytes = words.length;
  call->memory[0] = Pin(env_, value);
  return true;
}

Napi::Value RdmaContext::makeCall(std::shared_ptr<Call> call, Calls* calls, napi_callback run) {
  auto* held = new std::shared_ptr<Call>(call);
  napi_value function;
  if (napi_create_function(env_, nullptr, 0, run, call.get(), &function) != napi_ok ||
      napi_add_finalizer(env_, function, held, endCall, nullptr, nullptr) != napi_ok) {
    endCall(env_, held, nullptr);
    return refuse(ENOMEM, "create a function");
  }
  calls->push_back(std::move(call));
  return Napi::Value(env_, function);
}

// poller(cq, words): a function that fetches up to words[0] completions and says in words[1] how many, in words[2]
// the errno; 8 words each from words[8] on: owner (its sign bit: a receive), count, status, opcode, flags (and, above 8
// bits, the sender's queue pair of a datagram), bytes, immediate data, queue pair
Napi::Value RdmaContext::poller(const Napi::CallbackInfo& info) {
  if (!ready(info, "poller")) return {};
  Cq* cq = find(cqs_, info[0], "poller", "completion queue");
  auto call = std::make_shared<Call>();
  if (cq == nullptr || !takeWords(info[1], "poller", kPollHeader, call.get())) return {};
  call->cq = cq;
  return makeCall(std::move(call), &cq->calls, runPoll);
}

// sender(qp, ring, slotBytes, words): a function that posts the words[2] requests from words[1] on for the owner
// words[0], and says in words[3] how many were posted; if not all, the rest were refused with the errno in words[4]
Napi::Value RdmaContext::sender(const Napi::CallbackInfo& info) {
  const char* name = "sender";
  if (!ready(info, name)) return {};
  Qp* qp = find(qps_, info[0], name, "queue pair");
  Bytes ring;
  if (qp == nullptr || !readBytes(env_, info[1], name, "the ring", &ring)) return {};
  bool good = true;
  auto call = std::make_shared<Call>();
  call->slotBytes = static_cast<size_t>(integer(info, 2, name, 64, 65536, &good));
  if (!good) return {};
  const size_t slots = ring.length / call->slotBytes;
  if (call->slotBytes % 8 != 0 || slots == 0 || (slots & (slots - 1)) != 0) {
    throwRangeError(env_, "sender: the number of the ring's slots must be a power of two");
    return {};
  }
  if (!takeWords(info[3], name, kSendWords, call.get())) return {};
  call->qp = qp->qp;
  call->updates = verbs_->describe_endpoint != nullptr;
  if (qp->datagrams) call->handles = &ahs_;
  call->data = ring.data;
  call->bytes = slots * call->slotBytes;
  call->memory[1] = Pin(env_, info[1]);
  return makeCall(std::move(call), &qp->calls, runSend);
}

// receiver(srq: boolean, number, entries: Float64Array of (address, length, lkey), words): a function that posts a
// receive with the first words[2] entries for the owner words[0], with the count words[1], and says the errno in
// words[3]
Napi::Value RdmaContext::receiver(const Napi::CallbackInfo& info) {
  const char* name = "receiver";
  if (!ready(info, name)) return {};
  const bool shared = info[0].ToBoolean().Value();
  Srq* srq = shared ? find(srqs_, info[1], name, "shared receive queue") : nullptr;
  Qp* qp = shared ? nullptr : find(qps_, info[1], name, "queue pair");
  Bytes entries;
  if ((srq == nullptr && qp == nullptr) || !readBytes(env_, info[2], name, "the entries", &entries)) return {};
  if (entries.type != napi_float64_array) {
    throwTypeError(env_, "%s: the entries must be a Float64Array", name);
    return {};
  }
  auto call = std::make_shared<Call>();
  if (!takeWords(info[3], name, kReceiveWords, call.get())) return {};
  call->srq = shared ? srq->srq : nullptr;
  call->qp = shared ? nullptr : qp->qp;
  call->data = entries.data;
  call->bytes = entries.length;
  call->memory[1] = Pin(env_, info[2]);
  return makeCall(std::move(call), shared ? &srq->calls : &qp->calls, runReceive);
}

}  // namespace onesided

#endif
