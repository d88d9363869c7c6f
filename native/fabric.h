// libfabric as a library of verbs (fabric_engine.h), for what stands above: whether there is one, and its table.
#pragma once

#include <napi.h>

#include "verbs_library.h"

namespace onesided {

void exportFabric(Napi::Env env, Napi::Object exports);
// Throws if there is no libfabric, or the addon was built without its headers.
const VerbsLibrary* fabricOrThrow(Napi::Env env);

}  // namespace onesided
