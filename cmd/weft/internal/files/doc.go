// Package files copies files between this machine and NFS servers, and removes them
// there: what weft ls, cat, cp and rm are made of.
//
// A [Tree] is the files of one side, a [Place] a path in it. A [Copier] copies
// between trees: it plans what is to be done, and does it. A [Remover] removes.
package files
