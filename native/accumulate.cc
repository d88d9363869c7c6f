// Each integer is updated by one locked instruction, or by compare-and-swap where the processor has none for the
// operation. That agrees with `Atomics` in JavaScript on the same elements, in any process: both are locked accesses of
// the element's own size, aligned to it. Floating-point numbers and pairs are updated by plain instructions under lock
// stripes: src/transfer/stripes.ts has the protocol and the argument. Everything is checked for all elements before the
// first is touched.
//
// Integers wrap: the arithmetic is unsigned. MIN and MAX of floats are NaN if either operand is, and take −0 for less
// than +0, as Math.min and Math.max do. MINLOC and MAXLOC likewise: a NaN wins, the target's before the origin's.

#include "accumulate.h"

#include <sched.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <type_traits>

#include "arguments.h"
#include "exports.h"

namespace onesided {
namespace {

// Groups of base types.
constexpr unsigned kIntegers = 1;
constexpr unsigned kFloats = 2;
constexpr unsigned kBytes = 4;
constexpr unsigned kPairs = 8;
constexpr unsigned kAll = kIntegers | kFloats | kBytes | kPairs;

// A row an operation, with the types on which it is defined (MPI 4.1, section 6.9.2): in the order of their codes, as
// in src/datatype/op.ts.
#define ONESIDED_OPERATIONS(ROW) \
  ROW(kSum, kIntegers | kFloats) \
  ROW(kProd, kIntegers | kFloats) \
  ROW(kMin, kIntegers | kFloats) \
  ROW(kMax, kIntegers | kFloats) \
  ROW(kLand, kIntegers) \
  ROW(kLor, kIntegers) \
  ROW(kLxor, kIntegers) \
  ROW(kBand, kIntegers | kBytes) \
  ROW(kBor, kIntegers | kBytes) \
  ROW(kBxor, kIntegers | kBytes) \
  ROW(kReplace, kAll) \
  ROW(kNoOp, kAll) \
  ROW(kMinloc, kPairs) \
  ROW(kMaxloc, kPairs)

#define ONESIDED_CODE(code, types) code,
#define ONESIDED_TYPES(code, types) types,
enum Op { ONESIDED_OPERATIONS(ONESIDED_CODE) kOps };
constexpr unsigned kDefinedOn[kOps] = {ONESIDED_OPERATIONS(ONESIDED_TYPES)};

// The numbers of src/datatype/codes.ts.
enum Type {
  kInt8, kUint8, kInt16, kUint16, kInt32, kUint32, kInt64, kUint64, kFloat32, kFloat64, kByte,
  kFloatInt, kDoubleInt, kLongInt, kShortInt, kTwoInt, kTypes
};

// From one element to the next, to the end of its data, and what addresses are multiples of.
constexpr size_t kSizes[kTypes] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 1, 8, 16, 16, 8, 8};
constexpr size_t kData[kTypes] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 1, 8, 12, 12, 8, 8};
constexpr size_t kAlignments[kTypes] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 1, 4, 8, 8, 4, 4};

constexpr bool underLock(int64_t type) { return type == kFloat32 || type == kFloat64 || type > kByte; }

template <size_t size>
struct BitsOfSize;
template <>
struct BitsOfSize<1> { using type = uint8_t; };
template <>
struct BitsOfSize<2> { using type = uint16_t; };
template <>
struct BitsOfSize<4> { using type = uint32_t; };
template <>
struct BitsOfSize<8> { using type = uint64_t; };
template <typename T>
using Bits = typename BitsOfSize<sizeof(T)>::type;

template <typename To, typename From>
To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

// A value and its index, laid out as C does it.
template <typename V, size_t index_at, size_t stride>
struct Pair {
  V value;
  int32_t index;
};

// How an element lies in memory. Origins and results are private, and need not be aligned.
template <typename T>
struct Element {
  static constexpr size_t kStride = sizeof(T);
  static T load(const unsigned char* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  static void store(unsigned char* to, T value) { std::memcpy(to, &value, sizeof value); }
};

template <typename V, size_t index_at, size_t stride>
struct Element<Pair<V, index_at, stride>> {
  static constexpr size_t kStride = stride;
  static Pair<V, index_at, stride> load(const unsigned char* from) {
    return {Element<V>::load(from), Element<int32_t>::load(from + index_at)};
  }
  static void store(unsigned char* to, Pair<V, index_at, stride> pair) {
    Element<V>::store(to, pair.value);
    Element<int32_t>::store(to + index_at, pair.index);
  }
};

template <typename T>
T load(const unsigned char* from) {
  return Element<T>::load(from);
}

template <typename T>
T smaller(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    if (a == b) return std::signbit(a) ? a : b;
  }
  return a < b ? a : b;
}

template <typename T>
T larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    if (a == b) return std::signbit(a) ? b : a;
  }
  return a > b ? a : b;
}

template <Op op, typename V, size_t index_at, size_t stride>
Pair<V, index_at, stride> combine(Pair<V, index_at, stride> target, Pair<V, index_at, stride> origin) {
  if constexpr (op == kReplace) return origin;
  if constexpr (op == kNoOp) return target;
  static_assert(op == kReplace || op == kNoOp || op == kMinloc || op == kMaxloc, "its arithmetic on pairs is missing");
  if (target.value == origin.value) return {target.value, target.index < origin.index ? target.index : origin.index};
  if (target.value != target.value) return target;
  if (origin.value != origin.value) return origin;
  return (op == kMinloc) == (origin.value < target.value) ? origin : target;
}

// What a plain update, or a compare-and-swap loop, stores.
template <Op op, typename T>
T combine(T target, T origin) {
  if constexpr (op == kReplace) return origin;
  else if constexpr (op == kNoOp) return target;
  else if constexpr (op == kMin) return smaller(target, origin);
  else if constexpr (op == kMax) return larger(target, origin);
  else if constexpr (op == kLand) return static_cast<T>(target != 0 && origin != 0);
  else if constexpr (op == kLor) return static_cast<T>(target != 0 || origin != 0);
  else if constexpr (op == kLxor) return static_cast<T>((target != 0) != (origin != 0));
  else {
    static_assert(op == kSum || op == kProd, "its arithmetic is missing");
    if constexpr (std::is_floating_point_v<T>) return op == kSum ? target + origin : target * origin;
    // In 64 bits: small unsigned types would be promoted to int, whose overflow is undefined.
    const auto a = static_cast<uint64_t>(target);
    const auto b = static_cast<uint64_t>(origin);
    return static_cast<T>(op == kSum ? a + b : a * b);
  }
}

// Updates one integer; gives what was there. Where nobody wants that, the compiler takes the shorter instruction
// (`lock xor`).
template <Op op, typename T>
inline T update(T* element, T origin) {
  auto* bits = reinterpret_cast<Bits<T>*>(element);
  const auto operand = bitCast<Bits<T>>(origin);
  if constexpr (op == kReplace) return bitCast<T>(__atomic_exchange_n(bits, operand, __ATOMIC_SEQ_CST));
  else if constexpr (op == kNoOp) return bitCast<T>(__atomic_load_n(bits, __ATOMIC_SEQ_CST));
  else if constexpr (op == kBand) return bitCast<T>(__atomic_fetch_and(bits, operand, __ATOMIC_SEQ_CST));
  else if constexpr (op == kBor) return bitCast<T>(__atomic_fetch_or(bits, operand, __ATOMIC_SEQ_CST));
  else if constexpr (op == kBxor) return bitCast<T>(__atomic_fetch_xor(bits, operand, __ATOMIC_SEQ_CST));
  else if constexpr (op == kSum) return bitCast<T>(__atomic_fetch_add(bits, operand, __ATOMIC_SEQ_CST));
  else {
    Bits<T> seen = __atomic_load_n(bits, __ATOMIC_RELAXED);
    for (;;) {
      const T before = bitCast<T>(seen);
      const auto after = bitCast<Bits<T>>(combine<op, T>(before, origin));
      if (__atomic_compare_exchange_n(bits, &seen, after, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) return before;
    }
  }
}

// Elements one after the other.
struct Run {
  unsigned char* target;
  const unsigned char* origin;
  unsigned char* result;
  size_t count;

  template <Op op, typename T>
  void apply() const {
    auto* element = reinterpret_cast<T*>(target);
    if (result == nullptr) {
      for (size_t i = 0; i < count; i++) update<op, T>(element + i, op == kNoOp ? T() : load<T>(origin + i * sizeof(T)));
      return;
    }
    for (size_t i = 0; i < count; i++) {
      const T before = update<op, T>(element + i, op == kNoOp ? T() : load<T>(origin + i * sizeof(T)));
      std::memcpy(result + i * sizeof(T), &before, sizeof(T));
    }
  }
};

inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// As in src/transfer/stripes.ts.
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

// What was stored under the stripe is seen by whoever acquires it next; nothing else is to be ordered.
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

// Updates one element under its stripe. `result` may be `origin`.
template <Op op, typename T>
inline void updateHeld(unsigned char* target, const unsigned char* origin, unsigned char* result) {
  const T before = load<T>(target);
  if constexpr (op == kNoOp) {
    if (result != nullptr) Element<T>::store(result, before);
  } else {
    const T operand = load<T>(origin);
    if (result != nullptr) Element<T>::store(result, before);
    Element<T>::store(target, combine<op>(before, operand));
  }
}

// The same for consecutive elements, in vector instructions: written once, and compiled for either width that the
// processor may have (64 bytes are no faster than 32 where it was measured).
template <Op op, typename T>
inline __attribute__((always_inline)) void combineLoop(unsigned char* __restrict to, const unsigned char* __restrict from,
                                                       unsigned char* __restrict before, size_t n) {
  constexpr size_t size = Element<T>::kStride;
  if (before == nullptr) {
    if constexpr (op == kNoOp) return;
    for (size_t i = 0; i < n; i++) {
      Element<T>::store(to + i * size, combine<op>(load<T>(to + i * size), load<T>(from + i * size)));
    }
    return;
  }
  for (size_t i = 0; i < n; i++) {
    const T seen = load<T>(to + i * size);
    Element<T>::store(before + i * size, seen);
    if constexpr (op != kNoOp) Element<T>::store(to + i * size, combine<op>(seen, load<T>(from + i * size)));
  }
}

#if defined(__x86_64__)
const bool kAvx2 = __builtin_cpu_supports("avx2");

template <Op op, typename T>
__attribute__((target("avx2"))) void combineAvx2(unsigned char* to, const unsigned char* from, unsigned char* before, size_t n) {
  combineLoop<op, T>(to, from, before, n);
}
#endif

template <Op op, typename T>
void combineAll(unsigned char* to, const unsigned char* from, unsigned char* before, size_t n) {
#if defined(__x86_64__)
  // Sums and products of plain numbers: what the compiler makes vector instructions of.
  if constexpr (std::is_floating_point_v<T> && (op == kSum || op == kProd)) {
    if (kAvx2) return combineAvx2<op, T>(to, from, before, n);
  }
#endif
  combineLoop<op, T>(to, from, before, n);
}

// Elements one after the other, stripe by stripe.
struct HeldRun {
  unsigned char* target;
  const unsigned char* origin;
  unsigned char* result;
  size_t count;
  // Of the first element, in the part.
  uint64_t offset;
  const Stripes* stripes;

  // How many are done: all, unless a stripe could not be had.
  template <Op op, typename T>
  size_t apply() const {
    constexpr size_t size = Element<T>::kStride;
    for (size_t done = 0; done < count;) {
      const uint64_t at = stripes->base + offset + done * size;
      // Those whose first byte is in this stripe.
      const size_t room = (4096 - at % 4096 + size - 1) / size;
      const size_t n = count - done < room ? count - done : room;
      const size_t stripe = stripeOf(*stripes, offset + done * size);
      if (!acquire(*stripes, stripe)) return done;
      unsigned char* to = target + done * size;
      const unsigned char* from = origin + done * size;
      if (result == nullptr) combineAll<op, T>(to, from, nullptr, n);
      else if (result == origin) {
        for (size_t i = 0; i < n; i++) updateHeld<op, T>(to + i * size, from + i * size, result + (done + i) * size);
      } else combineAll<op, T>(to, from, result + done * size, n);
      release(*stripes, stripe);
      done += n;
    }
    return count;
  }
};

// Where the i-th element of a side is, in bytes. Negative if it is nowhere.
struct Offsets {
  const double* bytes = nullptr;
  const int32_t* elements = nullptr;
  size_t stride = 0;
  // The last place that an element can have.
  int64_t last = 0;
  bool inOrder() const { return bytes == nullptr && elements == nullptr; }
  bool holds(int64_t place) const { return place >= 0 && place <= last; }
  int64_t at(size_t i) const {
    if (bytes != nullptr) {
      const auto number = bitCast<double>(__atomic_load_n(reinterpret_cast<const uint64_t*>(bytes + i), __ATOMIC_RELAXED));
      return number >= 0 && number <= kMaxSafeInteger ? static_cast<int64_t>(number) : -1;
    }
    if (elements != nullptr) return int64_t{__atomic_load_n(elements + i, __ATOMIC_RELAXED)} * static_cast<int64_t>(stride);
    return static_cast<int64_t>(i * stride);
  }
};

// Elements anywhere on all sides. What stands in the arrays of offsets was found to be within the sides. They may stand
// in memory that another thread changes meanwhile: each offset is then read once more, once, and looked at again, and
// an element that is nowhere is left out.
struct Placed {
  unsigned char* target;
  Offsets targets;
  const unsigned char* origin;
  Offsets sources;
  unsigned char* result;
  Offsets sinks;
  size_t count;
  uint64_t offset;
  const Stripes* stripes;

  struct Places {
    int64_t target;
    int64_t source;
    int64_t sink;
  };
  template <Op op>
  bool find(size_t i, Places* places) const {
    places->target = targets.at(i);
    places->source = op == kNoOp ? 0 : sources.at(i);
    places->sink = result == nullptr ? 0 : sinks.at(i);
    return targets.holds(places->target) && (op == kNoOp || sources.holds(places->source)) && (result == nullptr || sinks.holds(places->sink));
  }

  template <Op op, typename T>
  size_t apply() const {
    Places places;
    if constexpr (std::is_integral_v<T>) {
      for (size_t i = 0; i < count; i++) {
        if (!find<op>(i, &places) || reinterpret_cast<uintptr_t>(target + places.target) % sizeof(T) != 0) continue;
        const T before = update<op, T>(reinterpret_cast<T*>(target + places.target), op == kNoOp ? T() : load<T>(origin + places.source));
        if (result != nullptr) Element<T>::store(result + places.sink, before);
      }
      return count;
    } else {
      const uint64_t needed = stripesNeeded();
      if (!acquireAll(*stripes, needed)) return 0;
      if (targets.elements != nullptr && sources.inOrder() && result == nullptr) scatter<op, T>();
      else for (size_t i = 0; i < count; i++) {
        if (!find<op>(i, &places)) continue;
        updateHeld<op, T>(target + places.target, op == kNoOp ? nullptr : origin + places.source, result == nullptr ? nullptr : result + places.sink);
      }
      releaseAll(*stripes, needed);
      return count;
    }
  }

  // The most frequent case, without asking for each element what kind of offsets it has.
  template <Op op, typename T>
  void scatter() const {
    for (size_t i = 0; i < count; i++) {
      const int64_t at = int64_t{__atomic_load_n(targets.elements + i, __ATOMIC_RELAXED)} * static_cast<int64_t>(Element<T>::kStride);
      if (targets.holds(at)) updateHeld<op, T>(target + at, origin + i * Element<T>::kStride, nullptr);
    }
  }

  uint64_t stripesNeeded() const {
    uint64_t needed = 0;
    if (targets.elements == nullptr) {
      for (size_t i = 0; i < count; i++) needed |= uint64_t{1} << stripeOf(*stripes, offset + static_cast<uint64_t>(targets.at(i)));
      return needed;
    }
    const uint64_t begin = stripes->base + offset;
    for (size_t i = 0; i < count; i++) needed |= uint64_t{1} << ((begin + static_cast<uint64_t>(int64_t{targets.elements[i]}) * targets.stride) >> 12) % kStripes;
    return needed;
  }
};

// One element each, anywhere. A locked instruction waits for its cache line, and the next one waits for it: lines asked
// for this many elements ahead, to be written, arrive in parallel meanwhile. Measured with 1,024 xors of 64 bits a call
// on 128 MiB, AMD EPYC: 0.10, 0.12, 0.13, 0.14, 0.155, 0.160, 0.155 G updates/s at distances of 8, 16, 24, 32, 48, 64,
// 96; less beyond.
constexpr size_t kAhead = 64;

struct Scattered {
  unsigned char* target;
  const int32_t* displacements;
  const unsigned char* origin;
  size_t count;
  uint32_t limit;

  // All displacements were found to be below `limit` before. But they may stand in memory that another thread changes
  // meanwhile: each is read once more, once, and looked at again. That costs nothing beside a locked instruction.
  template <Op op, typename T>
  void one(T* base, size_t i) const {
    const auto at = static_cast<uint32_t>(__atomic_load_n(displacements + i, __ATOMIC_RELAXED));
    if (at < limit) update<op, T>(base + at, load<T>(origin + i * sizeof(T)));
  }

  template <Op op, typename T>
  void apply() const {
    auto* base = reinterpret_cast<T*>(target);
    const size_t early = count < kAhead ? count : kAhead;
    for (size_t i = 0; i < early; i++) __builtin_prefetch(base + displacements[i], 1);
    size_t i = 0;
    for (; i + kAhead < count; i++) {
      __builtin_prefetch(base + displacements[i + kAhead], 1);
      one<op, T>(base, i);
    }
    for (; i < count; i++) one<op, T>(base, i);
  }
};

template <typename T>
constexpr unsigned kGroupOf = std::is_integral_v<T> ? kIntegers | kBytes : std::is_floating_point_v<T> ? kFloats : kPairs;

// Calls `work.apply<op, T>()`: void, or how many elements are done.
template <typename T, typename Work>
auto applyTo(int op, const Work& work) -> decltype(work.template apply<kNoOp, T>()) {
  using Done = decltype(work.template apply<kNoOp, T>());
#define ONESIDED_CASE(code, types) \
  case code: \
    if constexpr (((types) & kGroupOf<T>) != 0) return work.template apply<code, T>(); \
    break;
  switch (op) {
    ONESIDED_OPERATIONS(ONESIDED_CASE)
    default: break;
  }
  return Done();
}

// Integers and bytes.
template <typename Work>
auto applyToIntegers(int op, int type, const Work& work) {
  switch (type) {
    case kInt8: return applyTo<int8_t>(op, work);
    case kUint8: return applyTo<uint8_t>(op, work);
    case kInt16: return applyTo<int16_t>(op, work);
    case kUint16: return applyTo<uint16_t>(op, work);
    case kInt32: return applyTo<int32_t>(op, work);
    case kUint32: return applyTo<uint32_t>(op, work);
    case kInt64: return applyTo<int64_t>(op, work);
    case kUint64: return applyTo<uint64_t>(op, work);
    default: return applyTo<uint8_t>(op, work);
  }
}

// What is updated under stripes.
template <typename Work>
size_t applyHeld(int op, int type, const Work& work) {
  switch (type) {
    case kFloat32: return applyTo<float>(op, work);
    case kFloat64: return applyTo<double>(op, work);
    case kFloatInt: return applyTo<Pair<float, 4, 8>>(op, work);
    case kDoubleInt: return applyTo<Pair<double, 8, 16>>(op, work);
    case kLongInt: return applyTo<Pair<int64_t, 8, 16>>(op, work);
    case kShortInt: return applyTo<Pair<int16_t, 4, 8>>(op, work);
    default: return applyTo<Pair<int32_t, 4, 8>>(op, work);
  }
}

unsigned groupOf(int64_t type) {
  if (type == kFloat32 || type == kFloat64) return kFloats;
  if (type == kByte) return kBytes;
  return type > kByte ? kPairs : kIntegers;
}

bool allowed(int64_t op, int64_t type) { return (kDefinedOn[op] & groupOf(type)) != 0; }

bool readOperation(napi_env env, napi_value op, napi_value type, const char* call, bool integers, int64_t* opCode, int64_t* typeCode) {
  if (!readInteger(env, op, call, "the operation", 0, kOps - 1, opCode) ||
      !readInteger(env, type, call, "the type", 0, kTypes - 1, typeCode)) {
    return false;
  }
  if (integers && underLock(*typeCode)) {
    throwTypeError(env, "%s: accepts only integers and bytes, not type %d", call, static_cast<int>(*typeCode));
    return false;
  }
  if (allowed(*opCode, *typeCode)) return true;
  throwTypeError(env, "%s: operation %d is not defined on type %d", call, static_cast<int>(*opCode), static_cast<int>(*typeCode));
  return false;
}

// Reads a byte offset into `bytes`: `bytes->data` and `bytes->length` then begin there.
bool readOffset(napi_env env, napi_value value, const char* call, const char* name, Bytes* bytes) {
  int64_t offset;
  if (!readInteger(env, value, call, name, 0, static_cast<double>(bytes->length), &offset)) return false;
  bytes->data += offset;
  bytes->length -= static_cast<size_t>(offset);
  return true;
}

bool aligned(napi_env env, const Bytes& target, size_t size, const char* call) {
  if (reinterpret_cast<uintptr_t>(target.data) % size == 0) return true;
  throwRangeError(env, "%s: the target must be aligned to its elements of %zu bytes", call, size);
  return false;
}

bool holds(napi_env env, const Bytes& bytes, int64_t count, size_t size, const char* call, const char* name) {
  if (static_cast<uint64_t>(count) <= bytes.length / size) return true;
  throwRangeError(env, "%s: %lld elements of %zu bytes do not fit into the %zu bytes of %s", call,
                  static_cast<long long>(count), size, bytes.length, name);
  return false;
}

template <size_t N>
bool given(napi_env env, const Arguments<N>& args, size_t index) {
  napi_valuetype type;
  return index < args.count && napi_typeof(env, args[index], &type) == napi_ok && type != napi_undefined;
}

// accumulate(op, type, target, targetByte, origin, originByte, count, result?)
napi_value accumulate(napi_env env, napi_callback_info info) {
  constexpr const char* call = "accumulate";
  Arguments<8> args(env, info);
  int64_t op;
  int64_t type;
  int64_t count;
  Bytes target;
  Bytes origin;
  Bytes result;
  if (!readOperation(env, args[0], args[1], call, true, &op, &type) || !readBytes(env, args[2], call, "the target", &target) ||
      !readOffset(env, args[3], call, "the target's offset", &target) ||
      !readBytes(env, args[4], call, "the origin", &origin) ||
      !readOffset(env, args[5], call, "the origin's offset", &origin) ||
      !readInteger(env, args[6], call, "the count", 0, kMaxSafeInteger, &count)) {
    return nullptr;
  }
  const size_t size = kSizes[type];
  if (!aligned(env, target, size, call) || !holds(env, target, count, size, call, "the target") ||
      (op != kNoOp && !holds(env, origin, count, size, call, "the origin"))) {
    return nullptr;
  }
  if (given(env, args, 7) && (!readBytes(env, args[7], call, "the result", &result) ||
                              !holds(env, result, count, size, call, "the result"))) {
    return nullptr;
  }
  if (count > 0) applyToIntegers(static_cast<int>(op), static_cast<int>(type), Run{target.data, origin.data, result.data, static_cast<size_t>(count)});
  return nullptr;
}

// Throws a RangeError whose `index` is that of the first displacement outside. Another thread may have changed it since
// it was found.
void throwOutside(napi_env env, const int32_t* displacements, size_t count, int64_t limit) {
  size_t at = 0;
  int32_t found = 0;
  for (; at < count; at++) {
    found = __atomic_load_n(displacements + at, __ATOMIC_RELAXED);
    if (found < 0 || found >= limit) break;
  }
  if (at == count) {
    throwRangeError(env, "accumulateIndexed: displacements changed during the call, and one is out of range; nothing was written");
    return;
  }
  char text[200];
  snprintf(text, sizeof text, "accumulateIndexed: displacement %zu is %d, but the target has %lld elements; nothing was written", at,
           found, static_cast<long long>(limit));
  napi_value code;
  napi_value message;
  napi_value error;
  napi_value index;
  napi_create_string_utf8(env, "ERR_ARG", NAPI_AUTO_LENGTH, &code);
  napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &message);
  napi_create_range_error(env, code, message, &error);
  napi_create_double(env, static_cast<double>(at), &index);
  napi_set_named_property(env, error, "index", index);
  napi_throw(env, error);
}

// accumulateIndexed(op, type, target, targetByte, displacements, origin, count?, limit?)
napi_value accumulateIndexed(napi_env env, napi_callback_info info) {
  constexpr const char* call = "accumulateIndexed";
  Arguments<8> args(env, info);
  int64_t op;
  int64_t type;
  Bytes target;
  Bytes displacements;
  Bytes origin;
  if (!readOperation(env, args[0], args[1], call, true, &op, &type) || !readBytes(env, args[2], call, "the target", &target) ||
      !readOffset(env, args[3], call, "the target's offset", &target) ||
      !readBytes(env, args[4], call, "displacements", &displacements) || !readBytes(env, args[5], call, "the origin", &origin)) {
    return nullptr;
  }
  if (displacements.type != napi_int32_array) {
    throwTypeError(env, "%s: displacements must be an Int32Array", call);
    return nullptr;
  }
  const size_t size = kSizes[type];
  auto count = static_cast<int64_t>(displacements.elements);
  auto limit = static_cast<int64_t>(target.length / size);
  if (given(env, args, 6) && !readInteger(env, args[6], call, "the count", 0, static_cast<double>(count), &count)) return nullptr;
  if (given(env, args, 7) && !readInteger(env, args[7], call, "the limit", 0, static_cast<double>(limit), &limit)) return nullptr;
  if (!aligned(env, target, size, call) || (op != kNoOp && !holds(env, origin, count, size, call, "the origin"))) return nullptr;
  // Without result there is nothing to do, and perhaps no origin to read.
  if (op == kNoOp || count == 0) return nullptr;
  // As unsigned numbers negative ones are larger than any limit that displacements can reach; one maximum finds all.
  const auto* offsets = reinterpret_cast<const int32_t*>(displacements.data);
  uint32_t largest = 0;
  for (int64_t i = 0; i < count; i++) {
    const auto offset = static_cast<uint32_t>(offsets[i]);
    largest = offset > largest ? offset : largest;
  }
  if (largest > INT32_MAX || static_cast<int64_t>(largest) >= limit) {
    throwOutside(env, offsets, static_cast<size_t>(count), limit);
    return nullptr;
  }
  const auto bound = static_cast<uint32_t>(limit > INT32_MAX ? int64_t{INT32_MAX} + 1 : limit);
  applyToIntegers(static_cast<int>(op), static_cast<int>(type), Scattered{target.data, offsets, origin.data, static_cast<size_t>(count), bound});
  return nullptr;
}

// Offsets of the elements of a side: `undefined` for elements one after the other, an Int32Array in elements, or a
// Float64Array in bytes. All of them lie within `bytes`.
bool readOffsets(napi_env env, napi_value value, const char* call, const char* name, const Bytes& bytes, int64_t type, size_t count,
                 Offsets* offsets) {
  napi_valuetype kind;
  offsets->stride = kSizes[type];
  const int64_t last = static_cast<int64_t>(bytes.length) - static_cast<int64_t>(kData[type]);
  offsets->last = last;
  if (napi_typeof(env, value, &kind) != napi_ok) return false;
  if (kind == napi_undefined) {
    if (count == 0 || (count - 1 <= bytes.length / kSizes[type] && static_cast<int64_t>((count - 1) * kSizes[type]) <= last)) return true;
    throwRangeError(env, "%s: %zu elements of %zu bytes do not fit into the %zu bytes of %s", call, count, kSizes[type], bytes.length, name);
    return false;
  }
  Bytes list;
  if (!readBytes(env, value, call, name, &list)) return false;
  if ((list.type != napi_int32_array && list.type != napi_float64_array) || list.elements < count) {
    throwTypeError(env, "%s: the offsets of %s must be an Int32Array or a Float64Array of %zu", call, name, count);
    return false;
  }
  if (list.type == napi_int32_array) offsets->elements = reinterpret_cast<const int32_t*>(list.data);
  else offsets->bytes = reinterpret_cast<const double*>(list.data);
  if (offsets->elements != nullptr) {
    // As unsigned numbers negative ones are larger than any limit; one maximum finds all.
    uint32_t largest_found = 0;
    for (size_t i = 0; i < count; i++) {
      const auto found = static_cast<uint32_t>(offsets->elements[i]);
      largest_found = found > largest_found ? found : largest_found;
    }
    if (count == 0 || (largest_found <= INT32_MAX && int64_t{largest_found} * static_cast<int64_t>(offsets->stride) <= last)) return true;
  }
  for (size_t i = 0; i < count; i++) {
    if (offsets->holds(offsets->at(i))) continue;
    throwRangeError(env, "%s: element %zu lies outside the %zu bytes of %s", call, i, bytes.length, name);
    return false;
  }
  return true;
}

// accumulateAt(op, type, target, targetByte, targets, origin, sources, result, sinks, count, stripes, base, me)
napi_value accumulateAt(napi_env env, napi_callback_info info) {
  constexpr const char* call = "accumulateAt";
  Arguments<13> args(env, info);
  int64_t op;
  int64_t type;
  int64_t count;
  int64_t base;
  int64_t me;
  Bytes whole;
  Bytes origin;
  Bytes result;
  Bytes words;
  if (!readOperation(env, args[0], args[1], call, false, &op, &type) || !readBytes(env, args[2], call, "the target", &whole)) return nullptr;
  Bytes target = whole;
  if (!readOffset(env, args[3], call, "the target's offset", &target) ||
      !readInteger(env, args[9], call, "the count", 0, kMaxSafeInteger, &count) || !readBytes(env, args[10], call, "the stripes", &words) ||
      !readInteger(env, args[11], call, "the base", -kMaxSafeInteger, kMaxSafeInteger, &base) ||
      !readInteger(env, args[12], call, "the holder", 1, INT32_MAX, &me)) {
    return nullptr;
  }
  if (words.type != napi_int32_array || words.elements < kStripes * kLineWords) {
    throwTypeError(env, "%s: the stripes must be an Int32Array of %zu words", call, kStripes * kLineWords);
    return nullptr;
  }
  const auto n = static_cast<size_t>(count);
  const auto offset = static_cast<uint64_t>(target.data - whole.data);
  const Stripes stripes{reinterpret_cast<int32_t*>(words.data), static_cast<uint64_t>(base), static_cast<int32_t>(me)};
  Placed work{};
  if (!readOffsets(env, args[4], call, "the target", target, type, n, &work.targets)) return nullptr;
  if (op != kNoOp && (!readBytes(env, args[5], call, "the origin", &origin) ||
                      !readOffsets(env, args[6], call, "the origin", origin, type, n, &work.sources))) {
    return nullptr;
  }
  const bool fetches = given(env, args, 7);
  if (fetches && (!readBytes(env, args[7], call, "the result", &result) ||
                  !readOffsets(env, args[8], call, "the result", result, type, n, &work.sinks))) {
    return nullptr;
  }
  for (size_t i = 0; i < n; i++) {
    if ((reinterpret_cast<uintptr_t>(target.data) + static_cast<uintptr_t>(work.targets.at(i))) % kAlignments[type] == 0) {
      if (work.targets.bytes == nullptr) break;
      continue;
    }
    throwRangeError(env, "%s: element %zu is not aligned to %zu bytes", call, i, kAlignments[type]);
    return nullptr;
  }
  const bool consecutive = work.targets.inOrder() && work.sources.inOrder() && work.sinks.inOrder();
  size_t done;
  if (consecutive && underLock(type)) {
    const HeldRun run{target.data, origin.data, fetches ? result.data : nullptr, n, offset, &stripes};
    done = applyHeld(static_cast<int>(op), static_cast<int>(type), run);
  } else {
    work.target = target.data;
    work.origin = origin.data;
    work.result = fetches ? result.data : nullptr;
    work.count = n;
    work.offset = offset;
    work.stripes = &stripes;
    done = underLock(type) ? applyHeld(static_cast<int>(op), static_cast<int>(type), work)
                           : applyToIntegers(static_cast<int>(op), static_cast<int>(type), work);
  }
  napi_value number;
  napi_create_double(env, static_cast<double>(done), &number);
  return number;
}

// The numbers among the arguments of `accumulateRun`, in memory that JavaScript writes and that is found here without
// asking: to read thirteen arguments takes as long as to add 2,000 doubles. In each environment its own, as long as
// that is there.
enum Planned { kPlanOp, kPlanType, kPlanByte, kPlanCount, kPlanBase, kPlanMe, kPlan };

// accumulateRun(target, origin, stripes, result), by `accumulatePlan`
napi_value accumulateRunCall(napi_env env, napi_callback_info info) {
  constexpr const char* call = "accumulateRun";
  napi_value args[4];
  size_t given = 4;
  void* data;
  napi_get_cb_info(env, info, &given, args, nullptr, &data);
  int64_t plan[kPlan];
  for (size_t i = 0; i < kPlan; i++) {
    const double number = static_cast<const double*>(data)[i];
    // Not so for NaN either.
    if (!(std::fabs(number) <= kMaxSafeInteger)) {
      throwRangeError(env, "%s: the plan has numbers that are not integers", call);
      return nullptr;
    }
    plan[i] = static_cast<int64_t>(number);
  }
  const int64_t op = plan[kPlanOp];
  const int64_t type = plan[kPlanType];
  const int64_t at = plan[kPlanByte];
  const int64_t count = plan[kPlanCount];
  Bytes target;
  Bytes origin;
  Bytes words;
  Bytes result;
  napi_valuetype kind = napi_undefined;
  napi_typeof(env, args[3], &kind);
  const bool fetches = kind != napi_undefined;
  if (!readBytes(env, args[0], call, "the target", &target) ||
      (op != kNoOp && !readBytes(env, args[1], call, "the origin", &origin)) ||
      !readBytes(env, args[2], call, "the stripes", &words) ||
      (fetches && !readBytes(env, args[3], call, "the result", &result))) {
    return nullptr;
  }
  if (!operationAllowed(op, type) || !underLock(type) || plan[kPlanMe] < 1 || plan[kPlanMe] > INT32_MAX ||
      words.type != napi_int32_array || words.elements < kStripes * kLineWords) {
    throwRangeError(env, "%s: the operation, the type, the holder or the array of stripes is invalid", call);
    return nullptr;
  }
  const __int128 bytes = static_cast<__int128>(count) * static_cast<__int128>(kSizes[type]);
  const auto fits = [&](const Bytes& side, int64_t from) { return from >= 0 && count >= 0 && from + bytes <= static_cast<__int128>(side.length); };
  if (!fits(target, at) || (op != kNoOp && !fits(origin, 0)) || (fetches && !fits(result, 0)) ||
      reinterpret_cast<uintptr_t>(target.data + at) % kAlignments[type] != 0) {
    throwRangeError(env, "%s: %lld elements do not all lie within the arrays, or are not aligned", call, static_cast<long long>(count));
    return nullptr;
  }
  const Stripes stripes{reinterpret_cast<int32_t*>(words.data), static_cast<uint64_t>(plan[kPlanBase]),
                        static_cast<int32_t>(plan[kPlanMe])};
  const HeldRun run{target.data + at, origin.data, fetches ? result.data : nullptr, static_cast<size_t>(count),
                    static_cast<uint64_t>(at), &stripes};
  napi_value number;
  napi_create_double(env, static_cast<double>(applyHeld(static_cast<int>(op), static_cast<int>(type), run)), &number);
  return number;
}

}  // namespace

size_t elementAlignment(int64_t type) { return kAlignments[type]; }

size_t elementPadding(int64_t type) { return kSizes[type] - kData[type]; }

size_t elementBytes(int64_t type) { return type >= 0 && type < kTypes ? kSizes[type] : 0; }

bool operationAllowed(int64_t op, int64_t type) { return op >= 0 && op < kOps && type >= 0 && type < kTypes && allowed(op, type); }

size_t accumulateRun(int op, int type, unsigned char* target, const unsigned char* origin, unsigned char* result, size_t count,
                     const Stripes& stripes) {
  if (underLock(type)) {
    const auto offset = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(target));
    return applyHeld(op, type, HeldRun{target, origin, result, count, offset, &stripes});
  }
  applyToIntegers(op, type, Run{target, origin, result, count});
  return count;
}

void exportAccumulate(Napi::Env env, Napi::Object exports) {
  void* numbers = exportNumbers(env, exports, "accumulatePlan", kPlan);
  if (numbers == nullptr) return;
  exportFunction(env, exports, "accumulate", accumulate, numbers);
  exportFunction(env, exports, "accumulateIndexed", accumulateIndexed, numbers);
  exportFunction(env, exports, "accumulateAt", accumulateAt, numbers);
  exportFunction(env, exports, "accumulateRun", accumulateRunCall, numbers);
}

}  // namespace onesided
