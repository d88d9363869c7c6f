// Lets an addon run on older systems than the one that compiled it (CMakeLists.txt says when this is compiled).
//
// A linker takes the newest version of each symbol of glibc. Here 2.34 and 2.32 are new only because symbols moved from
// libpthread and libdl into libc: the functions are as old as glibc. So each is defined here once more, hidden, and
// forwards to the oldest version. Every object of the addon, the static libstdc++ included, is bound to these.
// native/prebuild.mjs checks what is left: nothing may need more than the glibc that Node's own binaries need.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

#if defined(__x86_64__)
#define FIRST "GLIBC_2.2.5"
#define FIRST_OF_CONDITIONS "GLIBC_2.3.2"
#elif defined(__aarch64__)
#define FIRST "GLIBC_2.17"
#define FIRST_OF_CONDITIONS "GLIBC_2.17"
#else
#error "the first glibc of this architecture is not known here"
#endif

#define HIDDEN extern "C" __attribute__((visibility("hidden")))
// Declares `first_NAME`: NAME in its oldest version.
#define OLD(result, name, version, ...) \
  extern "C" result first_##name(__VA_ARGS__); \
  __asm__(".symver first_" #name ", " #name "@" version)

OLD(int, pthread_create, FIRST, pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
OLD(int, pthread_join, FIRST, pthread_t, void**);
OLD(int, pthread_once, FIRST, pthread_once_t*, void (*)());
OLD(int, pthread_sigmask, FIRST, int, const sigset_t*, sigset_t*);
OLD(int, pthread_cond_timedwait, FIRST_OF_CONDITIONS, pthread_cond_t*, pthread_mutex_t*, const timespec*);
OLD(void*, dlopen, FIRST, const char*, int);
OLD(void*, dlsym, FIRST, void*, const char*);
OLD(char*, dlerror, FIRST);
OLD(int, dladdr, FIRST, const void*, void*);

HIDDEN int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
  return first_pthread_create(thread, attributes, run, argument);
}

HIDDEN int pthread_join(pthread_t thread, void** result) {
  return first_pthread_join(thread, result);
}

HIDDEN int pthread_once(pthread_once_t* once, void (*run)()) {
  return first_pthread_once(once, run);
}

HIDDEN int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) {
  return first_pthread_sigmask(how, set, before);
}

HIDDEN void* dlopen(const char* file, int mode) {
  return first_dlopen(file, mode);
}

HIDDEN void* dlsym(void* library, const char* name) {
  return first_dlsym(library, name);
}

HIDDEN char* dlerror() {
  return first_dlerror();
}

HIDDEN int dladdr(const void* address, void* found) {
  return first_dladdr(address, found);
}

// 2.33. glibc's struct stat is the kernel's on both architectures.
HIDDEN int fstat(int fd, struct stat* status) {
  return static_cast<int>(syscall(SYS_fstat, fd, status));
}

// 2.32. libstdc++ reads it to save itself atomic operations: 0 always lets it use them.
HIDDEN char __libc_single_threaded;
char __libc_single_threaded = 0;

// 2.30. Waits against the wall clock, which may jump, so not for longer than a slice at a time: a caller has to expect
// to be woken for nothing, and looks at its own clock then.
HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                  const timespec* deadline) {
  constexpr int64_t kSecond = 1'000'000'000;
  constexpr int64_t kSlice = kSecond / 100;
  timespec now;
  clock_gettime(clock, &now);
  const int64_t left = (deadline->tv_sec - now.tv_sec) * kSecond + (deadline->tv_nsec - now.tv_nsec);
  if (left <= 0) return ETIMEDOUT;
  timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  const int64_t nanoseconds = until.tv_nsec + (left < kSlice ? left : kSlice);
  until.tv_sec += nanoseconds / kSecond;
  until.tv_nsec = nanoseconds % kSecond;
  const int result = first_pthread_cond_timedwait(condition, mutex, &until);
  return result == ETIMEDOUT && left > kSlice ? 0 : result;
}
