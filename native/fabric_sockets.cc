// The sockets that libfabric has opened, which it does not show: they are found among the descriptors of the process.
#if __has_include(<infiniband/verbs.h>) && __has_include(<rdma/fabric.h>)

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "fabric_engine.h"

namespace onesided::fabric {
namespace {

// Seconds: how long a host may leave packets unacknowledged; for how long it has if its connection breaks because of
// that; between two looks at the sockets.
constexpr double kBlocked = 10;
constexpr double kBroken = 3;
constexpr double kLookAgain = 1;

// Calls back with each descriptor above those that every process has.
template <typename Visit>
void eachDescriptor(Visit visit) {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    if (fd > 2 && fd != dirfd(folder)) visit(fd);
  }
  closedir(folder);
}

// The host of an address, without its port; empty if it is none of IP. One of IPv4 may be written as one of IPv6.
std::string hostOf(const void* name, size_t bytes) {
  sockaddr_storage storage{};
  std::memcpy(&storage, name, std::min(bytes, sizeof storage));
  if (storage.ss_family == AF_INET && bytes >= sizeof(sockaddr_in)) {
    const auto& host = reinterpret_cast<const sockaddr_in&>(storage).sin_addr;
    return std::string(reinterpret_cast<const char*>(&host), sizeof host);
  }
  if (storage.ss_family != AF_INET6 || bytes < sizeof(sockaddr_in6)) return "";
  const auto& host = reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr;
  const char* text = reinterpret_cast<const char*>(&host);
  return IN6_IS_ADDR_V4MAPPED(&host) ? std::string(text + 12, 4) : std::string(text, sizeof host);
}

std::string hostInWords(const std::string& host) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(host.size() == 4 ? AF_INET : AF_INET6, host.data(), text, sizeof text);
  return text;
}

// Whether bytes were not sent for which their receiver has room. Kernels, and their headers, tell that since 5.4.
template <typename Info>
auto waitsForNetwork(const Info& is, size_t known, int) -> decltype(is.tcpi_snd_wnd > 0) {
  const bool tells = known >= offsetof(Info, tcpi_snd_wnd) + sizeof is.tcpi_snd_wnd;
  return tells && is.tcpi_notsent_bytes > 0 && is.tcpi_snd_wnd >= is.tcpi_snd_mss;
}
template <typename Info>
bool waitsForNetwork(const Info&, size_t, long) {
  return false;
}

// Whether packets wait for an acknowledgement, or for this host's own network.
bool isOnItsWay(const tcp_info& is, size_t known) { return is.tcpi_unacked > 0 || waitsForNetwork(is, known, 0); }

}  // namespace

// The sockets of libfabric are inherited by the programs that this process starts, and would then keep its connections
// open when it is dead. Sockets that were there before the engine are somebody else's (kBefore); those that came when
// it was opened are the engine's (kOpened), and so are later ones of IP, which come with new peers (kLater).
void Engine::markSockets(Sockets when) {
  socketsDue = false;
  eachDescriptor([&](int fd) {
    const int flags = fcntl(fd, F_GETFD);
    if (flags < 0 || (flags & FD_CLOEXEC) != 0) return;
    if (when == Sockets::kBefore) {
      foreign.insert(fd);
      return;
    }
    int domain = 0;
    socklen_t bytes = sizeof domain;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) != 0) return;
    const bool ours = when == Sockets::kOpened || domain == AF_INET || domain == AF_INET6;
    if (ours && foreign.count(fd) == 0) fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
  });
}

// Finds hosts that acknowledge nothing although packets are on their way to them: a network between them loses these,
// most likely since they are too large for it, while smaller ones pass. The system would try for a quarter of an hour.
// The host of a process that is stopped goes on acknowledging, as long as there is room, and then nothing is on its
// way. Nobody is looked at unless some request `waits`.
void Engine::lookForBlocked(bool waits, double time) {
  if (!waits) {
    unacknowledged.clear();
    return;
  }
  if (time - lookedForBlocked < kLookAgain) return;
  lookedForBlocked = time;
  std::unordered_map<int, Unacknowledged> found;
  eachDescriptor([&](int fd) {
    sockaddr_storage name{};
    socklen_t bytes = sizeof name;
    tcp_info is{};
    socklen_t room = sizeof is;
    if (foreign.count(fd) != 0 || getpeername(fd, reinterpret_cast<sockaddr*>(&name), &bytes) != 0) return;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &is, &room) != 0 || !isOnItsWay(is, room)) return;
    const auto before = unacknowledged.find(fd);
    const bool same = before != unacknowledged.end() && before->second.acknowledged == is.tcpi_bytes_acked;
    found[fd] = {is.tcpi_bytes_acked, same ? before->second.since : time, hostOf(&name, bytes), is.tcpi_snd_mss};
    if (time - found[fd].since >= kBlocked) blocked(found[fd], time);
  });
  unacknowledged.swap(found);
}

// A host has left packets unacknowledged for long.
void Engine::blocked(const Unacknowledged& packets, double time) {
  const std::string& host = packets.host;
  for (const auto& [key, number] : peersByName) {
    if (host.empty() || hostOf(key.data(), key.size()) != host) continue;
    peers[static_cast<size_t>(number)]->blocked = true;
    trouble = "packets of " + std::to_string(packets.packet) + " bytes to " + hostInWords(host) +
              " were not acknowledged for " + std::to_string(static_cast<int>(time - packets.since)) +
              " s: if smaller ones are, a network between the hosts takes none so large (ip link set dev … mtu 1280)";
  }
}

// Whether that is why a connection to it has broken: libfabric gives up a socket that has an error to tell before the
// system does.
bool Engine::wasBlocked(const Peer& peer) {
  const double time = now();
  for (const auto& [key, number] : peersByName) {
    if (peers[static_cast<size_t>(number)].get() != &peer) continue;
    const std::string host = hostOf(key.data(), key.size());
    for (const auto& [fd, packets] : unacknowledged)
      if (packets.host == host && time - packets.since >= kBroken) blocked(packets, time);
  }
  return peer.blocked;
}

}  // namespace onesided::fabric

#endif
