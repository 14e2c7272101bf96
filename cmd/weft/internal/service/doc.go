// Package service is how a command talks with the manager that has started it: systemd, or a
// process of its own that watches over it. The command gets sockets that already listen
// (sd_listen_fds(3)), and says how it is (sd_notify(3)).
package service
