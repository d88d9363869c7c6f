// PMIx through libpmix, which is opened at run time: what a rank needs to meet the others.
#pragma once

#include <napi.h>

namespace onesided {

void exportPmix(Napi::Env env, Napi::Object exports);

}  // namespace onesided
