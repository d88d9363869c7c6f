// Events of RDMA devices. A helper thread waits for them while JavaScript sleeps without blocking (`beginWait`). That
// thread only calls poll(2); events are fetched on the JavaScript thread.
#if __has_include(<infiniband/verbs.h>)

#include <poll.h>
#include <unistd.h>

#include <algorithm>

#include "arguments.h"
#include "rdma_context.h"
#include "threads.h"

namespace onesided {

// asyncEvent(): [type, number of the queue pair, shared receive queue or completion queue], or undefined
Napi::Value RdmaContext::asyncEvent(const Napi::CallbackInfo& info) {
  if (!ready(info, "asyncEvent")) return {};
  pollfd fd{context_->async_fd, POLLIN, 0};
  ibv_async_event event{};
  if (poll(&fd, 1, 0) <= 0 || verbs_->get_async_event(context_, &event) != 0) return env_.Undefined();
  double concerned = 0;
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR:
      for (const auto& [key, cq] : cqs_) if (cq.cq == event.element.cq) concerned = static_cast<double>(key);
      break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      for (const auto& [key, srq] : srqs_) if (srq.srq == event.element.srq) concerned = static_cast<double>(key);
      break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
      concerned = event.element.qp->qp_num;
      break;
    default:
      break;
  }
  const int type = event.event_type;
  verbs_->ack_async_event(&event);
  Napi::Array result = Napi::Array::New(env_, 2);
  result.Set(uint32_t{0}, type);
  result.Set(uint32_t{1}, concerned);
  return result;
}

int RdmaContext::takeCompletionEvents() {
  int taken = 0;
  pollfd fd{channel_->fd, POLLIN, 0};
  while (poll(&fd, 1, 0) > 0) {
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    if (verbs_->get_cq_event(channel_, &cq, &context) != 0) break;
    verbs_->ack_cq_events(cq, 1);
    taken++;
  }
  return taken;
}

// takeEvents(): how many notifications have come since the last call, and whether there are asynchronous events (as
// 2^16)
Napi::Value RdmaContext::takeEvents(const Napi::CallbackInfo& info) {
  if (!ready(info, "takeEvents")) return {};
  uint64_t count = 0;
  (void)!read(wake_, &count, sizeof count);
  pollfd fd{context_->async_fd, POLLIN, 0};
  const bool async = poll(&fd, 1, 0) > 0;
  return number(std::min(takeCompletionEvents(), 65535) + (async ? 65536 : 0));
}

// wait(milliseconds): blocks until there is an event. As takeEvents(), but of several notifications it may leave some
// for the next call: each look at a descriptor is a system call
Napi::Value RdmaContext::wait(const Napi::CallbackInfo& info) {
  if (!ready(info, "wait")) return {};
  double milliseconds;
  if (!readTimeout(env_, info[0], "wait", &milliseconds)) return {};
  if (verbs_->about_to_sleep != nullptr) verbs_->about_to_sleep(context_);
  pollfd fds[3] = {waiter_->fds[0], waiter_->fds[1], waiter_->fds[2]};
  timespec time;
  const double bounded = std::min(milliseconds, 1e9);
  time.tv_sec = static_cast<time_t>(bounded / 1e3);
  time.tv_nsec = static_cast<long>((bounded - static_cast<double>(time.tv_sec) * 1e3) * 1e6);
  if (ppoll(fds, 3, &time, nullptr) <= 0) return number(0);
  if (fds[2].revents != 0) {
    uint64_t count = 0;
    (void)!read(wake_, &count, sizeof count);
  }
  int taken = 0;
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  if ((fds[0].revents & POLLIN) != 0 && verbs_->get_cq_event(channel_, &cq, &context) == 0) {
    verbs_->ack_cq_events(cq, 1);
    taken++;
  }
  return number(taken + ((fds[1].revents & POLLIN) != 0 ? 65536 : 0));
}

// beginWait(milliseconds): the callback is called, with the number that is returned, when there is an event or the
// time is over
Napi::Value RdmaContext::beginWait(const Napi::CallbackInfo& info) {
  if (!ready(info, "beginWait")) return {};
  double milliseconds;
  if (!readTimeout(env_, info[0], "beginWait", &milliseconds)) return {};
  if (verbs_->about_to_sleep != nullptr) verbs_->about_to_sleep(context_);
  Waiter& waiter = *waiter_;
  if (!waiter.thread.joinable()) {
    const int error = startThread(&waiter.thread, [shared = waiter_] { shared->run(); });
    if (error != 0) return refuse(error, "start a thread");
  }
  napi_ref_threadsafe_function(env_, waiter.call);
  return number(waiter.begin(milliseconds));
}

// interrupt(release): ends a wait; with `release` the event loop is kept alive no longer
Napi::Value RdmaContext::interrupt(const Napi::CallbackInfo& info) {
  if (!ready(info, "interrupt")) return {};
  if (info[0].ToBoolean().Value()) {
    napi_unref_threadsafe_function(env_, waiter_->call);
  } else {
    const uint64_t one = 1;
    (void)!::write(wake_, &one, sizeof one);
  }
  return {};
}

}  // namespace onesided

#endif
