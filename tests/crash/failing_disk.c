/* A disk that fails while a file exists.
 *
 * Preloaded into the server. While the control file exists, calls that change something below a directory fail with the
 * error that the file names, as a full disk, a broken one or one that was mounted read-only would fail them. Reads work.
 *
 *   FAILING_ROOT      the tree on the failing disk, an absolute path without links in it
 *   FAILING_CONTROL   the control file, outside the tree: its text is ENOSPC, EIO or EROFS
 *
 *            write                                create a file   sync   rename, remove, truncate
 *   ENOSPC   half of the bytes, then the error    the error       works  works
 *   EIO      half of the bytes, then the error    works           fails  works
 *   EROFS    fails                                fails           works  fails
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static char root[PATH_MAX], control[PATH_MAX];
static size_t root_length;

__attribute__((constructor)) static void start(void) {
    const char *tree = getenv("FAILING_ROOT"), *file = getenv("FAILING_CONTROL");
    if (!tree || !file) return;
    snprintf(root, sizeof root, "%s", tree);
    snprintf(control, sizeof control, "%s", file);
    root_length = strlen(root);
}

/* The error to fail with; 0 while the disk works. */
static int failure(void) {
    char text[16] = {0};
    int error = errno;
    int fd = root_length ? (int)syscall(SYS_openat, AT_FDCWD, control, O_RDONLY | O_CLOEXEC, 0) : -1;
    errno = error;
    if (fd < 0) return 0;
    ssize_t length = syscall(SYS_read, fd, text, sizeof text - 1);
    syscall(SYS_close, fd);
    errno = error;
    if (length <= 0) return 0;
    if (!strncmp(text, "ENOSPC", 6)) return ENOSPC;
    if (!strncmp(text, "EROFS", 5)) return EROFS;
    return EIO;
}

static int is_below_root(const char *path) {
    return root_length && strncmp(path, root, root_length) == 0 && (path[root_length] == '/' || !path[root_length]);
}

static int is_fd_below_root(int fd) {
    char link[64], path[PATH_MAX];
    if (!root_length) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_below_root(path);
}

static int fail(int error) {
    errno = error;
    return -1;
}

/* Writes */

static int write_failure(int fd) { return root_length && is_fd_below_root(fd) ? failure() : 0; }

ssize_t write(int fd, const void *bytes, size_t length) {
    int error = write_failure(fd);
    if (!error) return syscall(SYS_write, fd, bytes, length);
    if (error == EROFS || length < 2) return fail(error);
    return syscall(SYS_write, fd, bytes, length / 2) < 0 ? -1 : fail(error);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) {
    int error = write_failure(fd);
    return error ? fail(error) : syscall(SYS_pwrite64, fd, bytes, length, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) { return pwrite64(fd, bytes, length, at); }

ssize_t writev(int fd, const struct iovec *parts, int count) {
    int error = write_failure(fd);
    return error ? fail(error) : syscall(SYS_writev, fd, parts, count);
}

ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t length, unsigned flags) {
    int error = write_failure(to);
    return error ? fail(error) : syscall(SYS_copy_file_range, from, from_at, to, to_at, length, flags);
}

/* Syncs */

static int sync_any(int fd, long call) {
    return write_failure(fd) == EIO ? fail(EIO) : (int)syscall(call, fd);
}

int fsync(int fd) { return sync_any(fd, SYS_fsync); }
int fdatasync(int fd) { return sync_any(fd, SYS_fdatasync); }

/* Names */

static int open_any(int at, const char *path, int flags, mode_t mode) {
    if (is_below_root(path) && (flags & (O_CREAT | O_WRONLY | O_RDWR))) {
        int error = failure();
        int is_new = (flags & O_CREAT) && access(path, F_OK) != 0;
        if (error == EROFS || (error == ENOSPC && is_new)) return fail(error);
    }
    return (int)syscall(SYS_openat, at, path, flags, mode);
}

#define MODE_OF(flags)                              \
    mode_t mode = 0;                                \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {        \
        va_list args;                               \
        va_start(args, flags);                      \
        mode = va_arg(args, mode_t);                \
        va_end(args);                               \
    }

int open(const char *path, int flags, ...) { MODE_OF(flags) return open_any(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE_OF(flags) return open_any(AT_FDCWD, path, flags | O_LARGEFILE, mode); }
int openat(int at, const char *path, int flags, ...) { MODE_OF(flags) return open_any(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE_OF(flags) return open_any(at, path, flags | O_LARGEFILE, mode); }

static int is_read_only(const char *path) { return is_below_root(path) && failure() == EROFS; }

int rename(const char *from, const char *to) {
    return is_read_only(to) ? fail(EROFS) : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlink(const char *path) {
    return is_read_only(path) ? fail(EROFS) : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int mkdir(const char *path, mode_t mode) {
    int error = is_below_root(path) ? failure() : 0;
    return error == EROFS || error == ENOSPC ? fail(error) : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int ftruncate64(int fd, off64_t length) {
    return write_failure(fd) == EROFS ? fail(EROFS) : (int)syscall(SYS_ftruncate, fd, length);
}

int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }
