// Memory of JavaScript's own, which other processes can map where it stands.
#pragma once

#include <napi.h>

#include <cstddef>
#include <cstdint>

namespace onesided {

// Others reach these bytes by their addresses from now on (copies by the kernel, a server's thread), until as many
// calls of `servedEnds`. Meanwhile their pages are not exchanged: what is stored between the copy and the exchange
// would be lost.
void servedBegins(uintptr_t address, size_t bytes);
void servedEnds(uintptr_t address, size_t bytes);

void exportRemappedMemory(Napi::Env env, Napi::Object exports);

}  // namespace onesided
