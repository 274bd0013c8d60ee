#pragma once
// What the Glibc module does not show: headers of the kernel, and functions that need macros or that glibc hides. Their
// headers are included in the source alone, because the types of a header belong to one module.
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

// Names the calling thread.
void linux_name_thread(const void *_Nullable name);
// Renames a file. Returns -1 and `errno` if the new name is taken, or if the file system cannot check that (EINVAL).
int linux_rename_to_new_name(const char *_Nonnull source, const char *_Nonnull target);
// Gives a file a length, with all of its blocks. Returns -1 and `errno` if the file system cannot reserve blocks.
int linux_allocate(int file, long length);
// Returns a socket of `SOCK_STREAM` that does not block and is closed by `exec`, or -1 and `errno`.
int linux_stream_socket(int family);
// Waits at a `sem_t` for at most some seconds. Returns -1 and `errno` if it was not posted.
int linux_semaphore_wait(void *_Nonnull semaphore, int seconds);
// A flag of send(2): a peer that is gone is an error, and no signal.
extern const int linux_no_signal;
// A flag of recv(2): the call does not wait.
extern const int linux_do_not_wait;
