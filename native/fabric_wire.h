// What engines say to each other (fabric_messages.cc).
#pragma once

#include <cstddef>
#include <cstdint>

namespace onesided::fabric {

// Of a message: above this, ofi_rxm would fetch it from memory whose key can be guessed.
constexpr size_t kMessage = 16384;
// A message of so many bytes at most is acknowledged later (`ackOf`, fabric_messages.cc).
constexpr uint32_t kBrief = 1024;

enum class Kind : uint8_t {
  kSend = 1,
  kSendWithImmediate,
  kWriteWithImmediate,
  kAccepted,   // all chunks up to `number`
  kRefused,    // the chunk `number`, with `status`; `offset` of its accesses were carried out, with results
  kAskKey,     // of the region that `immediate` names
  kKey,        // the answer
  kKeyGone,    // `immediate` names it; or, with kAll, all that the queue pair gave
  kForgotten,  // the answer
  kPing,       // is the queue pair there, and which chunks has it got? With the sender's own tag and name
  kPong,       // `number` have arrived, up to `immediate` were accepted; `status`: 0 if it is there
  kFault,      // a request of the peer's was not allowed
  kTogether,   // small accesses, with their keys and bytes (fabric_batches.cc)
  kResults,    // what they brought: `number` was carried out
  kAskAccepted // something waits until the chunks up to `number` are accepted
};
// kAccepts: `accepted` is valid. kAlsoAccepts: an `Acceptance` stands behind the header. kNotice: of accesses that came
// together: a write of no bytes with immediate data stands behind them.
enum HeaderFlag : uint8_t { kLast = 1, kSolicited = 2, kAll = 4, kAccepts = 8, kAlsoAccepts = 16, kNotice = 32 };

// What every message begins with. All numbers are little-endian: so are all processors with these devices.
struct Header {
  // What the receiver has told its peers, through the job's own connections. Whoever does not know it is a stranger.
  uint64_t tag = 0;
  Kind kind{};
  uint8_t flags = 0;
  uint8_t status = 0;
  // How often the sender tries again when there is no receive; 7: for ever.
  uint8_t retries = 0;
  // Queue pairs, of the receiver and of the sender.
  uint32_t to = 0;
  uint32_t from = 0;
  uint32_t number = 0;
  uint32_t immediate = 0;
  // Of a message in chunks: its bytes, and where this chunk stands.
  uint32_t total = 0;
  uint32_t offset = 0;
  // All chunks up to this one were accepted from the receiver's queue pair.
  uint32_t accepted = 0;
};
static_assert(sizeof(Header) == 40, "the header of a message");

// Of another queue pair of the same receiver's: all chunks up to `number` were accepted from it.
struct Acceptance {
  uint32_t to = 0;
  uint32_t from = 0;
  uint32_t number = 0;
};
static_assert(sizeof(Acceptance) == 12, "an acceptance behind the header");

// When a message is acknowledged.
enum class Ack : uint8_t { kNow, kSoon, kLater };
inline Ack ackOf(const Header& header) {
  switch (header.kind) {
    case Kind::kSend:
    case Kind::kSendWithImmediate: return header.total <= kBrief ? Ack::kLater : Ack::kNow;
    case Kind::kWriteWithImmediate: return header.total == 0 ? Ack::kSoon : Ack::kNow;
    default: return Ack::kNow;
  }
}

// Whether the receiver's engine says that it has it, or its sender finds out by other messages that it has not: that
// libfabric says so, too, would be a packet more.
inline bool isAcknowledged(Kind kind) {
  switch (kind) {
    case Kind::kSend:
    case Kind::kSendWithImmediate:
    case Kind::kWriteWithImmediate:
    case Kind::kTogether:
    case Kind::kResults: return true;
    default: return false;
  }
}

constexpr size_t kChunk = kMessage - sizeof(Header) - sizeof(Acceptance);

enum Answer : int32_t { kAsked = 0, kKnown = 1, kUnknown = -1, kNoQueuePair = -2 };
// What the owner says of a region.
struct RemoteRegion {
  uint64_t base = 0;
  uint64_t length = 0;
  uint64_t key = 0;
  int32_t access = 0;
  int32_t answer = kAsked;
  // The queue pair there takes no reads and atomics at all.
  int32_t noReads = 0;
  int32_t unused = 0;
};

}  // namespace onesided::fabric
