// What the addon gives JavaScript.
//
// A thread can be terminated while it loads the addon. From then on nothing can be made in it: each call fails and
// leaves its result as it was, which must not be used. What is missing then, nobody looks for: the thread runs no
// JavaScript any more.
#pragma once

#include <napi.h>

#include "pin.h"

namespace onesided {

inline void exportFunction(Napi::Env env, Napi::Object exports, const char* name, napi_callback callback,
                           void* data = nullptr) {
  napi_value function;
  if (napi_create_function(env, name, NAPI_AUTO_LENGTH, callback, data, &function) != napi_ok) return;
  napi_set_named_property(env, exports, name, function);
}

// A Float64Array by which JavaScript tells functions what to do. Gives its numbers, which stay where they are until the
// environment ends; nullptr if it cannot be made.
inline void* exportNumbers(Napi::Env env, Napi::Object exports, const char* name, size_t count) {
  napi_value buffer;
  napi_value array;
  void* numbers;
  if (napi_create_arraybuffer(env, count * sizeof(double), &numbers, &buffer) != napi_ok ||
      napi_create_typedarray(env, napi_float64_array, count, buffer, 0, &array) != napi_ok) {
    return nullptr;
  }
  pinUntilEnd(env, buffer);
  napi_set_named_property(env, exports, name, array);
  return numbers;
}

}  // namespace onesided
