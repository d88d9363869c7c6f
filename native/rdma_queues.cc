// Queues of RDMA devices: completion queues, shared receive queues, and queue pairs with their states.
#if __has_include(<infiniband/verbs.h>)

#include <arpa/inet.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "arguments.h"
#include "rdma_context.h"

namespace onesided {

bool parseGid(const std::string& text, ibv_gid* gid) {
  return text.find('\0') == std::string::npos && inet_pton(AF_INET6, text.c_str(), gid->raw) == 1;
}

// createCq(cqe): [number, capacity]
Napi::Value RdmaContext::createCq(const Napi::CallbackInfo& info) {
  if (!ready(info, "createCq")) return {};
  bool good = true;
  const int64_t cqe = integer(info, 0, "createCq", 1, INT32_MAX, &good);
  if (!good) return {};
  ibv_cq* cq = verbs_->create_cq(context_, static_cast<int>(cqe), nullptr, channel_, 0);
  if (cq == nullptr) return refuse(errno, "create a completion queue");
  cqs_[++made_].cq = cq;
  Napi::Array result = Napi::Array::New(env_, 2);
  result.Set(uint32_t{0}, static_cast<double>(made_));
  result.Set(uint32_t{1}, cq->cqe);
  return result;
}

Napi::Value RdmaContext::destroyCq(const Napi::CallbackInfo& info) {
  if (!ready(info, "destroyCq")) return {};
  Cq* cq = find(cqs_, info[0], "destroyCq", "completion queue");
  if (cq == nullptr) return {};
  for (const auto& [key, helper] : helpers_)
    if (helper->cq() == cq->cq) return refuse(EBUSY, "destroy a completion queue of a helper");
  takeCompletionEvents();
  const int error = verbs_->destroy_cq(cq->cq);
  if (error != 0) return refuse(error, "destroy a completion queue");
  forget(cq->calls);
  cqs_.erase(info[0].As<Napi::Number>().Int64Value());
  return {};
}

// reqNotifyCq(cq, solicitedOnly): whether there is a completion already
Napi::Value RdmaContext::reqNotifyCq(const Napi::CallbackInfo& info) {
  if (!ready(info, "reqNotifyCq")) return {};
  Cq* cq = find(cqs_, info[0], "reqNotifyCq", "completion queue");
  if (cq == nullptr) return {};
  const bool solicited = info[1].ToBoolean().Value();
  const int error = ibv_req_notify_cq(cq->cq, solicited ? 1 : 0);
  if (error != 0) return refuse(error, "request a notification");
  // What came before the request rings no bell.
  ibv_wc wc;
  if (cq->waiting.empty() && ibv_poll_cq(cq->cq, 1, &wc) > 0) cq->waiting.push_back(wc);
  return Napi::Boolean::New(env_, !cq->waiting.empty());
}

// createSrq(pd, maxWr, maxSge): [number, maxWr, maxSge]
Napi::Value RdmaContext::createSrq(const Napi::CallbackInfo& info) {
  if (!ready(info, "createSrq")) return {};
  ibv_pd** pd = find(pds_, info[0], "createSrq", "protection domain");
  if (pd == nullptr) return {};
  bool good = true;
  ibv_srq_init_attr attr{};
  attr.attr.max_wr = static_cast<uint32_t>(integer(info, 1, "createSrq", 1, INT32_MAX, &good));
  attr.attr.max_sge = static_cast<uint32_t>(integer(info, 2, "createSrq", 1, 255, &good));
  if (!good) return {};
  const uint32_t sge = attr.attr.max_sge;
  ibv_srq* srq = verbs_->create_srq(*pd, &attr);
  if (srq == nullptr) return refuse(errno, "create a shared receive queue");
  srqs_[++made_] = Srq{srq, sge, {}};
  Napi::Array result = Napi::Array::New(env_, 3);
  result.Set(uint32_t{0}, static_cast<double>(made_));
  result.Set(uint32_t{1}, attr.attr.max_wr);
  result.Set(uint32_t{2}, sge);
  return result;
}

Napi::Value RdmaContext::armSrq(const Napi::CallbackInfo& info) {
  if (!ready(info, "armSrq")) return {};
  Srq* srq = find(srqs_, info[0], "armSrq", "shared receive queue");
  if (srq == nullptr) return {};
  bool good = true;
  ibv_srq_attr attr{};
  attr.srq_limit = static_cast<uint32_t>(integer(info, 1, "armSrq", 0, INT32_MAX, &good));
  if (!good) return {};
  const int error = verbs_->modify_srq(srq->srq, &attr, IBV_SRQ_LIMIT);
  if (error != 0) return refuse(error, "arm a shared receive queue");
  return {};
}

Napi::Value RdmaContext::destroySrq(const Napi::CallbackInfo& info) {
  return destroy(info, srqs_, "destroySrq", "shared receive queue", "destroy a shared receive queue", [this](Srq& srq) {
    const int error = verbs_->destroy_srq(srq.srq);
    if (error == 0) forget(srq.calls);
    return error;
  });
}

// createQp(pd, sendCq, recvCq, srq or −1, sendWr, recvWr, sendSge, recvSge, inline, signalAll, datagrams): [number,
// qpNumber, the two as they are]
Napi::Value RdmaContext::createQp(const Napi::CallbackInfo& info) {
  const char* call = "createQp";
  if (!ready(info, call)) return {};
  ibv_pd** pd = find(pds_, info[0], call, "protection domain");
  Cq* sendCq = pd == nullptr ? nullptr : find(cqs_, info[1], call, "completion queue");
  Cq* recvCq = sendCq == nullptr ? nullptr : find(cqs_, info[2], call, "completion queue");
  if (recvCq == nullptr) return {};
  bool good = true;
  Srq* srq = nullptr;
  if (integer(info, 3, call, -1, kMaxSafeInteger, &good) >= 0 && good) {
    srq = find(srqs_, info[3], call, "shared receive queue");
    if (srq == nullptr) return {};
  }
  ibv_qp_init_attr attr{};
  attr.send_cq = sendCq->cq;
  attr.recv_cq = recvCq->cq;
  attr.srq = srq == nullptr ? nullptr : srq->srq;
  const bool datagrams = info[10].ToBoolean().Value();
  attr.qp_type = datagrams ? IBV_QPT_UD : IBV_QPT_RC;
  attr.cap.max_send_wr = static_cast<uint32_t>(integer(info, 4, call, 1, INT32_MAX, &good));
  attr.cap.max_recv_wr = srq != nullptr ? 0 : static_cast<uint32_t>(integer(info, 5, call, 1, INT32_MAX, &good));
  attr.cap.max_send_sge = static_cast<uint32_t>(integer(info, 6, call, 1, 255, &good));
  attr.cap.max_recv_sge = srq != nullptr ? 0 : static_cast<uint32_t>(integer(info, 7, call, 1, 255, &good));
  attr.cap.max_inline_data = static_cast<uint32_t>(integer(info, 8, call, 0, 65536, &good));
  attr.sq_sig_all = info[9].ToBoolean().Value() ? 1 : 0;
  if (!good) return {};
  const ibv_qp_cap asked = attr.cap;
  ibv_qp* qp = verbs_->create_qp(*pd, &attr);
  if (qp == nullptr) return refuse(errno, "create a queue pair");
  Qp& made = qps_[++made_];
  made = Qp{qp, info[1].As<Napi::Number>().Int64Value(), info[2].As<Napi::Number>().Int64Value(), asked.max_send_sge,
            asked.max_recv_sge, datagrams, {}, false, {}};
  sendCq->users++;
  recvCq->users++;
  Napi::Array result = Napi::Array::New(env_, 4);
  result.Set(uint32_t{0}, static_cast<double>(made_));
  result.Set(uint32_t{1}, qp->qp_num);
  result.Set(uint32_t{2}, attr.cap.max_inline_data);
  result.Set(uint32_t{3}, attr.cap.max_send_wr);
  return result;
}

// modifyQp(qp, state, access or −1, gid, lid, destQp, destRdAtomic, rnrTimer, rnrRetry, retryCount, rdAtomic,
// timeout, mtu, psn, qkey): by state, what it needs
Napi::Value RdmaContext::modifyQp(const Napi::CallbackInfo& info) {
  const char* call = "modifyQp";
  if (!ready(info, call)) return {};
  Qp* qp = find(qps_, info[0], call, "queue pair");
  if (qp == nullptr) return {};
  bool good = true;
  const int64_t state = integer(info, 1, call, 0, 6, &good);
  const int64_t access = integer(info, 2, call, -1, 15, &good);
  if (!good) return {};
  ibv_qp_attr attr{};
  attr.qp_state = static_cast<ibv_qp_state>(state);
  int mask = IBV_QP_STATE;
  if (access >= 0 && state != IBV_QPS_RESET && state != IBV_QPS_ERR) {
    attr.qp_access_flags = static_cast<unsigned>(access);
    mask |= IBV_QP_ACCESS_FLAGS;
  }
  if (state == IBV_QPS_INIT) {
    attr.port_num = port_;
    mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    if (qp->datagrams) {
      attr.qkey = static_cast<uint32_t>(integer(info, 14, call, 0, INT32_MAX, &good));
      mask = (mask & ~IBV_QP_ACCESS_FLAGS) | IBV_QP_QKEY;
    }
  } else if (qp->datagrams) {
    mask &= ~IBV_QP_ACCESS_FLAGS;
    if (state == IBV_QPS_RTS && info[13].IsNumber()) {
      attr.sq_psn = static_cast<uint32_t>(integer(info, 13, call, 0, (1 << 24) - 1, &good));
      mask |= IBV_QP_SQ_PSN;
    }
  } else if (state == IBV_QPS_RTR) {
    mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
            IBV_QP_MIN_RNR_TIMER;
    if (!info[3].IsString() || !parseGid(info[3].As<Napi::String>().Utf8Value(), &attr.ah_attr.grh.dgid)) {
      throwRangeError(env_, "modifyQp: the peer's GID is not a valid GID");
      return {};
    }
    attr.ah_attr.dlid = static_cast<uint16_t>(integer(info, 4, call, 0, 65535, &good));
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.hop_limit = 64;
    attr.ah_attr.grh.sgid_index = gidIndex_;
    attr.ah_attr.port_num = port_;
    attr.path_mtu = static_cast<ibv_mtu>(integer(info, 12, call, IBV_MTU_256, IBV_MTU_4096, &good));
    attr.dest_qp_num = static_cast<uint32_t>(integer(info, 5, call, 0, (1 << 24) - 1, &good));
    attr.max_dest_rd_atomic = static_cast<uint8_t>(integer(info, 6, call, 0, 255, &good));
    attr.min_rnr_timer = static_cast<uint8_t>(integer(info, 7, call, 0, 31, &good));
    attr.rq_psn = static_cast<uint32_t>(integer(info, 13, call, 0, (1 << 24) - 1, &good));
  } else if (state == IBV_QPS_RTS && info[8].IsNumber()) {
    mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
    attr.rnr_retry = static_cast<uint8_t>(integer(info, 8, call, 0, 7, &good));
    attr.retry_cnt = static_cast<uint8_t>(integer(info, 9, call, 0, 7, &good));
    attr.max_rd_atomic = static_cast<uint8_t>(integer(info, 10, call, 0, 255, &good));
    attr.timeout = static_cast<uint8_t>(integer(info, 11, call, 0, 31, &good));
    attr.sq_psn = static_cast<uint32_t>(integer(info, 13, call, 0, (1 << 24) - 1, &good));
  }
  if (!good) return {};
  const int error = verbs_->modify_qp(qp->qp, &attr, mask);
  if (error != 0) return refuse(error, "modify a queue pair");
  return {};
}

Napi::Value RdmaContext::queryQp(const Napi::CallbackInfo& info) {
  if (!ready(info, "queryQp")) return {};
  Qp* qp = find(qps_, info[0], "queryQp", "queue pair");
  if (qp == nullptr) return {};
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  const int error = verbs_->query_qp(qp->qp, &attr, IBV_QP_STATE, &init);
  if (error != 0) return refuse(error, "query a queue pair");
  return number(attr.qp_state);
}

Napi::Value RdmaContext::destroyQp(const Napi::CallbackInfo& info) {
  if (!ready(info, "destroyQp")) return {};
  Qp* qp = find(qps_, info[0], "destroyQp", "queue pair");
  if (qp == nullptr) return {};
  if (!qp->memberships.empty()) return refuse(EBUSY, "destroy a queue pair that is attached to a multicast group");
  const int error = qp->served ? EBUSY : verbs_->destroy_qp(qp->qp);
  if (error != 0) return refuse(error, "destroy a queue pair");
  forget(qp->calls);
  for (const int64_t cq : {qp->sendCq, qp->recvCq}) cqs_[cq].users--;
  qps_.erase(info[0].As<Napi::Number>().Int64Value());
  return {};
}

}  // namespace onesided

#endif
