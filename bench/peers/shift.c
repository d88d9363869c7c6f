/*
 * Cyclic shifts and total exchanges on an Ethernet by MPI's messages, and by sockets: what `npm run bench:ethernet`
 * has beside supersteps of onesided/bsp.
 *
 *   mpiexec -n 4 shift shift|total|write BYTES STEPS WARM [HOSTS]
 *
 * `shift`: MPI_Sendrecv to the next process; `total`: MPI_Alltoall; `write`: as shift, but one write(2) of everything
 * to a socket by a thread, while another one reads. HOSTS for `write`: the addresses of all, by rank, with commas.
 * After a barrier each step is timed by the process that takes longest. Process 0 prints one line of JSON:
 * { "row", "library", "samples": [milliseconds, ...] }.
 */
#include <arpa/inet.h>
#include <mpi.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "library.h"

#define CHECK(good, what)  \
  do {                     \
    if (!(good)) {         \
      perror(what);        \
      MPI_Abort(MPI_COMM_WORLD, 1); \
    }                      \
  } while (0)

enum { FIRST_PORT = 21500 };

static long bytes;
static int from_left, to_right;
static char *out, *in;

/* What other processes wait for in a barrier may leave only in this one's calls. */
static void progress(void) {
  int flag;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  usleep(100);
}

static _Atomic int ended;

static void *read_all(void *unused) {
  for (long have = 0; have < bytes;) {
    const ssize_t more = read(from_left, in + have, bytes - have);
    CHECK(more > 0, "read");
    have += more;
  }
  ended++;
  return unused;
}

static void *write_all(void *unused) {
  CHECK(write(to_right, out, bytes) == bytes, "write");
  ended++;
  return unused;
}

static void connect_ring(char *hosts, int rank, int size) {
  const int right = (rank + 1) % size;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(FIRST_PORT + rank)};
  const int on = 1, listening = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  CHECK(bind(listening, (struct sockaddr *)&address, sizeof address) == 0, "bind");
  CHECK(listen(listening, 1) == 0, "listen");
  MPI_Barrier(MPI_COMM_WORLD);
  char *host = strtok(hosts, ",");
  for (int i = 0; i < right && host != NULL; i++) host = strtok(NULL, ",");
  CHECK(host != NULL, "HOSTS");
  address.sin_port = htons(FIRST_PORT + right);
  CHECK(inet_pton(AF_INET, host, &address.sin_addr) == 1, host);
  to_right = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(connect(to_right, (struct sockaddr *)&address, sizeof address) == 0, "connect");
  struct pollfd waiting = {.fd = listening, .events = POLLIN};
  while (poll(&waiting, 1, 0) == 0) progress();
  from_left = accept(listening, NULL, NULL);
  CHECK(from_left >= 0, "accept");
  setsockopt(to_right, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  close(listening);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  CHECK(argc >= 5, "shift shift|total|write BYTES STEPS WARM [HOSTS]");
  const char *row = argv[1];
  bytes = atol(argv[2]);
  const int steps = atoi(argv[3]), warm = atoi(argv[4]);
  const int total = strcmp(row, "total") == 0, by_write = strcmp(row, "write") == 0;
  CHECK(!by_write || argc > 5, "HOSTS");
  const long all = total ? bytes * size : bytes;
  out = malloc(all);
  in = malloc(all);
  if (by_write) connect_ring(argv[5], rank, size);
  double *samples = malloc(steps * sizeof *samples);
  const int left = (rank - 1 + size) % size, right = (rank + 1) % size;
  for (int step = -warm; step < steps; step++) {
    const char value = (char)(1 + (step & 63)), mine = (char)(value + rank);
    memset(out, mine, all);
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    if (total) {
      MPI_Alltoall(out, (int)bytes, MPI_CHAR, in, (int)bytes, MPI_CHAR, MPI_COMM_WORLD);
    } else if (by_write) {
      pthread_t reader, writer;
      ended = 0;
      pthread_create(&reader, NULL, read_all, NULL);
      pthread_create(&writer, NULL, write_all, NULL);
      while (ended < 2) progress();
      pthread_join(reader, NULL);
      pthread_join(writer, NULL);
    } else {
      MPI_Sendrecv(out, (int)bytes, MPI_CHAR, right, 0, in, (int)bytes, MPI_CHAR, left, 0, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
    }
    double took = 1e3 * (MPI_Wtime() - began);
    for (long i = 0; i < all; i++) {
      const char expected = (char)(value + (total ? i / bytes : left));
      CHECK(in[i] == expected, "a byte is wrong");
    }
    MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (step >= 0) samples[step] = took;
  }
  if (rank == 0) {
    printf("{\"row\": \"%s\", \"library\": \"%s\", \"samples\": [", row, library_name());
    for (int i = 0; i < steps; i++) printf("%s%.4f", i == 0 ? "" : ", ", samples[i]);
    printf("]}\n");
    fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}
