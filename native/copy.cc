// Copies of blocks: three nested loops with strides, or a list of places. The caller has checked them against what the
// program may touch; here they are checked once more against the arrays, since nothing that JavaScript passes may write
// elsewhere.
#include "copy.h"

#include <cstring>

#include "arguments.h"
#include "exports.h"

namespace onesided {
namespace {

// `rounds` times, `to` and `from` bytes apart.
struct Loop {
  int64_t rounds;
  int64_t to;
  int64_t from;
};

// A block of a size that is known when this is compiled is a few instructions. Blocks may overlap their places of
// origin, since nothing keeps JavaScript from passing one memory twice; each block is then copied as if by way of other
// memory.
template <size_t kBlock>
struct Fixed {
  void operator()(unsigned char* to, const unsigned char* from) const {
    unsigned char block[kBlock];
    memcpy(block, from, kBlock);
    memcpy(to, block, kBlock);
  }
};

struct Any {
  size_t block;
  void operator()(unsigned char* to, const unsigned char* from) const { memmove(to, from, block); }
};

template <typename Body>
void withBlock(size_t block, const Body& body) {
  switch (block) {
    case 1: return body(Fixed<1>{});
    case 2: return body(Fixed<2>{});
    case 4: return body(Fixed<4>{});
    case 8: return body(Fixed<8>{});
    case 16: return body(Fixed<16>{});
    case 24: return body(Fixed<24>{});
    case 32: return body(Fixed<32>{});
    case 48: return body(Fixed<48>{});
    case 64: return body(Fixed<64>{});
    case 128: return body(Fixed<128>{});
    default: return body(Any{block});
  }
}

// Whether the loops stay within [0, length - block] on a side, beginning at `at`.
bool within(const Loop (&loops)[3], int64_t Loop::*stride, int64_t at, int64_t block, size_t length) {
  __int128 low = at;
  __int128 high = static_cast<__int128>(at) + block;
  for (const Loop& loop : loops) {
    const __int128 span = static_cast<__int128>(loop.rounds - 1) * (loop.*stride);
    (span < 0 ? low : high) += span;
  }
  return low >= 0 && high <= static_cast<__int128>(length);
}

// Two arrays and where to begin in them.
struct Sides {
  Bytes to;
  Bytes from;
  int64_t toAt;
  int64_t fromAt;
};

template <size_t N>
bool readSides(napi_env env, const Arguments<N>& args, const char* call, Sides* sides) {
  return readBytes(env, args[0], call, "the destination", &sides->to) &&
         readInteger(env, args[1], call, "the destination's offset", -kMaxSafeInteger, kMaxSafeInteger, &sides->toAt) &&
         readBytes(env, args[2], call, "the source", &sides->from) &&
         readInteger(env, args[3], call, "the source's offset", -kMaxSafeInteger, kMaxSafeInteger, &sides->fromAt);
}

// The arguments of `copyNest` that are numbers, in memory that JavaScript writes and that is found here without asking:
// to read them as arguments costs more than to copy short blocks. In each environment its own, as long as that is
// there.
constexpr size_t kPlan = 12;

// copyNest(to, from), by `copyPlan`
napi_value copyNest(napi_env env, napi_callback_info info) {
  constexpr const char* call = "copyNest";
  napi_value args[2];
  size_t count = 2;
  void* data;
  napi_get_cb_info(env, info, &count, args, nullptr, &data);
  Sides sides;
  if (!readBytes(env, args[0], call, "the destination", &sides.to) ||
      !readBytes(env, args[1], call, "the source", &sides.from)) {
    return nullptr;
  }
  int64_t plan[kPlan];
  if (!readPlan(env, data, call, plan)) return nullptr;
  const int64_t block = plan[0];
  const Loop loops[3] = {{plan[1], plan[2], plan[3]}, {plan[4], plan[5], plan[6]}, {plan[7], plan[8], plan[9]}};
  sides.toAt = plan[10];
  sides.fromAt = plan[11];
  if (block < 1 || loops[0].rounds < 1 || loops[1].rounds < 1 || loops[2].rounds < 1) return nullptr;
  if (!within(loops, &Loop::to, sides.toAt, block, sides.to.length) ||
      !within(loops, &Loop::from, sides.fromAt, block, sides.from.length)) {
    throwRangeError(env, "%s: blocks of %lld bytes do not all lie within the arrays of %zu and %zu bytes", call,
                    static_cast<long long>(block), sides.to.length, sides.from.length);
    return nullptr;
  }
  withBlock(static_cast<size_t>(block), [&](const auto& copy) {
    for (int64_t k = 0; k < loops[2].rounds; k++) {
      for (int64_t j = 0; j < loops[1].rounds; j++) {
        unsigned char* to = sides.to.data + sides.toAt + k * loops[2].to + j * loops[1].to;
        const unsigned char* from = sides.from.data + sides.fromAt + k * loops[2].from + j * loops[1].from;
        for (int64_t i = 0; i < loops[0].rounds; i++) copy(to + i * loops[0].to, from + i * loops[0].from);
      }
    }
  });
  return nullptr;
}

// copyBlocks(to, toAt, from, fromAt, starts, unit, block, gather)
napi_value copyBlocks(napi_env env, napi_callback_info info) {
  constexpr const char* call = "copyBlocks";
  Arguments<8> args(env, info);
  Sides sides;
  Bytes starts;
  int64_t unit;
  int64_t block;
  bool gather;
  if (!readSides(env, args, call, &sides) || !readBytes(env, args[4], call, "the starts", &starts) ||
      !readInteger(env, args[5], call, "the unit", 1, INT32_MAX, &unit) ||
      !readInteger(env, args[6], call, "the block", 1, kMaxSafeInteger, &block)) {
    return nullptr;
  }
  if (starts.type != napi_int32_array || napi_get_value_bool(env, args[7], &gather) != napi_ok) {
    throwTypeError(env, "%s: the starts must be an Int32Array, and the last argument a boolean", call);
    return nullptr;
  }
  // The consecutive side, and the other one, of which each place is checked: another thread may change the starts
  // meanwhile.
  const Bytes& dense = gather ? sides.to : sides.from;
  const Bytes& other = gather ? sides.from : sides.to;
  const int64_t denseAt = gather ? sides.toAt : sides.fromAt;
  const int64_t otherAt = gather ? sides.fromAt : sides.toAt;
  const auto count = static_cast<__int128>(starts.elements);
  const __int128 last = static_cast<__int128>(other.length) - block;
  if (denseAt < 0 || denseAt + count * block > static_cast<__int128>(dense.length) || otherAt > kMaxSafeInteger ||
      last < 0) {
    throwRangeError(env, "%s: %zu blocks of %lld bytes do not fit into the arrays", call, starts.elements,
                    static_cast<long long>(block));
    return nullptr;
  }
  const auto* places = reinterpret_cast<const int32_t*>(starts.data);
  const auto limit = static_cast<int64_t>(last);
  size_t done = 0;
  withBlock(static_cast<size_t>(block), [&](const auto& copy) {
    unsigned char* at = dense.data + denseAt;
    for (; done < starts.elements; done++, at += block) {
      const int64_t place = otherAt + __atomic_load_n(places + done, __ATOMIC_RELAXED) * unit;
      if (place < 0 || place > limit) return;
      if (gather) copy(at, other.data + place);
      else copy(other.data + place, at);
    }
  });
  if (done < starts.elements) {
    throwRangeError(env, "%s: block %zu lies outside the array of %zu bytes", call, done, other.length);
  }
  return nullptr;
}

}  // namespace

void exportCopy(Napi::Env env, Napi::Object exports) {
  void* numbers = exportNumbers(env, exports, "copyPlan", kPlan);
  if (numbers == nullptr) return;
  exportFunction(env, exports, "copyNest", copyNest, numbers);
  exportFunction(env, exports, "copyBlocks", copyBlocks);
}

}  // namespace onesided
