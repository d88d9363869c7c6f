// Arguments from JavaScript, checked. Nothing that a caller passes may crash the process, so every value goes through
// here before it is used. These functions work on bare Node-API values: the calls that they serve cost tens of
// nanoseconds.
#pragma once

#include <node_api.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace onesided {

inline constexpr double kMaxSafeInteger = 9007199254740991.0;

// Throw a JavaScript exception with `code` (ERR_ARG, or the name of an errno). The message is formatted like printf's.
void throwTypeError(napi_env env, const char* format, ...) __attribute__((format(printf, 2, 3), cold));
void throwRangeError(napi_env env, const char* format, ...) __attribute__((format(printf, 2, 3), cold));
// Adds ": <what the system says> (<errno's name>)" to the message.
void throwSystemError(napi_env env, int error, const char* format, ...) __attribute__((format(printf, 3, 4), cold));

const char* errnoName(int error);

// The arguments of one call. `N` is how many it needs; missing ones are `undefined`.
template <size_t N>
struct Arguments {
  size_t count = N;
  napi_value values[N];

  Arguments(napi_env env, napi_callback_info info) { napi_get_cb_info(env, info, &count, values, nullptr, nullptr); }
  napi_value operator[](size_t index) const { return values[index]; }
};

// An integer in [low, high]; otherwise throws and gives false. `high` is at most 2^53 - 1.
bool readInteger(napi_env env, napi_value value, const char* call, const char* name, double low, double high,
                 int64_t* result);

// Whether a number from memory that JavaScript writes is an integer in [0, high]. Such memory may change meanwhile: the
// caller reads it once.
inline bool whole(double number, double high) { return number >= 0 && number <= high && number == std::trunc(number); }

// Numbers that a call finds in memory that JavaScript writes (exportNumbers), each read once. Throws and gives false if
// one is not within ±(2^53 - 1), which NaN is not either.
template <size_t N>
bool readPlan(napi_env env, const void* data, const char* call, int64_t (&plan)[N]) {
  for (size_t i = 0; i < N; i++) {
    const double number = static_cast<const double*>(data)[i];
    if (!(std::fabs(number) <= kMaxSafeInteger)) {
      throwRangeError(env, "%s: the plan has numbers that are not integers", call);
      return false;
    }
    plan[i] = static_cast<int64_t>(number);
  }
  return true;
}

// Milliseconds: 0 or more, or Infinity.
bool readTimeout(napi_env env, napi_value value, const char* call, double* milliseconds);

// The bytes behind a typed array (over an ArrayBuffer or a SharedArrayBuffer) or an ArrayBuffer. `type` is −1 for an
// ArrayBuffer. A detached one has length 0.
struct Bytes {
  unsigned char* data = nullptr;
  size_t length = 0;
  int type = -1;
  size_t elements = 0;
};
bool readBytes(napi_env env, napi_value value, const char* call, const char* name, Bytes* result);

// The properties of an argument that is a record, by the order of their names; what is left out is `undefined`. To read
// one may run JavaScript, which may end what was found before and close what is open: read all, and then look.
template <size_t N>
struct Record {
  napi_value values[N];

  // Otherwise throws, or something that reads a property has thrown, and gives false.
  bool read(napi_env env, napi_value record, const char* call, const char* const (&names)[N]) {
    napi_valuetype type = napi_undefined;
    if (napi_typeof(env, record, &type) != napi_ok || type != napi_object) {
      throwTypeError(env, "%s: the attributes must be an object", call);
      return false;
    }
    for (size_t i = 0; i < N; i++)
      if (napi_get_named_property(env, record, names[i], &values[i]) != napi_ok) return false;
    return true;
  }
  napi_value operator[](size_t index) const { return values[index]; }
  bool has(napi_env env, size_t index) const {
    napi_valuetype type = napi_undefined;
    return napi_typeof(env, values[index], &type) == napi_ok && type != napi_undefined;
  }
};

// The address of a 32-bit word: an Int32Array and an index into it.
bool readWord(napi_env env, napi_value words, napi_value index, const char* call, int32_t** address);

}  // namespace onesided
