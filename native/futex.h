// Sleeping in the kernel until a word of shared memory changes. Unlike Atomics.wait, which knows only the waiters of
// its own process, a futex in a shared mapping wakes other processes.
#pragma once

#include <napi.h>

#include <cstdint>

namespace onesided {

// What a wait gives to JavaScript.
enum FutexResult : int { kWoken = 0, kChanged = 1, kTimedOut = 2 };

// Sleeps while *address == expected. May wake early. A bad address wakes at once: the kernel checks it.
FutexResult futexWait(const int32_t* address, int32_t expected, double timeoutMs);
// Wakes up to `count` sleepers of all processes; gives how many there were.
int futexWake(const int32_t* address, int count);

void exportFutex(Napi::Env env, Napi::Object exports);

}  // namespace onesided
