# Sourced by the scripts of this folder: `root` (the checkout), `fail`, `find_python`, `run_module`,
# `ensure_venv`, `need_build_tools`. The sourcing script sets -eu.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

fail() {
    printf 'error: %s\n' "$1" >&2
    exit 1
}

# Sets `python` to a Python of version 3.10 or later.
find_python() {
    local name oldest=""
    for name in python3 python3.13 python3.12 python3.11 python3.10; do
        command -v "$name" >/dev/null 2>&1 || continue
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
            python=$name
            return
        fi
        oldest=${oldest:-$("$name" --version 2>&1)}
    done
    [ -z "$oldest" ] || fail "$oldest is too old: install Python 3.10 or later"
    fail "python3 is missing: install Python 3.10 or later (Debian, Ubuntu: apt install python3 python3-venv)"
}

# Becomes a module of this checkout with its words: with its .venv when there is one, else with the Python of the PATH.
run_module() {
    local python=$root/.venv/bin/python
    [ -x "$python" ] || find_python
    export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
    exec "$python" -m "$@"
}

# Prints what decides about the contents of .venv: the setup.cfg of the checkout and those of its plug-ins.
setups() {
    cat "$root/setup.cfg" "$root"/plugins/*/setup.cfg 2>/dev/null || true
}

# Runs pip install in $venv.
install() {
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --use-pep517 "$@"
}

# Makes $root/.venv hold the checkout and its plug-ins (editable), with the dependencies of the checkout, of the extra onnx and, when $1
# is the name of an extra, of that one. Does nothing when an earlier call did it for the same setup.cfg files.
ensure_venv() {
    local extra=${1:-} venv=$root/.venv python what stamp folder
    what=$root[onnx${extra:+,$extra}]
    stamp=$venv/.installed-${extra:-base}
    if [ -f "$stamp" ] && setups | cmp -s - "$stamp" && "$venv/bin/python" -c '' 2>/dev/null; then
        return
    fi
    if ! "$venv/bin/python" -c 'import pip' 2>/dev/null; then
        find_python
        "$python" -c 'import ensurepip, venv' 2>/dev/null ||
            fail "$("$python" --version) has no venv module: install it (Debian, Ubuntu: apt install python3-venv)"
        "$python" -m venv --clear "$venv" || fail "$venv could not be made with $python -m venv"
    fi
    echo "Installing n2d2py and its dependencies into .venv (once) ..." >&2
    set --
    for folder in "$root"/plugins/*/; do
        [ ! -f "$folder/setup.cfg" ] || set -- "$@" -e "${folder%/}"
    done
    # The plug-ins come without the runtimes that they ask for, which are large; the extra test has them.
    { install -e "$what" && { [ $# -eq 0 ] || install --no-deps "$@"; }; } ||
        fail "pip could not install $what: see its message above; it needs a Python package index"
    setups > "$stamp"
}

# Fails unless a C++ compiler and make are there.
need_build_tools() {
    command -v "${CXX:-g++}" >/dev/null 2>&1 ||
        fail "${CXX:-g++} is missing: install a C++ compiler (Debian, Ubuntu: apt install g++)"
    command -v make >/dev/null 2>&1 || fail "make is missing: install it (Debian, Ubuntu: apt install make)"
}
