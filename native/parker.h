// Sleeping on a futex without blocking the event loop: a thread sleeps instead, and wakes the loop.
#pragma once

#include <napi.h>

namespace onesided {

void exportParker(Napi::Env env, Napi::Object exports);

}  // namespace onesided
