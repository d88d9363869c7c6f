// The kernel copies between two processes' memory (process_vm_readv, process_vm_writev): one system call, one copy, and
// nothing to do for the other process. It checks both ranges, so an address that is not mapped over there is an error
// (EFAULT) and never a signal. Within one process it does the same, which is what ranks that are threads use.
//
// A call that ends early has copied whole bytes from the beginning: it goes on from there, and the error, if there is
// one, comes with the next attempt, which then copies nothing.

#include "process_memory.h"

#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cmath>

#include "arguments.h"
#include "exports.h"

namespace onesided {
namespace {

// The kernel takes 1,024 (UIO_MAXIOV); so many fit on the stack comfortably, and more do not make a byte cheaper.
constexpr size_t kBatch = 256;

// Copies all, or gives an errno.
int copyAll(bool write, pid_t pid, iovec* local, iovec* remote, size_t count) {
  size_t first = 0;
  while (first < count) {
    const ssize_t n = write ? process_vm_writev(pid, local + first, count - first, remote + first, count - first, 0)
                            : process_vm_readv(pid, local + first, count - first, remote + first, count - first, 0);
    if (n < 0) return errno;
    auto done = static_cast<size_t>(n);
    const size_t before = first;
    while (first < count && done >= local[first].iov_len) done -= local[first++].iov_len;
    // Nothing was copied, and it was not for being empty.
    if (n == 0 && first == before) return EFAULT;
    if (first == count) break;
    local[first].iov_base = static_cast<char*>(local[first].iov_base) + done;
    local[first].iov_len -= done;
    remote[first].iov_base = static_cast<char*>(remote[first].iov_base) + done;
    remote[first].iov_len -= done;
  }
  return 0;
}

napi_value fail(napi_env env, int error, const char* call, int64_t pid) {
  throwSystemError(env, error, "%s: memory of process %lld", call, static_cast<long long>(pid));
  return nullptr;
}

// (pid, address, bytes view, byte offset, count)
napi_value copy(napi_env env, napi_callback_info info, bool write, const char* call) {
  Arguments<5> args(env, info);
  int64_t pid;
  int64_t address;
  int64_t offset;
  int64_t count;
  Bytes bytes;
  if (!readInteger(env, args[0], call, "the process", 1, INT_MAX, &pid) ||
      !readInteger(env, args[1], call, "the address", 0, kMaxSafeInteger, &address) ||
      !readBytes(env, args[2], call, "the local memory", &bytes) ||
      !readInteger(env, args[3], call, "the offset", 0, static_cast<double>(bytes.length), &offset) ||
      !readInteger(env, args[4], call, "the count", 0, static_cast<double>(bytes.length) - static_cast<double>(offset),
                   &count)) {
    return nullptr;
  }
  if (count == 0) return nullptr;
  iovec local = {bytes.data + offset, static_cast<size_t>(count)};
  iovec remote = {reinterpret_cast<void*>(address), static_cast<size_t>(count)};
  const int error = copyAll(write, static_cast<pid_t>(pid), &local, &remote, 1);
  return error == 0 ? nullptr : fail(env, error, call, pid);
}

napi_value processRead(napi_env env, napi_callback_info info) { return copy(env, info, false, "processRead"); }
napi_value processWrite(napi_env env, napi_callback_info info) { return copy(env, info, true, "processWrite"); }

// (pid, address, bytes view, segments, count): `segments` holds three numbers each: local offset, remote offset, bytes.
napi_value copySegments(napi_env env, napi_callback_info info, bool write, const char* call) {
  Arguments<5> args(env, info);
  int64_t pid;
  int64_t address;
  int64_t count;
  Bytes bytes;
  Bytes segments;
  if (!readInteger(env, args[0], call, "the process", 1, INT_MAX, &pid) ||
      !readInteger(env, args[1], call, "the address", 0, kMaxSafeInteger, &address) ||
      !readBytes(env, args[2], call, "the local memory", &bytes) ||
      !readBytes(env, args[3], call, "the segments", &segments)) {
    return nullptr;
  }
  if (segments.type != napi_float64_array) {
    throwTypeError(env, "%s: the segments must be a Float64Array", call);
    return nullptr;
  }
  const auto most = static_cast<double>(segments.elements / 3);
  if (!readInteger(env, args[4], call, "the count", 0, most, &count)) return nullptr;
  const auto* numbers = reinterpret_cast<const double*>(segments.data);
  iovec local[kBatch];
  iovec remote[kBatch];
  const auto total = static_cast<size_t>(count);
  for (size_t first = 0; first < total; first += kBatch) {
    const size_t n = std::min(kBatch, total - first);
    for (size_t i = 0; i < n; i++) {
      const double at = numbers[3 * (first + i)];
      const double there = numbers[3 * (first + i) + 1];
      const double length = numbers[3 * (first + i) + 2];
      if (!whole(at, static_cast<double>(bytes.length)) || !whole(length, static_cast<double>(bytes.length) - at) ||
          !(std::abs(there) <= kMaxSafeInteger) || there != std::trunc(there) ||
          !whole(static_cast<double>(address) + there, kMaxSafeInteger)) {
        throwRangeError(env, "%s: segment %zu lies outside the local memory of %zu bytes, or has no valid address",
                        call, first + i, bytes.length);
        return nullptr;
      }
      local[i] = {bytes.data + static_cast<size_t>(at), static_cast<size_t>(length)};
      remote[i] = {reinterpret_cast<void*>(address + static_cast<int64_t>(there)), static_cast<size_t>(length)};
    }
    const int error = copyAll(write, static_cast<pid_t>(pid), local, remote, n);
    if (error != 0) return fail(env, error, call, pid);
  }
  return nullptr;
}

napi_value processReadSegments(napi_env env, napi_callback_info info) {
  return copySegments(env, info, false, "processReadSegments");
}
napi_value processWriteSegments(napi_env env, napi_callback_info info) {
  return copySegments(env, info, true, "processWriteSegments");
}

napi_value addressOf(napi_env env, napi_callback_info info) {
  Arguments<1> args(env, info);
  Bytes bytes;
  if (!readBytes(env, args[0], "addressOf", "the memory", &bytes)) return nullptr;
  napi_value result;
  napi_create_double(env, static_cast<double>(reinterpret_cast<uintptr_t>(bytes.data)), &result);
  return result;
}

// Yama lets only a parent attach to its children unless they say otherwise. Without Yama the call fails, and nobody
// minds.
napi_value allowAttach(napi_env, napi_callback_info) {
#ifdef PR_SET_PTRACER
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
#endif
  return nullptr;
}

}  // namespace

void exportProcessMemory(Napi::Env env, Napi::Object exports) {
  exportFunction(env, exports, "processRead", processRead);
  exportFunction(env, exports, "processWrite", processWrite);
  exportFunction(env, exports, "processReadSegments", processReadSegments);
  exportFunction(env, exports, "processWriteSegments", processWriteSegments);
  exportFunction(env, exports, "addressOf", addressOf);
  exportFunction(env, exports, "allowAttach", allowAttach);
}

}  // namespace onesided
