/*
 * NAS MG in C on MPI: bench/nas/mg/ with the same grids, exchanges and arithmetic, in the styles of nas.h.
 *
 *   mpiexec -n 2 mg S|W|A|B messages|blocking SAMPLES
 *
 * prints one line of JSON from rank 0: { "row", "library", "unit", "samples": [milliseconds, ...], "value": norm }. A
 * sample is the first residual and all iterations, of the rank for which they were longest; a cycle comes before them
 * as the warm-up. NAS' check of the norm has to pass.
 *
 * On up to 8 ranks: then every rank has points on every level, and what bench/nas/mg/exchange.ts does for ranks without
 * is left out. Compiled with -O3 and nothing else.
 */
#include <math.h>

#include "nas.h"

enum { LEVELS = 8, CHARGES = 10 };
typedef struct { int n, points[3], lengths[3]; double *u, *r; } Grid;

static const struct { int n, iterations, large; double norm; } CLASSES[] = {
  {32, 4, 0, 0.5307707005734e-4},
  {128, 4, 0, 0.6467329375339e-5},
  {256, 4, 0, 0.2433365309069e-5},
  {256, 20, 1, 0.1800564401355e-5},
};
static const double MINUS_A[4] = {8. / 3, 0, -1. / 6, -1. / 12}, RESTRICTION[4] = {1. / 2, 1. / 4, 1. / 8, 1. / 16};
static const double SMOOTHERS[2][4] = {{-3. / 8, 1. / 32, -1. / 64, 0}, {-3. / 17, 1. / 33, -1. / 61, 0}};

static int across[3], at[3], levels;
static Grid grids[LEVELS];
static Link *links[3][2];
static const double *smoother;
static double *v, *beside, *edges;

static long size_of(const int *lengths) { return (long)lengths[0] * lengths[1] * lengths[2]; }

/* to(j) = base(j) + sum of weights times from(step j + neighbour); base may be `to`, or NULL for 0. */
static inline __attribute__((always_inline)) void stencil(const Grid *g, double *to, const double *base,
                                                          const int *lengths, const double *restrict from,
                                                          const double *weights, int step) {
  const double centre = weights[0], faces = weights[1], edge = weights[2], corners = weights[3];
  double *restrict f = beside, *restrict e = edges;
  const long row = lengths[0], plane = row * lengths[1];
  for (int z = 1; z <= g->points[2]; z++) {
    for (int y = 1; y <= g->points[1]; y++) {
      const double *d = from + plane * step * z + row * step * y;
      for (int x = step - 1; x <= step * g->points[0] + 1; x++) {
        f[x] = d[x - row] + d[x + row] + d[x - plane] + d[x + plane];
        e[x] = d[x - plane - row] + d[x - plane + row] + d[x + plane - row] + d[x + plane + row];
      }
      const long out = g->lengths[0] * (y + (long)g->lengths[1] * z);
      for (int j = 1; j <= g->points[0]; j++) {
        const int x = step * j;
        to[out + j] = (base == NULL ? 0 : base[out + j]) + centre * d[x] + faces * (d[x - 1] + d[x + 1] + f[x]) +
                      edge * (f[x - 1] + f[x + 1] + e[x]) + corners * (e[x - 1] + e[x + 1]);
      }
    }
  }
}

/* Adds to all of a fine block what the coarse one has there. */
static void interpolate(Grid *fine, const Grid *coarse) {
  const int *l = fine->lengths, *c = coarse->lengths;
  double *total = beside;
  for (int z = 0; z < l[2]; z++) {
    for (int y = 0; y < l[1]; y++) {
      const long a = y >> 1, b = (y + 1) >> 1, front = (long)c[1] * (z >> 1), back = (long)c[1] * ((z + 1) >> 1);
      const double *p = coarse->u + c[0] * (a + front), *q = coarse->u + c[0] * (b + front);
      const double *r = coarse->u + c[0] * (a + back), *s = coarse->u + c[0] * (b + back);
      for (int x = 0; x < c[0]; x++) total[x] = p[x] + q[x] + r[x] + s[x];
      double *out = fine->u + l[0] * (y + (long)l[1] * z);
      for (int x = 0; x < l[0]; x++) out[x] += (total[x >> 1] + total[(x + 1) >> 1]) / 8;
    }
  }
}

/* Copies one layer across an axis, with the ghosts of the axes before: out of a block, or into it. */
static int copy_layer(const Grid *g, double *block, int axis, int layer, double *message, int packs) {
  int low[3], high[3], count = 0;
  for (int a = 0; a < 3; a++) low[a] = a < axis ? 0 : 1, high[a] = a < axis ? g->lengths[a] - 1 : g->points[a];
  low[axis] = high[axis] = layer;
  const int length = high[0] - low[0] + 1;
  for (int z = low[2]; z <= high[2]; z++) {
    for (int y = low[1]; y <= high[1]; y++, count += length) {
      double *points = block + g->lengths[0] * (y + (long)g->lengths[1] * z) + low[0];
      if (packs) for (int x = 0; x < length; x++) message[count + x] = points[x];
      else for (int x = 0; x < length; x++) points[x] = message[count + x];
    }
  }
  return count;
}

/* Brings the ghosts of a block, axis after axis. */
static void exchange(const Grid *g, double *block) {
  static double *scratch;
  if (scratch == NULL) scratch = doubles(size_of(grids[levels - 1].lengths));
  for (int axis = 0; axis < 3; axis++) {
    /* What goes to the side of higher indices, and where it arrives; then the other side. */
    const int sent[2] = {g->points[axis], 1}, received[2] = {0, g->points[axis] + 1};
    if (across[axis] == 1) {
      for (int s = 0; s < 2; s++) {
        copy_layer(g, block, axis, sent[s], scratch, 1);
        copy_layer(g, block, axis, received[s], scratch, 0);
      }
      continue;
    }
    Link **pair = links[axis];
    for (int s = 0; s < 2; s++) link_post(pair[s], copy_layer(g, block, axis, sent[s], link_room(pair[s]), 1));
    for (int s = 0; s < 2; s++) copy_layer(g, block, axis, received[s], link_take(pair[s]), 0);
    for (int s = 0; s < 2; s++) link_settle(pair[s]);
  }
}

static void residual(Grid *g, const double *base) {
  stencil(g, g->r, base, g->lengths, g->u, MINUS_A, 1);
  exchange(g, g->r);
}
static void smooth(Grid *g) {
  stencil(g, g->u, g->u, g->lengths, g->r, smoother, 1);
  exchange(g, g->u);
}

static void start(void) {
  Grid *finest = &grids[levels - 1];
  memset(finest->u, 0, sizeof(double) * size_of(finest->lengths));
  residual(finest, v);
}

static void cycle(void) {
  for (int k = levels - 1; k > 0; k--) {
    stencil(&grids[k - 1], grids[k - 1].r, NULL, grids[k].lengths, grids[k].r, RESTRICTION, 2);
    exchange(&grids[k - 1], grids[k - 1].r);
  }
  for (int k = 0; k < levels; k++) {
    Grid *g = &grids[k];
    if (k < levels - 1) memset(g->u, 0, sizeof(double) * size_of(g->lengths));
    if (k > 0) {
      interpolate(g, g - 1);
      residual(g, k < levels - 1 ? g->r : v);
    }
    smooth(g);
  }
}

static int falling(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

/* The right-hand side: the ten largest of the random numbers become 1, the ten smallest -1. */
static void place_charges(void) {
  const Grid *g = &grids[levels - 1];
  double values[2][CHARGES], *all = doubles(CHARGES * ranks);
  long places[2][CHARGES];
  for (int i = 0; i < CHARGES; i++) values[0][i] = values[1][i] = -2;
  for (int z = 0; z < g->points[2]; z++) {
    for (int y = 0; y < g->points[1]; y++) {
      uint64_t above = at[1] * g->points[1] + y + (uint64_t)g->n * (at[2] * g->points[2] + z);
      uint64_t before = at[0] * g->points[0] + g->n * above;
      uint64_t state = SEED, square = MULTIPLIER;
      for (; before > 0; before >>= 1, square = times(square, square)) if (before & 1) state = times(state, square);
      for (int x = 0; x < g->points[0]; x++) {
        state = times(state, MULTIPLIER);
        for (int kind = 0; kind < 2; kind++) {
          double value = kind == 0 ? fraction(state) : -fraction(state);
          if (value <= values[kind][CHARGES - 1]) continue;
          int i = CHARGES - 1;
          for (; i > 0 && values[kind][i - 1] < value; i--) {
            values[kind][i] = values[kind][i - 1];
            places[kind][i] = places[kind][i - 1];
          }
          values[kind][i] = value;
          places[kind][i] = x + 1 + g->lengths[0] * (y + 1 + (long)g->lengths[1] * (z + 1));
        }
      }
    }
  }
  for (int kind = 0; kind < 2; kind++) {
    MPI_Allgather(values[kind], CHARGES, MPI_DOUBLE, all, CHARGES, MPI_DOUBLE, MPI_COMM_WORLD);
    qsort(all, CHARGES * ranks, sizeof *all, falling);
    for (int i = 0; i < CHARGES; i++) if (values[kind][i] >= all[CHARGES - 1]) v[places[kind][i]] = kind == 0 ? 1 : -1;
  }
  free(all);
}

static double norm(void) {
  const Grid *g = &grids[levels - 1];
  double mine = 0, sum;
  for (int z = 1; z <= g->points[2]; z++) {
    for (int y = 1; y <= g->points[1]; y++) {
      const double *row = g->r + g->lengths[0] * (y + (long)g->lengths[1] * z);
      for (int x = 1; x <= g->points[0]; x++) mine += row[x] * row[x];
    }
  }
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sqrt(sum / g->n / g->n / g->n);
}

static void make_grids(int n) {
  int exponent = 0, stride = 1;
  while (1 << exponent < ranks) exponent++;
  for (int axis = 0; axis < 3; axis++) {
    across[axis] = 1 << (exponent + axis) / 3;
    at[axis] = rank / stride % across[axis];
    stride *= across[axis];
  }
  for (int points = 2; points <= n; points *= 2) {
    Grid *g = &grids[levels++];
    g->n = points;
    for (int axis = 0; axis < 3; axis++) {
      g->points[axis] = points / across[axis];
      g->lengths[axis] = g->points[axis] + 2;
    }
    g->u = doubles(size_of(g->lengths)), g->r = doubles(size_of(g->lengths));
  }
  const int *l = grids[levels - 1].lengths;
  v = doubles(size_of(l)), beside = doubles(l[0]), edges = doubles(l[0]);
  for (int axis = 0, step = 1; axis < 3; step *= across[axis++]) {
    if (across[axis] == 1) continue;
    int next = rank + ((at[axis] + 1) % across[axis] - at[axis]) * step;
    int previous = rank + ((at[axis] + across[axis] - 1) % across[axis] - at[axis]) * step;
    int capacity = size_of(l) / l[axis];
    links[axis][0] = link_make(next, previous, capacity);
    links[axis][1] = link_make(previous, next, capacity);
  }
}

int main(int argc, char **argv) {
  int class = begin(argc, argv);
  if (ranks > 8) {
    fprintf(stderr, "mg: not on more than 8 ranks\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  make_grids(CLASSES[class].n);
  smoother = SMOOTHERS[CLASSES[class].large];
  place_charges();
  start();
  cycle();
  double milliseconds[samples];
  for (int s = 0; s < samples; s++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    start();
    for (int i = 0; i < CLASSES[class].iterations; i++) {
      cycle();
      residual(&grids[levels - 1], v);
    }
    double took = 1e3 * (MPI_Wtime() - began);
    MPI_Allreduce(&took, &milliseconds[s], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }
  report("mg", milliseconds, norm(), CLASSES[class].norm, 1e-8);
  for (int axis = 0; axis < 3; axis++) {
    for (int s = 0; s < 2; s++) if (links[axis][s] != NULL) link_free(links[axis][s]);
  }
  MPI_Finalize();
  return 0;
}
