#define _GNU_SOURCE
#include "CLinux.h"

#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

void linux_name_thread(const void *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

int linux_rename_to_new_name(const char *source, const char *target) {
  return renameat2(AT_FDCWD, source, AT_FDCWD, target, RENAME_NOREPLACE);
}

int linux_allocate(int file, long length) { return fallocate(file, 0, 0, length); }

int linux_stream_socket(int family) { return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

int linux_semaphore_wait(void *semaphore, int seconds) {
  struct timespec end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_sec += seconds;
  // sem_timedwait would wait by the calendar, which can be set back by a day.
  return sem_clockwait(semaphore, CLOCK_MONOTONIC, &end);
}

const int linux_no_signal = MSG_NOSIGNAL;
const int linux_do_not_wait = MSG_DONTWAIT;
