/*
 * What mg.c and cg.c share: NAS' random numbers (bench/nas/random.ts), links in two styles (bench/nas/link.ts), and the
 * report. A link is one direction between two ranks, and carries doubles.
 *
 * - messages: a receive is posted before its message comes, as NPB does it; MPI_Isend, and MPI_Wait at the end of the
 *   exchange.
 * - blocking: MPI_Put into one of AHEAD places by turns, MPI_Win_flush, then the number of messages so far, by
 *   MPI_Accumulate with MPI_REPLACE, and a flush again. Whoever waits loads that number; MPI_Iprobe now and then lets
 *   the library work, should it want to.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doubles.h"
#include "library.h"

enum { AHEAD = 6 };
enum { MESSAGES, BLOCKING };

static int rank, ranks, style;

/* --- random numbers: x <- a x modulo 2^46 --- */

static const uint64_t SEED = 314159265, MULTIPLIER = 1220703125, MASK = (1ull << 46) - 1;

static uint64_t times(uint64_t a, uint64_t b) { return (a * b) & MASK; }
static double fraction(uint64_t state) { return state / 70368744177664.0; }

/* --- links --- */

typedef struct {
  int to, from, tag, capacity;
  int64_t posted, taken;
  double *out, *in[2];
  MPI_Request sent, coming;
  MPI_Win win;
  double *window; /* AHEAD places, then the number of messages that have come */
} Link;

static void expect(Link *l) {
  MPI_Irecv(l->in[l->taken & 1], l->capacity, MPI_DOUBLE, l->from, l->tag, MPI_COMM_WORLD, &l->coming);
}

/* Collective, of all ranks in the same order with the same capacity. */
static Link *link_make(int to, int from, int capacity) {
  static int links;
  Link *l = calloc(1, sizeof *l);
  l->to = to, l->from = from, l->capacity = capacity, l->tag = ++links;
  l->out = doubles(capacity), l->sent = MPI_REQUEST_NULL;
  if (style == MESSAGES) {
    for (int i = 0; i < 2; i++) l->in[i] = doubles(capacity);
    expect(l);
  } else {
    MPI_Aint bytes = (sizeof(double) * (AHEAD * (long)capacity + 1) + PAGE - 1) / PAGE * PAGE; /* see summa.c */
    MPI_Win_allocate(bytes, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &l->window, &l->win);
    memset(l->window, 0, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, l->win);
  }
  return l;
}

/* Where the next message is written. */
static double *link_room(Link *l) {
  MPI_Wait(&l->sent, MPI_STATUS_IGNORE);
  return l->out;
}

static void link_post(Link *l, int length) {
  if (style == MESSAGES) MPI_Isend(l->out, length, MPI_DOUBLE, l->to, l->tag, MPI_COMM_WORLD, &l->sent);
  else {
    MPI_Aint at = l->posted++ % AHEAD * l->capacity, counter = (MPI_Aint)AHEAD * l->capacity;
    MPI_Put(l->out, length, MPI_DOUBLE, l->to, at, length, MPI_DOUBLE, l->win);
    MPI_Win_flush(l->to, l->win);
    MPI_Accumulate(&l->posted, 1, MPI_INT64_T, l->to, counter, 1, MPI_INT64_T, MPI_REPLACE, l->win);
    MPI_Win_flush(l->to, l->win);
  }
}

/* Waits for the next message, which stays where it is until the next but one is taken. */
static double *link_take(Link *l) {
  if (style == MESSAGES) {
    MPI_Wait(&l->coming, MPI_STATUS_IGNORE);
    double *message = l->in[l->taken++ & 1];
    expect(l);
    return message;
  }
  const int64_t *counter = (const int64_t *)(l->window + (long)AHEAD * l->capacity);
  for (int spins = 1, there; __atomic_load_n(counter, __ATOMIC_ACQUIRE) <= l->taken; spins++) {
    MPI_Win_sync(l->win);
    if (spins % 64 == 0) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
  }
  MPI_Win_sync(l->win);
  return l->window + l->taken++ % AHEAD * l->capacity;
}

static void link_settle(Link *l) { MPI_Wait(&l->sent, MPI_STATUS_IGNORE); }

/* Collective. */
static void link_free(Link *l) {
  if (style == MESSAGES) {
    MPI_Cancel(&l->coming);
    MPI_Wait(&l->coming, MPI_STATUS_IGNORE);
  } else {
    MPI_Win_unlock_all(l->win);
    MPI_Win_free(&l->win);
  }
}

/* --- programs --- */

static const char *class_name = "";
static int samples;

/* Reads CLASS STYLE SAMPLES. Returns the class's number in SWAB. */
static int begin(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char *classes = "SWAB", *found = argc == 4 && strlen(argv[1]) == 1 ? strchr(classes, *argv[1]) : NULL;
  samples = found != NULL ? atoi(argv[3]) : 0;
  int known = samples >= 1 && (strcmp(argv[2], "messages") == 0 || strcmp(argv[2], "blocking") == 0);
  if (!known || (ranks & (ranks - 1)) != 0) {
    fprintf(stderr, "usage: mpiexec -n 1|2|4|8 %s S|W|A|B messages|blocking SAMPLES\n", argv[0]);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  style = strcmp(argv[2], "messages") == 0 ? MESSAGES : BLOCKING;
  class_name = argv[1];
  return (int)(found - classes);
}

/* Prints the report, or aborts if NAS' check fails: a relative error of at most `error`. Nothing that is not a number
 * passes. */
static void report(const char *name, const double *milliseconds, double value, double expected, double error) {
  if (rank != 0) return;
  double off = value > expected ? value - expected : expected - value;
  if (!(off <= error * expected)) {
    fprintf(stderr, "%s: error: the result is %.13g, not %.13g\n", name, value, expected);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  const char *words = style == MESSAGES ? "messages" : "blocking";
  printf("{\"row\":\"%s-%s/%s\",\"library\":\"%s\",", name, words, class_name, library_name());
  printf("\"unit\":\"ms\",\"samples\":[");
  for (int s = 0; s < samples; s++) printf("%s%.4f", s ? "," : "", milliseconds[s]);
  printf("],\"value\":%.13g}\n", value);
}
