package docker

// The system calls that the profiles name. What stands nowhere is denied: ptrace, process_vm_*,
// keyrings, bpf, perf, userfaultfd, mounts, namespaces, modules, SysV and POSIX queues, handles, …

// runtimeCalls are what the Go runtime, its net package and the engine's own last steps before
// execve need.
var runtimeCalls = []string{
	// memory
	"brk", "madvise", "membarrier", "mincore", "mlock", "mmap", "mprotect", "mremap", "munlock", "munmap",
	// threads, signals, time
	"clock_getres", "clock_gettime", "clock_nanosleep", "exit", "exit_group", "futex", "get_robust_list", "getcpu",
	"getpid", "getppid", "gettid", "getitimer", "gettimeofday", "kill", "nanosleep", "restart_syscall", "rseq",
	"rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend",
	"rt_sigtimedwait", "rt_tgsigqueueinfo", "sched_getaffinity", "sched_yield", "set_robust_list", "set_tid_address",
	"setitimer", "sigaltstack", "tgkill", "timer_create", "timer_delete", "timer_getoverrun", "timer_gettime",
	"timer_settime", "tkill", "wait4", "waitid",
	// the process itself
	"capget", "capset", "execve", "getegid", "geteuid", "getgid", "getgroups", "getpgid", "getrandom", "getresgid",
	"getresuid", "getrlimit", "getrusage", "getsid", "getuid", "pidfd_open", "pidfd_send_signal", "prctl", "setgid",
	"setgroups", "setpgid", "setresgid", "setresuid", "setrlimit", "setsid", "setuid", "sysinfo", "uname",
	// descriptors
	"close", "close_range", "dup", "dup3", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "eventfd2",
	"faccessat", "faccessat2", "fadvise64", "fchdir", "chdir", "flock", "fstat", "fstatfs", "getcwd",
	"getdents64", "ioctl", "lseek", "newfstatat", "pipe2", "ppoll", "pread64", "preadv", "preadv2", "pselect6",
	"pwrite64", "pwritev", "pwritev2", "read", "readlinkat", "readv", "sendfile", "splice", "statfs", "statx", "tee",
	"umask", "write", "writev",
	// sockets, once they are open
	"accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen", "recvfrom", "recvmmsg",
	"recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown",
}

// programCalls are what command-line programs need besides: files, their attributes, processes.
var programCalls = []string{
	"copy_file_range", "execveat", "fallocate", "fchown", "fchownat", "fdatasync", "fgetxattr", "flistxattr",
	"fremovexattr", "fsetxattr", "fsync", "ftruncate", "futex_waitv", "get_mempolicy", "getpriority", "getxattr",
	"inotify_add_watch", "inotify_init1", "inotify_rm_watch", "ioprio_get", "landlock_add_rule",
	"landlock_create_ruleset", "landlock_restrict_self", "lgetxattr", "linkat", "listxattr", "llistxattr",
	"lremovexattr", "lsetxattr", "memfd_create", "mkdirat", "mlock2", "mlockall", "msync", "munlockall", "pkey_alloc",
	"pkey_free", "pkey_mprotect", "readahead", "removexattr", "renameat", "renameat2", "sched_get_priority_max",
	"sched_get_priority_min", "sched_getattr", "sched_getparam", "sched_getscheduler", "sched_rr_get_interval",
	"seccomp", "setfsgid", "setfsuid", "setregid", "setreuid", "setxattr", "signalfd4", "symlinkat",
	"sync_file_range", "timerfd_create", "timerfd_gettime", "timerfd_settime", "times", "truncate", "unlinkat",
	"utimensat", "vmsplice",
}

// oldCalls are calls that amd64 still has and later architectures never got.
var oldCalls = []string{
	"access", "alarm", "arch_prctl", "chown", "dup2", "epoll_create", "epoll_wait", "eventfd", "fork", "futimesat",
	"getdents", "getpgrp", "inotify_init", "lchown", "link", "lstat", "mkdir", "pause", "pipe", "poll", "readlink",
	"rename", "rmdir", "select", "signalfd", "stat", "symlink", "time", "unlink", "utime", "utimes", "vfork",
}

// missingCalls answer ENOSYS. The arguments of clone3 and openat2 stand behind pointers, where no
// filter sees them; who asks for the rest must find another way rather than fail.
var missingCalls = []string{
	"cachestat", "clone3", "io_cancel", "io_destroy", "io_getevents", "io_pgetevents", "io_setup", "io_submit",
	"io_uring_enter", "io_uring_register", "io_uring_setup", "map_shadow_stack", "memfd_secret", "mseal",
	"name_to_handle_at", "openat2", "process_madvise", "process_mrelease", "set_mempolicy_home_node",
}
