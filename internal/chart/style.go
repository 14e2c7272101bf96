// How peers look in every picture.

package chart

// Widths of lines, in pixels.
const (
	Thin   = 1.5
	Strong = 3
	Bold   = 4
)

// Dashes.
const (
	Dashed = "10 5"
	Dotted = "2 5"
)

// Colors that color-blind people can tell apart.
const (
	Blue    = "#0072b2"
	Orange  = "#d55e00"
	Green   = "#009e73"
	Sky     = "#2b8cbe"
	Pink    = "#cc79a7"
	Amber   = "#b37400"
	Black   = "#000000"
	Gray    = "#666666"
	Magenta = "#8e2c8e"
)

// Weft is bold, and plain TCP strong, wherever they are.
var (
	Weft     = Style{Color: Blue, Width: Bold, Mark: Circle}
	PlainTCP = Style{Color: Black, Width: Strong, Mark: Square}
)

// Of returns the style of a peer of the bench by its name.
func Of(peer string) Style {
	switch peer {
	case "weft", "weft-rdma":
		return Weft
	case "tcp-c":
		return PlainTCP
	case "tcp-go", "weft-tcp":
		return Style{Color: Gray, Width: Thin, Mark: Diamond}
	case "libfabric":
		return Style{Color: Green, Width: Thin, Mark: Triangle}
	case "grpc-go":
		return Style{Color: Pink, Width: Thin, Mark: Cross}
	case "weft-run":
		return Style{Color: Orange, Width: Thin, Mark: Plus}
	}
	return Style{Color: Magenta, Width: Thin, Mark: Ring}
}

// With returns s with other dashes, and its mark hollow if it can be.
func (s Style) With(dashes string) Style {
	s.Dashes = dashes
	if s.Mark == Circle {
		s.Mark = Ring
	}
	return s
}
