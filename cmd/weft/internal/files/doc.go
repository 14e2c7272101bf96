// Package files copies files between this machine and NFS servers, and removes files
// there. It implements weft ls, cat, cp and rm.
//
// A [Tree] is the files of one side, and a [Place] is a path in it. A [Copier] plans a
// copy between trees and executes the plan. A [Remover] removes files.
package files
