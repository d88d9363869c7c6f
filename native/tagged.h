// Whether `this` of a method is what the method is for: a method may be called on any object, and one that another
// addon wrapped would be taken for ours without a tag.
#pragma once

#include <napi.h>

#include "arguments.h"

namespace onesided {

// Otherwise throws. `name` is that of the class, with its article.
inline bool isTagged(const Napi::CallbackInfo& info, const napi_type_tag& tag, const char* call, const char* name) {
  if (info.This().IsObject() && info.This().As<Napi::Object>().CheckTypeTag(&tag)) return true;
  throwTypeError(info.Env(), "%s: this is not %s", call, name);
  return false;
}

}  // namespace onesided
