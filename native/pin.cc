#include "pin.h"

#include "memory.h"

namespace onesided {

Pin::Pin(napi_env env, napi_value memory) {
  napi_create_reference(env, memory, 1, &object_);
  napi_value buffer = memory;
  bool plain = false;
  napi_is_arraybuffer(env, memory, &plain);
  if (!plain) {
    napi_typedarray_type type;
    if (napi_get_typedarray_info(env, memory, &type, nullptr, nullptr, &buffer, nullptr) != napi_ok) return;
    napi_is_arraybuffer(env, buffer, &plain);
  }
  // Shared memory cannot be detached.
  if (!plain) return;
  auto get = &v8::ArrayBuffer::GetBackingStore;
  if (get != nullptr) store_ = (reinterpret_cast<v8::ArrayBuffer*>(buffer)->*get)();
  mapping_ = mappingOf(env, buffer);
}

bool Pin::keepsDetached() {
  auto get = &v8::ArrayBuffer::GetBackingStore;
  return get != nullptr;
}

napi_value Pin::object(napi_env env) const {
  napi_value object = nullptr;
  if (object_ != nullptr) napi_get_reference_value(env, object_, &object);
  return object;
}

void Pin::drop(napi_env env) {
  dropObject(env);
  store_.reset();
  mapping_.reset();
}

void Pin::dropObject(napi_env env) {
  if (object_ != nullptr) napi_delete_reference(env, object_);
  object_ = nullptr;
}

void pinUntilEnd(napi_env env, napi_value memory) {
  struct Kept {
    napi_env env;
    Pin pin;
  };
  const auto end = [](void* data) {
    auto* kept = static_cast<Kept*>(data);
    kept->pin.drop(kept->env);
    delete kept;
  };
  napi_add_env_cleanup_hook(env, end, new Kept{env, Pin(env, memory)});
}

}  // namespace onesided
