// Memory of JavaScript's own, lent to other processes where it stands.
#pragma once

#include <napi.h>

namespace onesided {

void exportLentMemory(Napi::Env env, Napi::Object exports);

}  // namespace onesided
