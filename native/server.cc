// Atomic access to memory that other processes cannot map: they ask, and a thread of the owner does it, without V8 and
// whatever JavaScript is doing meanwhile. The same hardware atomics on the same elements as everywhere else, so it is
// atomic towards the owner's own calls too.
//
// Requests stand in memory that all ranks of the job share: a line of words, then one slot for each rank, which only
// that rank and this thread write (src/transfer/served/memory-server.ts has the other side). A slot passes to and fro
// by its STATE:
//
//   asker:   fills the slot;  STATE := POSTED (release);  BELL += 1;  if SLEEPING: wakes BELL;     waits until STATE is
//            not POSTED
//   server:  BELL is b;  serves every slot that is POSTED (acquire): STATE := DONE or REFUSED (release), wakes STATE;
//            next round if BELL is not b;  SLEEPING := 1;  sleeps while BELL = b;  SLEEPING := 0
//
// Both sides' accesses of BELL and SLEEPING are sequentially consistent: an asker either sees SLEEPING and wakes, or
// its BELL came first and the sleep does not begin. While it was busy just now, the thread looks at BELL for some
// microseconds before it sleeps.
//
// What a slot says is not trusted: every number is read once, and each piece of memory must lie in one of the regions
// that the owner has added. `regions` is guarded by `mutex`, held while a slot is served, so that memory that `remove`
// has taken away is not touched any more when it returns.
//
// Memory is pinned (pin.h), the requests' as well as the regions': it stays where it is even if JavaScript detaches its
// buffer or unmaps it.

#include "server.h"

#include <time.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <forward_list>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "accumulate.h"
#include "arguments.h"
#include "futex.h"
#include "remapped_memory.h"
#include "pin.h"
#include "tagged.h"
#include "threads.h"

namespace onesided {
namespace {

constexpr napi_type_tag kTag = {0x51f3a0c2d7e94b18, 0x9a6c04e8b1d2f753};

// Words of the first line. In agreement with src/transfer/served/memory-server.ts, as all of these numbers.
enum Header { kBell = 0, kSleeping = 1 };
constexpr size_t kLineWords = 32;
// Words of a slot.
enum Slot { kState, kKind, kOp, kType, kRuns, kFlags, kSlotHeaderWords = 32 };
enum SlotState { kIdle, kPosted, kDone, kRefused };
enum Kind { kAccumulate, kCompareAndSwap, kPut, kGet };
constexpr int kWantsResult = 1;
// What this thread writes into a stripe that it holds: no rank's number.
constexpr int32_t kHolder = 1 << 30;
constexpr size_t kMaxRuns = 256;
constexpr size_t kDataBytes = 8192;
// A slot: header, runs (address and bytes, as doubles), data. Behind the last one are the lock stripes of the owner's
// memory.
constexpr size_t kRunsAt = 4 * kSlotHeaderWords;
constexpr size_t kDataAt = kRunsAt + 16 * kMaxRuns;
constexpr size_t kSlotBytes = kDataAt + kDataBytes;

// How long the thread looks for the next request before it sleeps: the asker's way to it takes a few microseconds, a
// wake-up tens of them.
constexpr int64_t kLingerNs = 20000;

int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
}

int32_t load(const int32_t* word) { return __atomic_load_n(word, __ATOMIC_SEQ_CST); }
void store(int32_t* word, int32_t value) { __atomic_store_n(word, value, __ATOMIC_SEQ_CST); }

template <typename T>
void compareAndSwap(unsigned char* target, unsigned char* data) {
  T wanted;
  T replacement;
  std::memcpy(&wanted, data, sizeof(T));
  std::memcpy(&replacement, data + sizeof(T), sizeof(T));
  __atomic_compare_exchange_n(reinterpret_cast<T*>(target), &wanted, replacement, false, __ATOMIC_SEQ_CST,
                              __ATOMIC_SEQ_CST);
  std::memcpy(data, &wanted, sizeof(T));
}

// Read once: its writer may change it meanwhile, and what was checked must be what is used.
double readNumber(const unsigned char* from) {
  const uint64_t bits = __atomic_load_n(reinterpret_cast<const uint64_t*>(from), __ATOMIC_RELAXED);
  double number;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

// What stays for good (`atEnvironmentEnd`), of all environments. Never destroyed.
std::mutex keptMutex;
auto* const kept = new std::forward_list<Pin>;

struct State {
  std::mutex mutex;
  std::thread thread;
  std::atomic<bool> stopping{false};
  // By their numbers; they may overlap. Guarded by `mutex`.
  struct Region {
    uintptr_t address;
    size_t bytes;
  };
  std::map<int64_t, Region> regions;
  // The same, bytes by address, and the most bytes that one ever had: who begins further before an address does not
  // reach it.
  std::multimap<uintptr_t, size_t> byAddress;
  size_t longest = 0;

  unsigned char* memory = nullptr;
  size_t slots = 0;

  // JavaScript's side.
  napi_env env = nullptr;
  bool ended = false;
  Pin words;
  std::map<int64_t, Pin> pins;
  int64_t added = 0;

  int32_t* word(size_t index) const { return reinterpret_cast<int32_t*>(memory) + index; }

  void run() {
    int32_t* bell = word(kBell);
    while (!stopping) {
      const int32_t heard = load(bell);
      bool served = false;
      for (size_t i = 0; i < slots && !stopping; i++) served |= look(memory + 4 * kLineWords + i * kSlotBytes);
      if (served) {
        const int64_t until = now() + kLingerNs;
        while (load(bell) == heard && !stopping && now() < until) {
          for (int i = 0; i < 16; i++) pause();
        }
      }
      if (stopping) return;
      if (load(bell) != heard) continue;
      store(word(kSleeping), 1);
      if (load(bell) == heard && !stopping) futexWait(bell, heard, INFINITY);
      if (stopping) return;
      store(word(kSleeping), 0);
    }
  }

  // Serves a slot if there is something in it.
  bool look(unsigned char* slot) {
    auto* words = reinterpret_cast<int32_t*>(slot);
    if (load(words + kState) != kPosted) return false;
    const bool done = serve(slot);
    store(words + kState, done ? kDone : kRefused);
    futexWake(words + kState, 1);
    return true;
  }

  bool serve(unsigned char* slot) {
    const auto* words = reinterpret_cast<const int32_t*>(slot);
    const int32_t kind = load(words + kKind);
    const int32_t op = load(words + kOp);
    const int32_t type = load(words + kType);
    const int32_t runs = load(words + kRuns);
    const bool result = (load(words + kFlags) & kWantsResult) != 0;
    const size_t size = elementBytes(type);
    const Stripes stripes{reinterpret_cast<int32_t*>(memory + 4 * kLineWords + slots * kSlotBytes), 0, kHolder};
    if (runs < 0 || static_cast<size_t>(runs) > kMaxRuns || size == 0) return false;
    if (kind == kAccumulate && !operationAllowed(op, type)) return false;
    unsigned char* data = slot + kDataAt;
    unsigned char* const end = data + kDataBytes;
    std::lock_guard<std::mutex> lock(mutex);
    for (int32_t i = 0; i < runs; i++) {
      const double numbers[2] = {readNumber(slot + kRunsAt + 16 * i), readNumber(slot + kRunsAt + 16 * i + 8)};
      if (!(numbers[0] >= 0 && numbers[0] <= kMaxSafeInteger)) return false;
      if (!(numbers[1] >= 0 && numbers[1] <= kDataBytes)) return false;
      const auto address = static_cast<uintptr_t>(numbers[0]);
      const auto bytes = static_cast<size_t>(numbers[1]);
      // Of the last element, its padding need not be there.
      const size_t padding = kind == kAccumulate && bytes >= size ? elementPadding(type) : 0;
      if (bytes > static_cast<size_t>(end - data) || !contains(address, bytes - padding)) return false;
      auto* target = reinterpret_cast<unsigned char*>(address);
      const bool atomic = kind == kAccumulate || kind == kCompareAndSwap;
      if (atomic && (address % elementAlignment(type) != 0 || bytes % size != 0)) return false;
      switch (kind) {
        case kPut: std::memcpy(target, data, bytes); break;
        case kGet: std::memcpy(data, target, bytes); break;
        case kAccumulate:
          for (size_t done = 0; done < bytes / size;) {
            // A stripe that cannot be had belongs to a thread of this process; if that was ended while it had it, the
            // job has failed.
            if (stopping) return false;
            unsigned char* operands = data + done * size;
            done += accumulateRun(op, type, target + done * size, operands, result ? operands : nullptr,
                                  bytes / size - done, stripes);
          }
          break;
        case kCompareAndSwap:
          // A pair of eight bytes is aligned to four only, but not for an instruction that swaps all of it.
          if (bytes != size || runs != 1 || address % size != 0) return false;
          switch (size) {
            case 1: compareAndSwap<uint8_t>(target, data); break;
            case 2: compareAndSwap<uint16_t>(target, data); break;
            case 4: compareAndSwap<uint32_t>(target, data); break;
            case 8: compareAndSwap<uint64_t>(target, data); break;
            default: return false;
          }
          break;
        default: return false;
      }
      data += bytes;
    }
    return true;
  }

  bool contains(uintptr_t address, size_t bytes) const {
    for (auto next = byAddress.upper_bound(address); next != byAddress.begin();) {
      --next;
      const size_t before = address - next->first;
      if (before > longest) return false;
      if (before <= next->second && bytes <= next->second - before) return true;
    }
    return false;
  }

  void insert(int64_t number, Region region) {
    regions[number] = region;
    byAddress.emplace(region.address, region.bytes);
    if (region.bytes > longest) longest = region.bytes;
  }

  void erase(std::map<int64_t, Region>::iterator region) {
    const auto [first, last] = byAddress.equal_range(region->second.address);
    for (auto same = first; same != last; ++same) {
      if (same->second != region->second.bytes) continue;
      byAddress.erase(same);
      break;
    }
    regions.erase(region);
  }

  // A thread on its way into its sleep has seen neither `stopping` nor the new number of the bell; the sleep then does
  // not begin.
  void stop() {
    if (!thread.joinable()) return;
    stopping = true;
    __atomic_fetch_add(word(kBell), 1, __ATOMIC_SEQ_CST);
    futexWake(word(kBell), INT32_MAX);
    thread.join();
  }

  // The thread has ended.
  void dropPins() {
    for (const auto& [number, region] : regions) servedEnds(region.address, region.bytes);
    regions.clear();
    byAddress.clear();
    for (auto& [number, pin] : pins) pin.drop(env);
    pins.clear();
    words.drop(env);
  }
};

class Server : public Napi::ObjectWrap<Server> {
 public:
  explicit Server(const Napi::CallbackInfo& info) : Napi::ObjectWrap<Server>(info), env_(info.Env()) {
    Bytes bytes;
    int64_t slots;
    const auto limit = [&] {
      return std::floor((static_cast<double>(bytes.length) - 4 * (kLineWords + kStripeWords)) / kSlotBytes);
    };
    if (!readBytes(env_, info[0], "Server", "the words", &bytes)) return;
    if (bytes.type != napi_int32_array || limit() < 1 || reinterpret_cast<uintptr_t>(bytes.data) % 8 != 0) {
      throwTypeError(env_, "Server: the words must be an Int32Array of at least a line and a slot, aligned to 8 bytes");
      return;
    }
    if (!readInteger(env_, info[1], "Server", "the number of slots", 1, limit(), &slots)) return;
    state_ = std::make_shared<State>();
    state_->env = env_;
    state_->memory = bytes.data;
    state_->slots = static_cast<size_t>(slots);
    if (!start()) {
      state_.reset();
      return;
    }
    state_->words = Pin(env_, info[0]);
    info.This().As<Napi::Object>().TypeTag(&kTag);
    napi_add_env_cleanup_hook(env_, atEnvironmentEnd, state_.get());
  }

  ~Server() override { end(); }

  static Napi::Function define(Napi::Env env) {
    return DefineClass(env, "Server",
                       {InstanceMethod<&Server::add>("add"), InstanceMethod<&Server::remove>("remove"),
                        InstanceMethod<&Server::close>("close")});
  }

 private:
  bool start() {
    const int error = startThread(&state_->thread, [shared = state_] { shared->run(); });
    if (error != 0) throwSystemError(env_, error, "Server: cannot start a thread");
    return error == 0;
  }

  // add(memory): serves these bytes and pins them. Gives a number for `remove`.
  Napi::Value add(const Napi::CallbackInfo& info) {
    if (!isTagged(info, kTag, "Server.add", "a Server")) return {};
    Bytes bytes;
    if (!readBytes(env_, info[0], "Server.add", "the memory", &bytes)) return {};
    if (state_->ended || bytes.length == 0) {
      throwRangeError(env_, state_->ended ? "Server.add: this server is closed"
                                          : "Server.add: the memory is empty or detached");
      return {};
    }
    const int64_t number = ++state_->added;
    {
      std::lock_guard<std::mutex> lock(state_->mutex);
      state_->insert(number, {reinterpret_cast<uintptr_t>(bytes.data), bytes.length});
    }
    state_->pins[number] = Pin(env_, info[0]);
    servedBegins(reinterpret_cast<uintptr_t>(bytes.data), bytes.length);
    return Napi::Number::New(env_, static_cast<double>(number));
  }

  // remove(number): when it returns, nothing there is touched any more.
  Napi::Value remove(const Napi::CallbackInfo& info) {
    if (!isTagged(info, kTag, "Server.remove", "a Server")) return {};
    int64_t number;
    if (!readInteger(env_, info[0], "Server.remove", "the number", 0, kMaxSafeInteger, &number)) return {};
    {
      std::lock_guard<std::mutex> lock(state_->mutex);
      const auto region = state_->regions.find(number);
      if (region != state_->regions.end()) {
        servedEnds(region->second.address, region->second.bytes);
        state_->erase(region);
      }
    }
    const auto pin = state_->pins.find(number);
    if (pin != state_->pins.end()) {
      pin->second.drop(env_);
      state_->pins.erase(pin);
    }
    return {};
  }

  Napi::Value close(const Napi::CallbackInfo& info) {
    if (!isTagged(info, kTag, "Server.close", "a Server")) return {};
    end();
    return {};
  }

  void end() {
    if (state_ == nullptr || state_->ended) return;
    napi_remove_env_cleanup_hook(env_, atEnvironmentEnd, state_.get());
    state_->stop();
    state_->ended = true;
    state_->dropPins();
  }

  // Hooks run in reverse order: before the memory of this environment is given back. An environment that ends with
  // memory added has not freed its windows. If it is a worker, the other threads may not know yet, and write there: so
  // that memory stays, for good.
  static void atEnvironmentEnd(void* data) {
    auto* state = static_cast<State*>(data);
    state->stop();
    state->ended = true;
    state->words.drop(state->env);
    for (auto& [number, pin] : state->pins) {
      pin.dropObject(state->env);
      std::lock_guard<std::mutex> lock(keptMutex);
      kept->push_front(std::move(pin));
    }
    state->pins.clear();
  }

  Napi::Env env_;
  std::shared_ptr<State> state_;
};

}  // namespace

void exportServer(Napi::Env env, Napi::Object exports) { exports.Set("Server", Server::define(env)); }

}  // namespace onesided
