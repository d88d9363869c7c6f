// The engine as a VerbsLibrary: what fabric_engine.h says, as calls of libibverbs.
#if __has_include(<infiniband/verbs.h>) && __has_include(<rdma/fabric.h>)

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fabric_engine.h"
#include "fabric_queue_pairs.h"

namespace onesided::fabric {
namespace {

using Guard = std::lock_guard<std::mutex>;

// What the device says of itself. Rings are allocated in full: src/providers/rdma-core has lower limits.
constexpr int kMostQueuePairs = 65536;
constexpr int kMostRequests = 16384;
constexpr int kMostReads = 128;

ibv_device theDevice{};

// Whoever posts will poll, and whoever polls makes progress: the thread stands back.
void beAwake(Engine& e) {
  const double time = now();
  if (time - e.polled.load(std::memory_order_relaxed) > kRecently)
    e.pollingSince.store(time, std::memory_order_relaxed);
  e.polled.store(time, std::memory_order_relaxed);
  e.asleep.store(false, std::memory_order_relaxed);
}

int pollCq(ibv_cq* base, int most, ibv_wc* to) {
  auto* cq = static_cast<Cq*>(base);
  Engine& e = Engine::of(base->context);
  beAwake(e);
  const Guard guard(e.mutex);
  if (cq->completions.empty()) e.progress();
  else e.acknowledgeInTime(false);
  int n = 0;
  for (; n < most && !cq->completions.empty(); n++) {
    to[n] = cq->completions.front();
    cq->completions.pop_front();
  }
  return n;
}

int requestNotification(ibv_cq* base, int solicited) {
  const Guard guard(Engine::of(base->context).mutex);
  static_cast<Cq*>(base)->armed = solicited != 0 ? Cq::kNextSolicited : Cq::kNext;
  return 0;
}

// Nobody polls from here on: the thread takes over at once.
void aboutToSleep(ibv_context* context) {
  Engine& e = Engine::of(context);
  if (e.asleep.exchange(true)) return;
  {
    const Guard guard(e.mutex);
    if (!e.held.empty()) e.releaseHeld();
    if (e.acksDue > 0) e.acknowledge();
  }
  e.kick();
}

void acknowledge(ibv_context* context) {
  Engine& e = Engine::of(context);
  const Guard guard(e.mutex);
  if (e.acksDue > 0) e.acknowledge();
}

int postSend(ibv_qp* base, ibv_send_wr* wr, ibv_send_wr** bad) {
  auto* qp = static_cast<Qp*>(base);
  Engine& e = Engine::of(base->context);
  beAwake(e);
  const Guard guard(e.mutex);
  int error = 0;
  for (; wr != nullptr && error == 0; wr = wr->next) {
    *bad = wr;
    error = e.post(*qp, *wr);
  }
  if (qp->state == IBV_QPS_ERR) e.retire(*qp);
  else if (!e.hold(*qp)) e.pump(*qp);
  e.acknowledgeInTime(false);
  return error;
}

int addReceive(std::deque<Receive>& queue, size_t most, const ibv_recv_wr& wr) {
  if (wr.num_sge < 0 || wr.num_sge > kEntries) return EINVAL;
  if (queue.size() >= most) return ENOMEM;
  Receive receive{wr.wr_id, wr.num_sge, {}};
  std::copy(wr.sg_list, wr.sg_list + wr.num_sge, receive.list.begin());
  queue.push_back(receive);
  return 0;
}

int postReceive(ibv_qp* base, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  auto* qp = static_cast<Qp*>(base);
  Engine& e = Engine::of(base->context);
  const Guard guard(e.mutex);
  int error = 0;
  for (; wr != nullptr && error == 0; wr = wr->next) {
    *bad = wr;
    error = addReceive(qp->receives, qp->cap.max_recv_wr, *wr);
  }
  if (qp->state == IBV_QPS_ERR) e.flushReceives(*qp);
  else if (!qp->pending.empty()) e.takePending(*qp);
  e.acknowledgeInTime(false);
  return error;
}

int postShared(ibv_srq* base, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  auto* srq = static_cast<Srq*>(base);
  Engine& e = Engine::of(base->context);
  const Guard guard(e.mutex);
  int error = 0;
  for (; wr != nullptr && error == 0; wr = wr->next) {
    *bad = wr;
    error = addReceive(srq->receives, srq->most, *wr);
  }
  if (!srq->starving.empty()) e.feed(*srq);
  e.acknowledgeInTime(false);
  return error;
}

// ---- devices

ibv_context* openNamed(const char* name, std::string* why) {
  auto engine = Engine::open(name, why);
  if (engine == nullptr) return nullptr;
  engine->agrees = engine->agreesWithProcessor();
  int events[2];
  if (pipe2(events, O_CLOEXEC | O_NONBLOCK) != 0) {
    *why = std::string("the pipe of asynchronous events cannot be made: ") + std::strerror(errno);
    return nullptr;
  }
  engine->eventReader = events[0];
  engine->eventWriter = events[1];
  if (!engine->beginThread()) {
    *why = "no thread can be started";
    return nullptr;
  }
  auto* context = new Context();
  context->device = &theDevice;
  context->ops.poll_cq = pollCq;
  context->ops.req_notify_cq = requestNotification;
  context->ops.post_send = postSend;
  context->ops.post_recv = postReceive;
  context->ops.post_srq_recv = postShared;
  context->async_fd = events[0];
  context->engine = std::move(engine);
  return context;
}

int closeDevice(ibv_context* context) {
  delete static_cast<Context*>(context);
  return 0;
}

void describeEndpoint(ibv_context* context, EndpointDescription* to) {
  Engine& e = Engine::of(context);
  const Guard guard(e.mutex);
  *to = {e.provider, e.name, e.tag, e.agrees, e.traits.ordered, e.trouble};
}

int addPeer(ibv_context* context, const void* name, size_t bytes, uint64_t tag, ibv_gid* gid) {
  Engine& e = Engine::of(context);
  const Guard guard(e.mutex);
  const int number = e.addPeer(name, bytes, tag);
  if (number < 0) return EINVAL;
  *gid = gidOf(static_cast<uint32_t>(number));
  return 0;
}

int queryDevice(ibv_context*, ibv_device_attr* attr) {
  std::memset(attr, 0, sizeof *attr);
  attr->phys_port_cnt = 1;
  attr->max_qp = kMostQueuePairs;
  attr->max_qp_wr = kMostRequests;
  attr->max_sge = kEntries;
  attr->max_cq = kMostQueuePairs;
  attr->max_cqe = 1 << 22;
  attr->max_mr = 1 << 20;
  attr->max_mr_size = uint64_t{1} << 44;
  attr->max_pd = 4096;
  attr->max_srq = kMostQueuePairs;
  attr->max_srq_wr = kMostRequests;
  attr->max_srq_sge = kEntries;
  attr->max_qp_rd_atom = kMostReads;
  attr->max_qp_init_rd_atom = kMostReads;
  attr->atomic_cap = IBV_ATOMIC_HCA;
  return 0;
}

int queryPort(ibv_context*, uint8_t, _compat_ibv_port_attr* compatible) {
  auto* attr = reinterpret_cast<ibv_port_attr*>(compatible);
  std::memset(attr, 0, sizeof *attr);
  attr->state = IBV_PORT_ACTIVE;
  attr->active_mtu = IBV_MTU_4096;
  attr->link_layer = IBV_LINK_LAYER_ETHERNET;
  attr->max_msg_sz = 1U << 30;
  attr->gid_tbl_len = 1;
  return 0;
}

// The address of the host, where the provider's is one of IP.
int queryGid(ibv_context* context, uint8_t, int index, ibv_gid* gid) {
  if (index != 0) {
    errno = EINVAL;
    return -1;
  }
  std::memset(gid, 0, sizeof *gid);
  const std::string& name = Engine::of(context).name;
  sockaddr_storage address{};
  std::memcpy(&address, name.data(), std::min(name.size(), sizeof address));
  if (address.ss_family == AF_INET && name.size() == sizeof(sockaddr_in)) {
    gid->raw[10] = gid->raw[11] = 0xff;
    std::memcpy(gid->raw + 12, &reinterpret_cast<sockaddr_in&>(address).sin_addr, 4);
  } else if (address.ss_family == AF_INET6 && name.size() == sizeof(sockaddr_in6)) {
    std::memcpy(gid->raw, &reinterpret_cast<sockaddr_in6&>(address).sin6_addr, 16);
  }
  return 0;
}

// ---- domains, regions, queues

ibv_pd* allocPd(ibv_context* context) {
  auto* pd = new Pd();
  pd->context = context;
  return pd;
}

int deallocPd(ibv_pd* base) {
  auto* pd = static_cast<Pd*>(base);
  const Guard guard(Engine::of(base->context).mutex);
  if (pd->users > 0) return EBUSY;
  delete pd;
  return 0;
}

ibv_mr* regMr(ibv_pd* pd, void* address, size_t length, int access) {
  Engine& e = Engine::of(pd->context);
  const Guard guard(e.mutex);
  return e.registerMemory(static_cast<Pd*>(pd), address, length, access);
}

int deregMr(ibv_mr* mr) {
  Engine& e = Engine::of(mr->context);
  std::unique_lock<std::mutex> lock(e.mutex);
  return e.deregister(static_cast<Mr*>(mr), lock);
}

ibv_comp_channel* createChannel(ibv_context* context) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return nullptr;
  auto* channel = new Channel();
  channel->context = context;
  channel->fd = ends[0];
  channel->writer = ends[1];
  return channel;
}

int destroyChannel(ibv_comp_channel* base) {
  auto* channel = static_cast<Channel*>(base);
  close(channel->fd);
  close(channel->writer);
  delete channel;
  return 0;
}

ibv_cq* createCq(ibv_context* context, int cqe, void*, ibv_comp_channel* channel, int) {
  auto* cq = new Cq();
  cq->context = context;
  cq->channel = channel;
  cq->cqe = cqe;
  return cq;
}

int destroyCq(ibv_cq* base) {
  auto* cq = static_cast<Cq*>(base);
  const Guard guard(Engine::of(base->context).mutex);
  if (cq->users > 0) return EBUSY;
  delete cq;
  return 0;
}

// A notification may name a queue that is gone: nobody looks behind the pointer.
int getCqEvent(ibv_comp_channel* channel, ibv_cq** cq, void** context) {
  void* event;
  if (read(channel->fd, &event, sizeof event) != sizeof event) return -1;
  *cq = static_cast<ibv_cq*>(event);
  *context = nullptr;
  return 0;
}

void ackCqEvents(ibv_cq*, unsigned int) {}

ibv_srq* createSrq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  const Guard guard(Engine::of(pd->context).mutex);
  auto* srq = new Srq();
  srq->context = pd->context;
  srq->pd = pd;
  srq->most = attr->attr.max_wr;
  static_cast<Pd*>(pd)->users++;
  return srq;
}

int modifySrq(ibv_srq* srq, ibv_srq_attr* attr, int) {
  const Guard guard(Engine::of(srq->context).mutex);
  static_cast<Srq*>(srq)->limit = attr->srq_limit;
  return 0;
}

int destroySrq(ibv_srq* base) {
  auto* srq = static_cast<Srq*>(base);
  const Guard guard(Engine::of(base->context).mutex);
  if (srq->users > 0) return EBUSY;
  static_cast<Pd*>(srq->pd)->users--;
  delete srq;
  return 0;
}

// ---- datagrams and multicast groups: none (max_ah is 0)

ibv_ah* createAh(ibv_pd*, ibv_ah_attr*) {
  errno = EOPNOTSUPP;
  return nullptr;
}
int destroyAh(ibv_ah*) { return EOPNOTSUPP; }
int multicast(ibv_qp*, const ibv_gid*, uint16_t) { return EOPNOTSUPP; }

// ---- events

int getAsyncEvent(ibv_context* context, ibv_async_event* event) {
  return read(context->async_fd, event, sizeof *event) == sizeof *event ? 0 : -1;
}
void ackAsyncEvent(ibv_async_event*) {}

// Devices are opened by names that the program chooses, and are not listed here.
ibv_device** listDevices(int* count) {
  static ibv_device* none[] = {nullptr};
  *count = 0;
  return none;
}
void freeDevices(ibv_device**) {}
const char* deviceName(ibv_device* device) { return device->name; }
__be64 deviceGuid(ibv_device*) { return 0; }

VerbsLibrary makeTable() {
  VerbsLibrary l{};
  l.get_device_list = listDevices;
  l.free_device_list = freeDevices;
  l.get_device_name = deviceName;
  l.get_device_guid = deviceGuid;
  l.open_named = openNamed;
  l.describe_endpoint = describeEndpoint;
  l.add_peer = addPeer;
  l.about_to_sleep = aboutToSleep;
  l.acknowledge = acknowledge;
  l.close_device = closeDevice;
  l.query_device = queryDevice;
  l.query_port = queryPort;
  l.query_gid = queryGid;
  l.alloc_pd = allocPd;
  l.dealloc_pd = deallocPd;
  l.reg_mr = regMr;
  l.dereg_mr = deregMr;
  l.create_comp_channel = createChannel;
  l.destroy_comp_channel = destroyChannel;
  l.create_cq = createCq;
  l.destroy_cq = destroyCq;
  l.get_cq_event = getCqEvent;
  l.ack_cq_events = ackCqEvents;
  l.create_srq = createSrq;
  l.modify_srq = modifySrq;
  l.destroy_srq = destroySrq;
  l.create_qp = createQp;
  l.modify_qp = modifyQp;
  l.query_qp = queryQp;
  l.destroy_qp = destroyQp;
  l.create_ah = createAh;
  l.destroy_ah = destroyAh;
  l.attach_mcast = multicast;
  l.detach_mcast = multicast;
  l.get_async_event = getAsyncEvent;
  l.ack_async_event = ackAsyncEvent;
  return l;
}

}  // namespace

void Engine::complete(ibv_cq* base, const ibv_wc& wc, bool solicited) {
  auto* to = static_cast<Cq*>(base);
  to->completions.push_back(wc);
  const bool wanted =
      to->armed == Cq::kNext || (to->armed == Cq::kNextSolicited && (solicited || wc.status != IBV_WC_SUCCESS));
  if (!wanted || to->channel == nullptr) return;
  to->armed = Cq::kQuiet;
  void* event = to;
  // There is room: a queue is in the pipe once, until it is armed again.
  (void)!write(static_cast<Channel*>(to->channel)->writer, &event, sizeof event);
}

void Engine::raise(const ibv_async_event& event) { (void)!write(eventWriter, &event, sizeof event); }

const VerbsLibrary* fabricVerbs(const char** reason) {
  if (Library::open(reason) == nullptr) return nullptr;
  static const VerbsLibrary table = makeTable();
  return &table;
}

}  // namespace onesided::fabric

#endif
