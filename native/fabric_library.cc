// See fabric_library.h. Without the headers this file is empty, and fabric.cc says why.
#if __has_include(<infiniband/verbs.h>) && __has_include(<rdma/fabric.h>)

#include "fabric_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>

namespace onesided::fabric {
namespace {

std::once_flag once;
Library library;
bool opened = false;
std::string failure;

template <typename F>
bool find(void* handle, const char* name, F* function) {
  // The symbols have versions. Whichever version this gives is right: structures have only grown at their ends, and
  // the library itself makes those that it is given (fi_dupinfo).
  *function = reinterpret_cast<F>(dlsym(handle, name));
  if (*function != nullptr) return true;
  failure = std::string("libfabric.so.1 has no ") + name;
  return false;
}

// Where it may be: named by the environment, where Amazon's installer puts it, or where the system finds it.
void* openFile(const char* named) {
  if (named != nullptr) return dlopen(named, RTLD_NOW | RTLD_LOCAL);
  for (const char* amazons : {"/opt/amazon/efa/lib64/libfabric.so.1", "/opt/amazon/efa/lib/libfabric.so.1"}) {
    void* handle = dlopen(amazons, RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) return handle;
  }
  return dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
}

void load() {
  const char* named = std::getenv("ONESIDED_LIBFABRIC");
  if (named != nullptr && *named == '\0') named = nullptr;
  void* handle = openFile(named);
  if (handle == nullptr) {
    failure = std::string(dlerror()) +
              (named != nullptr ? " (ONESIDED_LIBFABRIC names it)" : " (apt-get install libfabric1)");
    return;
  }
  Library& l = library;
  if (!find(handle, "fi_getinfo", &l.getinfo) || !find(handle, "fi_freeinfo", &l.freeinfo) ||
      !find(handle, "fi_dupinfo", &l.dupinfo) || !find(handle, "fi_fabric", &l.fabric) ||
      !find(handle, "fi_version", &l.version) || !find(handle, "fi_strerror", &l.strerror)) {
    return;
  }
  Dl_info where{};
  const bool found = dladdr(reinterpret_cast<void*>(l.getinfo), &where) != 0 && where.dli_fname != nullptr;
  l.path = found ? where.dli_fname : "libfabric.so.1";
  const uint32_t version = l.version();
  if (version < kVersion) {
    failure = l.path + " is version " + std::to_string(FI_MAJOR(version)) + "." + std::to_string(FI_MINOR(version)) +
              ", which is too old: 1.17 or later is needed (ONESIDED_LIBFABRIC=path names another one)";
    return;
  }
  opened = true;
}

}  // namespace

const Library* Library::open(const char** reason) {
  std::call_once(once, load);
  if (opened) return &library;
  *reason = failure.c_str();
  return nullptr;
}

}  // namespace onesided::fabric

#endif
