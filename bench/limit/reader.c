// The physical limit that the instrument's event loop is compared with: the least
// that a client can do to stamp events of a beacon (see beacon/beacon.go). One
// thread, epoll, a kernel stamp for each read; it sweeps the sockets, sleeps for a
// poll interval when there was nothing, and finds each event's time of sending by
// a plain search. No recording, no understanding, no chunk decoding.
//
//   reader ADDRESS TARGET STREAMS EVENTS POLL_US
//
// opens STREAMS connections, posts one request to TARGET on each, reads EVENTS
// events of each, and prints a line of JSON. Errors are stamp - time of sending.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { buffer = 64 << 10, tail = 1 << 10, batch = 256, digits = 19 };

struct stream {
	int fd, kept, done;
	char rest[tail]; // of an event that has not come whole
};

static int64_t wall(void) {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static double cpu(void) {
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

// peak_kib is the most memory that this process had. getrusage would count what
// had been there before exec.
static long peak_kib(void) {
	char line[128];
	long kib = 0;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "VmHWM: %ld", &kib) == 1) break;
	if (f) fclose(f);
	return kib;
}

static void fail(const char *what) {
	perror(what);
	exit(1);
}

static int ascending(const void *a, const void *b) {
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

// percentiles prints those of n errors, by the rank ceil(n p).
static void percentiles(const char *name, int64_t *v, int64_t n) {
	static const double p[] = {.5, .99, .999, 1};
	qsort(v, n, sizeof *v, ascending);
	printf(",\"%s\":[", name);
	for (int i = 0; i < 4; i++) {
		int64_t rank = (int64_t)(n * p[i]);
		if (rank < n * p[i]) rank++;
		printf("%s%lld", i ? "," : "", (long long)(n ? v[rank ? rank - 1 : 0] : 0));
	}
	printf("]");
}

// receive reads what a socket has and gives the kernel's stamp of it.
static int receive(int fd, char *to, int64_t *stamp) {
	char control[128];
	struct iovec v = {to, buffer};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
	int n = recvmsg(fd, &m, MSG_DONTWAIT);
	if (n > 0)
		for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h))
			if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_TIMESTAMPNS) {
				struct timespec t;
				memcpy(&t, CMSG_DATA(h), sizeof t);
				*stamp = t.tv_sec * 1000000000LL + t.tv_nsec;
			}
	return n;
}

static int64_t most, events, reads, *by_kernel, *by_user;

// take finds the whole events in what has come and keeps the rest.
static void take(struct stream *s, char *from, char *end, int64_t stamp, int64_t now) {
	for (;;) {
		char *blank = memmem(from, end - from, "\n\n", 2);
		if (!blank) break;
		char *time = memmem(from, blank - from, "\"ts\":", 5);
		if (time && blank - time > 5 + digits) {
			int64_t sent = 0;
			for (int i = 0; i < digits; i++) sent = sent * 10 + (time[5 + i] - '0');
			if (events < most) by_kernel[events] = stamp - sent, by_user[events] = now - sent;
			events++;
		} else if (memmem(from, blank - from, "[DONE]", 6)) {
			s->done = 1;
		}
		from = blank + 2;
	}
	s->kept = end - from <= tail ? end - from : 0;
	memcpy(s->rest, from, s->kept);
}

int main(int argc, char **argv) {
	if (argc != 6) {
		fprintf(stderr, "usage: reader ADDRESS TARGET STREAMS EVENTS POLL_US\n");
		return 2;
	}
	char *colon = strchr(argv[1], ':');
	if (!colon) return 2;
	*colon = 0;
	int n = atoi(argv[3]), poll_us = atoi(argv[5]), one = 1;
	most = (int64_t)n * atoi(argv[4]);
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(colon + 1))};
	inet_pton(AF_INET, argv[1], &to.sin_addr);
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	struct stream *all = calloc(n, sizeof *all);
	by_kernel = calloc(most, sizeof *by_kernel), by_user = calloc(most, sizeof *by_user);
	char *in = malloc(buffer + tail), request[1024];
	int length = snprintf(request, sizeof request, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", argv[2], argv[1]);
	int set = epoll_create1(0);
	double before = cpu();
	for (int i = 0; i < n; i++) {
		struct stream *s = &all[i];
		s->fd = socket(AF_INET, SOCK_STREAM, 0);
		if (s->fd < 0) fail("socket");
		setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		setsockopt(s->fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
		if (connect(s->fd, (void *)&to, sizeof to)) fail("connect");
		if (write(s->fd, request, length) != length) fail("write");
		struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data.u32 = i};
		if (epoll_ctl(set, EPOLL_CTL_ADD, s->fd, &e)) fail("epoll_ctl");
	}
	double ready = cpu();
	int64_t first = 0, last = 0, limit = wall() + 60000000000LL;
	double start = 0;
	struct epoll_event found[batch];
	for (int open = n; open > 0 && wall() < limit;) {
		int k = epoll_wait(set, found, batch, poll_us ? 0 : 200);
		if (k == 0 && poll_us) {
			struct timespec nap = {0, poll_us * 1000L};
			nanosleep(&nap, NULL);
			continue;
		}
		for (int j = 0; j < k; j++) {
			struct stream *s = &all[found[j].data.u32];
			int64_t stamp = 0;
			memcpy(in, s->rest, s->kept);
			int got = receive(s->fd, in + s->kept, &stamp);
			if (got < 0 && errno == EAGAIN) continue;
			if (got <= 0) s->done = 1;
			reads++;
			int64_t had = events, now = wall();
			if (got > 0) take(s, in, in + s->kept + got, stamp, now);
			if (events > had) {
				if (!had) first = now, start = cpu();
				last = now;
			}
			if (s->done) open--, close(s->fd);
		}
	}
	double end = cpu();
	printf("{\"events\":%lld,\"wanted\":%lld,\"reads\":%lld,\"span_ns\":%lld,\"cpu_ns\":%.0f,\"setup_cpu_ns\":%.0f,\"rss_kib\":%ld",
	       (long long)events, (long long)most, (long long)reads, (long long)(last - first), (end - start) * 1e9, (ready - before) * 1e9, peak_kib());
	if (events > most) events = most;
	percentiles("error_ns", by_kernel, events);
	percentiles("user_error_ns", by_user, events);
	printf("}\n");
	return events == most ? 0 : 1;
}
