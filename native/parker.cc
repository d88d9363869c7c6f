// A Parker has one thread, started by the first `begin`, which waits on a futex and then calls back on the JavaScript
// thread through a thread-safe function. While a sleep is pending that function is referenced, so the event loop stays
// alive; otherwise not.
//
// The shared state is guarded by `mutex`, except `cancelled`, which the thread looks at between two waits. JavaScript's
// side of it (`pending`, `generation`, the references) is touched on the JavaScript thread only. Every sleep has a
// generation; a call that comes back for an older one (its sleep was interrupted when the call was already on its way)
// is dropped.
//
// Interrupting: a thread that is about to enter FUTEX_WAIT misses a wake, so the interrupter wakes the word again until
// the thread says that it is out. Only one rank sleeps on a bell, and a sleeper expects early wakes, so the additional
// wakes do no harm. Words whose memory is gone could not be woken at all, and an environment that ends may unmap first:
// so a sleep pins them. Where that cannot be done (a SharedArrayBuffer), a wait lasts at most `kSliceMs` before the
// thread looks around.
//
// Ends: `close()`, the collector, or the end of the environment (worker or process), in whatever order; `stop` joins
// the thread, once. On process.exit the environment of the main thread is not cleaned up: the thread is then asleep in
// the kernel, holds no lock that exit handlers take, and dies with the process.

#include "parker.h"


#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>

#include "arguments.h"
#include "futex.h"
#include "pin.h"
#include "tagged.h"
#include "threads.h"

namespace onesided {
namespace {

using Clock = std::chrono::steady_clock;

constexpr napi_type_tag kTag = {0x9d1c2f4be0a74d53, 0xb6a5e87c13f2904d};
constexpr double kSliceMs = 100;
constexpr double kNoSliceMs = std::numeric_limits<double>::infinity();
constexpr auto kAgain = std::chrono::microseconds(50);

struct Sleep {
  const int32_t* address = nullptr;
  int32_t expected = 0;
  double timeoutMs = 0;
  double sliceMs = kSliceMs;
  uint32_t generation = 0;
};

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  std::thread thread;
  Sleep sleep;
  bool requested = false;
  bool busy = false;
  bool stopping = false;
  std::atomic<bool> cancelled{false};

  // JavaScript's side.
  bool pending = false;
  bool ended = false;
  uint32_t generation = 0;
  napi_env env = nullptr;
  napi_threadsafe_function call = nullptr;
  // Held during a sleep: the words, and the Parker itself, which somebody who only waits for the callback may have
  // forgotten.
  Pin words;
  napi_ref parker = nullptr;

  void run() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return requested || stopping; });
      if (stopping) return;
      const Sleep now = sleep;
      requested = false;
      busy = true;
      lock.unlock();
      const FutexResult result = wait(now);
      lock.lock();
      busy = false;
      changed.notify_all();
      if (stopping) return;
      if (cancelled) continue;
      // 2 bits of result below the generation. The function is alive: it is released after this thread was joined.
      const uintptr_t message = (static_cast<uintptr_t>(now.generation) << 2) | static_cast<uintptr_t>(result);
      napi_call_threadsafe_function(call, reinterpret_cast<void*>(message), napi_tsfn_nonblocking);
    }
  }

  FutexResult wait(const Sleep& now) const {
    const auto began = Clock::now();
    for (;;) {
      if (cancelled) return kWoken;
      const double gone = std::chrono::duration<double, std::milli>(Clock::now() - began).count();
      const double left = now.timeoutMs - gone;
      if (left <= 0) return kTimedOut;
      const FutexResult result = futexWait(now.address, now.expected, std::min(left, now.sliceMs));
      if (result != kTimedOut) return result;
    }
  }

  // Hands a sleep to the thread; there is none pending. Gives its generation.
  uint32_t begin(const int32_t* address, int32_t expected, double timeoutMs) {
    generation++;
    std::lock_guard<std::mutex> lock(mutex);
    sleep = {address, expected, timeoutMs, words.holdsMemory() ? kNoSliceMs : kSliceMs, generation};
    cancelled = false;
    requested = true;
    changed.notify_all();
    return generation;
  }

  // Gets the thread out of its wait. Called with the lock held.
  void cancel(std::unique_lock<std::mutex>& lock) {
    cancelled = true;
    requested = false;
    while (busy) {
      futexWake(sleep.address, INT32_MAX);
      changed.wait_for(lock, kAgain);
    }
  }

  void stop() {
    if (!thread.joinable()) return;
    {
      std::unique_lock<std::mutex> lock(mutex);
      stopping = true;
      changed.notify_all();
      cancel(lock);
    }
    thread.join();
  }
};

void dropReferences(napi_env env, State& state) {
  state.words.drop(env);
  if (state.parker != nullptr) napi_delete_reference(env, state.parker);
  state.parker = nullptr;
}

void callBack(napi_env env, napi_value function, void* context, void* message) {
  if (env == nullptr || function == nullptr) return;
  State& state = **static_cast<std::shared_ptr<State>*>(context);
  const auto bits = reinterpret_cast<uintptr_t>(message);
  const bool current = state.pending && static_cast<uint32_t>(bits >> 2) == state.generation;
  if (!current) return;
  state.pending = false;
  napi_unref_threadsafe_function(env, state.call);
  dropReferences(env, state);
  napi_value undefined;
  napi_value result;
  napi_get_undefined(env, &undefined);
  napi_create_int32(env, static_cast<int>(bits & 3), &result);
  // An exception of the callback becomes an uncaught exception.
  napi_call_function(env, undefined, function, 1, &result, nullptr);
}

class Parker : public Napi::ObjectWrap<Parker> {
 public:
  explicit Parker(const Napi::CallbackInfo& info) : Napi::ObjectWrap<Parker>(info), env_(info.Env()) {
    if (!info[0].IsFunction()) {
      throwTypeError(env_, "Parker: the callback must be a function");
      return;
    }
    state_ = std::make_shared<State>();
    state_->env = env_;
    auto* context = new std::shared_ptr<State>(state_);
    const napi_status made = napi_create_threadsafe_function(
        env_, info[0], nullptr, Napi::String::New(env_, "onesided.Parker"), 0, 1, nullptr,
        [](napi_env, void*, void* hint) { delete static_cast<std::shared_ptr<State>*>(hint); }, context, callBack,
        &state_->call);
    if (made != napi_ok) {
      delete context;
      state_.reset();
      throwSystemError(env_, ENOMEM, "Parker: cannot create a thread-safe function");
      return;
    }
    info.This().As<Napi::Object>().TypeTag(&kTag);
    napi_unref_threadsafe_function(env_, state_->call);
    napi_add_env_cleanup_hook(env_, atEnvironmentEnd, state_.get());
  }

  ~Parker() override { end(); }

  static Napi::Function define(Napi::Env env) {
    return DefineClass(env, "Parker",
                       {InstanceMethod<&Parker::begin>("begin"), InstanceMethod<&Parker::interrupt>("interrupt"),
                        InstanceMethod<&Parker::close>("close")});
  }

 private:
  Napi::Value begin(const Napi::CallbackInfo& info) {
    if (!isTagged(info, kTag, "Parker.begin", "a Parker")) return {};
    int32_t* address;
    int64_t expected;
    double timeoutMs;
    if (!readWord(env_, info[0], info[1], "Parker.begin", &address) ||
        !readInteger(env_, info[2], "Parker.begin", "expected", INT32_MIN, INT32_MAX, &expected) ||
        !readTimeout(env_, info[3], "Parker.begin", &timeoutMs)) {
      return {};
    }
    if (state_->ended) {
      napi_throw_error(env_, "EBADF", "Parker.begin: this parker is closed");
      return {};
    }
    State& state = *state_;
    if (state.pending) {
      napi_throw_error(env_, "EBUSY", "Parker.begin: a sleep is already pending; interrupt it first");
      return {};
    }
    if (!state.thread.joinable() && !start(state)) return {};
    state.words = Pin(env_, info[0]);
    napi_create_reference(env_, info.This(), 1, &state.parker);
    // Without the fifth argument, or if it is true: a sleep that nobody needs to outlive the program does not hold the
    // event loop.
    if (!info[4].IsBoolean() || info[4].As<Napi::Boolean>().Value()) napi_ref_threadsafe_function(env_, state.call);
    state.pending = true;
    state.begin(address, static_cast<int32_t>(expected), timeoutMs);
    return {};
  }

  bool start(State& state) {
    const int error = startThread(&state.thread, [shared = state_] { shared->run(); });
    if (error != 0) throwSystemError(env_, error, "Parker.begin: cannot start a thread");
    return error == 0;
  }

  Napi::Value interrupt(const Napi::CallbackInfo& info) {
    if (!isTagged(info, kTag, "Parker.interrupt", "a Parker")) return {};
    const bool pending = !state_->ended && state_->pending;
    if (pending) {
      State& state = *state_;
      state.pending = false;
      napi_unref_threadsafe_function(env_, state.call);
      {
        std::unique_lock<std::mutex> lock(state.mutex);
        state.cancel(lock);
      }
      // Not before: the thread could not be woken if the words were gone.
      dropReferences(env_, state);
    }
    return Napi::Boolean::New(env_, pending);
  }

  Napi::Value close(const Napi::CallbackInfo& info) {
    if (!isTagged(info, kTag, "Parker.close", "a Parker")) return {};
    end();
    return {};
  }

  void end() {
    if (state_ == nullptr || state_->ended) return;
    napi_remove_env_cleanup_hook(env_, atEnvironmentEnd, state_.get());
    state_->stop();
    dropReferences(env_, *state_);
    state_->ended = true;
    state_->pending = false;
    napi_release_threadsafe_function(state_->call, napi_tsfn_release);
  }

  // The thread-safe function ends with its environment by itself, after this hook: hooks run in reverse order.
  static void atEnvironmentEnd(void* data) {
    auto* state = static_cast<State*>(data);
    state->stop();
    state->ended = true;
    dropReferences(state->env, *state);
  }

  Napi::Env env_;
  std::shared_ptr<State> state_;
};

}  // namespace

void exportParker(Napi::Env env, Napi::Object exports) { exports.Set("Parker", Parker::define(env)); }

}  // namespace onesided
