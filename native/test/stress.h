// What the stress programs share.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace stress {

// Not an assertion: those are left out of optimized builds.
#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::_Exit(1);                                                            \
    }                                                                           \
  } while (0)

// Marsaglia's xorshift: each thread has its own.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 1) {}
  uint64_t operator()(uint64_t below) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ % below;
  }

 private:
  uint64_t state_;
};

}  // namespace stress

// What a library is opened for. `fault` leaves out the synchronization that it is about, so that the sanitizer must
// report it.
#define STRESS extern "C" __attribute__((visibility("default"))) void stressMain
