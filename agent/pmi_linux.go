package agent

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/perfagent/perfagent/internal/scheduler"
)

// holdPMI keeps a copy of the descriptor by which Hydra, the launcher of MPICH and Intel MPI, talks to its rank,
// and reports whether it has one. When all copies are closed without MPI_Finalize, Hydra kills the rank and all
// others at once: the report of a job that failed would not be written. The copy is never closed. It ends with
// this process, whose end and exit code are then what Hydra learns, as it would from the job.
//
// The job inherits the descriptor itself. srun --mpi=pmi2 sets the same variables, but has no such rule.
func holdPMI() bool {
	fd, err := strconv.Atoi(os.Getenv("PMI_FD"))
	if err != nil || os.Getenv("PMI_RANK") == "" || !isInheritedSocket(fd) || !scheduler.UnderHydra() {
		return false
	}
	_, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)

	return err == nil
}

// isInheritedSocket reports whether a descriptor is a socket that the job inherits. A number that means nothing
// here may be that of one of our own, which are all close-on-exec.
func isInheritedSocket(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC != 0 {
		return false
	}
	var stat unix.Stat_t

	return unix.Fstat(fd, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFSOCK
}
