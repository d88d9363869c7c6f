// Memory files (memfd) and their mappings as ArrayBuffers.
#pragma once

#include <napi.h>

#include <memory>

namespace onesided {

// What keeps the memory behind an ArrayBuffer that `memoryMap` made here mapped, also after `memoryUnmap`; empty for
// any other ArrayBuffer.
std::shared_ptr<void> mappingOf(napi_env env, napi_value buffer);

// The descriptor of a file that `memoryCreate` made, here or elsewhere; otherwise throws and gives false.
bool readMemoryFile(napi_env env, napi_value value, const char* call, int* fd);

void exportMemory(Napi::Env env, Napi::Object exports);

}  // namespace onesided
