// The lock stripes of a part, as in src/transfer/loads/stripes.ts, which has the protocol and the argument. Only for
// accumulate.cc.
#pragma once

#include <sched.h>

#include <cstddef>
#include <cstdint>

#include "accumulate.h"
#include "threads.h"

namespace onesided {
namespace {

constexpr size_t kLineWords = 16;
constexpr int kLooks = 64;
constexpr int kYields = 256;

size_t stripeOf(const Stripes& stripes, uint64_t offset) { return ((stripes.base + offset) >> 12) % kStripes; }

// False if it cannot be had for so long that the caller should look what is wrong.
bool acquire(const Stripes& stripes, size_t stripe) {
  int32_t* word = stripes.words + stripe * kLineWords;
  for (int yields = 0;; yields++) {
    for (int look = 0; look < kLooks; look++) {
      int32_t none = 0;
      if (__atomic_load_n(word, __ATOMIC_RELAXED) == 0 &&
          __atomic_compare_exchange_n(word, &none, stripes.me, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
        return true;
      }
      pause();
    }
    if (yields == kYields) return false;
    sched_yield();
  }
}

// What was stored under the stripe is seen by whoever acquires it next; nothing else needs an order.
void release(const Stripes& stripes, size_t stripe) {
  __atomic_store_n(stripes.words + stripe * kLineWords, 0, __ATOMIC_RELEASE);
}

void releaseAll(const Stripes& stripes, uint64_t held) {
  for (uint64_t left = held; left != 0; left &= left - 1) release(stripes, static_cast<size_t>(__builtin_ctzll(left)));
}

// In ascending order, all or none.
bool acquireAll(const Stripes& stripes, uint64_t needed) {
  for (uint64_t left = needed; left != 0; left &= left - 1) {
    const auto stripe = static_cast<size_t>(__builtin_ctzll(left));
    if (acquire(stripes, stripe)) continue;
    releaseAll(stripes, needed & ((uint64_t{1} << stripe) - 1));
    return false;
  }
  return true;
}

}  // namespace
}  // namespace onesided
