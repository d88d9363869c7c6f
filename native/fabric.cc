// libfabric, as JavaScript sees it: what there is of it. Endpoints are an RdmaContext (rdma_context.cc).
#if __has_include(<infiniband/verbs.h>)

#include "fabric.h"

#if !__has_include(<rdma/fabric.h>)

namespace onesided {
namespace {

constexpr const char* kReason =
    "the addon was built without rdma/fabric.h (apt-get install libfabric-dev, then npx onesided build)";

}  // namespace

void exportFabric(Napi::Env env, Napi::Object exports) {
  exports.Set("fabricReason", Napi::String::New(env, kReason));
}

const VerbsLibrary* fabricOrThrow(Napi::Env env) {
  napi_throw_error(env, "ENOENT", kReason);
  return nullptr;
}

}  // namespace onesided

#else

#include "fabric_endpoint.h"
#include "fabric_engine.h"

namespace onesided {
namespace {

// fabricOffers(): { version, file, offers: { provider, domain, address }[] }
Napi::Value fabricOffers(const Napi::CallbackInfo& info) {
  Napi::Env env = info.Env();
  const char* reason = "";
  const fabric::Library* library = fabric::Library::open(&reason);
  if (library == nullptr) {
    napi_throw_error(env, "ENOENT", reason);
    return {};
  }
  Napi::Object result = Napi::Object::New(env);
  const uint32_t version = library->version();
  result.Set("version", std::to_string(FI_MAJOR(version)) + "." + std::to_string(FI_MINOR(version)));
  result.Set("file", library->path);
  Napi::Array list = Napi::Array::New(env);
  for (const fabric::Offer& offer : fabric::offers(*library)) {
    Napi::Object one = Napi::Object::New(env);
    one.Set("provider", offer.provider);
    one.Set("domain", offer.domain);
    one.Set("address", offer.address);
    list.Set(list.Length(), one);
  }
  result.Set("offers", list);
  return result;
}

}  // namespace

void exportFabric(Napi::Env env, Napi::Object exports) {
  exports.Set("fabricOffers", Napi::Function::New(env, fabricOffers, "fabricOffers"));
}

const VerbsLibrary* fabricOrThrow(Napi::Env env) {
  const char* reason = "";
  const VerbsLibrary* verbs = fabric::fabricVerbs(&reason);
  if (verbs == nullptr) napi_throw_error(env, "ENOENT", reason);
  return verbs;
}

}  // namespace onesided

#endif
#endif
