//go:build !linux

package gpu

import "os"

// A process identifies a child.
type process struct {
	handle *os.Process
	ended  chan struct{}
}

// fork starts nvidia-smi in a new process group, which Ctrl-C does not reach.
func (c *child) fork(file string, args, env []string, null, out *os.File) (int, error) {
	handle, err := os.StartProcess(file, append([]string{file}, args...), &os.ProcAttr{
		Env:   env,
		Files: []*os.File{null, out, out},
		Sys:   ownGroup(),
	})
	if err != nil {
		return 0, err
	}
	c.handle, c.ended = handle, make(chan struct{})
	go func() {
		_, _ = handle.Wait()
		close(c.ended)
	}()
	return handle.Pid, nil
}

func (c *child) identify(int, bool) {}

// signal kills the child. Windows has no gentler way, and no other system that uses this file has an NVIDIA driver.
func (c *child) signal(bool) { _ = c.handle.Kill() }

func (c *child) reap() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

func (c *child) reapInBackground() {}

func (c *child) release() {}
