// libfabric, opened when it is first asked for, so that the addon loads where it is not installed. Only what it exports
// as symbols is listed: fi_domain, fi_writemsg and the like are inline functions of its headers, which go through
// tables in its objects.
#pragma once

#include <rdma/fabric.h>

#include <string>

namespace onesided::fabric {

// What is asked for when a provider is opened. Older versions do not know it, newer ones answer as this one did.
constexpr uint32_t kVersion = FI_VERSION(1, 17);

struct Library {
  int (*getinfo)(uint32_t, const char*, const char*, uint64_t, const fi_info*, fi_info**);
  void (*freeinfo)(fi_info*);
  fi_info* (*dupinfo)(const fi_info*);
  int (*fabric)(fi_fabric_attr*, fid_fabric**, void*);
  uint32_t (*version)();
  const char* (*strerror)(int);
  // Its file.
  std::string path;

  // The library, or nullptr and why not. Opened once, and never closed.
  static const Library* open(const char** reason);
};

}  // namespace onesided::fabric
