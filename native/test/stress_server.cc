// The thread of a Server, with four askers, an owner that updates the same elements itself, and regions that come and
// go.
#include "../server.cc"

#include <algorithm>
#include <iterator>
#include <vector>

#include "stress.h"

namespace {

using namespace onesided;
using stress::Random;

// Numbers as in src/datatype/type-codes.ts.
constexpr int kSum = 0, kInt64 = 6, kFloat64 = 9;
constexpr size_t kAskers = 4;
constexpr size_t kRounds = 2500;
constexpr size_t kElements = 1024;
constexpr size_t kOwn = 256;
bool fault = false;
// How often `visiting` was served.
std::atomic<int> visits{0};

alignas(64) int64_t integers[kElements];
alignas(64) double doubles[kElements];
// Of which each asker has a piece to put to and get from: like a window, whose ranks do not touch the same elements.
alignas(64) unsigned char pieces[kAskers][kOwn];
// Served from time to time, and the owner's alone otherwise.
alignas(64) unsigned char visiting[4096];
alignas(8) unsigned char memory[4 * (kLineWords + kStripeWords) + kAskers * kSlotBytes];

// Byte by byte: the compiler could make one instruction of a memset, which the sanitizer would not see.
void fill(unsigned char value) {
  for (unsigned char& byte : visiting) byte = value;
}

struct Asked {
  int64_t integers = 0;
  double doubles = 0;
};

void write(unsigned char* slot, size_t run, const void* address, size_t bytes) {
  const double numbers[2] = {static_cast<double>(reinterpret_cast<uintptr_t>(address)), static_cast<double>(bytes)};
  std::memcpy(slot + kRunsAt + 16 * run, numbers, sizeof numbers);
}

// The asker's side of the protocol: src/transfer/served/memory-server.ts. Gives whether it was done.
bool ask(State& state, size_t asker, int32_t kind, int32_t type, int32_t runs, bool result) {
  unsigned char* slot = memory + 4 * kLineWords + asker * kSlotBytes;
  auto* header = reinterpret_cast<int32_t*>(slot);
  header[kKind] = kind;
  header[kOp] = kSum;
  header[kType] = type;
  header[kRuns] = runs;
  header[kFlags] = result ? kWantsResult : 0;
  __atomic_store_n(header + kState, kPosted, __ATOMIC_RELEASE);
  __atomic_fetch_add(state.word(kBell), 1, __ATOMIC_SEQ_CST);
  if (load(state.word(kSleeping)) != 0) futexWake(state.word(kBell), 1);
  int32_t now;
  while ((now = __atomic_load_n(header + kState, __ATOMIC_ACQUIRE)) == kPosted) {
    futexWait(header + kState, kPosted, 1000);
  }
  CHECK(now == kDone || now == kRefused);
  return now == kDone;
}

void asker(State& state, size_t me, Asked* asked) {
  Random random(me + 1);
  unsigned char* data = memory + 4 * kLineWords + me * kSlotBytes + kDataAt;
  unsigned char* slot = memory + 4 * kLineWords + me * kSlotBytes;
  unsigned char last[kOwn] = {};
  for (size_t round = 0; round < kRounds; round++) {
    const size_t count = 1 + random(64);
    const size_t first = random(kElements - 2 * count);
    switch (random(6)) {
      case 0: {
        for (size_t i = 0; i < count; i++) reinterpret_cast<int64_t*>(data)[i] = 1;
        write(slot, 0, integers + first, 8 * count);
        CHECK(ask(state, me, kAccumulate, kInt64, 1, random(2) == 0));
        asked->integers += static_cast<int64_t>(count);
        break;
      }
      case 1: {
        for (size_t i = 0; i < 2 * count; i++) reinterpret_cast<double*>(data)[i] = 1;
        // Two runs that follow each other.
        write(slot, 0, doubles + first, 8 * count);
        write(slot, 1, doubles + first + count, 8 * count);
        CHECK(ask(state, me, kAccumulate, kFloat64, 2, random(2) == 0));
        asked->doubles += static_cast<double>(2 * count);
        break;
      }
      case 2: {
        // Adds one, if nobody was in between.
        int64_t* cell = integers + random(kElements);
        int64_t wanted = __atomic_load_n(cell, __ATOMIC_SEQ_CST);
        const int64_t replacement = wanted + 1;
        std::memcpy(data, &wanted, 8);
        std::memcpy(data + 8, &replacement, 8);
        write(slot, 0, cell, 8);
        CHECK(ask(state, me, kCompareAndSwap, kInt64, 1, true));
        int64_t found;
        std::memcpy(&found, data, 8);
        if (found == wanted) asked->integers++;
        break;
      }
      case 3:
        for (size_t i = 0; i < kOwn; i++) data[i] = last[i] = static_cast<unsigned char>(random(256));
        write(slot, 0, pieces[me], kOwn);
        CHECK(ask(state, me, kPut, 0, 1, false));
        break;
      case 4:
        std::memset(data, 0xff, kOwn);
        write(slot, 0, pieces[me], kOwn);
        CHECK(ask(state, me, kGet, 0, 1, true));
        CHECK(std::memcmp(data, last, kOwn) == 0);
        break;
      default:
        // Done or refused, whatever the owner does with it just now.
        write(slot, 0, visiting, sizeof visiting);
        if (ask(state, me, kAccumulate, 0, 1, true)) visits.fetch_add(1, std::memory_order_relaxed);
        break;
    }
  }
}

}  // namespace

STRESS(bool faulty) {
  fault = faulty;
  State state;
  state.memory = memory;
  state.slots = kAskers;
  state.insert(1, {reinterpret_cast<uintptr_t>(integers), sizeof integers});
  state.insert(2, {reinterpret_cast<uintptr_t>(doubles), sizeof doubles});
  state.insert(3, {reinterpret_cast<uintptr_t>(pieces), sizeof pieces});
  state.thread = std::thread([&state] { state.run(); });

  std::atomic<size_t> running{kAskers};
  Asked asked[kAskers];
  std::vector<std::thread> askers;
  for (size_t i = 0; i < kAskers; i++) {
    askers.emplace_back([&, i] {
      asker(state, i, asked + i);
      running--;
    });
  }
  // The owner, meanwhile.
  Random random(99);
  const Stripes stripes{reinterpret_cast<int32_t*>(memory + 4 * kLineWords + kAskers * kSlotBytes), 0, 1};
  double one[64];
  std::fill(std::begin(one), std::end(one), 1.0);
  double added = 0;
  for (int64_t number = 10; running > 0; number++) {
    auto* target = reinterpret_cast<unsigned char*>(doubles + random(kElements - 64));
    for (size_t done = 0; done < 64;) {
      done += accumulateRun(kSum, kFloat64, target + 8 * done, reinterpret_cast<const unsigned char*>(one), nullptr,
                            64 - done, stripes);
    }
    added += 64;
    // As add() and remove() do it: when `remove` returns, nothing there is touched any more.
    fill(static_cast<unsigned char>(random(256)));
    {
      std::lock_guard<std::mutex> lock(state.mutex);
      state.insert(number, {reinterpret_cast<uintptr_t>(visiting), sizeof visiting});
    }
    for (uint64_t i = random(2000); i > 0; i--) onesided::pause();
    if (fault) {
      const int before = visits.load(std::memory_order_relaxed);
      while (visits.load(std::memory_order_relaxed) == before && running > 0) std::this_thread::yield();
      fill(1);
    }
    std::lock_guard<std::mutex> lock(state.mutex);
    state.erase(state.regions.find(number));
  }
  for (auto& thread : askers) thread.join();
  state.stop();
  double sum = 0;
  int64_t sumOfIntegers = 0;
  for (size_t i = 0; i < kElements; i++) {
    sum += doubles[i];
    sumOfIntegers += integers[i];
  }
  for (const Asked& one_ : asked) {
    sum -= one_.doubles;
    sumOfIntegers -= one_.integers;
  }
  CHECK(sum == added);
  CHECK(sumOfIntegers == 0);

  // Stopped while it is asked, looks round, falls asleep or sleeps.
  for (int round = 0; round < 300; round++) {
    State brief;
    std::memset(memory, 0, sizeof memory);
    brief.memory = memory;
    brief.slots = kAskers;
    brief.thread = std::thread([&brief] { brief.run(); });
    std::thread other([&brief] {
      __atomic_fetch_add(brief.word(kBell), 1, __ATOMIC_SEQ_CST);
      if (load(brief.word(kSleeping)) != 0) futexWake(brief.word(kBell), 1);
    });
    for (uint64_t i = random(3000); i > 0; i--) onesided::pause();
    brief.stop();
    other.join();
  }
  std::puts("server: all sums are exact");
}
