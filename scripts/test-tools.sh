#!/bin/sh
# Installs what the tests need: a Python with psutil in .tools/venv, GNU time, and in CI a C compiler.
# What cannot be had costs one line and the tests that need it; in CI (CI=true) a failed install is an error.
# Usage: scripts/test-tools.sh STAMP
set -eu
stamp=$1
python=${PYTHON:-python3}
venv=.tools/venv
complete=true

say() { echo "test-tools: $*"; }

# lacking WHAT HOW: one line for a thing that is not there.
lacking() {
	say "$1 (to get it: $2)"
	complete=false
}

can_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

# A Debian mirror keeps only the newest version of a package, so these cannot be pinned.
apt_install() {
	can_apt || return 1
	say "installing Debian package(s): $*"
	if DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=3 update &&
		DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Acquire::Retries=3 install --no-install-recommends "$@"
	then return 0; fi >.tools/apt.log 2>&1
	say "apt-get failed; its last words:"
	tail -n 5 .tools/apt.log
	[ "${CI:-}" != true ] || exit 1
	return 1
}

has_gnu_time() { /usr/bin/time --version 2>&1 | grep -q GNU; }

has_venv() { "$python" -c 'import venv, ensurepip' 2>/dev/null; }

# Debian's Python can make a venv without python3-venv, but cannot put pip in it; an outer pip can fill it.
has_outer_pip() { "$python" -c 'import venv' 2>/dev/null && "$python" -m pip --python "$python" --version >/dev/null 2>&1; }

make_venv() {
	export PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1
	if has_venv; then
		"$python" -m venv --clear "$venv" &&
			"$venv/bin/python" -m pip install -q --retries 5 -r scripts/requirements.txt
	else
		"$python" -m venv --clear --without-pip "$venv" &&
			"$python" -m pip --python "$venv/bin/python" install -q --retries 5 -r scripts/requirements.txt
	fi
}

install_psutil() {
	if ! has_venv && ! has_outer_pip && ! apt_install python3-venv; then
		lacking "Python's venv module is missing, comparisons with psutil are skipped" "apt-get install python3-venv, or your system's package of it"
		return 1
	fi
	say "installing $(cat scripts/requirements.txt) into $venv"
	if ! make_venv; then
		lacking "psutil could not be installed, comparisons with it are skipped" "make test, with access to a Python package index"
		return 1
	fi
}

mkdir -p .tools
if ! command -v "$python" >/dev/null 2>&1; then
	lacking "$python is missing, the tests that need Python are skipped" "install Python 3, or name one: make test PYTHON=..."
	[ "${CI:-}" != true ] || exit 1
elif ! install_psutil; then
	# A half-made environment must not look like a whole one to the tests.
	rm -rf "$venv"
	[ "${CI:-}" != true ] || exit 1
fi

if ! has_gnu_time && ! apt_install time; then
	lacking "GNU time is missing, the comparison with it is skipped" "apt-get install time"
fi

# Only wanted for the race detector: worth an install in CI, not on somebody's machine.
if [ "${CI:-}" = true ] && ! sh scripts/has-cc.sh && ! apt_install gcc libc6-dev; then
	lacking "no C compiler, the tests run without the race detector" "apt-get install gcc libc6-dev"
fi

if $complete; then
	: >"$stamp"
fi
