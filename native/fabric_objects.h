// What the engine of fabric_engine.h works with: requests, messages, peers, and the objects of the verbs.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <sys/uio.h>
#include <time.h>

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "fabric_wire.h"
#include "verbs_library.h"

namespace onesided::fabric {

// Receives that are posted.
constexpr int kReceives = 64;
// Entries of a request, at either end.
constexpr int kEntries = 4;
constexpr size_t kInline = 64;
// Bytes of a message that is handed over without memory of its own; libfabric's limit may be lower.
constexpr size_t kMostInjected = 256;
// Chunks of a queue pair that have left and were not acknowledged: 1 MiB, which is what waits at most for a receive.
constexpr uint32_t kWindow = 64;
// So many messages that are acknowledged later (`isBrief`) are acknowledged at once.
constexpr uint32_t kMostBrief = kWindow / 8;
// Questions for keys that wait at most at a queue pair that is not connected yet, beside a window of chunks. They are
// asked again.
constexpr size_t kMostQuestions = 4 * kWindow;

// Seconds. A program that has polled so recently is still at it.
constexpr double kRecently = 0.0005;

inline double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Qp;
struct Peer;
struct Mr;

// What libfabric gives back when it is done with something. It needs the context's memory until then.
struct Operation {
  fi_context2 context;
  enum class Type : uint8_t { kRequest, kMessage, kLanding, kProbe } type = Type::kRequest;
};

// A work request.
struct Request : Operation {
  // Null: the queue pair has forgotten it, and the engine still has it.
  Qp* qp = nullptr;
  uint64_t id = 0;
  ibv_wr_opcode opcode{};
  unsigned flags = 0;
  int entries = 0;
  iovec local[kEntries];
  void* descriptors[kEntries];
  // Their regions; null if the data are inline.
  Mr* mrs[kEntries];
  unsigned char inlined[kInline];
  uint64_t remote = 0;
  uint32_t rkey = 0;
  uint32_t immediate = 0;
  uint32_t bytes = 0;
  // Of an atomic. The result stays here until it is complete: a device that is late writes nobody's memory.
  // Of an update: the address of its lock; its key, and in the upper half who takes it.
  uint64_t operands[2] = {};
  uint64_t result = 0;
  // Of a message: what was handed over, and the number of its last chunk, valid when all was.
  uint32_t sent = 0;
  uint32_t lastChunk = 0;
  // Everything of it was handed over, or it has failed.
  bool issued = false;
  // Its access of remote memory was handed over; and has come back.
  bool outside = false;
  bool accessed = false;
  bool acknowledged = false;
  // It has left with others in a message.
  bool batched = false;
  // The engine lost it: the owner is asked why (fabric_peers.cc).
  bool doubtful = false;
  int status = IBV_WC_SUCCESS;
  // When it was first tried.
  double since = 0;
};

// A message that the engine has, or that waits for it.
struct Message : Operation {
  Peer* peer = nullptr;
  size_t bytes = 0;
  unsigned char data[1];
  Kind kind() const { return static_cast<Kind>(data[offsetof(Header, kind)]); }
};

// A receive of the endpoint.
struct Landing : Operation {
  unsigned char data[kMessage + 64];
};

// An atomic by which an engine is tried (fabric_endpoint.cc).
struct Probe : Operation {
  static constexpr int kUnderWay = -1;
  uint64_t added = 0;
  uint64_t found = 0;
  // 0: it was carried out.
  int error = 0;
};

struct Peer {
  fi_addr_t address = FI_ADDR_UNSPEC;
  uint64_t tag = 0;
  // By the program. Others have only asked whether somebody is here (fabric_peers.cc).
  bool named = false;
  // Control messages that the engine did not take yet, in order. Other messages wait behind them.
  std::deque<Message*> backlog;
  bool backlogged = false;
  // What the engine would give back with an error if the peer died: writes, reads, and messages that the system has not
  // taken. Not atomics, which do not come back.
  uint32_t held = 0;
  // Something has come from it, or was delivered to it, since the connection was last lost.
  bool connected = false;
  // It was connected once.
  bool known = false;
  // Since when the engine takes nothing for it; 0: it does.
  double refusedSince = 0;
  // Its host acknowledges nothing of what is sent to it (fabric_sockets.cc).
  bool blocked = false;
  // It did not answer in time when a key was withdrawn: nobody waits for it again until it is heard.
  bool mute = false;
};

struct Receive {
  uint64_t id = 0;
  int entries = 0;
  std::array<ibv_sge, kEntries> list;
};

// A message that waits for a receive, or for its queue pair to be connected.
struct Arrival {
  Header header;
  fi_addr_t from;
  std::string data;
  // When it is refused if there is still no receive; 0: never.
  double deadline = 0;
};

struct Pd : ibv_pd {
  int users = 0;
};

struct Channel : ibv_comp_channel {
  int writer = -1;
};

struct Cq : ibv_cq {
  std::deque<ibv_wc> completions;
  int users = 0;
  enum { kQuiet, kNext, kNextSolicited } armed = kQuiet;
};

struct Srq : ibv_srq {
  std::deque<Receive> receives;
  uint32_t most = 0;
  // Below so many receives an event is raised, once; 0: never.
  uint32_t limit = 0;
  int users = 0;
  // Queue pairs with messages that wait for a receive.
  std::unordered_set<Qp*> starving;
};

struct Mr : ibv_mr {
  fid_mr* region = nullptr;
  int access = 0;
  uint64_t key = 0;
  // So many entries of requests that libfabric has are in it: it reads or writes them.
  uint32_t lent = 0;
  // It is given back, and stays until libfabric has given back what is lent.
  bool gone = false;
  // The queue pairs whose peers were told its key. Of queue pairs that are gone, only their peers: those were told to
  // forget all, and have not answered.
  std::unordered_set<Qp*> told;
  std::unordered_set<Peer*> formerly;
};

struct Qp : ibv_qp {
  ibv_qp_cap cap{};
  bool signalAll = false;
  Peer* peer = nullptr;
  uint32_t dest = 0;
  int access = 0;
  uint8_t destReads = 128;
  uint8_t rnrRetries = 7;
  // Of receivers that are not ready: seconds between tries.
  double rnrTimer = 1e-5;

  // Sending. The last `unissued` of the requests have not left, or not wholly.
  std::deque<Request*> requests;
  size_t unissued = 0;
  uint32_t writing = 0;
  uint32_t reading = 0;
  uint32_t atomics = 0;
  uint32_t chunks = 0;
  uint32_t unacknowledged = 0;
  // The last chunk that is acknowledged later, and the last one that was asked for because something waits.
  uint32_t brief = 0;
  uint32_t asked = 0;
  // Reads, atomics and updates that have left with others.
  uint32_t fetching = 0;
  // Of updates that come: their round.
  uint8_t round = 0;
  // A request has failed and waits for its turn to complete: nothing behind it leaves.
  bool poisoned = false;
  bool stalled = false;
  // It waits for more to leave with (fabric_batches.cc): so many of the unissued were looked at, with so many bytes.
  bool held = false;
  size_t together = 0;
  size_t togetherBytes = 0;
  // Small accesses since nothing was under way, and the time before; 0 if the program did not poll behind them.
  uint32_t burst = 0;
  uint32_t lastBurst = 0;
  std::unordered_map<uint32_t, RemoteRegion> regions;
  // When the peer was last asked whether it is there; whether it has answered; since when it says that it is not.
  double pinged = 0;
  bool answered = true;
  double absentSince = 0;

  // Receiving.
  std::deque<Receive> receives;
  std::deque<Arrival> pending;
  bool receiving = false;
  Receive current;
  // Of the message that is put into it: what its first chunk says, its bytes here, and how many have come.
  Kind currentKind{};
  uint32_t currentTotal = 0;
  uint32_t currentBytes = 0;
  uint32_t currentCame = 0;
  uint32_t accepted = 0;
  // Of chunks with a notice that may wait: the last one whose accesses have been carried out.
  uint32_t carriedOut = 0;
  bool ackDue = false;
  // So many of what was accepted since the last acknowledgement are acknowledged later.
  uint32_t ackLater = 0;
  // Its peer waits for the acknowledgement of all chunks up to this one.
  uint32_t wanted = 0;
  // It is in the list of those with acknowledgements to send.
  bool acking = false;
  bool limited = false;
  // The keys that its peer was told through it.
  std::unordered_set<uint32_t> told;

  bool isOpen() const { return state == IBV_QPS_RTR || state == IBV_QPS_RTS; }
};

// The provider's properties that decide how it is used.
struct Traits {
  // Writes and messages keep their order, and so do writes among each other.
  bool ordered = false;
  // Remote addresses are offsets into the region.
  bool offsets = false;
  // The key is chosen by the provider.
  bool ownKeys = false;
  // There is no descriptor to sleep on.
  bool mustLook = false;
};

}  // namespace onesided::fabric
