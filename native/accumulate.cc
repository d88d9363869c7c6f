// Accumulates: their arguments, which are checked for all elements before the first is touched.
//
// Each integer is updated by one locked instruction, or by compare-and-swap where the processor has none for the
// operation. That agrees with `Atomics` in JavaScript on the same elements, in any process: both are locked accesses of
// the element's own size, aligned to it. Floating-point numbers and pairs are updated by plain instructions under lock
// stripes (stripes.h). operations.h has the table of operations and what they calculate, kernels.h the loops.

#include "accumulate.h"

#include <cstdint>
#include <cstdio>

#include "arguments.h"
#include "exports.h"
#include "kernels.h"
#include "operations.h"
#include "stripes.h"

namespace onesided {
namespace {

bool readOperation(napi_env env, napi_value op, napi_value type, const char* call, bool integers, int64_t* opCode,
                   int64_t* typeCode) {
  if (!readInteger(env, op, call, "the operation", 0, kOps - 1, opCode) ||
      !readInteger(env, type, call, "the type", 0, kTypes - 1, typeCode)) {
    return false;
  }
  if (integers && underLock(*typeCode)) {
    throwTypeError(env, "%s: accepts only integers and bytes, not type %d", call, static_cast<int>(*typeCode));
    return false;
  }
  if (allowed(*opCode, *typeCode)) return true;
  throwTypeError(env, "%s: operation %d is not defined on type %d", call, static_cast<int>(*opCode),
                 static_cast<int>(*typeCode));
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

// What calls on integers begin with: the operation, the type, the target and its offset.
template <size_t N>
bool readTarget(napi_env env, const Arguments<N>& args, const char* call, int64_t* op, int64_t* type, Bytes* target) {
  return readOperation(env, args[0], args[1], call, true, op, type) &&
         readBytes(env, args[2], call, "the target", target) &&
         readOffset(env, args[3], call, "the target's offset", target);
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
  if (!readTarget(env, args, call, &op, &type, &target) ||
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
  if (count > 0)
    applyToIntegers(static_cast<int>(op), static_cast<int>(type),
                    Run{target.data, origin.data, result.data, static_cast<size_t>(count)});
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
    throwRangeError(
        env, "accumulateIndexed: displacements changed during the call, and one is out of range; nothing was written");
    return;
  }
  char text[200];
  snprintf(text, sizeof text,
           "accumulateIndexed: displacement %zu is %d, but the target has %lld elements; nothing was written", at,
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
  if (!readTarget(env, args, call, &op, &type, &target) ||
      !readBytes(env, args[4], call, "displacements", &displacements) ||
      !readBytes(env, args[5], call, "the origin", &origin)) {
    return nullptr;
  }
  if (displacements.type != napi_int32_array) {
    throwTypeError(env, "%s: displacements must be an Int32Array", call);
    return nullptr;
  }
  const size_t size = kSizes[type];
  auto count = static_cast<int64_t>(displacements.elements);
  auto limit = static_cast<int64_t>(target.length / size);
  if (given(env, args, 6) && !readInteger(env, args[6], call, "the count", 0, static_cast<double>(count), &count))
    return nullptr;
  if (given(env, args, 7) && !readInteger(env, args[7], call, "the limit", 0, static_cast<double>(limit), &limit))
    return nullptr;
  if (!aligned(env, target, size, call) || (op != kNoOp && !holds(env, origin, count, size, call, "the origin")))
    return nullptr;
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
  applyToIntegers(static_cast<int>(op), static_cast<int>(type),
                  Scattered{target.data, offsets, origin.data, static_cast<size_t>(count), bound});
  return nullptr;
}

// Offsets of the elements of a side: `undefined` for elements one after the other, an Int32Array in elements, or a
// Float64Array in bytes. All of them lie within `bytes`.
bool readOffsets(napi_env env, napi_value value, const char* call, const char* name, const Bytes& bytes, int64_t type,
                 size_t count, Offsets* offsets) {
  napi_valuetype kind;
  offsets->stride = kSizes[type];
  const int64_t last = static_cast<int64_t>(bytes.length) - static_cast<int64_t>(kData[type]);
  offsets->last = last;
  if (napi_typeof(env, value, &kind) != napi_ok) return false;
  if (kind == napi_undefined) {
    if (count == 0 ||
        (count - 1 <= bytes.length / kSizes[type] && static_cast<int64_t>((count - 1) * kSizes[type]) <= last))
      return true;
    throwRangeError(env, "%s: %zu elements of %zu bytes do not fit into the %zu bytes of %s", call, count, kSizes[type],
                    bytes.length, name);
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
    if (count == 0 ||
        (largest_found <= INT32_MAX && int64_t{largest_found} * static_cast<int64_t>(offsets->stride) <= last))
      return true;
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
  if (!readOperation(env, args[0], args[1], call, false, &op, &type) ||
      !readBytes(env, args[2], call, "the target", &whole))
    return nullptr;
  Bytes target = whole;
  if (!readOffset(env, args[3], call, "the target's offset", &target) ||
      !readInteger(env, args[9], call, "the count", 0, kMaxSafeInteger, &count) ||
      !readBytes(env, args[10], call, "the stripes", &words) ||
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
    if ((reinterpret_cast<uintptr_t>(target.data) + static_cast<uintptr_t>(work.targets.at(i))) % kAlignments[type] ==
        0) {
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
  if (!readPlan(env, data, call, plan)) return nullptr;
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
  const auto fits = [&](const Bytes& side, int64_t from) {
    return from >= 0 && count >= 0 && from + bytes <= static_cast<__int128>(side.length);
  };
  if (!fits(target, at) || (op != kNoOp && !fits(origin, 0)) || (fetches && !fits(result, 0)) ||
      reinterpret_cast<uintptr_t>(target.data + at) % kAlignments[type] != 0) {
    throwRangeError(env, "%s: %lld elements do not all lie within the arrays, or are not aligned", call,
                    static_cast<long long>(count));
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

bool operationAllowed(int64_t op, int64_t type) {
  return op >= 0 && op < kOps && type >= 0 && type < kTypes && allowed(op, type);
}

bool updatedUnderStripes(int64_t type) { return underLock(type); }

size_t accumulateRun(int op, int type, unsigned char* target, const unsigned char* origin, unsigned char* result,
                     size_t count, const Stripes& stripes) {
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
