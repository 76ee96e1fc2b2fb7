// Reads ten kernel files and the usage of a file system so many times a second, until it is killed, and does nothing
// with them: the least that a sampler can cost. With a second number it has so many children that sleep, and also reads
// the stat of each.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

static const char *files[] = {
	"/proc/stat", "/proc/meminfo", "/proc/diskstats", "/proc/net/dev", "/proc/loadavg", "/proc/vmstat",
	"/proc/pressure/cpu", "/proc/pressure/memory", "/proc/pressure/io", "/proc/self/stat",
};
enum { FILES = sizeof files / sizeof *files };

// child returns the open stat of a new process that sleeps until this one ends.
static int child(void) {
	char path[64];
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	return open(path, O_RDONLY);
}

int main(int argc, char **argv) {
	static char data[1 << 16];
	int children = argc > 2 ? atoi(argv[2]) : 0, all = FILES + children;
	int *fds = calloc(all, sizeof *fds);
	long wait = 1000000000L / (argc > 1 ? atol(argv[1]) : 1);
	struct timespec tick;
	struct statfs usage;

	for (int i = 0; i < FILES; i++)
		fds[i] = open(files[i], O_RDONLY);
	for (int i = FILES; i < all; i++)
		fds[i] = child();

	clock_gettime(CLOCK_MONOTONIC, &tick);
	for (;;) {
		tick.tv_nsec += wait;
		if (tick.tv_nsec >= 1000000000L) {
			tick.tv_nsec -= 1000000000L;
			tick.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &tick, 0);

		for (int i = 0; i < all; i++)
			if (fds[i] >= 0 && pread(fds[i], data, sizeof data, 0) < 0)
				data[0] = 0;
		statfs("/", &usage);
	}
}
