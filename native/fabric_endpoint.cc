// Opening a provider of libfabric, and what there is of them.
#if __has_include(<infiniband/verbs.h>) && __has_include(<rdma/fabric.h>)

#include "fabric_endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>

#include "fabric_engine.h"
#include "threads.h"

namespace onesided::fabric {
namespace {

constexpr uint64_t kCapabilities = FI_MSG | FI_RMA | FI_ATOMIC | FI_SOURCE;

std::mutex once;

// What a program that asks for "tcp" gets: the first that there is. libfabric 1.17 has its later implementation of TCP
// beside the older one, which makes two system calls more for each message at either end; they understand each other.
constexpr const char* kTcp[] = {"net;ofi_rxm", "tcp;ofi_rxm"};
// All of them: libfabric looks at this once.
constexpr const char* kTcpProviders = "net,tcp,ofi_rxm";

// For tests: a provider is used as if it promised no more than EFA does.
bool likeEfa() {
  const char* like = std::getenv("ONESIDED_LIBFABRIC_LIKE");
  return like != nullptr && std::strcmp(like, "efa") == 0;
}

// A variable that libfabric reads when it first looks for providers, unless the user has set it. Programs that this
// process starts do not get it.
//
// `setenv` may move the table of variables, and free the old one, while another thread reads it. Our own threads read
// none. Workers have copies of `process.env`, unless they share it, and Node reads the variables itself under a lock of
// its own, which this cannot take. So it is as safe as an assignment to `process.env` is for readers in C
// (`getaddrinfo` in Node's pool). libfabric is told by nothing else; and it happens only when endpoints are opened.
class Setting {
 public:
  Setting(const char* name, const std::string& value) : name_(name), ours_(std::getenv(name) == nullptr) {
    if (ours_) setenv(name, value.c_str(), 1);
  }
  ~Setting() {
    if (ours_) unsetenv(name_);
  }

 private:
  const char* name_;
  bool ours_;
};

fi_info* hintsFor(const Library& library, const std::string& provider, uint64_t capabilities, uint64_t order) {
  fi_info* hints = library.dupinfo(nullptr);
  if (hints == nullptr) return nullptr;
  hints->caps = capabilities;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = likeEfa() ? FI_MR_BASIC : FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->domain_attr->threading = FI_THREAD_SAFE;
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->tx_attr->msg_order = order;
  hints->rx_attr->msg_order = order;
  if (!provider.empty()) hints->fabric_attr->prov_name = strdup(provider.c_str());
  return hints;
}

// 0, or a negative number of libfabric's.
int query(const Library& library, const std::string& provider, const std::string& address, uint64_t capabilities,
          uint64_t order, fi_info** found) {
  fi_info* hints = hintsFor(library, provider, capabilities, order);
  if (hints == nullptr) return -FI_ENOMEM;
  std::string names = provider;
  std::replace(names.begin(), names.end(), ';', ',');
  if (std::find(std::begin(kTcp), std::end(kTcp), provider) != std::end(kTcp)) names = kTcpProviders;
  // The receive buffers of an endpoint over TCP: 4 MiB, where 64 MiB are its default.
  const Setting receives("FI_OFI_RXM_MSG_RX_SIZE", "256");
  int result;
  const char* node = address.empty() ? nullptr : address.c_str();
  const uint64_t flags = address.empty() ? 0 : FI_SOURCE;
  if (provider.empty()) {
    result = library.getinfo(kVersion, node, nullptr, flags, hints, found);
  } else {
    // Looking for all of them takes longer than everything else.
    const Setting only("FI_PROVIDER", names);
    result = library.getinfo(kVersion, node, nullptr, flags, hints, found);
  }
  library.freeinfo(hints);
  return result;
}

// Whether messages and writes stay behind writes. Asked for together with atomics, providers that keep it refuse.
bool keepsOrder(const Library& library, const std::string& provider, const std::string& address) {
  constexpr uint64_t kOrder = FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_WAW;
  fi_info* info = nullptr;
  if (likeEfa() || query(library, provider, address, kCapabilities & ~FI_ATOMIC, kOrder, &info) != 0) return false;
  const uint64_t order = info->tx_attr->msg_order & info->rx_attr->msg_order;
  library.freeinfo(info);
  return (order & kOrder) == kOrder;
}

std::string addressText(const void* from, size_t bytes) {
  char text[INET6_ADDRSTRLEN] = "";
  sockaddr_storage storage{};
  if (from == nullptr || bytes < sizeof(sockaddr_in)) return "";
  std::memcpy(&storage, from, std::min(bytes, sizeof storage));
  if (storage.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in&>(storage).sin_addr, text, sizeof text);
  } else if (storage.ss_family == AF_INET6 && bytes >= sizeof(sockaddr_in6)) {
    inet_ntop(AF_INET6, &reinterpret_cast<sockaddr_in6&>(storage).sin6_addr, text, sizeof text);
  }
  return text;
}

template <typename T>
void closeFid(T*& object) {
  if (object != nullptr) fi_close(&object->fid);
  object = nullptr;
}

}  // namespace

std::vector<Offer> offers(const Library& library) {
  std::vector<Offer> result;
  const std::lock_guard<std::mutex> guard(once);
  fi_info* found = nullptr;
  if (query(library, "", "", kCapabilities, FI_ORDER_SAS, &found) != 0) return result;
  for (const fi_info* info = found; info != nullptr; info = info->next) {
    Offer offer{info->fabric_attr->prov_name, info->domain_attr->name, addressText(info->src_addr, info->src_addrlen)};
    const auto same = [&](const Offer& other) {
      return other.provider == offer.provider && other.domain == offer.domain && other.address == offer.address;
    };
    if (std::none_of(result.begin(), result.end(), same)) result.push_back(offer);
  }
  library.freeinfo(found);
  return result;
}

std::unique_ptr<Engine> Engine::open(const std::string& device, std::string* why) {
  const char* reason = "";
  const Library* library = Library::open(&reason);
  if (library == nullptr) {
    *why = reason;
    return nullptr;
  }
  const size_t bar = std::min(device.find('|'), device.size());
  std::vector<std::string> providers(1, device.substr(0, bar));
  if (providers[0] == "tcp") providers.assign(std::begin(kTcp), std::end(kTcp));
  for (const std::string& provider : providers) {
    auto engine = std::make_unique<Engine>();
    engine->library = library;
    if (engine->begin(provider + device.substr(bar), why)) return engine;
  }
  return nullptr;
}

// The steps of it. What was made is given back by the destructor.
bool Engine::begin(const std::string& device, std::string* why) {
  const size_t bar = device.find('|');
  const std::string asked = device.substr(0, bar);
  const std::string address = bar == std::string::npos ? "" : device.substr(bar + 1);
  const auto refuse = [&](const char* what, int error) {
    const uint32_t version = library->version();
    *why = std::string(what) + " of provider " + asked + (address.empty() ? "" : " at " + address) +
           " is refused by libfabric " + std::to_string(FI_MAJOR(version)) + "." + std::to_string(FI_MINOR(version)) +
           ": " + library->strerror(error);
    return false;
  };
  const std::lock_guard<std::mutex> guard(once);
  int error = query(*library, asked, address, kCapabilities, FI_ORDER_SAS, &info);
  if (error != 0) return refuse("an endpoint", -error);
  provider = info->fabric_attr->prov_name;
  markSockets(Sockets::kBefore);
  if ((error = library->fabric(info->fabric_attr, &fabric, nullptr)) != 0) return refuse("the fabric", -error);
  if ((error = fi_domain(fabric, info, &domain, nullptr)) != 0) return refuse("the domain", -error);
  fi_av_attr avAttr{};
  avAttr.type = FI_AV_TABLE;
  avAttr.count = 256;
  if ((error = fi_av_open(domain, &avAttr, &av, nullptr)) != 0) return refuse("the addresses", -error);
  fi_cq_attr cqAttr{};
  cqAttr.format = FI_CQ_FORMAT_TAGGED;
  cqAttr.size = 8192;
  cqAttr.wait_obj = likeEfa() ? FI_WAIT_NONE : FI_WAIT_FD;
  int cqDescriptor = -1;
  error = fi_cq_open(domain, &cqAttr, &cq, nullptr);
  if (error == 0 && !likeEfa() && fi_control(&cq->fid, FI_GETWAIT, &cqDescriptor) != 0) closeFid(cq);
  if (cq == nullptr) {
    cqAttr.wait_obj = FI_WAIT_NONE;
    error = fi_cq_open(domain, &cqAttr, &cq, nullptr);
  }
  if (error != 0) return refuse("the completions", -error);
  traits.mustLook = cqAttr.wait_obj == FI_WAIT_NONE;
  // By `tcp`, ofi_rxm has one set of receive buffers for all connections; by `net`, each has its own 4 MiB otherwise.
  std::optional<Setting> shared;
  if (provider.rfind("net", 0) == 0) shared.emplace("FI_OFI_RXM_USE_SRX", "1");
  if ((error = fi_endpoint(domain, info, &ep, nullptr)) != 0) return refuse("the endpoint", -error);
  shared.reset();
  if ((error = fi_ep_bind(ep, &av->fid, 0)) != 0 || (error = fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV)) != 0 ||
      (error = fi_enable(ep)) != 0) {
    return refuse("the endpoint", -error);
  }
  if (!traits.mustLook && !findDescriptors(cqDescriptor)) return refuse("the descriptor", FI_ENODATA);
  unsigned char own[256];
  size_t bytes = sizeof own;
  if ((error = fi_getname(&ep->fid, own, &bytes)) != 0) return refuse("the endpoint's name", -error);
  name.assign(reinterpret_cast<const char*>(own), bytes);
  const int mode = info->domain_attr->mr_mode;
  traits.offsets = mode != FI_MR_BASIC && (mode & FI_MR_VIRT_ADDR) == 0;
  traits.ownKeys = mode == FI_MR_BASIC || (mode & FI_MR_PROV_KEY) != 0;
  traits.ordered = keepsOrder(*library, asked, address);
  injectable = std::min(info->tx_attr->inject_size, kMostInjected);
  randomBytes(&tag, sizeof tag);
  randomBytes(&numbers, sizeof numbers);
  numbers &= 0x3fffff;
  wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake < 0) {
    *why = std::string("the descriptor that wakes the thread cannot be made: ") + std::strerror(errno);
    return false;
  }
  for (int i = 0; i < kReceives; i++) {
    landings.push_back(std::make_unique<Landing>());
    Landing& landing = *landings.back();
    landing.type = Operation::Type::kLanding;
    const ssize_t posted =
        fi_recv(ep, landing.data, sizeof landing.data, nullptr, FI_ADDR_UNSPEC, &landing.context);
    if (posted != 0) return refuse("a receive", static_cast<int>(-posted));
  }
  looked = now();
  markSockets(Sockets::kOpened);
  return true;
}

Engine::~Engine() {
  end();
  closeFid(ep);
  closeFid(cq);
  closeFid(av);
  closeFid(domain);
  closeFid(fabric);
  if (info != nullptr) library->freeinfo(info);
  for (const int fd : {wake, eventReader, eventWriter})
    if (fd >= 0) close(fd);
  for (const auto& peer : peers)
    for (Message* message : peer->backlog) std::free(message);
}

// Whether the engine's atomics and the processor's on the same word lose nothing of each other. libfabric promises it
// for none of its providers; those whose target executes them by the processor's instructions do it. So it is tried, in
// this process: a thread adds, while the engine adds to itself. Once for each provider. Before the thread of progress.
// All ranks must find the same, however busy their processors are: so it takes the time that it needs. And whoever else
// has found the port: what comes from others meanwhile, errors too, is theirs, and the engine takes it as ever.
bool Engine::agreesWithProcessor() {
  static std::map<std::string, bool> known;
  const std::lock_guard<std::mutex> guard(once);
  const auto found = known.find(provider);
  if (found != known.end()) return found->second;
  const std::lock_guard<std::mutex> lock(mutex);
  // So many additions, or in so many seconds fewer; an engine that needs longer for one gives none back.
  constexpr uint64_t kAdds = 500;
  constexpr uint64_t kFewer = 50;
  constexpr double kSeconds = 2;
  constexpr double kMost = 30;
  // Left behind if the engine does not give everything back.
  struct Words {
    alignas(64) std::atomic<uint64_t> word{0};
    Probe probe;
  };
  auto* words = new Words();
  fid_mr* region = nullptr;
  uint64_t key = 0;
  if (!traits.ownKeys) randomBytes(&key, sizeof key);
  const int self = addPeer(name.data(), name.size(), tag);
  const uint64_t rights = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  bool whole = self >= 0 && fi_mr_reg(domain, &words->word, sizeof words->word, rights, 0, key & ~FI_PROV_SPECIFIC, 0,
                                      &region, nullptr) == 0;
  std::atomic<bool> stop{false};
  uint64_t local = 0;
  std::thread adder;
  uint64_t remote = 0;
  const double begin = now();
  const uint64_t at = traits.offsets ? 0 : reinterpret_cast<uint64_t>(&words->word);
  Probe& p = words->probe;
  p.type = Operation::Type::kProbe;
  p.added = 1;
  while (whole && remote < (now() - begin < kSeconds ? kAdds : kFewer)) {
    const double since = now();
    // Others may start as well. Once it is connected, all of it happens in this thread.
    const auto passes = [&] {
      if (remote == 0) usleep(100);
      return now() - since < kMost;
    };
    const fi_addr_t to = peers[static_cast<size_t>(self)]->address;
    const uint64_t theirs = fi_mr_key(region);
    p.error = Probe::kUnderWay;
    ssize_t result;
    do {
      result = fi_fetch_atomic(ep, &p.added, 1, nullptr, &p.found, nullptr, to, at, theirs, FI_UINT64, FI_SUM,
                               &p.context);
      if (result == -FI_EAGAIN) progress();
    } while (result == -FI_EAGAIN && passes());
    if (result != 0) p.error = static_cast<int>(-result);
    while (p.error == Probe::kUnderWay && passes()) progress();
    whole = p.error == 0;
    if (!whole || remote++ > 0) continue;
    whole = startThread(&adder, [&] {
              for (; !stop.load(std::memory_order_relaxed); local++) words->word.fetch_add(1);
            }) == 0;
  }
  stop.store(true);
  if (adder.joinable()) adder.join();
  const bool agrees = whole && words->word.load() == local + remote;
  if (region != nullptr) fi_close(&region->fid);
  if (p.error != Probe::kUnderWay) delete words;
  known[provider] = agrees;
  return agrees;
}

}  // namespace onesided::fabric

#endif
