// A thread that serves requests of other ranks on this rank's private memory.
#pragma once

#include <napi.h>

namespace onesided {

void exportServer(Napi::Env env, Napi::Object exports);

}  // namespace onesided
