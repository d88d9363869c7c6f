#include "arguments.h"

#include <cerrno>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace onesided {
namespace {

constexpr size_t kMessageBytes = 512;

// Element sizes by napi_typedarray_type: int8, uint8, uint8 clamped, int16, uint16, int32, uint32, float32, float64,
// bigint64, biguint64. Types that a later Node-API adds are refused by readBytes.
constexpr size_t kElementBytes[] = {1, 1, 1, 2, 2, 4, 4, 4, 8, 8, 8};
constexpr int kTypes = sizeof(kElementBytes) / sizeof(kElementBytes[0]);

}  // namespace

void throwTypeError(napi_env env, const char* format, ...) {
  char message[kMessageBytes];
  va_list list;
  va_start(list, format);
  vsnprintf(message, sizeof message, format, list);
  va_end(list);
  napi_throw_type_error(env, "ERR_ARG", message);
}

void throwRangeError(napi_env env, const char* format, ...) {
  char message[kMessageBytes];
  va_list list;
  va_start(list, format);
  vsnprintf(message, sizeof message, format, list);
  va_end(list);
  napi_throw_range_error(env, "ERR_ARG", message);
}

void throwSystemError(napi_env env, int error, const char* format, ...) {
  char message[kMessageBytes];
  va_list list;
  va_start(list, format);
  int at = vsnprintf(message, sizeof message, format, list);
  va_end(list);
  const char* name = errnoName(error);
  if (at >= 0 && static_cast<size_t>(at) < sizeof message) {
    snprintf(message + at, sizeof message - at, ": %s (%s)", strerror(error), name);
  }
  napi_throw_error(env, name, message);
}

const char* errnoName(int error) {
  switch (error) {
    case EACCES: return "EACCES";
    case EAGAIN: return "EAGAIN";
    case EBADF: return "EBADF";
    case EBUSY: return "EBUSY";
    case EFAULT: return "EFAULT";
    case EFBIG: return "EFBIG";
    case EHOSTUNREACH: return "EHOSTUNREACH";
    case EINVAL: return "EINVAL";
    case EIO: return "EIO";
    case EMFILE: return "EMFILE";
    case ENFILE: return "ENFILE";
    case ENETDOWN: return "ENETDOWN";
    case ENETUNREACH: return "ENETUNREACH";
    case ENODEV: return "ENODEV";
    case ENOENT: return "ENOENT";
    case ENOMEM: return "ENOMEM";
    case ENOSPC: return "ENOSPC";
    case ENOSYS: return "ENOSYS";
    case EOPNOTSUPP: return "EOPNOTSUPP";
    case EPERM: return "EPERM";
    case ESRCH: return "ESRCH";
    case ETIMEDOUT: return "ETIMEDOUT";
    default: return "ERR_SYSTEM";
  }
}

bool readInteger(napi_env env, napi_value value, const char* call, const char* name, double low, double high,
                 int64_t* result) {
  double number;
  if (napi_get_value_double(env, value, &number) != napi_ok) {
    throwTypeError(env, "%s: %s must be a number", call, name);
    return false;
  }
  // NaN fails the comparison.
  if (!(number >= low && number <= high) || number != std::trunc(number)) {
    throwRangeError(env, "%s: %s must be an integer from %.0f to %.0f, not %.17g", call, name, low, high, number);
    return false;
  }
  *result = static_cast<int64_t>(number);
  return true;
}

bool readTimeout(napi_env env, napi_value value, const char* call, double* milliseconds) {
  if (napi_get_value_double(env, value, milliseconds) != napi_ok) {
    throwTypeError(env, "%s: the timeout must be a number of milliseconds", call);
    return false;
  }
  if (!(*milliseconds >= 0)) {
    throwRangeError(env, "%s: the timeout must be 0 milliseconds or more, not %g", call, *milliseconds);
    return false;
  }
  return true;
}

bool readBytes(napi_env env, napi_value value, const char* call, const char* name, Bytes* result) {
  // Node-API leaves it as it is for types of elements that it does not know: Float16Array, for a time.
  auto type = static_cast<napi_typedarray_type>(-1);
  void* data = nullptr;
  size_t length = 0;
  if (napi_get_typedarray_info(env, value, &type, &length, &data, nullptr, nullptr) == napi_ok) {
    if (static_cast<int>(type) < 0 || static_cast<int>(type) >= kTypes) {
      throwTypeError(env, "%s: %s has an element type that is not supported", call, name);
      return false;
    }
    result->data = static_cast<unsigned char*>(data);
    result->type = type;
    result->elements = data == nullptr ? 0 : length;
    result->length = result->elements * kElementBytes[type];
    return true;
  }
  bool isBuffer = false;
  if (napi_is_arraybuffer(env, value, &isBuffer) == napi_ok && isBuffer &&
      napi_get_arraybuffer_info(env, value, &data, &length) == napi_ok) {
    result->data = static_cast<unsigned char*>(data);
    result->type = -1;
    result->length = result->elements = data == nullptr ? 0 : length;
    return true;
  }
  throwTypeError(env, "%s: %s must be a typed array or an ArrayBuffer (for a SharedArrayBuffer, pass a view)", call,
                 name);
  return false;
}

bool readWord(napi_env env, napi_value words, napi_value index, const char* call, int32_t** address) {
  Bytes bytes;
  if (!readBytes(env, words, call, "words", &bytes)) return false;
  if (bytes.type != napi_int32_array) {
    throwTypeError(env, "%s: words must be an Int32Array", call);
    return false;
  }
  if (bytes.elements == 0) {
    throwRangeError(env, "%s: words is empty or detached", call);
    return false;
  }
  int64_t at;
  if (!readInteger(env, index, call, "index", 0, static_cast<double>(bytes.elements) - 1, &at)) return false;
  *address = reinterpret_cast<int32_t*>(bytes.data) + at;
  return true;
}

}  // namespace onesided
