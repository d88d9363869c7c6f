// Copies between bytes that are not one after the other.
#pragma once

#include <napi.h>

namespace onesided {

void exportCopy(Napi::Env env, Napi::Object exports);

}  // namespace onesided
