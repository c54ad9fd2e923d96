import errno
import platform
import signal
import struct
import subprocess
import sys

import pytest

from podium.search.sandbox.seccomp import (
    MACHINES,
    NUMBERS,
    Descriptors,
    allowed_numbers,
    filter_program,
)
from support.confined import IS_FILTERED, run_confined

filtered = pytest.mark.skipif(not IS_FILTERED, reason="this system has no such filter")
x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of x86-64")
REFUSED = [-1, errno.EPERM]
PAGE = 4096

NAMED = {
    "open": 2, "openat": 257, "openat2": 437, "creat": 85, "open_by_handle_at": 304, "stat": 4,
    "newfstatat": 262, "close": 3, "dup2": 33, "fcntl": 72, "ioctl": 16, "sendfile": 40,
    "socket": 41, "connect": 42, "sendto": 44, "sendmsg": 46, "bind": 49, "socketpair": 53,
    "clone": 56, "fork": 57, "vfork": 58, "execve": 59, "execveat": 322, "clone3": 435,
    "kill": 62, "tkill": 200, "tgkill": 234, "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297,
    "rt_sigaction": 13, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311,
    "pidfd_open": 434, "pidfd_send_signal": 424, "pidfd_getfd": 438, "process_madvise": 440,
    "sched_setaffinity": 203, "sched_setscheduler": 144, "setpriority": 141, "ioprio_set": 251,
    "setrlimit": 160, "kcmp": 312, "move_pages": 279, "migrate_pages": 256,
    "chmod": 90, "fchmodat": 268, "fchmodat2": 452, "chown": 92, "utimensat": 280, "utime": 132,
    "setxattr": 188, "fsetxattr": 190, "removexattr": 197, "truncate": 76, "unlink": 87,
    "rename": 82, "mkdir": 83, "symlink": 88, "mknod": 133, "chdir": 80, "chroot": 161,
    "shmget": 29, "shmat": 30, "msgget": 68, "semget": 64, "mq_open": 240, "memfd_create": 319,
    "fsopen": 430, "fsmount": 432, "open_tree": 428, "move_mount": 429, "mount": 165,
    "umount2": 166, "pivot_root": 155, "unshare": 272, "setns": 308, "keyctl": 250,
    "add_key": 248, "request_key": 249, "syslog": 103, "bpf": 321, "perf_event_open": 298,
    "io_uring_setup": 425, "io_uring_enter": 426, "userfaultfd": 323, "personality": 135,
    "setuid": 105, "setresuid": 117, "capset": 126, "prctl": 157, "arch_prctl": 158,
    "seccomp": 317, "modify_ldt": 154, "iopl": 172, "reboot": 169, "kexec_load": 246,
    "init_module": 175, "finit_module": 313, "swapon": 167, "sethostname": 170, "acct": 163,
    "ustat": 136, "lookup_dcookie": 212, "remap_file_pages": 216, "pkey_mprotect": 329,
    "mremap": 25, "nanosleep": 35, "timer_create": 222, "setitimer": 38, "inotify_init": 253,
    "fanotify_init": 300, "landlock_create_ruleset": 444, "memfd_secret": 447,
}  # fmt: skip
"""System calls of x86-64 that change or tell something beyond the process, and some more."""


PROBES = {"x86_64": {335, 336}}
"""uretprobe and uprobe: newer kernels ask no filter about them, and let nobody use them from
anywhere but the page that the kernel itself made for it."""


@filtered
def test_every_call_that_is_not_on_the_list_is_refused():
    machine = platform.machine()
    unlisted = sorted(set(range(501)) - allowed_numbers(machine) - PROBES.get(machine, set()))
    code, said = run_confined(f"say([[n, *call(n, 0, 0, 0, 0, 0, 0)] for n in {unlisted}])")
    assert code == 0
    assert said[0] == [[number, *REFUSED] for number in unlisted]


@filtered
@x86_64
@pytest.mark.parametrize("number", sorted(PROBES["x86_64"]))
def test_calls_that_no_filter_is_asked_about_are_refused_or_fatal(number):
    found = run_confined(f"say(call({number}, 0, 0, 0, 0, 0, 0))")
    assert found in ((0, [REFUSED]), (0, [[-1, errno.ENXIO]]), (-signal.SIGILL, []))


@filtered
@x86_64
def test_calls_that_reach_beyond_the_process_are_refused_by_name():
    code, said = run_confined(f"say({{k: call(n, 0, 0, 0) for k, n in {NAMED}.items()}})")
    assert code == 0
    assert {name for name, found in said[0].items() if found != REFUSED} == set()


@filtered
@x86_64
def test_another_process_is_out_of_reach():
    """Gives arguments that would do something, were they let through."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as other:
        program = f"""
info = struct.pack("iii116x", {signal.SIGUSR1}, 0, -1)
mask = struct.pack("Q", 1)
zeros = bytes(16)
say([call(129, target, {signal.SIGUSR1}, info), call(297, target, target, 10, info),
     call(62, target, 9), call(234, target, target, 9), call(424, 3, 9, None, 0),
     call(302, target, 7, zeros, None), call(302, target, 0, None, bytes(16)),
     call(203, target, 8, mask), call(204, target, 8, bytes(8)), call(141, 0, target, 19),
     call(228, (~target << 3) | 2, bytes(16)), call(310, target, None, 0, None, 0, 0)])
"""
        code, said = run_confined(program, other.pid, "import struct")
        is_alive = other.poll() is None
        other.kill()
    assert code == 0
    assert said[0] == [REFUSED] * 12
    assert is_alive


@filtered
@x86_64
def test_memory_is_its_own_and_never_writable_and_executable():
    program = f"""
page = call(9, 0, {PAGE}, 3, 0x22, -1, 0)
say(page[1])
say([call(9, 0, {PAGE}, 7, 0x22, -1, 0), call(9, 0, {PAGE}, 5, 0x22, -1, 0),
     call(9, 0, {PAGE}, 3, 0x21, -1, 0), call(9, 0, {PAGE}, 1, 0x02, file, 0),
     call(9, 0, {PAGE}, 3, 0x40022, -1, 0), call(10, page[0], {PAGE}, 7),
     call(10, page[0], {PAGE}, 6)])
say(call(10, page[0], {PAGE}, 5))
"""
    code, said = run_confined(program, before='file = os.open("/dev/zero", os.O_RDONLY)')
    assert (code, said) == (0, [0, [REFUSED] * 7, [0, 0]])


@filtered
@x86_64
def test_only_the_given_files_are_read_and_written():
    program = """
say([call(0, file, bytes(4), 4), call(1, file, b"x", 1), call(17, file, bytes(4), 4, 0)])
say(call(0, 3, bytes(4), 4)[1])
"""
    before = (
        "file = os.open('/etc/hostname', os.O_RDONLY)\nos.dup2(file, 3)\nfile = os.dup2(file, 9)"
    )
    code, said = run_confined(program, before=before)
    assert (code, said) == (0, [[REFUSED] * 3, 0])


@filtered
@x86_64
def test_locks_that_others_could_see_are_refused():
    program = "say([call(202, bytes(8), op, 1, None, None, 0) for op in (1, 6, 134, 139, 140)])"
    assert run_confined(program) == (0, [[REFUSED] * 5])


@filtered
@x86_64
@pytest.mark.parametrize("number", [0, 39, 62, 257, 512 + 520])
def test_who_calls_by_the_numbers_of_x32_dies(number):
    assert run_confined(f"call({0x40000000 + number}, 0)") == (-signal.SIGSYS, [])


@filtered
@x86_64
def test_who_calls_by_the_numbers_of_32_bits_dies():
    # mov eax, 20 (getpid there); int 0x80; ret
    before = """
import mmap
code = mmap.mmap(-1, 4096, prot=7)
code.write(bytes.fromhex("b814000000cd80c3"))
ask = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
"""
    assert run_confined("ask()", before=before) == (-signal.SIGSYS, [])


@filtered
def test_memory_time_and_the_end_are_allowed():
    program = "import time\nsay([len(bytearray(1 << 24)), time.thread_time() > 0])"
    assert run_confined(program, before="import time") == (0, [[1 << 24, True]])


@pytest.mark.parametrize("machine", MACHINES)
def test_the_filter_is_one_that_the_kernel_can_take(machine):
    """Looks at jumps and ends, for machines too that this one is not."""
    program = filter_program(machine, Descriptors((3,), (4, 1), (5,)))
    steps = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    assert len(steps) <= 4096
    assert steps[-1][::3] == (0x06, 0x00050000 | errno.EPERM)
    for index, (code, if_true, if_false, _) in enumerate(steps):
        if code in (0x15, 0x35):
            assert index + 1 + max(if_true, if_false) < len(steps)
    tested = {value for code, _, _, value in steps if code == 0x15}
    assert allowed_numbers(machine) <= tested


def decide(machine, number, *arguments, spoken=None):
    """Does what the kernel does with the filter."""
    program = filter_program(machine, Descriptors((3,), (4,), (5,)))
    padded = [each % 2**64 for each in (*arguments, *[0] * (6 - len(arguments)))]
    data = struct.pack("=IIQ6Q", number, MACHINES[spoken or machine], 0, *padded)
    at, value = 0, 0
    while True:
        code, if_true, if_false, given = struct.unpack_from("=HBBI", program, 8 * at)
        if code == 0x06:
            return {0x7FFF0000: "allow", 0x80000000: "kill"}.get(given, "refuse")
        if code == 0x20:
            (value,) = struct.unpack_from("=I", data, given)
        else:
            is_so = value == given if code == 0x15 else value >= given
            at += if_true if is_so else if_false
        at += 1


@pytest.mark.parametrize("machine", MACHINES)
def test_the_filter_decides_alike_on_every_machine(machine):
    index = list(MACHINES).index(machine)
    number = {name: numbers[index] for name, numbers in NUMBERS.items()}
    free = {number[name] for name in ("munmap", "brk", "getcwd", "exit_group")}
    heedless = {n for n in range(501) if decide(machine, n, *[2**32 - 1] * 6) == "allow"}
    assert heedless == free
    asked = {
        "read": (3,), "write": (4,), "pread64": (5,), "mmap": (0, 9, 3, 0x22, -1, 0),
        "mprotect": (0, 9, 5), "futex": (0, 129), "prlimit64": (0, 9), "clock_gettime": (3,),
        "sched_getaffinity": (0,),
    }  # fmt: skip
    assert {decide(machine, number[name], *given) for name, given in asked.items()} == {"allow"}
    assert free | {number[name] for name in asked} == allowed_numbers(machine)
    assert decide(machine, number["mprotect"], 0, 9, 7) == "refuse"
    assert decide(machine, number["prlimit64"], 77, 9) == "refuse"
    assert decide(machine, number["read"] + 0x40000000, 3) == "kill"
    (other,) = set(MACHINES) - {machine}
    assert decide(machine, number["read"], 3, spoken=other) == "kill"


def test_numbers_are_told_apart_on_each_machine():
    for machine in MACHINES:
        assert len(allowed_numbers(machine)) == len(NUMBERS)
