// Updates of many elements: one after the other, anywhere, by locked instructions or under stripes. Only for
// accumulate.cc, which has checked everything before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "accumulate.h"
#include "arguments.h"
#include "operations.h"
#include "stripes.h"

namespace onesided {
namespace {

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
      for (size_t i = 0; i < count; i++)
        update<op, T>(element + i, op == kNoOp ? T() : load<T>(origin + i * sizeof(T)));
      return;
    }
    for (size_t i = 0; i < count; i++) {
      const T before = update<op, T>(element + i, op == kNoOp ? T() : load<T>(origin + i * sizeof(T)));
      std::memcpy(result + i * sizeof(T), &before, sizeof(T));
    }
  }
};

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
inline __attribute__((always_inline)) void combineLoop(unsigned char* __restrict to,
                                                       const unsigned char* __restrict from,
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
__attribute__((target("avx2"))) void combineAvx2(unsigned char* to, const unsigned char* from, unsigned char* before,
                                                 size_t n) {
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
      const auto number =
          bitCast<double>(__atomic_load_n(reinterpret_cast<const uint64_t*>(bytes + i), __ATOMIC_RELAXED));
      return number >= 0 && number <= kMaxSafeInteger ? static_cast<int64_t>(number) : -1;
    }
    if (elements != nullptr)
      return int64_t{__atomic_load_n(elements + i, __ATOMIC_RELAXED)} * static_cast<int64_t>(stride);
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
    return targets.holds(places->target) && (op == kNoOp || sources.holds(places->source)) &&
           (result == nullptr || sinks.holds(places->sink));
  }

  template <Op op, typename T>
  size_t apply() const {
    Places places;
    if constexpr (std::is_integral_v<T>) {
      for (size_t i = 0; i < count; i++) {
        if (!find<op>(i, &places) || reinterpret_cast<uintptr_t>(target + places.target) % sizeof(T) != 0) continue;
        const T before = update<op, T>(reinterpret_cast<T*>(target + places.target),
                                       op == kNoOp ? T() : load<T>(origin + places.source));
        if (result != nullptr) Element<T>::store(result + places.sink, before);
      }
      return count;
    } else {
      const uint64_t needed = stripesNeeded();
      if (!acquireAll(*stripes, needed)) return 0;
      if (targets.elements != nullptr && sources.inOrder() && result == nullptr) scatter<op, T>();
      else for (size_t i = 0; i < count; i++) {
        if (!find<op>(i, &places)) continue;
        updateHeld<op, T>(target + places.target, op == kNoOp ? nullptr : origin + places.source,
                          result == nullptr ? nullptr : result + places.sink);
      }
      releaseAll(*stripes, needed);
      return count;
    }
  }

  // The most frequent case, without asking for each element what kind of offsets it has.
  template <Op op, typename T>
  void scatter() const {
    for (size_t i = 0; i < count; i++) {
      const int64_t at =
          int64_t{__atomic_load_n(targets.elements + i, __ATOMIC_RELAXED)} * static_cast<int64_t>(Element<T>::kStride);
      if (targets.holds(at)) updateHeld<op, T>(target + at, origin + i * Element<T>::kStride, nullptr);
    }
  }

  uint64_t stripesNeeded() const {
    uint64_t needed = 0;
    if (targets.elements == nullptr) {
      for (size_t i = 0; i < count; i++)
        needed |= uint64_t{1} << stripeOf(*stripes, offset + static_cast<uint64_t>(targets.at(i)));
      return needed;
    }
    const uint64_t begin = stripes->base + offset;
    for (size_t i = 0; i < count; i++)
      needed |= uint64_t{1} << ((begin + static_cast<uint64_t>(int64_t{targets.elements[i]}) * targets.stride) >> 12) %
                                   kStripes;
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

// Calls `work.apply<op, T>()`: void, or how many elements are done.
template <typename T, typename Work>
auto applyTo(int op, const Work& work) -> decltype(work.template apply<kNoOp, T>()) {
  using Done = decltype(work.template apply<kNoOp, T>());
#define ONESIDED_CASE(code, types, result) \
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

}  // namespace
}  // namespace onesided
