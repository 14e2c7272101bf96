// Package promql checks the expressions of docs/grafana.json and docs/operate.md with the
// parser of Prometheus itself. It is a module of its own, since that has many dependencies.
package promql
