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

// createQp({ pd, sendCq, recvCq, srq?, maxSendWr, … }): [number, qpNumber, the two as they are]
Napi::Value RdmaContext::createQp(const Napi::CallbackInfo& info) {
  const char* call = "createQp";
  enum { PD, SEND_CQ, RECV_CQ, SRQ, SEND_WR, RECV_WR, SEND_SGE, RECV_SGE, INLINE_DATA, SIGNAL_ALL, DATAGRAMS, FIELDS };
  static const char* const names[FIELDS] = {
      "pd",         "sendCq",     "recvCq",        "srq",       "maxSendWr", "maxRecvWr",
      "maxSendSge", "maxRecvSge", "maxInlineData", "signalAll", "datagrams"};
  Record<FIELDS> init;
  // Once more behind it: what reads the record may have closed the device.
  if (!ready(info, call) || !init.read(env_, info[0], call, names) || !ready(info, call)) return {};
  ibv_pd** pd = find(pds_, init[PD], call, "protection domain");
  Cq* sendCq = pd == nullptr ? nullptr : find(cqs_, init[SEND_CQ], call, "completion queue");
  Cq* recvCq = sendCq == nullptr ? nullptr : find(cqs_, init[RECV_CQ], call, "completion queue");
  if (recvCq == nullptr) return {};
  Srq* srq = init.has(env_, SRQ) ? find(srqs_, init[SRQ], call, "shared receive queue") : nullptr;
  if (srq == nullptr && init.has(env_, SRQ)) return {};
  bool good = true;
  const auto number = [&](int field, int64_t low, int64_t high) {
    return static_cast<uint32_t>(integer(init[field], call, names[field], low, high, &good));
  };
  ibv_qp_init_attr attr{};
  attr.send_cq = sendCq->cq;
  attr.recv_cq = recvCq->cq;
  attr.srq = srq == nullptr ? nullptr : srq->srq;
  // Before any number: behind one that is refused, an exception is pending, and Node-API converts nothing.
  const bool datagrams = Napi::Value(env_, init[DATAGRAMS]).ToBoolean().Value();
  attr.sq_sig_all = Napi::Value(env_, init[SIGNAL_ALL]).ToBoolean().Value() ? 1 : 0;
  attr.qp_type = datagrams ? IBV_QPT_UD : IBV_QPT_RC;
  attr.cap.max_send_wr = number(SEND_WR, 1, INT32_MAX);
  attr.cap.max_recv_wr = srq != nullptr ? 0 : number(RECV_WR, 1, INT32_MAX);
  attr.cap.max_send_sge = number(SEND_SGE, 1, 255);
  attr.cap.max_recv_sge = srq != nullptr ? 0 : number(RECV_SGE, 1, 255);
  attr.cap.max_inline_data = number(INLINE_DATA, 0, 65536);
  if (!good) return {};
  const ibv_qp_cap asked = attr.cap;
  ibv_qp* qp = verbs_->create_qp(*pd, &attr);
  if (qp == nullptr) return refuse(errno, "create a queue pair");
  Qp& made = qps_[++made_];
  const auto numbered = [&](int field) { return Napi::Value(env_, init[field]).As<Napi::Number>().Int64Value(); };
  made = Qp{qp, numbered(SEND_CQ), numbered(RECV_CQ), asked.max_send_sge, asked.max_recv_sge, datagrams, {}, false, {}};
  sendCq->users++;
  recvCq->users++;
  Napi::Array result = Napi::Array::New(env_, 4);
  result.Set(uint32_t{0}, static_cast<double>(made_));
  result.Set(uint32_t{1}, qp->qp_num);
  result.Set(uint32_t{2}, attr.cap.max_inline_data);
  result.Set(uint32_t{3}, attr.cap.max_send_wr);
  return result;
}

// modifyQp(qp, { state, access?, … }): by state, what it needs
Napi::Value RdmaContext::modifyQp(const Napi::CallbackInfo& info) {
  const char* call = "modifyQp";
  enum {
    STATE, ACCESS, GID, LID, DEST_QP, MAX_DEST_RD_ATOMIC, MIN_RNR_TIMER, RNR_RETRY, RETRY_COUNT, MAX_RD_ATOMIC, TIMEOUT,
    MTU, PSN, QKEY, FIELDS
  };
  static const char* const names[FIELDS] = {
      "state",    "access",     "gid",         "lid",     "destQp", "maxDestRdAtomic", "minRnrTimer",
      "rnrRetry", "retryCount", "maxRdAtomic", "timeout", "mtu",    "psn",             "qkey"};
  constexpr int64_t kMostPsn = (1 << 24) - 1;
  Record<FIELDS> given;
  // Once more behind it: what reads the record may have closed the device.
  if (!ready(info, call) || !given.read(env_, info[1], call, names) || !ready(info, call)) return {};
  Qp* qp = find(qps_, info[0], call, "queue pair");
  if (qp == nullptr) return {};
  bool good = true;
  const auto number = [&](int field, int64_t low, int64_t high) {
    return static_cast<uint32_t>(integer(given[field], call, names[field], low, high, &good));
  };
  const uint32_t state = number(STATE, 0, 6);
  const bool setsAccess = given.has(env_, ACCESS);
  const uint32_t access = setsAccess ? number(ACCESS, 0, 15) : 0;
  if (!good) return {};
  ibv_qp_attr attr{};
  attr.qp_state = static_cast<ibv_qp_state>(state);
  int mask = IBV_QP_STATE;
  if (setsAccess && state != IBV_QPS_RESET && state != IBV_QPS_ERR) {
    attr.qp_access_flags = access;
    mask |= IBV_QP_ACCESS_FLAGS;
  }
  if (state == IBV_QPS_INIT) {
    attr.port_num = port_;
    mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    if (qp->datagrams) {
      attr.qkey = number(QKEY, 0, INT32_MAX);
      mask = (mask & ~IBV_QP_ACCESS_FLAGS) | IBV_QP_QKEY;
    }
  } else if (qp->datagrams) {
    mask &= ~IBV_QP_ACCESS_FLAGS;
    if (state == IBV_QPS_RTS && given.has(env_, PSN)) {
      attr.sq_psn = number(PSN, 0, kMostPsn);
      mask |= IBV_QP_SQ_PSN;
    }
  } else if (state == IBV_QPS_RTR) {
    mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
            IBV_QP_MIN_RNR_TIMER;
    const Napi::Value gid(env_, given[GID]);
    if (!gid.IsString() || !parseGid(gid.As<Napi::String>().Utf8Value(), &attr.ah_attr.grh.dgid)) {
      throwRangeError(env_, "modifyQp: the peer's GID is not a valid GID");
      return {};
    }
    attr.ah_attr.dlid = static_cast<uint16_t>(number(LID, 0, 65535));
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.hop_limit = 64;
    attr.ah_attr.grh.sgid_index = gidIndex_;
    attr.ah_attr.port_num = port_;
    attr.path_mtu = static_cast<ibv_mtu>(number(MTU, IBV_MTU_256, IBV_MTU_4096));
    attr.dest_qp_num = number(DEST_QP, 0, (1 << 24) - 1);
    attr.max_dest_rd_atomic = static_cast<uint8_t>(number(MAX_DEST_RD_ATOMIC, 0, 255));
    attr.min_rnr_timer = static_cast<uint8_t>(number(MIN_RNR_TIMER, 0, 31));
    attr.rq_psn = number(PSN, 0, kMostPsn);
  } else if (state == IBV_QPS_RTS && given.has(env_, RNR_RETRY)) {
    mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
    attr.rnr_retry = static_cast<uint8_t>(number(RNR_RETRY, 0, 7));
    attr.retry_cnt = static_cast<uint8_t>(number(RETRY_COUNT, 0, 7));
    attr.max_rd_atomic = static_cast<uint8_t>(number(MAX_RD_ATOMIC, 0, 255));
    attr.timeout = static_cast<uint8_t>(number(TIMEOUT, 0, 31));
    attr.sq_psn = number(PSN, 0, kMostPsn);
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
