/*
 * NAS CG in C on MPI: bench/nas/cg/ with the same blocks, exchanges and arithmetic, in the styles of nas.h.
 *
 *   mpiexec -n 2 cg S|W|A|B messages|blocking SAMPLES
 *
 * prints one line of JSON from rank 0: { "row", "library", "unit", "samples": [milliseconds, ...], "value": zeta }. A
 * sample is all iterations, of the rank for which they were longest; a step comes before them as the warm-up. NAS'
 * check of zeta has to pass. Compiled with -O3 and nothing else.
 */
#include <math.h>

#include "nas.h"

enum { INNER = 25, STEPS = 16, NONZEROS = 14 };
typedef struct { int begin, end; } range;

static const struct { int n, nonzeros, iterations; double shift, zeta; } CLASSES[] = {
  {1400, 7, 15, 10, 8.5971775078648},
  {7000, 8, 15, 12, 10.362595087124},
  {14000, 11, 15, 20, 17.130235054029},
  {75000, 13, 75, 60, 22.712745482631},
};

static int grid_rows, grid_columns, row, column, diagonal_rank, steps, width;
static range rows, columns, kept, given; /* `given` is empty where partners keep all */
static Link *butterfly[STEPS], *diagonal;
static int *starts, *places; /* of the matrix by rows */
static double *values, *sums, *x, *z, *p, *q, *r;

/* --- the matrix: see bench/nas/cg/matrix.ts --- */

static uint64_t state;
static double next(void) {
  state = times(state, MULTIPLIER);
  return fraction(state);
}

/* The next of the sparse vectors. Returns how many places it has. */
static int vector(int own, int n, int nonzeros, int *where, double *what) {
  int bound = 1, count = 0, i;
  while (bound < n) bound *= 2;
  while (count < nonzeros) {
    double value = next();
    int place = (int)(bound * next());
    for (i = 0; i < count && where[i] != place; i++) {
    }
    if (place < n && i == count) where[count] = place, what[count++] = value;
  }
  for (i = 0; i < count && where[i] != own; i++) {
  }
  where[i] = own, what[i] = 0.5;
  return i == count ? count + 1 : count;
}

static int in(range some, int i) { return i >= some.begin && i < some.end; }

static void make_matrix(int n, int nonzeros, double shift) {
  int height = rows.end - rows.begin, where[NONZEROS];
  int *next_of = malloc(sizeof(int) * (height + 1)), *seen = calloc(width, sizeof(int));
  double what[NONZEROS], *added = doubles(width);
  starts = calloc(height + 1, sizeof(int));
  for (int fills = 0; fills < 2; fills++) {
    double ratio = pow(0.1, 1.0 / n), weight = 1;
    state = times(SEED, MULTIPLIER);
    for (int own = 0; own < n; own++, weight *= ratio) {
      int count = vector(own, n, nonzeros, where, what);
      for (int j = 0; j < count; j++) {
        for (int i = 0; in(columns, where[j]) && i < count; i++) {
          if (!in(rows, where[i])) continue;
          int line = where[i] - rows.begin;
          if (!fills) starts[line + 1]++;
          else {
            places[next_of[line]] = where[j] - columns.begin;
            values[next_of[line]++] = weight * what[j] * what[i];
          }
        }
      }
    }
    for (int i = rows.begin; i < rows.end; i++) {
      if (!in(columns, i)) continue;
      int line = i - rows.begin;
      if (fills) places[next_of[line]] = i - columns.begin, values[next_of[line]++] = 0.1 - shift;
      else starts[line + 1]++;
    }
    if (fills) break;
    for (int i = 0; i < height; i++) starts[i + 1] += starts[i];
    memcpy(next_of, starts, sizeof(int) * height);
    places = malloc(sizeof(int) * (starts[height] + 1)), values = doubles(starts[height]);
  }
  /* Elements of one place are added up. */
  int end = 0, first = 0;
  for (int i = 0; i < height; i++) {
    int begin = end, last = starts[i + 1];
    for (int k = first; k < last; k++) {
      int place = places[k];
      if (seen[place] != i + 1) seen[place] = i + 1, added[place] = 0, places[end++] = place;
      added[place] += values[k];
    }
    for (int k = begin; k < end; k++) values[k] = added[places[k]];
    first = last, starts[i + 1] = end;
  }
  free(next_of), free(seen), free(added);
}

static void multiply(const double *restrict from, range some) {
  for (int i = some.begin; i < some.end; i++) {
    double sum = 0;
    for (int k = starts[i]; k < starts[i + 1]; k++) sum += values[k] * from[places[k]];
    sums[i] = sum;
  }
}

/* --- what ranks tell each other: see bench/nas/cg/group.ts --- */

static range part(int n, int parts, int i) {
  return (range){(int)((long)i * n / parts), (int)((long)(i + 1) * n / parts)};
}
static range half(range all, int second) {
  int middle = all.begin + (all.end - all.begin) / 2;
  return second ? (range){middle, all.end} : (range){all.begin, middle};
}

static void make_group(int n) {
  int exponent = 0;
  while (1 << exponent < ranks) exponent++;
  grid_rows = 1 << exponent / 2, grid_columns = ranks / grid_rows;
  row = rank / grid_columns, column = rank % grid_columns;
  rows = part(n, grid_rows, row);
  range local = {0, rows.end - rows.begin};
  if (grid_rows == grid_columns) {
    columns = part(n, grid_columns, column), kept = local;
    diagonal_rank = column * grid_columns + row;
  } else {
    int second = column % 2;
    columns = half(part(n, grid_rows, column / 2), second), kept = half(local, second), given = half(local, !second);
    diagonal_rank = column / 2 * grid_columns + 2 * row + second;
  }
  width = columns.end - columns.begin;
  int capacity = (n + grid_rows - 1) / grid_rows;
  for (int bit = 1; bit < grid_columns; bit *= 2, steps++) {
    int partner = row * grid_columns + (column ^ bit);
    butterfly[steps] = link_make(partner, partner, capacity);
  }
  diagonal = link_make(diagonal_rank, diagonal_rank, capacity);
}

static void send(Link *link, const double *from, range some) {
  memcpy(link_room(link), from + some.begin, sizeof(double) * (some.end - some.begin));
  link_post(link, some.end - some.begin);
}
static void add(Link *link, double *to, range some) {
  const double *message = link_take(link);
  for (int i = some.begin; i < some.end; i++) to[i] += message[i - some.begin];
}

/* to <- A from */
static void product(const double *from, double *to) {
  multiply(from, kept);
  if (given.end > given.begin) multiply(from, given);
  for (int s = 0; s < steps; s++) {
    send(butterfly[s], sums, s == 0 && given.end > given.begin ? given : kept);
    add(butterfly[s], sums, kept);
    link_settle(butterfly[s]);
  }
  if (diagonal_rank == rank) {
    memcpy(to, sums + kept.begin, sizeof(double) * width);
    return;
  }
  send(diagonal, sums, kept);
  memcpy(to, link_take(diagonal), sizeof(double) * width);
  link_settle(diagonal);
}

/* Adds up some numbers of each rank of a row of the grid. */
static void sum_up(double *numbers, int count) {
  for (int s = 0; s < steps; s++) {
    send(butterfly[s], numbers, (range){0, count});
    add(butterfly[s], numbers, (range){0, count});
  }
}

/* --- conjugate gradients: see bench/nas/cg/cg.ts --- */

static double dot(const double *a, const double *b) {
  double sum = 0;
  for (int i = 0; i < width; i++) sum += a[i] * b[i];
  return sum;
}
static double dot_of_all(const double *a, const double *b) {
  double sum = dot(a, b);
  sum_up(&sum, 1);
  return sum;
}

/* A step of inverse iteration. Returns x . A^-1 x. */
static double step(void) {
  size_t bytes = sizeof(double) * width;
  memset(z, 0, bytes), memcpy(r, x, bytes), memcpy(p, x, bytes);
  double rho = dot_of_all(r, r);
  for (int i = 0; i < INNER; i++) {
    product(p, q);
    double alpha = rho / dot_of_all(p, q), before = rho;
    for (int j = 0; j < width; j++) z[j] += alpha * p[j];
    for (int j = 0; j < width; j++) r[j] -= alpha * q[j];
    rho = dot_of_all(r, r);
    for (int j = 0; j < width; j++) p[j] = r[j] + rho / before * p[j];
  }
  product(z, q);
  for (int j = 0; j < width; j++) q[j] = x[j] - q[j];
  dot_of_all(q, q); /* how far off it is, which NPB computes and prints */
  double both[2] = {dot(x, z), dot(z, z)};
  sum_up(both, 2);
  for (int j = 0; j < width; j++) x[j] = z[j] / sqrt(both[1]);
  return both[0];
}

int main(int argc, char **argv) {
  int class = begin(argc, argv);
  int n = CLASSES[class].n;
  make_group(n);
  make_matrix(n, CLASSES[class].nonzeros, CLASSES[class].shift);
  sums = doubles(rows.end - rows.begin);
  x = doubles(width), z = doubles(width), p = doubles(width), q = doubles(width), r = doubles(width);
  double milliseconds[samples], zeta = NAN;
  for (int s = -1; s < samples; s++) {
    for (int j = 0; j < width; j++) x[j] = 1;
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    for (int i = 0; i < (s < 0 ? 1 : CLASSES[class].iterations); i++) zeta = CLASSES[class].shift + 1 / step();
    double took = 1e3 * (MPI_Wtime() - began), slowest;
    MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (s >= 0) milliseconds[s] = slowest;
  }
  report("cg", milliseconds, zeta, CLASSES[class].zeta, 1e-10);
  for (int s = 0; s < steps; s++) link_free(butterfly[s]);
  link_free(diagonal);
  MPI_Finalize();
  return 0;
}
