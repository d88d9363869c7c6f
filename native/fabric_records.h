// Of small accesses that go together (fabric_batches.cc): what a message of them consists of, behind its header.
#pragma once

#include <cstddef>
#include <cstdint>

#include "accumulate.h"
#include "fabric_engine.h"

namespace onesided::fabric {

enum class Access : uint8_t { kWrite, kRead, kAdd, kSwap, kUpdate };

// Behind it are the bytes that are written, or the operands of an atomic: what is added; what is compared, and stored;
// or an update.
struct Record {
  uint64_t address = 0;
  uint64_t key = 0;
  uint32_t rkey = 0;
  uint16_t bytes = 0;
  Access access{};
  uint8_t unused = 0;
};
static_assert(sizeof(Record) == 24, "a record of a message");

// Behind it are the elements that it is made with. The answer is a word, `Updated`, and what was there, if that is
// asked for.
struct Update {
  uint64_t lock = 0;
  uint64_t lockKey = 0;
  uint32_t lockRkey = 0;
  // What the lock is while the update has it.
  uint32_t holder = 0;
  // As a request has it (fabric_engine.h).
  uint32_t update = 0;
  uint32_t unused = 0;
  uint8_t round() const { return static_cast<uint8_t>(update >> 24); }
};
static_assert(sizeof(Update) == 32, "an update behind a record");
enum Updated : uint64_t { kDone = 0, kNotDone = 1 };
constexpr size_t kStatus = sizeof(uint64_t);

// Bytes behind a record, and bytes of the answer.
inline size_t sent(Access access, size_t bytes) {
  switch (access) {
    case Access::kWrite: return bytes;
    case Access::kRead: return 0;
    case Access::kAdd: return 8;
    case Access::kSwap: return 16;
    default: return sizeof(Update) + bytes;
  }
}
inline size_t updateBrings(uint32_t update, size_t bytes) {
  if (updateOp(update) == kSwapElement) return kStatus + bytes / 2;
  return kStatus + (updateFetches(update) ? bytes : 0);
}

// Whether elements of this number of bytes can be updated so at an address, under this lock or none.
inline bool isUpdate(uint32_t update, uint64_t lock, uint64_t address, size_t bytes) {
  const int op = updateOp(update);
  const int type = updateType(update);
  const size_t size = elementBytes(type);
  // The bytes behind an element's data may be another region's.
  if (size == 0 || elementPadding(type) != 0 || address % elementAlignment(type) != 0) return false;
  if (lock == 0 && (op == kSwapElement || updatedUnderStripes(type))) return false;
  if (op == kSwapElement) return bytes == 2 * size;
  return operationAllowed(op, type) && bytes > 0 && bytes % size == 0;
}

}  // namespace onesided::fabric
