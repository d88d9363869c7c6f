/*
 * What a rank costs while nothing happens: bench/ranks/footprint.ts in C on MPI.
 *
 *   mpiexec -n 2 footprint idle [SECONDS]   processor time of a rank that waits in a barrier, in % of a core
 *   mpiexec -n N footprint memory           memory of a rank with a window of 1 MiB after a put to every rank, in MiB:
 *                                           proportional set size, the mean of all ranks
 *
 * prints one line of JSON from rank 0: { "row", "library", "unit", "samples": [...] }.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "library.h"

static double processor_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

/* %: rank 0 comes late to the barrier. */
static double idle(int rank, double seconds) {
  MPI_Barrier(MPI_COMM_WORLD);
  double wall = MPI_Wtime(), used = processor_seconds();
  if (rank == 0) usleep((useconds_t)(seconds * 1e6));
  MPI_Barrier(MPI_COMM_WORLD);
  double share = 100 * (processor_seconds() - used) / (MPI_Wtime() - wall), shares[2];
  MPI_Gather(&share, 1, MPI_DOUBLE, shares, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return rank == 0 ? shares[1] : 0;
}

static double proportional_set_size(void) {
  FILE *file = fopen("/proc/self/smaps_rollup", "r");
  char line[256];
  double kib = -1;
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, "Pss:", 4) == 0) kib = atof(line + 4);
  }
  if (file != NULL) fclose(file);
  return kib / 1024;
}

static double memory(int size) {
  const int bytes = 1 << 20;
  char *window, *origin = calloc(1, bytes);
  MPI_Win win;
  MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
  memset(window, 1, bytes);
  MPI_Win_fence(0, win);
  for (int target = 0; target < size; target++) MPI_Put(origin, 4096, MPI_BYTE, target, 0, 4096, MPI_BYTE, win);
  MPI_Win_fence(0, win);
  double mine = proportional_set_size(), sum;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Win_free(&win);
  return sum / size;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int wants_idle = argc > 1 && strcmp(argv[1], "idle") == 0;
  if (argc < 2 || (wants_idle && size != 2)) {
    fprintf(stderr, "usage: mpiexec -n 2 footprint idle [SECONDS], mpiexec -n N footprint memory\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  double value = wants_idle ? idle(rank, argc > 2 ? atof(argv[2]) : 2) : memory(size);
  if (rank == 0)
    printf("{\"row\":\"%s\",\"library\":\"%s\",\"unit\":\"%s\",\"samples\":[%.3f]}\n", argv[1], library_name(),
           wants_idle ? "%" : "MiB", value);
  MPI_Finalize();
  return 0;
}
