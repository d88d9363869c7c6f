// Who makes progress.
//
// libfabric does nothing by itself: what others want of this process, too, happens in a call of its own. Whoever polls
// makes it. When nobody has polled for half a millisecond, or somebody is about to sleep, a thread does; it sleeps
// until the engine has something, and then looks for more for a while (`Lingering`). While the program polls, that
// thread stands back, so that no packet wakes it beside the processor that is looking already: a put would take ten
// times as long. So a target that begins to compute is served after 1.5 ms at the latest, and then whenever something
// comes.
#if __has_include(<infiniband/verbs.h>) && __has_include(<rdma/fabric.h>)

#include <poll.h>
#include <sched.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "fabric_engine.h"
#include "threads.h"

namespace onesided::fabric {
namespace {

// Milliseconds: how long the thread stands back at a time, and sleeps at most, so that requests that get no answer are
// looked after.
constexpr int kBack = 1;
constexpr int kSleep = 250;
// How long the thread looks for more before it sleeps, since something came: waking it takes longer than what it does.
// What others write and read here comes without a completion. So it does not see whether more comes while it looks: if
// it is woken soon after it has fallen asleep, it looks for longer the next time.
constexpr double kLinger = 0.0001;
constexpr double kLongestLinger = 0.0016;
// Where others want its processor, that makes it wait when something comes. It knows by the time between two looks, and
// does not linger then for a while, which is longer each time that it is so again before it has lingered for `kWell`.
// (On a machine with nothing else to do, threads of Node and of the kernel take it some 20 to 40 times a second, for
// half a millisecond.)
constexpr double kTaken = 0.0003;
constexpr double kShortPause = 0.001;
constexpr double kLongPause = 0.05;
constexpr double kWell = 0.01;
// Between two looks at an engine that cannot wake anybody.
constexpr long kLookNanoseconds = 100'000;
constexpr int kBatch = 32;
constexpr int kBatches = 8;

void repost(Engine& e, Landing* landing) {
  // It has room for as many as there are.
  fi_recv(e.ep, landing->data, sizeof landing->data, nullptr, FI_ADDR_UNSPEC, &landing->context);
}

// Something that the engine gives back.
void takeBack(Engine& e, Operation* operation, int error) {
  if (operation->type == Operation::Type::kProbe) {
    static_cast<Probe*>(operation)->error = error;
    return;
  }
  if (operation->type == Operation::Type::kRequest) {
    auto* request = static_cast<Request*>(operation);
    if (error == 0 && request->qp != nullptr && !request->qp->peer->connected) e.heard(*request->qp->peer);
    e.accessed(request, error);
    return;
  }
  auto* message = static_cast<Message*>(operation);
  e.outstanding--;
  message->peer->held--;
  if (error != 0) e.lost(*message->peer);
  else if (!message->peer->connected) e.heard(*message->peer);
  std::free(message);
}

// An error of the completion queue. What was refused at the target may have several, some of nothing.
void takeError(Engine& e) {
  // Newer versions write more than this one's headers say.
  union {
    fi_cq_err_entry entry;
    unsigned char room[512];
  } error;
  std::memset(&error, 0, sizeof error);
  if (fi_cq_readerr(e.cq, &error.entry, 0) < 0) return;
  auto* operation = static_cast<Operation*>(error.entry.op_context);
  if (operation == nullptr) return;
  if (operation->type == Operation::Type::kLanding) repost(e, static_cast<Landing*>(operation));
  else takeBack(e, operation, error.entry.err != 0 ? error.entry.err : FI_EIO);
}

// Whether the thread looks once more in place of sleeping.
class Lingering {
 public:
  void came(double time) { last_ = time; }
  // By a packet, after a sleep of so many seconds.
  void woken(double time, double slept) {
    came(time);
    span_ = slept < kLongestLinger ? std::min(2 * span_, kLongestLinger) : kLinger;
  }
  // It does something else before it looks again.
  void end() { on_ = false; }
  // At each look.
  bool now(double time) {
    const double since = time - looked_;
    looked_ = time;
    if (on_ && since > kTaken) {
      pause_ = well_ > kWell ? kShortPause : std::min(2 * pause_, kLongPause);
      not_before_ = time + pause_;
      well_ = 0;
    } else if (on_) {
      well_ += since;
    }
    on_ = time - last_ < span_ && time >= not_before_;
    return on_;
  }

 private:
  double last_ = 0;
  double looked_ = 0;
  double not_before_ = 0;
  double pause_ = kShortPause;
  // How long it has lingered since its processor was last taken.
  double well_ = 0;
  double span_ = kLinger;
  bool on_ = false;
};

void clear(int descriptor) {
  uint64_t count = 0;
  (void)!read(descriptor, &count, sizeof count);
}

}  // namespace

// Takes what has come, and hands over what can leave. How many completions there were.
int Engine::progress(bool byThread) {
  int total = 0;
  if (!held.empty()) releaseHeld();
  for (int batch = 0; batch < kBatches; batch++) {
    fi_cq_tagged_entry entries[kBatch];
    fi_addr_t sources[kBatch];
    const ssize_t got = fi_cq_readfrom(cq, entries, kBatch, sources);
    if (got == -FI_EAVAIL) {
      takeError(*this);
      continue;
    }
    if (got <= 0) break;
    for (ssize_t i = 0; i < got; i++) {
      auto* operation = static_cast<Operation*>(entries[i].op_context);
      if (operation == nullptr) continue;
      if (operation->type == Operation::Type::kLanding) {
        auto* landing = static_cast<Landing*>(operation);
        arrive(landing->data, entries[i].len, sources[i]);
        repost(*this, landing);
      } else {
        takeBack(*this, operation, 0);
      }
    }
    total += static_cast<int>(got);
    if (got < kBatch) break;
  }
  for (size_t i = 0; i < backlogged.size();) {
    Peer* peer = backlogged[i];
    drain(*peer);
    peer->backlogged = !peer->backlog.empty();
    if (peer->backlogged) {
      i++;
    } else {
      backlogged[i] = backlogged.back();
      backlogged.pop_back();
    }
  }
  if (!stalled.empty()) {
    std::vector<Qp*> again;
    again.swap(stalled);
    for (Qp* qp : again) qp->stalled = false;
    for (Qp* qp : again) pump(*qp);
  }
  acknowledgeInTime(byThread);
  expire();
  look();
  if (socketsDue) markSockets(Sockets::kLater);
  return total;
}

void Engine::kick() {
  const uint64_t one = 1;
  (void)!write(wake, &one, sizeof one);
}

// The thread. It reads `polled` and `asleep`, which others write without the lock: it may see them late, and then looks
// once more, or stands back for a millisecond, and who goes to sleep kicks it behind writing `asleep`, which is written
// by one that polls and one that sleeps at the same time in any order: the next poll, or half a millisecond, decides.
void Engine::run() {
  prctl(PR_SET_NAME, "onesided-fabric");
  std::vector<pollfd> sources(1, {wake, POLLIN, 0});
  for (const int fd : descriptors) sources.push_back({fd, POLLIN, 0});
  Lingering lingering;
  while (!stopping.load()) {
    if (!asleep.load() && now() - polled.load() < kRecently) {
      lingering.end();
      if (poll(sources.data(), 1, kBack) > 0) clear(wake);
      continue;
    }
    bool quiet = true;
    bool lingers = false;
    bool soon;
    {
      const std::lock_guard<std::mutex> guard(mutex);
      // The program does something else than to poll: what is held would have gone on meanwhile.
      for (Qp* qp : held) qp->burst = 0;
      const double time = now();
      if (progress(true) > 0) lingering.came(time);
      lingers = !traits.mustLook && lingering.now(time);
      soon = !backlogged.empty() || !limited.empty();
      for (const Qp* qp : stalled) soon = soon || qp->peer->refusedSince != 0;
      if (lingers) {
        quiet = false;
      } else if (!traits.mustLook) {
        fid* waits[] = {&cq->fid};
        quiet = fi_trywait(fabric, waits, 1) == FI_SUCCESS;
      }
      deep.store(quiet);
    }
    if (!quiet) {
      if (lingers) sched_yield();
      continue;
    }
    if (traits.mustLook) {
      const timespec time{0, kLookNanoseconds};
      if (ppoll(sources.data(), 1, &time, nullptr) > 0) clear(wake);
    } else {
      const double begin = now();
      if (poll(sources.data(), sources.size(), soon ? 1 : kSleep) > 0) {
        if (sources[0].revents != 0) clear(wake);
        const double time = now();
        const auto came = [](const pollfd& source) { return source.revents != 0; };
        if (std::any_of(sources.begin() + 1, sources.end(), came)) lingering.woken(time, time - begin);
      }
    }
    deep.store(false);
  }
}

bool Engine::beginThread() {
  return startThread(&thread, [this] { run(); }) == 0;
}

// Ends the thread, and gives what was to be said a moment to leave.
void Engine::end() {
  stopping.store(true);
  if (wake >= 0) kick();
  if (thread.joinable()) thread.join();
  if (ep == nullptr) return;
  const std::lock_guard<std::mutex> guard(mutex);
  const double begin = now();
  do progress(true);
  while ((outstanding > 0 || !backlogged.empty()) && now() - begin < 0.2);
}

}  // namespace onesided::fabric

#endif
