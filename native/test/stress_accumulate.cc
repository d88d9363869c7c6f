// Accumulates of several threads on the same elements: integers by locked instructions, everything else under lock
// stripes, by all three ways that elements can lie. The sums must be exact, and ThreadSanitizer sees every access.
#include "../accumulate.cc"

#include <thread>
#include <vector>

#include "stress.h"

namespace {

using namespace onesided;
using stress::Random;

constexpr size_t kThreads = 4;
constexpr size_t kRounds = 3000;
constexpr size_t kElements = 4096;
constexpr size_t kMost = 700;

alignas(64) double doubles[kElements];
alignas(64) unsigned char pairs[kElements * 16];
alignas(64) int32_t integers[kElements];
alignas(64) int32_t words[kStripeWords];
bool fault = false;

// Again from where a stripe could not be had.
template <typename Work>
void all(size_t count, const Work& work) {
  for (size_t done = 0; done < count;) done += work(done);
}

void run(size_t thread, double* added, int64_t* addedIntegers) {
  Random random(thread + 1);
  const Stripes stripes{words, 0, static_cast<int32_t>(thread + 1)};
  std::vector<double> ones(kMost, 1.0);
  std::vector<int32_t> places(kMost);
  std::vector<int32_t> units(kMost, 1);
  std::vector<unsigned char> previous(kMost * 16);
  std::vector<unsigned char> candidates(kMost * 16);
  for (size_t round = 0; round < kRounds; round++) {
    const size_t count = 1 + random(kMost);
    const size_t first = random(kElements - count + 1);
    auto* target = reinterpret_cast<unsigned char*>(doubles + first);
    auto* origin = reinterpret_cast<unsigned char*>(ones.data());
    unsigned char* result = random(2) == 0 ? nullptr : previous.data();
    switch (random(4)) {
      case 0:
        if (fault && thread == 0) {
          for (size_t i = 0; i < count; i++) updateHeld<kSum, double>(target + 8 * i, origin, nullptr);
        } else {
          all(count, [&](size_t done) {
            unsigned char* sink = result == nullptr ? nullptr : result + 8 * done;
            const HeldRun work{target + 8 * done, origin, sink, count - done, (first + done) * 8, &stripes};
            return work.apply<kSum, double>();
          });
        }
        *added += static_cast<double>(count);
        break;
      case 1: {
        for (size_t i = 0; i < count; i++) places[i] = static_cast<int32_t>(random(kElements));
        Placed work{};
        work.target = reinterpret_cast<unsigned char*>(doubles);
        work.targets = {nullptr, places.data(), 8, (kElements - 1) * 8};
        work.origin = origin;
        work.sources = {nullptr, nullptr, 8, (kMost - 1) * 8};
        work.result = result;
        work.sinks = {nullptr, nullptr, 8, (kMost - 1) * 8};
        work.count = count;
        work.stripes = &stripes;
        // All or none.
        all(count, [&](size_t) { return work.apply<kSum, double>(); });
        *added += static_cast<double>(count);
        break;
      }
      case 2: {
        // The index says which thread stored the value, so a pair that was torn shows.
        using Type = Pair<double, 8, 16>;
        for (size_t i = 0; i < count; i++) {
          const auto value = static_cast<double>(random(1000000) * kThreads + thread);
          Element<Type>::store(candidates.data() + 16 * i, {value, static_cast<int32_t>(thread)});
        }
        all(count, [&](size_t done) {
          unsigned char* sink = result == nullptr ? nullptr : result + 16 * done;
          const size_t at = 16 * (first + done);
          const HeldRun work{pairs + at, candidates.data() + 16 * done, sink, count - done, at, &stripes};
          return work.apply<kMaxloc, Type>();
        });
        if (result == nullptr) break;
        for (size_t i = 0; i < count; i++) {
          const Type pair = Element<Type>::load(result + 16 * i);
          const auto owner = static_cast<int64_t>(pair.value) % static_cast<int64_t>(kThreads);
          CHECK(pair.value == 0 || static_cast<int32_t>(owner) == pair.index);
        }
        break;
      }
      default: {
        for (size_t i = 0; i < count; i++) places[i] = static_cast<int32_t>(random(kElements));
        const Scattered scattered{reinterpret_cast<unsigned char*>(integers), places.data(),
                                  reinterpret_cast<const unsigned char*>(units.data()), count, kElements};
        scattered.apply<kSum, int32_t>();
        const Run consecutive{reinterpret_cast<unsigned char*>(integers + first),
                              reinterpret_cast<const unsigned char*>(units.data()), result, count};
        consecutive.apply<kSum, int32_t>();
        *addedIntegers += static_cast<int64_t>(2 * count);
        break;
      }
    }
  }
}

}  // namespace

STRESS(bool faulty) {
  fault = faulty;
  double added[kThreads] = {};
  int64_t addedIntegers[kThreads] = {};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; i++) threads.emplace_back(run, i, added + i, addedIntegers + i);
  for (auto& thread : threads) thread.join();
  double sum = 0;
  int64_t sumOfIntegers = 0;
  for (size_t i = 0; i < kElements; i++) {
    sum += doubles[i];
    sumOfIntegers += integers[i];
  }
  for (size_t i = 0; i < kThreads; i++) {
    sum -= added[i];
    sumOfIntegers -= addedIntegers[i];
  }
  CHECK(fault || sum == 0);
  CHECK(sumOfIntegers == 0);
  for (const int32_t word : words) CHECK(word == 0);
  std::puts("accumulate: all sums are exact");
}
