// This file is shell completion of flags, their values, and arguments.

package main

import (
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weft-rdma/weft/cmd/weft/internal/files"
	"github.com/weft-rdma/weft/cmd/weft/internal/fileserver"
	"github.com/weft-rdma/weft/cmd/weft/internal/perf"
)

// flagValues are the choices by flag, or by command and flag. After a value that ends
// in "/" or ":" the user types on.
func flagValues() map[string][]string {
	portMap := []string{string(fileserver.PortMapAuto), string(fileserver.PortMapOwn), string(fileserver.PortMapRegister), string(fileserver.PortMapOff)}
	return map[string][]string{
		"log-level":       {"debug", "info", "warn", "error", "off"},
		"squash":          slices.Sorted(maps.Keys(squashes)),
		"portmap":         portMap,
		"serve listen":    {serveAddr, ":" + rdmaPort},
		"serve tcp":       {"off", ":" + nfsPort},
		"gateway listen":  {"rdma://", "tcp://"},
		"gateway to":      {"tcp://", "rdma://"},
		"gateway tcp":     {"off", ":" + nfsPort},
		"gateway mount":   {"auto", "same"},
		"perf crc":        {"on", "off", "both"},
		"perf sizes":      {"64", "4K", "64K", "1M"},
		"perf congestion": congestionControls(),
		"run congestion":  congestionControls(),
		"ping mpa-rev":    {"2\tRFC 6581", "1\tRFC 5044", "0\tRDMA Consortium"},
	}
}

// congestionControls returns those of the system, if it lists them.
func congestionControls() []string {
	list, _ := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	return strings.Fields(string(list))
}

// lists are the flags that take several values, separated by commas.
var lists = map[string]bool{"perf ops": true, "perf sizes": true}

// fileFlags are the flags whose values are files.
var fileFlags = map[string]bool{"pcap": true, "plot": true, "tls-cert": true, "tls-key": true, "tls-ca": true, "tls-keylog": true}

// addCompletion adds weft completion, and completions for the flags and arguments of
// the other commands of root.
func addCompletion(root *cobra.Command) {
	values := flagValues()
	values["perf ops"] = []string{"all"}
	for _, op := range perf.Ops {
		values["perf ops"] = append(values["perf ops"], string(op))
	}
	for _, cmd := range root.Commands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			name := cmd.Name() + " " + f.Name
			choice, ok := values[name]
			if !ok {
				choice = values[f.Name]
			}
			if !fileFlags[f.Name] {
				cmd.RegisterFlagCompletionFunc(f.Name, choose(choice, lists[name]))
			}
		})
		cmd.ValidArgsFunction = completeArgs(cmd)
	}
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			requireShell(cmd)
		}
	}
}

// requireShell makes it an error to run weft completion without one of its shells.
func requireShell(cmd *cobra.Command) {
	var shells []string
	for _, sub := range cmd.Commands() {
		shells = append(shells, sub.Name())
	}
	last := len(shells) - 1
	cmd.Use, cmd.DisableFlagsInUseLine = "completion SHELL", true
	known := strings.Join(shells[:last], ", ") + " or " + shells[last]
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("missing shell: %s", known)
		}
		return unknown(cmd, "shell", args)
	}
	cmd.RunE = func(*cobra.Command, []string) error { return nil } // Args has failed
}

// completeArgs returns the completion of the arguments of a command. Commands that
// mount exports mostly take URLs.
func completeArgs(cmd *cobra.Command) cobra.CompletionFunc {
	switch {
	case cmd.Name() == "serve":
		return completeDirectory
	case cmd.Name() == "cp":
		return completeFileOrURL
	case cmd.Flags().Lookup("mount-port") != nil:
		return completeURL
	}
	return cobra.NoFileCompletions
}

// choose completes one of the values, or with list the last value of a list.
func choose(values []string, list bool) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := ""
		if i := strings.LastIndexByte(typed, ','); list && i >= 0 {
			before = typed[:i+1]
		}
		var fit []string
		directive := cobra.ShellCompDirectiveNoFileComp
		for _, v := range values {
			if !strings.HasPrefix(before+v, typed) {
				continue
			}
			fit = append(fit, before+v)
			if strings.HasSuffix(v, "/") || list {
				directive |= cobra.ShellCompDirectiveNoSpace
			}
		}
		return fit, directive
	}
}

// completeDirectory completes the only argument, a directory.
func completeDirectory(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// completeURL completes the scheme of a URL. It does not ask servers.
func completeURL(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	if strings.HasPrefix(files.Scheme, typed) {
		return []string{files.Scheme}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// completeFileOrURL completes files of this machine, and the scheme of a URL.
func completeFileOrURL(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if strings.HasPrefix(typed, "nf") {
		if urls, directive := completeURL(cmd, args, typed); urls != nil || files.IsURL(typed) {
			return urls, directive
		}
	}
	return nil, cobra.ShellCompDirectiveDefault
}
