/*
 * Locks that ranks fight for, on MPI, in C: what bench/ranks/contended.ts does on our windows, operation for operation.
 *
 *   mpiexec -n N contended lock|map SAMPLES [MILLISECONDS]
 *
 * prints one line of JSON from rank 0, as rma.c does. A sample is the time in which all ranks work, divided by the
 * operations of all of them.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"

enum { VALUES = 10000, WORDS = 64, BATCH = 16 };

static int rank, ranks;
static MPI_Win win;
static void *window;
static double count;
static int32_t value[WORDS];
static uint32_t seed;
static long turn;

static void fail(const char *what) {
  fprintf(stderr, "contended: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void add_one(void) {
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
  MPI_Get(&count, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win);
  MPI_Win_flush(0, win);
  count++;
  MPI_Put(&count, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win);
  MPI_Win_unlock(0, win);
}

static void use_map(void) {
  seed = seed * 1664525u + 1013904223u;
  int key = (int)((seed >> 8) % VALUES);
  int target = key % ranks;
  MPI_Aint at = key / ranks * WORDS;
  if (++turn % 10 != 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
    MPI_Get(value, WORDS, MPI_INT32_T, target, at, WORDS, MPI_INT32_T, win);
    MPI_Win_flush(target, win);
    MPI_Win_unlock(target, win);
    if (value[0] != value[WORDS - 1]) fail("a value is half of one and half of another");
  } else {
    for (int i = 0; i < WORDS; i++) value[i] = (int32_t)seed;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
    MPI_Put(value, WORDS, MPI_INT32_T, target, at, WORDS, MPI_INT32_T, win);
    MPI_Win_unlock(target, win);
  }
}

static double together(double seconds, void work(void)) {
  MPI_Barrier(MPI_COMM_WORLD);
  double end = MPI_Wtime() + seconds, mine = 0, all = 0;
  while (MPI_Wtime() < end) {
    for (int i = 0; i < BATCH; i++) work();
    mine += BATCH;
  }
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 3) fail("usage: contended lock|map SAMPLES [MILLISECONDS]");
  int is_lock = strcmp(argv[1], "lock") == 0;
  int samples = atoi(argv[2]);
  double seconds = (argc > 3 ? atof(argv[3]) : 400) / 1e3;
  MPI_Aint bytes = is_lock ? 4096 : (MPI_Aint)((VALUES + ranks - 1) / ranks) * WORDS * 4;
  MPI_Win_allocate(bytes, is_lock ? 8 : 4, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
  memset(window, 0, bytes);
  seed = 12345u + (uint32_t)rank;
  MPI_Barrier(MPI_COMM_WORLD);

  double total = together(1, is_lock ? add_one : use_map);
  double *found = calloc(samples, sizeof *found);
  for (int s = 0; s < samples; s++) {
    double operations = together(seconds, is_lock ? add_one : use_map);
    total += operations;
    found[s] = 1e9 * seconds / operations;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (is_lock && rank == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    if (*(double *)window != total) fail("the counter is wrong");
    MPI_Win_unlock(0, win);
  }
  if (rank == 0) {
    printf("{\"row\":\"%s\",\"library\":\"%s\",\"unit\":\"ns\",\"iterations\":%ld,\"samples\":[", argv[1],
           library_name(), (long)(total / samples));
    for (int s = 0; s < samples; s++) printf("%s%.6g", s ? "," : "", found[s]);
    printf("]}\n");
  }
  MPI_Win_free(&win);
  MPI_Finalize();
  return 0;
}
