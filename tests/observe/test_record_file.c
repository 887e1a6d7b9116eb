/* SPDX-License-Identifier: MIT */
/* tests/observe/test_record_file.c: the files that TENON_RECORD leaves behind: of a program, of its
 * children, of programs that share an environment. Nothing is dispatched in the test's own process,
 * so that each child is a fresh program. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "kit.h"

static char folder[64], path[96];

static void remove_folder(void)
{
    DIR *dir = opendir(folder);
    struct dirent *e;
    while (dir && (e = readdir(dir)) != NULL)
        (void)!unlinkat(dirfd(dir), e->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(folder);
}

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/tenon-records-XXXXXX");
    ASSERT(mkdtemp(folder) != NULL);
    test_at_end(remove_folder);
    snprintf(path, sizeof path, "%s/run.rec", folder);
}

static int count_files(void)
{
    int n = 0;
    DIR *dir = opendir(folder);
    struct dirent *e;
    while (dir && (e = readdir(dir)) != NULL)
        n += e->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return n;
}

static void call_neg(void)
{
    tn_tensor *x = kit_ones(TN_CPU), *y = NULL;
    ASSERT_OK(tn_neg(x, &y));
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}

static void expect_record(const char *name, int pid, const char *what)
{
    char text_pid[32], *text = NULL;
    snprintf(text_pid, sizeof text_pid, "process %d", pid);
    test_note("%s", name);
    ASSERT_OK(tn_doctor_file(name, NULL, &text));
    EXPECT_CONTAINS(text, text_pid);
    EXPECT_CONTAINS(text, what);
    EXPECT(!strstr(text, "damaged"));
    tn_string_free(text);
}

/* ---- a parent and its children ---- */

static int pids[3]; /* shared with the children */
static int *shared_pids;

static int program_with_children(void *arg)
{
    (void)arg;
    setenv("TENON_RECORD", path, 1);
    call_neg();
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0) {
            shared_pids[1 + i] = (int)getpid();
            tn_tensor *x = kit_ones(TN_CPU), *y = NULL;
            (void)!(i ? tn_exp(x, &y) : tn_sin(x, &y));
            _exit(0); /* nobody says that the program ends */
        }
        waitpid(child, NULL, 0);
    }
    if (fork() == 0) { /* one that has nothing to do with us */
        execlp("true", "true", (char *)NULL);
        _exit(1);
    }
    wait(NULL);
    shared_pids[0] = (int)getpid();
    call_neg();
    exit(0);
}

TEST(each_forked_child_leaves_a_record_of_its_own)
{
    make_folder();
    shared_pids = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT(shared_pids != MAP_FAILED);
    EXPECT_EQ_INT(run_in_child(program_with_children, NULL, 30), 0);
    memcpy(pids, shared_pids, sizeof pids);
    munmap(shared_pids, 4096);
    char name[128];
    expect_record(path, pids[0], "aten::neg");
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s.%d", path, pids[1 + i]);
        expect_record(name, pids[1 + i], i ? "aten::exp" : "aten::sin");
    }
    EXPECT_EQ_INT(count_files(), 3); /* the one that ran another program left none */
}

static int forks_elsewhere(void *arg)
{
    (void)arg;
    ASSERT(chdir(folder) == 0);
    setenv("TENON_RECORD", "near.rec", 1);
    call_neg();
    ASSERT(chdir("/") == 0);
    if (fork() == 0) {
        call_neg();
        _exit(0);
    }
    wait(NULL);
    return 0;
}

TEST(a_name_without_a_folder_means_the_folder_where_the_program_began)
{
    make_folder();
    EXPECT_EQ_INT(run_in_child(forks_elsewhere, NULL, 30), 0);
    EXPECT_EQ_INT(count_files(), 2);
}

static void stay_with_record(void *arg)
{
    (void)arg;
    setenv("TENON_RECORD", path, 1);
    (void)kit_call(kit_op("stays", TN_KEY_CPU, kit_stays), kit_ones(TN_CPU));
}

TEST(a_file_that_another_program_writes_is_not_touched)
{
    make_folder();
    pid_t first = kit_begin(stay_with_record, NULL), second = kit_begin(stay_with_record, NULL);
    char name[128];
    snprintf(name, sizeof name, "%s.%d", path, (int)second);
    KIT_EXPECT_ALL(first, false, "inside the kernel of kit::stays");
    KIT_EXPECT_ALL(second, false, "inside the kernel of kit::stays");
    kit_end(first);
    kit_end(second);
    expect_record(path, (int)first, "; that is where the record stops");
    tn_doctor_opts opts = TN_DOCTOR_OPTS_INIT;
    opts.json = true;
    char *text = NULL;
    ASSERT_OK(tn_doctor_file(path, &opts, &text));
    EXPECT_CONTAINS(text, "\"verdict\": {\"kind\": \"kernel\"");
    EXPECT(!strstr(text, ",;"));
    tn_string_free(text);
    expect_record(name, (int)second, "that is where the record stops");
}

/* ---- a program that is killed ---- */

static tn_status saves_and_stays(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)args, (void)rets;
    char copy[sizeof path + 8];
    snprintf(copy, sizeof copy, "%s.copy", path);
    ASSERT_OK(tn_recorder_save(copy));
    return kit_stays(call, args, rets);
}

static void stay_in_kernel(void *arg)
{
    (void)arg;
    setenv("TENON_RECORD", path, 1);
    (void)!kit_call(kit_op("stays", TN_KEY_CPU, saves_and_stays), kit_ones(TN_CPU));
}

static char *record_text(const char *ending, bool json)
{
    char name[sizeof path + 8], *text = NULL;
    tn_doctor_opts opts = TN_DOCTOR_OPTS_INIT;
    opts.json = json;
    snprintf(name, sizeof name, "%s%s", path, ending);
    ASSERT_OK(tn_doctor_file(name, &opts, &text));
    EXPECT_CONTAINS(text, "inside the kernel of kit::stays");
    return text;
}

TEST(a_killed_program_has_durations_up_to_its_last_sign_of_life)
{
    make_folder();
    pid_t child = kit_begin(stay_in_kernel, NULL);
    char *text = record_text("", false);
    EXPECT_CONTAINS(text, "its program still writes it");
    EXPECT_CONTAINS(text, ", inside the kernel, for ");
    EXPECT(!strstr(text, "at least"));
    tn_string_free(text);
    kit_end(child);
    text = record_text("", false);
    EXPECT_CONTAINS(text, "its last sign of life: 20");
    EXPECT_CONTAINS(text, "inside the kernel, for at least ");
    EXPECT_CONTAINS(text, "that is where the record stops");
    tn_string_free(text);
    text = record_text("", true);
    EXPECT_CONTAINS(text, "\"in_use\": false, \"seconds_are_least\": true");
    tn_string_free(text);
    text = record_text(".copy", false); /* which was made when it was made */
    EXPECT_CONTAINS(text, ", inside the kernel, for ");
    EXPECT(!strstr(text, "at least"));
    tn_string_free(text);
}

static int program_with_number(void *arg)
{
    (void)arg;
    char pattern[128];
    snprintf(pattern, sizeof pattern, "%s/%%p.rec", folder);
    setenv("TENON_RECORD", pattern, 1);
    call_neg();
    if (fork() == 0) {
        call_neg();
        _exit(0);
    }
    wait(NULL);
    return 0;
}

TEST(a_name_may_have_the_number_of_the_process)
{
    make_folder();
    EXPECT_EQ_INT(run_in_child(program_with_number, NULL, 30), 0);
    EXPECT_EQ_INT(count_files(), 2);
}

static int program_over_old_file(void *arg)
{
    setenv("TENON_RECORD", arg, 1);
    call_neg();
    return 0;
}

TEST(what_an_ended_program_left_is_replaced_and_what_is_no_file_is_left_alone)
{
    make_folder();
    int fd = open(path, O_CREAT | O_RDWR, 0600);
    ASSERT(fd >= 0 && ftruncate(fd, 8192) == 0);
    char *old = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ASSERT(old != MAP_FAILED);
    EXPECT_EQ_INT(run_in_child(program_over_old_file, path, 30), 0);
    old[5000] = 1; /* still there, for whoever maps it */
    munmap(old, 8192);
    close(fd);
    char *text = NULL;
    EXPECT_OK(tn_doctor_file(path, NULL, &text));
    EXPECT_CONTAINS(text, "aten::neg");
    tn_string_free(text);
    /* A program goes on without a file. */
    char nowhere[] = "/nowhere/at/all", device[] = "/dev/null", is_folder[64];
    memcpy(is_folder, folder, sizeof folder);
    EXPECT_EQ_INT(run_in_child(program_over_old_file, nowhere, 30), 0);
    EXPECT_EQ_INT(run_in_child(program_over_old_file, device, 30), 0);
    EXPECT_EQ_INT(run_in_child(program_over_old_file, is_folder, 30), 0);
    struct stat st;
    EXPECT(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
    EXPECT_EQ_INT(count_files(), 1);
}

/* ---- where there is no room ---- */

static char said_path[96];

/* What a program says on stderr, with TENON_RECORD and a limit on the size of files. */
typedef struct narrow {
    const char *record;
    rlim_t limit; /* 0: none */
    bool forks;
} narrow;

static int program_in_narrow_place(void *arg)
{
    const narrow *n = arg;
    int fd = open(said_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(fd, STDERR_FILENO);
    struct rlimit limit = {n->limit, RLIM_INFINITY};
    if (n->limit && setrlimit(RLIMIT_FSIZE, &limit) != 0)
        return 8;
    if (n->record)
        setenv("TENON_RECORD", n->record, 1);
    call_neg();
    if (n->limit && n->limit <= 1 << 20) {
        char copy[128];
        snprintf(copy, sizeof copy, "%s.copy", path);
        if (tn_recorder_save(copy) == TN_OK)
            return 7;
    }
    if (!n->forks)
        return 0;
    pid_t child = fork();
    if (child == 0) {
        call_neg();
        _exit(0);
    }
    int status = 9;
    waitpid(child, &status, 0);
    return status;
}

static void expect_said(narrow n, const char *what)
{
    char said[512];
    test_note("%s, limit %llu", n.record ? n.record : "no file", (unsigned long long)n.limit);
    EXPECT_EQ_INT(run_in_child(program_in_narrow_place, &n, 30), 0);
    int fd = open(said_path, O_RDONLY);
    ssize_t got = read(fd, said, sizeof said - 1);
    said[got > 0 ? got : 0] = '\0';
    close(fd);
    unlink(said_path);
    if (what)
        EXPECT_CONTAINS(said, what);
    else
        EXPECT_STR(said, "");
}

TEST(a_limit_on_the_size_of_files_ends_no_program)
{
    make_folder();
    snprintf(said_path, sizeof said_path, "%s/said", folder);
    const rlim_t limits[] = {4096, 1 << 20, 5500 << 10, 5800 << 10};
    for (int i = 0; i < 4; i++)
        expect_said((narrow){NULL, limits[i], true}, NULL);
    for (int i = 0; i < 2; i++)
        expect_said((narrow){path, limits[i], true}, "File too large");
    EXPECT_EQ_INT(count_files(), 0); /* nothing empty is left behind */
}

TEST(a_record_that_cannot_be_written_is_said_once)
{
    make_folder();
    snprintf(said_path, sizeof said_path, "%s/said", folder);
    char too_long[3000];
    memset(too_long, 'x', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = '\0';
    expect_said((narrow){"/nowhere/at/all", 0, true},
                "[tenon recorder] no record in /nowhere/at/all: No such file or directory");
    expect_said((narrow){"/dev/null", 0, false}, "/dev/null: it is no ordinary file");
    expect_said((narrow){folder, 0, false}, "Is a directory");
    expect_said((narrow){too_long, 0, false}, "File name too long");
    expect_said((narrow){path, 0, true}, NULL);
}
