// Deliberate faults: what the sanitizers are there to find. The harness calls each and fails if it is not reported.
// Nothing of the product uses this file.
#include <node_api.h>

#include <climits>
#include <cstring>
#include <thread>

namespace {

volatile int zero = 0;

napi_value heapOverflow(napi_env, napi_callback_info) {
  auto* volatile bytes = new volatile char[8];
  bytes[8 + zero] = 1;
  delete[] bytes;
  return nullptr;
}

napi_value useAfterFree(napi_env, napi_callback_info) {
  auto* volatile bytes = new volatile char[8];
  delete[] bytes;
  bytes[zero] = 1;
  return nullptr;
}

// Writes behind the memory of a typed array.
napi_value typedArrayOverflow(napi_env env, napi_callback_info info) {
  napi_value array;
  size_t count = 1;
  void* data = nullptr;
  size_t length = 0;
  napi_get_cb_info(env, info, &count, &array, nullptr, nullptr);
  napi_get_typedarray_info(env, array, nullptr, &length, &data, nullptr, nullptr);
  static_cast<volatile unsigned char*>(data)[length] = 1;
  return nullptr;
}

napi_value signedOverflow(napi_env, napi_callback_info) {
  volatile int number = INT_MAX;
  number = number + 1 + zero;
  return nullptr;
}

napi_value misaligned(napi_env, napi_callback_info) {
  alignas(8) unsigned char bytes[16] = {};
  *reinterpret_cast<volatile int*>(bytes + 1 + zero) = 1;
  return nullptr;
}

napi_value numberToInteger(napi_env, napi_callback_info) {
  volatile double number = 1e300;
  volatile auto integer = static_cast<long>(number);
  (void)integer;
  return nullptr;
}

napi_value leak(napi_env, napi_callback_info) {
  auto* volatile bytes = new char[1000];
  bytes = nullptr;
  return nullptr;
}

// The record of a reference is Node's, and the leak is ours.
napi_value leakReference(napi_env env, napi_callback_info) {
  napi_value object;
  napi_ref reference;
  napi_create_object(env, &object);
  napi_create_reference(env, object, 1, &reference);
  return nullptr;
}

napi_value race(napi_env, napi_callback_info) {
  int number = 0;
  const auto count = [&number] {
    for (int i = 0; i < 100000; i++) *static_cast<volatile int*>(&number) = number + 1;
  };
  std::thread first(count);
  std::thread second(count);
  first.join();
  second.join();
  return nullptr;
}

// Nothing wrong: the harness must not report it.
napi_value nothing(napi_env, napi_callback_info) {
  delete[] new char[8];
  return nullptr;
}

napi_value initialize(napi_env env, napi_value exports) {
  const auto add = [&](const char* name, napi_callback callback) {
    napi_value function;
    napi_create_function(env, name, NAPI_AUTO_LENGTH, callback, nullptr, &function);
    napi_set_named_property(env, exports, name, function);
  };
  add("heapOverflow", heapOverflow);
  add("useAfterFree", useAfterFree);
  add("typedArrayOverflow", typedArrayOverflow);
  add("signedOverflow", signedOverflow);
  add("misaligned", misaligned);
  add("numberToInteger", numberToInteger);
  add("leak", leak);
  add("leakReference", leakReference);
  add("race", race);
  add("nothing", nothing);
  return exports;
}

}  // namespace

NAPI_MODULE(faults, initialize)
