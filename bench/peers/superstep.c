/*
 * Cyclic shifts and total exchanges on an Ethernet as supersteps of LPF's core (Lightweight Parallel Foundations): what
 * `npm run bench:ethernet` has beside supersteps of onesided/bsp. Its results are those of shift.c.
 *
 *   lpfrun -engine mpimsg -n 4 superstep shift|total BYTES STEPS WARM
 *
 * `shift`: an lpf_put to the next process; `total`: one to each process, this one too; then lpf_sync. After another
 * lpf_sync, which is empty, each superstep is timed by the process that takes longest. Process 0 prints one line of
 * JSON: { "row", "library", "samples": [milliseconds, ...] }.
 */
#include <lpf/core.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
  char row[16];
  long bytes;
  int steps, warm;
} plan;

#define CHECK(good, what)                 \
  do {                                    \
    if (!(good)) {                        \
      fprintf(stderr, "error: %s\n", what); \
      exit(EXIT_FAILURE);                 \
    }                                     \
  } while (0)
#define LPF(call) CHECK((call) == LPF_SUCCESS, #call)

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * t.tv_sec + 1e-6 * t.tv_nsec;
}

static void *room(size_t bytes) {
  void *memory = calloc(1, bytes);
  CHECK(memory != NULL, "no memory");
  return memory;
}

/* Not static: other processes find it by its name. */
void run_supersteps(lpf_t ctx, lpf_pid_t pid, lpf_pid_t size, lpf_args_t args) {
  plan p = {0};
  if (pid == 0) memcpy(&p, args.input, sizeof p);
  LPF(lpf_resize_message_queue(ctx, 2 * size + 16));
  LPF(lpf_resize_memory_register(ctx, 8));
  LPF(lpf_sync(ctx, LPF_SYNC_DEFAULT));
  lpf_memslot_t plan_slot, in_slot, out_slot, all_slot, times_slot;
  LPF(lpf_register_global(ctx, &p, sizeof p, &plan_slot));
  LPF(lpf_sync(ctx, LPF_SYNC_DEFAULT));
  if (pid != 0) LPF(lpf_get(ctx, 0, plan_slot, 0, plan_slot, 0, sizeof p, LPF_MSG_DEFAULT));
  LPF(lpf_sync(ctx, LPF_SYNC_DEFAULT));

  const int total = strcmp(p.row, "total") == 0;
  const size_t all = total ? (size_t)p.bytes * size : (size_t)p.bytes;
  char *out = room(all), *in = room(all);
  double *times = room(p.steps * sizeof *times), *of_all = room((size_t)size * p.steps * sizeof *times);
  LPF(lpf_register_local(ctx, out, all, &out_slot));
  LPF(lpf_register_global(ctx, in, all, &in_slot));
  LPF(lpf_register_global(ctx, of_all, (size_t)size * p.steps * sizeof *times, &all_slot));
  LPF(lpf_register_local(ctx, times, p.steps * sizeof *times, &times_slot));
  const lpf_pid_t left = (pid + size - 1) % size, right = (pid + 1) % size;
  for (int step = -p.warm; step < p.steps; step++) {
    const char value = (char)(1 + (step & 63));
    memset(out, (char)(value + pid), all);
    LPF(lpf_sync(ctx, LPF_SYNC_DEFAULT));
    const double began = now();
    if (total) {
      for (lpf_pid_t k = 1; k <= size; k++) {
        const lpf_pid_t to = (pid + k) % size;
        LPF(lpf_put(ctx, out_slot, (size_t)to * p.bytes, to, in_slot, (size_t)pid * p.bytes, p.bytes, LPF_MSG_DEFAULT));
      }
    } else {
      LPF(lpf_put(ctx, out_slot, 0, right, in_slot, 0, p.bytes, LPF_MSG_DEFAULT));
    }
    LPF(lpf_sync(ctx, LPF_SYNC_DEFAULT));
    if (step >= 0) times[step] = now() - began;
    for (size_t i = 0; i < all; i++) {
      const char expected = (char)(value + (total ? (lpf_pid_t)(i / p.bytes) : left));
      CHECK(in[i] == expected, "a byte is wrong");
    }
  }
  const size_t room_of_one = p.steps * sizeof *times;
  LPF(lpf_put(ctx, times_slot, 0, 0, all_slot, pid * room_of_one, room_of_one, LPF_MSG_DEFAULT));
  LPF(lpf_sync(ctx, LPF_SYNC_DEFAULT));
  if (pid != 0) return;
  printf("{\"row\": \"%s\", \"library\": \"LPF\", \"samples\": [", p.row);
  for (int step = 0; step < p.steps; step++) {
    double longest = 0;
    for (lpf_pid_t k = 0; k < size; k++)
      if (of_all[k * p.steps + step] > longest) longest = of_all[k * p.steps + step];
    printf("%s%.4f", step == 0 ? "" : ", ", longest);
  }
  printf("]}\n");
  fflush(stdout);
}

int main(int argc, char **argv) {
  CHECK(argc == 5, "superstep shift|total BYTES STEPS WARM");
  plan asked = {.bytes = atol(argv[2]), .steps = atoi(argv[3]), .warm = atoi(argv[4])};
  strncpy(asked.row, argv[1], sizeof asked.row - 1);
  CHECK(strcmp(asked.row, "shift") == 0 || strcmp(asked.row, "total") == 0, "the relation is shift or total");
  CHECK(asked.bytes > 0 && asked.steps > 0 && asked.warm >= 0, "BYTES and STEPS are positive");
  lpf_args_t args = LPF_NO_ARGS;
  args.input = &asked;
  args.input_size = sizeof asked;
  LPF(lpf_exec(LPF_ROOT, LPF_MAX_P, &run_supersteps, args));
  return EXIT_SUCCESS;
}
