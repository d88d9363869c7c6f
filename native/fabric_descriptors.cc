// What to sleep on until the engine has something.
#if __has_include(<infiniband/verbs.h>) && __has_include(<rdma/fabric.h>)

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "fabric_engine.h"

namespace onesided::fabric {
namespace {

// How deep descriptors are looked for in each other: the completions' own, the provider's, its sockets'.
constexpr int kDeepest = 4;

bool isSet(int fd) {
  char text[64] = "";
  const ssize_t length = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), text, sizeof text - 1);
  return length > 0 && std::strcmp(text, "anon_inode:[eventpoll]") == 0;
}

// The descriptors in a set of epoll, as the kernel tells them: lines that begin with `tfd:`.
std::vector<int> inSet(int fd) {
  std::string text;
  const int file = open(("/proc/self/fdinfo/" + std::to_string(fd)).c_str(), O_RDONLY | O_CLOEXEC);
  char piece[4096];
  for (ssize_t n; file >= 0 && (n = read(file, piece, sizeof piece)) > 0;) text.append(piece, static_cast<size_t>(n));
  if (file >= 0) close(file);
  std::vector<int> found;
  constexpr char kMember[] = "\ntfd:";
  for (size_t at = text.find(kMember); at != std::string::npos; at = text.find(kMember, at + 1))
    found.push_back(std::atoi(text.c_str() + at + sizeof kMember - 1));
  return found;
}

// The sets that have no other sets in them.
void innermost(int fd, int depth, std::vector<int>* found) {
  bool outer = false;
  for (const int member : inSet(fd)) {
    if (depth >= kDeepest || !isSet(member)) continue;
    outer = true;
    innermost(member, depth + 1, found);
  }
  if (!outer) found->push_back(fd);
}

}  // namespace

// libfabric 1.17's `net` has a mark that something was completed, which makes the queue's descriptor readable, and
// never takes it back. Nothing is completed but by who looks, so what brings something are the sockets, and these it
// keeps in sets of their own, inside that of the queue.
bool Engine::findDescriptors(int ofQueue) {
  if (provider != "net;ofi_rxm") {
    descriptors.push_back(ofQueue);
    return true;
  }
  innermost(ofQueue, 0, &descriptors);
  return descriptors.size() > 1;
}

}  // namespace onesided::fabric

#endif
