/*
 * What the rows of verbs.c share: two processes of this host, each with a context of its own on the device that
 * ONESIDED_DEVICE names (the first one without it), connected by two reliable connections; requests and completions;
 * and how a row is measured, as rma.c does it.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <sched.h>
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

enum { INLINE = 64, DEPTH = 128, RECEIVES = 256, REFILL = 64, SIGNAL_EVERY = 32, PAGE = 4096, MOST_ENTRIES = 60 };

struct address {
  uint32_t qp, second;
  uint16_t lid;
  union ibv_gid gid;
  uint64_t window, origin;
  uint32_t rkey, origin_rkey;
  int mtu, entries;
};

static int rank;
static int other; /* a socket to the other process */
static int size;  /* bytes of one operation */
static int pieces = 1, piece; /* they lie in so many pieces of so many bytes at process 1, with gaps of as many */
static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *sends, *receives, *scattered;
static struct ibv_qp *qp;
static struct ibv_qp *second; /* for messages that are gathered and scattered, of lists of `entries` */
static int entries;
static int yields; /* who waits lets the other process run: both are on one core */
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

static void wait_for(struct ibv_cq *cq, const char *what) {
  struct ibv_wc wc;
  int n;
  while ((n = ibv_poll_cq(cq, 1, &wc)) == 0) {
    if (yields) sched_yield();
  }
  if (n < 0 || wc.status != IBV_WC_SUCCESS) fail(what);
}

static void completed(void) { wait_for(sends, "a request failed"); }

static void post_receives(int count) {
  struct ibv_recv_wr wrs[REFILL], *bad;
  memset(wrs, 0, sizeof wrs);
  for (int i = 0; i + 1 < count; i++) wrs[i].next = &wrs[i + 1];
  if (ibv_post_recv(qp, wrs, &bad) != 0) fail("a receive was refused");
}

static void notified(void) {
  static int used;
  wait_for(receives, "a notification failed");
  if (++used == REFILL) {
    post_receives(REFILL);
    used = 0;
  }
}

static void notify_at(int bytes, uint64_t address, uint32_t rkey) {
  static int since;
  int signaled = ++since == SIGNAL_EVERY;
  struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE_WITH_IMM, bytes, signaled);
  wr.wr.rdma.remote_addr = address;
  wr.wr.rdma.rkey = rkey;
  post(&wr);
  if (signaled) {
    completed();
    since = 0;
  }
}

static void notify(int bytes) { notify_at(bytes, theirs.window, theirs.rkey); }

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

static struct ibv_qp *make_queue(struct ibv_cq *recv_cq, int receives, int list) {
  struct ibv_qp_init_attr init = {
      .send_cq = sends,
      .recv_cq = recv_cq,
      .qp_type = IBV_QPT_RC,
      .cap = {.max_send_wr = DEPTH,
              .max_recv_wr = receives,
              .max_send_sge = list,
              .max_recv_sge = list,
              .max_inline_data = INLINE},
  };
  struct ibv_qp *made = ibv_create_qp(pd, &init);
  if (made == NULL) fail("no queue pair");
  return made;
}

static void make_queues(void) {
  int part = pieces > 1 ? 2 * size : size;
  int bytes = (part > PAGE ? part : PAGE) + PAGE;
  pd = ibv_alloc_pd(context);
  window = aligned_alloc(PAGE, bytes);
  origin = aligned_alloc(PAGE, bytes);
  memset(window, 0, bytes);
  memset(origin, 0, bytes);
  atomic_result = (uint64_t *)(origin + bytes - PAGE);
  int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  window_mr = ibv_reg_mr(pd, window, bytes, access);
  origin_mr = ibv_reg_mr(pd, origin, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  sends = ibv_create_cq(context, 2 * DEPTH, NULL, NULL, 0);
  receives = ibv_create_cq(context, RECEIVES, NULL, NULL, 0);
  scattered = ibv_create_cq(context, DEPTH, NULL, NULL, 0);
  if (window_mr == NULL || origin_mr == NULL || sends == NULL || receives == NULL || scattered == NULL)
    fail("no memory or queues");
  struct ibv_device_attr limits;
  if (ibv_query_device(context, &limits) != 0) fail("the device cannot be queried");
  entries = limits.max_sge < MOST_ENTRIES ? limits.max_sge : MOST_ENTRIES;
  qp = make_queue(receives, RECEIVES, 1);
  second = make_queue(scattered, DEPTH, entries);
  mine.qp = qp->qp_num;
  mine.second = second->qp_num;
  mine.window = (uintptr_t)window;
  mine.rkey = window_mr->rkey;
  mine.origin = (uintptr_t)origin;
  mine.origin_rkey = origin_mr->rkey;
}

static void connect_queue(struct ibv_qp *it, uint32_t number) {
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_INIT,
      .port_num = port,
      .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
  };
  int error = ibv_modify_qp(it, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  attr = (struct ibv_qp_attr){
      .qp_state = IBV_QPS_RTR,
      .path_mtu = mine.mtu < theirs.mtu ? mine.mtu : theirs.mtu,
      .dest_qp_num = number,
      .rq_psn = number,
      .max_dest_rd_atomic = 16,
      .min_rnr_timer = 1,
      .ah_attr = {.is_global = 1,
                  .dlid = theirs.lid,
                  .port_num = port,
                  .grh = {.dgid = theirs.gid, .sgid_index = gid_index, .hop_limit = 64}},
  };
  error |= ibv_modify_qp(it, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                              .timeout = 14,
                              .retry_cnt = 6,
                              .rnr_retry = 7,
                              .sq_psn = it->qp_num,
                              .max_rd_atomic = 16};
  error |= ibv_modify_qp(
      it, &attr,
      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  if (error != 0) fail("the queue pair cannot be connected");
}

static void connect_queues(void) {
  tell(&mine, sizeof mine);
  hear(&theirs, sizeof theirs);
  connect_queue(qp, theirs.qp);
  connect_queue(second, theirs.second);
  for (int i = 0; i < RECEIVES; i += REFILL) post_receives(REFILL);
}

/* Both processes have come here. */
static void together(void) {
  char byte = 0;
  tell(&byte, 1);
  hear(&byte, 1);
}

/* ---- measuring ---- */

/* What is found at the end: the data at process 1, or at process 0, or the sum at process 1. */
enum found { WRITTEN, READ, ADDED };

struct row {
  const char *name;
  void (*run)(long iterations);
  int together; /* both processes run it */
  enum found found;
};

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

/* Where byte `i` of an operation lies in the window. */
static int place(int i) { return pieces == 1 ? i : i / piece * 2 * piece + i % piece; }

static void prepare(const struct row *row) {
  if (row->found == WRITTEN && rank == 0)
    for (int i = 0; i < size; i++) origin[i] = pattern(i);
  if (row->found == READ && rank == 1)
    for (int i = 0; i < size; i++) window[place(i)] = pattern(i);
}

static void verify(const struct row *row) {
  int arrived = 1;
  if (row->found == WRITTEN && rank == 1)
    for (int i = 0; i < size; i++) arrived &= window[place(i)] == pattern(i);
  if (row->found == READ && rank == 0)
    for (int i = 0; i < size; i++) arrived &= origin[i] == pattern(i);
  if (!arrived) fail("the data did not arrive");
  if (row->found != ADDED) return;
  double sum = added;
  if (rank == 0) tell(&sum, sizeof sum);
  else hear(&sum, sizeof sum);
  if (rank == 1 && *(double *)window != sum) fail("the sum is wrong");
}
