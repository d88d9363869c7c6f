/*
 * What one processor's memcpy moves: the ceiling for the large "bandwidth" rows of rma.c, with their pattern of
 * addresses.
 *
 *   memcpy put|get/SIZE SAMPLES [MILLISECONDS]
 *
 * prints one line of JSON as rma.c does, in MB/s (10^6 bytes). "put" copies one private buffer to consecutive places of
 * shared memory, which begin again after 4 MiB; "get" copies the other way.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { DEPTH = 64, REACH = 4 << 20 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
  const char *slash = argc > 2 ? strchr(argv[1], '/') : NULL;
  long size = slash ? atol(slash + 1) : 0;
  if (size < 1) {
    fprintf(stderr, "usage: memcpy put|get/SIZE SAMPLES [MILLISECONDS]\n");
    return 1;
  }
  int get = argv[1][0] == 'g';
  int samples = atoi(argv[2]);
  double block = (argc > 3 ? atof(argv[3]) : 20) / 1e3;
  long places = DEPTH;
  while (places > 1 && places * size > REACH) places /= 2;
  char *shared = mmap(NULL, places * size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  char *own;
  if (shared == MAP_FAILED || posix_memalign((void **)&own, 4096, size)) return 1;
  memset(shared, 1, places * size);
  memset(own, 2, size);

  printf("{\"row\":\"memcpy-%s\",\"unit\":\"MB/s\",\"samples\":[", argv[1]);
  long n = 1;
  for (int s = -1; s < samples;) {
    double start = now();
    for (long i = 0; i < n; i++) {
      for (long j = 0; j < DEPTH; j++) {
        char *place = shared + (j & (places - 1)) * size;
        memcpy(get ? own : place, get ? place : own, size);
        __asm__ volatile("" ::: "memory"); /* every copy is made */
      }
    }
    double took = now() - start;
    if (s < 0 && took < block) {
      n = took > block / 16 ? (long)(n * (block * 1.1 / took)) + 1 : n * 4;
      continue;
    }
    if (s >= 0) printf("%s%.2f", s ? "," : "", (double)n * DEPTH * size / took / 1e6);
    s++;
  }
  printf("]}\n");
  return 0;
}
