// What a rank asks of the operating system about processes and the scheduler.
#pragma once

#include <napi.h>

namespace onesided {

void exportProcess(Napi::Env env, Napi::Object exports);

}  // namespace onesided
