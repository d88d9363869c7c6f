/*
 * bench/summa/summa.ts in C on MPI: C = A B on a grid of ranks, with the same grid, blocks, panels, gets and kernel.
 *
 *   mpiexec -n 2 summa N PANEL product|gets SAMPLES
 *
 * prints one line of JSON from rank 0: { "row", "library", "unit", "samples": [milliseconds, ...] }. A sample is one
 * product of N x N matrices from barrier to barrier, of the rank for which it was longest, or what rank 0 has spent in
 * its gets and in waiting for them; one more comes before them as the warm-up.
 *
 * The rules, the same on both sides:
 * - a rank's block is stored by rows; of A it gets columns, whose target type is MPI_Type_create_subarray, of B rows,
 *   which are consecutive; the gets of the next panel are started before the current one is multiplied, and flushed
 *   after it: the request of MPICH 4.0.2's MPI_Rget with such a type is complete before its data are there;
 * - the kernel is that of lu.c (tiles.h), on panels that are brought into tiles first; -O3 and nothing else;
 * - elements are small whole numbers, so nothing is rounded: all of C is compared with the direct product.
 */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"
#include "tiles.h"

enum { ROWS = 64 };
typedef struct { int begin, count; } range;

static int n, rank, ranks, grid_rows, grid_columns, row, column;
static range down, across; /* this rank's rows and columns of C */
static MPI_Win win_a, win_b;
static double *block_a, *block_b, *c, *tiles_a, *tiles_b;
/* What is got of a panel: two, by turns. */
static struct { double *a, *b; int width; } fetched[2];

static range part(int parts, int i) {
  int begin = (int)((long)i * n / parts);
  return (range){begin, (int)((long)(i + 1) * n / parts) - begin};
}
static int part_of(int parts, int at) {
  int i = 0;
  while (part(parts, i + 1).begin <= at) i++;
  return i;
}
static int whole(int length) { return (length + TILE - 1) / TILE * TILE; }

static double element_of(int which, int i, int j) {
  uint32_t mixed = ((uint32_t)i * 31 + which) * 0x9e3779b1u ^ ((uint32_t)j + 7) * 0x85ebca6bu;
  return (double)(((mixed ^ mixed >> 15) * 0x27d4eb2fu >> 20) % 15) - 7;
}
static void fill(double *block, int which, range i, range j) {
  for (int y = 0; y < i.count; y++) {
    for (int x = 0; x < j.count; x++) block[(long)y * j.count + x] = element_of(which, i.begin + y, j.begin + x);
  }
}

/* --- the arithmetic: see bench/summa/arithmetic.ts --- */

static void add(const double *a, const double *b, int depth) {
  int m = whole(down.count), n = whole(across.count);
  for (int i = 0; i < down.count; i++) {
    double *to = tiles_a + (long)(i - i % TILE) * depth + i % TILE;
    for (int l = 0; l < depth; l++) to[TILE * l] = -a[(long)i * depth + l];
  }
  for (int l = 0; l < depth; l++) {
    for (int j = 0; j < across.count; j++) {
      tiles_b[(long)(j - j % TILE) * depth + TILE * l + j % TILE] = b[(long)l * across.count + j];
    }
  }
  for (int i = 0; i < m; i += ROWS) {
    update(c + (long)i * n, tiles_a + (long)i * depth, tiles_b, m - i < ROWS ? m - i : ROWS, n, depth);
  }
}

/* --- SUMMA --- */

/* Starts the gets of the panel that begins at `begin`. */
static void fetch(int turn, int begin, int panel) {
  int grid_column = part_of(grid_columns, begin), grid_row = part_of(grid_rows, begin);
  range columns = part(grid_columns, grid_column), rows = part(grid_rows, grid_row);
  int end = begin + panel;
  if (end > columns.begin + columns.count) end = columns.begin + columns.count;
  if (end > rows.begin + rows.count) end = rows.begin + rows.count;
  int width = fetched[turn].width = end - begin;
  int sizes[2] = {down.count, columns.count}, some[2] = {down.count, width}, first[2] = {0, begin - columns.begin};
  MPI_Datatype type;
  MPI_Type_create_subarray(2, sizes, some, first, MPI_ORDER_C, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  MPI_Get(fetched[turn].a, down.count * width, MPI_DOUBLE, row * grid_columns + grid_column, 0, 1, type, win_a);
  MPI_Type_free(&type);
  MPI_Aint at = (MPI_Aint)(begin - rows.begin) * across.count;
  int count = width * across.count, owner = grid_row * grid_columns + column;
  MPI_Get(fetched[turn].b, count, MPI_DOUBLE, owner, at, count, MPI_DOUBLE, win_b);
}

/* One product. Returns the milliseconds that its gets have taken of this rank. */
static double product(int panel) {
  double spent = 0;
  memset(c, 0, sizeof(double) * whole(down.count) * whole(across.count));
  MPI_Win_lock_all(0, win_a);
  MPI_Win_lock_all(0, win_b);
  double start = MPI_Wtime();
  fetch(0, 0, panel);
  spent += MPI_Wtime() - start;
  for (int begin = 0, turn = 0; begin < n; turn = 1 - turn) {
    start = MPI_Wtime();
    MPI_Win_flush_all(win_a);
    MPI_Win_flush_all(win_b);
    int width = fetched[turn].width;
    begin += width;
    if (begin < n) fetch(1 - turn, begin, panel);
    spent += MPI_Wtime() - start;
    add(fetched[turn].a, fetched[turn].b, width);
  }
  MPI_Win_unlock_all(win_a);
  MPI_Win_unlock_all(win_b);
  return 1e3 * spent;
}

/* Elements of this rank's block that are not those of the direct product. */
static long errors(void) {
  long wrong = 0;
  double *b = malloc(sizeof(double) * n * across.count), *sums = malloc(sizeof(double) * across.count);
  fill(b, 2, (range){0, n}, across);
  for (int i = 0; i < down.count; i++) {
    memset(sums, 0, sizeof(double) * across.count);
    for (int l = 0; l < n; l++) {
      double factor = element_of(1, down.begin + i, l);
      for (int j = 0; j < across.count; j++) sums[j] += factor * b[(long)l * across.count + j];
    }
    const double *line = c + (long)(i - i % TILE) * whole(across.count) + i % TILE;
    for (int j = 0; j < across.count; j++) wrong += sums[j] != line[TILE * j];
  }
  free(b), free(sums);
  return wrong;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  n = argc > 1 ? atoi(argv[1]) : 0;
  int panel = argc > 2 ? atoi(argv[2]) : 0, samples = argc > 4 ? atoi(argv[4]) : 0;
  if (n < ranks || panel < 1 || samples < 1) {
    fprintf(stderr, "usage: mpiexec -n RANKS summa N PANEL product|gets SAMPLES, N not being below RANKS\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  int gets = strcmp(argv[3], "gets") == 0;
  grid_rows = rows_of_grid(ranks);
  grid_columns = ranks / grid_rows;
  row = rank / grid_columns, column = rank % grid_columns;
  down = part(grid_rows, row), across = part(grid_columns, column);
  long size = (long)down.count * across.count, m = whole(down.count), w = whole(across.count);
  MPI_Aint bytes = (sizeof(double) * size + PAGE - 1) / PAGE * PAGE; /* MPICH 4.0.2 gets wrong numbers otherwise */
  MPI_Win_allocate(bytes, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &block_a, &win_a);
  MPI_Win_allocate(bytes, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &block_b, &win_b);
  fill(block_a, 1, down, across);
  fill(block_b, 2, down, across);
  c = doubles(m * w), tiles_a = doubles(m * panel), tiles_b = doubles(w * panel);
  for (int i = 0; i < 2; i++) {
    fetched[i].a = doubles((long)down.count * panel);
    fetched[i].b = doubles((long)panel * across.count);
  }

  double milliseconds[samples];
  for (int s = -1; s < samples; s++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime(), spent = product(panel), took = 1e3 * (MPI_Wtime() - start), slowest;
    MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (s >= 0) milliseconds[s] = gets ? spent : slowest;
  }
  long mine = errors(), wrong;
  MPI_Allreduce(&mine, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    if (wrong != 0) {
      fprintf(stderr, "summa: error: %ld elements are not those of the direct product\n", wrong);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    printf("{\"row\":\"summa/%d\",\"library\":\"%s\",\"unit\":\"ms\",\"samples\":[", n, library_name());
    for (int s = 0; s < samples; s++) printf("%s%.4f", s ? "," : "", milliseconds[s]);
    printf("]}\n");
  }
  MPI_Win_free(&win_a);
  MPI_Win_free(&win_b);
  MPI_Finalize();
  return 0;
}
