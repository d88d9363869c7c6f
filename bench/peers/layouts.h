/*
 * Rows of verbs.c whose bytes lie in pieces at process 1, and consecutively at process 0: for each of our schemes (hint
 * `noncontiguous`) the shortest sequence of verbs that does the same. Both processes know the layout.
 *
 * - "put-vector", "get-vector": a write or a read for each piece, all in one list, and the completion of the last;
 * - "…-pack": one write with immediate between staging memory of both; process 1 copies. A put is answered, since its
 *   origin waits until its bytes are in place; a get is asked for;
 * - "…-sgrs": sends that one device gathers into receives that the other scatters, on the second connection, as many
 *   pieces at a time as a list has entries. A put asks, and is told that the receives are posted; a get posts its
 *   receives, and asks.
 *
 * Requests and answers without data are writes of no bytes with immediate. With both processes on one core, who waits
 * yields: then what is measured is what both do.
 */

/* Posts one request for each piece. */
static void pieces_at_once(long n, enum ibv_wr_opcode opcode) {
  static struct ibv_send_wr list[DEPTH];
  static struct ibv_sge from[DEPTH];
  for (int i = 0; i < pieces; i++) {
    list[i] = request(opcode, piece, i == pieces - 1);
    from[i] = (struct ibv_sge){(uintptr_t)origin + i * piece, piece, origin_mr->lkey};
    list[i].sg_list = &from[i];
    list[i].wr.rdma.remote_addr = theirs.window + 2 * i * piece;
    list[i].next = i == pieces - 1 ? NULL : &list[i + 1];
  }
  for (long i = 0; i < n; i++) {
    post(list);
    completed();
  }
}

static void put_vector(long n) { pieces_at_once(n, IBV_WR_RDMA_WRITE); }
static void get_vector(long n) { pieces_at_once(n, IBV_WR_RDMA_READ); }

static void notify_staging(void) { notify_at(size, theirs.origin, theirs.origin_rkey); }

static void put_vector_pack(long n) {
  for (long i = 0; i < n; i++) {
    if (rank == 0) {
      notify_staging();
      notified();
    } else {
      notified();
      for (int p = 0; p < pieces; p++) memcpy(window + 2 * p * piece, origin + p * piece, piece);
      notify(0);
    }
  }
}

static void get_vector_pack(long n) {
  for (long i = 0; i < n; i++) {
    if (rank == 0) {
      notify(0);
      notified();
    } else {
      notified();
      for (int p = 0; p < pieces; p++) memcpy(origin + p * piece, window + 2 * p * piece, piece);
      notify_staging();
    }
  }
}

/* The messages of an operation: the entries of their lists at process 1, and the one at process 0. */
static int messages;
static struct ibv_sge gaps[DEPTH], dense[DEPTH];

static void cut(void) {
  messages = 0;
  for (int p = 0; p < pieces; p++) {
    if (p % entries == 0) dense[messages++] = (struct ibv_sge){(uintptr_t)origin + p * piece, 0, origin_mr->lkey};
    dense[messages - 1].length += piece;
    gaps[p] = (struct ibv_sge){(uintptr_t)window + 2 * p * piece, piece, window_mr->lkey};
  }
}

static struct ibv_sge *list_of(int message, int *length) {
  int left = pieces - message * entries;
  *length = rank == 0 ? 1 : left < entries ? left : entries;
  return rank == 0 ? &dense[message] : &gaps[message * entries];
}

static void send_messages(void) {
  struct ibv_send_wr list[DEPTH];
  memset(list, 0, messages * sizeof *list);
  for (int m = 0; m < messages; m++) {
    list[m].opcode = IBV_WR_SEND;
    list[m].sg_list = list_of(m, &list[m].num_sge);
    list[m].next = m == messages - 1 ? NULL : &list[m + 1];
  }
  list[messages - 1].send_flags = IBV_SEND_SIGNALED;
  struct ibv_send_wr *bad;
  if (ibv_post_send(second, list, &bad) != 0) fail("a message was refused");
}

static void receive_messages(void) {
  struct ibv_recv_wr list[DEPTH], *bad;
  memset(list, 0, messages * sizeof *list);
  for (int m = 0; m < messages; m++) {
    list[m].sg_list = list_of(m, &list[m].num_sge);
    list[m].next = m == messages - 1 ? NULL : &list[m + 1];
  }
  if (ibv_post_recv(second, list, &bad) != 0) fail("a receive was refused");
}

static void received_messages(void) {
  for (int m = 0; m < messages; m++) wait_for(scattered, "a message was lost");
}

static void put_vector_sgrs(long n) {
  cut();
  for (long i = 0; i < n; i++) {
    if (rank == 0) {
      notify(0);
      notified();
      send_messages();
      completed();
    } else {
      notified();
      receive_messages();
      notify(0);
      received_messages();
    }
  }
}

static void get_vector_sgrs(long n) {
  cut();
  for (long i = 0; i < n; i++) {
    if (rank == 0) {
      receive_messages();
      notify(0);
      received_messages();
    } else {
      notified();
      send_messages();
      completed();
    }
  }
}
