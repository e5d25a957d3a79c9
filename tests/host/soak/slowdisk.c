/* A slow disk for every program that loads this library: each flush to the disk waits first.

   SLOWDISK_MS is the usual wait; one flush in SLOWDISK_RARE waits twenty times as long, as a disk does that collects its garbage. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static long number(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

static void wait_for_the_disk(void)
{
    static _Thread_local unsigned long state;
    long milliseconds = number("SLOWDISK_MS", 0), rare = number("SLOWDISK_RARE", 0);
    if (!milliseconds)
        return;
    if (!state)
        state = (unsigned long)&state ^ (unsigned long)time(NULL);
    state = state * 6364136223846793005UL + 1442695040888963407UL;
    if (rare && (state >> 33) % rare == 0)
        milliseconds *= 20;
    struct timespec wait = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    nanosleep(&wait, NULL);
}

int fsync(int descriptor)
{
    int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
    wait_for_the_disk();
    return real(descriptor);
}

int fdatasync(int descriptor)
{
    int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
    wait_for_the_disk();
    return real(descriptor);
}
