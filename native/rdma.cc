// RDMA devices: what src/providers/rdma-core/ needs of libibverbs, nearly one call for one.
//
// A context owns everything that is made from it, by numbers; JavaScript never holds a pointer of the library's.
// Numbers are checked, so that a wrong one is an error. Order of destruction: queue pairs, shared receive queues,
// completion queues, regions, domains, the context.
//
// Threads: all calls come from the context's JavaScript thread, except that a helper thread waits for events while
// JavaScript sleeps without blocking (`beginWait`). That thread only calls poll(2); events are fetched on the
// JavaScript thread.
//
// Requests: posting reads them from the ring that JavaScript has written (src/verbs/work-request-ring.ts says how a
// slot lies). The identifier that the device is given is not the program's wrId but says which queue pair and which
// slot it was; polling gives it back as two numbers, and JavaScript looks the rest up in its ring.
//
// The calls of the data path (post a batch, poll, post a receive) have no arguments: `sender`, `poller` and `receiver`
// make a function for one queue, which reads its arguments from words in memory that JavaScript has written, and writes
// its results there. Checking and converting seven arguments takes longer than libibverbs does.
#include "rdma.h"

#include "arguments.h"

#if !__has_include(<infiniband/verbs.h>)

namespace onesided {

void exportRdma(Napi::Env env, Napi::Object exports) {
  exports.Set("rdmaReason", Napi::String::New(env, "the addon was built without infiniband/verbs.h (apt-get install libibverbs-dev, then npx onesided build)"));
}

}  // namespace onesided

#else

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <vector>

#include "pin.h"
#include "verbs_library.h"

namespace onesided {
namespace {

constexpr napi_type_tag kTag = {0x1be07f8e8f7f4c0d, 0x93c1a60f5d2b7e11};

// The fields of a slot in the ring of work requests: src/verbs/work-request-ring.ts.
struct Slot {
  uint32_t opcode;
  uint32_t flags;
  uint32_t entries;
  uint32_t inlineBytes;
  uint32_t immediate;
  uint32_t rkey;
  double remoteAddress;
  double wrId;
  uint64_t compareAdd;
  uint64_t swap;
  uint32_t messageBytes;
  uint32_t unused;
};
static_assert(sizeof(Slot) == 64, "the header of a slot");
struct Entry {
  double address;
  uint32_t length;
  uint32_t lkey;
};
static_assert(sizeof(Entry) == 16, "an entry of a slot");

enum Flag : uint32_t { kFence = 1, kSignaled = 2, kSolicited = 4 };
constexpr uint32_t kReadOpcode = 4;

// What the device is told of a request: the queue pair's number here (31 bits), and the request's count.
constexpr uint64_t kReceive = uint64_t{1} << 63;

uint64_t idOf(uint32_t owner, uint32_t count) { return (static_cast<uint64_t>(owner) << 32) | count; }

struct Cq;

// What a function of the data path works on. The function owns it together with the queue, which takes itself away when
// it is destroyed; the memory stays as long as the function. The program has neither the function nor the memory, so
// nobody detaches it.
struct Call {
  ibv_qp* qp = nullptr;
  Cq* cq = nullptr;
  ibv_srq* srq = nullptr;
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

void forget(const Calls& calls) {
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

struct Qp {
  ibv_qp* qp = nullptr;
  int64_t sendCq = 0;
  int64_t recvCq = 0;
  uint32_t maxSendSge = 0;
  uint32_t maxRecvSge = 0;
  Calls calls;
};

struct Region {
  ibv_mr* mr = nullptr;
  // The device has its pages: they must stay this memory's, also if JavaScript detaches it.
  Pin memory;
};

// A wait for events that leaves the JavaScript thread free.
struct Waiter {
  std::mutex mutex;
  std::condition_variable changed;
  std::thread thread;
  pollfd fds[3];
  bool requested = false;
  bool stopping = false;
  int timeoutMs = 0;
  uint32_t generation = 0;
  napi_threadsafe_function call = nullptr;

  void run() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return requested || stopping; });
      if (stopping) return;
      requested = false;
      const uintptr_t now = generation;
      const int timeout = timeoutMs;
      pollfd polled[3] = {fds[0], fds[1], fds[2]};
      lock.unlock();
      poll(polled, 3, timeout);
      lock.lock();
      if (stopping) return;
      napi_call_threadsafe_function(call, reinterpret_cast<void*>(now), napi_tsfn_nonblocking);
    }
  }

  // Hands a wait to the thread. Gives its generation.
  uint32_t begin(double milliseconds) {
    std::lock_guard<std::mutex> lock(mutex);
    generation = (generation + 1) & 0x7fffffff;
    timeoutMs = static_cast<int>(std::min(std::max(milliseconds, 1.0), 1e9));
    requested = true;
    changed.notify_all();
    return generation;
  }

  // Ends the thread. `wake` is the one of its descriptors that is this side's.
  void stop(int wake) {
    if (!thread.joinable()) return;
    {
      std::lock_guard<std::mutex> lock(mutex);
      stopping = true;
      changed.notify_all();
    }
    const uint64_t one = 1;
    (void)!write(wake, &one, sizeof one);
    thread.join();
  }
};

const char* stateOfPort(int state) {
  static const char* names[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};
  return state >= 0 && state < 6 ? names[state] : "UNKNOWN";
}

int bytesOfMtu(int mtu) { return mtu >= 1 && mtu <= 5 ? 128 << mtu : 0; }

std::string hexOf(const ibv_gid& gid) {
  char text[40];
  const uint8_t* b = gid.raw;
  std::snprintf(text, sizeof text, "%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x", b[0], b[1], b[2],
                b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
  return text;
}

bool parseGid(const std::string& text, ibv_gid* gid) { return inet_pton(AF_INET6, text.c_str(), gid->raw) == 1; }

// "IB/RoCE v1" or "RoCE v2", as the kernel says it; empty if it does not.
std::string typeOfGid(const char* device, int port, int index) {
  char path[256];
  std::snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/%d/gid_attrs/types/%d", device, port, index);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  char text[64];
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  std::string type(text, n > 0 ? static_cast<size_t>(n) : 0);
  while (!type.empty() && type.back() == '\n') type.pop_back();
  return type;
}

Napi::Object limitsOf(Napi::Env env, const ibv_device_attr& a) {
  Napi::Object limits = Napi::Object::New(env);
  const auto set = [&](const char* name, double value) { limits.Set(name, Napi::Number::New(env, value)); };
  set("maxQp", a.max_qp);
  set("maxQpWr", a.max_qp_wr);
  set("maxSge", a.max_sge);
  set("maxCq", a.max_cq);
  set("maxCqe", a.max_cqe);
  set("maxMr", a.max_mr);
  set("maxMrSize", static_cast<double>(std::min<uint64_t>(a.max_mr_size, static_cast<uint64_t>(kMaxSafeInteger))));
  set("maxPd", a.max_pd);
  set("maxSrq", a.max_srq);
  set("maxSrqWr", a.max_srq_wr);
  set("maxSrqSge", a.max_srq_sge);
  set("maxQpInitRdAtom", a.max_qp_init_rd_atom);
  set("maxQpRdAtom", a.max_qp_rd_atom);
  set("atomics", a.atomic_cap);
  return limits;
}

Napi::Array portsOf(Napi::Env env, const VerbsLibrary& verbs, ibv_context* context, const char* name, int count) {
  Napi::Array ports = Napi::Array::New(env);
  for (int number = 1; number <= count; number++) {
    ibv_port_attr attr{};
    if (verbs.query_port(context, static_cast<uint8_t>(number), reinterpret_cast<_compat_ibv_port_attr*>(&attr)) != 0) continue;
    Napi::Object port = Napi::Object::New(env);
    port.Set("port", number);
    port.Set("state", stateOfPort(attr.state));
    port.Set("linkLayer", attr.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand");
    port.Set("lid", attr.lid);
    port.Set("activeMtu", bytesOfMtu(attr.active_mtu));
    port.Set("maxMessageBytes", static_cast<double>(attr.max_msg_sz));
    Napi::Array gids = Napi::Array::New(env);
    for (int index = 0; index < attr.gid_tbl_len && index < 256; index++) {
      ibv_gid gid{};
      static const ibv_gid nothing{};
      if (verbs.query_gid(context, static_cast<uint8_t>(number), index, &gid) != 0) continue;
      if (std::memcmp(&gid, &nothing, sizeof gid) == 0) continue;
      Napi::Object entry = Napi::Object::New(env);
      entry.Set("index", index);
      entry.Set("gid", hexOf(gid));
      entry.Set("type", typeOfGid(name, number, index));
      gids.Set(gids.Length(), entry);
    }
    port.Set("gids", gids);
    ports.Set(ports.Length(), port);
  }
  return ports;
}

std::string fileOf(const ibv_device* device) { return std::string("/dev/infiniband/") + device->dev_name; }

// Why a device could not be opened. The library tries other ways when its file cannot be opened, and tells of the last
// one.
int openError(const ibv_device* device, int error) {
  if (access(fileOf(device).c_str(), R_OK | W_OK) != 0) return errno;
  return error != 0 ? error : EIO;
}

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
                " (the device needs locked memory, and this process has locked %lld KiB of the %llu KiB that it may lock; raise the limit with "
                "ulimit -l)",
                std::max(pinned, 0LL), static_cast<unsigned long long>(limit.rlim_cur) / 1024);
  return text;
}

const VerbsLibrary* verbsOrThrow(Napi::Env env) {
  const char* reason = "";
  const VerbsLibrary* verbs = VerbsLibrary::open(&reason);
  if (verbs == nullptr) napi_throw_error(env, "ENOENT", reason);
  return verbs;
}

// rdmaDevices(): all devices of this machine, with their ports and limits. A device that cannot be opened says why.
Napi::Value rdmaDevices(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  const VerbsLibrary* verbs = verbsOrThrow(env);
  if (verbs == nullptr) return {};
  Napi::Array result = Napi::Array::New(env);
  int count = 0;
  ibv_device** list = verbs->get_device_list(&count);
  // ENOSYS: a kernel without InfiniBand.
  if (list == nullptr) return result;
  for (int i = 0; i < count; i++) {
    Napi::Object device = Napi::Object::New(env);
    const char* name = verbs->get_device_name(list[i]);
    device.Set("name", name);
    device.Set("file", fileOf(list[i]));
    device.Set("transport", list[i]->transport_type == IBV_TRANSPORT_IWARP ? "iWARP" : "InfiniBand");
    ibv_context* context = verbs->open_device(list[i]);
    ibv_device_attr attr{};
    const int error = context == nullptr ? openError(list[i], errno) : verbs->query_device(context, &attr);
    if (error != 0) {
      device.Set("refused", std::strerror(error));
      device.Set("refusedCode", errnoName(error));
    } else {
      device.Set("firmware", attr.fw_ver);
      device.Set("limits", limitsOf(env, attr));
      device.Set("ports", portsOf(env, *verbs, context, name, attr.phys_port_cnt));
    }
    if (context != nullptr) verbs->close_device(context);
    result.Set(result.Length(), device);
  }
  verbs->free_device_list(list);
  return result;
}

class RdmaContext : public Napi::ObjectWrap<RdmaContext> {
 public:
  // new RdmaContext(device, port, gidIndex, callback): callback(generation) ends a wait that `beginWait` began.
  explicit RdmaContext(const Napi::CallbackInfo& info) : Napi::ObjectWrap<RdmaContext>(info), env_(info.Env()) {
    verbs_ = verbsOrThrow(env_);
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
    const napi_status made = napi_create_threadsafe_function(
        env_, info[3], nullptr, Napi::String::New(env_, "onesided.RdmaContext"), 0, 1, nullptr, nullptr, nullptr, callBack,
        &waiter_->call);
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

  ~RdmaContext() override { end(true); }

  static Napi::Function define(Napi::Env env) {
    return DefineClass(
        env, "RdmaContext",
        {
            InstanceMethod<&RdmaContext::describe>("describe"),
            InstanceMethod<&RdmaContext::portState>("portState"),
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
            InstanceMethod<&RdmaContext::sender>("sender"),
            InstanceMethod<&RdmaContext::receiver>("receiver"),
            InstanceMethod<&RdmaContext::asyncEvent>("asyncEvent"),
            InstanceMethod<&RdmaContext::wait>("wait"),
            InstanceMethod<&RdmaContext::beginWait>("beginWait"),
            InstanceMethod<&RdmaContext::takeEvents>("takeEvents"),
            InstanceMethod<&RdmaContext::interrupt>("interrupt"),
            InstanceMethod<&RdmaContext::close>("close"),
        });
  }

 private:
  bool openDevice(const std::string& name) {
    int count = 0;
    ibv_device** list = verbs_->get_device_list(&count);
    ibv_device* device = nullptr;
    for (int i = 0; list != nullptr && i < count; i++) {
      if (name == verbs_->get_device_name(list[i])) device = list[i];
    }
    if (device != nullptr) context_ = verbs_->open_device(device);
    const int error = device == nullptr ? ENODEV : context_ == nullptr ? openError(device, errno) : 0;
    if (list != nullptr) verbs_->free_device_list(list);
    if (context_ == nullptr) {
      throwSystemError(env_, error, "cannot open device %s", name.c_str());
      return false;
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
    if (channel_ == nullptr || wake_ < 0) return refuseOpen(errno, "cannot create a completion channel for port %d, GID %d");
    for (const int fd : {channel_->fd, context_->async_fd}) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    waiter_ = std::make_shared<Waiter>();
    const int fds[] = {channel_->fd, context_->async_fd, wake_};
    for (int i = 0; i < 3; i++) waiter_->fds[i] = {fds[i], POLLIN, 0};
    return true;
  }

  bool refuseOpen(int error, const char* why) {
    char text[128];
    std::snprintf(text, sizeof text, why, port_, gidIndex_);
    throwSystemError(env_, error, "device %s: %s", name_.c_str(), text);
    closeAll();
    return false;
  }

  bool ready(const Napi::CallbackInfo& info, const char* call) {
    if (!info.This().IsObject() || !info.This().As<Napi::Object>().CheckTypeTag(&kTag)) {
      throwTypeError(env_, "%s: this is not an RdmaContext", call);
      return false;
    }
    if (!open_) napi_throw_error(env_, "EBADF", "the device's context is closed");
    return open_;
  }

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

  int64_t integer(const Napi::CallbackInfo& info, size_t index, const char* call, double low, double high, bool* good) {
    int64_t value = 0;
    if (*good) *good = readInteger(env_, info[index], call, "an argument", low, high, &value);
    return value;
  }

  Napi::Value number(double value) { return Napi::Number::New(env_, value); }

  Napi::Value refuse(int error, const char* what) {
    throwSystemError(env_, error, "%s%s", what, error == ENOMEM ? lockedMemory().c_str() : "");
    return {};
  }

  // ---- the device ---------------------------------------------------------------------------------------------------

  Napi::Value describe(const Napi::CallbackInfo& info) {
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
  Napi::Value portState(const Napi::CallbackInfo& info) {
    if (!ready(info, "portState")) return {};
    ibv_port_attr attr{};
    const int error = verbs_->query_port(context_, port_, reinterpret_cast<_compat_ibv_port_attr*>(&attr));
    if (error != 0) return refuse(error, "query a port");
    return Napi::String::New(env_, stateOfPort(attr.state));
  }

  // ---- domains and regions ------------------------------------------------------------------------------------------

  Napi::Value allocPd(const Napi::CallbackInfo& info) {
    if (!ready(info, "allocPd")) return {};
    ibv_pd* pd = verbs_->alloc_pd(context_);
    if (pd == nullptr) return refuse(errno, "allocate a protection domain");
    pds_[++made_] = pd;
    return number(static_cast<double>(made_));
  }

  Napi::Value deallocPd(const Napi::CallbackInfo& info) {
    if (!ready(info, "deallocPd")) return {};
    ibv_pd** pd = find(pds_, info[0], "deallocPd", "protection domain");
    if (pd == nullptr) return {};
    const int error = verbs_->dealloc_pd(*pd);
    if (error != 0) return refuse(error, "deallocate a protection domain");
    pds_.erase(info[0].As<Napi::Number>().Int64Value());
    return {};
  }

  // regMr(pd, bytes, offset, length, access): [number, lkey, rkey]
  Napi::Value regMr(const Napi::CallbackInfo& info) {
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

  Napi::Value deregMr(const Napi::CallbackInfo& info) {
    if (!ready(info, "deregMr")) return {};
    Region* region = find(regions_, info[0], "deregMr", "memory region");
    if (region == nullptr) return {};
    const int error = verbs_->dereg_mr(region->mr);
    if (error != 0) return refuse(error, "deregister memory");
    region->memory.drop(env_);
    regions_.erase(info[0].As<Napi::Number>().Int64Value());
    return {};
  }

  // ---- completion queues --------------------------------------------------------------------------------------------

  // createCq(cqe): [number, capacity]
  Napi::Value createCq(const Napi::CallbackInfo& info) {
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

  Napi::Value destroyCq(const Napi::CallbackInfo& info) {
    if (!ready(info, "destroyCq")) return {};
    Cq* cq = find(cqs_, info[0], "destroyCq", "completion queue");
    if (cq == nullptr) return {};
    takeCompletionEvents();
    const int error = verbs_->destroy_cq(cq->cq);
    if (error != 0) return refuse(error, "destroy a completion queue");
    forget(cq->calls);
    cqs_.erase(info[0].As<Napi::Number>().Int64Value());
    return {};
  }

  // The words of a polling function.
  enum PollWord { kPollMax = 0, kPollGot = 1, kPollErrno = 2, kPollHeader = 8 };

  // poller(cq, words): a function that fetches up to words[0] completions and says in words[1] how many, in words[2]
  // the errno; 8 words each from words[8] on: owner (its sign bit: a receive), count, status, opcode, flags, bytes,
  // immediate data, queue pair
  Napi::Value poller(const Napi::CallbackInfo& info) {
    if (!ready(info, "poller")) return {};
    Cq* cq = find(cqs_, info[0], "poller", "completion queue");
    auto call = std::make_shared<Call>();
    if (cq == nullptr || !takeWords(info[1], "poller", kPollHeader, call.get())) return {};
    call->cq = cq;
    return makeCall(std::move(call), &cq->calls, runPoll);
  }

  static napi_value runPoll(napi_env env, napi_callback_info info) {
    Call* call = callOf(env, info);
    if (call == nullptr) return nullptr;
    uint32_t* words = call->words;
    Cq* cq = call->cq;
    uint32_t* out = words + kPollHeader;
    const size_t room = std::min<size_t>(words[kPollMax], (call->bytes / 4 - kPollHeader) / 8);
    size_t n = 0;
    for (; n < room && !cq->waiting.empty(); n++, cq->waiting.pop_front()) write(out + 8 * n, cq->waiting.front());
    words[kPollErrno] = 0;
    ibv_wc wc[32];
    while (n < room) {
      const int wanted = static_cast<int>(std::min<size_t>(room - n, 32));
      const int got = ibv_poll_cq(cq->cq, wanted, wc);
      if (got < 0) words[kPollErrno] = EIO;
      for (int i = 0; i < got; i++) write(out + 8 * n++, wc[i]);
      if (got < wanted) break;
    }
    words[kPollGot] = static_cast<uint32_t>(n);
    return nullptr;
  }

  static void write(uint32_t* out, const ibv_wc& wc) {
    out[0] = static_cast<uint32_t>(wc.wr_id >> 32);
    out[1] = static_cast<uint32_t>(wc.wr_id);
    out[2] = wc.status;
    out[3] = wc.opcode;
    out[4] = wc.wc_flags;
    out[5] = wc.byte_len;
    out[6] = ntohl(wc.imm_data);
    out[7] = wc.qp_num;
  }

  // reqNotifyCq(cq, solicitedOnly): whether there is a completion already
  Napi::Value reqNotifyCq(const Napi::CallbackInfo& info) {
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

  // ---- shared receive queues ----------------------------------------------------------------------------------------

  // createSrq(pd, maxWr, maxSge): [number, maxWr, maxSge]
  Napi::Value createSrq(const Napi::CallbackInfo& info) {
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

  Napi::Value armSrq(const Napi::CallbackInfo& info) {
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

  Napi::Value destroySrq(const Napi::CallbackInfo& info) {
    if (!ready(info, "destroySrq")) return {};
    Srq* srq = find(srqs_, info[0], "destroySrq", "shared receive queue");
    if (srq == nullptr) return {};
    const int error = verbs_->destroy_srq(srq->srq);
    if (error != 0) return refuse(error, "destroy a shared receive queue");
    forget(srq->calls);
    srqs_.erase(info[0].As<Napi::Number>().Int64Value());
    return {};
  }

  // ---- queue pairs --------------------------------------------------------------------------------------------------

  // createQp(pd, sendCq, recvCq, srq or −1, sendWr, recvWr, sendSge, recvSge, inline, signalAll): [number, qpNumber,
  // the five as they are]
  Napi::Value createQp(const Napi::CallbackInfo& info) {
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
    attr.qp_type = IBV_QPT_RC;
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
              asked.max_recv_sge, {}};
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
  // timeout, mtu, psn): by state, what it needs
  Napi::Value modifyQp(const Napi::CallbackInfo& info) {
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
    } else if (state == IBV_QPS_RTR) {
      mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
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

  Napi::Value queryQp(const Napi::CallbackInfo& info) {
    if (!ready(info, "queryQp")) return {};
    Qp* qp = find(qps_, info[0], "queryQp", "queue pair");
    if (qp == nullptr) return {};
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    const int error = verbs_->query_qp(qp->qp, &attr, IBV_QP_STATE, &init);
    if (error != 0) return refuse(error, "query a queue pair");
    return number(attr.qp_state);
  }

  Napi::Value destroyQp(const Napi::CallbackInfo& info) {
    if (!ready(info, "destroyQp")) return {};
    Qp* qp = find(qps_, info[0], "destroyQp", "queue pair");
    if (qp == nullptr) return {};
    const int error = verbs_->destroy_qp(qp->qp);
    if (error != 0) return refuse(error, "destroy a queue pair");
    forget(qp->calls);
    for (const int64_t cq : {qp->sendCq, qp->recvCq}) cqs_[cq].users--;
    qps_.erase(info[0].As<Napi::Number>().Int64Value());
    return {};
  }

  enum SendWord { kSendOwner = 0, kSendHead = 1, kSendCount = 2, kSendPosted = 3, kSendErrno = 4, kSendWords = 5 };

  // sender(qp, ring, slotBytes, words): a function that posts the words[2] requests from words[1] on for the owner
  // words[0], and says in words[3] how many were posted; if not all, the rest were refused with the errno in words[4]
  Napi::Value sender(const Napi::CallbackInfo& info) {
    const char* name = "sender";
    if (!ready(info, name)) return {};
    Qp* qp = find(qps_, info[0], name, "queue pair");
    Bytes ring;
    if (qp == nullptr || !readBytes(env_, info[1], name, "the ring", &ring)) return {};
    bool good = true;
    auto call = std::make_shared<Call>();
    call->slotBytes = static_cast<size_t>(integer(info, 2, name, 64, 65536, &good));
    if (!good) return {};
    const size_t slots = ring.length / call->slotBytes;
    if (call->slotBytes % 8 != 0 || slots == 0 || (slots & (slots - 1)) != 0) {
      throwRangeError(env_, "sender: the number of the ring's slots must be a power of two");
      return {};
    }
    if (!takeWords(info[3], name, kSendWords, call.get())) return {};
    call->qp = qp->qp;
    call->data = ring.data;
    call->bytes = slots * call->slotBytes;
    call->memory[1] = Pin(env_, info[1]);
    return makeCall(std::move(call), &qp->calls, runSend);
  }

  static napi_value runSend(napi_env env, napi_callback_info info) {
    Call* call = callOf(env, info);
    if (call == nullptr) return nullptr;
    uint32_t* words = call->words;
    const uint32_t head = words[kSendHead];
    const uint32_t count = words[kSendCount];
    const auto mask = static_cast<uint32_t>(call->bytes / call->slotBytes - 1);
    uint32_t posted = 0;
    int error = 0;
    while (posted < count && error == 0) {
      const uint32_t batch = std::min<uint32_t>(count - posted, kBatch);
      error = postBatch(call->qp, words[kSendOwner], call->data, call->slotBytes, mask, head + posted, batch, &posted);
    }
    words[kSendPosted] = posted;
    words[kSendErrno] = static_cast<uint32_t>(error);
    return nullptr;
  }

  static constexpr uint32_t kBatch = 32;
  static constexpr uint32_t kBatchEntries = 256;

  static int postBatch(ibv_qp* qp, uint32_t owner, unsigned char* ring, size_t slotBytes, uint32_t mask, uint32_t head,
                       uint32_t count, uint32_t* posted) {
    static const ibv_wr_opcode kOpcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
                                             IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
                                             IBV_WR_ATOMIC_FETCH_AND_ADD};
    ibv_send_wr requests[kBatch];
    ibv_sge entries[kBatchEntries];
    uint32_t used = 0;
    uint32_t built = 0;
    for (; built < count; built++) {
      const uint32_t at = head + built;
      unsigned char* bytes = ring + static_cast<size_t>(at & mask) * slotBytes;
      Slot slot;
      std::memcpy(&slot, bytes, sizeof slot);
      const size_t room = (slotBytes - sizeof slot) / sizeof(Entry);
      const bool remoteAccess = slot.opcode <= 1 || slot.opcode >= kReadOpcode;
      if (slot.opcode > 6 || slot.entries > room || slot.inlineBytes > slotBytes - sizeof slot) return EINVAL;
      if (remoteAccess && !whole(slot.remoteAddress, kMaxSafeInteger)) return EINVAL;
      const uint32_t needed = slot.inlineBytes != 0 ? 1 : slot.entries;
      if (used + needed > kBatchEntries) {
        if (built == 0) return EINVAL;
        break;
      }
      ibv_send_wr& wr = requests[built];
      std::memset(&wr, 0, sizeof wr);
      wr.wr_id = idOf(owner, at);
      wr.opcode = kOpcodes[slot.opcode];
      wr.sg_list = entries + used;
      wr.num_sge = static_cast<int>(needed);
      if ((slot.flags & kFence) != 0) wr.send_flags |= IBV_SEND_FENCE;
      if ((slot.flags & kSignaled) != 0) wr.send_flags |= IBV_SEND_SIGNALED;
      if ((slot.flags & kSolicited) != 0) wr.send_flags |= IBV_SEND_SOLICITED;
      if (slot.inlineBytes != 0) {
        wr.send_flags |= IBV_SEND_INLINE;
        entries[used++] = {reinterpret_cast<uint64_t>(bytes + sizeof slot), slot.inlineBytes, 0};
      } else {
        for (uint32_t i = 0; i < slot.entries; i++) {
          Entry entry;
          std::memcpy(&entry, bytes + sizeof slot + i * sizeof entry, sizeof entry);
          if (!whole(entry.address, kMaxSafeInteger)) return EINVAL;
          entries[used++] = {static_cast<uint64_t>(entry.address), entry.length, entry.lkey};
        }
      }
      wr.imm_data = htonl(slot.immediate);
      const auto remote = remoteAccess ? static_cast<uint64_t>(slot.remoteAddress) : 0;
      if (slot.opcode > kReadOpcode) {
        wr.wr.atomic.remote_addr = remote;
        wr.wr.atomic.rkey = slot.rkey;
        wr.wr.atomic.compare_add = slot.compareAdd;
        wr.wr.atomic.swap = slot.swap;
      } else if (remoteAccess) {
        wr.wr.rdma.remote_addr = remote;
        wr.wr.rdma.rkey = slot.rkey;
      }
      if (built > 0) requests[built - 1].next = &wr;
    }
    ibv_send_wr* bad = nullptr;
    const int error = ibv_post_send(qp, requests, &bad);
    if (error == 0) *posted += built;
    else if (bad != nullptr) *posted += static_cast<uint32_t>(bad - requests);
    return error;
  }

  enum ReceiveWord { kReceiveOwner = 0, kReceiveCount = 1, kReceiveEntries = 2, kReceiveErrno = 3, kReceiveWords = 4 };

  // receiver(srq: boolean, number, entries: Float64Array of (address, length, lkey), words): a function that posts a
  // receive with the first words[2] entries for the owner words[0], with the count words[1], and says the errno in
  // words[3]
  Napi::Value receiver(const Napi::CallbackInfo& info) {
    const char* name = "receiver";
    if (!ready(info, name)) return {};
    const bool shared = info[0].ToBoolean().Value();
    Srq* srq = shared ? find(srqs_, info[1], name, "shared receive queue") : nullptr;
    Qp* qp = shared ? nullptr : find(qps_, info[1], name, "queue pair");
    Bytes entries;
    if ((srq == nullptr && qp == nullptr) || !readBytes(env_, info[2], name, "the entries", &entries)) return {};
    if (entries.type != napi_float64_array) {
      throwTypeError(env_, "%s: the entries must be a Float64Array", name);
      return {};
    }
    auto call = std::make_shared<Call>();
    if (!takeWords(info[3], name, kReceiveWords, call.get())) return {};
    call->srq = shared ? srq->srq : nullptr;
    call->qp = shared ? nullptr : qp->qp;
    call->data = entries.data;
    call->bytes = entries.length;
    call->memory[1] = Pin(env_, info[2]);
    return makeCall(std::move(call), shared ? &srq->calls : &qp->calls, runReceive);
  }

  static napi_value runReceive(napi_env env, napi_callback_info info) {
    Call* call = callOf(env, info);
    if (call == nullptr) return nullptr;
    uint32_t* words = call->words;
    constexpr size_t kMost = 64;
    const size_t n = std::min<size_t>({words[kReceiveEntries], call->bytes / 24, kMost});
    ibv_sge entries[kMost];
    for (size_t i = 0; i < n; i++) {
      double entry[3];
      std::memcpy(entry, call->data + sizeof entry * i, sizeof entry);
      if (!whole(entry[0], kMaxSafeInteger) || !whole(entry[1], UINT32_MAX) || !whole(entry[2], UINT32_MAX)) {
        throwRangeError(env, "receiver: entry %zu must be an address, a length and a key", i);
        return nullptr;
      }
      entries[i] = {static_cast<uint64_t>(entry[0]), static_cast<uint32_t>(entry[1]), static_cast<uint32_t>(entry[2])};
    }
    ibv_recv_wr wr{};
    wr.wr_id = idOf(words[kReceiveOwner], words[kReceiveCount]) | kReceive;
    wr.sg_list = entries;
    wr.num_sge = static_cast<int>(n);
    ibv_recv_wr* bad = nullptr;
    const int error =
        call->srq != nullptr ? ibv_post_srq_recv(call->srq, &wr, &bad) : ibv_post_recv(call->qp, &wr, &bad);
    words[kReceiveErrno] = static_cast<uint32_t>(error);
    return nullptr;
  }

  // ---- functions of the data path -----------------------------------------------------------------------------------

  // The words of a function: at least `count` of them.
  bool takeWords(napi_value value, const char* name, size_t count, Call* call) {
    Bytes words;
    if (!readBytes(env_, value, name, "the words", &words)) return false;
    if (words.type != napi_uint32_array || words.elements < count) {
      throwRangeError(env_, "%s: the words must be a Uint32Array of at least %zu", name, count);
      return false;
    }
    call->words = reinterpret_cast<uint32_t*>(words.data);
    call->bytes = words.length;
    call->memory[0] = Pin(env_, value);
    return true;
  }

  Napi::Value makeCall(std::shared_ptr<Call> call, Calls* calls, napi_callback run) {
    auto* held = new std::shared_ptr<Call>(call);
    napi_value function;
    if (napi_create_function(env_, nullptr, 0, run, call.get(), &function) != napi_ok ||
        napi_add_finalizer(env_, function, held, endCall, nullptr, nullptr) != napi_ok) {
      endCall(env_, held, nullptr);
      return refuse(ENOMEM, "create a function");
    }
    calls->push_back(std::move(call));
    return Napi::Value(env_, function);
  }

  static void endCall(napi_env env, void* data, void*) {
    auto* held = static_cast<std::shared_ptr<Call>*>(data);
    for (Pin& memory : (*held)->memory) memory.drop(env);
    delete held;
  }

  static Call* callOf(napi_env env, napi_callback_info info) {
    void* data = nullptr;
    napi_get_cb_info(env, info, nullptr, nullptr, nullptr, &data);
    auto* call = static_cast<Call*>(data);
    if (!call->gone()) return call;
    napi_throw_error(env, "EBADF", "the queue was destroyed");
    return nullptr;
  }

  // ---- events -------------------------------------------------------------------------------------------------------

  // asyncEvent(): [type, number of the queue pair, shared receive queue or completion queue], or undefined
  Napi::Value asyncEvent(const Napi::CallbackInfo& info) {
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

  int takeCompletionEvents() {
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
  Napi::Value takeEvents(const Napi::CallbackInfo& info) {
    if (!ready(info, "takeEvents")) return {};
    uint64_t count = 0;
    (void)!read(wake_, &count, sizeof count);
    pollfd fd{context_->async_fd, POLLIN, 0};
    const bool async = poll(&fd, 1, 0) > 0;
    return number(std::min(takeCompletionEvents(), 65535) + (async ? 65536 : 0));
  }

  // wait(milliseconds): blocks until there is an event
  Napi::Value wait(const Napi::CallbackInfo& info) {
    if (!ready(info, "wait")) return {};
    double milliseconds;
    if (!readTimeout(env_, info[0], "wait", &milliseconds)) return {};
    pollfd fds[3] = {waiter_->fds[0], waiter_->fds[1], waiter_->fds[2]};
    timespec time;
    const double bounded = std::min(milliseconds, 1e9);
    time.tv_sec = static_cast<time_t>(bounded / 1e3);
    time.tv_nsec = static_cast<long>((bounded - static_cast<double>(time.tv_sec) * 1e3) * 1e6);
    ppoll(fds, 3, &time, nullptr);
    return {};
  }

  // beginWait(milliseconds): the callback is called, with the number that is returned, when there is an event or the
  // time is over
  Napi::Value beginWait(const Napi::CallbackInfo& info) {
    if (!ready(info, "beginWait")) return {};
    double milliseconds;
    if (!readTimeout(env_, info[0], "beginWait", &milliseconds)) return {};
    Waiter& waiter = *waiter_;
    if (!waiter.thread.joinable()) {
      sigset_t all;
      sigset_t before;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
      int error = 0;
      try {
        waiter.thread = std::thread([shared = waiter_] { shared->run(); });
      } catch (const std::system_error& failure) {
        error = failure.code().value();
      }
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      if (error != 0) return refuse(error, "start a thread");
    }
    napi_ref_threadsafe_function(env_, waiter.call);
    return number(waiter.begin(milliseconds));
  }

  static void callBack(napi_env env, napi_value function, void*, void* message) {
    if (env == nullptr || function == nullptr) return;
    napi_value undefined;
    napi_value generation;
    napi_get_undefined(env, &undefined);
    napi_create_double(env, static_cast<double>(reinterpret_cast<uintptr_t>(message)), &generation);
    napi_call_function(env, undefined, function, 1, &generation, nullptr);
  }

  // interrupt(release): ends a wait; with `release` the event loop is kept alive no longer
  Napi::Value interrupt(const Napi::CallbackInfo& info) {
    if (!ready(info, "interrupt")) return {};
    if (info[0].ToBoolean().Value()) {
      napi_unref_threadsafe_function(env_, waiter_->call);
    } else {
      const uint64_t one = 1;
      (void)!::write(wake_, &one, sizeof one);
    }
    return {};
  }

  // ---- the end ------------------------------------------------------------------------------------------------------

  Napi::Value close(const Napi::CallbackInfo& info) {
    if (!info.This().IsObject() || !info.This().As<Napi::Object>().CheckTypeTag(&kTag)) {
      throwTypeError(env_, "close: this is not an RdmaContext");
      return {};
    }
    end(true);
    return {};
  }

  void end(bool environmentLives) {
    if (!open_) return;
    open_ = false;
    if (environmentLives) napi_remove_env_cleanup_hook(env_, atEnvironmentEnd, this);
    waiter_->stop(wake_);
    if (environmentLives) napi_release_threadsafe_function(waiter_->call, napi_tsfn_release);
    closeAll();
  }

  void closeAll() {
    for (auto& [key, qp] : qps_) forget(qp.calls);
    for (auto& [key, srq] : srqs_) forget(srq.calls);
    for (auto& [key, cq] : cqs_) forget(cq.calls);
    if (channel_ != nullptr) takeCompletionEvents();
    for (auto& [key, qp] : qps_) verbs_->destroy_qp(qp.qp);
    for (auto& [key, srq] : srqs_) verbs_->destroy_srq(srq.srq);
    if (channel_ != nullptr) takeCompletionEvents();
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

  static void atEnvironmentEnd(void* self) { static_cast<RdmaContext*>(self)->end(false); }

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
};

}  // namespace

void exportRdma(Napi::Env env, Napi::Object exports) {
  exports.Set("rdmaDevices", Napi::Function::New(env, rdmaDevices, "rdmaDevices"));
  exports.Set("RdmaContext", RdmaContext::define(env));
}

}  // namespace onesided

#endif
