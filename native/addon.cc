// The addon's entry. It is context aware: loaded once for each thread that asks, with state of its own there.
#include <napi.h>

#include "accumulate.h"
#include "copy.h"
#include "futex.h"
#include "remapped_memory.h"
#include "memory.h"
#include "parker.h"
#include "pmix.h"
#include "process.h"
#include "process_memory.h"
#include "process_watch.h"
#include "rdma.h"
#include "server.h"

namespace {

Napi::Object initialize(Napi::Env env, Napi::Object exports) {
  exports.Set("version", Napi::String::New(env, ONESIDED_VERSION));
  onesided::exportMemory(env, exports);
  onesided::exportRemappedMemory(env, exports);
  onesided::exportFutex(env, exports);
  onesided::exportParker(env, exports);
  onesided::exportPmix(env, exports);
  onesided::exportProcess(env, exports);
  onesided::exportAccumulate(env, exports);
  onesided::exportCopy(env, exports);
  onesided::exportProcessMemory(env, exports);
  onesided::exportProcessWatch(env, exports);
  onesided::exportRdma(env, exports);
  onesided::exportServer(env, exports);
  return exports;
}

}  // namespace

NODE_API_MODULE(onesided, initialize)
