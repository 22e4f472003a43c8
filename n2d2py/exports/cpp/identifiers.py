"""C identifiers for layer and tensor names: valid, unique regardless of case, the same in every run.

Names in generated code are ``<identifier>_<suffix>`` with a suffix without underscore (``conv1_config``, ``conv1_weights``), so
two of them differ if identifier or suffix differ. Identifiers also name files, hence the length limit and the reserved file
names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from n2d2py.graph import QuantGraph

MAX_LENGTH = 64
KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class compl const
    const_cast constexpr continue decltype default delete do double dynamic_cast else enum explicit export extern false
    float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private
    protected public register reinterpret_cast return short signed sizeof static static_assert static_cast std struct
    switch template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile
    wchar_t while xor xor_eq
    """.split()
)
"""Keywords of C++11, and `std`."""
_RESERVED = KEYWORDS | frozenset(
    """
    concept final import main module override requires restrict linux unix n2d2 con prn aux nul com1 com2 com3 com4 com5
    com6 com7 com8 com9 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9
    """.split()
)
"""Keywords with words of later C++, macros, and device names."""


def sanitise(name: str) -> str:
    """Return the nearest valid identifier: letters, digits and single underscores, no keyword, at most 64 characters."""
    text = re.sub(r"_+", "_", re.sub(r"[^0-9A-Za-z]", "_", name)).strip("_")[:MAX_LENGTH].rstrip("_")
    if not text or text[0].isdigit() or text.lower() in _RESERVED:
        text = f"x{text}"
    return text


def namespace_name(name: str) -> str:
    """Return the nearest identifier for a namespace next to C's library: `div` becomes `div_net`."""
    text = sanitise(name)
    return f"{text[: MAX_LENGTH - 4]}_net" if is_library_name(text) else text


def mangled(namespace: str, name: str) -> str:
    """Return the assembler name of a namespace variable (Itanium C++ ABI, 5.1.2); `name` may be in nested namespaces."""
    return f"_ZN{''.join(f'{len(part)}{part}' for part in (namespace, *name.split('::')))}E"


def _unique(names: Iterable[str]) -> dict[str, str]:
    taken: set[str] = set()
    result: dict[str, str] = {}
    for name in names:
        if name in result:
            continue
        base = sanitise(name)
        text, number = base, 2
        while text.lower() in taken:
            text, number = f"{base[: MAX_LENGTH - 5]}_{number}", number + 1
        taken.add(text.lower())
        result[name] = text
    return result


class Identifiers:
    """The identifiers of a network, numbered in graph order where names would coincide."""

    def __init__(self, graph: QuantGraph):
        self._layers = _unique(node.name for node in graph.nodes)
        self._tensors = _unique([*graph.inputs, *(name for node in graph.nodes for name in node.outputs), *graph.tensors])

    def layer(self, name: str) -> str:
        """Return the identifier of a layer; raises KeyError for an unknown name."""
        return self._layers[name]

    def tensor(self, name: str) -> str:
        """Return the identifier of a tensor; raises KeyError for an unknown name."""
        return self._tensors[name]

    def plane(self, tensor: str) -> str:
        """Return the name of the struct that describes a tensor's memory."""
        return f"{self._tensors[tensor]}_plane"


# Names that C's library declares outside of any namespace, which a namespace of the same name would contradict, and those of its
# headers, which `include/<namespace>.h` would hide.

_FUNCTIONS = frozenset(
    """
    abort abs access acct alarm alloca asctime asprintf atexit atof atoi atol atoll basename bcmp bcopy brk bsearch btowc bzero
    calloc chdir chmod chown chroot clearenv clearerr clock clone close confstr count crypt ctermid ctime cuserid daemon data
    difftime div dprintf drand48 dup dup2 dup3 ecvt environ erand48 errno execl execle execlp execv execve execvp exit fchdir
    fchmod fchown fclose fcvt fdopen feof ferror fflush ffs ffsl ffsll fgetc fgetpos fgets fileno fopen fork fprintf fputc fputs
    fread free freopen fscanf fseek fseeko fsetpos fstat fsync ftell ftello ftruncate fwide fwrite gcvt getc getchar getcwd
    getdate getdelim getegid getenv geteuid getgid getline getlogin getopt getpass getpid getppid getuid getw getwd gmtime index
    initstate isatty jrand48 kill labs lchown lcong48 ldiv link llabs lldiv localtime lockf lrand48 lseek lstat malloc mblen
    mbrlen mbstowcs mbtowc memccpy memchr memcmp memcpy memmem memmove mempcpy memset mkdir mkdtemp mkfifo mknod mkstemp mktemp
    mktime mrand48 nanosleep nice nrand48 optarg optind pathconf pause pclose perror pipe popen pread printf profil putc putchar
    putenv puts putw pwrite qsort raise rand random read readlink realloc realpath remove rename rewind rindex rmdir sbrk scanf
    select setbuf setenv setgid setsid setstate setuid setvbuf signal sleep snprintf sprintf srand srand48 srandom sscanf stat
    stdin stdout stderr stpcpy strcat strchr strcmp strcoll strcpy strcspn strdup strerror strftime strlen strncat strncmp
    strncpy strndup strnlen strpbrk strptime strrchr strsep strsignal strspn strstr strtod strtof strtok strtol strtold strtoll
    strtoul strtoull strxfrm swab symlink sync syscall sysconf system time timegm timezone daylight tmpfile tmpnam truncate
    ttyname tzname tzset ualarm umask ungetc unlink unsetenv usleep valloc vfork vfprintf vfscanf vprintf vscanf vsnprintf
    vsprintf vsscanf wait wcstombs wctomb write std uint ulong ushort
    """.split()
)
_MATHEMATICS = frozenset(
    """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh drem erf erfc exp exp10 exp2 expm1 fabs fadd fdim fdiv
    ffma finite floor fma fmax fmaximum fmin fminimum fmod fmul frexp fsqrt fsub gamma hypot ilogb isinf isnan j0 j1 jn ldexp
    lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nextdown nexttoward nextup pow
    remainder remquo rint round roundeven scalb scalbln scalbn significand signgam sin sincos sinh sqrt tan tanh tgamma trunc
    y0 y1 yn
    """.split()
)
_HEADERS = frozenset(
    """
    aio alloca ar argz asm assert byteswap complex cpio crypt ctype cxxabi dirent dlfcn elf endian envz err errno error execinfo
    fcntl features fenv float fmtmsg fnmatch fpu_control fstab fts ftw getopt glob grp gshadow iconv ifaddrs inttypes io iso646
    langinfo libgen libintl limits link locale malloc math mcheck memory mntent monetary mqueue netdb nl_types nss obstack omp
    paths poll printf process proc_service pthread pty pwd regex regexp resolv sched search semaphore setjmp sgtty shadow signal
    spawn stab stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string strings stropts syscall sysexits
    syslog tar termio termios tgmath thread_db threads time ttyent uchar ucontext ulimit unistd utime utmp utmpx values wait
    wchar wctype windows wordexp
    """.split()
)
_TYPE = re.compile(r"[fl]|f\d+x?")
"""Suffix of a real function's name for another type."""


def is_library_name(name: str) -> bool:
    """True if C's library, or its POSIX part, may declare `name` or have a header of that name."""
    known = name in _FUNCTIONS or name in _MATHEMATICS or name.lower() in _HEADERS
    return (
        known
        or any(name.startswith(base) and _TYPE.fullmatch(name[len(base) :]) for base in _MATHEMATICS)
        or name.endswith("_t")
    )
