#!/bin/sh
# Installs what the tests need.
# Without a second argument, what make test needs: Pythons with psutil, cmarkgfm, gunicorn, mpi4py and clients of StatsD and
# Prometheus in .tools/venv, with MLflow's server and client in .tools/mlflow3, with ProxyStore and numpy in .tools/ops,
# .tools/ops-old and .tools/ops-06; Redis in .tools/redis; a server of S3 in .tools/versitygw.
# With "e2e", what make e2e needs as well: MLflow 2 in .tools/mlflow2, Jupyter's kernel in .tools/jupyter, Snakemake and Dask
# in .tools/workflows, Prometheus in .tools/prometheus, Slurm with munge in .tools/slurm, Open MPI in .tools/openmpi, MPICH
# in .tools/mpich, a kernel for the virtual machine in .tools/kernel, the command ip, GNU time, strace, curl, shells, Chromium
# with a font, podman and qemu with a static busybox, rpm, cpio, mandoc and an emulation of arm64 for the packages of make dist.
# With "race", in CI, a C compiler. With "peers" or "floor", the tools that benchmarks compare us with, in .tools/peers and
# .tools/floor, the latter where Rust's cargo is. With "kubernetes", Kubernetes in .tools/kubernetes, containerd and etcd in
# .tools/containerd.
# A tool that cannot be installed is reported in one line, and its tests are skipped; in CI (CI=true) it is an error.
# Usage: scripts/test-tools.sh STAMP [e2e | race | peers | floor | kubernetes]
set -eu
stamp=$1
python=${PYTHON:-python3}
complete=true
log=$PWD/.tools/apt.log

say() { echo "test-tools: $*"; }

# lacking WHAT HOW: reports a missing thing in one line.
lacking() {
	say "$1 (to get it: $2)"
	complete=false
}

can_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

# apt_get ARGUMENT...: runs apt-get with updated lists. A Debian mirror only keeps the newest version of a package, so
# versions cannot be pinned.
apt_get() {
	export DEBIAN_FRONTEND=noninteractive
	if apt-get -q -o Acquire::Retries=3 update && apt-get -q -y -o Acquire::Retries=3 "$@"; then return 0; fi >"$log" 2>&1
	say "apt-get failed; its last words:"
	tail -n 5 "$log"
	return 1
}

apt_install() {
	can_apt || return 1
	say "installing Debian package(s): $*"
	if apt_get install --no-install-recommends "$@"; then return 0; fi
	[ "${CI:-}" != true ] || exit 1
	return 1
}

# apt_unpack NAME PACKAGE...: unpacks packages into .tools/NAME, without installing them or their users and services.
apt_unpack() {
	can_apt || return 1
	name=$1
	shift
	say "unpacking Debian package(s) into .tools/$name: $*"
	rm -rf ".tools/$name" .tools/deb
	mkdir .tools/deb # apt-get downloads into the current directory
	if (cd .tools/deb && apt_get download "$@" && for deb in *.deb; do dpkg-deb -x "$deb" unpacked || exit 1; done) &&
		mv .tools/deb/unpacked ".tools/$name"; then
		rm -rf .tools/deb
		return 0
	fi
	[ "${CI:-}" != true ] || exit 1
	return 1
}

# has_prometheus: with promtool, which is in the same package.
has_prometheus() {
	.tools/prometheus/usr/bin/promtool --version >/dev/null 2>&1 ||
		{ command -v prometheus && command -v promtool; } >/dev/null 2>&1
}

has_chromium() { command -v chromium >/dev/null 2>&1; }

# has_font: the font of Chromium in the tests.
has_font() { [ -e /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf ]; }

has_engines() {
	command -v podman && command -v runc && command -v busybox && command -v catatonit && { ! is_amd64 || command -v qemu-system-x86_64; }
} >/dev/null 2>&1

# is_amd64: the virtual machine of the tests needs it.
is_amd64() { [ "$(uname -m)" = x86_64 ]; }

has_kernel() { ! is_amd64 || ls .tools/kernel/boot/vmlinuz-* >/dev/null 2>&1; }

# unpack_kernel: unpacks Debian's kernel for virtual machines, with control groups v2, into .tools/kernel.
unpack_kernel() {
	can_apt && apt_get check || return 1 # with updated lists: the package below depends on the newest kernel
	kernel=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: //p' | head -n 1)
	apt_unpack kernel "${kernel:-linux-image-cloud-amd64}"
}

has_slurm() {
	ls .tools/slurm/usr/sbin/slurmctld-wlm || { command -v munged && command -v slurmctld && command -v slurmd && command -v srun; }
} >/dev/null 2>&1

# unpack_slurm: unpacks Slurm, munge, and their libraries that are not installed. Installing would start services.
unpack_slurm() {
	can_apt && apt_get check || return 1 # with new lists
	# shellcheck disable=SC2046 # several words
	apt_unpack slurm $(apt-get -s install --no-install-recommends slurm-wlm slurm-client munge | sed -n 's/^Inst \([^ ]*\).*/\1/p')
}

has_openmpi() { [ -e .tools/openmpi/usr/bin/orterun ] || command -v mpirun.openmpi >/dev/null 2>&1; }

has_mpich() { [ -e .tools/mpich/usr/bin/mpiexec.hydra ] || command -v mpiexec.mpich >/dev/null 2>&1; }

# versitygw: an S3 server that keeps objects in a directory. It is only distributed as source.
versitygw=v1.8.0
has_versitygw() { "${GO:-go}" version -m .tools/versitygw/versitygw 2>/dev/null | grep -q "github.com/versity/versitygw.$versitygw"; }

# build_versitygw takes a minute or two on two cores.
build_versitygw() {
	say "building versitygw $versitygw"
	GOBIN=$PWD/.tools/versitygw "${GO:-go}" install "github.com/versity/versitygw/cmd/versitygw@$versitygw" >.tools/versitygw.log 2>&1
}

has_redis() { [ -e .tools/redis/usr/bin/redis-server ] || command -v redis-server >/dev/null 2>&1; }

# unpack_with_libraries NAME PACKAGE: unpacks a package with its libraries that are not installed.
unpack_with_libraries() {
	can_apt && apt_get check || return 1 # with new lists
	# shellcheck disable=SC2046 # several words
	apt_unpack "$1" $(apt-get -s install --no-install-recommends "$2" | sed -n 's/^Inst \([^ ]*\).*/\1/p')
}

has_containerd() {
	[ -e .tools/containerd/usr/bin/containerd ] || { command -v containerd && command -v etcd && [ -e /usr/lib/cni/bridge ]; }
} >/dev/null 2>&1

# unpack_containerd: unpacks containerd, etcd and the network plugins for Pods, unless they are installed.
unpack_containerd() {
	can_apt && apt_get check || return 1 # with new lists
	# shellcheck disable=SC2046 # several words
	apt_unpack containerd $(apt-get -s install --no-install-recommends containerd etcd-server containernetworking-plugins | sed -n 's/^Inst \([^ ]*\).*/\1/p')
}

# build_floor: builds sampling wrappers in Rust. Takes some minutes on two cores.
build_floor() {
	for crate in denet@0.10.3 resource-tracker@0.1.18; do
		if ! command -v cargo >/dev/null 2>&1; then
			lacking "cargo is missing, make floor does not compare with $crate" "install Rust"
		elif say "building $crate" && ! cargo install -q --locked --root .tools/floor "$crate" >.tools/floor.log 2>&1; then
			tail -n 5 .tools/floor.log
			lacking "$crate could not be built, make floor does not compare with it" "make floor, with access to a registry of crates"
		fi
	done
}

# build_kubernetes: builds the programs of scripts/kubernetes/go.mod. The first time takes 7 to 20 minutes on two cores.
# They need their version as a linker flag.
build_kubernetes() {
	mkdir -p .tools/kubernetes
	go=${GO:-go}
	version=$("$go" -C scripts/kubernetes list -m -f '{{.Version}}' k8s.io/kubernetes) || return 1
	for program in kube-apiserver kube-controller-manager kube-scheduler kubectl kubelet; do
		say "building $program $version"
		CGO_ENABLED=0 "$go" -C scripts/kubernetes build -trimpath -o ../../.tools/kubernetes/$program \
			-ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" k8s.io/kubernetes/cmd/$program || return 1
	done
}

# has_shells: the shells with a completion test.
has_shells() { [ -e /usr/share/bash-completion/bash_completion ] && command -v zsh && command -v fish; } >/dev/null 2>&1

# has_packagers: the tools that unpack and run the packages of make dist.
has_packagers() {
	command -v rpm && command -v rpm2cpio && command -v cpio && command -v qemu-aarch64-static && command -v mandoc
} >/dev/null 2>&1

has_gnu_time() { /usr/bin/time --version 2>&1 | grep -q GNU; }

has_venv() { "$python" -c 'import venv, ensurepip' 2>/dev/null; }

# A pip outside can fill a venv without pip, which is faster. Debian's Python needs python3-venv for one with pip.
has_outer_pip() {
	here=$("$python" -c 'import sys, venv; print(sys.executable)' 2>/dev/null) &&
		"$python" -m pip --python "$here" --version >/dev/null 2>&1
}

# state REQUIREMENTS: identifies the inputs of an environment and its location, because it cannot be moved.
state() {
	echo "$PWD"
	"$python" -V
	cat "$1"
}

# current VENV REQUIREMENTS: whether the environment exists and was made from the same inputs.
current() { [ -e "$1/bin/python" ] && state "$2" | cmp -s - "$1/installed"; }

# make_venv VENV REQUIREMENTS MODULES: only compiles the files that importing the modules needs, a tenth of all. The
# import also tests the environment.
make_venv() {
	if has_outer_pip; then
		"$python" -m venv --clear --without-pip "$1" &&
			"$python" -m pip --python "$1/bin/python" install -q --no-compile --retries 5 -r "$2"
	else
		"$python" -m venv --clear "$1" &&
			"$1/bin/python" -m pip install -q --no-compile --retries 5 -r "$2"
	fi &&
		env -u PYTHONDONTWRITEBYTECODE MLFLOW_DISABLE_TELEMETRY=true "$1/bin/python" -W ignore -c "import $3" &&
		state "$2" >"$1/installed"
}

# begin NAME REQUIREMENTS MODULES: starts making .tools/NAME unless it is current.
begin() {
	if current ".tools/$1" "$2"; then return 0; fi
	say "installing what $2 names into .tools/$1"
	export PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1
	make_venv ".tools/$1" "$2" "$3" >".tools/$1.log" 2>&1 &
}

# finish NAME REQUIREMENTS WHAT HOW: if .tools/NAME could not be made, reports it and removes the directory, which tests
# would take for a complete environment.
finish() {
	if current ".tools/$1" "$2"; then return 0; fi
	rm -rf ".tools/$1"
	say "the last words of installing .tools/$1:"
	tail -n 5 ".tools/$1.log"
	lacking "$3" "$4"
	[ "${CI:-}" != true ] || exit 1
}

# can_make_venvs reports whether Python environments can be made here, and if not prints the tests that are skipped.
can_make_venvs() {
	if ! command -v "$python" >/dev/null 2>&1; then
		lacking "$python is missing, the tests that need Python are skipped" "install Python 3, or name one: make test PYTHON=..."
	elif ! has_venv && ! has_outer_pip && ! apt_install python3-venv; then
		lacking "Python's venv module is missing, comparisons with psutil and tests against MLflow's server are skipped" "apt-get install python3-venv, or your system's package of it"
	else
		return 0
	fi
	[ "${CI:-}" != true ] || exit 1
	return 1
}

# The environments are made in parallel: pip waits for the network and uses one core.
make_test_venvs() {
	begin venv scripts/requirements.txt "psutil, cmarkgfm, statsd, datadog, prometheus_client, gunicorn.app.wsgiapp, mpi4py"
	begin mlflow3 scripts/requirements-mlflow3.txt "mlflow.cli, mlflow.server.fastapi_app, flask_wtf, sklearn.linear_model, psutil"
	begin ops scripts/requirements-ops.txt "proxystore.store.metrics, numpy, boto3"
	begin ops-old scripts/requirements-ops-old.txt "proxystore.store.stats, numpy"
	begin ops-06 scripts/requirements-ops-06.txt "proxystore.store, proxystore.connectors.file, proxystore.connectors.redis"
}

finish_test_venvs() {
	finish venv scripts/requirements.txt "psutil, cmarkgfm, statsd, datadog, prometheus_client, gunicorn and mpi4py could not be installed, comparisons with them are skipped" "make test, with access to a Python package index"
	finish mlflow3 scripts/requirements-mlflow3.txt "MLflow 3 could not be installed, tests against its server are skipped" "make test, with access to a Python package index and Python 3.11 or newer"
	finish ops scripts/requirements-ops.txt "ProxyStore, numpy and boto3 could not be installed, comparisons with them are skipped" "make test, with access to a Python package index and Python 3.11 or newer"
	finish ops-old scripts/requirements-ops-old.txt "old versions of ProxyStore and numpy could not be installed, comparisons with them are skipped" "make test, with access to a Python package index and Python 3.11 or 3.12"
	finish ops-06 scripts/requirements-ops-06.txt "ProxyStore 0.6 could not be installed, comparisons with it are skipped" "make test, with access to a Python package index"
}

make_e2e_venvs() {
	begin mlflow2 scripts/requirements-mlflow2.txt "mlflow.cli, mlflow.server.handlers, flask_wtf, gunicorn.app.wsgiapp"
	begin jupyter scripts/requirements-jupyter.txt "ipykernel.kernelapp, jupyter_client"
	begin workflows scripts/requirements-workflows.txt "snakemake.cli, distributed.cli.dask_scheduler, distributed.cli.dask_worker, dask_jobqueue, proxystore.store"
}

finish_e2e_venvs() {
	finish mlflow2 scripts/requirements-mlflow2.txt "MLflow 2 could not be installed, tests against its server are skipped" "make e2e, with access to a Python package index and Python 3.11 or newer"
	finish jupyter scripts/requirements-jupyter.txt "Jupyter's kernel for Python could not be installed, the tests in it are skipped" "make e2e, with access to a Python package index"
	finish workflows scripts/requirements-workflows.txt "Snakemake, Dask and ProxyStore could not be installed, their recipes of docs/cookbook.md and docs/dask.md are not tried" "make e2e, with access to a Python package index and Python 3.11 or newer"
}

# install_engines installs the programs of the end-to-end tests.
install_engines() {
	if ! has_shells && ! apt_install bash-completion zsh fish; then
		lacking "a shell is missing, the Tab key is not pressed in it" "apt-get install bash-completion zsh fish"
	fi

	if ! has_gnu_time && ! apt_install time; then
		lacking "GNU time is missing, the comparison with it is skipped" "apt-get install time"
	fi

	if ! command -v strace >/dev/null 2>&1 && ! apt_install strace; then
		lacking "strace is missing, no system call is made to fail" "apt-get install strace"
	fi

	if ! has_prometheus && ! apt_unpack prometheus prometheus; then
		lacking "Prometheus is missing, the tests that scrape with it are skipped" "apt-get install prometheus"
	fi

	if ! command -v curl >/dev/null 2>&1 && ! apt_install curl ca-certificates; then
		lacking "curl is missing, the commands of docs/listen.md are not tried" "apt-get install curl"
	fi

	if { ! has_chromium || ! has_font; } && ! apt_install chromium fonts-dejavu-core; then
		lacking "Chromium is missing, the tests in a real browser are skipped" "apt-get install chromium fonts-dejavu-core"
	fi

	engines="podman runc busybox-static catatonit"
	if is_amd64; then engines="$engines qemu-system-x86"; fi
	# shellcheck disable=SC2086 # several words
	if ! has_engines && ! apt_install $engines; then
		lacking "podman, runc, busybox or qemu is missing, the tests in containers and on cgroup v2 are skipped" "apt-get install $engines"
	fi

	if ! has_packagers && ! apt_install rpm rpm2cpio cpio qemu-user-static mandoc; then
		lacking "rpm, cpio, mandoc or qemu for arm64 is missing, the tests of these packages are skipped" "apt-get install rpm rpm2cpio cpio qemu-user-static mandoc"
	fi

	if ! has_kernel && ! unpack_kernel; then
		lacking "a kernel for the virtual machine is missing, the tests on cgroup v2 are skipped" "make e2e as root on Debian: it unpacks the package of linux-image-cloud-amd64 into .tools/kernel"
	fi

	if ! has_slurm && ! unpack_slurm; then
		lacking "Slurm or munge is missing, the tests in its steps are skipped" "apt-get install slurm-wlm slurm-client munge"
	fi

	if ! has_openmpi && ! unpack_with_libraries openmpi openmpi-bin; then
		lacking "Open MPI is missing, the tests below its mpirun are skipped" "apt-get install openmpi-bin"
	fi

	if ! has_mpich && ! unpack_with_libraries mpich mpich; then
		lacking "MPICH is missing, the tests below its mpiexec are skipped" "apt-get install mpich"
	fi

	if ! command -v ip >/dev/null 2>&1 && ! apt_install iproute2; then
		lacking "the command ip is missing, the tests on several hosts are skipped" "apt-get install iproute2"
	fi
}

mkdir -p .tools
if [ "${2:-}" = peers ]; then
	begin peers scripts/requirements-peers.txt "con_duct, resource_tracker, psrecord"
	wait
	finish peers scripts/requirements-peers.txt "con-duct, resource-tracker and psrecord could not be installed, comparisons with them are skipped" "make peers, with Python's venv module and access to a Python package index"
	exit
fi

if [ "${2:-}" = floor ]; then
	build_floor
	if $complete; then : >"$stamp"; fi
	exit
fi

if [ "${2:-}" = kubernetes ]; then
	has_containerd || unpack_containerd ||
		lacking "containerd, etcd or the plugins for networks are missing" "apt-get install containerd etcd-server containernetworking-plugins"
	build_kubernetes || lacking "Kubernetes cannot be built" "make e2e-kubernetes, with access to a proxy for Go modules"
	if $complete; then : >"$stamp"; fi
	exit
fi

if [ "${2:-}" = race ]; then
	# Installed in CI only, not on a developer's machine.
	if [ "${CI:-}" = true ] && ! sh scripts/has-cc.sh && ! apt_install gcc libc6-dev; then
		lacking "no C compiler, nothing is tried with the race detector" "apt-get install gcc libc6-dev"
	fi
	exit
fi

if [ "${2:-}" = e2e ]; then
	if can_make_venvs; then venvs=true; else venvs=false; fi
	if $venvs; then make_e2e_venvs; fi
	install_engines
	wait
	if $venvs; then finish_e2e_venvs; fi
	if $complete; then : >"$stamp"; fi
	exit
fi

# The server of S3 is compiled, and Redis unpacked, while pip waits for the network.
if can_make_venvs; then venvs=true; else venvs=false; fi
if $venvs; then make_test_venvs; fi

if ! has_redis && ! unpack_with_libraries redis redis-server; then
	lacking "Redis is missing, the tests of stores in it are skipped" "apt-get install redis-server"
fi

if ! has_versitygw && ! build_versitygw; then
	tail -n 5 .tools/versitygw.log
	lacking "there is no server of S3, the tests of stores in it are skipped" "make test, with access to a proxy for Go modules"
	[ "${CI:-}" != true ] || exit 1
fi

wait
if $venvs; then finish_test_venvs; fi

if $complete; then : >"$stamp"; fi
