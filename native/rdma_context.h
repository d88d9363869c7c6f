// The context of an RDMA device, and the objects that are made from it. Only for rdma.cc and the files of its methods.
#pragma once

#include <napi.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "arguments.h"
#include "pin.h"
#include "rdma_barrier.h"
#include "rdma_helper.h"
#include "rdma_waiter.h"
#include "verbs_library.h"

namespace onesided {

struct Cq;

// What a function of the data path works on. The function owns it together with the queue, which takes itself away when
// it is destroyed; the memory stays as long as the function. The program has neither the function nor the memory, so
// nobody detaches it.
struct Call {
  ibv_qp* qp = nullptr;
  Cq* cq = nullptr;
  ibv_srq* srq = nullptr;
  // Its device is an endpoint of libfabric, which carries out updates.
  bool updates = false;
  // Of a queue pair of type UD: where its requests find address handles.
  const std::unordered_map<int64_t, ibv_ah*>* handles = nullptr;
  uint32_t* words = nullptr;
  // The ring of requests, or the entries of a receive.
  unsigned char* data = nullptr;
  size_t bytes = 0;
  size_t slotBytes = 0;
  // Of the words, and of what `data` is.
  Pin memory[2];

  bool gone() const { return qp == nullptr && cq == nullptr && srq == nullptr; }
  void forget() {
    qp = nullptr;
    cq = nullptr;
    srq = nullptr;
  }
};

using Calls = std::vector<std::shared_ptr<Call>>;

bool parseGid(const std::string& text, ibv_gid* gid);

inline void forget(const Calls& calls) {
  for (const auto& call : calls) call->forget();
}

struct Cq {
  ibv_cq* cq = nullptr;
  int users = 0;
  // Fetched by `reqNotify` to see whether there was anything, and not yet given to JavaScript.
  std::deque<ibv_wc> waiting;
  Calls calls;
};

struct Srq {
  ibv_srq* srq = nullptr;
  uint32_t maxSge = 0;
  Calls calls;
};

// That a queue pair is attached to a multicast group.
struct Membership {
  ibv_gid gid{};
  uint16_t lid = 0;
  // Where the group is one of IP, a socket that has joined it, so that the network brings its packets; or −1.
  int socket = -1;
};

struct Qp {
  ibv_qp* qp = nullptr;
  int64_t sendCq = 0;
  int64_t recvCq = 0;
  uint32_t maxSendSge = 0;
  uint32_t maxRecvSge = 0;
  bool datagrams = false;
  Calls calls;
  // A helper's thread uses it.
  bool served = false;
  std::vector<Membership> memberships;
};

struct Region {
  ibv_mr* mr = nullptr;
  // The device has its pages: they must stay this memory's, also if JavaScript detaches it.
  Pin memory;
};

class RdmaContext : public Napi::ObjectWrap<RdmaContext> {
 public:
  explicit RdmaContext(const Napi::CallbackInfo& info);
  ~RdmaContext() override { end(true); }

  static Napi::Function define(Napi::Env env);

 private:
  // The object that a number names.
  template <typename T>
  T* find(std::unordered_map<int64_t, T>& table, napi_value value, const char* call, const char* what) {
    int64_t number;
    if (!readInteger(env_, value, call, what, 0, kMaxSafeInteger, &number)) return nullptr;
    const auto found = table.find(number);
    if (found != table.end()) return &found->second;
    throwRangeError(env_, "%s: %s %lld does not exist", call, what, static_cast<long long>(number));
    return nullptr;
  }

  // Ends the object that the first argument names, unless `end` gives an errno, and forgets it.
  template <typename T, typename End>
  Napi::Value destroy(const Napi::CallbackInfo& info, std::unordered_map<int64_t, T>& table, const char* call,
                      const char* what, const char* verb, const End& end) {
    if (!ready(info, call)) return {};
    T* object = find(table, info[0], call, what);
    if (object == nullptr) return {};
    const int error = end(*object);
    if (error != 0) return refuse(error, verb);
    table.erase(info[0].As<Napi::Number>().Int64Value());
    return {};
  }

  // rdma_context.cc: opening and closing, domains and regions.
  bool openDevice(const std::string& name);
  ibv_context* openListed(const std::string& name, int* error);
  bool refuseOpen(int error, const char* why);
  bool ready(const Napi::CallbackInfo& info, const char* call);
  int64_t integer(const Napi::CallbackInfo& info, size_t index, const char* call, double low, double high, bool* good) {
    return integer(info[index], call, "an argument", low, high, good);
  }
  int64_t integer(napi_value value, const char* call, const char* name, double low, double high, bool* good);
  Napi::Value number(double value);
  Napi::Value refuse(int error, const char* what);
  Napi::Value describe(const Napi::CallbackInfo& info);
  Napi::Value portState(const Napi::CallbackInfo& info);
  Napi::Value endpoint(const Napi::CallbackInfo& info);
  Napi::Value addPeer(const Napi::CallbackInfo& info);
  Napi::Value acknowledge(const Napi::CallbackInfo& info);
  Napi::Value allocPd(const Napi::CallbackInfo& info);
  Napi::Value deallocPd(const Napi::CallbackInfo& info);
  Napi::Value regMr(const Napi::CallbackInfo& info);
  Napi::Value deregMr(const Napi::CallbackInfo& info);
  Napi::Value close(const Napi::CallbackInfo& info);
  void end(bool environmentLives);
  void closeAll();
  static void atEnvironmentEnd(void* self);

  // rdma_queues.cc: completion queues, shared receive queues, queue pairs.
  Napi::Value createCq(const Napi::CallbackInfo& info);
  Napi::Value destroyCq(const Napi::CallbackInfo& info);
  Napi::Value reqNotifyCq(const Napi::CallbackInfo& info);
  Napi::Value createSrq(const Napi::CallbackInfo& info);
  Napi::Value armSrq(const Napi::CallbackInfo& info);
  Napi::Value destroySrq(const Napi::CallbackInfo& info);
  Napi::Value createQp(const Napi::CallbackInfo& info);
  Napi::Value modifyQp(const Napi::CallbackInfo& info);
  Napi::Value queryQp(const Napi::CallbackInfo& info);
  Napi::Value destroyQp(const Napi::CallbackInfo& info);

  // rdma_datagrams.cc: address handles and multicast groups.
  Napi::Value createAh(const Napi::CallbackInfo& info);
  Napi::Value destroyAh(const Napi::CallbackInfo& info);
  Napi::Value attachMcast(const Napi::CallbackInfo& info);
  Napi::Value detachMcast(const Napi::CallbackInfo& info);
  int joinNetwork(const ibv_gid& group) const;
  void leaveAll(Qp& qp);

  // rdma_data_path.cc: functions that post and poll.
  Napi::Value poller(const Napi::CallbackInfo& info);
  Napi::Value sender(const Napi::CallbackInfo& info);
  Napi::Value receiver(const Napi::CallbackInfo& info);
  bool takeWords(napi_value value, const char* name, size_t count, Call* call);
  Napi::Value makeCall(std::shared_ptr<Call> call, Calls* calls, napi_callback run);

  // rdma_helper.cc: a thread that serves others.
  Napi::Value createHelper(const Napi::CallbackInfo& info);
  Napi::Value addLane(const Napi::CallbackInfo& info);
  Napi::Value startHelper(const Napi::CallbackInfo& info);
  Napi::Value stopHelper(const Napi::CallbackInfo& info);
  Napi::Value destroyHelper(const Napi::CallbackInfo& info);
  bool isFor(const Helper& helper, const Qp& qp);
  void stop(Helper* helper);

  // rdma_barrier.cc: a thread that carries out barriers.
  Napi::Value createBarriers(const Napi::CallbackInfo& info);
  Napi::Value joinBarrier(const Napi::CallbackInfo& info);
  Napi::Value connectBarrier(const Napi::CallbackInfo& info);
  Napi::Value enterBarrier(const Napi::CallbackInfo& info);
  Napi::Value leaveBarrier(const Napi::CallbackInfo& info);
  static bool isShared(napi_env env, napi_value array);
  static bool isWords(const Bytes& bytes, size_t count);
  void endBarriers();

  // rdma_events.cc: events, and waits for them.
  Napi::Value asyncEvent(const Napi::CallbackInfo& info);
  int takeCompletionEvents();
  Napi::Value takeEvents(const Napi::CallbackInfo& info);
  Napi::Value wait(const Napi::CallbackInfo& info);
  Napi::Value beginWait(const Napi::CallbackInfo& info);
  Napi::Value interrupt(const Napi::CallbackInfo& info);

  Napi::Env env_;
  const VerbsLibrary* verbs_ = nullptr;
  bool open_ = false;
  std::string name_;
  ibv_context* context_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  int wake_ = -1;
  uint8_t port_ = 1;
  uint8_t gidIndex_ = 0;
  ibv_gid gid_{};
  uint16_t lid_ = 0;
  int mtu_ = 0;
  int portState_ = 0;
  bool ethernet_ = false;
  uint32_t maxMessage_ = 0;
  ibv_device_attr limits_{};
  std::shared_ptr<Waiter> waiter_;
  int64_t made_ = 0;
  std::unordered_map<int64_t, ibv_pd*> pds_;
  std::unordered_map<int64_t, Region> regions_;
  std::unordered_map<int64_t, Cq> cqs_;
  std::unordered_map<int64_t, Srq> srqs_;
  std::unordered_map<int64_t, Qp> qps_;
  std::unordered_map<int64_t, std::unique_ptr<Helper>> helpers_;
  std::unordered_map<int64_t, ibv_ah*> ahs_;
  std::unique_ptr<Barriers> barriers_;
  // What its thread writes.
  Pin barrierNews_;
  std::unordered_map<uint32_t, Pin> barrierWords_;
};

}  // namespace onesided
