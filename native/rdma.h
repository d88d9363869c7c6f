#pragma once

#include <napi.h>

namespace onesided {

void exportRdma(Napi::Env env, Napi::Object exports);

}  // namespace onesided
