// A plain ArrayBuffer is private memory of its process, and no other process can map it. But its pages can be exchanged
// below it: `memoryRemap` copies what is in them to a memory file, and maps the file at the same addresses. Nobody in
// this process notices; others map the file. `memoryReclaim` puts private pages back.
//
// A page is remapped as a whole, so nothing else may stand in it: another thread could store there between the copy and
// the exchange, and its store would be lost. The C library's allocator gives large pieces pages of their own (glibc:
// 128 KiB and more, and fewer of them the more large ones were freed), and says so in the two words before the memory:
// 0, and the bytes of these pages with IS_MMAPPED set. Only what is exactly so is remapped. In other memory (small
// pieces, pieces that the allocator has cut out of what was freed, WebAssembly's, another allocator's) these words are
// something else, or memory does not begin behind them. `SharedArrayBuffer`s are not even looked at.
//
// The array's own bytes are touched by its thread, which is in this call. Two exceptions: what other ranks store there
// by its address, so that memory which is reached that way is neither remapped nor taken back (`servedBegins`); and
// what the program has set going (fs, crypto.randomFill, threads of an addon whose memory this is): it must not make or
// free a window of it before that has ended, since what arrives between copy and exchange is lost.
//
// `free` of such memory is one munmap of the pages that the words name. That is right for remapped pages, too, so
// whoever forgets to reclaim loses nothing. The memory is pinned (pin.h) as long as it is remapped: if its buffer is
// transferred, others still reach it. It is not exchanged again then, since another thread may be storing there.

#include "remapped_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "arguments.h"
#include "exports.h"
#include "memory.h"
#include "pin.h"

namespace onesided {
namespace {

constexpr uintptr_t kHeader = 2 * sizeof(size_t);
constexpr size_t kFlags = 7;
constexpr size_t kIsMapped = 2;

// Where pages begin that are remapped, by whatever thread: they are not remapped a second time.
std::mutex remappedMutex;
std::set<uintptr_t>* const remappedPages = new std::set<uintptr_t>;

// What others reach by its addresses: beginnings and ends. Guarded by `remappedMutex`, too.
using Range = std::pair<uintptr_t, uintptr_t>;
std::multiset<Range>* const served = new std::multiset<Range>;

bool isServed(uintptr_t start, size_t bytes) {
  const auto overlaps = [&](const Range& range) { return range.first < start + bytes && start < range.second; };
  return std::any_of(served->begin(), served->end(), overlaps);
}

struct Remapped {
  uintptr_t start;
  size_t bytes;
  int fd;
  off_t offset;
  Pin pin;
};

// One per environment.
struct Remapper {
  napi_env env;
  uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  int64_t last = 0;
  std::map<int64_t, Remapped> remapped;

  void forget(std::map<int64_t, Remapped>::iterator at) {
    {
      std::lock_guard<std::mutex> lock(remappedMutex);
      remappedPages->erase(at->second.start);
    }
    at->second.pin.drop(env);
    remapped.erase(at);
  }
};

void atEnvironmentEnd(void* data) {
  auto* remapper = static_cast<Remapper*>(data);
  while (!remapper->remapped.empty()) remapper->forget(remapper->remapped.begin());
  delete remapper;
}

// The pages that an ArrayBuffer has for itself; of 0 bytes if there are other things in them.
struct Pages {
  uintptr_t start = 0;
  size_t bytes = 0;
};

Pages pagesOf(const Remapper& remapper, uintptr_t address, size_t length) {
  // Sanitizers bring an allocator of their own.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  if (length == 0 || address % remapper.page != kHeader) return {};
  // They are on the page on which the memory begins, behind its start, so they can be read whatever they are.
  const auto* words = reinterpret_cast<const size_t*>(address - kHeader);
  const size_t before = words[0];
  const size_t size = words[1];
  const size_t bytes = size & ~kFlags;
  if (before != 0 || (size & kFlags) != kIsMapped || bytes % remapper.page != 0) return {};
  if (bytes < kHeader + length || bytes > kHeader + length + 2 * remapper.page) return {};
  return {address - kHeader, bytes};
#else
  static_cast<void>(remapper);
  static_cast<void>(address);
  static_cast<void>(length);
  return {};
#endif
}

// Reads the argument as an ArrayBuffer. One of `memoryMap` counts as having no bytes: what another process has remapped
// stands behind its allocator's words.
bool readBuffer(napi_env env, napi_value value, const char* call, uintptr_t* address, size_t* length) {
  bool plain = false;
  napi_is_arraybuffer(env, value, &plain);
  if (!plain) {
    throwTypeError(env, "%s: the memory must be an ArrayBuffer", call);
    return false;
  }
  void* data = nullptr;
  napi_get_arraybuffer_info(env, value, &data, length);
  *address = reinterpret_cast<uintptr_t>(data);
  if (mappingOf(env, value) != nullptr) *length = 0;
  return true;
}

bool isZero(const unsigned char* page, size_t bytes) {
  return page[0] == 0 && std::memcmp(page, page + 1, bytes - 1) == 0;
}

// Writes memory to a file whose bytes are zero, and leaves out pages that are. Gives an errno.
int writePages(int fd, off_t offset, const unsigned char* from, size_t bytes, size_t page) {
  for (size_t at = 0; at < bytes;) {
    if (isZero(from + at, page)) {
      at += page;
      continue;
    }
    size_t end = at + page;
    while (end < bytes && !isZero(from + end, page)) end += page;
    while (at < end) {
      const ssize_t n = pwrite(fd, from + at, end - at, offset + static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return n < 0 ? errno : EIO;
      at += static_cast<size_t>(n);
    }
  }
  return 0;
}

// The other way round: into memory that is zero.
int readPages(int fd, off_t offset, unsigned char* to, size_t bytes) {
  const off_t end = offset + static_cast<off_t>(bytes);
  for (off_t at = offset; at < end;) {
    const off_t data = lseek(fd, at, SEEK_DATA);
    if (data < 0) return errno == ENXIO ? 0 : errno;
    if (data >= end) return 0;
    off_t hole = lseek(fd, data, SEEK_HOLE);
    if (hole < 0) return errno;
    hole = std::min(hole, end);
    for (at = data; at < hole;) {
      const ssize_t n = pread(fd, to + (at - offset), static_cast<size_t>(hole - at), at);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return n < 0 ? errno : EIO;
      at += n;
    }
  }
  return 0;
}

// Pages are exchanged so many bytes at a time: so much memory is there twice.
constexpr size_t kPortion = size_t{1} << 25;

// What could not be emptied stays until the file is closed.
void empty(int fd, off_t offset, size_t bytes) {
  fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, static_cast<off_t>(bytes));
}

// Makes `bytes` bytes at `memory` private again, portion by portion, and empties the file there. Gives an errno; what
// is not private then is the file's still.
int takeBack(int fd, off_t offset, unsigned char* memory, size_t bytes) {
  for (size_t at = 0; at < bytes; at += kPortion) {
    const size_t n = std::min(kPortion, bytes - at);
    const off_t place = offset + static_cast<off_t>(at);
    void* fresh = mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) return errno;
    int error = readPages(fd, place, static_cast<unsigned char*>(fresh), n);
    if (error == 0 && mremap(fresh, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, memory + at) == MAP_FAILED) error = errno;
    if (error != 0) {
      munmap(fresh, n);
      return error;
    }
    empty(fd, place, n);
  }
  return 0;
}

// Gives an errno. The file is empty again then, but for a portion that could not be mapped, and what could not be made
// private for want of memory.
int remap(int fd, off_t offset, unsigned char* memory, size_t bytes, size_t page) {
  for (size_t at = 0; at < bytes; at += kPortion) {
    const size_t n = std::min(kPortion, bytes - at);
    const off_t place = offset + static_cast<off_t>(at);
    int error = writePages(fd, place, memory + at, n, page);
    if (error != 0) empty(fd, place, n);
    else if (mmap(memory + at, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, place) == MAP_FAILED) {
      error = errno;
    }
    if (error == 0) continue;
    takeBack(fd, offset, memory, at);
    return error;
  }
  return 0;
}

Remapper* remapperOf(napi_env env, napi_callback_info info, size_t* count, napi_value* args) {
  void* data;
  napi_get_cb_info(env, info, count, args, nullptr, &data);
  return static_cast<Remapper*>(data);
}

// (buffer): the bytes of its pages, and how many of them stand before it; undefined if they cannot be remapped.
napi_value memoryRemappable(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value buffer;
  const Remapper& remapper = *remapperOf(env, info, &count, &buffer);
  uintptr_t address;
  size_t length;
  if (!readBuffer(env, buffer, "memoryRemappable", &address, &length)) return nullptr;
  const Pages pages = pagesOf(remapper, address, length);
  if (pages.bytes == 0 || !Pin::keepsDetached()) return nullptr;
  {
    std::lock_guard<std::mutex> lock(remappedMutex);
    if (remappedPages->count(pages.start) != 0 || isServed(pages.start, pages.bytes)) return nullptr;
  }
  napi_value result;
  napi_value number;
  if (napi_create_array_with_length(env, 2, &result) != napi_ok) return nullptr;
  napi_create_double(env, static_cast<double>(pages.bytes), &number);
  napi_set_element(env, result, 0, number);
  napi_create_double(env, static_cast<double>(kHeader), &number);
  napi_set_element(env, result, 1, number);
  return result;
}

// (fd, offset, buffer): a number for `memoryReclaim`. The file is zero from `offset` on.
napi_value memoryRemap(napi_env env, napi_callback_info info) {
  size_t count = 3;
  napi_value args[3];
  Remapper& remapper = *remapperOf(env, info, &count, args);
  int fd;
  int64_t offset;
  uintptr_t address;
  size_t length;
  if (!readMemoryFile(env, args[0], "memoryRemap", &fd) ||
      !readInteger(env, args[1], "memoryRemap", "the offset", 0, kMaxSafeInteger, &offset) ||
      !readBuffer(env, args[2], "memoryRemap", &address, &length)) {
    return nullptr;
  }
  const Pages pages = pagesOf(remapper, address, length);
  struct stat status;
  const bool fits = fstat(fd, &status) == 0 && offset % static_cast<int64_t>(remapper.page) == 0 &&
                    offset <= status.st_size && static_cast<uint64_t>(status.st_size - offset) >= pages.bytes;
  if (pages.bytes == 0 || !fits || !Pin::keepsDetached()) {
    throwRangeError(env, "memoryRemap: %s",
                    fits ? "this memory cannot be remapped; call memoryRemappable first"
                         : "the file must have room for the memory at an offset that is a multiple of the page size");
    return nullptr;
  }
  auto* const memory = reinterpret_cast<unsigned char*>(pages.start);
  {
    std::lock_guard<std::mutex> lock(remappedMutex);
    if (isServed(pages.start, pages.bytes) || !remappedPages->insert(pages.start).second) {
      throwRangeError(
          env, "memoryRemap: these %zu bytes are already remapped, or a Server uses them by their addresses", length);
      return nullptr;
    }
  }
  const int error = remap(fd, offset, memory, pages.bytes, remapper.page);
  if (error != 0) {
    std::lock_guard<std::mutex> lock(remappedMutex);
    remappedPages->erase(pages.start);
    throwSystemError(env, error, "memoryRemap: %zu bytes", length);
    return nullptr;
  }
  const int64_t number = ++remapper.last;
  remapper.remapped.emplace(number, Remapped{pages.start, pages.bytes, fd, offset, Pin(env, args[2])});
  napi_value result;
  napi_create_double(env, static_cast<double>(number), &result);
  return result;
}

// (number): whether the memory is private again, with what was in it. The file is not closed yet.
napi_value memoryReclaim(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value arg;
  Remapper& remapper = *remapperOf(env, info, &count, &arg);
  int64_t number;
  if (!readInteger(env, arg, "memoryReclaim", "the number", 0, kMaxSafeInteger, &number)) return nullptr;
  const auto found = remapper.remapped.find(number);
  if (found == remapper.remapped.end()) {
    throwRangeError(env, "memoryReclaim: %lld is not the number of remapped memory", static_cast<long long>(number));
    return nullptr;
  }
  const Remapped& remapped = found->second;
  bool detached = true;
  const napi_value buffer = remapped.pin.object(env);
  if (buffer != nullptr) napi_is_detached_arraybuffer(env, buffer, &detached);
  bool stays = detached;
  {
    std::lock_guard<std::mutex> lock(remappedMutex);
    stays = stays || isServed(remapped.start, remapped.bytes);
  }
  auto* const memory = reinterpret_cast<unsigned char*>(remapped.start);
  const bool isPrivate = !stays && takeBack(remapped.fd, remapped.offset, memory, remapped.bytes) == 0;
  remapper.forget(found);
  napi_value result;
  napi_get_boolean(env, isPrivate, &result);
  return result;
}

}  // namespace

void servedBegins(uintptr_t address, size_t bytes) {
  std::lock_guard<std::mutex> lock(remappedMutex);
  served->emplace(address, address + bytes);
}

void servedEnds(uintptr_t address, size_t bytes) {
  std::lock_guard<std::mutex> lock(remappedMutex);
  const auto found = served->find({address, address + bytes});
  if (found != served->end()) served->erase(found);
}

void exportRemappedMemory(Napi::Env env, Napi::Object exports) {
  auto* remapper = new Remapper;
  remapper->env = env;
  napi_add_env_cleanup_hook(env, atEnvironmentEnd, remapper);
  exportFunction(env, exports, "memoryRemappable", memoryRemappable, remapper);
  exportFunction(env, exports, "memoryRemap", memoryRemap, remapper);
  exportFunction(env, exports, "memoryReclaim", memoryReclaim, remapper);
}

}  // namespace onesided
