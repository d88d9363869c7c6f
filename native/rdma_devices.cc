// What there is of RDMA devices on this machine: their names, limits, ports and GIDs.
#if __has_include(<infiniband/verbs.h>)

#include "rdma_devices.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "arguments.h"

namespace onesided {

const char* stateOfPort(int state) {
  static const char* names[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};
  return state >= 0 && state < 6 ? names[state] : "UNKNOWN";
}

int bytesOfMtu(int mtu) { return mtu >= 1 && mtu <= 5 ? 128 << mtu : 0; }

std::string hexOf(const ibv_gid& gid) {
  char text[40];
  const uint8_t* b = gid.raw;
  std::snprintf(text, sizeof text, "%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x", b[0],
                b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
  return text;
}

// "IB/RoCE v1" or "RoCE v2", as the kernel says it; empty if it does not.
std::string typeOfGid(const char* device, int port, int index) {
  char path[256];
  std::snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/%d/gid_attrs/types/%d", device, port, index);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  char text[64];
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  std::string type(text, n > 0 ? static_cast<size_t>(n) : 0);
  while (!type.empty() && type.back() == '\n') type.pop_back();
  return type;
}

Napi::Object limitsOf(Napi::Env env, const ibv_device_attr& a) {
  Napi::Object limits = Napi::Object::New(env);
  const auto set = [&](const char* name, double value) { limits.Set(name, Napi::Number::New(env, value)); };
  set("maxQp", a.max_qp);
  set("maxQpWr", a.max_qp_wr);
  set("maxSge", a.max_sge);
  set("maxCq", a.max_cq);
  set("maxCqe", a.max_cqe);
  set("maxMr", a.max_mr);
  set("maxMrSize", static_cast<double>(std::min<uint64_t>(a.max_mr_size, static_cast<uint64_t>(kMaxSafeInteger))));
  set("maxPd", a.max_pd);
  set("maxSrq", a.max_srq);
  set("maxSrqWr", a.max_srq_wr);
  set("maxSrqSge", a.max_srq_sge);
  set("maxAh", a.max_ah);
  set("maxMcastGrp", a.max_mcast_grp);
  set("maxMcastQpAttach", a.max_mcast_qp_attach);
  set("maxTotalMcastQpAttach", a.max_total_mcast_qp_attach);
  set("maxQpInitRdAtom", a.max_qp_init_rd_atom);
  set("maxQpRdAtom", a.max_qp_rd_atom);
  set("atomics", a.atomic_cap);
  return limits;
}

Napi::Array portsOf(Napi::Env env, const VerbsLibrary& verbs, ibv_context* context, const char* name, int count) {
  Napi::Array ports = Napi::Array::New(env);
  for (int number = 1; number <= count; number++) {
    ibv_port_attr attr{};
    if (verbs.query_port(context, static_cast<uint8_t>(number), reinterpret_cast<_compat_ibv_port_attr*>(&attr)) != 0)
      continue;
    Napi::Object port = Napi::Object::New(env);
    port.Set("port", number);
    port.Set("state", stateOfPort(attr.state));
    port.Set("linkLayer", attr.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand");
    port.Set("lid", attr.lid);
    port.Set("activeMtu", bytesOfMtu(attr.active_mtu));
    port.Set("maxMessageBytes", static_cast<double>(attr.max_msg_sz));
    Napi::Array gids = Napi::Array::New(env);
    for (int index = 0; index < attr.gid_tbl_len && index < 256; index++) {
      ibv_gid gid{};
      static const ibv_gid nothing{};
      if (verbs.query_gid(context, static_cast<uint8_t>(number), index, &gid) != 0) continue;
      if (std::memcmp(&gid, &nothing, sizeof gid) == 0) continue;
      Napi::Object entry = Napi::Object::New(env);
      entry.Set("index", index);
      entry.Set("gid", hexOf(gid));
      entry.Set("type", typeOfGid(name, number, index));
      gids.Set(gids.Length(), entry);
    }
    port.Set("gids", gids);
    ports.Set(ports.Length(), port);
  }
  return ports;
}

std::string fileOf(const ibv_device* device) { return std::string("/dev/infiniband/") + device->dev_name; }

// Why a device could not be opened. The library tries other ways when its file cannot be opened, and tells of the last
// one.
int openError(const ibv_device* device, int error) {
  if (access(fileOf(device).c_str(), R_OK | W_OK) != 0) return errno;
  return error != 0 ? error : EIO;
}

const VerbsLibrary* verbsOrThrow(Napi::Env env) {
  const char* reason = "";
  const VerbsLibrary* verbs = VerbsLibrary::open(&reason);
  if (verbs == nullptr) napi_throw_error(env, "ENOENT", reason);
  return verbs;
}

// rdmaDevices(): all devices of this machine, with their ports and limits. A device that cannot be opened says why.
Napi::Value rdmaDevices(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  const VerbsLibrary* verbs = verbsOrThrow(env);
  if (verbs == nullptr) return {};
  Napi::Array result = Napi::Array::New(env);
  int count = 0;
  ibv_device** list = verbs->get_device_list(&count);
  // ENOSYS: a kernel without InfiniBand.
  if (list == nullptr) return result;
  for (int i = 0; i < count; i++) {
    Napi::Object device = Napi::Object::New(env);
    const char* name = verbs->get_device_name(list[i]);
    device.Set("name", name);
    device.Set("file", fileOf(list[i]));
    device.Set("transport", list[i]->transport_type == IBV_TRANSPORT_IWARP ? "iWARP" : "InfiniBand");
    ibv_context* context = verbs->open_device(list[i]);
    ibv_device_attr attr{};
    const int error = context == nullptr ? openError(list[i], errno) : verbs->query_device(context, &attr);
    if (error != 0) {
      device.Set("refused", std::strerror(error));
      device.Set("refusedCode", errnoName(error));
    } else {
      device.Set("firmware", attr.fw_ver);
      device.Set("limits", limitsOf(env, attr));
      device.Set("ports", portsOf(env, *verbs, context, name, attr.phys_port_cnt));
    }
    if (context != nullptr) verbs->close_device(context);
    result.Set(result.Length(), device);
  }
  verbs->free_device_list(list);
  return result;
}

}  // namespace onesided

#endif
