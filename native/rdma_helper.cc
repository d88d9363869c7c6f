// See rdma_helper.h.
#if __has_include(<infiniband/verbs.h>)

#include "rdma_helper.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "arguments.h"
#include "rdma_context.h"
#include "threads.h"

namespace onesided {
namespace {

// A request, as src/verbs/helper.ts writes it; the entries of its messages follow, one message after the other.
struct Request {
  uint32_t what;
  uint32_t messages;
  uint32_t counts[Helper::kGroup];
};
static_assert(sizeof(Request) == 40, "the header of a request");
struct Entry {
  double offset;
  double bytes;
};
enum What : uint32_t { kPut = 1, kGet = 2 };

// What the device is told of a request: the lane, what it is, and which slot, or how many messages.
enum Kind : uint32_t { kAsked, kAnswered, kReceived, kSent };
uint64_t idOf(uint32_t lane, Kind kind, uint32_t number) {
  return (static_cast<uint64_t>(lane) << 32) | (static_cast<uint64_t>(kind) << 16) | number;
}

}  // namespace

Helper::Helper(const VerbsLibrary* verbs, ibv_context* context, ibv_pd* pd, uint64_t part, uint64_t bytes,
               uint32_t lkey, uint32_t entries)
    : verbs_(verbs),
      context_(context),
      pd_(pd),
      part_(part),
      bytes_(bytes),
      lkey_(lkey),
      entries_(entries),
      slotBytes_(sizeof(Request) + kGroup * entries * sizeof(Entry)) {}

Helper::~Helper() {
  stop();
  release();
}

int Helper::make(uint32_t lanes) {
  channel_ = verbs_->create_comp_channel(context_);
  if (channel_ == nullptr) return errno;
  fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  wake_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_ < 0) return errno;
  // Requests and answers, and messages each way: completions of one round are fetched before the next is asked for.
  cq_ = verbs_->create_cq(context_, static_cast<int>(lanes * 2 * (kRequests + kMessages)), nullptr, channel_, 0);
  if (cq_ == nullptr) return errno;
  const size_t bytes = static_cast<size_t>(lanes) * kRequests * slotBytes_;
  memory_.reset(new (std::nothrow) unsigned char[bytes]);
  if (memory_ == nullptr) return ENOMEM;
  mr_ = verbs_->reg_mr(pd_, memory_.get(), bytes, IBV_ACCESS_LOCAL_WRITE);
  if (mr_ == nullptr) return errno;
  lanes_.reserve(lanes);
  list_.resize(static_cast<size_t>(kGroup) * entries_);
  return 0;
}

int Helper::add(ibv_qp* control, ibv_qp* data) {
  lanes_.emplace_back();
  lanes_.back().control = control;
  lanes_.back().data = data;
  for (uint32_t slot = 0; slot < kRequests; slot++) {
    const int error = postReceive(static_cast<uint32_t>(lanes_.size() - 1), slot);
    if (error != 0) return error;
  }
  return 0;
}

int Helper::start() {
  if (runs() || stopped_) return EINVAL;
  return startThread(&thread_, [this] { run(); });
}

void Helper::stop() {
  stopped_ = true;
  if (!runs()) return;
  const uint64_t one = 1;
  (void)!write(wake_, &one, sizeof one);
  thread_.join();
}

int Helper::release() {
  if (cq_ != nullptr) {
    const int error = verbs_->destroy_cq(cq_);
    if (error != 0) return error;
  }
  if (mr_ != nullptr) verbs_->dereg_mr(mr_);
  if (channel_ != nullptr) verbs_->destroy_comp_channel(channel_);
  if (wake_ >= 0) close(wake_);
  cq_ = nullptr;
  mr_ = nullptr;
  channel_ = nullptr;
  wake_ = -1;
  return 0;
}

// A completion that comes before the queue is asked for a notification rings no bell, but is found by the look behind
// the question; one that comes after it makes the channel readable. So none is missed.
void Helper::run() {
  prctl(PR_SET_NAME, "onesided-helper");
  for (;;) {
    if (ibv_req_notify_cq(cq_, 0) != 0) return;
    drain();
    if (verbs_->about_to_sleep != nullptr) verbs_->about_to_sleep(context_);
    pollfd fds[2] = {{channel_->fd, POLLIN, 0}, {wake_, POLLIN, 0}};
    if (poll(fds, 2, -1) < 0 && errno != EINTR) return;
    if (fds[1].revents != 0) return;
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    while (verbs_->get_cq_event(channel_, &cq, &context) == 0) verbs_->ack_cq_events(cq, 1);
  }
}

void Helper::drain() {
  ibv_wc wc[16];
  for (;;) {
    const int n = ibv_poll_cq(cq_, 16, wc);
    if (n <= 0) return;
    for (int i = 0; i < n; i++) complete(wc[i]);
  }
}

void Helper::complete(const ibv_wc& wc) {
  const auto at = static_cast<uint32_t>(wc.wr_id >> 32);
  const auto kind = static_cast<Kind>((wc.wr_id >> 16) & 0xffff);
  const auto number = static_cast<uint32_t>(wc.wr_id & 0xffff);
  if (at >= lanes_.size() || lanes_[at].dead) return;
  Lane& lane = lanes_[at];
  // In error: the other rank is gone, or its connection, and nobody waits for what it has asked.
  bool good = wc.status == IBV_WC_SUCCESS;
  if (good && kind == kAsked) {
    // A rank that asks for more before it has got anything would make this list grow without bound.
    good = number < kRequests && wc.byte_len <= slotBytes_ && lane.requests.size() < kRequests;
    if (good) {
      const unsigned char* from = memory_.get() + (static_cast<size_t>(at) * kRequests + number) * slotBytes_;
      lane.requests.emplace_back(from, from + wc.byte_len);
      good = postReceive(at, number) == 0;
    }
  } else if (good && kind == kSent) {
    good = number <= lane.sending;
    if (good) lane.sending -= number;
  }
  if (good) advance(at);
  else refuse(lane);
}

void Helper::advance(uint32_t at) {
  Lane& lane = lanes_[at];
  while (!lane.dead && !lane.requests.empty() && serve(at, lane.requests.front())) lane.requests.pop_front();
}

// Carries out a request. Gives false if it has to wait for room.
bool Helper::serve(uint32_t at, const std::vector<unsigned char>& bytes) {
  Lane& lane = lanes_[at];
  Request request;
  if (bytes.size() < sizeof request) {
    refuse(lane);
    return false;
  }
  std::memcpy(&request, bytes.data(), sizeof request);
  size_t total = 0;
  bool good = (request.what == kPut || request.what == kGet) && request.messages >= 1 && request.messages <= kGroup;
  for (uint32_t m = 0; good && m < request.messages; m++) {
    good = request.counts[m] >= 1 && request.counts[m] <= entries_;
    total += request.counts[m];
  }
  if (!good || bytes.size() != sizeof request + total * sizeof(Entry)) {
    refuse(lane);
    return false;
  }
  for (size_t i = 0; i < total; i++) {
    Entry entry;
    std::memcpy(&entry, bytes.data() + sizeof request + i * sizeof entry, sizeof entry);
    if (!whole(entry.offset, static_cast<double>(bytes_)) || !whole(entry.bytes, UINT32_MAX) ||
        entry.bytes > static_cast<double>(bytes_) - entry.offset) {
      refuse(lane);
      return false;
    }
    list_[i] = {part_ + static_cast<uint64_t>(entry.offset), static_cast<uint32_t>(entry.bytes), lkey_};
  }
  ibv_sge* next = list_.data();
  int error;
  if (request.what == kPut) {
    ibv_recv_wr wrs[kGroup];
    for (uint32_t m = 0; m < request.messages; m++, next += request.counts[m - 1]) {
      wrs[m] = {idOf(at, kReceived, 1), m + 1 < request.messages ? &wrs[m + 1] : nullptr, next,
                static_cast<int>(request.counts[m])};
    }
    ibv_recv_wr* bad = nullptr;
    error = ibv_post_recv(lane.data, wrs, &bad);
    if (error == 0) {
      ibv_send_wr ready{};
      ready.wr_id = idOf(at, kAnswered, 1);
      ready.opcode = IBV_WR_SEND;
      ready.send_flags = IBV_SEND_SIGNALED;
      ibv_send_wr* unsent = nullptr;
      error = ibv_post_send(lane.control, &ready, &unsent);
    }
  } else {
    if (lane.sending + request.messages > kMessages) return false;
    ibv_send_wr wrs[kGroup];
    std::memset(wrs, 0, sizeof wrs);
    for (uint32_t m = 0; m < request.messages; m++, next += request.counts[m - 1]) {
      wrs[m].wr_id = idOf(at, kSent, request.messages);
      wrs[m].next = m + 1 < request.messages ? &wrs[m + 1] : nullptr;
      wrs[m].opcode = IBV_WR_SEND;
      wrs[m].sg_list = next;
      wrs[m].num_sge = static_cast<int>(request.counts[m]);
    }
    wrs[request.messages - 1].send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    error = ibv_post_send(lane.data, wrs, &bad);
    lane.sending += request.messages;
  }
  if (error != 0) refuse(lane);
  return error == 0;
}

int Helper::postReceive(uint32_t lane, uint32_t slot) {
  ibv_sge place{
      reinterpret_cast<uint64_t>(memory_.get()) + (static_cast<size_t>(lane) * kRequests + slot) * slotBytes_,
      slotBytes_, mr_->lkey};
  ibv_recv_wr wr{idOf(lane, kAsked, slot), nullptr, &place, 1};
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(lanes_[lane].control, &wr, &bad);
}

// Serves a lane no more. Its other end finds its connections broken, instead of waiting.
void Helper::refuse(Lane& lane) {
  if (lane.dead) return;
  lane.dead = true;
  lane.requests.clear();
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  for (ibv_qp* qp : {lane.control, lane.data}) verbs_->modify_qp(qp, &attr, IBV_QP_STATE);
}

// ---- what JavaScript calls ------------------------------------------------------------------------------------------

// createHelper(pd, address, bytes, lkey, entries, lanes): [helper, completion queue, its capacity]
Napi::Value RdmaContext::createHelper(const Napi::CallbackInfo& info) {
  const char* call = "createHelper";
  if (!ready(info, call)) return {};
  ibv_pd** pd = find(pds_, info[0], call, "protection domain");
  if (pd == nullptr) return {};
  bool good = true;
  const int64_t address = integer(info, 1, call, 0, kMaxSafeInteger, &good);
  const int64_t bytes = integer(info, 2, call, 0, kMaxSafeInteger, &good);
  const int64_t lkey = integer(info, 3, call, 0, UINT32_MAX, &good);
  const int64_t entries = integer(info, 4, call, 1, 255, &good);
  const int64_t lanes = integer(info, 5, call, 1, 1 << 20, &good);
  if (!good) return {};
  auto helper = std::make_unique<Helper>(verbs_, context_, *pd, static_cast<uint64_t>(address),
                                         static_cast<uint64_t>(bytes), static_cast<uint32_t>(lkey),
                                         static_cast<uint32_t>(entries));
  const int error = helper->make(static_cast<uint32_t>(lanes));
  if (error != 0) return refuse(error, "make a helper");
  cqs_[++made_].cq = helper->cq();
  Napi::Array result = Napi::Array::New(env_, 3);
  result.Set(uint32_t{1}, static_cast<double>(made_));
  result.Set(uint32_t{2}, helper->cq()->cqe);
  helpers_[++made_] = std::move(helper);
  result.Set(uint32_t{0}, static_cast<double>(made_));
  return result;
}

// Whether a helper may use a queue pair: a connection that nobody else serves, and of which all completions come to the
// helper, which is stopped before the queue pair goes.
bool RdmaContext::isFor(const Helper& helper, const Qp& qp) {
  const auto isItsOwn = [&](int64_t number) {
    const auto cq = cqs_.find(number);
    return cq != cqs_.end() && cq->second.cq == helper.cq();
  };
  return !qp.served && !qp.datagrams && qp.qp->srq == nullptr && isItsOwn(qp.sendCq) && isItsOwn(qp.recvCq);
}

// addLane(helper, control, data): its queue pairs, which take receives and are not destroyed before `stopHelper`
Napi::Value RdmaContext::addLane(const Napi::CallbackInfo& info) {
  const char* call = "addLane";
  if (!ready(info, call)) return {};
  auto* helper = find(helpers_, info[0], call, "helper");
  Qp* control = helper == nullptr ? nullptr : find(qps_, info[1], call, "queue pair");
  Qp* data = control == nullptr ? nullptr : find(qps_, info[2], call, "queue pair");
  if (data == nullptr) return {};
  const Helper& its = **helper;
  if (control == data || !its.takesLanes() || !isFor(its, *control) || !isFor(its, *data)) {
    return refuse(EINVAL, "add a lane");
  }
  control->served = true;
  data->served = true;
  const int error = (*helper)->add(control->qp, data->qp);
  if (error != 0) return refuse(error, "add a lane");
  return {};
}

Napi::Value RdmaContext::startHelper(const Napi::CallbackInfo& info) {
  if (!ready(info, "startHelper")) return {};
  auto* helper = find(helpers_, info[0], "startHelper", "helper");
  if (helper == nullptr) return {};
  const int error = (*helper)->start();
  if (error != 0) return refuse(error, "start a thread");
  return {};
}

// stopHelper(helper): its queue pairs may be destroyed then, and are not served any more
Napi::Value RdmaContext::stopHelper(const Napi::CallbackInfo& info) {
  if (!ready(info, "stopHelper")) return {};
  auto* helper = find(helpers_, info[0], "stopHelper", "helper");
  if (helper == nullptr) return {};
  stop(helper->get());
  return {};
}

void RdmaContext::stop(Helper* helper) {
  helper->stop();
  for (auto& [key, qp] : qps_) {
    const auto cq = cqs_.find(qp.recvCq);
    if (cq != cqs_.end() && cq->second.cq == helper->cq()) qp.served = false;
  }
}

// destroyHelper(helper), after its queue pairs
Napi::Value RdmaContext::destroyHelper(const Napi::CallbackInfo& info) {
  if (!ready(info, "destroyHelper")) return {};
  auto* helper = find(helpers_, info[0], "destroyHelper", "helper");
  if (helper == nullptr) return {};
  stop(helper->get());
  const ibv_cq* cq = (*helper)->cq();
  const int error = (*helper)->release();
  if (error != 0) return refuse(error, "destroy a helper");
  for (auto it = cqs_.begin(); it != cqs_.end(); ++it) {
    if (it->second.cq != cq) continue;
    forget(it->second.calls);
    cqs_.erase(it);
    break;
  }
  helpers_.erase(info[0].As<Napi::Number>().Int64Value());
  return {};
}

}  // namespace onesided

#endif
