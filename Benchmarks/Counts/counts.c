// Counts what a client does between two marks. Preloaded (LD_PRELOAD), it intercepts the allocator, libdispatch, the C
// library's system calls and `curl_multi_wakeup`. It also hooks the queue of Swift's global executor. ../README.md says
// what each name means and what cannot be seen.
//
// It is built with clang: the hook has Swift's calling convention.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { allocations, dispatches, global_jobs, main_jobs, loop_wakeups, system_calls, futexes, kinds };
static const char *const names[kinds] = {
  "allocations", "dispatches", "global_jobs", "main_jobs", "loop_wakeups", "system_calls", "futexes",
};
static atomic_long counts[kinds];

static inline void count(int kind) { atomic_fetch_add_explicit(&counts[kind], 1, memory_order_relaxed); }

// The next definition of a symbol, looked up once.
#define ORIGINAL(symbol)                                             \
  static __typeof__(&symbol) original;                               \
  if (!original) original = (__typeof__(&symbol))dlsym(RTLD_NEXT, #symbol)

// MARK: The allocator

// glibc's own names: `dlsym` allocates, so it cannot be asked where the allocator is.
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

void *malloc(size_t size) { count(allocations); return __libc_malloc(size); }
void *calloc(size_t number, size_t size) { count(allocations); return __libc_calloc(number, size); }
void *realloc(void *block, size_t size) { count(allocations); return __libc_realloc(block, size); }
void *aligned_alloc(size_t alignment, size_t size) { count(allocations); return __libc_memalign(alignment, size); }
void *memalign(size_t alignment, size_t size) { count(allocations); return __libc_memalign(alignment, size); }
int posix_memalign(void **block, size_t alignment, size_t size) {
  count(allocations);
  void *made = __libc_memalign(alignment, size);
  if (!made) return 12;  // ENOMEM
  *block = made;
  return 0;
}

// MARK: libdispatch

// Swift's global executor stands on libdispatch: what it hands over is counted as a job, not again here.
static _Thread_local int in_executor;

typedef struct dispatch_object *object;
typedef void (*work)(void *);
static inline void count_dispatch(void) { if (!in_executor) count(dispatches); }

#define DISPATCH(symbol, parameters, arguments)                      \
  void symbol parameters;                                            \
  void symbol parameters { ORIGINAL(symbol); count_dispatch(); original arguments; }

DISPATCH(dispatch_async, (object queue, void *block), (queue, block))
DISPATCH(dispatch_async_f, (object queue, void *context, work work), (queue, context, work))
DISPATCH(dispatch_barrier_async, (object queue, void *block), (queue, block))
DISPATCH(dispatch_barrier_async_f, (object queue, void *context, work work), (queue, context, work))
DISPATCH(dispatch_group_async, (object group, object queue, void *block), (group, queue, block))
DISPATCH(dispatch_group_async_f, (object group, object queue, void *context, work work), (group, queue, context, work))
DISPATCH(dispatch_after, (unsigned long long when, object queue, void *block), (when, queue, block))
DISPATCH(dispatch_after_f, (unsigned long long when, object queue, void *context, work work), (when, queue, context, work))

// MARK: Swift's executors

typedef __attribute__((swiftcall)) void (*enqueue)(void *job);
typedef __attribute__((swiftcall)) void (*enqueue_hook)(void *job, enqueue original);

__attribute__((swiftcall)) static void hand_to_pool(void *job, enqueue original) {
  count(global_jobs);
  in_executor++;
  original(job);
  in_executor--;
}
__attribute__((swiftcall)) static void hand_to_main(void *job, enqueue original) {
  count(main_jobs);
  in_executor++;
  original(job);
  in_executor--;
}

static void hook_executors(void) {
  enqueue_hook *pool = dlsym(RTLD_DEFAULT, "swift_task_enqueueGlobal_hook");
  enqueue_hook *main = dlsym(RTLD_DEFAULT, "swift_task_enqueueMainExecutor_hook");
  if (pool) *pool = hand_to_pool;
  if (main) *main = hand_to_main;
}

// MARK: The loop's eventfd

// Other threads wake the event loop by a write to the eventfd that it has created. libdispatch has eventfds, too. The
// name of the creating thread distinguishes them.
static _Atomic int loop_eventfd = -1;

static int is_loop(void) {
  static _Thread_local int known = -1;
  char name[16] = "";
  if (known < 0) known = prctl(PR_GET_NAME, name) == 0 && !strcmp(name, "http-engine");
  return known;
}

int eventfd(unsigned start, int flags) {
  ORIGINAL(eventfd);
  count(system_calls);
  int file = original(start, flags);
  if (is_loop()) loop_eventfd = file;
  return file;
}
ssize_t write(int file, const void *bytes, size_t size) {
  ORIGINAL(write);
  count(system_calls);
  if (file == loop_eventfd) count(loop_wakeups);
  return original(file, bytes, size);
}

// MARK: System calls

#define CALL(result, symbol, parameters, arguments)                  \
  result symbol parameters { ORIGINAL(symbol); count(system_calls); return original arguments; }

CALL(ssize_t, read, (int file, void *bytes, size_t size), (file, bytes, size))
CALL(ssize_t, readv, (int file, const struct iovec *parts, int number), (file, parts, number))
CALL(ssize_t, writev, (int file, const struct iovec *parts, int number), (file, parts, number))
CALL(ssize_t, send, (int file, const void *bytes, size_t size, int flags), (file, bytes, size, flags))
CALL(ssize_t, recv, (int file, void *bytes, size_t size, int flags), (file, bytes, size, flags))
CALL(ssize_t, sendmsg, (int file, const struct msghdr *message, int flags), (file, message, flags))
CALL(ssize_t, recvmsg, (int file, struct msghdr *message, int flags), (file, message, flags))
CALL(ssize_t, sendto, (int file, const void *bytes, size_t size, int flags, const struct sockaddr *to, socklen_t length), (file, bytes, size, flags, to, length))
CALL(ssize_t, recvfrom, (int file, void *bytes, size_t size, int flags, struct sockaddr *from, socklen_t *length), (file, bytes, size, flags, from, length))
CALL(int, poll, (struct pollfd *files, nfds_t number, int timeout), (files, number, timeout))
CALL(int, ppoll, (struct pollfd *files, nfds_t number, const struct timespec *timeout, const sigset_t *mask), (files, number, timeout, mask))
CALL(int, epoll_wait, (int file, struct epoll_event *events, int number, int timeout), (file, events, number, timeout))
CALL(int, epoll_ctl, (int file, int what, int other, struct epoll_event *event), (file, what, other, event))
CALL(int, socket, (int domain, int type, int protocol), (domain, type, protocol))
CALL(int, connect, (int file, const struct sockaddr *to, socklen_t length), (file, to, length))
CALL(int, setsockopt, (int file, int level, int name, const void *value, socklen_t length), (file, level, name, value, length))
CALL(int, getsockopt, (int file, int level, int name, void *value, socklen_t *length), (file, level, name, value, length))
CALL(int, close, (int file), (file))
CALL(int, timerfd_settime, (int file, int flags, const struct itimerspec *time, struct itimerspec *old), (file, flags, time, old))
CALL(int, eventfd_read, (int file, eventfd_t *value), (file, value))
CALL(int, eventfd_write, (int file, eventfd_t value), (file, value))

// Both take an optional last argument of any type; passed as a word, it reaches the kernel unchanged.
#define CALL_WITH_WORD(symbol, type)                                 \
  int symbol(int file, type what, ...) {                             \
    ORIGINAL(symbol);                                                \
    va_list rest;                                                    \
    va_start(rest, what);                                            \
    long word = va_arg(rest, long);                                  \
    va_end(rest);                                                    \
    count(system_calls);                                             \
    return original(file, what, word);                               \
  }
CALL_WITH_WORD(fcntl, int)
CALL_WITH_WORD(fcntl64, int)
CALL_WITH_WORD(ioctl, unsigned long)

// libdispatch makes its futex calls here; those inside the C library's locks cannot be seen.
long syscall(long number, ...) {
  ORIGINAL(syscall);
  long words[6];
  va_list rest;
  va_start(rest, number);
  for (int i = 0; i < 6; i++) words[i] = va_arg(rest, long);
  va_end(rest);
  count(number == SYS_futex ? futexes : system_calls);
  return original(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

// MARK: The marks

void counts_reset(void);
void counts_reset(void) {
  hook_executors();
  for (int kind = 0; kind < kinds; kind++) atomic_store(&counts[kind], 0);
}

// Writes what was counted since the last reset, as an object of JSON.
void counts_read(char *text, size_t size);
void counts_read(char *text, size_t size) {
  long seen[kinds];
  for (int kind = 0; kind < kinds; kind++) seen[kind] = atomic_load(&counts[kind]);
  size_t length = 0;
  for (int kind = 0; kind < kinds && length < size; kind++)
    length += snprintf(text + length, size - length, "%s\"%s\":%ld", kind ? "," : "{", names[kind], seen[kind]);
  if (length < size) snprintf(text + length, size - length, "}");
}
