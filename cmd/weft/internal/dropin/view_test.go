package dropin

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestTheFolderOfTheViewKeepsTheNewest(t *testing.T) {
	cache := t.TempDir()
	for i := range viewsKept + 2 {
		at := time.Now().Add(-time.Duration(i) * time.Hour)
		name := write(t, filepath.Join(cache, "view", fmt.Sprint(i), "sys", "file"), "")
		dir := filepath.Dir(filepath.Dir(name))
		if err := os.Chtimes(dir, at, at); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := ViewFolder(cache)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != viewsKept {
		t.Errorf("there are %v, %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(dir, fmt.Sprint(viewsKept-1))); err != nil {
		t.Error(err)
	}
}
