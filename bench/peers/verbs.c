/*
 * The benchmark's loops on a device, in C: for each row the shortest sequence of verbs that does what our window does.
 *
 *   verbs ROW SAMPLES [MILLISECONDS]
 *
 * Two processes of this host, each with a context of its own, on the device that ONESIDED_DEVICE names (the first one
 * without it), connected by one reliable connection. Prints the same line of JSON as rma.c does, and measures as it
 * does.
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
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Seconds at least before anything counts, as in bench/ranks/samples.ts. */
#define WARM_UP 0.5

enum { INLINE = 64, DEPTH = 128, RECEIVES = 256, REFILL = 64, SIGNAL_EVERY = 32, PAGE = 4096 };

struct address {
  uint32_t qp;
  uint16_t lid;
  union ibv_gid gid;
  uint64_t window;
  uint32_t rkey;
  int mtu;
};

static int rank;
static int other; /* a socket to the other process */
static int size;  /* bytes of one operation */
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *sends, *receives;
static struct ibv_qp *qp;
static struct ibv_mr *window_mr, *origin_mr;
static struct address mine, theirs;
static unsigned char *window; /* this process's part; the word of the lock lies behind it */
static unsigned char *origin;
static uint64_t *atomic_result;
static double added; /* by this process */
static int port = 1, gid_index = -1;

static void fail(const char *what) {
  fprintf(stderr, "verbs: %s\n", what);
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void tell(const void *data, size_t bytes) {
  if (write(other, data, bytes) != (ssize_t)bytes) fail("the other process is gone");
}

static void hear(void *data, size_t bytes) {
  if (recv(other, data, bytes, MSG_WAITALL) != (ssize_t)bytes) fail("the other process is gone");
}

/* ---- requests ---- */

static struct ibv_sge entry;

static struct ibv_send_wr request(enum ibv_wr_opcode opcode, int bytes, int signaled) {
  struct ibv_send_wr wr;
  memset(&wr, 0, sizeof wr);
  entry.addr = (uintptr_t)origin;
  entry.length = bytes;
  entry.lkey = origin_mr->lkey;
  wr.opcode = opcode;
  wr.sg_list = &entry;
  wr.num_sge = bytes > 0;
  if (signaled) wr.send_flags |= IBV_SEND_SIGNALED;
  if (opcode != IBV_WR_RDMA_READ && bytes > 0 && bytes <= INLINE) wr.send_flags |= IBV_SEND_INLINE;
  wr.wr.rdma.remote_addr = theirs.window;
  wr.wr.rdma.rkey = theirs.rkey;
  return wr;
}

static struct ibv_send_wr atomic(enum ibv_wr_opcode opcode, uint64_t compare_add, uint64_t swap) {
  static struct ibv_sge result;
  struct ibv_send_wr wr;
  memset(&wr, 0, sizeof wr);
  result.addr = (uintptr_t)atomic_result;
  result.length = 8;
  result.lkey = origin_mr->lkey;
  wr.opcode = opcode;
  wr.sg_list = &result;
  wr.num_sge = 1;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.atomic.remote_addr = theirs.window + (size > PAGE ? size : PAGE);
  wr.wr.atomic.rkey = theirs.rkey;
  wr.wr.atomic.compare_add = compare_add;
  wr.wr.atomic.swap = swap;
  return wr;
}

static void post(struct ibv_send_wr *wr) {
  struct ibv_send_wr *bad;
  if (ibv_post_send(qp, wr, &bad) != 0) fail("a request was refused");
}

static void completed(void) {
  struct ibv_wc wc;
  int n;
  while ((n = ibv_poll_cq(sends, 1, &wc)) == 0) continue;
  if (n < 0 || wc.status != IBV_WC_SUCCESS) fail("a request failed");
}

static void post_receives(int count) {
  struct ibv_recv_wr wrs[REFILL], *bad;
  memset(wrs, 0, sizeof wrs);
  for (int i = 0; i + 1 < count; i++) wrs[i].next = &wrs[i + 1];
  if (ibv_post_recv(qp, wrs, &bad) != 0) fail("a receive was refused");
}

static void notified(void) {
  static int used;
  struct ibv_wc wc;
  int n;
  while ((n = ibv_poll_cq(receives, 1, &wc)) == 0) continue;
  if (n < 0 || wc.status != IBV_WC_SUCCESS) fail("a notification failed");
  if (++used == REFILL) {
    post_receives(REFILL);
    used = 0;
  }
}

static void notify(int bytes) {
  static int since;
  int signaled = ++since == SIGNAL_EVERY;
  struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE_WITH_IMM, bytes, signaled);
  post(&wr);
  if (signaled) {
    completed();
    since = 0;
  }
}

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

/* What is found at the end: the data at process 1, or at process 0, or the sum at process 1. */
enum found { WRITTEN, READ, ADDED };

static const struct row {
  const char *name;
  void (*run)(long iterations);
  int together; /* both processes run it */
  enum found found;
} ROWS[] = {
    {"put-flush", put_flush, 0, WRITTEN},
    {"get-flush", get_flush, 0, READ},
    {"lock-put-unlock", lock_put_unlock, 0, WRITTEN},
    {"acc-flush-double", acc_flush_double, 0, ADDED},
    {"fence-put-fence", fence_put_fence, 1, WRITTEN},
};

/* ---- the connection ---- */

static struct ibv_device *find_device(const char *name) {
  int count;
  struct ibv_device **list = ibv_get_device_list(&count);
  for (int i = 0; list != NULL && i < count; i++) {
    if (name[0] == 0 || strcmp(name, ibv_get_device_name(list[i])) == 0) return list[i];
  }
  fail("there is no such device");
  return NULL;
}

/* The first RoCE v2 address of IPv4, else the first address: as ours chooses. */
static int find_gid(const char *device) {
  for (int i = 0; i < 256; i++) {
    char path[256], type[32] = "";
    union ibv_gid gid;
    static const unsigned char v4[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    if (ibv_query_gid(context, port, i, &gid) != 0) break;
    snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/%d/gid_attrs/types/%d", device, port, i);
    FILE *file = fopen(path, "r");
    if (file == NULL) continue;
    if (fgets(type, sizeof type, file) == NULL) type[0] = 0;
    fclose(file);
    if (memcmp(gid.raw, v4, sizeof v4) == 0 && strncmp(type, "RoCE v2", 7) == 0) return i;
  }
  return 0;
}

static void open_device(void) {
  char name[64] = "";
  const char *wanted = getenv("ONESIDED_DEVICE");
  if (wanted != NULL) sscanf(wanted, "%63[^:]:%d:%d", name, &port, &gid_index);
  struct ibv_device *device = find_device(name);
  context = ibv_open_device(device);
  if (context == NULL) fail("the device cannot be opened");
  struct ibv_port_attr attr;
  if (ibv_query_port(context, port, &attr) != 0) fail("the port cannot be queried");
  if (gid_index < 0) gid_index = find_gid(ibv_get_device_name(device));
  if (ibv_query_gid(context, port, gid_index, &mine.gid) != 0) fail("the GID cannot be queried");
  mine.lid = attr.lid;
  mine.mtu = attr.active_mtu;
}

static void make_queues(void) {
  int bytes = (size > PAGE ? size : PAGE) + PAGE;
  pd = ibv_alloc_pd(context);
  window = aligned_alloc(PAGE, bytes);
  origin = aligned_alloc(PAGE, bytes);
  memset(window, 0, bytes);
  memset(origin, 0, bytes);
  atomic_result = (uint64_t *)(origin + bytes - PAGE);
  int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  window_mr = ibv_reg_mr(pd, window, bytes, access);
  origin_mr = ibv_reg_mr(pd, origin, bytes, IBV_ACCESS_LOCAL_WRITE);
  sends = ibv_create_cq(context, DEPTH, NULL, NULL, 0);
  receives = ibv_create_cq(context, RECEIVES, NULL, NULL, 0);
  if (window_mr == NULL || origin_mr == NULL || sends == NULL || receives == NULL) fail("no memory or queues");
  struct ibv_qp_init_attr init = {
      .send_cq = sends,
      .recv_cq = receives,
      .qp_type = IBV_QPT_RC,
      .cap = {.max_send_wr = DEPTH,
              .max_recv_wr = RECEIVES,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = INLINE},
  };
  qp = ibv_create_qp(pd, &init);
  if (qp == NULL) fail("no queue pair");
  mine.qp = qp->qp_num;
  mine.window = (uintptr_t)window;
  mine.rkey = window_mr->rkey;
}

static void connect_queues(void) {
  tell(&mine, sizeof mine);
  hear(&theirs, sizeof theirs);
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_INIT,
      .port_num = port,
      .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
  };
  int error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  attr = (struct ibv_qp_attr){
      .qp_state = IBV_QPS_RTR,
      .path_mtu = mine.mtu < theirs.mtu ? mine.mtu : theirs.mtu,
      .dest_qp_num = theirs.qp,
      .rq_psn = theirs.qp,
      .max_dest_rd_atomic = 16,
      .min_rnr_timer = 1,
      .ah_attr = {.is_global = 1,
                  .dlid = theirs.lid,
                  .port_num = port,
                  .grh = {.dgid = theirs.gid, .sgid_index = gid_index, .hop_limit = 64}},
  };
  error |= ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  attr = (struct ibv_qp_attr){
      .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 6, .rnr_retry = 7, .sq_psn = mine.qp, .max_rd_atomic = 16};
  error |= ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                        IBV_QP_MAX_QP_RD_ATOMIC);
  if (error != 0) fail("the queue pair cannot be connected");
  for (int i = 0; i < RECEIVES; i += REFILL) post_receives(REFILL);
}

/* Both processes have come here. */
static void together(void) {
  char byte = 0;
  tell(&byte, 1);
  hear(&byte, 1);
}

/* ---- measuring ---- */

static double timed(const struct row *row, long n) {
  if (row->together) {
    if (rank == 0) tell(&n, sizeof n);
    else hear(&n, sizeof n);
    if (n == 0) return 0;
  }
  double start = now();
  row->run(n);
  return now() - start;
}

static void measure(const struct row *row, int samples, double block, double *seconds, long *iterations) {
  long n = 1;
  double begun = now();
  for (;;) {
    double took = timed(row, n);
    if (took >= block && now() - begun >= WARM_UP) break;
    if (took < block) n = took > block / 16 ? (long)(n * (block * 1.1 / took)) + 1 : n * 4;
  }
  for (int s = 0; s < samples; s++) seconds[s] = timed(row, n) / n;
  *iterations = n;
  if (row->together) timed(row, 0);
}

static void follow(const struct row *row) {
  for (;;) {
    long n;
    hear(&n, sizeof n);
    if (n == 0) return;
    row->run(n);
  }
}

static unsigned char pattern(int i) { return (unsigned char)(i * 7 + 3); }

static void fill(unsigned char *bytes) {
  for (int i = 0; i < size; i++) bytes[i] = pattern(i);
}

static void check(const unsigned char *bytes) {
  for (int i = 0; i < size; i++) if (bytes[i] != pattern(i)) fail("the data did not arrive");
}

static void prepare(const struct row *row) {
  if (row->found == WRITTEN && rank == 0) fill(origin);
  if (row->found == READ && rank == 1) fill(window);
}

static void verify(const struct row *row) {
  if (row->found == WRITTEN && rank == 1) check(window);
  if (row->found == READ && rank == 0) check(origin);
  if (row->found != ADDED) return;
  double sum = added;
  if (rank == 0) tell(&sum, sizeof sum);
  else hear(&sum, sizeof sum);
  if (rank == 1 && *(double *)window != sum) fail("the sum is wrong");
}

int main(int argc, char **argv) {
  const char *slash = argc < 3 ? NULL : strchr(argv[1], '/');
  if (slash == NULL) fail("usage: verbs ROW/SIZE SAMPLES [MILLISECONDS]");
  const struct row *row = NULL;
  for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
    size_t length = strlen(ROWS[i].name);
    if (length == (size_t)(slash - argv[1]) && strncmp(ROWS[i].name, argv[1], length) == 0) row = &ROWS[i];
  }
  if (row == NULL) fail("there is no such row");
  size = atoi(slash + 1);
  int samples = atoi(argv[2]);
  double block = (argc > 3 ? atof(argv[3]) : 20) / 1e3;

  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) fail("no socket");
  pid_t child = fork();
  rank = child == 0 ? 1 : 0;
  other = ends[rank];
  close(ends[1 - rank]);
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
