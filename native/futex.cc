#include "futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "arguments.h"
#include "exports.h"

namespace onesided {
namespace {

// Longer ones wait for ever: 2^31 seconds.
constexpr double kForeverMs = 2147483648000.0;

napi_value wait(napi_env env, napi_callback_info info) {
  Arguments<4> args(env, info);
  int32_t* address;
  int64_t expected;
  double timeoutMs;
  if (!readWord(env, args[0], args[1], "futexWait", &address) ||
      !readInteger(env, args[2], "futexWait", "expected", INT32_MIN, INT32_MAX, &expected) ||
      !readTimeout(env, args[3], "futexWait", &timeoutMs)) {
    return nullptr;
  }
  napi_value result;
  napi_create_int32(env, futexWait(address, static_cast<int32_t>(expected), timeoutMs), &result);
  return result;
}

napi_value wake(napi_env env, napi_callback_info info) {
  Arguments<3> args(env, info);
  int32_t* address;
  int64_t count;
  if (!readWord(env, args[0], args[1], "futexWake", &address) ||
      !readInteger(env, args[2], "futexWake", "count", 0, INT_MAX, &count)) {
    return nullptr;
  }
  napi_value result;
  napi_create_int32(env, futexWake(address, static_cast<int>(count)), &result);
  return result;
}

}  // namespace

FutexResult futexWait(const int32_t* address, int32_t expected, double timeoutMs) {
  timespec limit;
  timespec* timeout = nullptr;
  if (timeoutMs < kForeverMs) {
    const auto seconds = static_cast<time_t>(timeoutMs / 1000);
    limit.tv_sec = seconds;
    limit.tv_nsec = static_cast<long>((timeoutMs - 1000.0 * static_cast<double>(seconds)) * 1e6);
    if (limit.tv_nsec > 999999999) limit.tv_nsec = 999999999;
    timeout = &limit;
  }
  if (syscall(SYS_futex, address, FUTEX_WAIT, expected, timeout, nullptr, 0) == 0) return kWoken;
  if (errno == EAGAIN) return kChanged;
  return errno == ETIMEDOUT ? kTimedOut : kWoken;
}

int futexWake(const int32_t* address, int count) {
  // The kernel would wake one.
  if (count == 0) return 0;
  const long woken = syscall(SYS_futex, address, FUTEX_WAKE, count, nullptr, nullptr, 0);
  return woken < 0 ? 0 : static_cast<int>(woken);
}

void exportFutex(Napi::Env env, Napi::Object exports) {
  exportFunction(env, exports, "futexWait", wait);
  exportFunction(env, exports, "futexWake", wake);
}

}  // namespace onesided
