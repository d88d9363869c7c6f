/*
 * The benchmark's loops on a device, in C: for each row the shortest sequence of verbs that does what our window does.
 *
 *   verbs ROW/SIZE[xBYTES] SAMPLES [MILLISECONDS]
 *
 * device.h has what they share. Prints the same line of JSON as rma.c does, and measures as it does.
 *
 * The rules: the same device, port, GID, MTU and kind of connection as ours; up to 64 bytes go inline; who waits polls;
 * what need not be signalled is not.
 * - "put-flush" is a write, and its completion; "get-flush" a read, and its completion;
 * - "lock-put-unlock" is a compare-and-swap and its completion, then a write and a fetch-and-add that gives the lock
 *   back, posted by one call, and the completion of the latter: it says that both have been carried out, since requests
 *   of one connection are, in their order. The word of the lock is touched by atomics only;
 * - "acc-flush-double" adds 1 to a double: a read and its completion, then a compare-and-swap of the bits and its
 *   completion, until nobody has changed them in between;
 * - "fence-put-fence": each fence is a write of no bytes with immediate to the other process, and waiting for the
 *   other's; the put goes along with the second one of rank 0. Nothing more needs to be waited for: the data is in
 *   memory when the immediate arrives, and went inline;
 * - what has been transferred, or the sum, is compared at the end.
 */
#include "device.h"
#include "layouts.h"

/* ---- rows ---- */

static void put_flush(long n) {
  struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, size, 1);
  for (long i = 0; i < n; i++) {
    post(&wr);
    completed();
  }
}

static void get_flush(long n) {
  struct ibv_send_wr wr = request(IBV_WR_RDMA_READ, size, 1);
  for (long i = 0; i < n; i++) {
    post(&wr);
    completed();
  }
}

static void lock_put_unlock(long n) {
  struct ibv_send_wr lock = atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 0, 1);
  struct ibv_send_wr unlock = atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, (uint64_t)-1, 0);
  struct ibv_send_wr put = request(IBV_WR_RDMA_WRITE, size, 0);
  put.next = &unlock;
  for (long i = 0; i < n; i++) {
    do {
      post(&lock);
      completed();
    } while (*(volatile uint64_t *)atomic_result != 0);
    post(&put);
    completed();
  }
}

static uint64_t incremented(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  value += 1;
  memcpy(&bits, &value, sizeof value);
  return bits;
}

static void acc_flush_double(long n) {
  struct ibv_send_wr get = request(IBV_WR_RDMA_READ, size, 1);
  struct ibv_send_wr swap = atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 0, 0);
  swap.wr.atomic.remote_addr = theirs.window;
  for (long i = 0; i < n; i++) {
    post(&get);
    completed();
    uint64_t found = *(volatile uint64_t *)origin, expected;
    do {
      expected = found;
      swap.wr.atomic.compare_add = expected;
      swap.wr.atomic.swap = incremented(expected);
      post(&swap);
      completed();
      found = *(volatile uint64_t *)atomic_result;
    } while (found != expected);
  }
  added += n;
}

static void fence_put_fence(long n) {
  for (long i = 0; i < n; i++) {
    notify(0);
    notified();
    notify(rank == 0 ? size : 0);
    notified();
  }
}

static const struct row ROWS[] = {
    {"put-flush", put_flush, 0, WRITTEN},
    {"get-flush", get_flush, 0, READ},
    {"lock-put-unlock", lock_put_unlock, 0, WRITTEN},
    {"acc-flush-double", acc_flush_double, 0, ADDED},
    {"fence-put-fence", fence_put_fence, 1, WRITTEN},
    {"put-vector", put_vector, 0, WRITTEN},
    {"put-vector-pack", put_vector_pack, 1, WRITTEN},
    {"put-vector-sgrs", put_vector_sgrs, 1, WRITTEN},
    {"get-vector", get_vector, 0, READ},
    {"get-vector-pack", get_vector_pack, 1, READ},
    {"get-vector-sgrs", get_vector_sgrs, 1, READ},
};

int main(int argc, char **argv) {
  const char *slash = argc < 3 ? NULL : strchr(argv[1], '/');
  if (slash == NULL) fail("usage: verbs ROW/SIZE[xBYTES] SAMPLES [MILLISECONDS]");
  const struct row *row = NULL;
  for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
    size_t length = strlen(ROWS[i].name);
    if (length == (size_t)(slash - argv[1]) && strncmp(ROWS[i].name, argv[1], length) == 0) row = &ROWS[i];
  }
  if (row == NULL) fail("there is no such row");
  const char *times = strchr(slash, 'x');
  piece = atoi(times == NULL ? slash + 1 : times + 1);
  if (times != NULL) pieces = atoi(slash + 1);
  size = pieces * piece;
  if (pieces < 1 || pieces > DEPTH || piece < 1) fail("pieces must be 1 to 128, of 1 byte or more");
  int samples = atoi(argv[2]);
  double block = (argc > 3 ? atof(argv[3]) : 20) / 1e3;

  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) fail("no socket");
  pid_t child = fork();
  rank = child == 0 ? 1 : 0;
  other = ends[rank];
  close(ends[1 - rank]);
  yields = row->together && sysconf(_SC_NPROCESSORS_ONLN) == 1;
  open_device();
  make_queues();
  prepare(row);
  connect_queues();
  together();

  double *seconds = calloc(samples, sizeof *seconds);
  long iterations = 0;
  if (rank == 0) measure(row, samples, block, seconds, &iterations);
  else if (row->together) follow(row);
  together();
  verify(row);
  if (rank == 1) return 0;

  int status;
  if (waitpid(child, &status, 0) != child || status != 0) fail("the other process failed");
  printf("{\"row\": \"%s\", \"unit\": \"ns\", \"iterations\": %ld, \"samples\": [", argv[1], iterations);
  for (int s = 0; s < samples; s++) printf("%s%.1f", s > 0 ? ", " : "", seconds[s] * 1e9);
  printf("]}\n");
  return 0;
}
