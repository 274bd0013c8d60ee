#pragma once
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

// Constants and functions that the Glibc module of Swift does not always show.
static inline int linux_stream_socket(int family) {
  return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}
static inline void linux_name_thread(const void *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }
// Waits at a semaphore for at most some seconds.
static inline int linux_semaphore_wait(sem_t *semaphore, int seconds) {
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += seconds;
  return sem_timedwait(semaphore, &end);
}
