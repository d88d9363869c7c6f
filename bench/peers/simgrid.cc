// Messages of 8 bytes between actors of SimGrid, each on a host of its own: each sends to the next one and receives
// from the one before it, sixteen under way.
#include <simgrid/s4u.hpp>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace s4u = simgrid::s4u;

namespace {

constexpr int kBatch = 16;
double value = 42;

void rank(s4u::Mailbox* next, s4u::Mailbox* mine, int each) {
  for (int i = 0; i < each; i += kBatch) {
    std::vector<s4u::CommPtr> sent;
    for (int k = 0; k < kBatch; k++) sent.push_back(next->put_async(&value, 8));
    for (int k = 0; k < kBatch; k++) mine->get<double>();
    for (auto& comm : sent) comm->wait();
  }
}

}  // namespace

int main(int argc, char** argv) {
  s4u::Engine engine(&argc, argv);
  const int ranks = std::atoi(argv[1]);
  const int each = std::atoi(argv[2]);
  auto* zone = s4u::create_star_zone("cluster");
  std::vector<s4u::Host*> hosts;
  for (int i = 0; i < ranks; i++) {
    auto* host = zone->create_host("host" + std::to_string(i), 1e9);
    auto* link = zone->create_split_duplex_link("link" + std::to_string(i), 1e9)->set_latency(2e-6)->seal();
    zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, {{link, s4u::LinkInRoute::Direction::UP}}, true);
    hosts.push_back(host);
  }
  zone->seal();
  for (int i = 0; i < ranks; i++) {
    auto* next = s4u::Mailbox::by_name(std::to_string((i + 1) % ranks));
    auto* mine = s4u::Mailbox::by_name(std::to_string(i));
    s4u::Actor::create("rank" + std::to_string(i), hosts[i], rank, next, mine, each);
  }
  const auto start = std::chrono::steady_clock::now();
  engine.run();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("{\"seconds\":%.6f,\"gibibytes\":%.6f}\n", seconds.count(), usage.ru_maxrss / 1048576.0);
}
