/*
 * The benchmark's loops on MPI, in C: what bench/ranks/rma.ts does on our windows, operation for operation.
 *
 *   mpiexec -n 2 rma ROW SAMPLES [MILLISECONDS]
 *
 * prints one line of JSON from rank 0: { "row", "library", "unit", "iterations", "samples": [...] }. A sample is the
 * mean over one block of iterations, timed on rank 0; the block's length is found beforehand by doubling until it lasts
 * MILLISECONDS (20), which is also the warm-up.
 *
 * The rules, the same on both sides:
 * - windows come from MPI_Win_allocate and have at least a page (MPICH 4.0.2 loses puts to windows of 8 bytes); the
 *   origin is memory of its own that begins at a page, the same buffer in every iteration;
 * - "flush" and "bandwidth" rows run in one MPI_Win_lock_all epoch, which is opened before the timing; rank 0 is the
 *   origin, rank 1 waits in MPI_Barrier, where the library may make progress;
 * - "bandwidth" rows issue 64 operations to consecutive places in the window, then flush; the places begin again after
 *   4 MiB, so that the caches and not this machine's neighbours on the memory bus are what differs; MB are 10^6 bytes;
 * - "fence-put-fence" is one MPI_Win_fence, a put by rank 0, and another MPI_Win_fence, on both ranks;
 * - "lock" rows are MPI_Win_lock, the put, and MPI_Win_unlock, no assertions; "lockall-put" is the same with
 *   MPI_Win_lock_all;
 * - "pscw-put" is MPI_Win_start, the put and MPI_Win_complete on rank 0, MPI_Win_post and MPI_Win_wait on rank 1;
 * - "acc-flush" and "getacc-flush" add one 64-bit integer, or, of more than 8 bytes, doubles; "acc-contended/N" is one
 *   integer added by each of N ranks, all to rank 1, each to a cache line of its own, and flushed;
 * - "vector/AxB" is A blocks of B bytes, at the target two blocks' length apart; "put-subarray/AxB" a block of A rows
 *   of B doubles in the middle of a matrix of twice as many rows and columns; "acc-indexed/N" adds N doubles
 *   ("acc-indexed-integer/N": integers), scattered over sixteen times as many. The origin is consecutive, the datatype
 *   made once;
 * - "usermemory" rows are "put-flush" in a window over memory of the program's own (malloc, MPI_Win_create);
 * - what has been transferred is compared at the end: a loop that moved nothing is an error, not a record.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "library.h"

/* Seconds at least before anything counts, as in bench/ranks/samples.ts: so many for each rank on a core. */
#define WARM_UP 0.5

enum { DEPTH = 64, FEW = 16, REACH = 4 << 20, PAGE = 4096, TARGET = 1 };

static int rank;
static int ranks;
static int size;       /* bytes of one operation */
static int rows, columns; /* of a row AxB */
static MPI_Datatype target_type, base_type;
static MPI_Group other;
static char *fetched;
static int places;     /* that operations of a bandwidth row go to in turn; a power of two */
static char *window;   /* this rank's part */
static char *origin;
static MPI_Win win;
static int64_t one = 1, zero = 0, result;
static double one_double = 1.0;
static int64_t operations; /* issued by rank 0 since the start */

typedef void loop(long iterations);

static void put_flush(long n) {
  for (long i = 0; i < n; i++) {
    MPI_Put(origin, size, MPI_BYTE, TARGET, 0, size, MPI_BYTE, win);
    MPI_Win_flush(TARGET, win);
  }
}

static void puts_flush(long n) {
  for (long i = 0; i < n; i++) {
    for (int j = 0; j < FEW; j++) {
      MPI_Put(origin, size, MPI_BYTE, TARGET, (MPI_Aint)j * size, size, MPI_BYTE, win);
    }
    MPI_Win_flush(TARGET, win);
  }
}

static void get_flush(long n) {
  for (long i = 0; i < n; i++) {
    MPI_Get(origin, size, MPI_BYTE, TARGET, 0, size, MPI_BYTE, win);
    MPI_Win_flush(TARGET, win);
  }
}

static void fop_flush(long n) {
  for (long i = 0; i < n; i++) {
    MPI_Fetch_and_op(&one, &result, MPI_INT64_T, TARGET, 0, MPI_SUM, win);
    MPI_Win_flush(TARGET, win);
  }
}

static void cas_flush(long n) {
  for (long i = 0; i < n; i++) {
    MPI_Compare_and_swap(&one, &zero, &result, MPI_INT64_T, TARGET, 0, win);
    MPI_Win_flush(TARGET, win);
  }
}

static void acc_flush(long n) {
  for (long i = 0; i < n; i++) {
    MPI_Accumulate(&one, 1, MPI_INT64_T, TARGET, 0, 1, MPI_INT64_T, MPI_SUM, win);
    MPI_Win_flush(TARGET, win);
  }
}

static void acc_flush_double(long n) {
  for (long i = 0; i < n; i++) {
    MPI_Accumulate(&one_double, 1, MPI_DOUBLE, TARGET, 0, 1, MPI_DOUBLE, MPI_SUM, win);
    MPI_Win_flush(TARGET, win);
  }
}

static void lock_put_unlock(long n) {
  for (long i = 0; i < n; i++) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, TARGET, 0, win);
    MPI_Put(origin, size, MPI_BYTE, TARGET, 0, size, MPI_BYTE, win);
    MPI_Win_unlock(TARGET, win);
  }
}

static void lock_shared_put_unlock(long n) {
  for (long i = 0; i < n; i++) {
    MPI_Win_lock(MPI_LOCK_SHARED, TARGET, 0, win);
    MPI_Put(origin, size, MPI_BYTE, TARGET, 0, size, MPI_BYTE, win);
    MPI_Win_unlock(TARGET, win);
  }
}

static void put_bandwidth(long n) {
  for (long i = 0; i < n; i++) {
    for (int j = 0; j < DEPTH; j++) {
      MPI_Put(origin, size, MPI_BYTE, TARGET, (MPI_Aint)(j & (places - 1)) * size, size, MPI_BYTE, win);
    }
    MPI_Win_flush(TARGET, win);
  }
}

static void get_bandwidth(long n) {
  for (long i = 0; i < n; i++) {
    for (int j = 0; j < DEPTH; j++) {
      MPI_Get(origin, size, MPI_BYTE, TARGET, (MPI_Aint)(j & (places - 1)) * size, size, MPI_BYTE, win);
    }
    MPI_Win_flush(TARGET, win);
  }
}

static void fence_put_fence(long n) {
  for (long i = 0; i < n; i++) {
    MPI_Win_fence(0, win);
    if (rank == 0) MPI_Put(origin, size, MPI_BYTE, TARGET, 0, size, MPI_BYTE, win);
    MPI_Win_fence(0, win);
  }
}

static void pscw_put(long n) {
  for (long i = 0; i < n; i++) {
    if (rank == 0) {
      MPI_Win_start(other, 0, win);
      MPI_Put(origin, size, MPI_BYTE, TARGET, 0, size, MPI_BYTE, win);
      MPI_Win_complete(win);
    } else {
      MPI_Win_post(other, 0, win);
      MPI_Win_wait(win);
    }
  }
}

static void lockall_put(long n) {
  for (long i = 0; i < n; i++) {
    MPI_Win_lock_all(0, win);
    MPI_Put(origin, size, MPI_BYTE, TARGET, 0, size, MPI_BYTE, win);
    MPI_Win_unlock_all(win);
  }
}

static void rput_wait(long n) {
  for (long i = 0; i < n; i++) {
    MPI_Request request;
    MPI_Rput(origin, size, MPI_BYTE, TARGET, 0, size, MPI_BYTE, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

static void getacc_flush(long n) {
  for (long i = 0; i < n; i++) {
    MPI_Get_accumulate(&one, 1, MPI_INT64_T, &result, 1, MPI_INT64_T, TARGET, 0, 1, MPI_INT64_T, MPI_SUM, win);
    MPI_Win_flush(TARGET, win);
  }
}

static void sync_only(long n) {
  for (long i = 0; i < n; i++) MPI_Win_sync(win);
}

static void acc_doubles(long n) {
  int count = size / 8;
  for (long i = 0; i < n; i++) {
    MPI_Accumulate(origin, count, MPI_DOUBLE, TARGET, 0, count, MPI_DOUBLE, MPI_SUM, win);
    MPI_Win_flush(TARGET, win);
  }
}

static void getacc_doubles(long n) {
  int count = size / 8;
  for (long i = 0; i < n; i++) {
    MPI_Get_accumulate(origin, count, MPI_DOUBLE, fetched, count, MPI_DOUBLE, TARGET, 0, count, MPI_DOUBLE, MPI_SUM,
                       win);
    MPI_Win_flush(TARGET, win);
  }
}

static void acc_contended(long n) {
  for (long i = 0; i < n; i++) {
    MPI_Accumulate(&one, 1, MPI_INT64_T, TARGET, (MPI_Aint)rank * 64, 1, MPI_INT64_T, MPI_SUM, win);
    MPI_Win_flush(TARGET, win);
  }
}

static void put_typed(long n) {
  for (long i = 0; i < n; i++) {
    MPI_Put(origin, size, MPI_BYTE, TARGET, 0, 1, target_type, win);
    MPI_Win_flush(TARGET, win);
  }
}

static void get_typed(long n) {
  for (long i = 0; i < n; i++) {
    MPI_Get(origin, size, MPI_BYTE, TARGET, 0, 1, target_type, win);
    MPI_Win_flush(TARGET, win);
  }
}

static void put_subarray(long n) {
  for (long i = 0; i < n; i++) {
    MPI_Put(origin, rows * columns, MPI_DOUBLE, TARGET, 0, 1, target_type, win);
    MPI_Win_flush(TARGET, win);
  }
}

static void acc_indexed(long n) {
  for (long i = 0; i < n; i++) {
    MPI_Accumulate(origin, rows, base_type, TARGET, 0, 1, target_type, MPI_SUM, win);
    MPI_Win_flush(TARGET, win);
  }
}

static void barrier(long n) {
  for (long i = 0; i < n; i++) MPI_Barrier(MPI_COMM_WORLD);
}

/* The number of the row is a time, in microseconds, for which each rank computes. */
static void ibarrier_compute(long n) {
  for (long i = 0; i < n; i++) {
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    double end = MPI_Wtime() + rows * 1e-6;
    while (MPI_Wtime() < end) continue;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

/* ALL_PASSIVE: every rank runs the loop, in a lock_all epoch; NEIGHBOURS: both, in epochs of their own */
enum epoch { PASSIVE, ALL_PASSIVE, PER_OPERATION, NEIGHBOURS, FENCES, NO_WINDOW };
enum check {
  WRITTEN, READ, COUNTED, COUNTED_DOUBLE, COUNTED_DOUBLES, CONTENDED, SCATTERED, SCATTERED_DOUBLES, SWAPPED, NONE
};
/* how the target's bytes lie */
enum layout { PLAIN, VECTOR, SUBARRAY, INDEXED };

static const struct row {
  const char *name;
  loop *run;
  enum epoch epoch;
  enum check check;
  int depth; /* operations an iteration */
  enum layout layout;
  int own_memory; /* a window over memory of the program's own */
} ROWS[] = {
    {"put-flush", put_flush, PASSIVE, WRITTEN, 1, PLAIN, 0},
    {"puts-flush", puts_flush, PASSIVE, WRITTEN, 1, PLAIN, 0},
    {"get-flush", get_flush, PASSIVE, READ, 1, PLAIN, 0},
    {"fop-flush", fop_flush, PASSIVE, COUNTED, 1, PLAIN, 0},
    {"cas-flush", cas_flush, PASSIVE, SWAPPED, 1, PLAIN, 0},
    {"acc-flush", acc_flush, PASSIVE, COUNTED, 1, PLAIN, 0},
    {"acc-flush-double", acc_flush_double, PASSIVE, COUNTED_DOUBLE, 1, PLAIN, 0},
    {"lock-put-unlock", lock_put_unlock, PER_OPERATION, WRITTEN, 1, PLAIN, 0},
    {"lock-shared-put-unlock", lock_shared_put_unlock, PER_OPERATION, WRITTEN, 1, PLAIN, 0},
    {"put-bandwidth", put_bandwidth, PASSIVE, WRITTEN, DEPTH, PLAIN, 0},
    {"get-bandwidth", get_bandwidth, PASSIVE, READ, DEPTH, PLAIN, 0},
    {"fence-put-fence", fence_put_fence, FENCES, WRITTEN, 1, PLAIN, 0},
    {"barrier", barrier, NO_WINDOW, NONE, 1, PLAIN, 0},
    {"ibarrier-compute", ibarrier_compute, NO_WINDOW, NONE, 1, PLAIN, 0},
    {"pscw-put", pscw_put, NEIGHBOURS, WRITTEN, 1, PLAIN, 0},
    {"lockall-put", lockall_put, PER_OPERATION, WRITTEN, 1, PLAIN, 0},
    {"rput-wait", rput_wait, PASSIVE, WRITTEN, 1, PLAIN, 0},
    {"getacc-flush", getacc_flush, PASSIVE, COUNTED, 1, PLAIN, 0},
    {"sync", sync_only, PASSIVE, NONE, 1, PLAIN, 0},
    {"acc-doubles", acc_doubles, PASSIVE, COUNTED_DOUBLES, 1, PLAIN, 0},
    {"getacc-doubles", getacc_doubles, PASSIVE, COUNTED_DOUBLES, 1, PLAIN, 0},
    {"acc-contended", acc_contended, ALL_PASSIVE, CONTENDED, 1, PLAIN, 0},
    {"put-vector", put_typed, PASSIVE, WRITTEN, 1, VECTOR, 0},
    {"get-vector", get_typed, PASSIVE, READ, 1, VECTOR, 0},
    {"put-subarray", put_subarray, PASSIVE, WRITTEN, 1, SUBARRAY, 0},
    {"acc-indexed", acc_indexed, PASSIVE, SCATTERED_DOUBLES, 1, INDEXED, 0},
    {"acc-indexed-integer", acc_indexed, PASSIVE, SCATTERED, 1, INDEXED, 0},
    {"put-usermemory", put_flush, PASSIVE, WRITTEN, 1, PLAIN, 1},
};

static void fail(const char *what) {
  fprintf(stderr, "rma: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static double timed(const struct row *row, long n) {
  double start = MPI_Wtime();
  row->run(n);
  operations += n;
  return MPI_Wtime() - start;
}

static int together(const struct row *row) { return row->epoch != PASSIVE && row->epoch != PER_OPERATION; }

/* In rows that all ranks run, they run the same number of iterations, which rank 0 says. */
static long agreed(const struct row *row, long n) {
  if (together(row)) MPI_Bcast(&n, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  return n;
}

static void measure(const struct row *row, int samples, double block, double *seconds, long *iterations) {
  int active = rank == 0 || together(row);
  if (!active) return;
  long n = 1;
  double shared = (double)ranks / sysconf(_SC_NPROCESSORS_ONLN);
  double warm_up = together(row) && shared > 1 ? WARM_UP * shared : WARM_UP;
  double begun = MPI_Wtime();
  for (;;) {
    double took = timed(row, n);
    int enough = took >= block && MPI_Wtime() - begun >= warm_up;
    long next = n;
    if (took < block) next = took > block / 16 ? (long)(n * (block * 1.1 / took)) + 1 : n * 4;
    next = agreed(row, enough ? -n : next);
    if (next < 0) break;
    n = next;
  }
  for (int s = 0; s < samples; s++) seconds[s] = timed(row, n) / n;
  *iterations = n;
}

static char pattern(int i) { return (char)(i * 7 + 3); }

/* Where the i-th of the scattered elements lies: a permutation of sixteen times as many. */
static int scattered(int i) { return (int)((i * 40503u + 12345u) % (unsigned)(16 * rows)); }

/* Where byte i of an operation lies in the window. */
static long place(const struct row *row, long i) {
  if (row->layout == VECTOR) return i / columns * 2 * columns + i % columns;
  if (row->layout == SUBARRAY) {
    long element = i / 8;
    return ((rows / 2 + element / columns) * 2 * columns + columns / 2 + element % columns) * 8 + i % 8;
  }
  return i;
}

static long window_bytes(const struct row *row) {
  if (row->layout == VECTOR) return 2L * size;
  if (row->layout == SUBARRAY) return 4L * size;
  if (row->layout == INDEXED) return 16L * size;
  return (long)size * places;
}

static void make_type(const struct row *row) {
  if (row->layout == VECTOR) MPI_Type_vector(rows, columns, 2 * columns, MPI_BYTE, &target_type);
  if (row->layout == SUBARRAY) {
    int sizes[] = {2 * rows, 2 * columns}, parts[] = {rows, columns}, starts[] = {rows / 2, columns / 2};
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &target_type);
  }
  if (row->layout == INDEXED) {
    int *displacements = malloc(rows * sizeof *displacements);
    for (int i = 0; i < rows; i++) displacements[i] = scattered(i);
    base_type = row->check == SCATTERED ? MPI_INT64_T : MPI_DOUBLE;
    MPI_Type_create_indexed_block(rows, 1, displacements, base_type, &target_type);
    free(displacements);
  }
  MPI_Type_commit(&target_type);
}

static void check(const struct row *row) {
  int64_t expected = operations;
  MPI_Bcast(&expected, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
  if (row->check == READ && rank == 0) {
    for (int i = 0; i < size; i++)
      if (origin[i] != pattern(i)) fail("get brought something else than the window holds");
  }
  if (rank != TARGET) return;
  if (row->check == WRITTEN) {
    for (long i = 0; i < (long)places * size; i++)
      if (window[place(row, i)] != pattern((int)(i % size))) fail("put did not arrive");
  }
  if (row->check == COUNTED && *(int64_t *)window != expected) fail("the sum is wrong");
  if (row->check == COUNTED_DOUBLE && *(double *)window != (double)expected) fail("the sum is wrong");
  if (row->check == COUNTED_DOUBLES) {
    for (int i = 0; i < size / 8; i++) if (((double *)window)[i] != (double)expected) fail("a sum is wrong");
  }
  if (row->check == CONTENDED) {
    for (int r = 0; r < ranks; r++) if (*(int64_t *)(window + 64 * r) != expected) fail("a sum is wrong");
  }
  if (row->check == SCATTERED) {
    for (int i = 0; i < rows; i++) if (((int64_t *)window)[scattered(i)] != expected) fail("a sum is wrong");
  }
  if (row->check == SCATTERED_DOUBLES) {
    for (int i = 0; i < rows; i++) if (((double *)window)[scattered(i)] != (double)expected) fail("a sum is wrong");
  }
  if (row->check == SWAPPED && *(int64_t *)window != 1) fail("the swap did not happen");
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc < 3) fail("usage: rma ROW SAMPLES [MILLISECONDS]");
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char *slash = strchr(argv[1], '/');
  if (slash == NULL) fail("a row is NAME/SIZE, for instance put-flush/8");
  rows = atoi(slash + 1);
  const char *times = strchr(slash, 'x');
  columns = times ? atoi(times + 1) : 1;
  const struct row *row = NULL;
  for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
    size_t length = strlen(ROWS[i].name);
    if (length == (size_t)(slash - argv[1]) && memcmp(ROWS[i].name, argv[1], length) == 0) row = &ROWS[i];
  }
  if (row == NULL || rows < 1 || columns < 1) fail("no such row");
  size = rows * columns * (row->layout == SUBARRAY || row->layout == INDEXED ? 8 : 1);
  places = row->depth;
  while (places > 1 && (long)places * size > REACH) places /= 2;
  int samples = atoi(argv[2]);
  double block = (argc > 3 ? atof(argv[3]) : 20) / 1e3;
  double *seconds = calloc(samples, sizeof *seconds);
  long iterations = 0;

  if (row->epoch != NO_WINDOW) {
    long bytes = window_bytes(row);
    long least = bytes < PAGE ? PAGE : bytes;
    if (row->own_memory) {
      window = malloc(least);
      MPI_Win_create(window, least, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    } else MPI_Win_allocate(least, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    if (posix_memalign((void **)&origin, PAGE, size) || posix_memalign((void **)&fetched, PAGE, size))
      fail("out of memory");
    memset(window, 0, least);
    if (row->layout != PLAIN) make_type(row);
    for (int i = 0; i < size; i++) origin[i] = row->check == READ ? 0 : pattern(i);
    if (row->check == READ) {
      for (long i = 0; i < (long)size * places; i++) window[place(row, i)] = pattern((int)(i % size));
    }
    for (int i = 0; row->check == COUNTED_DOUBLES && i < size / 8; i++) ((double *)origin)[i] = 1.0;
    for (int i = 0; row->check == SCATTERED_DOUBLES && i < rows; i++) ((double *)origin)[i] = 1.0;
    for (int i = 0; row->check == SCATTERED && i < rows; i++) ((int64_t *)origin)[i] = 1;
    if (row->epoch == NEIGHBOURS) {
      MPI_Group all;
      MPI_Win_get_group(win, &all);
      MPI_Group_incl(all, 1, &(int){1 - rank}, &other);
      MPI_Group_free(&all);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (row->epoch == PASSIVE || row->epoch == ALL_PASSIVE) MPI_Win_lock_all(0, win);
  measure(row, samples, block, seconds, &iterations);
  if (row->epoch == PASSIVE || row->epoch == ALL_PASSIVE) MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (row->epoch != NO_WINDOW) {
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win); /* so that this rank's loads see what was put */
    check(row);
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
    if (row->layout != PLAIN) MPI_Type_free(&target_type);
  }

  if (rank == 0) {
    int bandwidth = row->depth > 1;
    printf("{\"row\":\"%s\",\"library\":\"%s\",\"unit\":\"%s\",\"iterations\":%ld,\"samples\":[", argv[1],
           library_name(), bandwidth ? "MB/s" : "ns", iterations);
    for (int s = 0; s < samples; s++) {
      double value = bandwidth ? (double)size * row->depth / seconds[s] / 1e6 : seconds[s] * 1e9;
      printf("%s%.2f", s ? "," : "", value);
    }
    printf("]}\n");
  }
  MPI_Finalize();
  return 0;
}
