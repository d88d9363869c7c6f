// What is known of RDMA devices before one is opened, and of their limits and ports.
#pragma once

#include <napi.h>

#include <string>

#include "verbs_library.h"

namespace onesided {

const char* stateOfPort(int state);
std::string hexOf(const ibv_gid& gid);
Napi::Object limitsOf(Napi::Env env, const ibv_device_attr& attributes);
// Why a device could not be opened: an errno.
int openError(const ibv_device* device, int error);
// Throws if there is no libibverbs.
const VerbsLibrary* verbsOrThrow(Napi::Env env);
Napi::Value rdmaDevices(const Napi::CallbackInfo& info);

}  // namespace onesided
