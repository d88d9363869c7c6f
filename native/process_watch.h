// Learning of the end of other processes at once.
#pragma once

#include <napi.h>

namespace onesided {

void exportProcessWatch(Napi::Env env, Napi::Object exports);

}  // namespace onesided
