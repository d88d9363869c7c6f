// Reliable-connected queue pairs over libfabric's reliable datagram endpoints (FI_EP_RDM): a VerbsLibrary whose devices
// are libfabric's providers. docs/decisions/044-libfabric.md says why it is so.
//
//   RDMA writes and reads  fi_writemsg until they are delivered, fi_readmsg
//   atomics                fi_fetch_atomic, fi_compare_atomic
//   small ones of both     that go together: a message that the owner carries out (fabric_batches.cc); updates of
//                          elements of any type always do so
//   sends, immediates      messages in chunks of 16 KiB into receives that are always posted. The receives of queue
//                          pairs are kept here; a chunk is acknowledged when it was put into one, or refused. A brief
//                          message is acknowledged by the next one that goes back, or a little later
//   keys                   the program has random handles of 32 bits. The real key, of 63 bits, and what it allows are
//                          asked of the owner once for each queue pair; what is not allowed is then refused here, where
//                          it breaks no connection
//
// Order. A queue pair hands its requests over in the order of posting, and completes them in that order. The engine
// keeps the order of messages, and some engines that of writes (`ordered`). What else must not overtake waits here:
// `mustWait` in fabric_requests.cc has the rules.
//
// Threads. Everything below is under one lock, `Engine::mutex`, which also guards every call into libfabric, except
// the atomics that say so. The threads are those that use the verbs (the JavaScript thread, helpers), and one of the
// engine's own, which makes progress when nobody polls (fabric_progress.cc). A method that has no lock of its own is
// called with it.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fabric_library.h"
#include "fabric_objects.h"
#include "fabric_wire.h"
#include "verbs_library.h"

namespace onesided::fabric {

class Engine {
 public:
  // `device` is "provider" or "provider|address". nullptr: `why` says why not.
  static std::unique_ptr<Engine> open(const std::string& device, std::string* why);
  ~Engine();

  static Engine& of(ibv_context* context);

  // fabric_endpoint.cc
  bool begin(const std::string& device, std::string* why);
  bool beginThread();
  bool agreesWithProcessor();

  // fabric_descriptors.cc
  bool findDescriptors(int ofQueue);

  // fabric_progress.cc
  int progress(bool byThread = false);
  void run();
  void kick();
  void end();

  // fabric_messages.cc
  void control(Peer& peer, Header header, const void* data = nullptr, size_t bytes = 0);
  void answer(Peer& peer, const Header& header, const void* data = nullptr, size_t bytes = 0);
  bool message(Peer& peer, Header header, const void* data, size_t bytes);
  void arrive(const unsigned char* data, size_t bytes, fi_addr_t from);
  void drain(Peer& peer);
  void owe(Qp& qp, Ack when);
  void carryAccepted(Qp& qp, Header& header) const;
  Qp* carryOther(const Peer& peer, Header& header, Acceptance& also) const;
  void wasCarried(Qp& qp);
  void acknowledge();
  void acknowledgeInTime(bool byThread);

  // fabric_requests.cc
  int post(Qp& qp, const ibv_send_wr& wr);
  void pump(Qp& qp);
  void retire(Qp& qp);
  void fail(Qp& qp);
  void accepted(Qp& qp, uint32_t number);
  void askAccepted(Qp& qp);
  void refused(Qp& qp, const Header& header, const unsigned char* data, size_t bytes);
  void accessed(Request* request, int error);
  void release(Request* request);

  // fabric_batches.cc
  bool hold(Qp& qp);
  void releaseHeld();
  int batch(Qp& qp);
  bool carryOut(Qp& qp, const Header& header, const unsigned char* data, size_t bytes);
  void takeResults(Qp& qp, uint32_t number, const unsigned char* data, size_t bytes);
  bool isSmall(const Request& request) const;
  bool isNotice(const Qp& qp, const Request& request) const;
  bool mayUpdate(const Request& request) const;

  // fabric_receives.cc
  void deliver(Qp& qp, const Header& header, fi_addr_t from, const unsigned char* data, size_t bytes);
  void takePending(Qp& qp);
  void feed(Srq& srq);
  void flushReceives(Qp& qp);
  void expire();
  bool take(Qp& qp, const Header& header, fi_addr_t from, const unsigned char* data, size_t bytes);
  bool accept(Qp& qp, const Header& header, const unsigned char* data, size_t bytes);
  bool takeReceive(Qp& qp);
  bool takeTogether(Qp& qp, const Header& header, const unsigned char* data, size_t bytes);
  void refuseChunk(Qp& qp, const Header& header);
  void endReceive(Qp& qp, const Header& header, ibv_wc_status status);
  void refuse(Qp& qp, const Header& header, ibv_wc_status status, uint32_t done = 0, const void* results = nullptr,
              size_t bytes = 0);

  // fabric_regions.cc
  Mr* localRegion(const ibv_pd* pd, const ibv_sge& entry, bool written) const;
  ibv_mr* registerMemory(Pd* pd, void* address, size_t length, int access);
  int deregister(Mr* mr, std::unique_lock<std::mutex>& lock);
  void takeAway(const Mr* mr, bool lent);
  void lend(const Request& request);
  void returned(const Request& request);

  // fabric_keys.cc
  const RemoteRegion* region(Qp& qp, uint32_t rkey);
  int refusal(const Request& request, const RemoteRegion& region) const;
  int lockRefusal(const Request& request, const RemoteRegion& region) const;
  void answerKey(Qp& qp, const Header& header);
  void answerNoKey(const Header& header, fi_addr_t from);
  void takeKey(Qp& qp, const Header& header, const unsigned char* data, size_t bytes);
  void takeForgotten(uint32_t number, fi_addr_t from);
  void withdraw(Mr& mr, std::unique_lock<std::mutex>& lock);
  void withdraw(Qp& qp, std::unique_lock<std::mutex>* lock);

  // fabric_peers.cc
  Peer* peerNamed(const void* name, size_t bytes, int* number);
  int addPeer(const void* name, size_t bytes, uint64_t tag);
  Peer* addGuest(const void* name, size_t bytes, uint64_t tag);
  Peer* peerAt(fi_addr_t address);
  void heard(Peer& peer);
  void lost(Peer& peer);
  void look();
  void pong(const Header& header, fi_addr_t from, const unsigned char* data, size_t bytes);
  void takePong(Qp& qp, const Header& header);

  // fabric_sockets.cc
  enum class Sockets { kBefore, kOpened, kLater };
  // Of a socket: what its host had acknowledged, since when no more, and bytes of a packet.
  struct Unacknowledged {
    uint64_t acknowledged = 0;
    double since = 0;
    std::string host;
    uint32_t packet = 0;
  };
  void markSockets(Sockets when);
  void lookForBlocked(bool waits, double time);
  bool wasBlocked(const Peer& peer);
  void blocked(const Unacknowledged& packets, double time);

  void complete(ibv_cq* cq, const ibv_wc& wc, bool solicited);
  void raise(const ibv_async_event& event);
  Qp* queuePair(uint32_t number) {
    const auto found = qps.find(number);
    return found == qps.end() ? nullptr : found->second;
  }

  const Library* library = nullptr;
  std::mutex mutex;
  fi_info* info = nullptr;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_av* av = nullptr;
  fid_cq* cq = nullptr;
  fid_ep* ep = nullptr;
  // One of them can be read when something comes; none if `mustLook`.
  std::vector<int> descriptors;
  int wake = -1;
  // Where asynchronous events are written and read.
  int eventReader = -1;
  int eventWriter = -1;
  Traits traits;
  std::string provider;
  // Its atomics and the processor's lose nothing of each other.
  bool agrees = false;
  // The endpoint's, in the provider's own format.
  std::string name;
  uint64_t tag = 0;
  size_t injectable = 0;

  // Peers stay as long as the engine: the engine knows them by address.
  std::vector<std::unique_ptr<Peer>> peers;
  std::unordered_map<std::string, int> peersByName;
  // So many of them are not named by the program.
  int guests = 0;
  std::unordered_map<fi_addr_t, Peer*> peersByAddress;
  std::unordered_map<uint32_t, Qp*> qps;
  std::unordered_map<uint32_t, Mr*> mrs;
  std::vector<std::unique_ptr<Landing>> landings;
  std::vector<std::unique_ptr<Request>> spare;
  // Queue pairs with requests that wait, with acknowledgements to send, with messages that may expire; peers with a
  // backlog.
  std::vector<Qp*> stalled;
  std::vector<Qp*> held;
  std::vector<Qp*> acks;
  // So many of these have one to send. One of them must not wait; until when the others may.
  uint32_t acksDue = 0;
  bool ackNow = false;
  double ackBy = 0;
  std::vector<Qp*> limited;
  std::vector<Peer*> backlogged;
  uint32_t numbers = 0;
  // What the engine has that will come back.
  uint32_t outstanding = 0;
  // Who was told to forget a key and has not answered, by a random number that only it was told; and how many others
  // the call that waits for it still waits for.
  struct Owed {
    Peer* peer;
    size_t* left;
  };
  std::unordered_map<uint32_t, Owed> owed;
  std::unordered_set<int> foreign;
  bool socketsDue = false;
  double looked = 0;
  std::unordered_map<int, Unacknowledged> unacknowledged;
  double lookedForBlocked = 0;
  // Why a peer is not reached, if that is known.
  std::string trouble;
  // Any thread, without the lock: when somebody last polled, and since when again and again; nobody will until a
  // completion wakes them; the end.
  std::atomic<double> polled{0};
  std::atomic<double> pollingSince{0};
  std::atomic<bool> asleep{false};
  std::atomic<bool> stopping{false};
  // The thread sleeps until it is woken, and was not. It says so under the lock.
  std::atomic<bool> deep{false};
  std::thread thread;
};

struct Context : ibv_context {
  std::unique_ptr<Engine> engine;
};

inline Engine& Engine::of(ibv_context* context) { return *static_cast<Context*>(context)->engine; }

// Copies a part of what a request sends; and what it has brought to where it wants it.
void gather(const Request& r, size_t skip, size_t bytes, unsigned char* to);
void giveResult(const Request& r, const void* result, size_t bytes);
bool isAtomic(ibv_wr_opcode opcode);

// An update that the owner carries out under a lock of its memory, if nobody has that (fabric_batches.cc). It has no
// opcode among those of libibverbs. Its data is a word, which says then whether it was carried out, and the elements.
constexpr ibv_wr_opcode kUpdate = IBV_WR_DRIVER1;
// Of its immediate data; the fourth byte is a number (`Update::round`).
inline int updateOp(uint32_t update) { return static_cast<int>(update & 0xff); }
inline int updateType(uint32_t update) { return static_cast<int>(update >> 8 & 0xff); }
inline bool updateFetches(uint32_t update) { return (update >> 16 & 1) != 0; }
// In place of an operation: the data are an element to store, and one to compare with.
constexpr int kSwapElement = 255;

// Random bits of the system.
void randomBytes(void* to, size_t bytes);

// The table for RdmaContext, or nullptr and why not.
const VerbsLibrary* fabricVerbs(const char** reason);

}  // namespace onesided::fabric
