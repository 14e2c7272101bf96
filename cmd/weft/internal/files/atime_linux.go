// This file finds the access time of a file.

package files

import (
	"syscall"
	"time"
)

func accessTime(st *syscall.Stat_t) time.Time { return time.Unix(st.Atim.Unix()) }
