// A libibverbs.so.1 with one device, which is only bookkeeping: what programs of hostile calls
// (test/native/programs/rdma-*.ts) need to reach all of rdma*.cc where there is no device, and the programs that drive
// the threads of helpers and of barriers (stress_helper.cc, stress_barrier.cc). Its objects are in memory of malloc's,
// so AddressSanitizer sees wrong ones; it ends the process when something is destroyed while it is in use, or not
// before its context. Messages move between queue pairs that know each other (fake_device.h); other requests complete
// at once, with an event, and move no bytes but those they send inline, which are read.
#include "fake_device.h"

#include <fcntl.h>

#include <new>

#undef ibv_query_port
#undef ibv_reg_mr

#define API extern "C" __attribute__((visibility("default")))

namespace {

using namespace fake;

Context* of(ibv_context* context) { return static_cast<Context*>(context); }

ibv_device device{};
ibv_device* devices[] = {&device, nullptr};

int pollCq(ibv_cq* from, int most, ibv_wc* wc) {
  const Guard guard(lock);
  auto* cq = static_cast<Cq*>(from);
  int n = 0;
  for (; n < most && !cq->completions.empty(); n++) {
    wc[n] = cq->completions.front();
    cq->completions.pop_front();
  }
  return n;
}

int reqNotify(ibv_cq* cq, int) {
  const Guard guard(lock);
  static_cast<Cq*>(cq)->armed = true;
  return 0;
}

// To the other end, or into the list of those that wait for a receive there.
int send(Qp& qp, const ibv_send_wr& wr, std::vector<unsigned char> bytes) {
  if (qp.sends.size() >= qp.cap.max_send_wr) return ENOMEM;
  Posted posted{wr.wr_id, {wr.sg_list, wr.sg_list + wr.num_sge}};
  posted.signaled = qp.signalAll || (wr.send_flags & IBV_SEND_SIGNALED) != 0;
  posted.isInline = (wr.send_flags & IBV_SEND_INLINE) != 0;
  posted.bytes = std::move(bytes);
  if (qp.state == IBV_QPS_ERR) {
    complete(qp, posted, false, IBV_WC_WR_FLUSH_ERR);
  } else {
    qp.sends.push_back(std::move(posted));
    deliver(qp);
  }
  return 0;
}

int postSend(ibv_qp* base, ibv_send_wr* wr, ibv_send_wr** bad) {
  const Guard guard(lock);
  auto* qp = static_cast<Qp*>(base);
  for (; wr != nullptr; wr = wr->next) {
    *bad = wr;
    if (wr->num_sge < 0 || static_cast<uint32_t>(wr->num_sge) > qp->cap.max_send_sge) return EINVAL;
    std::vector<unsigned char> bytes;
    if ((wr->send_flags & IBV_SEND_INLINE) != 0) {
      if (wr->sg_list->length > qp->cap.max_inline_data) return EINVAL;
      const auto* from = reinterpret_cast<const unsigned char*>(wr->sg_list->addr);
      bytes.assign(from, from + wr->sg_list->length);
    }
    for (int i = 0; i < wr->num_sge; i++) touched += wr->sg_list[i].lkey;
    // As a device does, which must still have it.
    if (qp->qp_type == IBV_QPT_UD) touched += wr->wr.ud.ah->handle;
    if (qp->qp_type == IBV_QPT_UD && wr->opcode == IBV_WR_SEND && qp->state == IBV_QPS_RTS) {
      Posted posted{wr->wr_id, {wr->sg_list, wr->sg_list + wr->num_sge}};
      posted.isInline = (wr->send_flags & IBV_SEND_INLINE) != 0;
      posted.bytes = bytes;
      deliver(*qp, posted, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
    }
    if (qp->peer != 0 && wr->opcode == IBV_WR_SEND) {
      const int error = send(*qp, *wr, std::move(bytes));
      if (error != 0) return error;
      continue;
    }
    if (static_cast<Cq*>(qp->send_cq)->completions.size() > 10000) return ENOMEM;
    complete(qp->send_cq, wr->wr_id, IBV_WC_RDMA_WRITE, qp->qp_num);
  }
  return 0;
}

int postReceive(ibv_qp* base, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  const Guard guard(lock);
  auto* qp = static_cast<Qp*>(base);
  for (; wr != nullptr; wr = wr->next) {
    *bad = wr;
    if (wr->num_sge < 0 || static_cast<uint32_t>(wr->num_sge) > qp->cap.max_recv_sge) return EINVAL;
    for (int i = 0; i < wr->num_sge; i++) touched += wr->sg_list[i].lkey;
    const Posted posted{wr->wr_id, {wr->sg_list, wr->sg_list + wr->num_sge}};
    if (qp->state == IBV_QPS_ERR) {
      complete(*qp, posted, true, IBV_WC_WR_FLUSH_ERR);
    } else if (qp->state != IBV_QPS_RESET) {
      if (qp->receives.size() >= qp->cap.max_recv_wr) return ENOMEM;
      qp->receives.push_back(posted);
      const auto other = queuePairs.find(qp->peer);
      if (other != queuePairs.end()) deliver(*other->second);
    } else {
      if (static_cast<Cq*>(qp->recv_cq)->completions.size() > 10000) return ENOMEM;
      complete(qp->recv_cq, wr->wr_id, IBV_WC_RECV, qp->qp_num);
    }
  }
  return 0;
}

int postShared(ibv_srq*, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  const Guard guard(lock);
  *bad = wr;
  for (int i = 0; i < wr->num_sge; i++) touched += wr->sg_list[i].lkey;
  return 0;
}

template <typename T>
T* make(ibv_context* context) {
  of(context)->objects++;
  return new T();
}

template <typename T, typename Base>
int destroy(Base* object) {
  of(object->context)->objects--;
  delete static_cast<T*>(object);
  return 0;
}

}  // namespace

API ibv_device** ibv_get_device_list(int* count) {
  const Guard guard(lock);
  *count = 1;
  std::strcpy(device.name, "fake0");
  return devices;
}
API void ibv_free_device_list(ibv_device**) {}
API const char* ibv_get_device_name(ibv_device* which) { return which->name; }
API __be64 ibv_get_device_guid(ibv_device*) { return 0; }

API ibv_context* ibv_open_device(ibv_device*) {
  auto* context = new Context();
  context->device = &device;
  context->ops.poll_cq = pollCq;
  context->ops.req_notify_cq = reqNotify;
  context->ops.post_send = postSend;
  context->ops.post_recv = postReceive;
  context->ops.post_srq_recv = postShared;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) wrong("no pipe");
  context->async_fd = ends[0];
  context->asyncWriter = ends[1];
  return context;
}
API int ibv_close_device(ibv_context* context) {
  const Guard guard(lock);
  if (of(context)->objects != 0) wrong("a context is closed before what was made from it");
  close(context->async_fd);
  close(of(context)->asyncWriter);
  delete of(context);
  return 0;
}
API int ibv_query_device(ibv_context*, ibv_device_attr* attr) {
  std::memset(attr, 0, sizeof *attr);
  attr->phys_port_cnt = 1;
  attr->max_sge = 32;
  attr->max_qp_wr = 64;
  return 0;
}
API int ibv_query_port(ibv_context*, uint8_t, _compat_ibv_port_attr* compatible) {
  auto* attr = reinterpret_cast<ibv_port_attr*>(compatible);
  attr->state = IBV_PORT_ACTIVE;
  attr->active_mtu = IBV_MTU_1024;
  attr->link_layer = IBV_LINK_LAYER_ETHERNET;
  attr->max_msg_sz = 1 << 30;
  attr->gid_tbl_len = 2;
  return 0;
}
API int ibv_query_gid(ibv_context*, uint8_t, int index, ibv_gid* gid) {
  if (index > 1) {
    errno = EINVAL;
    return -1;
  }
  std::memset(gid, index + 1, sizeof *gid);
  return 0;
}

API ibv_pd* ibv_alloc_pd(ibv_context* context) {
  const Guard guard(lock);
  auto* pd = make<Pd>(context);
  pd->context = context;
  return pd;
}
API int ibv_dealloc_pd(ibv_pd* pd) {
  const Guard guard(lock);
  return static_cast<Pd*>(pd)->users > 0 ? EBUSY : destroy<Pd>(pd);
}

API ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, size_t length, int access) {
  const Guard guard(lock);
  auto* mr = make<Mr>(pd->context);
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = address;
  mr->length = length;
  mr->access = access;
  mr->lkey = mr->rkey = ++numbers;
  regions[mr->lkey] = mr;
  static_cast<Pd*>(pd)->users++;
  return mr;
}
API int ibv_dereg_mr(ibv_mr* mr) {
  const Guard guard(lock);
  // As a device may until now: the memory must still be there.
  for (size_t i = 0; i < mr->length; i++) touched += static_cast<const volatile unsigned char*>(mr->addr)[i];
  static_cast<Pd*>(mr->pd)->users--;
  regions.erase(mr->lkey);
  return destroy<Mr>(mr);
}

API ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  const Guard guard(lock);
  auto* channel = make<Channel>(context);
  channel->context = context;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) wrong("no pipe");
  channel->fd = ends[0];
  channel->writer = ends[1];
  return channel;
}
API int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  const Guard guard(lock);
  close(channel->fd);
  close(static_cast<Channel*>(channel)->writer);
  return destroy<Channel>(channel);
}

API ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void*, ibv_comp_channel* channel, int) {
  if (cqe > 100000) {
    errno = EINVAL;
    return nullptr;
  }
  const Guard guard(lock);
  auto* cq = make<Cq>(context);
  cq->context = context;
  cq->channel = channel;
  cq->cqe = cqe;
  return cq;
}
API int ibv_destroy_cq(ibv_cq* base) {
  const Guard guard(lock);
  const auto* cq = static_cast<Cq*>(base);
  if (cq->users > 0) return EBUSY;
  if (cq->unacknowledged > 0) wrong("a completion queue is destroyed while events of it are looked at");
  return destroy<Cq>(base);
}
API int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** context) {
  void* event;
  if (read(channel->fd, &event, sizeof event) != sizeof event) return -1;
  const Guard guard(lock);
  *cq = static_cast<Cq*>(event);
  static_cast<Cq*>(*cq)->unacknowledged++;
  *context = nullptr;
  return 0;
}
API void ibv_ack_cq_events(ibv_cq* cq, unsigned int count) {
  const Guard guard(lock);
  static_cast<Cq*>(cq)->unacknowledged -= static_cast<int>(count);
}

API ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr*) {
  const Guard guard(lock);
  auto* srq = make<Srq>(pd->context);
  srq->context = pd->context;
  srq->pd = pd;
  static_cast<Pd*>(pd)->users++;
  return srq;
}
API int ibv_modify_srq(ibv_srq*, ibv_srq_attr*, int) { return 0; }
API int ibv_destroy_srq(ibv_srq* srq) {
  const Guard guard(lock);
  if (static_cast<Srq*>(srq)->users > 0) return EBUSY;
  static_cast<Pd*>(srq->pd)->users--;
  return destroy<Srq>(srq);
}

API ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  if (attr->cap.max_send_sge > 32 || attr->cap.max_send_wr > 100000) {
    errno = EINVAL;
    return nullptr;
  }
  const Guard guard(lock);
  auto* qp = make<Qp>(pd->context);
  qp->context = pd->context;
  qp->pd = pd;
  qp->send_cq = attr->send_cq;
  qp->recv_cq = attr->recv_cq;
  qp->srq = attr->srq;
  qp->qp_num = ++numbers;
  qp->qp_type = attr->qp_type;
  qp->cap = attr->cap;
  qp->signalAll = attr->sq_sig_all != 0;
  queuePairs[qp->qp_num] = qp;
  static_cast<Pd*>(pd)->users++;
  static_cast<Cq*>(qp->send_cq)->users++;
  static_cast<Cq*>(qp->recv_cq)->users++;
  if (qp->srq != nullptr) static_cast<Srq*>(qp->srq)->users++;
  return qp;
}
API int ibv_modify_qp(ibv_qp* base, ibv_qp_attr* attr, int mask) {
  const Guard guard(lock);
  auto* qp = static_cast<Qp*>(base);
  if (attr->qp_state == IBV_QPS_ERR) {
    fail(*qp, IBV_WC_WR_FLUSH_ERR);
    return 0;
  }
  qp->state = attr->qp_state;
  if ((mask & IBV_QP_QKEY) != 0) qp->qkey = attr->qkey;
  if (qp->state == IBV_QPS_RESET) {
    qp->peer = 0;
    qp->sends.clear();
    qp->receives.clear();
  }
  if ((mask & IBV_QP_DEST_QPN) == 0) return 0;
  qp->peer = attr->dest_qp_num;
  const auto other = queuePairs.find(qp->peer);
  if (other != queuePairs.end()) deliver(*other->second);
  return 0;
}
API int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int, ibv_qp_init_attr*) {
  const Guard guard(lock);
  attr->qp_state = qp->state;
  return 0;
}
API int ibv_destroy_qp(ibv_qp* base) {
  const Guard guard(lock);
  auto* qp = static_cast<Qp*>(base);
  if (qp->groups > 0) return EBUSY;
  queuePairs.erase(qp->qp_num);
  const auto other = queuePairs.find(qp->peer);
  if (other != queuePairs.end() && other->second->peer == qp->qp_num) deliver(*other->second);
  static_cast<Pd*>(qp->pd)->users--;
  static_cast<Cq*>(qp->send_cq)->users--;
  static_cast<Cq*>(qp->recv_cq)->users--;
  if (qp->srq != nullptr) static_cast<Srq*>(qp->srq)->users--;
  return destroy<Qp>(base);
}

API ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr*) {
  const Guard guard(lock);
  auto* ah = make<ibv_ah>(pd->context);
  ah->context = pd->context;
  ah->pd = pd;
  static_cast<Pd*>(pd)->users++;
  return ah;
}
API int ibv_destroy_ah(ibv_ah* ah) {
  const Guard guard(lock);
  static_cast<Pd*>(ah->pd)->users--;
  return destroy<ibv_ah>(ah);
}
API int ibv_attach_mcast(ibv_qp* base, const ibv_gid*, uint16_t) {
  auto* qp = static_cast<Qp*>(base);
  const Guard guard(lock);
  if (qp->qp_type != IBV_QPT_UD) return EINVAL;
  qp->groups++;
  return 0;
}
API int ibv_detach_mcast(ibv_qp* base, const ibv_gid*, uint16_t) {
  auto* qp = static_cast<Qp*>(base);
  const Guard guard(lock);
  if (qp->groups == 0) return EINVAL;
  qp->groups--;
  return 0;
}

API int ibv_get_async_event(ibv_context*, ibv_async_event*) { return -1; }
API void ibv_ack_async_event(ibv_async_event*) {}
