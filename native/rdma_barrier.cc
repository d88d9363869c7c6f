// See rdma_barrier.h.
#if __has_include(<infiniband/verbs.h>)

#include "rdma_barrier.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>

#include "arguments.h"
#include "rdma_context.h"
#include "threads.h"

namespace onesided {
namespace {

struct Packet {
  // Of the group, at the member that it is for.
  uint32_t key;
  // A rank of the group.
  uint32_t source;
  uint32_t tag;
  uint32_t number;
  uint32_t kind;
  uint32_t reserved;
};
static_assert(sizeof(Packet) == 24, "a packet of a barrier");
enum Kind : uint32_t { kMessage, kAgain, kNack };

// What a device puts before a datagram that it has received.
constexpr uint32_t kHeader = 40;
constexpr uint32_t kPlace = kHeader + sizeof(Packet);
// Nacks come at most so many times `nackAfter` apart.
constexpr int64_t kMostBackOff = 8;

int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

uint32_t randomNumber() {
  uint32_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) return 0;
  return number;
}

// Of a call that has given nothing.
int reason() { return errno == 0 ? ENOMEM : errno; }

// Whether barrier `a` comes after `b`: numbers wrap.
bool isAfter(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) > 0; }

}  // namespace

Barriers::Barriers(const VerbsLibrary* verbs, ibv_context* context, uint8_t port, uint8_t gidIndex, uint32_t most,
                   uint32_t* news, int wake, double loss, uint64_t seed)
    : verbs_(verbs),
      context_(context),
      port_(port),
      gidIndex_(gidIndex),
      most_(most),
      news_(news),
      wake_(wake),
      loss_(static_cast<uint64_t>(loss * 4294967296.0)),
      random_(seed * 0x9e3779b97f4a7c15 + 1) {}

Barriers::~Barriers() {
  stop();
  if (qp_ != nullptr) verbs_->destroy_qp(qp_);
  for (auto& [key, group] : groups_)
    for (const Peer& peer : group.peers)
      if (peer.ah != nullptr) retired_.push_back(peer.ah);
  destroyRetired();
  if (received_ != nullptr) verbs_->destroy_cq(received_);
  if (sent_ != nullptr) verbs_->destroy_cq(sent_);
  if (mr_ != nullptr) verbs_->dereg_mr(mr_);
  if (channel_ != nullptr) verbs_->destroy_comp_channel(channel_);
  if (pd_ != nullptr) verbs_->dealloc_pd(pd_);
  for (const int fd : {timer_, end_})
    if (fd >= 0) close(fd);
}

int Barriers::make() {
  errno = 0;
  // Those with the highest bit are not for programs.
  qkey_ = randomNumber() & 0x7fffffff;
  pd_ = verbs_->alloc_pd(context_);
  if (pd_ == nullptr) return reason();
  channel_ = verbs_->create_comp_channel(context_);
  if (channel_ == nullptr) return reason();
  fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  end_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (timer_ < 0 || end_ < 0) return reason();
  received_ = verbs_->create_cq(context_, static_cast<int>(most_), nullptr, channel_, 0);
  if (received_ == nullptr) return reason();
  sent_ = verbs_->create_cq(context_, static_cast<int>(most_), nullptr, nullptr, 0);
  if (sent_ == nullptr) return reason();
  const size_t bytes = static_cast<size_t>(most_) * (kPlace + sizeof(Packet));
  memory_.reset(new (std::nothrow) unsigned char[bytes]());
  if (memory_ == nullptr) return ENOMEM;
  mr_ = verbs_->reg_mr(pd_, memory_.get(), bytes, IBV_ACCESS_LOCAL_WRITE);
  if (mr_ == nullptr) return reason();
  ibv_qp_init_attr init{};
  init.send_cq = sent_;
  init.recv_cq = received_;
  init.qp_type = IBV_QPT_UD;
  init.cap.max_send_wr = most_;
  init.cap.max_recv_wr = most_;
  init.cap.max_send_sge = 1;
  init.cap.max_recv_sge = 1;
  init.sq_sig_all = 1;
  qp_ = verbs_->create_qp(pd_, &init);
  if (qp_ == nullptr) return reason();
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = port_;
  attr.qkey = qkey_;
  int error = verbs_->modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  for (uint32_t slot = 0; error == 0 && slot < most_; slot++) error = postReceive(slot);
  attr.qp_state = IBV_QPS_RTR;
  if (error == 0) error = verbs_->modify_qp(qp_, &attr, IBV_QP_STATE);
  attr.qp_state = IBV_QPS_RTS;
  if (error == 0) error = verbs_->modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
  return error != 0 ? error : startThread(&thread_, [this] { run(); });
}

void Barriers::stop() {
  if (!thread_.joinable()) return;
  ending_ = true;
  const uint64_t one = 1;
  (void)!write(end_, &one, sizeof one);
  thread_.join();
}

uint32_t Barriers::join(uint32_t rank, int64_t nackAfter, std::vector<Step> schedule, uint32_t* words) {
  const std::lock_guard<std::mutex> lock(mutex_);
  uint32_t key = randomNumber();
  for (int tries = 0; tries < 8 && (key == 0 || groups_.count(key) > 0); tries++) key = randomNumber();
  if (key == 0 || groups_.count(key) > 0) return 0;
  Group& group = groups_[key];
  group.rank = rank;
  group.came.resize(schedule.size());
  group.at = schedule.size();
  group.nackAfter = nackAfter;
  group.words = words;
  if (failed_) __atomic_store_n(&words[kFailed], 1, __ATOMIC_RELEASE);
  for (const Step& step : schedule) {
    const auto known = [&](const Peer& peer) { return peer.rank == step.peer; };
    if (std::any_of(group.peers.begin(), group.peers.end(), known)) continue;
    group.peers.emplace_back();
    group.peers.back().rank = step.peer;
  }
  group.schedule = std::move(schedule);
  return key;
}

int Barriers::connect(uint32_t key, uint32_t rank, const ibv_ah_attr& where, uint32_t qpNumber, uint32_t qkey,
                      uint32_t theirKey) {
  const auto peerOf = [&]() -> Peer* {
    const auto found = groups_.find(key);
    if (found == groups_.end()) return nullptr;
    for (Peer& peer : found->second.peers)
      if (peer.rank == rank) return &peer;
    return nullptr;
  };
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Peer* peer = peerOf();
    if (peer == nullptr) return ENOENT;
    if (peer->ah != nullptr) return EBUSY;
  }
  // It may ask the network, and others need not wait for that. Groups change in calls of this thread only.
  ibv_ah_attr attr = where;
  attr.grh.sgid_index = gidIndex_;
  attr.port_num = port_;
  errno = 0;
  ibv_ah* ah = verbs_->create_ah(pd_, &attr);
  if (ah == nullptr) return errno == 0 ? EHOSTUNREACH : errno;
  const std::lock_guard<std::mutex> lock(mutex_);
  Peer& peer = *peerOf();
  peer.ah = ah;
  peer.qpNumber = qpNumber;
  peer.qkey = qkey;
  peer.key = theirKey;
  return 0;
}

int Barriers::enter(uint32_t key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = groups_.find(key);
  if (found == groups_.end()) return ENOENT;
  if (failed_) return EIO;
  Group& group = found->second;
  // It would not know which messages are of which barrier.
  if (!group.isOver()) return EBUSY;
  group.number++;
  group.at = 0;
  // If it is complete, the caller finds it so.
  if (advance(group)) return 0;
  group.interval = group.nackAfter;
  group.due = now() + group.interval;
  arm(group.due);
  return 0;
}

int Barriers::leave(uint32_t key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = groups_.find(key);
  if (found == groups_.end()) return ENOENT;
  release(found->second);
  groups_.erase(found);
  return 0;
}

// Requests that are under way still need their address handles, so these stay until none is.
void Barriers::release(Group& group) {
  for (const Peer& peer : group.peers)
    if (peer.ah != nullptr) retired_.push_back(peer.ah);
  reclaim();
  if (sending_ == 0) destroyRetired();
}

void Barriers::destroyRetired() {
  for (ibv_ah* ah : retired_) verbs_->destroy_ah(ah);
  retired_.clear();
}

void Barriers::run() {
  // Linux takes 15 characters.
  prctl(PR_SET_NAME, "barrier-adapter");
  serve();
  if (!ending_) fail();
}

// A packet that comes before the queue is asked for a notification is found by the look behind the question; one that
// comes after it makes the channel readable. So none is missed.
void Barriers::serve() {
  for (;;) {
    if (ibv_req_notify_cq(received_, 0) != 0 || !drain()) return;
    pollfd fds[3] = {{channel_->fd, POLLIN, 0}, {timer_, POLLIN, 0}, {end_, POLLIN, 0}};
    if (poll(fds, 3, -1) < 0 && errno != EINTR) return;
    // Or the device is gone.
    if (fds[2].revents != 0 || (fds[0].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) return;
    if (fds[1].revents != 0) askAgain();
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    while (verbs_->get_cq_event(channel_, &cq, &context) == 0) verbs_->ack_cq_events(cq, 1);
  }
}

bool Barriers::drain() {
  ibv_wc wc[16];
  while (!ending_) {
    const int n = ibv_poll_cq(received_, 16, wc);
    if (n == 0) return true;
    if (n < 0) return false;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (int i = 0; i < n; i++)
      if (!take(wc[i])) return false;
  }
  return false;
}

bool Barriers::take(const ibv_wc& wc) {
  // Posted again, it would come back at once.
  if (wc.status == IBV_WC_WR_FLUSH_ERR) return false;
  const auto slot = static_cast<uint32_t>(wc.wr_id);
  if (slot >= most_) return true;
  Packet packet{};
  // Another one that sends too much gets nothing.
  const bool good = wc.status == IBV_WC_SUCCESS && wc.byte_len == kPlace;
  if (good) std::memcpy(&packet, memory_.get() + static_cast<size_t>(slot) * kPlace + kHeader, sizeof packet);
  if (postReceive(slot) != 0) return false;
  const auto found = good ? groups_.find(packet.key) : groups_.end();
  if (found == groups_.end()) return true;
  if (packet.kind == kNack) asked(found->second, packet.source, packet.tag, packet.number);
  else arrived(found->second, packet.source, packet.tag, packet.number);
  return true;
}

void Barriers::fail() {
  const std::lock_guard<std::mutex> lock(mutex_);
  failed_ = true;
  for (auto& [key, group] : groups_) __atomic_store_n(&group.words[kFailed], 1, __ATOMIC_RELEASE);
  tell();
}

void Barriers::arrived(Group& group, uint32_t source, uint32_t tag, uint32_t number) {
  for (size_t i = 0; i < group.schedule.size(); i++) {
    const Step& step = group.schedule[i];
    if (step.sends || step.peer != source || step.tag != tag) continue;
    // No member is further ahead than by one barrier.
    if (isAfter(number, group.number + 1)) return;
    if (!isAfter(number, group.came[i])) return count(group, kDuplicates);
    group.came[i] = number;
    if (!group.isOver() && advance(group)) tell();
    return;
  }
}

void Barriers::asked(Group& group, uint32_t source, uint32_t tag, uint32_t number) {
  for (size_t i = 0; i < group.schedule.size(); i++) {
    const Step& step = group.schedule[i];
    if (!step.sends || step.peer != source || step.tag != tag) continue;
    if (isAfter(group.number, number) || (group.number == number && i < group.at)) {
      count(group, kResent);
      send(group, source, tag, number, kAgain);
    } else {
      count(group, kFutile);
    }
    return;
  }
}

bool Barriers::advance(Group& group) {
  for (; group.at < group.schedule.size(); group.at++) {
    const Step& step = group.schedule[group.at];
    if (step.sends) {
      send(group, step.peer, step.tag, group.number, kMessage);
    } else if (isAfter(group.number, group.came[group.at])) {
      __atomic_store_n(&group.words[kAwaited], step.peer, __ATOMIC_RELAXED);
      return false;
    }
  }
  __atomic_store_n(&group.words[kAwaited], UINT32_MAX, __ATOMIC_RELAXED);
  group.due = 0;
  __atomic_store_n(&group.words[kDone], group.number, __ATOMIC_RELEASE);
  return true;
}

void Barriers::tell() {
  __atomic_add_fetch(news_, 1, __ATOMIC_SEQ_CST);
  const uint64_t one = 1;
  (void)!write(wake_, &one, sizeof one);
}

void Barriers::count(Group& group, Word what) {
  __atomic_store_n(&group.words[what], ++group.counts[what], __ATOMIC_RELAXED);
}

void Barriers::send(Group& group, uint32_t to, uint32_t tag, uint32_t number, uint32_t kind) {
  count(group, kPackets);
  if (kind == kNack) count(group, kNacks);
  const auto isIt = [to](const Peer& one) { return one.rank == to; };
  const auto peer = std::find_if(group.peers.begin(), group.peers.end(), isIt);
  if (peer->ah == nullptr || drawLoss()) return;
  if (sending_ >= most_ / 2) reclaim();
  // Its receiver will ask for it.
  if (sending_ == most_) return;
  const Packet packet{peer->key, group.rank, tag, number, kind, 0};
  unsigned char* place = memory_.get() + static_cast<size_t>(most_) * kPlace + nextSend_ * sizeof packet;
  std::memcpy(place, &packet, sizeof packet);
  ibv_sge entry{reinterpret_cast<uint64_t>(place), sizeof packet, mr_->lkey};
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  wr.sg_list = &entry;
  wr.num_sge = 1;
  wr.wr.ud.ah = peer->ah;
  wr.wr.ud.remote_qpn = peer->qpNumber;
  wr.wr.ud.remote_qkey = peer->qkey;
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(qp_, &wr, &bad) != 0) return;
  sending_++;
  nextSend_ = (nextSend_ + 1) % most_;
}

// Requests complete in their order, so the places of sends are free in theirs.
void Barriers::reclaim() {
  ibv_wc wc[16];
  for (int n = ibv_poll_cq(sent_, 16, wc); n > 0; n = ibv_poll_cq(sent_, 16, wc)) {
    sending_ -= std::min(sending_, static_cast<uint32_t>(n));
    for (int i = 0; i < n; i++) {
      if (wc[i].status == IBV_WC_SUCCESS) continue;
      // Sends stop after one that has failed, until they are allowed again.
      ibv_qp_attr attr{};
      attr.qp_state = IBV_QPS_RTS;
      verbs_->modify_qp(qp_, &attr, IBV_QP_STATE);
      break;
    }
  }
}

// The timer has rung: asks for the messages that are due.
void Barriers::askAgain() {
  uint64_t rings = 0;
  (void)!read(timer_, &rings, sizeof rings);
  const std::lock_guard<std::mutex> lock(mutex_);
  armed_ = 0;
  // Sends that have failed are found here, if nothing else is sent.
  reclaim();
  const int64_t time = now();
  for (auto& [key, group] : groups_) {
    if (group.due == 0) continue;
    if (group.due <= time) {
      const Step& step = group.schedule[group.at];
      send(group, step.peer, step.tag, group.number, kNack);
      group.interval = std::min(2 * group.interval, kMostBackOff * group.nackAfter);
      group.due = time + group.interval;
    }
    arm(group.due);
  }
}

// A timer that rings early costs a look; so a barrier that is over before its time sets none.
void Barriers::arm(int64_t due) {
  if (armed_ != 0 && armed_ <= due) return;
  armed_ = due;
  itimerspec time{};
  time.it_value.tv_sec = due / 1'000'000'000;
  time.it_value.tv_nsec = due % 1'000'000'000;
  timerfd_settime(timer_, TFD_TIMER_ABSTIME, &time, nullptr);
}

int Barriers::postReceive(uint32_t slot) {
  ibv_sge place{reinterpret_cast<uint64_t>(memory_.get()) + static_cast<size_t>(slot) * kPlace, kPlace, mr_->lkey};
  ibv_recv_wr wr{slot, nullptr, &place, 1};
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(qp_, &wr, &bad);
}

// Marsaglia's xorshift.
bool Barriers::drawLoss() {
  if (loss_ == 0) return false;
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return (random_ >> 32) < loss_;
}

// ---- what JavaScript calls ------------------------------------------------------------------------------------------

// createBarriers(news, loss, seed): [queue pair, its key]. Once a context.
Napi::Value RdmaContext::createBarriers(const Napi::CallbackInfo& info) {
  const char* call = "createBarriers";
  if (!ready(info, call)) return {};
  Bytes news;
  if (!readBytes(env_, info[0], call, "the word for news", &news)) return {};
  bool good = true;
  const double loss = info[1].IsNumber() ? info[1].As<Napi::Number>().DoubleValue() : -1;
  const int64_t seed = integer(info, 2, call, 0, UINT32_MAX, &good);
  if (!good) return {};
  if (!isShared(env_, info[0]) || !isWords(news, 1) || !(loss >= 0 && loss < 1)) {
    throwRangeError(env_, "createBarriers: it takes a shared word, and the share of packets that are lost");
    return {};
  }
  if (barriers_ != nullptr) return refuse(EBUSY, "carry out barriers");
  const uint32_t most = static_cast<uint32_t>(std::min(std::max(limits_.max_qp_wr, 1), 256));
  auto made = std::make_unique<Barriers>(verbs_, context_, port_, gidIndex_, most,
                                         reinterpret_cast<uint32_t*>(news.data), wake_, loss, seed);
  const int error = made->make();
  if (error != 0) return refuse(error, "carry out barriers");
  barriers_ = std::move(made);
  barrierNews_ = Pin(env_, info[0]);
  Napi::Array result = Napi::Array::New(env_, 2);
  result.Set(uint32_t{0}, barriers_->qpNumber());
  result.Set(uint32_t{1}, barriers_->qkey());
  return result;
}

// Whether an array is over a SharedArrayBuffer: those do not shrink, and are not given away, while a thread writes.
bool RdmaContext::isShared(napi_env env, napi_value array) {
  napi_value buffer = nullptr;
  bool is = true;
  return napi_get_typedarray_info(env, array, nullptr, nullptr, nullptr, &buffer, nullptr) == napi_ok &&
         napi_is_arraybuffer(env, buffer, &is) == napi_ok && !is;
}

bool RdmaContext::isWords(const Bytes& bytes, size_t count) {
  return bytes.type == napi_int32_array && bytes.elements >= count;
}

// joinBarrier(rank, nanoseconds, schedule, words): the group's key. The schedule is three numbers a step: whether it
// sends, to or from whom, and its tag.
Napi::Value RdmaContext::joinBarrier(const Napi::CallbackInfo& info) {
  const char* call = "joinBarrier";
  if (!ready(info, call)) return {};
  Bytes steps;
  Bytes words;
  bool good = true;
  const int64_t rank = integer(info, 0, call, 0, INT32_MAX, &good);
  const int64_t nackAfter = integer(info, 1, call, 1, kMaxSafeInteger, &good);
  if (!good || !readBytes(env_, info[2], call, "the schedule", &steps) ||
      !readBytes(env_, info[3], call, "the words", &words)) {
    return {};
  }
  if (steps.type != napi_int32_array || steps.elements % 3 != 0 || steps.elements > 3 * Barriers::kMostSteps ||
      !isShared(env_, info[3]) || !isWords(words, Barriers::kWords)) {
    throwRangeError(env_, "joinBarrier: it takes up to %d steps of three numbers, and %d shared words",
                    Barriers::kMostSteps, Barriers::kWords);
    return {};
  }
  if (barriers_ == nullptr) return refuse(EINVAL, "join a barrier");
  std::vector<Barriers::Step> schedule(steps.elements / 3);
  const auto* numbers = reinterpret_cast<const uint32_t*>(steps.data);
  for (size_t i = 0; i < schedule.size(); i++)
    schedule[i] = {numbers[3 * i] != 0, numbers[3 * i + 1], numbers[3 * i + 2]};
  const uint32_t key = barriers_->join(static_cast<uint32_t>(rank), nackAfter, std::move(schedule),
                                       reinterpret_cast<uint32_t*>(words.data));
  if (key == 0) return refuse(EAGAIN, "join a barrier");
  barrierWords_[key] = Pin(env_, info[3]);
  return number(key);
}

// connectBarrier(group, rank, gid, lid, queue pair, its key, the group's key there)
Napi::Value RdmaContext::connectBarrier(const Napi::CallbackInfo& info) {
  const char* call = "connectBarrier";
  if (!ready(info, call)) return {};
  ibv_ah_attr where{};
  if (!info[2].IsString() || !parseGid(info[2].As<Napi::String>().Utf8Value(), &where.grh.dgid)) {
    throwRangeError(env_, "connectBarrier: the GID is not a valid GID");
    return {};
  }
  bool good = true;
  const int64_t group = integer(info, 0, call, 1, UINT32_MAX, &good);
  const int64_t rank = integer(info, 1, call, 0, INT32_MAX, &good);
  where.dlid = static_cast<uint16_t>(integer(info, 3, call, 0, 65535, &good));
  const int64_t qp = integer(info, 4, call, 0, (1 << 24) - 1, &good);
  const int64_t qkey = integer(info, 5, call, 0, INT32_MAX, &good);
  const int64_t key = integer(info, 6, call, 1, UINT32_MAX, &good);
  if (!good) return {};
  where.is_global = 1;
  where.grh.hop_limit = 64;
  const int error = barriers_ == nullptr
                        ? EINVAL
                        : barriers_->connect(static_cast<uint32_t>(group), static_cast<uint32_t>(rank), where,
                                             static_cast<uint32_t>(qp), static_cast<uint32_t>(qkey),
                                             static_cast<uint32_t>(key));
  if (error != 0) return refuse(error, "connect a barrier");
  return {};
}

// enterBarrier(group)
Napi::Value RdmaContext::enterBarrier(const Napi::CallbackInfo& info) {
  if (!ready(info, "enterBarrier")) return {};
  bool good = true;
  const int64_t group = integer(info, 0, "enterBarrier", 1, UINT32_MAX, &good);
  if (!good) return {};
  const int error = barriers_ == nullptr ? EINVAL : barriers_->enter(static_cast<uint32_t>(group));
  if (error != 0) return refuse(error, "enter a barrier");
  return {};
}

// leaveBarrier(group): its words are not written any more
Napi::Value RdmaContext::leaveBarrier(const Napi::CallbackInfo& info) {
  if (!ready(info, "leaveBarrier")) return {};
  bool good = true;
  const int64_t group = integer(info, 0, "leaveBarrier", 1, UINT32_MAX, &good);
  if (!good) return {};
  const int error = barriers_ == nullptr ? EINVAL : barriers_->leave(static_cast<uint32_t>(group));
  if (error != 0) return refuse(error, "leave a barrier");
  const auto words = barrierWords_.find(static_cast<uint32_t>(group));
  words->second.drop(env_);
  barrierWords_.erase(words);
  return {};
}

void RdmaContext::endBarriers() {
  barriers_.reset();
  for (auto& [key, words] : barrierWords_) words.drop(env_);
  barrierWords_.clear();
  barrierNews_.drop(env_);
}

}  // namespace onesided

#endif
