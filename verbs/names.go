// This file is the names of the RNICs that are open (Verbs §5.1.2).

package verbs

import (
	"strconv"
	"sync"
)

// MaxRNICs is how many RNICs can be open at a time in one process.
const MaxRNICs = 1024

// opened holds the names of the RNICs that are open in this process.
var opened struct {
	mu    sync.Mutex
	names map[string]struct{}
}

// claimName makes name that of one RNIC until it is released, or picks the next
// free of weft0, weft1 and so on if it is empty.
func claimName(name string) (string, error) {
	const verb = "open RNIC"
	if name != "" && !validName(name) {
		return "", fail(verb, ErrName, "%q: 1 to 63 letters, digits, dots, dashes and underscores are expected", name)
	}
	opened.mu.Lock()
	defer opened.mu.Unlock()
	if _, is := opened.names[name]; is {
		return "", fail(verb, ErrRNICInUse, "%q: close it first, or open another", name)
	}
	if len(opened.names) >= MaxRNICs {
		return "", fail(verb, ErrResources, "%d are open in this process (MaxRNICs)", MaxRNICs)
	}
	for i := 0; name == ""; i++ {
		free := "weft" + strconv.Itoa(i)
		if _, is := opened.names[free]; !is {
			name = free
		}
	}
	if opened.names == nil {
		opened.names = map[string]struct{}{}
	}
	opened.names[name] = struct{}{}
	return name, nil
}

func releaseName(name string) {
	opened.mu.Lock()
	defer opened.mu.Unlock()
	delete(opened.names, name)
}

func validName(name string) bool {
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '-', c == '_':
		default:
			return false
		}
	}
	return len(name) <= 63
}
