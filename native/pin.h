// Memory of JavaScript's that native code goes on using after a call has returned. A reference alone does not keep it:
// a buffer that is detached (transferred, or posted to another thread) would give its memory to somebody else, and
// `memoryUnmap` would take it away. A pin holds what is behind the buffer as well: V8's own shared pointer to it, and
// the mapping that `memoryMap` made.
//
// Made, dropped and let go on the JavaScript thread of its environment.
#pragma once

#include <node_api.h>

#include <memory>

// The part of V8's interface that Node-API lacks: the holder of the shared pointer keeps the memory. Declared as V8
// does; weak, so that an engine without it only loses the pinning of detached buffers. A Node-API value is a V8 handle.
namespace v8 {
class BackingStore;
class ArrayBuffer {
 public:
  __attribute__((weak, visibility("default"))) std::shared_ptr<BackingStore> GetBackingStore();
};
}  // namespace v8

namespace onesided {

class Pin {
 public:
  Pin() = default;
  // `memory` is a typed array or an ArrayBuffer: what `readBytes` takes.
  Pin(napi_env env, napi_value memory);
  // Whether memory is held after its buffer was detached.
  static bool keepsDetached();
  // Whether the memory stays as long as this pin, whatever becomes of the buffer and of its environment.
  bool holdsMemory() const { return store_ != nullptr || mapping_ != nullptr; }
  // What was pinned; nullptr if it is not held any more.
  napi_value object(napi_env env) const;
  // Lets go of everything.
  void drop(napi_env env);
  // Lets go of the JavaScript object, which ends with its environment. The memory stays as long as this pin.
  void dropObject(napi_env env);

 private:
  napi_ref object_ = nullptr;
  std::shared_ptr<v8::BackingStore> store_;
  std::shared_ptr<void> mapping_;
};

// Pins memory as long as there is its environment: what the functions of the addon there use as their data.
void pinUntilEnd(napi_env env, napi_value memory);

}  // namespace onesided
