// Package dropin finds, and builds, the libibverbs in which Weft is the device, and
// says with which environment a program is run to use it.
//
// The library is two files: libibverbs.so.1, in C, and libweft-engine.so, which is a Go
// program. Their sources are the folder dropin of the repository, a module of its own.
// A package of a distribution brings the files built, in lib/weft beside its bin. Where
// they are missing they are built from the sources with the machine's own compilers,
// into the user's cache, and again when the sources change.
package dropin
