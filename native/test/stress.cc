// stress LIBRARY [--fault]
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

int main(int argc, char** argv) {
  void* library = argc > 1 ? dlopen(argv[1], RTLD_LAZY) : nullptr;
  void* entry = library == nullptr ? nullptr : dlsym(library, "stressMain");
  if (entry == nullptr) {
    std::fprintf(stderr, "usage: stress LIBRARY [--fault]; %s\n", argc > 1 ? dlerror() : "no library");
    return 2;
  }
  reinterpret_cast<void (*)(bool)>(entry)(argc > 2 && std::strcmp(argv[2], "--fault") == 0);
}
