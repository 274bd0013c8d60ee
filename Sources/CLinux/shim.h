#pragma once
// What the Glibc module does not show, or not always: headers of the kernel, macros, and functions that glibc hides.
// Nothing in this file decides anything.
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

// Names the calling thread.
static inline void linux_name_thread(const void *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

static inline int linux_stream_socket(int family) {
  return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}
// Waits at a semaphore for at most some seconds.
static inline int linux_semaphore_wait(sem_t *semaphore, int seconds) {
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += seconds;
  return sem_timedwait(semaphore, &end);
}
// A flag of send(2): a peer that is gone is an error, and no signal.
static const int linux_no_signal = MSG_NOSIGNAL;
// A flag of recv(2).
static const int linux_do_not_wait = MSG_DONTWAIT;
