// See verbs_library.h. Without the header this file is empty, and rdma.cc says why.
#if __has_include(<infiniband/verbs.h>)

#include "verbs_library.h"

#include <dlfcn.h>

#include <mutex>
#include <string>

namespace onesided {
namespace {

std::once_flag once;
VerbsLibrary library;
bool opened = false;
std::string failure;

template <typename F>
bool find(void* handle, const char* name, F* function) {
  *function = reinterpret_cast<F>(dlsym(handle, name));
  if (*function != nullptr) return true;
  failure = std::string("libibverbs.so.1 has no ") + name + "; this addon needs a newer version";
  return false;
}

void load() {
  void* handle = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    failure = std::string(dlerror()) + " (apt-get install libibverbs1 ibverbs-providers)";
    return;
  }
  VerbsLibrary& l = library;
  opened = find(handle, "ibv_get_device_list", &l.get_device_list) &&
           find(handle, "ibv_free_device_list", &l.free_device_list) &&
           find(handle, "ibv_get_device_name", &l.get_device_name) &&
           find(handle, "ibv_get_device_guid", &l.get_device_guid) &&
           find(handle, "ibv_open_device", &l.open_device) && find(handle, "ibv_close_device", &l.close_device) &&
           find(handle, "ibv_query_device", &l.query_device) && find(handle, "ibv_query_port", &l.query_port) &&
           find(handle, "ibv_query_gid", &l.query_gid) && find(handle, "ibv_alloc_pd", &l.alloc_pd) &&
           find(handle, "ibv_dealloc_pd", &l.dealloc_pd) && find(handle, "ibv_reg_mr", &l.reg_mr) &&
           find(handle, "ibv_dereg_mr", &l.dereg_mr) &&
           find(handle, "ibv_create_comp_channel", &l.create_comp_channel) &&
           find(handle, "ibv_destroy_comp_channel", &l.destroy_comp_channel) &&
           find(handle, "ibv_create_cq", &l.create_cq) && find(handle, "ibv_destroy_cq", &l.destroy_cq) &&
           find(handle, "ibv_get_cq_event", &l.get_cq_event) && find(handle, "ibv_ack_cq_events", &l.ack_cq_events) &&
           find(handle, "ibv_create_srq", &l.create_srq) && find(handle, "ibv_modify_srq", &l.modify_srq) &&
           find(handle, "ibv_destroy_srq", &l.destroy_srq) && find(handle, "ibv_create_qp", &l.create_qp) &&
           find(handle, "ibv_modify_qp", &l.modify_qp) && find(handle, "ibv_query_qp", &l.query_qp) &&
           find(handle, "ibv_destroy_qp", &l.destroy_qp) &&
           find(handle, "ibv_create_ah", &l.create_ah) && find(handle, "ibv_destroy_ah", &l.destroy_ah) &&
           find(handle, "ibv_attach_mcast", &l.attach_mcast) && find(handle, "ibv_detach_mcast", &l.detach_mcast) &&
           find(handle, "ibv_get_async_event", &l.get_async_event) &&
           find(handle, "ibv_ack_async_event", &l.ack_async_event);
}

}  // namespace

const VerbsLibrary* VerbsLibrary::open(const char** reason) {
  std::call_once(once, load);
  if (opened) return &library;
  *reason = failure.c_str();
  return nullptr;
}

}  // namespace onesided

#endif
