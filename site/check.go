// This file checks a finished site: each link leads to a page, and to a place in it if it
// names one; nothing is loaded from another host.

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"golang.org/x/net/html"
)

// A page is what the check needs to know of one.
type page struct {
	ids   map[string]bool
	links []string // addresses that the reader may follow
	loads []string // addresses that the browser loads by itself
	twice []string // ids that more than one element has
}

// Check returns an error that names every dead link of the site, and everything that is
// loaded from elsewhere.
func Check(site fs.FS) error {
	pages, err := readPages(site)
	if err != nil {
		return err
	}
	var errs []error
	for name, p := range pages {
		for _, id := range p.twice {
			errs = append(errs, fmt.Errorf("%s: two elements have the id %s", name, id))
		}
		for _, to := range p.links {
			if err := follow(site, pages, name, to); err != nil {
				errs = append(errs, fmt.Errorf("%s: link to %s: %w", name, to, err))
			}
		}
		for _, to := range p.loads {
			err := follow(site, pages, name, to)
			if u, parseErr := url.Parse(to); parseErr == nil && u.Host != "" {
				err = errors.New("is on another host")
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: loads %s: %w", name, to, err))
			}
		}
	}
	return errors.Join(errs...)
}

func readPages(site fs.FS) (map[string]*page, error) {
	pages := make(map[string]*page)
	err := fs.WalkDir(site, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".html" {
			return err
		}
		f, err := site.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		root, err := html.Parse(f)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		pages[name] = readPage(root)
		return nil
	})
	if err == nil && len(pages) == 0 {
		err = errors.New("the site has no pages")
	}
	return pages, err
}

func readPage(root *html.Node) *page {
	p := &page{ids: make(map[string]bool)}
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			switch {
			case a.Key == "id":
				if p.ids[a.Val] {
					p.twice = append(p.twice, a.Val)
				}
				p.ids[a.Val] = true
			case a.Key == "href" && n.Data == "a":
				p.links = append(p.links, a.Val)
			case a.Key == "src", a.Key == "href" && n.Data == "link":
				p.loads = append(p.loads, a.Val)
			}
		}
	}
	return p
}

// follow follows a link of a page within the site.
func follow(site fs.FS, pages map[string]*page, from, link string) error {
	u, err := url.Parse(link)
	if err != nil {
		return err
	}
	if u.Scheme != "" || u.Host != "" {
		if u.Scheme != "https" && u.Scheme != "mailto" && u.Scheme != "data" {
			return errors.New("is neither of this site nor https")
		}
		return nil
	}
	to := from
	if u.Path != "" {
		to = path.Join(path.Dir(from), u.Path)
	}
	if strings.HasPrefix(u.Path, "/") {
		return errors.New("is absolute: the site could not be moved")
	}
	info, err := fs.Stat(site, to)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return errors.New("leads to a directory")
	}
	if p := pages[to]; p != nil && u.Fragment != "" && !p.ids[u.Fragment] {
		return fmt.Errorf("%s has no element with this id", to)
	}
	return nil
}
