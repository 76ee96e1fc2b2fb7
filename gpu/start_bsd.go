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

// alive tells whether pid is the child and not yet reaped, as far as that is known.
func (p *process) alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// ended tells whether the child has ended and been reaped.
func (p *process) ended(pid int) bool { return syscall.Kill(pid, 0) == syscall.ESRCH }

func (p *process) release() {}

func shut(files []uintptr) []uintptr { return files }
