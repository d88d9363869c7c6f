// RDMA devices: what src/providers/rdma-core/ needs of libibverbs, nearly one call for one.
//
// A context owns everything that is made from it, by numbers; JavaScript never holds a pointer of the library's.
// Numbers are checked, so that a wrong one is an error. Order of destruction: queue pairs, shared receive queues,
// completion queues, regions, domains, the context.
//
// All calls come from the context's JavaScript thread. One more thread waits for events (rdma_events.cc), one for each
// window that asks for it serves other ranks (rdma_helper.h), and one carries out barriers of kind `adapter`
// (rdma_barrier.h). Comments at the methods give their arguments: rdma_context.cc, rdma_queues.cc,
// rdma_data_path.cc, rdma_events.cc, rdma_helper.cc, rdma_barrier.cc.
#include "rdma.h"

#if !__has_include(<infiniband/verbs.h>)

namespace onesided {

void exportRdma(Napi::Env env, Napi::Object exports) {
  exports.Set(
      "rdmaReason",
      Napi::String::New(
          env,
          "the addon was built without infiniband/verbs.h (apt-get install libibverbs-dev, then npx onesided build)"));
}

}  // namespace onesided

#else

#include "fabric.h"
#include "rdma_context.h"
#include "rdma_devices.h"

namespace onesided {

void exportRdma(Napi::Env env, Napi::Object exports) {
  exports.Set("rdmaDevices", Napi::Function::New(env, rdmaDevices, "rdmaDevices"));
  exports.Set("RdmaContext", RdmaContext::define(env));
  exportFabric(env, exports);
}

}  // namespace onesided

#endif
