// Copies between this process and the private memory of another (cross-memory attach).
#pragma once

#include <napi.h>

namespace onesided {

void exportProcessMemory(Napi::Env env, Napi::Object exports);

}  // namespace onesided
