"""Names that C's library declares outside of any namespace, which a namespace of the same name would contradict, and those of its
headers, which `include/<namespace>.h` would hide."""

from __future__ import annotations

import re

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
"""What follows the name of a function of real numbers for another type."""


def is_library_name(name: str) -> bool:
    """Whether C's library, or POSIX's part of it, may declare `name`, or have a header of that name."""
    known = name in _FUNCTIONS or name in _MATHEMATICS or name.lower() in _HEADERS
    return (
        known
        or any(name.startswith(base) and _TYPE.fullmatch(name[len(base) :]) for base in _MATHEMATICS)
        or name.endswith("_t")
    )
