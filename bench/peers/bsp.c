/*
 * The benchmark's bulk-synchronous rows on LPF's core (Lightweight Parallel Foundations), in C: what bench/ranks/bsp.ts
 * does with onesided/bsp, superstep for superstep.
 *
 *   lpfrun -engine ENGINE -np 2 bsp ROW SAMPLES [MILLISECONDS]
 *
 * prints one line of JSON from process 0: { "row", "library", "unit", "samples": [...] }.
 *
 * - "bsp-l/2" is a superstep with nothing, "bsp-g/2" one in which each process puts a million words of 8 bytes to the
 *   other, one put each, to places one after the other; nanoseconds a superstep, and a put with its share of the end. A
 *   sample is the mean over a block, timed on process 0, whose length is found beforehand; that is the warm-up.
 * - "bsp-fft/2^18" is the transform of bench/bsp/fft.ts, milliseconds each, of the process that took longest.
 * - puts are lpf_put, which does not buffer; buffered puts are not in LPF's core.
 * - what has come is compared at the end.
 */
#include <lpf/core.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WARM_UP 0.5

enum { PUTS = 1000000, LOG_N = 18, N = 1 << LOG_N, MOST_SAMPLES = 1000 };

/* What process 0 has read from the command line, and the others get from it. */
typedef struct {
  char row[32];
  int samples;
  double block;
  long iterations;
} plan;

#define CHECK(call)                                       \
  do {                                                    \
    if ((call) != LPF_SUCCESS) {                          \
      fprintf(stderr, "error: %s failed\n", #call);       \
      exit(EXIT_FAILURE);                                 \
    }                                                     \
  } while (0)

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* A process. Where they are threads, globals are shared, so everything is here. */
typedef struct {
  lpf_t ctx;
  lpf_pid_t pid, other;
  plan plan;
  lpf_memslot_t plan_slot;
  double *memory, *source; /* registered: of others, and of this one */
  lpf_memslot_t memory_slot, source_slot;
  double samples[MOST_SAMPLES];
  lpf_memslot_t samples_slot;
} process;

static void sync_all(process *me) { CHECK(lpf_sync(me->ctx, LPF_SYNC_DEFAULT)); }

/* What process 0 has decided, the other one gets. */
static void agree(process *me) {
  if (me->pid != 0) {
    CHECK(lpf_get(me->ctx, 0, me->plan_slot, 0, me->plan_slot, 0, sizeof me->plan, LPF_MSG_DEFAULT));
  }
  sync_all(me);
}

static void empty(process *me, long n) {
  for (long i = 0; i < n; i++) sync_all(me);
}

static void puts_of_words(process *me, long n) {
  for (long i = 0; i < n; i++) {
    for (size_t k = 0; k < PUTS; k++) {
      CHECK(lpf_put(me->ctx, me->source_slot, 8 * k, me->other, me->memory_slot, 8 * k, 8, LPF_MSG_DEFAULT));
    }
    sync_all(me);
  }
}

/* Seconds an iteration: a sample each. */
static void measure_blocks(process *me, void (*loop)(process *, long)) {
  plan *p = &me->plan;
  p->iterations = 1;
  const double begun = now();
  for (;;) {
    agree(me);
    if (p->iterations == 0) break;
    const double start = now();
    loop(me, p->iterations);
    const double took = now() - start;
    if (me->pid != 0) continue;
    me->samples[0] = took / p->iterations;
    if (took >= p->block && now() - begun >= WARM_UP) {
      me->samples[1] = p->iterations;
      p->iterations = 0;
    } else if (took < p->block) {
      p->iterations = took > p->block / 16 ? (long)(p->iterations * p->block * 1.1 / took) + 1 : 4 * p->iterations;
    }
  }
  if (me->pid == 0) p->iterations = (long)me->samples[1];
  agree(me);
  for (int s = 0; s < p->samples; s++) {
    const double start = now();
    loop(me, p->iterations);
    me->samples[s] = (now() - start) / p->iterations;
  }
}

/* A pass of radix 4 of Stockham's transform, as bench/bsp/fft-kernel.ts has it. */
static void pass4(const double *restrict x, double *restrict y, const double *restrict w, size_t n, size_t beside,
                  size_t step) {
  const size_t quarter = n / 4, apart = 2 * quarter * beside, hop = 2 * beside;
  for (size_t k = 0; k < quarter; k++) {
    const double w1r = w[2 * k * step], w1i = w[2 * k * step + 1];
    const double w2r = w[4 * k * step], w2i = w[4 * k * step + 1];
    const double w3r = w[6 * k * step], w3i = w[6 * k * step + 1];
    const double *a = x + 2 * k * beside, *b = a + apart, *c = b + apart, *d = c + apart;
    double *to = y + 8 * k * beside;
    for (size_t i = 0; i < 2 * beside; i += 2) {
      const double sr = a[i] + c[i], si = a[i + 1] + c[i + 1], dr = a[i] - c[i], di = a[i + 1] - c[i + 1];
      const double tr = b[i] + d[i], ti = b[i + 1] + d[i + 1], er = b[i + 1] - d[i + 1], ei = d[i] - b[i];
      to[i] = sr + tr;
      to[i + 1] = si + ti;
      const double ur = dr + er, ui = di + ei, vr = sr - tr, vi = si - ti, zr = dr - er, zi = di - ei;
      to[i + hop] = ur * w1r - ui * w1i;
      to[i + hop + 1] = ur * w1i + ui * w1r;
      to[i + 2 * hop] = vr * w2r - vi * w2i;
      to[i + 2 * hop + 1] = vr * w2i + vi * w2r;
      to[i + 3 * hop] = zr * w3r - zi * w3i;
      to[i + 3 * hop + 1] = zr * w3i + zi * w3r;
    }
  }
}

static double *transform(double *x, double *y, const double *w, size_t n, size_t batch) {
  size_t length = n, beside = batch;
  for (; length >= 4; length /= 4, beside *= 4) {
    pass4(x, y, w, length, beside, n / length);
    double *t = x;
    x = y;
    y = t;
  }
  if (length != 2) return x;
  for (size_t i = 0; i < 2 * beside; i++) {
    y[i] = x[i] + x[i + 2 * beside];
    y[i + 2 * beside] = x[i] - x[i + 2 * beside];
  }
  return y;
}

static double *numbers(size_t count) {
  double *memory = malloc(count * sizeof(double));
  if (memory == NULL) exit(EXIT_FAILURE);
  memset(memory, 0, count * sizeof(double));
  return memory;
}

/* e^(-2 pi i s k / n), for k from 0 on. */
static double *roots(size_t n, size_t s, size_t count) {
  double *table = numbers(2 * count);
  for (size_t k = 0; k < count; k++) {
    table[2 * k] = cos(-2 * M_PI * s * k / n);
    table[2 * k + 1] = sin(-2 * M_PI * s * k / n);
  }
  return table;
}

static double real_part(size_t k) { return (double)(k * 7919 % 1000) / 500 - 1; }
static double imaginary_part(size_t k) { return (double)(k * 104729 % 997) / 498.5 - 1; }

/* Compares some places of the result with what the definition says. */
static void check_fft(const process *me, const double *result, size_t p) {
  const size_t m = N / p, block = m / p;
  double *w = roots(N, 1, N);
  for (size_t at = 0; at < m; at += m / 5) {
    const size_t k = me->pid * block + at % block + m * (at / block);
    double r = 0, i = 0;
    for (size_t j = 0; j < N; j++) {
      const double *f = w + 2 * (j * k % N);
      r += real_part(j) * f[0] - imaginary_part(j) * f[1];
      i += real_part(j) * f[1] + imaginary_part(j) * f[0];
    }
    if (fabs(r - result[2 * at]) + fabs(i - result[2 * at + 1]) > 1e-6) {
      fprintf(stderr, "error: the transform is wrong at %zu\n", k);
      exit(EXIT_FAILURE);
    }
  }
  free(w);
}

static void measure_fft(process *me, size_t p) {
  const size_t m = N / p, block = m / p, s = me->pid;
  double *first = roots(m, 1, m), *second = roots(p, 1, p), *factors = roots(N, s, m);
  double *work = numbers(2 * m), *result = NULL;
  /* The other's blocks come here; the source is registered, whichever of its halves has the result. */
  double *data = me->source, *spare = me->source + 2 * m;
  const double begun = now();
  for (int sample = -1; sample < me->plan.samples;) {
    for (size_t j = 0; j < m; j++) {
      data[2 * j] = real_part(s + p * j);
      data[2 * j + 1] = imaginary_part(s + p * j);
    }
    me->plan.iterations = now() - begun < WARM_UP;
    agree(me); /* also the synchronization before */
    const int warms = me->plan.iterations != 0;
    const double start = now();
    double *own = transform(data, spare, first, m, 1);
    for (size_t i = 0; i < 2 * m; i += 2) {
      const double r = own[i], j = own[i + 1];
      own[i] = r * factors[i] - j * factors[i + 1];
      own[i + 1] = r * factors[i + 1] + j * factors[i];
    }
    for (size_t t = 0; t < p; t++) {
      const size_t from = (own - me->source + 2 * block * t) * sizeof(double);
      CHECK(lpf_put(me->ctx, me->source_slot, from, t, me->memory_slot, 2 * block * s * sizeof(double),
                    2 * block * sizeof(double), LPF_MSG_DEFAULT));
    }
    sync_all(me);
    result = transform(me->memory, work, second, p, block);
    const double took = now() - start;
    if (warms) continue;
    if (sample >= 0) me->samples[sample] = took;
    sample++;
  }
  check_fft(me, result, p);
  /* A sample is that of the process that took longest. */
  double theirs[MOST_SAMPLES];
  lpf_memslot_t slot;
  CHECK(lpf_register_local(me->ctx, theirs, sizeof theirs, &slot));
  CHECK(lpf_get(me->ctx, me->other, me->samples_slot, 0, slot, 0, sizeof theirs, LPF_MSG_DEFAULT));
  sync_all(me);
  for (int i = 0; i < me->plan.samples; i++) if (theirs[i] > me->samples[i]) me->samples[i] = theirs[i];
  free(first);
  free(second);
  free(factors);
  free(work);
}

static void report(const process *me, const char *unit, double factor) {
  printf("{\"row\":\"%s\",\"library\":\"LPF\",\"unit\":\"%s\",\"samples\":[", me->plan.row, unit);
  for (int i = 0; i < me->plan.samples; i++) printf("%s%.9g", i == 0 ? "" : ",", me->samples[i] * factor);
  printf("]}\n");
  fflush(stdout);
}

void run_row(lpf_t ctx, lpf_pid_t pid, lpf_pid_t nprocs, lpf_args_t args) {
  process *me = calloc(1, sizeof *me);
  if (me == NULL || nprocs != 2) {
    fprintf(stderr, "error: this needs 2 processes, not %u\n", (unsigned)nprocs);
    exit(EXIT_FAILURE);
  }
  me->ctx = ctx;
  me->pid = pid;
  me->other = 1 - pid;
  if (pid == 0) memcpy(&me->plan, args.input, sizeof me->plan);
  CHECK(lpf_resize_message_queue(ctx, 2 * PUTS + 16));
  CHECK(lpf_resize_memory_register(ctx, 8));
  sync_all(me);
  const size_t count = 2 * N > PUTS ? 2 * N : PUTS;
  me->memory = numbers(count);
  me->source = numbers(count);
  for (size_t i = 0; i < PUTS; i++) me->source[i] = pid + i;
  CHECK(lpf_register_global(ctx, &me->plan, sizeof me->plan, &me->plan_slot));
  CHECK(lpf_register_global(ctx, me->memory, count * sizeof(double), &me->memory_slot));
  CHECK(lpf_register_global(ctx, me->source, count * sizeof(double), &me->source_slot));
  CHECK(lpf_register_global(ctx, me->samples, sizeof me->samples, &me->samples_slot));
  sync_all(me);
  agree(me);
  const char *row = me->plan.row;
  const char *unit = "ns";
  double factor = 1e9;
  if (strcmp(row, "bsp-l/2") == 0) {
    measure_blocks(me, empty);
  } else if (strcmp(row, "bsp-g/2") == 0) {
    measure_blocks(me, puts_of_words);
    factor /= PUTS;
    for (size_t i = 0; i < PUTS; i++) {
      if (me->memory[i] != (double)(me->other + i)) {
        fprintf(stderr, "error: word %zu is wrong\n", i);
        exit(EXIT_FAILURE);
      }
    }
  } else if (strcmp(row, "bsp-fft/2^18") == 0) {
    measure_fft(me, nprocs);
    unit = "ms";
    factor = 1e3;
  } else {
    fprintf(stderr, "error: no row %s\n", row);
    exit(EXIT_FAILURE);
  }
  if (pid == 0) report(me, unit, factor);
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "error: bsp ROW SAMPLES [MILLISECONDS]\n");
    return EXIT_FAILURE;
  }
  plan asked = {.samples = atoi(argv[2]), .block = 1e-3 * (argc > 3 ? atof(argv[3]) : 20)};
  strncpy(asked.row, argv[1], sizeof asked.row - 1);
  if (asked.samples < 1 || asked.samples > MOST_SAMPLES) {
    fprintf(stderr, "error: 1 to %d samples\n", MOST_SAMPLES);
    return EXIT_FAILURE;
  }
  lpf_args_t args = LPF_NO_ARGS;
  args.input = &asked;
  args.input_size = sizeof asked;
  CHECK(lpf_exec(LPF_ROOT, 2, &run_row, args));
  return EXIT_SUCCESS;
}
