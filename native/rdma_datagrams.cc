// Datagrams of RDMA devices: address handles, and multicast groups.
//
// On RoCE a multicast group is one of IP. ibv_attach_mcast has the device take its packets in, but the network brings
// them only to hosts that have joined the group; so each attachment has a socket that joins it, on the interface that
// has the port's address, and is read by nobody. On an InfiniBand subnet, the subnet's administrator would have to be
// asked: that is not done here.
#if __has_include(<infiniband/verbs.h>)

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "arguments.h"
#include "rdma_context.h"

namespace onesided {
namespace {

bool isMapped(const ibv_gid& gid) {
  const in6_addr* address = reinterpret_cast<const in6_addr*>(gid.raw);
  return IN6_IS_ADDR_V4MAPPED(address);
}

// The index of the interface that has an IPv6 address; 0: none has.
unsigned interfaceOf(const ibv_gid& gid) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return 0;
  unsigned index = 0;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET6) continue;
    const auto* address = reinterpret_cast<const sockaddr_in6*>(one->ifa_addr);
    if (std::memcmp(&address->sin6_addr, gid.raw, sizeof gid.raw) == 0) index = if_nametoindex(one->ifa_name);
  }
  freeifaddrs(list);
  return index;
}

}  // namespace

// createAh(pd, gid, lid): its number
Napi::Value RdmaContext::createAh(const Napi::CallbackInfo& info) {
  const char* call = "createAh";
  if (!ready(info, call)) return {};
  ibv_pd** pd = find(pds_, info[0], call, "protection domain");
  if (pd == nullptr) return {};
  ibv_ah_attr attr{};
  if (!info[1].IsString() || !parseGid(info[1].As<Napi::String>().Utf8Value(), &attr.grh.dgid)) {
    throwRangeError(env_, "createAh: the GID is not a valid GID");
    return {};
  }
  bool good = true;
  attr.dlid = static_cast<uint16_t>(integer(info, 2, call, 0, 65535, &good));
  if (!good) return {};
  attr.is_global = 1;
  attr.grh.hop_limit = 64;
  attr.grh.sgid_index = gidIndex_;
  attr.port_num = port_;
  errno = 0;
  ibv_ah* ah = verbs_->create_ah(*pd, &attr);
  if (ah == nullptr) return refuse(errno == 0 ? EHOSTUNREACH : errno, "create an address handle");
  // Named in 32 bits of a request.
  if (made_ >= UINT32_MAX) {
    verbs_->destroy_ah(ah);
    return refuse(ENOMEM, "create an address handle");
  }
  ahs_[++made_] = ah;
  return number(static_cast<double>(made_));
}

// destroyAh(ah)
Napi::Value RdmaContext::destroyAh(const Napi::CallbackInfo& info) {
  return destroy(info, ahs_, "destroyAh", "address handle", "destroy an address handle",
                 [this](ibv_ah* ah) { return verbs_->destroy_ah(ah); });
}

// A socket that has joined the group, −1 if it is none of IP, −2 with errno if it cannot be joined.
int RdmaContext::joinNetwork(const ibv_gid& group) const {
  if (!ethernet_) return -1;
  const bool mapped = isMapped(group);
  const int fd = socket(mapped ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -2;
  int failed;
  if (mapped) {
    ip_mreq request{};
    std::memcpy(&request.imr_multiaddr, group.raw + 12, 4);
    if (isMapped(gid_)) std::memcpy(&request.imr_interface, gid_.raw + 12, 4);
    failed = setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request);
  } else {
    ipv6_mreq request{};
    std::memcpy(&request.ipv6mr_multiaddr, group.raw, 16);
    request.ipv6mr_interface = interfaceOf(gid_);
    failed = setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &request, sizeof request);
  }
  if (failed == 0) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -2;
}

// attachMcast(qp, gid, lid)
Napi::Value RdmaContext::attachMcast(const Napi::CallbackInfo& info) {
  const char* call = "attachMcast";
  if (!ready(info, call)) return {};
  Qp* qp = find(qps_, info[0], call, "queue pair");
  if (qp == nullptr) return {};
  Membership made;
  if (!info[1].IsString() || !parseGid(info[1].As<Napi::String>().Utf8Value(), &made.gid)) {
    throwRangeError(env_, "attachMcast: the GID is not a valid GID");
    return {};
  }
  bool good = true;
  made.lid = static_cast<uint16_t>(integer(info, 2, call, 0, 65535, &good));
  if (!good) return {};
  made.socket = joinNetwork(made.gid);
  if (made.socket == -2) return refuse(errno, "join a multicast group of IP");
  const int error = verbs_->attach_mcast(qp->qp, &made.gid, made.lid);
  if (error != 0) {
    if (made.socket >= 0) ::close(made.socket);
    return refuse(error < 0 ? errno : error, "attach a queue pair to a multicast group");
  }
  qp->memberships.push_back(made);
  return {};
}

// detachMcast(qp, gid, lid)
Napi::Value RdmaContext::detachMcast(const Napi::CallbackInfo& info) {
  const char* call = "detachMcast";
  if (!ready(info, call)) return {};
  Qp* qp = find(qps_, info[0], call, "queue pair");
  if (qp == nullptr) return {};
  ibv_gid gid{};
  if (!info[1].IsString() || !parseGid(info[1].As<Napi::String>().Utf8Value(), &gid)) {
    throwRangeError(env_, "detachMcast: the GID is not a valid GID");
    return {};
  }
  bool good = true;
  const auto lid = static_cast<uint16_t>(integer(info, 2, call, 0, 65535, &good));
  if (!good) return {};
  for (auto one = qp->memberships.begin(); one != qp->memberships.end(); ++one) {
    if (one->lid != lid || std::memcmp(one->gid.raw, gid.raw, sizeof gid.raw) != 0) continue;
    const int error = verbs_->detach_mcast(qp->qp, &gid, lid);
    if (error != 0) return refuse(error < 0 ? errno : error, "detach a queue pair from a multicast group");
    if (one->socket >= 0) ::close(one->socket);
    qp->memberships.erase(one);
    return {};
  }
  return refuse(EINVAL, "detach a queue pair from a multicast group");
}

// Before it is destroyed with its context.
void RdmaContext::leaveAll(Qp& qp) {
  for (const Membership& one : qp.memberships) {
    verbs_->detach_mcast(qp.qp, &one.gid, one.lid);
    if (one.socket >= 0) ::close(one.socket);
  }
  qp.memberships.clear();
}

}  // namespace onesided

#endif
