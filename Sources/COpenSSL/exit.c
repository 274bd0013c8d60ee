// Threads may be at work when a process ends: the event loops of this library are, whenever `main` returns while a
// session is alive or is just being released. OpenSSL frees what it shares between threads in a handler of `exit`, without
// asking whether one of them uses it, and a thread that ends at that moment frees the same memory a second time: the
// process aborts ("double free or corruption"). So nothing of OpenSSL is freed at the end; the system takes it all.
//
// Whoever initialises OpenSSL first decides this for the process, and URLSession initialises it as well: hence before `main`.

#include "shim.h"

__attribute__((constructor)) static void before_main(void) { openssl_stays_until_the_end(); }

int openssl_stays_until_the_end(void) { return OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL); }
