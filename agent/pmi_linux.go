package agent

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/scheduler"
)

// holdPMI duplicates the descriptor with which a rank communicates with its launcher, Hydra (of MPICH and Intel MPI),
// and reports whether there is one. When all copies are closed without MPI_Finalize, Hydra kills all ranks immediately,
// and the report of a failed job would not be written. The copy stays open until this process ends, so Hydra takes the
// end and the exit code from this process instead of the job.
//
// The job inherits the descriptor itself. srun --mpi=pmi2 sets the same variables, but does not kill ranks in this
// case.
func holdPMI() bool {
	fd, err := strconv.Atoi(os.Getenv("PMI_FD"))
	if err != nil || os.Getenv("PMI_RANK") == "" || !isInheritedSocket(fd) || !scheduler.UnderHydra() {
		return false
	}
	_, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)

	return err == nil
}

// isInheritedSocket reports whether fd is a socket that the job inherits. If PMI_FD is stale, fd may be one of our own
// descriptors, which are all close-on-exec.
func isInheritedSocket(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC != 0 {
		return false
	}
	var stat unix.Stat_t

	return unix.Fstat(fd, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFSOCK
}
