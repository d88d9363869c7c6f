// The operations and base types of accumulates: a table of each, what the operations calculate on one element, and the
// update of one integer. Only for accumulate.cc.
//
// Integers wrap: the arithmetic is unsigned. MIN and MAX of floats are NaN if either operand is, and take −0 for less
// than +0, as Math.min and Math.max do. MINLOC and MAXLOC likewise: a NaN wins, the target's before the origin's.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace onesided {
namespace {

// Groups of base types.
constexpr unsigned kIntegers = 1;
constexpr unsigned kFloats = 2;
constexpr unsigned kBytes = 4;
constexpr unsigned kPairs = 8;
constexpr unsigned kAll = kIntegers | kFloats | kBytes | kPairs;

// A row an operation, with the types on which it is defined (MPI 4.1, section 6.9.2), and what a plain update, or a
// compare-and-swap loop, stores: of `target`, what is there, and `origin`, what comes. In the order of their codes, as
// in src/datatype/op.ts.
#define ONESIDED_OPERATIONS(ROW) \
  ROW(kSum, kIntegers | kFloats, sum(target, origin)) \
  ROW(kProd, kIntegers | kFloats, product(target, origin)) \
  ROW(kMin, kIntegers | kFloats, smaller(target, origin)) \
  ROW(kMax, kIntegers | kFloats, larger(target, origin)) \
  ROW(kLand, kIntegers, target != 0 && origin != 0) \
  ROW(kLor, kIntegers, target != 0 || origin != 0) \
  ROW(kLxor, kIntegers, (target != 0) != (origin != 0)) \
  ROW(kBand, kIntegers | kBytes, target & origin) \
  ROW(kBor, kIntegers | kBytes, target | origin) \
  ROW(kBxor, kIntegers | kBytes, target ^ origin) \
  ROW(kReplace, kAll, origin) \
  ROW(kNoOp, kAll, target) \
  ROW(kMinloc, kPairs, located(target, origin, origin.value < target.value)) \
  ROW(kMaxloc, kPairs, located(target, origin, origin.value > target.value))

#define ONESIDED_CODE(code, types, result) code,
#define ONESIDED_TYPES(code, types, result) types,
enum Op { ONESIDED_OPERATIONS(ONESIDED_CODE) kOps };
constexpr unsigned kDefinedOn[kOps] = {ONESIDED_OPERATIONS(ONESIDED_TYPES)};

// The numbers of src/datatype/type-codes.ts.
enum Type {
  kInt8, kUint8, kInt16, kUint16, kInt32, kUint32, kInt64, kUint64, kFloat32, kFloat64, kByte,
  kFloatInt, kDoubleInt, kLongInt, kShortInt, kTwoInt, kTypes
};

// From one element to the next, to the end of its data, and what addresses are multiples of.
constexpr size_t kSizes[kTypes] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 1, 8, 16, 16, 8, 8};
constexpr size_t kData[kTypes] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 1, 8, 12, 12, 8, 8};
constexpr size_t kAlignments[kTypes] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 1, 4, 8, 8, 4, 4};

constexpr bool underLock(int64_t type) { return type == kFloat32 || type == kFloat64 || type > kByte; }

template <typename T>
constexpr unsigned kGroupOf = std::is_integral_v<T>         ? kIntegers | kBytes
                              : std::is_floating_point_v<T> ? kFloats
                                                            : kPairs;

unsigned groupOf(int64_t type) {
  if (type == kFloat32 || type == kFloat64) return kFloats;
  if (type == kByte) return kBytes;
  return type > kByte ? kPairs : kIntegers;
}

bool allowed(int64_t op, int64_t type) { return (kDefinedOn[op] & groupOf(type)) != 0; }

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

// In 64 bits: small unsigned types would be promoted to int, whose overflow is undefined.
template <typename T>
T sum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a + b;
  else return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

template <typename T>
T product(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a * b;
  else return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// Of two pairs. `wins`: the value that comes does, if they are different and both are numbers.
template <typename P>
P located(P target, P origin, bool wins) {
  if (target.value == origin.value) return {target.value, target.index < origin.index ? target.index : origin.index};
  if (target.value != target.value) return target;
  if (origin.value != origin.value) return origin;
  return wins ? origin : target;
}

// What the row of an operation says.
template <Op op, typename T>
T combine(T target, T origin) {
#define ONESIDED_COMBINE(code, types, result) \
  if constexpr (op == code) return static_cast<T>(result);
  ONESIDED_OPERATIONS(ONESIDED_COMBINE)
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

}  // namespace
}  // namespace onesided
