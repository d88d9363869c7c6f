/*
 * What two processes with a TCP connection take for a put or a get and its answer: the limit for rows over TCP.
 *
 *   sockets put|get/SIZE spin|sleep SAMPLES [MILLISECONDS]
 *
 * prints one line of JSON as rma.c does, in nanoseconds. "put" sends SIZE bytes and waits for one byte; "get" sends one
 * byte and waits for SIZE. With "spin" both processes look again and again, with "sleep" both wait in the kernel.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int flags;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static void receive_all(int fd, char *to, long bytes) {
  while (bytes > 0) {
    const ssize_t came = recv(fd, to, bytes, flags);
    if (came < 0 && errno == EAGAIN) continue;
    if (came <= 0) exit(came == 0 ? 0 : 1);
    to += came;
    bytes -= came;
  }
}

static void send_all(int fd, const char *from, long bytes) {
  while (bytes > 0) {
    const ssize_t left = send(fd, from, bytes, flags | MSG_NOSIGNAL);
    if (left < 0 && errno == EAGAIN) continue;
    if (left < 0) exit(1);
    from += left;
    bytes -= left;
  }
}

static void quick(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int main(int argc, char **argv) {
  const char *slash = argc > 3 ? strchr(argv[1], '/') : NULL;
  const long size = slash ? atol(slash + 1) : 0;
  if (size < 1) {
    fprintf(stderr, "usage: sockets put|get/SIZE spin|sleep SAMPLES [MILLISECONDS]\n");
    return 1;
  }
  const int get = argv[1][0] == 'g';
  flags = strcmp(argv[2], "spin") == 0 ? MSG_DONTWAIT : 0;
  const long asks = get ? 1 : size, answers = get ? size : 1;
  const int samples = atoi(argv[3]);
  const double block = (argc > 4 ? atof(argv[4]) : 20) / 1e3;
  char *buffer;
  if (posix_memalign((void **)&buffer, 4096, size + 1)) return 1;
  memset(buffer, 1, size + 1);

  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listening, (struct sockaddr *)&address, length) || listen(listening, 1)) return 1;
  getsockname(listening, (struct sockaddr *)&address, &length);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const pid_t parent = getpid();
  if (fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) return 1;
    const int served = accept(listening, NULL, NULL);
    quick(served);
    for (;;) {
      receive_all(served, buffer, asks);
      send_all(served, buffer, answers);
    }
  }
  if (connect(fd, (struct sockaddr *)&address, sizeof address)) return 1;
  quick(fd);

  printf("{\"row\":\"sockets-%s\",\"unit\":\"ns\",\"samples\":[", argv[1]);
  long n = 1;
  for (int s = -1; s < samples;) {
    const double start = now();
    for (long i = 0; i < n; i++) {
      send_all(fd, buffer, asks);
      receive_all(fd, buffer, answers);
    }
    const double took = now() - start;
    if (s < 0 && took < block) {
      n = took > block / 16 ? (long)(n * (block * 1.1 / took)) + 1 : n * 4;
      continue;
    }
    if (s >= 0) printf("%s%.1f", s ? "," : "", took / n * 1e9);
    s++;
  }
  printf("]}\n");
  return 0;
}
