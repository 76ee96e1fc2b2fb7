//go:build unix && !linux

package gpu

import "syscall"

// process is how a child is known.
type process struct {
	owned bool // we reap it
	done  bool
}

func (p *process) attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func (p *process) identify(_ int, owned bool) { p.owned = owned }

// alive reports whether pid is the child and not yet reaped, as far as that is known.
func (p *process) alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// toGroup sends a signal to the group that the child leads, if it is the child
// still: elsewhere it may have been reaped, and its number be another's.
func (p *process) toGroup(pid int, sig syscall.Signal) {
	if p.alive(pid) {
		_ = syscall.Kill(-pid, sig)
	}
}

// sweep has nothing to do: that a child has ended is known only once it was reaped,
// and its number may be another's then.
func (p *process) sweep(int) {}

// ended reports whether the child has ended and been reaped.
func (p *process) ended(pid int) bool { return syscall.Kill(pid, 0) == syscall.ESRCH }

func (p *process) release() {}

func shut(files []uintptr) []uintptr { return files }
