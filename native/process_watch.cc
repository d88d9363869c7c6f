// A ProcessWatch rings a word of shared memory when a process ends: it adds 1 to the word, and wakes all that sleep on
// it. A thread, started by the first `add`, polls a descriptor of each process (pidfd_open, Linux 5.3), which the
// kernel makes readable once all of that process is gone but its entry; its descriptors are closed by then.
//
// `mutex` guards `watched`, to which JavaScript adds and from which the thread takes away. The thread polls a copy:
// only it closes a descriptor that it may be polling. An event descriptor gets it out of its poll.
//
// The word is pinned: it stays where it is as long as the thread runs. Where that cannot be done (a SharedArrayBuffer),
// the environment's end joins the thread before its memory goes.

#include "process_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "arguments.h"
#include "futex.h"
#include "pin.h"
#include "tagged.h"
#include "threads.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

namespace onesided {
namespace {

constexpr napi_type_tag kTag = {0x5be1a97d0c3f4e62, 0x8f40d1b6a2957ce3};

struct State {
  std::mutex mutex;
  std::thread thread;
  // Processes by their descriptors.
  std::map<int, int64_t> watched;
  int event = -1;
  bool stopping = false;

  napi_env env = nullptr;
  int32_t* word = nullptr;
  Pin words;
  bool ended = false;

  bool has(int64_t pid) const {
    for (const auto& [descriptor, watchedPid] : watched)
      if (watchedPid == pid) return true;
    return false;
  }

  void ring() {
    __atomic_add_fetch(word, 1, __ATOMIC_SEQ_CST);
    futexWake(word, INT_MAX);
  }

  void run() {
    for (;;) {
      std::vector<pollfd> polled{{event, POLLIN, 0}};
      {
        std::lock_guard<std::mutex> lock(mutex);
        if (stopping) return;
        for (const auto& entry : watched) polled.push_back({entry.first, POLLIN, 0});
      }
      if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
      bool ended = false;
      if (polled[0].revents != 0) {
        uint64_t count;
        if (read(event, &count, sizeof count) < 0 && errno != EAGAIN) return;
      }
      for (size_t i = 1; i < polled.size(); i++) {
        if (polled[i].revents == 0) continue;
        std::lock_guard<std::mutex> lock(mutex);
        watched.erase(polled[i].fd);
        close(polled[i].fd);
        ended = true;
      }
      if (ended) ring();
    }
  }

  void kick() {
    const uint64_t one = 1;
    // It can only be full, and then the thread is on its way.
    if (write(event, &one, sizeof one) < 0) return;
  }

  void stop() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      stopping = true;
    }
    if (thread.joinable()) {
      kick();
      thread.join();
    }
    for (const auto& entry : watched) close(entry.first);
    watched.clear();
    if (event >= 0) close(event);
    event = -1;
  }
};

class ProcessWatch : public Napi::ObjectWrap<ProcessWatch> {
 public:
  explicit ProcessWatch(const Napi::CallbackInfo& info) : Napi::ObjectWrap<ProcessWatch>(info), env_(info.Env()) {
    int32_t* word;
    if (!readWord(env_, info[0], info[1], "ProcessWatch", &word)) return;
    state_ = std::make_shared<State>();
    state_->env = env_;
    state_->word = word;
    state_->words = Pin(env_, info[0]);
    info.This().As<Napi::Object>().TypeTag(&kTag);
    napi_add_env_cleanup_hook(env_, atEnvironmentEnd, state_.get());
  }

  ~ProcessWatch() override { end(); }

  static Napi::Function define(Napi::Env env) {
    return DefineClass(env, "ProcessWatch",
                       {InstanceMethod<&ProcessWatch::add>("add"), InstanceMethod<&ProcessWatch::close>("close")});
  }

 private:
  // add(pid): whether the end of the process rings. One that is gone rings at once.
  Napi::Value add(const Napi::CallbackInfo& info) {
    if (!isTagged(info, kTag, "ProcessWatch.add", "a ProcessWatch")) return {};
    int64_t pid;
    if (!readInteger(env_, info[0], "ProcessWatch.add", "the process", 1, INT32_MAX, &pid)) return {};
    State& state = *state_;
    if (state.ended) return Napi::Boolean::New(env_, false);
    {
      std::lock_guard<std::mutex> lock(state.mutex);
      if (state.has(pid)) return Napi::Boolean::New(env_, true);
    }
    if (state.event < 0) state.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (state.event < 0) return Napi::Boolean::New(env_, false);
    // The kernel closes it on exec.
    const int descriptor = static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0));
    if (descriptor < 0) {
      const bool isGone = errno == ESRCH;
      if (isGone) state.ring();
      return Napi::Boolean::New(env_, isGone);
    }
    {
      std::lock_guard<std::mutex> lock(state.mutex);
      state.watched[descriptor] = pid;
    }
    if (state.thread.joinable()) {
      state.kick();
    } else {
      const int error = startThread(&state.thread, [shared = state_] { shared->run(); });
      if (error != 0) throwSystemError(env_, error, "ProcessWatch.add: cannot start a thread");
    }
    return Napi::Boolean::New(env_, true);
  }

  Napi::Value close(const Napi::CallbackInfo& info) {
    if (!isTagged(info, kTag, "ProcessWatch.close", "a ProcessWatch")) return {};
    end();
    return {};
  }

  void end() {
    if (state_ == nullptr || state_->ended) return;
    napi_remove_env_cleanup_hook(env_, atEnvironmentEnd, state_.get());
    state_->stop();
    state_->ended = true;
    state_->words.drop(env_);
  }

  static void atEnvironmentEnd(void* data) {
    auto* state = static_cast<State*>(data);
    state->stop();
    state->ended = true;
    state->words.drop(state->env);
  }

  Napi::Env env_;
  std::shared_ptr<State> state_;
};

}  // namespace

void exportProcessWatch(Napi::Env env, Napi::Object exports) {
  exports.Set("ProcessWatch", ProcessWatch::define(env));
}

}  // namespace onesided
