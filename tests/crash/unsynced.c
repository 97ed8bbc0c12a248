/* Records what part of a directory tree has reached the disk.
 *
 * A killed process leaves its writes in the page cache, so a kill alone never loses data. This library, preloaded into
 * the server, writes a journal of what was synced. After the kill the test rebuilds the tree from it, as a power loss
 * would have left it: each file as long as it was at its last sync, each directory with the names it had at its own.
 *
 *   UNSYNCED_ROOT      the tree to record, an absolute path without links in it
 *   UNSYNCED_JOURNAL   the journal, outside the tree; lines are appended
 *   UNSYNCED_GRAVE     a directory outside the tree, on the same file system
 *
 *   S 4711 8192        the file with inode 4711 is durable up to 8,192 bytes
 *   T 4711 0           it was truncated to 0 bytes; bytes beyond are no longer durable
 *   D /tmp/t/data      the names in this directory are durable: one line each, then a full stop
 *   E 4711 f CURRENT
 *   E 4712 d store
 *   .
 *
 * A line is written after the sync has returned and before the caller continues: everything that the server
 * acknowledges afterwards is in the journal. Lengths and names are read before the sync begins: what is added while it
 * runs is not counted. Writes need no hook, because only their effect on the length matters. A removed or replaced file
 * keeps a link in the grave directory: its removal may not be durable, and its inode number must not be reused.
 *
 * Not recorded: overwrites of synced bytes (the store only appends), and files that stdio opens itself (the store's
 * human-readable log, which counts as never synced). sync_file_range guarantees nothing and is not hooked.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char root[PATH_MAX];
static size_t root_length;
static char grave[PATH_MAX];
static int journal = -1;

__attribute__((constructor)) static void start(void) {
    const char *tree = getenv("UNSYNCED_ROOT"), *file = getenv("UNSYNCED_JOURNAL"), *grave_dir = getenv("UNSYNCED_GRAVE");
    if (!tree || !file || !grave_dir) return;
    snprintf(root, sizeof root, "%s", tree);
    snprintf(grave, sizeof grave, "%s", grave_dir);
    journal = (int)syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (journal >= 0) root_length = strlen(root);
}

/* One call per entry, so that entries of different threads do not mix. Without a journal the test is void: abort. */
static void note(const char *text, size_t length) {
    if (write(journal, text, length) != (ssize_t)length) abort();
}

static void note_length(char what, const struct stat *file, off_t length) {
    char line[64];
    int written = snprintf(line, sizeof line, "%c %llu %lld\n", what, (unsigned long long)file->st_ino, (long long)length);
    note(line, (size_t)written);
}

static int is_watched(const char *path) {
    return root_length && strncmp(path, root, root_length) == 0 && (path[root_length] == '/' || !path[root_length]);
}

/* The path of a descriptor; false if it is outside the recorded tree. */
static int watched_path(int fd, char *path) {
    char link[64];
    if (!root_length) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_watched(path);
}

/* Syncs */

struct text {
    char *bytes;
    size_t length, capacity;
};

static void append(struct text *text, const char *format, ...) {
    va_list args;
    if (text->capacity - text->length < NAME_MAX + 64) {
        text->capacity = text->capacity * 2 + PATH_MAX;
        text->bytes = realloc(text->bytes, text->capacity);
        if (!text->bytes) abort();
    }
    va_start(args, format);
    text->length += (size_t)vsnprintf(text->bytes + text->length, text->capacity - text->length, format, args);
    va_end(args);
}

static struct text names_in(const char *path) {
    struct text text = {0};
    text.capacity = 2 * PATH_MAX;
    text.bytes = malloc(text.capacity);
    DIR *directory = opendir(path);
    if (!text.bytes || !directory) abort();
    append(&text, "D %s\n", path);
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        append(&text, "E %llu %c %s\n", (unsigned long long)entry->d_ino, entry->d_type == DT_DIR ? 'd' : 'f', entry->d_name);
    }
    append(&text, ".\n");
    closedir(directory);
    return text;
}

static int sync_directory(int fd, const char *path, long sync_call) {
    struct text names = names_in(path);
    int result = (int)syscall(sync_call, fd);
    int error = errno;
    if (result == 0) note(names.bytes, names.length);
    free(names.bytes);
    errno = error;
    return result;
}

static int sync_any(int fd, long sync_call) {
    char path[PATH_MAX];
    struct stat file;
    if (!watched_path(fd, path) || fstat(fd, &file) != 0) return (int)syscall(sync_call, fd);
    if (S_ISDIR(file.st_mode)) return sync_directory(fd, path, sync_call);
    int result = (int)syscall(sync_call, fd);
    if (result == 0) note_length('S', &file, file.st_size);
    return result;
}

int fsync(int fd) { return sync_any(fd, SYS_fsync); }
int fdatasync(int fd) { return sync_any(fd, SYS_fdatasync); }

/* Truncations */

static void note_truncation(int fd, off_t length) {
    char path[PATH_MAX];
    struct stat file;
    int error = errno;
    if (watched_path(fd, path) && fstat(fd, &file) == 0 && S_ISREG(file.st_mode)) note_length('T', &file, length);
    errno = error;
}

int ftruncate(int fd, off_t length) {
    int result = (int)syscall(SYS_ftruncate, fd, length);
    if (result == 0) note_truncation(fd, length);
    return result;
}

int ftruncate64(int fd, off64_t length) { return ftruncate(fd, length); }

static int open_any(int at, const char *path, int flags, mode_t mode) {
    int fd = (int)syscall(SYS_openat, at, path, flags, mode);
    if (fd >= 0 && (flags & O_TRUNC)) note_truncation(fd, 0);
    return fd;
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
int creat(const char *path, mode_t mode) { return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

/* Removals */

/* Keeps a link to a file that is about to lose its name. */
static void keep_link(int at, const char *path) {
    char full[2 * PATH_MAX], link_path[PATH_MAX + 32];
    struct stat file;
    int error = errno;
    if (!root_length || fstatat(at, path, &file, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(file.st_mode)) goto done;
    if (path[0] == '/') {
        snprintf(full, sizeof full, "%s", path);
    } else {
        char directory[PATH_MAX];
        if (at == AT_FDCWD ? !getcwd(directory, sizeof directory) : !watched_path(at, directory)) goto done;
        snprintf(full, sizeof full, "%s/%s", directory, path);
    }
    snprintf(link_path, sizeof link_path, "%s/%llu", grave, (unsigned long long)file.st_ino);
    if (is_watched(full) && linkat(at, path, AT_FDCWD, link_path, 0) != 0 && errno != EEXIST) abort();
done:
    errno = error;
}

static int unlink_any(int at, const char *path, int flags) {
    if (!(flags & AT_REMOVEDIR)) keep_link(at, path);
    return (int)syscall(SYS_unlinkat, at, path, flags);
}

static int rename_any(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    keep_link(to_at, to);
    return (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags);
}

int unlink(const char *path) { return unlink_any(AT_FDCWD, path, 0); }
int unlinkat(int at, const char *path, int flags) { return unlink_any(at, path, flags); }
int rename(const char *from, const char *to) { return rename_any(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int from_at, const char *from, int to_at, const char *to) { return rename_any(from_at, from, to_at, to, 0); }
int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags) { return rename_any(from_at, from, to_at, to, flags); }

int remove(const char *path) {
    int result = unlink_any(AT_FDCWD, path, 0);
    return result != 0 && errno == EISDIR ? unlink_any(AT_FDCWD, path, AT_REMOVEDIR) : result;
}
