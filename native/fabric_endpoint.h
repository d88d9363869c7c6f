// What libfabric offers on this machine.
#pragma once

#include <string>
#include <vector>

#include "fabric_library.h"

namespace onesided::fabric {

struct Offer {
  // libfabric's names: "tcp;ofi_rxm"; of a network or device: "eth0".
  std::string provider;
  std::string domain;
  // Of IP; empty for others.
  std::string address;
};

// The providers that have what the library needs: messages by name, remote memory, 64-bit atomics.
std::vector<Offer> offers(const Library& library);

}  // namespace onesided::fabric
