// An endpoint of libfabric that sends whatever it is told, for tests of what the provider believes
// (test/rdma/stranger.ts). The argument is an address of this host. It says where it is ("name" and hexadecimal
// digits), and then each message that comes ("got"). Commands, a line each:
//
//   to NAME                    whom the next messages are for
//   send COUNT BYTES           so many times; "sent" when libfabric has taken them
//   deaf                       looks at nothing from now on, so that others cannot get rid of what they send it
//   hear
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>

namespace {

constexpr int kReceives = 256;
constexpr size_t kRoom = 32768;

fid_ep* ep = nullptr;
fid_cq* cq = nullptr;
fid_av* av = nullptr;
bool deaf = false;

struct Receive {
  fi_context2 context;
  unsigned char data[kRoom];
};

void check(ssize_t result, const char* what) {
  if (result == 0) return;
  std::fprintf(stderr, "%s: %s\n", what, fi_strerror(static_cast<int>(-result)));
  std::exit(1);
}

std::string hexOf(const void* from, size_t bytes) {
  std::string text;
  char digits[3];
  for (size_t i = 0; i < bytes; i++) {
    std::snprintf(digits, sizeof digits, "%02x", static_cast<const unsigned char*>(from)[i]);
    text += digits;
  }
  return text;
}

std::string bytesOf(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes += static_cast<char>(std::strtoul(text.substr(i, 2).c_str(), nullptr, 16));
  return bytes;
}

void post(Receive* receive) {
  check(fi_recv(ep, receive->data, kRoom, nullptr, FI_ADDR_UNSPEC, &receive->context), "fi_recv");
}

void progress() {
  fi_cq_msg_entry entry;
  ssize_t got;
  while ((got = fi_cq_read(cq, &entry, 1)) != -FI_EAGAIN) {
    if (got == -FI_EAVAIL) {
      fi_cq_err_entry error{};
      fi_cq_readerr(cq, &error, 0);
      continue;
    }
    if (got != 1 || (entry.flags & FI_RECV) == 0) continue;
    auto* receive = reinterpret_cast<Receive*>(entry.op_context);
    std::printf("got %s\n", hexOf(receive->data, entry.len).c_str());
    post(receive);
  }
  std::fflush(stdout);
}

void open(const char* address) {
  fi_info* hints = fi_allocinfo();
  hints->caps = FI_MSG;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_BASIC;
  hints->domain_attr->threading = FI_THREAD_SAFE;
  hints->fabric_attr->prov_name = strdup("tcp;ofi_rxm");
  fi_info* info = nullptr;
  check(fi_getinfo(FI_VERSION(1, 17), address, nullptr, FI_SOURCE, hints, &info), "fi_getinfo");
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  check(fi_fabric(info->fabric_attr, &fabric, nullptr), "fi_fabric");
  check(fi_domain(fabric, info, &domain, nullptr), "fi_domain");
  fi_av_attr avAttr{};
  avAttr.type = FI_AV_TABLE;
  check(fi_av_open(domain, &avAttr, &av, nullptr), "fi_av_open");
  fi_cq_attr cqAttr{};
  cqAttr.format = FI_CQ_FORMAT_MSG;
  cqAttr.size = 4096;
  check(fi_cq_open(domain, &cqAttr, &cq, nullptr), "fi_cq_open");
  check(fi_endpoint(domain, info, &ep, nullptr), "fi_endpoint");
  check(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
  check(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
  check(fi_enable(ep), "fi_enable");
  for (int i = 0; i < kReceives; i++) post(new Receive());
  unsigned char name[64];
  size_t bytes = sizeof name;
  check(fi_getname(&ep->fid, name, &bytes), "fi_getname");
  std::printf("name %s\n", hexOf(name, bytes).c_str());
  std::fflush(stdout);
}

// The peer may not be there yet: it tries again, like one that waits for it.
void send(fi_addr_t to, int count, const std::string& message) {
  for (int i = 0; i < count; i++) {
    ssize_t result;
    while ((result = fi_inject(ep, message.data(), message.size(), to)) != 0) {
      if (result != -FI_EAGAIN && result != -FI_ECONNREFUSED) check(result, "fi_inject");
      if (!deaf) progress();
      usleep(50);
    }
  }
  std::printf("sent\n");
  std::fflush(stdout);
}

}  // namespace

int main(int, char** arguments) {
  open(arguments[1]);
  fi_addr_t to = FI_ADDR_UNSPEC;
  std::string pending;
  for (;;) {
    if (!deaf) progress();
    pollfd input{0, POLLIN, 0};
    if (poll(&input, 1, 1) <= 0) continue;
    char part[65536];
    const ssize_t got = read(0, part, sizeof part);
    if (got <= 0) return 0;
    pending.append(part, static_cast<size_t>(got));
    for (size_t end; (end = pending.find('\n')) != std::string::npos; pending.erase(0, end + 1)) {
      std::istringstream line(pending.substr(0, end));
      std::string command;
      std::string text;
      int count = 0;
      line >> command;
      if (command == "to") {
        line >> text;
        const std::string name = bytesOf(text);
        if (fi_av_insert(av, name.data(), 1, &to, 0, nullptr) != 1) return 1;
      } else if (command == "send") {
        line >> count >> text;
        send(to, count, bytesOf(text));
      } else {
        deaf = command == "deaf";
      }
    }
  }
}
