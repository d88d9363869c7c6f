// A memory file has no name that could leak: it lives as long as a descriptor or a mapping of it. Files made here are
// readable by their owner only, closed on exec, and sealed against shrinking, so that no process can take pages away
// under another's mapping (which would kill it with SIGBUS). Only such files are mapped.
//
// Who unmaps: `memoryUnmap` detaches the ArrayBuffer, so JavaScript cannot reach the address any more, and unmaps at
// once; otherwise the finalizer unmaps, when the ArrayBuffer is collected or its thread ends. The finalizer runs
// exactly once in either case, on the thread of its environment, and frees the record. `live` maps addresses to records
// that are still mapped. Memory that is pinned (pin.h) stays mapped until its pin is dropped, and memory whose
// ArrayBuffer was transferred until its new one is collected: `memoryUnmap` tells.
//
// V8 counts the bytes of an ArrayBuffer as if collecting it gave them back, and collects garbage when there are more of
// them. With hundreds of peers, of which each rank maps megabytes, that is a sixth of the work of joining a job. They
// cannot be taken off its count: V8 subtracts its own when an ArrayBuffer is detached or swept, which is before any
// finalizer runs, and from version 13 on (Node 24) it aborts when that would make the count negative.

#include "memory.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "arguments.h"
#include "exports.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace onesided {
namespace {

struct Mapping;
using Live = std::unordered_map<void*, Mapping*>;

// Mapped as long as somebody holds it.
struct Range {
  void* address;
  size_t bytes;
  Range(void* address, size_t bytes) : address(address), bytes(bytes) {}
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  ~Range() { munmap(address, bytes); }
};

struct Mapping {
  void* address;
  // Empty once it was unmapped.
  std::shared_ptr<Range> range;
  // Outlives the environment's own reference: the last finalizer may run after it.
  std::shared_ptr<Live> live;
};

// One per environment, that is per thread that loaded the addon; handed to the calls as their data.
struct Memory {
  std::shared_ptr<Live> live = std::make_shared<Live>();
  double pageBytes = static_cast<double>(sysconf(_SC_PAGESIZE));
  double maxBytes = kMaxSafeInteger;
};

napi_value memoryCreate(napi_env env, napi_callback_info info) {
  Arguments<1> args(env, info);
  char name[256];
  size_t length;
  napi_valuetype type;
  napi_typeof(env, args[0], &type);
  if (type != napi_string) {
    throwTypeError(env, "memoryCreate: the name must be a string");
    return nullptr;
  }
  napi_get_value_string_utf8(env, args[0], nullptr, 0, &length);
  // memfd_create's limit is 249 bytes.
  if (length > 249) {
    throwRangeError(env, "memoryCreate: the name must be at most 249 bytes long, not %zu", length);
    return nullptr;
  }
  napi_get_value_string_utf8(env, args[0], name, sizeof name, &length);
  int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
  // Kernels before 6.3 do not know MFD_NOEXEC_SEAL.
  if (fd < 0 && errno == EINVAL) fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) {
    throwSystemError(env, errno, "memoryCreate: memfd_create");
    return nullptr;
  }
  if (fchmod(fd, 0600) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
    const int error = errno;
    close(fd);
    throwSystemError(env, error, "memoryCreate: cannot protect the memory file");
    return nullptr;
  }
  napi_value result;
  napi_create_int32(env, fd, &result);
  return result;
}

napi_value memoryResize(napi_env env, napi_callback_info info) {
  Arguments<2> args(env, info);
  int fd;
  int64_t bytes;
  if (!readMemoryFile(env, args[0], "memoryResize", &fd) ||
      !readInteger(env, args[1], "memoryResize", "the size", 0, kMaxSafeInteger, &bytes)) {
    return nullptr;
  }
  // Beyond this limit the kernel would not only refuse but send SIGXFSZ.
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      static_cast<rlim_t>(bytes) > limit.rlim_cur) {
    throwSystemError(env, EFBIG, "memoryResize: %lld bytes exceed the limit on file sizes (ulimit -f)",
                     static_cast<long long>(bytes));
    return nullptr;
  }
  if (ftruncate(fd, bytes) != 0) {
    throwSystemError(env, errno, "memoryResize: to %lld bytes; a memory file only grows",
                     static_cast<long long>(bytes));
  }
  return nullptr;
}

void finalize(napi_env, void*, void* hint) {
  auto* mapping = static_cast<Mapping*>(hint);
  if (mapping->range != nullptr) mapping->live->erase(mapping->address);
  delete mapping;
}

napi_value memoryMap(napi_env env, napi_callback_info info) {
  void* data;
  size_t count = 4;
  napi_value args[4];
  napi_get_cb_info(env, info, &count, args, nullptr, &data);
  const auto* memory = static_cast<Memory*>(data);
  int fd;
  int64_t offset;
  int64_t bytes;
  int64_t before = 0;
  if (!readMemoryFile(env, args[0], "memoryMap", &fd) ||
      !readInteger(env, args[1], "memoryMap", "the offset", 0, kMaxSafeInteger, &offset) ||
      !readInteger(env, args[2], "memoryMap", "the length", 1, memory->maxBytes, &bytes)) {
    return nullptr;
  }
  napi_valuetype given = napi_undefined;
  napi_typeof(env, args[3], &given);
  if (given != napi_undefined &&
      !readInteger(env, args[3], "memoryMap", "the bytes before the buffer", 0, static_cast<double>(bytes) - 1,
                   &before)) {
    return nullptr;
  }
  const auto page = static_cast<int64_t>(memory->pageBytes);
  if (offset % page != 0) {
    throwRangeError(env, "memoryMap: the offset must be a multiple of the page size %lld, not %lld",
                    static_cast<long long>(page), static_cast<long long>(offset));
    return nullptr;
  }
  struct stat status;
  if (fstat(fd, &status) != 0) {
    throwSystemError(env, errno, "memoryMap: fstat of descriptor %d", fd);
    return nullptr;
  }
  if (bytes > status.st_size || offset > status.st_size - bytes) {
    throwRangeError(env, "memoryMap: bytes %lld to %lld lie outside the memory file, which has %lld",
                    static_cast<long long>(offset), static_cast<long long>(offset) + static_cast<long long>(bytes),
                    static_cast<long long>(status.st_size));
    return nullptr;
  }
  void* start = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
  if (start == MAP_FAILED) {
    throwSystemError(env, errno, "memoryMap: mmap of %lld bytes at %lld of descriptor %d",
                     static_cast<long long>(bytes), static_cast<long long>(offset), fd);
    return nullptr;
  }
  void* address = static_cast<char*>(start) + before;
  auto* mapping = new Mapping{address, std::make_shared<Range>(start, static_cast<size_t>(bytes)), memory->live};
  (*memory->live)[address] = mapping;
  napi_value result;
  const napi_status made =
      napi_create_external_arraybuffer(env, address, static_cast<size_t>(bytes - before), finalize, mapping, &result);
  if (made == napi_no_external_buffers_allowed) {
    finalize(env, address, mapping);
    napi_throw_error(env, "ERR_NO_EXTERNAL_BUFFERS",
                     "memoryMap: this runtime (Electron?) forbids ArrayBuffers over mapped memory; run the ranks as "
                     "threads");
    return nullptr;
  }
  if (made != napi_ok) {
    // Whether the runtime still finalizes is not specified here, so the mapping is left to it: a leak rather than a
    // double unmap.
    bool pending = false;
    napi_is_exception_pending(env, &pending);
    if (!pending) {
      napi_throw_error(env, "ERR_SYSTEM", "memoryMap: the runtime cannot create an ArrayBuffer over the mapping");
    }
    return nullptr;
  }
  return result;
}

napi_value boolean(napi_env env, bool value) {
  napi_value result;
  return napi_get_boolean(env, value, &result) == napi_ok ? result : nullptr;
}

// (buffer): whether nothing in this process maps the memory any more.
napi_value memoryUnmap(napi_env env, napi_callback_info info) {
  void* data;
  size_t count = 1;
  napi_value buffer;
  napi_get_cb_info(env, info, &count, &buffer, nullptr, &data);
  bool isBuffer = false;
  napi_is_arraybuffer(env, buffer, &isBuffer);
  if (!isBuffer) {
    throwTypeError(env, "memoryUnmap: the argument must be an ArrayBuffer that memoryMap returned");
    return nullptr;
  }
  bool detached = false;
  napi_is_detached_arraybuffer(env, buffer, &detached);
  if (detached) return boolean(env, false);
  void* address = nullptr;
  size_t bytes = 0;
  napi_get_arraybuffer_info(env, buffer, &address, &bytes);
  const auto live = static_cast<Memory*>(data)->live;
  const auto found = live->find(address);
  if (address == nullptr || found == live->end()) {
    throwTypeError(env, "memoryUnmap: this ArrayBuffer of %zu bytes was not made by memoryMap", bytes);
    return nullptr;
  }
  // Detaching may run the finalizer, which frees the record: take what is needed out of it first.
  Mapping* mapping = found->second;
  std::shared_ptr<Range> range = std::move(mapping->range);
  live->erase(found);
  if (napi_detach_arraybuffer(env, buffer) != napi_ok) {
    mapping->range = std::move(range);
    (*live)[address] = mapping;
    throwTypeError(env, "memoryUnmap: the ArrayBuffer cannot be detached");
    return nullptr;
  }
  // Pins are made on this thread, so nobody comes to hold it now.
  return boolean(env, range.use_count() == 1);
}

napi_value memoryPunch(napi_env env, napi_callback_info info) {
  Arguments<3> args(env, info);
  int fd;
  int64_t offset;
  int64_t bytes;
  if (!readMemoryFile(env, args[0], "memoryPunch", &fd) ||
      !readInteger(env, args[1], "memoryPunch", "the offset", 0, kMaxSafeInteger, &offset) ||
      !readInteger(env, args[2], "memoryPunch", "the length", 1, kMaxSafeInteger, &bytes)) {
    return nullptr;
  }
  if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes) != 0) {
    throwSystemError(env, errno, "memoryPunch: %lld bytes at %lld of descriptor %d", static_cast<long long>(bytes),
                     static_cast<long long>(offset), fd);
  }
  return nullptr;
}

}  // namespace

bool readMemoryFile(napi_env env, napi_value value, const char* call, int* fd) {
  int64_t number;
  if (!readInteger(env, value, call, "the descriptor", 0, INT_MAX, &number)) return false;
  *fd = static_cast<int>(number);
  const int seals = fcntl(*fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    const int error = seals < 0 ? errno : EINVAL;
    throwSystemError(env, error, "%s: descriptor %d is not a memory file made by memoryCreate", call, *fd);
    return false;
  }
  return true;
}

std::shared_ptr<void> mappingOf(napi_env env, napi_value buffer) {
  void* data = nullptr;
  void* address = nullptr;
  size_t bytes = 0;
  if (napi_get_instance_data(env, &data) != napi_ok || data == nullptr ||
      napi_get_arraybuffer_info(env, buffer, &address, &bytes) != napi_ok) {
    return {};
  }
  const Live& live = *static_cast<Memory*>(data)->live;
  const auto found = live.find(address);
  return found == live.end() ? nullptr : found->second->range;
}

void exportMemory(Napi::Env env, Napi::Object exports) {
  auto* memory = new Memory;
  const napi_node_version* version = nullptr;
  // Node 20 makes external ArrayBuffers through Buffer, whose limit was 2^32 bytes until Node 22.
  if (napi_get_node_version(env, &version) == napi_ok && version->major < 22) memory->maxBytes = 4294967296.0;
  env.SetInstanceData<Memory>(memory);
  exportFunction(env, exports, "memoryCreate", memoryCreate, memory);
  exportFunction(env, exports, "memoryResize", memoryResize, memory);
  exportFunction(env, exports, "memoryMap", memoryMap, memory);
  exportFunction(env, exports, "memoryUnmap", memoryUnmap, memory);
  exportFunction(env, exports, "memoryPunch", memoryPunch, memory);
  exports.Set("pageBytes", memory->pageBytes);
  exports.Set("maxMapBytes", memory->maxBytes);
}

}  // namespace onesided
