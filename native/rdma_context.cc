// Contexts of RDMA devices: opening and closing, protection domains and memory regions.
#if __has_include(<infiniband/verbs.h>)

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include "arguments.h"
#include "fabric.h"
#include "rdma_context.h"
#include "rdma_devices.h"
#include "tagged.h"

namespace onesided {
namespace {

constexpr napi_type_tag kTag = {0x1be07f8e8f7f4c0d, 0x93c1a60f5d2b7e11};

// Memory that a device uses is locked, and counts against a limit.
std::string lockedMemory() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  long long pinned = -1;
  if (FILE* status = std::fopen("/proc/self/status", "re")) {
    char line[256];
    while (std::fgets(line, sizeof line, status) != nullptr && std::sscanf(line, "VmPin: %lld", &pinned) != 1) {
    }
    std::fclose(status);
  }
  char text[256];
  std::snprintf(text, sizeof text,
                " (the device needs locked memory, and this process has locked %lld KiB of the %llu KiB that it may "
                "lock; raise the limit with "
                "ulimit -l)",
                std::max(pinned, 0LL), static_cast<unsigned long long>(limit.rlim_cur) / 1024);
  return text;
}

void callBack(napi_env env, napi_value function, void*, void* message) {
  if (env == nullptr || function == nullptr) return;
  napi_value undefined;
  napi_value generation;
  napi_get_undefined(env, &undefined);
  napi_create_double(env, static_cast<double>(reinterpret_cast<uintptr_t>(message)), &generation);
  napi_call_function(env, undefined, function, 1, &generation, nullptr);
}

}  // namespace

// new RdmaContext(device, port, gidIndex, callback, libfabric): callback(generation) ends a wait that `beginWait`
// began. With `libfabric`, the device is "provider" or "provider|address".
RdmaContext::RdmaContext(const Napi::CallbackInfo& info) : Napi::ObjectWrap<RdmaContext>(info), env_(info.Env()) {
  verbs_ = info[4].ToBoolean().Value() ? fabricOrThrow(env_) : verbsOrThrow(env_);
  if (verbs_ == nullptr) return;
  int64_t port;
  int64_t gidIndex;
  if (!info[0].IsString() || !info[3].IsFunction()) {
    throwTypeError(env_, "RdmaContext: the arguments must be a device's name, a port, a GID index and a callback");
    return;
  }
  if (!readInteger(env_, info[1], "RdmaContext", "the port", 1, 255, &port) ||
      !readInteger(env_, info[2], "RdmaContext", "the GID index", 0, 255, &gidIndex)) {
    return;
  }
  port_ = static_cast<uint8_t>(port);
  gidIndex_ = static_cast<uint8_t>(gidIndex);
  if (!openDevice(info[0].As<Napi::String>().Utf8Value())) return;
  const napi_status made =
      napi_create_threadsafe_function(env_, info[3], nullptr, Napi::String::New(env_, "onesided.RdmaContext"), 0, 1,
                                      nullptr, nullptr, nullptr, callBack, &waiter_->call);
  if (made != napi_ok) {
    throwSystemError(env_, ENOMEM, "RdmaContext: cannot create a thread-safe function");
    closeAll();
    return;
  }
  napi_unref_threadsafe_function(env_, waiter_->call);
  napi_add_env_cleanup_hook(env_, atEnvironmentEnd, this);
  info.This().As<Napi::Object>().TypeTag(&kTag);
  open_ = true;
}

Napi::Function RdmaContext::define(Napi::Env env) {
  return DefineClass(
      env, "RdmaContext",
      {
          InstanceMethod<&RdmaContext::describe>("describe"),
          InstanceMethod<&RdmaContext::portState>("portState"),
          InstanceMethod<&RdmaContext::endpoint>("endpoint"),
          InstanceMethod<&RdmaContext::addPeer>("addPeer"),
          InstanceMethod<&RdmaContext::acknowledge>("acknowledge"),
          InstanceMethod<&RdmaContext::allocPd>("allocPd"),
          InstanceMethod<&RdmaContext::deallocPd>("deallocPd"),
          InstanceMethod<&RdmaContext::regMr>("regMr"),
          InstanceMethod<&RdmaContext::deregMr>("deregMr"),
          InstanceMethod<&RdmaContext::createCq>("createCq"),
          InstanceMethod<&RdmaContext::destroyCq>("destroyCq"),
          InstanceMethod<&RdmaContext::poller>("poller"),
          InstanceMethod<&RdmaContext::reqNotifyCq>("reqNotifyCq"),
          InstanceMethod<&RdmaContext::createSrq>("createSrq"),
          InstanceMethod<&RdmaContext::armSrq>("armSrq"),
          InstanceMethod<&RdmaContext::destroySrq>("destroySrq"),
          InstanceMethod<&RdmaContext::createQp>("createQp"),
          InstanceMethod<&RdmaContext::modifyQp>("modifyQp"),
          InstanceMethod<&RdmaContext::queryQp>("queryQp"),
          InstanceMethod<&RdmaContext::destroyQp>("destroyQp"),
          InstanceMethod<&RdmaContext::createAh>("createAh"),
          InstanceMethod<&RdmaContext::destroyAh>("destroyAh"),
          InstanceMethod<&RdmaContext::attachMcast>("attachMcast"),
          InstanceMethod<&RdmaContext::detachMcast>("detachMcast"),
          InstanceMethod<&RdmaContext::sender>("sender"),
          InstanceMethod<&RdmaContext::receiver>("receiver"),
          InstanceMethod<&RdmaContext::createHelper>("createHelper"),
          InstanceMethod<&RdmaContext::addLane>("addLane"),
          InstanceMethod<&RdmaContext::startHelper>("startHelper"),
          InstanceMethod<&RdmaContext::stopHelper>("stopHelper"),
          InstanceMethod<&RdmaContext::destroyHelper>("destroyHelper"),
          InstanceMethod<&RdmaContext::createBarriers>("createBarriers"),
          InstanceMethod<&RdmaContext::joinBarrier>("joinBarrier"),
          InstanceMethod<&RdmaContext::connectBarrier>("connectBarrier"),
          InstanceMethod<&RdmaContext::enterBarrier>("enterBarrier"),
          InstanceMethod<&RdmaContext::leaveBarrier>("leaveBarrier"),
          InstanceMethod<&RdmaContext::asyncEvent>("asyncEvent"),
          InstanceMethod<&RdmaContext::wait>("wait"),
          InstanceMethod<&RdmaContext::beginWait>("beginWait"),
          InstanceMethod<&RdmaContext::takeEvents>("takeEvents"),
          InstanceMethod<&RdmaContext::interrupt>("interrupt"),
          InstanceMethod<&RdmaContext::close>("close"),
      });
}

// A device of the list, or nullptr and why not.
ibv_context* RdmaContext::openListed(const std::string& name, int* error) {
  int count = 0;
  ibv_device** list = verbs_->get_device_list(&count);
  ibv_device* device = nullptr;
  for (int i = 0; list != nullptr && i < count; i++) {
    if (name == verbs_->get_device_name(list[i])) device = list[i];
  }
  ibv_context* context = device == nullptr ? nullptr : verbs_->open_device(device);
  *error = device == nullptr ? ENODEV : context == nullptr ? openError(device, errno) : 0;
  if (list != nullptr) verbs_->free_device_list(list);
  return context;
}

bool RdmaContext::openDevice(const std::string& name) {
  if (verbs_->open_named != nullptr) {
    std::string why;
    context_ = verbs_->open_named(name.c_str(), &why);
    if (context_ == nullptr) {
      napi_throw_error(env_, "ENODEV", why.c_str());
      return false;
    }
  } else {
    int error;
    context_ = openListed(name, &error);
    if (context_ == nullptr) {
      throwSystemError(env_, error, "cannot open device %s", name.c_str());
      return false;
    }
  }
  name_ = name;
  ibv_port_attr attr{};
  // These give the errno, except the last.
  int failed = verbs_->query_device(context_, &limits_);
  if (failed == 0) failed = verbs_->query_port(context_, port_, reinterpret_cast<_compat_ibv_port_attr*>(&attr));
  if (failed == 0 && verbs_->query_gid(context_, port_, gidIndex_, &gid_) != 0) failed = errno;
  if (failed != 0) return refuseOpen(failed, "cannot query port %d or GID %d");
  lid_ = attr.lid;
  mtu_ = attr.active_mtu;
  portState_ = attr.state;
  ethernet_ = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
  maxMessage_ = attr.max_msg_sz;
  channel_ = verbs_->create_comp_channel(context_);
  wake_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (channel_ == nullptr || wake_ < 0)
    return refuseOpen(errno, "cannot create a completion channel for port %d, GID %d");
  for (const int fd : {channel_->fd, context_->async_fd}) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  waiter_ = std::make_shared<Waiter>();
  const int fds[] = {channel_->fd, context_->async_fd, wake_};
  for (int i = 0; i < 3; i++) waiter_->fds[i] = {fds[i], POLLIN, 0};
  return true;
}

bool RdmaContext::refuseOpen(int error, const char* why) {
  char text[128];
  std::snprintf(text, sizeof text, why, port_, gidIndex_);
  throwSystemError(env_, error, "device %s: %s", name_.c_str(), text);
  closeAll();
  return false;
}

bool RdmaContext::ready(const Napi::CallbackInfo& info, const char* call) {
  if (!isTagged(info, kTag, call, "an RdmaContext")) return false;
  if (!open_) napi_throw_error(env_, "EBADF", "the device's context is closed");
  return open_;
}

int64_t RdmaContext::integer(napi_value value, const char* call, const char* name, double low, double high,
                             bool* good) {
  int64_t result = 0;
  if (*good) *good = readInteger(env_, value, call, name, low, high, &result);
  return result;
}

Napi::Value RdmaContext::number(double value) { return Napi::Number::New(env_, value); }

Napi::Value RdmaContext::refuse(int error, const char* what) {
  throwSystemError(env_, error, "%s%s", what, error == ENOMEM ? lockedMemory().c_str() : "");
  return {};
}

Napi::Value RdmaContext::describe(const Napi::CallbackInfo& info) {
  if (!ready(info, "describe")) return {};
  Napi::Object result = limitsOf(env_, limits_);
  result.Set("gid", hexOf(gid_));
  result.Set("lid", lid_);
  result.Set("mtu", mtu_);
  result.Set("portState", stateOfPort(portState_));
  result.Set("ethernet", ethernet_);
  result.Set("maxMsgSize", static_cast<double>(maxMessage_));
  return result;
}

// portState(): of its port, now
Napi::Value RdmaContext::portState(const Napi::CallbackInfo& info) {
  if (!ready(info, "portState")) return {};
  ibv_port_attr attr{};
  const int error = verbs_->query_port(context_, port_, reinterpret_cast<_compat_ibv_port_attr*>(&attr));
  if (error != 0) return refuse(error, "query a port");
  return Napi::String::New(env_, stateOfPort(attr.state));
}

// endpoint(): of libfabric's: { provider, name, tag, atomicsAgree, ordered, trouble }
Napi::Value RdmaContext::endpoint(const Napi::CallbackInfo& info) {
  if (!ready(info, "endpoint")) return {};
  if (verbs_->describe_endpoint == nullptr) return refuse(EOPNOTSUPP, "describe an endpoint");
  EndpointDescription is;
  verbs_->describe_endpoint(context_, &is);
  Napi::Object result = Napi::Object::New(env_);
  result.Set("provider", is.provider);
  result.Set("name", Napi::Buffer<char>::Copy(env_, is.name.data(), is.name.size()));
  Napi::Array tag = Napi::Array::New(env_, 2);
  tag.Set(uint32_t{0}, static_cast<double>(is.tag >> 32));
  tag.Set(uint32_t{1}, static_cast<double>(is.tag & UINT32_MAX));
  result.Set("tag", tag);
  result.Set("atomicsAgree", is.atomicsAgree);
  result.Set("ordered", is.ordered);
  if (!is.trouble.empty()) result.Set("trouble", is.trouble);
  return result;
}

// addPeer(name, tagHigh, tagLow): the GID that stands for it
Napi::Value RdmaContext::addPeer(const Napi::CallbackInfo& info) {
  if (!ready(info, "addPeer")) return {};
  Bytes name;
  if (!readBytes(env_, info[0], "addPeer", "the name", &name)) return {};
  bool good = true;
  const auto high = static_cast<uint64_t>(integer(info, 1, "addPeer", 0, UINT32_MAX, &good));
  const auto low = static_cast<uint64_t>(integer(info, 2, "addPeer", 0, UINT32_MAX, &good));
  if (!good) return {};
  ibv_gid gid{};
  const int error = verbs_->add_peer == nullptr
                        ? EOPNOTSUPP
                        : verbs_->add_peer(context_, name.data, name.length, high << 32 | low, &gid);
  if (error != 0) return refuse(error, "add a peer");
  return Napi::String::New(env_, hexOf(gid));
}

// acknowledge(): what was received is acknowledged now, where a library does so later
Napi::Value RdmaContext::acknowledge(const Napi::CallbackInfo& info) {
  if (!ready(info, "acknowledge")) return {};
  if (verbs_->acknowledge != nullptr) verbs_->acknowledge(context_);
  return {};
}

Napi::Value RdmaContext::allocPd(const Napi::CallbackInfo& info) {
  if (!ready(info, "allocPd")) return {};
  ibv_pd* pd = verbs_->alloc_pd(context_);
  if (pd == nullptr) return refuse(errno, "allocate a protection domain");
  pds_[++made_] = pd;
  return number(static_cast<double>(made_));
}

Napi::Value RdmaContext::deallocPd(const Napi::CallbackInfo& info) {
  return destroy(info, pds_, "deallocPd", "protection domain", "deallocate a protection domain",
                 [this](ibv_pd* pd) { return verbs_->dealloc_pd(pd); });
}

// regMr(pd, bytes, offset, length, access): [number, lkey, rkey]
Napi::Value RdmaContext::regMr(const Napi::CallbackInfo& info) {
  if (!ready(info, "regMr")) return {};
  ibv_pd** pd = find(pds_, info[0], "regMr", "protection domain");
  Bytes bytes;
  if (pd == nullptr || !readBytes(env_, info[1], "regMr", "the memory", &bytes)) return {};
  bool good = true;
  const int64_t offset = integer(info, 2, "regMr", 0, static_cast<double>(bytes.length), &good);
  const int64_t length = good ? integer(info, 3, "regMr", 0, static_cast<double>(bytes.length - offset), &good) : 0;
  const int64_t access = integer(info, 4, "regMr", 0, 15, &good);
  if (!good) return {};
  ibv_mr* mr = verbs_->reg_mr(*pd, bytes.data + offset, static_cast<size_t>(length), static_cast<int>(access));
  if (mr == nullptr) {
    const int error = errno;
    char what[64];
    std::snprintf(what, sizeof what, "register %lld bytes", static_cast<long long>(length));
    return refuse(error, what);
  }
  regions_[++made_] = Region{mr, Pin(env_, info[1])};
  Napi::Array result = Napi::Array::New(env_, 3);
  result.Set(uint32_t{0}, static_cast<double>(made_));
  result.Set(uint32_t{1}, mr->lkey);
  result.Set(uint32_t{2}, mr->rkey);
  return result;
}

Napi::Value RdmaContext::deregMr(const Napi::CallbackInfo& info) {
  return destroy(info, regions_, "deregMr", "memory region", "deregister memory", [this](Region& region) {
    const int error = verbs_->dereg_mr(region.mr);
    if (error == 0) region.memory.drop(env_);
    return error;
  });
}

Napi::Value RdmaContext::close(const Napi::CallbackInfo& info) {
  if (!isTagged(info, kTag, "close", "an RdmaContext")) return {};
  end(true);
  return {};
}

void RdmaContext::end(bool environmentLives) {
  if (!open_) return;
  open_ = false;
  if (environmentLives) napi_remove_env_cleanup_hook(env_, atEnvironmentEnd, this);
  waiter_->stop(wake_);
  if (environmentLives) napi_release_threadsafe_function(waiter_->call, napi_tsfn_release);
  closeAll();
}

void RdmaContext::closeAll() {
  endBarriers();
  for (auto& [key, helper] : helpers_) helper->stop();
  for (auto& [key, qp] : qps_) forget(qp.calls);
  for (auto& [key, srq] : srqs_) forget(srq.calls);
  for (auto& [key, cq] : cqs_) forget(cq.calls);
  if (channel_ != nullptr) takeCompletionEvents();
  for (auto& [key, qp] : qps_) leaveAll(qp);
  for (auto& [key, qp] : qps_) verbs_->destroy_qp(qp.qp);
  for (auto& [key, ah] : ahs_) verbs_->destroy_ah(ah);
  ahs_.clear();
  for (auto& [key, srq] : srqs_) verbs_->destroy_srq(srq.srq);
  if (channel_ != nullptr) takeCompletionEvents();
  for (auto& [key, helper] : helpers_) {
    for (auto it = cqs_.begin(); it != cqs_.end(); ++it) {
      if (it->second.cq != helper->cq()) continue;
      cqs_.erase(it);
      break;
    }
  }
  helpers_.clear();
  for (auto& [key, cq] : cqs_) verbs_->destroy_cq(cq.cq);
  for (auto& [key, region] : regions_) {
    verbs_->dereg_mr(region.mr);
    region.memory.drop(env_);
  }
  for (auto& [key, pd] : pds_) verbs_->dealloc_pd(pd);
  qps_.clear();
  srqs_.clear();
  cqs_.clear();
  regions_.clear();
  pds_.clear();
  if (channel_ != nullptr) verbs_->destroy_comp_channel(channel_);
  if (wake_ >= 0) ::close(wake_);
  if (context_ != nullptr) verbs_->close_device(context_);
  channel_ = nullptr;
  wake_ = -1;
  context_ = nullptr;
}

void RdmaContext::atEnvironmentEnd(void* self) { static_cast<RdmaContext*>(self)->end(false); }

}  // namespace onesided

#endif
