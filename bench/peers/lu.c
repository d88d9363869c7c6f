/*
 * bench/splash/lu.ts in C on MPI: the same decomposition, the same steps, the same layout of blocks, and the same
 * arithmetic in the same order, so that the factors are the same, bit by bit.
 *
 *   mpiexec -n 2 lu N BLOCK SAMPLES
 *
 * prints one line of JSON from rank 0: { "row", "library", "unit", "samples": [milliseconds, ...], "residual", "digest"
 * }. A sample is one factorization of the same matrix, from barrier to barrier; one more comes before them as the
 * warm-up.
 *
 * The rules, the same on both sides:
 * - the kernel (tiles.h) is compiled with -O3 and nothing else, as a distribution would;
 * - blocks are fetched one by one with MPI_Win_lock (exclusive), MPI_Get, MPI_Win_unlock;
 * - here blocks are computed where they lie in the window, from MPI_Win_allocate; ours are computed in memory of their
 *   own and copied there when they are finished;
 * - the residual (bench/splash/residual.ts, with one vector) is checked at the end.
 */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"
#include "tiles.h"

static int n, block, padded, blocks, rank, ranks, grid_rows, grid_columns;
static long size; /* of a whole block, in elements */
static uint32_t seed = 1;

/* --- the kernel, which tiles.h has the innermost loops of: see bench/splash/kernel.ts --- */

static void solve(double *x, const double *triangle, const double *inverses, int m, int k, int first, int end) {
  for (int s = 0; s < m; s += TILE) {
    double *strip = x + (long)s * k;
    for (int t = first; t < end; t += TILE) {
      double *tile = strip + TILE * t;
      const double *row = triangle + (long)t * k + TILE * t;
      reduce(tile, strip, triangle + (long)t * k, t);
      for (int j = 0; j < TILE; j++) {
        for (int p = 0; p < j; p++) {
          for (int i = 0; i < TILE; i++) tile[TILE * j + i] -= tile[TILE * p + i] * row[TILE * p + j];
        }
        for (int i = 0; i < TILE; i++) tile[TILE * j + i] *= inverses[t + j];
      }
    }
  }
}

static void turn(double *restrict to, const double *restrict from, int m, int n) {
  for (int s = 0; s < m; s += TILE) {
    for (int t = 0; t < n; t += TILE) {
      double *target = to + (long)t * m + TILE * s;
      const double *source = from + (long)s * n + TILE * t;
      for (int i = 0; i < TILE; i++) {
        for (int j = 0; j < TILE; j++) target[TILE * i + j] = source[TILE * j + i];
      }
    }
  }
}

static void factor_tile(double *tile, double *inverses) {
  for (int p = 0; p < TILE; p++) {
    inverses[p] = 1 / tile[TILE * p + p];
    for (int i = p + 1; i < TILE; i++) tile[TILE * p + i] *= inverses[p];
    for (int j = p + 1; j < TILE; j++) {
      for (int i = p + 1; i < TILE; i++) tile[TILE * j + i] -= tile[TILE * p + i] * tile[TILE * j + p];
    }
  }
}

static void factor(double *d, double *e, double *inverses, const double *ones, int k) {
  turn(e, d, k, k);
  for (int t = 0; t < k; t += TILE) {
    double *left = d + (long)t * k, *above = e + (long)t * k, *tile = left + TILE * t;
    update(tile, left, above, TILE, TILE, t);
    factor_tile(tile, inverses + t);
    turn(above + TILE * t, tile, TILE, TILE);
    int below = k - t - TILE;
    if (below == 0) break;
    solve(left + TILE * (long)k, e, inverses, below, k, t, t + TILE);
    solve(above + TILE * (long)k, d, ones, below, k, t, t + TILE);
  }
  for (int s = 0; s < k; s += TILE) {
    for (int t = s + TILE; t < k; t += TILE) {
      turn(d + (long)s * k + TILE * t, e + (long)t * k + TILE * s, TILE, TILE);
      turn(e + (long)s * k + TILE * t, d + (long)t * k + TILE * s, TILE, TILE);
    }
  }
}

/* --- the matrix and its blocks: see matrix.ts, tiles.ts, grid.ts --- */

static uint32_t scramble(uint32_t bits) {
  bits = (bits ^ (bits >> 16)) * 0x85ebca6bu;
  bits = (bits ^ (bits >> 13)) * 0xc2b2ae35u;
  return bits ^ (bits >> 16);
}

static double element_of(uint32_t s, int rows, uint32_t i, uint32_t j) {
  if ((int)i >= rows || (int)j >= rows) return i == j ? 1 : 0;
  double random = (int32_t)scramble(scramble(s + i * 0x9e3779b1u) + j * 0x7feb352du) / 2147483648.0;
  return i == j ? random + rows : random;
}

static long by_rows(int i, int j, int columns) { return (long)(i - i % TILE) * columns + TILE * j + i % TILE; }
static long by_columns(int i, int j, int rows) { return by_rows(j, i, rows); }

static int extent(int i) { return padded - i * block < block ? padded - i * block : block; }
static int owner(int i, int j) { return i % grid_rows * grid_columns + j % grid_columns; }
static int count(int first, int step) { return blocks > first ? (blocks - first + step - 1) / step : 0; }
/* The first row, or column, of blocks from k on that this rank has something in. */
static int next_of(int first, int step, int k) {
  return k <= first ? first : first + (k - first + step - 1) / step * step;
}
static int next_row(int k) { return next_of(rank / grid_columns, grid_rows, k); }
static int next_column(int k) { return next_of(rank % grid_columns, grid_columns, k); }
static long place(int i, int j) {
  return ((long)(i / grid_rows) * count(owner(i, j) % grid_columns, grid_columns) + j / grid_columns) * size;
}

/* --- the factorization: see lu.ts --- */

static MPI_Win win;
static double *window, *spare, *left_places, *above_places, *diagonal, *turned, *inverses, *ones;
static double **left_of;
static MPI_Aint *starts; /* of each rank's blocks in its part of the window, which Open MPI aligns to 8 bytes only */

static double *own(int i, int j) { return window + place(i, j); }

static void fetch(int i, int j, double *to) {
  int count = extent(i) * extent(j), target = owner(i, j);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
  MPI_Get(to, count, MPI_DOUBLE, target, starts[target] + place(i, j), count, MPI_DOUBLE, win);
  MPI_Win_unlock(target, win);
}

/* What this rank has stored into its part of the window is for others to get. */
static void publish(void) {
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
  MPI_Win_unlock(rank, win);
}

static double *have(int i, int j, double *to) {
  if (owner(i, j) == rank) return own(i, j);
  fetch(i, j, to);
  return to;
}

static void solve_perimeter(int k) {
  int in_column = k % grid_columns == rank % grid_columns && next_row(k + 1) < blocks;
  int in_row = k % grid_rows == rank / grid_columns && next_column(k + 1) < blocks;
  if (!in_column && !in_row) return;
  int ext = extent(k);
  double *d = have(k, k, diagonal);
  if (d == diagonal) {
    turn(turned, d, ext, ext);
    for (int i = 0; i < ext; i++) inverses[i] = 1 / d[by_rows(i, i, ext)];
  }
  for (int i = next_row(k + 1); in_column && i < blocks; i += grid_rows)
    solve(own(i, k), turned, inverses, extent(i), ext, 0, ext);
  for (int j = next_column(k + 1); in_row && j < blocks; j += grid_columns) {
    turn(spare, own(k, j), ext, extent(j));
    memcpy(own(k, j), spare, sizeof(double) * ext * extent(j));
    solve(own(k, j), d, ones, extent(j), ext, 0, ext);
  }
  publish();
}

static void update_interior(int k) {
  int first = next_row(k + 1), ext = extent(k);
  if (first >= blocks) return;
  for (int i = first; i < blocks; i += grid_rows) left_of[i] = NULL;
  for (int j = next_column(k + 1); j < blocks; j += grid_columns) {
    double *above = have(k, j, above_places + j / grid_columns * size);
    for (int i = first; i < blocks; i += grid_rows) {
      if (left_of[i] == NULL) left_of[i] = have(i, k, left_places + i / grid_rows * size);
      update(own(i, j), left_of[i], above, extent(i), extent(j), ext);
    }
  }
}

static void lu(void) {
  for (int k = 0; k < blocks; k++) {
    if (owner(k, k) == rank) {
      factor(own(k, k), turned, inverses, ones, extent(k));
      publish();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (k == blocks - 1) break;
    solve_perimeter(k);
    MPI_Barrier(MPI_COMM_WORLD);
    update_interior(k);
  }
}

static void fill(void) {
  for (int i = next_row(0); i < blocks; i += grid_rows) {
    for (int j = next_column(0); j < blocks; j += grid_columns) {
      double *at = own(i, j);
      for (int r = 0; r < extent(i); r++) {
        for (int c = 0; c < extent(j); c++)
          at[by_rows(r, c, extent(j))] = element_of(seed, n, i * block + r, j * block + c);
      }
    }
  }
}

/* --- verification: see residual.ts --- */

static double factor_element(int i, int j) {
  int row = i / block, column = j / block;
  double *at = own(row, column);
  return row >= column ? at[by_rows(i % block, j % block, extent(column))]
                       : at[by_columns(i % block, j % block, extent(row))];
}

static double norm(const double *x) {
  double squares = 0;
  for (int i = 0; i < n; i++) squares += x[i] * x[i];
  return sqrt(squares);
}

enum { LEFT, RIGHT, ORIGINAL };

/* y = L x, U x or A x; of A, the sum of the squares as well. */
static double multiply(int which, const double *x, double *y, double *part) {
  double squares = 0, total;
  memset(part, 0, sizeof(double) * n);
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) {
      if (owner(i / block, j / block) != rank || (which == LEFT && i < j) || (which == RIGHT && i > j)) continue;
      double value = which == ORIGINAL ? element_of(seed, n, i, j) : which == LEFT && i == j ? 1 : factor_element(i, j);
      squares += value * value;
      part[i] += value * x[j];
    }
  }
  MPI_Allreduce(part, y, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(&squares, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return total;
}

static double residual(void) {
  double *x = malloc(sizeof(double) * n), *y = malloc(sizeof(double) * n), *z = malloc(sizeof(double) * n),
         *part = malloc(sizeof(double) * n);
  for (int i = 0; i < n; i++) x[i] = element_of(seed + 1, 0x7fffffff, i, i + 1);
  multiply(RIGHT, x, y, part);
  multiply(LEFT, y, z, part);
  double squares = multiply(ORIGINAL, x, y, part);
  for (int i = 0; i < n; i++) z[i] -= y[i];
  double result = norm(z) / (2.220446049250313e-16 * n * sqrt(squares) * norm(x));
  free(x), free(y), free(z), free(part);
  return result;
}

static uint32_t digest(void) {
  uint32_t mine = 0, all;
  for (int i = next_row(0); i < blocks; i += grid_rows) {
    for (int j = next_column(0); j < blocks; j += grid_columns) {
      for (int r = 0; r < extent(i); r++) {
        for (int c = 0; c < extent(j); c++) {
          uint32_t words[2], row = i * block + r, column = j * block + c;
          memcpy(words, own(i, j) + (i >= j ? by_rows(r, c, extent(j)) : by_columns(r, c, extent(i))), sizeof words);
          mine ^= scramble(scramble(scramble(row * 0x9e3779b1u + column) + words[0]) + words[1]);
        }
      }
    }
  }
  MPI_Allreduce(&mine, &all, 1, MPI_UINT32_T, MPI_BXOR, MPI_COMM_WORLD);
  return all;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  n = argc > 1 ? atoi(argv[1]) : 0;
  block = argc > 2 ? atoi(argv[2]) : 0;
  int samples = argc > 3 ? atoi(argv[3]) : 0;
  if (n < 1 || block < TILE || block % TILE != 0 || samples < 1) {
    fprintf(stderr, "usage: mpiexec -n RANKS lu N BLOCK SAMPLES, BLOCK being a multiple of 4\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  padded = (n + TILE - 1) / TILE * TILE;
  blocks = (n + block - 1) / block;
  size = (long)block * block;
  grid_rows = rows_of_grid(ranks);
  grid_columns = ranks / grid_rows;
  int down = count(rank / grid_columns, grid_rows), across = count(rank % grid_columns, grid_columns);
  MPI_Win_allocate(sizeof(double) * size * down * across + PAGE, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &window,
                   &win);
  MPI_Aint start = (PAGE - (uintptr_t)window % PAGE) % PAGE / sizeof(double);
  starts = malloc(sizeof *starts * ranks);
  MPI_Allgather(&start, 1, MPI_AINT, starts, 1, MPI_AINT, MPI_COMM_WORLD);
  window += start;
  spare = doubles(size), left_places = doubles(size * down), above_places = doubles(size * across);
  diagonal = doubles(size), turned = doubles(size), inverses = doubles(block), ones = doubles(block);
  left_of = calloc(blocks, sizeof *left_of);
  for (int i = 0; i < block; i++) ones[i] = 1;

  double milliseconds[samples];
  for (int s = -1; s < samples; s++) {
    fill();
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    lu();
    MPI_Barrier(MPI_COMM_WORLD);
    if (s >= 0) milliseconds[s] = 1e3 * (MPI_Wtime() - start);
  }
  double relative = residual();
  uint32_t bits = digest();
  if (rank == 0) {
    if (!(relative < 1)) {
      fprintf(stderr, "lu: wrong factors, relative residual %g\n", relative);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    printf("{\"row\":\"lu/%d\",\"library\":\"%s\",\"unit\":\"ms\",\"samples\":[", n, library_name());
    for (int s = 0; s < samples; s++) printf("%s%.4f", s ? "," : "", milliseconds[s]);
    printf("],\"residual\":%g,\"digest\":\"%08x\"}\n", relative, bits);
  }
  MPI_Win_free(&win);
  MPI_Finalize();
  return 0;
}
