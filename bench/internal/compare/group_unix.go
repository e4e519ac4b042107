//go:build unix

package compare

import (
	"os/exec"
	"syscall"
)

// asGroup makes the command's end that of the programs that it has started,
// too: "go test" and "go run" leave theirs alone otherwise.
func asGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}
