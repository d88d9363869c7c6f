/*
 * What lu.c and summa.c share: the grid of ranks, and the kernel, which subtracts the product of two strips of tiles
 * from a tile of 4 x 4 (bench/splash/kernel.ts). A tile is kept in eight vectors of two doubles, which is what both
 * processors' baseline (SSE2) and WebAssembly have.
 */
#include <math.h>

#include "doubles.h"

enum { TILE = 4 };
typedef double pair __attribute__((vector_size(16)));

/* Of a grid as square as the number of ranks allows: never more rows than columns. */
static int rows_of_grid(int ranks) {
  int rows = (int)sqrt(ranks);
  while (ranks % rows != 0) rows--;
  return rows;
}

static inline void reduce(double *restrict c, const double *restrict a, const double *restrict b, int k) {
  pair tile[8];
  memcpy(tile, c, sizeof tile);
  for (int p = 0; p < k; p++, a += TILE, b += TILE) {
    pair upper = *(const pair *)a, lower = *(const pair *)(a + 2);
    for (int j = 0; j < TILE; j++) {
      pair factor = {b[j], b[j]};
      tile[2 * j] -= upper * factor;
      tile[2 * j + 1] -= lower * factor;
    }
  }
  memcpy(c, tile, sizeof tile);
}

static void update(double *c, const double *a, const double *b, int m, int n, int k) {
  for (int t = 0; t < n; t += TILE) {
    for (int s = 0; s < m; s += TILE) reduce(c + (long)s * n + TILE * t, a + (long)s * k, b + (long)t * k, k);
  }
}
