#include "process.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>

#include "arguments.h"
#include "exports.h"

namespace onesided {
namespace {

// Asks the kernel to let this process take part in `membarrier`, as one whose cores are made to pass a memory barrier.
napi_value membarrierRegister(napi_env env, napi_callback_info) {
  napi_value result;
  napi_get_boolean(env, syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0, &result);
  return result;
}

// Every core that runs a process registered for it passes a full memory barrier before this returns.
napi_value membarrier(napi_env, napi_callback_info) {
  syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
  return nullptr;
}

napi_value schedYield(napi_env, napi_callback_info) {
  sched_yield();
  return nullptr;
}

// The kernel sends the signal when the *thread* that started this process ends: a launcher must start its ranks from
// its main thread. It is not sent for a parent that was already gone, so the parent's PID comes back for the caller to
// compare.
napi_value parentDeathSignal(napi_env env, napi_callback_info info) {
  Arguments<1> args(env, info);
  int64_t signal;
  if (!readInteger(env, args[0], "parentDeathSignal", "the signal", 0, NSIG - 1, &signal)) return nullptr;
  if (prctl(PR_SET_PDEATHSIG, static_cast<unsigned long>(signal), 0, 0, 0) != 0) {
    throwSystemError(env, errno, "parentDeathSignal: prctl");
    return nullptr;
  }
  napi_value result;
  napi_create_int32(env, getppid(), &result);
  return result;
}

// Gives whether the file is locked now: not if another open file description of it has the lock.
napi_value fileLock(napi_env env, napi_callback_info info) {
  Arguments<1> args(env, info);
  int64_t fd;
  if (!readInteger(env, args[0], "fileLock", "the descriptor", 0, INT_MAX, &fd)) return nullptr;
  const bool locked = flock(static_cast<int>(fd), LOCK_EX | LOCK_NB) == 0;
  if (!locked && errno != EWOULDBLOCK && errno != EINTR) {
    throwSystemError(env, errno, "fileLock: flock");
    return nullptr;
  }
  napi_value result;
  napi_get_boolean(env, locked, &result);
  return result;
}

}  // namespace

void exportProcess(Napi::Env env, Napi::Object exports) {
  exportFunction(env, exports, "membarrierRegister", membarrierRegister);
  exportFunction(env, exports, "membarrier", membarrier);
  exportFunction(env, exports, "schedYield", schedYield);
  exportFunction(env, exports, "fileLock", fileLock);
  exportFunction(env, exports, "parentDeathSignal", parentDeathSignal);
}

}  // namespace onesided
