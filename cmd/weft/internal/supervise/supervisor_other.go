//go:build !linux

package supervise

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"

	"github.com/weft-rdma/weft/cmd/weft/internal/confine"
	"github.com/weft-rdma/weft/cmd/weft/internal/service"
)

// A Config says what to run, and how.
type Config struct {
	Program string
	Args    []string
	Rules   func() (*confine.Rules, error)
	Start   func(*exec.Cmd, *confine.Rules) error
	Reload  <-chan os.Signal
	Manager *service.Manager
	Log     *slog.Logger
	Notice  func(string)
}

// Run returns an error: a process can be confined on Linux only.
func Run(context.Context, Config, func() service.Command) (int, error) {
	return 0, errors.New("this system can't confine a process")
}
