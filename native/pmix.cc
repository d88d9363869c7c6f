// PMIx through libpmix. Its header need not be there: the few types below are those of its stable binary interface
// (PMIx 2 to 5), and pmix_value_t is only ever handled by pointer, in more memory than it needs.
#include "pmix.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "arguments.h"
#include "exports.h"

namespace onesided {
namespace {

constexpr uint32_t kWildcard = UINT32_MAX - 1;
constexpr uint16_t kBool = 1, kString = 3, kUint32 = 14;
constexpr uint8_t kGlobal = 3;

struct Process {
  char nspace[256];
  uint32_t rank;
};

struct Value {
  uint16_t type;
  union {
    bool flag;
    char* string;
    uint32_t uint32;
    unsigned char room[24];
  } data;
};

struct Info {
  char key[512];
  uint32_t flags;
  Value value;
};
static_assert(sizeof(Value) == 32 && sizeof(Info) == 552, "the layout of libpmix's types on a 64-bit machine");

struct Library {
  int (*init)(Process*, Info*, size_t);
  int (*finalize)(const Info*, size_t);
  int (*put)(uint8_t, const char*, Value*);
  int (*commit)();
  int (*fence)(const Process*, size_t, const Info*, size_t);
  int (*get)(const Process*, const char*, const Info*, size_t, Value**);
  const char* (*errorString)(int);
};

std::once_flag once;
Library library;
std::string failure;

template <typename F>
bool find(void* handle, const char* name, F* function) {
  *function = reinterpret_cast<F>(dlsym(handle, name));
  if (*function == nullptr) failure = std::string("libpmix.so.2 has no ") + name;
  return *function != nullptr;
}

void load() {
  // Open MPI's processes find the library by its plain name; RTLD_GLOBAL because its plug-ins expect its symbols.
  void* handle = dlopen("libpmix.so.2", RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) {
    failure = std::string(dlerror()) + " (apt-get install libpmix2)";
    return;
  }
  (void)(find(handle, "PMIx_Init", &library.init) && find(handle, "PMIx_Finalize", &library.finalize) &&
         find(handle, "PMIx_Put", &library.put) && find(handle, "PMIx_Commit", &library.commit) &&
         find(handle, "PMIx_Fence", &library.fence) && find(handle, "PMIx_Get", &library.get) &&
         find(handle, "PMIx_Error_string", &library.errorString));
}

// This process as PMIx knows it. Written by pmixInit, read by the exchange, of which there is one in a process.
std::mutex mutex;
Process self;
bool joined = false;

std::string describe(const char* call, int status) {
  const char* text = library.errorString(status);
  return std::string(call) + ": " + (text == nullptr ? std::to_string(status) : text);
}

// The value of a key of a rank, in memory that `release` gives back.
int lookUp(uint32_t rank, const char* key, Value** value) {
  Process process = self;
  process.rank = rank;
  return library.get(&process, key, nullptr, 0, value);
}

void release(Value* value) {
  if (value->type == kString) free(value->data.string);
  free(value);
}

// pmixInit(): { rank, size }. Connects to the manager on this host.
napi_value init(napi_env env, napi_callback_info) {
  std::call_once(once, load);
  std::lock_guard<std::mutex> guard(mutex);
  std::string error = failure;
  uint32_t size = 0;
  if (error.empty() && joined) {
    error = "this process has already joined the job; only one of its threads may call init()";
  }
  if (error.empty()) {
    const int status = library.init(&self, nullptr, 0);
    if (status != 0) {
      error = describe("PMIx_Init", status);
    } else {
      joined = true;
      Value* value = nullptr;
      const int got = lookUp(kWildcard, "pmix.job.size", &value);
      if (got != 0 || value == nullptr || value->type != kUint32) error = describe("PMIx_Get of the job's size", got);
      if (got == 0 && value != nullptr) {
        size = value->data.uint32;
        release(value);
      }
      if (!error.empty()) library.finalize(nullptr, 0);
    }
  }
  if (!error.empty()) {
    napi_throw_error(env, "ENOTCONN", error.c_str());
    return nullptr;
  }
  Napi::Object result = Napi::Object::New(env);
  result.Set("rank", Napi::Number::New(env, self.rank));
  result.Set("size", Napi::Number::New(env, size));
  return result;
}

// Puts, fences, gets and says goodbye, in a thread of libuv's pool: all of that may wait for other ranks.
class Exchange : public Napi::AsyncWorker {
 public:
  Exchange(Napi::Env env, std::string prefix, std::string card, uint32_t size)
      : Napi::AsyncWorker(env, "onesided:pmix"),
        deferred_(Napi::Promise::Deferred::New(env)),
        prefix_(std::move(prefix)),
        card_(std::move(card)),
        cards_(size) {}

  Napi::Promise promise() const { return deferred_.Promise(); }

 protected:
  void Execute() override {
    std::string error = run();
    // Without goodbye the manager takes this process for one that crashed.
    const int status = library.finalize(nullptr, 0);
    if (error.empty() && status != 0) error = describe("PMIx_Finalize", status);
    if (!error.empty()) SetError(error);
  }

  void OnOK() override {
    Napi::Array list = Napi::Array::New(Env(), cards_.size());
    for (uint32_t i = 0; i < cards_.size(); i++) list.Set(i, Napi::String::New(Env(), cards_[i]));
    deferred_.Resolve(list);
  }

  void OnError(const Napi::Error& error) override { deferred_.Reject(error.Value()); }

 private:
  std::string run() {
    const std::string key = prefix_ + "-card";
    Value mine{};
    mine.type = kString;
    mine.data.string = card_.data();
    int status = library.put(kGlobal, key.c_str(), &mine);
    if (status != 0) return describe("PMIx_Put", status);
    status = library.commit();
    if (status != 0) return describe("PMIx_Commit", status);
    Process all = self;
    all.rank = kWildcard;
    // With the fence comes what all have put.
    Info collect{};
    strcpy(collect.key, "pmix.collect");
    collect.value.type = kBool;
    collect.value.data.flag = true;
    status = library.fence(&all, 1, &collect, 1);
    if (status != 0) return describe("PMIx_Fence", status);
    for (uint32_t rank = 0; rank < cards_.size(); rank++) {
      Value* value = nullptr;
      status = lookUp(rank, key.c_str(), &value);
      if (status != 0 || value == nullptr) {
        return describe("PMIx_Get", status) + ": rank " + std::to_string(rank) +
               " has published nothing; it does not run onesided";
      }
      if (value->type == kString && value->data.string != nullptr) cards_[rank] = value->data.string;
      release(value);
    }
    return "";
  }

  Napi::Promise::Deferred deferred_;
  std::string prefix_;
  std::string card_;
  std::vector<std::string> cards_;
};

// pmixReason(): why there is no libpmix, or undefined.
napi_value reason(napi_env env, napi_callback_info) {
  std::call_once(once, load);
  if (failure.empty()) return nullptr;
  napi_value text;
  napi_create_string_utf8(env, failure.c_str(), failure.size(), &text);
  return text;
}

// pmixExchange(prefix, card, size): a promise of the cards of all ranks.
napi_value exchange(napi_env env, napi_callback_info info) {
  Arguments<3> args(env, info);
  const Napi::Value prefix(env, args[0]), card(env, args[1]);
  int64_t size;
  if (!prefix.IsString() || !card.IsString()) {
    throwTypeError(env, "pmixExchange: the prefix and the card must be strings");
    return nullptr;
  }
  if (!readInteger(env, args[2], "pmixExchange", "the size", 1, 1 << 20, &size)) return nullptr;
  {
    std::lock_guard<std::mutex> guard(mutex);
    if (!joined) {
      throwTypeError(env, "pmixExchange: call pmixInit first");
      return nullptr;
    }
  }
  auto* worker = new Exchange(env, prefix.As<Napi::String>().Utf8Value(), card.As<Napi::String>().Utf8Value(),
                              static_cast<uint32_t>(size));
  const Napi::Promise promise = worker->promise();
  worker->Queue();
  return promise;
}

}  // namespace

void exportPmix(Napi::Env env, Napi::Object exports) {
  exportFunction(env, exports, "pmixReason", reason);
  exportFunction(env, exports, "pmixInit", init);
  exportFunction(env, exports, "pmixExchange", exchange);
}

}  // namespace onesided
