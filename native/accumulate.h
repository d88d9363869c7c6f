// Accumulates of many elements in one call.
#pragma once

#include <napi.h>

#include <cstddef>
#include <cstdint>

namespace onesided {

// The locks of a part: src/transfer/loads/stripes.ts.
inline constexpr size_t kStripes = 32;
inline constexpr size_t kStripeWords = kStripes * 16;
struct Stripes {
  int32_t* words;
  // Added to offsets.
  uint64_t base;
  int32_t me;
};

// For the thread that serves atomic requests of other processes (server.cc). Numbers as in src/datatype/type-codes.ts
// and op.ts. Bytes from an element to the next, or 0 for a type that there is not.
size_t elementBytes(int64_t type);
size_t elementAlignment(int64_t type);
// Bytes behind its last one with data.
size_t elementPadding(int64_t type);
bool operationAllowed(int64_t op, int64_t type);
// Whether elements are updated under stripes, and not by the processor's atomics.
bool updatedUnderStripes(int64_t type);
// `count` elements one after the other. The caller has checked the operation, the range and that `target` is aligned.
// `result` may be `origin`: each element's origin is read before its previous value is written. Stripes are those of
// the address. Gives how many are done: not all if a stripe could not be had for long.
size_t accumulateRun(int op, int type, unsigned char* target, const unsigned char* origin, unsigned char* result,
                     size_t count, const Stripes& stripes);

void exportAccumulate(Napi::Env env, Napi::Object exports);

}  // namespace onesided
