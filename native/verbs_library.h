// libibverbs, opened when it is first asked for, so that the addon loads where it is not installed. Only what the
// library exports as symbols is listed; ibv_post_send, ibv_poll_cq and the like are inline functions of its header,
// which go through the device's own table.
//
// The same table stands for libfabric (fabric_verbs.cc), whose devices have names and addresses of their own.
#pragma once

#include <infiniband/verbs.h>

// The header makes macros of these, which name other symbols.
#undef ibv_query_port
#undef ibv_reg_mr

#include <cstddef>
#include <cstdint>
#include <string>

namespace onesided {

// Of a device that is an endpoint of libfabric.
struct EndpointDescription {
  std::string provider;
  // Where it is, as peers add it.
  std::string name;
  // What peers put into every message to it.
  uint64_t tag = 0;
  // Its atomics and the processor's lose nothing of each other.
  bool atomicsAgree = false;
  // Writes and messages keep their order.
  bool ordered = false;
  // Why a peer is not reached, if that is known; else empty.
  std::string trouble;
};

struct VerbsLibrary {
  ibv_device** (*get_device_list)(int*);
  void (*free_device_list)(ibv_device**);
  const char* (*get_device_name)(ibv_device*);
  __be64 (*get_device_guid)(ibv_device*);
  ibv_context* (*open_device)(ibv_device*);
  int (*close_device)(ibv_context*);
  int (*query_device)(ibv_context*, ibv_device_attr*);
  int (*query_port)(ibv_context*, uint8_t, _compat_ibv_port_attr*);
  int (*query_gid)(ibv_context*, uint8_t, int, ibv_gid*);
  ibv_pd* (*alloc_pd)(ibv_context*);
  int (*dealloc_pd)(ibv_pd*);
  ibv_mr* (*reg_mr)(ibv_pd*, void*, size_t, int);
  int (*dereg_mr)(ibv_mr*);
  ibv_comp_channel* (*create_comp_channel)(ibv_context*);
  int (*destroy_comp_channel)(ibv_comp_channel*);
  ibv_cq* (*create_cq)(ibv_context*, int, void*, ibv_comp_channel*, int);
  int (*destroy_cq)(ibv_cq*);
  int (*get_cq_event)(ibv_comp_channel*, ibv_cq**, void**);
  void (*ack_cq_events)(ibv_cq*, unsigned int);
  ibv_srq* (*create_srq)(ibv_pd*, ibv_srq_init_attr*);
  int (*modify_srq)(ibv_srq*, ibv_srq_attr*, int);
  int (*destroy_srq)(ibv_srq*);
  ibv_qp* (*create_qp)(ibv_pd*, ibv_qp_init_attr*);
  int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int);
  int (*query_qp)(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*);
  int (*destroy_qp)(ibv_qp*);
  ibv_ah* (*create_ah)(ibv_pd*, ibv_ah_attr*);
  int (*destroy_ah)(ibv_ah*);
  int (*attach_mcast)(ibv_qp*, const ibv_gid*, uint16_t);
  int (*detach_mcast)(ibv_qp*, const ibv_gid*, uint16_t);
  int (*get_async_event)(ibv_context*, ibv_async_event*);
  void (*ack_async_event)(ibv_async_event*);
  // Only libfabric's. Opens "provider" or "provider|address"; what it is; and the GID that stands for a peer.
  ibv_context* (*open_named)(const char* name, std::string* why) = nullptr;
  void (*describe_endpoint)(ibv_context*, EndpointDescription*) = nullptr;
  int (*add_peer)(ibv_context*, const void* name, size_t bytes, uint64_t tag, ibv_gid*) = nullptr;
  // A thread that has polled will sleep until there is an event.
  void (*about_to_sleep)(ibv_context*) = nullptr;
  // It will do something else than to poll: what was received is acknowledged now.
  void (*acknowledge)(ibv_context*) = nullptr;

  // The library, or nullptr and why not. Opened once, and never closed.
  static const VerbsLibrary* open(const char** reason);
};

}  // namespace onesided
