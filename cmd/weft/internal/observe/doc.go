// Package observe shows what a running command does: metrics in the format of Prometheus,
// health, a list of connections, and an access log. The core packages count; this package
// translates their counts when it is asked, so that nobody pays who does not ask.
package observe
